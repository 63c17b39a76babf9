/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_supervisor_simulation.c - the restart decision in thousands of simulated
 * runs, with random failures, held against what must always be true.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/verb.h"
#include "restart_sim.h"
#include "unit.h"

#define LENGTH(a)	((int)(sizeof(a) / sizeof((a)[0])))

/* One random failure of a run that gets nowhere. */
static void
random_failure(struct sim *s, bool only_code)
{
	static const char *const categories[] = { "script", "framework", "meta",
	    "infrastructure", "external" };
	static const char *const actions[] = { "stop", "restart", "rollback",
	    "backoff_retry", "restart_excluding_node", "test_nodes", "none" };
	const char *category = categories[unit_random(only_code ? 3 : 5)];
	char name[16];

	snprintf(name, sizeof(name), "%.1s%u", category, unit_random(6));
	sim_verdict(s, category, strcmp(category, "meta") == 0 ? "unknown" :
	    unit_random(8) ? "some_reason" : "port_in_use",
	    strcmp(category, "external") == 0 ? "requeue" :
	    actions[unit_random(LENGTH(actions))], name);
	s->facts.random = unit_random(UINT32_MAX);
	s->facts.uptime_ms = unit_random(2) ? 1000 : 100000;
	s->facts.now_ns += (int64_t)unit_random(7200) * NS_PER_S;
}

/* Without progress, code and unknown failures end a run in a few attempts,
 * whatever the budget. */
START_TEST(simulated_runs_without_progress_end)
{
	int run, attempts, result;
	int64_t step;
	struct sim s;

	for (run = 0; run < 5000; run++) {
		sim_init(&s);
		s.policy = (struct restart_policy){ 1000000, 1, 0 };
		result = (int)unit_random(3);
		step = unit_random(2) ? UNKNOWN : 10 + unit_random(10);
		for (attempts = 0; ; attempts++) {
			random_failure(&s, true);
			sim_sign(&s, step == UNKNOWN ? step :
			    step - unit_random(5), (enum selection_result)result,
			    result == SELECTION_FOUND ? 5 : UNKNOWN);
			if (sim_decide(&s)->kind != DECISION_RESTART)
				break;
			/* Steps that wander within five are a little progress. */
			ck_assert_int_le(attempts, RESTART_FREE_MAX +
			    (step == UNKNOWN ? 1 : 5) * RESTART_NO_PROGRESS_MAX);
		}
	}
}
END_TEST

/* What holds for each decision of any run. */
static void
check_any(const struct sim *s, int occurrences, bool any_bad)
{
	const struct decision *d = &s->in.decision;
	const struct verdict *v = &s->in.verdict;
	bool code = strcmp(v->category, "script") == 0 ||
	    strcmp(v->category, "framework") == 0;
	bool infra = strcmp(v->category, "infrastructure") == 0;

	ck_assert_int_ge(d->budget_left, 0);
	if (d->kind == DECISION_RESTART) {
		ck_assert_int_ge(d->delay_ms, 0);
		ck_assert_int_le(d->delay_ms, RESTART_BACKOFF_MAX_MS * 5 / 4);
		ck_assert(!code || occurrences < 2);
		ck_assert(!d->is_free || (strcmp(v->reason, "port_in_use") == 0 &&
		    s->h.free_retries <= RESTART_FREE_MAX));
		ck_assert(!any_bad);
	} else if (d->kind == DECISION_REQUEUE) {
		ck_assert_int_eq(d->exit_code, EXIT_REQUEUE);
		ck_assert_str_eq(v->category, "external");
	} else {
		ck_assert(d->exit_code == EXIT_NEGATIVE ||
		    d->exit_code == EXIT_BUDGET || d->exit_code == EXIT_NODES);
		if (infra && !any_bad)
			ck_assert_int_ne(d->exit_code, EXIT_NEGATIVE);
		if (infra && d->exit_code == EXIT_NODES)
			ck_assert_int_gt(occurrences, RESTART_NODE_MAX);
	}
}

/* The test's own count of occurrences without a newer checkpoint between. */
struct own_ledger {
	char	name[INCIDENT_NAME_MAX];
	int	count;
	int64_t	checkpoint;
};

static int
own_count(struct own_ledger *l, int *used, const char *name, int64_t checkpoint)
{
	int i;

	for (i = 0; i < *used; i++)
		if (strcmp(l[i].name, name) == 0)
			break;
	if (i == *used) {
		l[(*used)++] = (struct own_ledger){ .checkpoint = -1 };
		snprintf(l[i].name, sizeof(l[i].name), "%s", name);
	}
	l[i].count = checkpoint > l[i].checkpoint ? 1 : l[i].count + 1;
	l[i].checkpoint = checkpoint;
	return l[i].count;
}

START_TEST(simulated_runs_keep_the_rules)
{
	int run, attempt, used, n, kinds[3] = { 0, 0, 0 };
	struct own_ledger ledger[64];
	int64_t checkpoint;
	struct sim s;
	bool bad;

	for (run = 0; run < 3000; run++) {
		sim_init(&s);
		s.policy = (struct restart_policy){ unit_random(20),
		    unit_random(2) ? 86400000 : 0, unit_random(10000) };
		used = 0;
		checkpoint = 0;
		for (attempt = 0; attempt < 100; attempt++) {
			random_failure(&s, false);
			if (unit_random(3) == 0)
				checkpoint += 10;
			bad = unit_random(50) == 0;
			sim_sign(&s, checkpoint + unit_random(10), bad ?
			    SELECTION_ALL_BAD : SELECTION_FOUND,
			    bad ? UNKNOWN : checkpoint);
			s.in.selection.skipped = bad ? 3 : 0;
			n = own_count(ledger, &used, s.in.verdict.fingerprint,
			    bad ? -1 : checkpoint);
			sim_decide(&s);
			if (!bad)
				ck_assert_int_eq(s.count, n);
			check_any(&s, n, bad);
			kinds[s.in.decision.kind]++;
			if (s.in.decision.kind != DECISION_RESTART)
				break;
		}
		ck_assert_int_lt(attempt, 100);
	}
	for (n = 0; n < LENGTH(kinds); n++)
		ck_assert_int_gt(kinds[n], 100);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_test(t, simulated_runs_without_progress_end);
	tcase_add_test(t, simulated_runs_keep_the_rules);
}

int
main(void)
{
	return unit_run("supervisor_simulation", add);
}
