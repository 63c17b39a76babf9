/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_supervisor_restart.c - the restart decision, case by case.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/verb.h"
#include "restart_sim.h"
#include "unit.h"

#define LENGTH(a)	((int)(sizeof(a) / sizeof((a)[0])))

static void
check_stop(const struct decision *d, int code)
{
	ck_assert_msg(d->kind == DECISION_STOP, "%s", d->why);
	ck_assert_msg(d->exit_code == code, "%d: %s", d->exit_code, d->why);
}

static void
check_restart(const struct decision *d)
{
	ck_assert_msg(d->kind == DECISION_RESTART, "%s", d->why);
}

static const char *const code_categories[] = { "script", "framework" };

START_TEST(code_stops_at_its_second_occurrence)
{
	struct sim s;

	sim_init(&s);
	sim_verdict(&s, code_categories[_i], "key_error", "stop", "f1");
	sim_sign(&s, 100, SELECTION_FOUND, 90);
	check_restart(sim_decide(&s));
	sim_sign(&s, 100, SELECTION_FOUND, 90);
	check_stop(sim_decide(&s), EXIT_NEGATIVE);
	ck_assert_int_eq(s.count, 2);
}
END_TEST

/* A newer checkpoint is progress; the step reached is not, when checkpoints are
 * known. */
START_TEST(progress_forgives)
{
	struct sim s;
	int i;

	sim_init(&s);
	sim_verdict(&s, "script", "key_error", "stop", "f1");
	for (i = 0; i < 5; i++) {
		sim_sign(&s, 100 + i * 10, SELECTION_FOUND, 90 + i * 10);
		check_restart(sim_decide(&s));
		ck_assert_int_eq(s.count, 1);
	}
	sim_sign(&s, 1000, SELECTION_FOUND, 130);
	check_stop(sim_decide(&s), EXIT_NEGATIVE);

	sim_init(&s);
	sim_verdict(&s, "script", "key_error", "stop", "f1");
	sim_sign(&s, 100, SELECTION_NOT_ASKED, UNKNOWN);
	check_restart(sim_decide(&s));
	sim_sign(&s, 101, SELECTION_NOT_ASKED, UNKNOWN);
	check_restart(sim_decide(&s));
	sim_sign(&s, 101, SELECTION_NOT_ASKED, UNKNOWN);
	check_stop(sim_decide(&s), EXIT_NEGATIVE);

	/* ranks are a report or two apart: steps tell no more than that */
	sim_init(&s);
	s.facts.step_interval = 10;
	sim_verdict(&s, "script", "key_error", "stop", "f1");
	sim_sign(&s, 100, SELECTION_NOT_ASKED, UNKNOWN);
	check_restart(sim_decide(&s));
	sim_sign(&s, 130, SELECTION_NOT_ASKED, UNKNOWN);
	check_restart(sim_decide(&s));
	sim_sign(&s, 150, SELECTION_NOT_ASKED, UNKNOWN);
	check_stop(sim_decide(&s), EXIT_NEGATIVE);
}
END_TEST

START_TEST(another_failure_between_does_not_forgive)
{
	struct sim s;

	sim_init(&s);
	sim_verdict(&s, "script", "key_error", "stop", "f1");
	sim_sign(&s, 100, SELECTION_FOUND, 90);
	check_restart(sim_decide(&s));
	sim_verdict(&s, "infrastructure", "network_error", "backoff_retry", "n1");
	sim_sign(&s, 95, SELECTION_FOUND, 90);
	check_restart(sim_decide(&s));
	sim_verdict(&s, "script", "key_error", "stop", "f1");
	sim_sign(&s, 100, SELECTION_FOUND, 90);
	check_stop(sim_decide(&s), EXIT_NEGATIVE);
}
END_TEST

/* The brake for runs that get nowhere must not stop one that just got further. */
START_TEST(late_code_failure_after_bad_starts_gets_its_retry)
{
	struct sim s;
	int i;

	sim_init(&s);
	for (i = 0; i < RESTART_NO_PROGRESS_MAX; i++) {
		sim_verdict(&s, "infrastructure", "rendezvous_timeout",
		    "backoff_retry", "r1");
		sim_sign(&s, UNKNOWN, SELECTION_NONE, UNKNOWN);
		check_restart(sim_decide(&s));
	}
	sim_verdict(&s, "script", "key_error", "stop", "f1");
	sim_sign(&s, 5000, SELECTION_FOUND, 4000);
	check_restart(sim_decide(&s));
}
END_TEST

/* Nor are free retries attempts that got no further. */
START_TEST(taken_ports_are_no_lack_of_progress)
{
	struct sim s;
	int i;

	sim_init(&s);
	for (i = 0; i < RESTART_FREE_MAX; i++) {
		sim_verdict(&s, "infrastructure", "port_in_use", "backoff_retry",
		    "p1");
		sim_sign(&s, UNKNOWN, SELECTION_NONE, UNKNOWN);
		ck_assert(sim_decide(&s)->is_free);
	}
	sim_verdict(&s, "script", "key_error", "stop", "f1");
	sim_sign(&s, UNKNOWN, SELECTION_NONE, UNKNOWN);
	check_restart(sim_decide(&s));
}
END_TEST

START_TEST(attempts_that_get_no_further_stop)
{
	char name[16];
	struct sim s;
	int i;

	sim_init(&s);
	for (i = 0; i < RESTART_NO_PROGRESS_MAX; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		sim_verdict(&s, "framework", "runtime_error", "restart", name);
		sim_sign(&s, 100, SELECTION_FOUND, 90);
		check_restart(sim_decide(&s));
	}
	sim_verdict(&s, "framework", "runtime_error", "restart", "other");
	sim_sign(&s, 100, SELECTION_FOUND, 90);
	check_stop(sim_decide(&s), EXIT_NEGATIVE);
}
END_TEST

static const struct {
	const char	*reason, *action;
} infrastructure[] = {
	{ "gpu_lost", "restart_excluding_node" }, { "cuda_error", "restart" },
	{ "nccl_timeout", "test_nodes" }, { "network_error", "backoff_retry" },
	{ "host_oom", "restart" }, { "process_killed", "restart" },
	{ "storage_full", "backoff_retry" }, { "storage_full", "stop" },
	{ "hang", "restart" }, { "port_in_use", "backoff_retry" },
	{ "driver_mismatch", "restart_excluding_node" },
	{ "rendezvous_timeout", "backoff_retry" }
};

START_TEST(infrastructure_never_stops_at_its_first_failure)
{
	struct sim s;
	int early, result;

	for (early = 0; early < 2; early++) {
		for (result = 0; result < 5; result++) {
			if (result == SELECTION_ALL_BAD)
				continue;
			sim_init(&s);
			s.facts.uptime_ms = early ? 100 : 3600000;
			sim_verdict(&s, "infrastructure",
			    infrastructure[_i].reason,
			    infrastructure[_i].action, "i1");
			sim_sign(&s, early ? UNKNOWN : 50,
			    (enum selection_result)result,
			    result == SELECTION_FOUND ? 40 : UNKNOWN);
			check_restart(sim_decide(&s));
		}
	}
}
END_TEST

/* While the budget lasts; a node that always fails with no other at hand is the
 * one end, with a status of its own. */
START_TEST(infrastructure_goes_on_while_the_budget_lasts)
{
	bool node = strcmp(infrastructure[_i].action,
	    "restart_excluding_node") == 0;
	struct sim s;
	int i;

	sim_init(&s);
	s.policy.restarts_max = 1000000;
	for (i = 0; i < 300; i++) {
		sim_verdict(&s, "infrastructure", infrastructure[_i].reason,
		    infrastructure[_i].action, "i1");
		sim_sign(&s, 50, SELECTION_FOUND, 40);
		s.facts.now_ns += 60 * NS_PER_S;
		if (node && i == RESTART_NODE_MAX) {
			check_stop(sim_decide(&s), EXIT_NODES);
			return;
		}
		check_restart(sim_decide(&s));
		/* The second time and later there is a pause. */
		if (i > 0 && !s.in.decision.is_free)
			ck_assert_int_gt(s.in.decision.delay_ms, 0);
	}
}
END_TEST

START_TEST(budget_ends_the_run)
{
	static const int64_t budgets[] = { 0, 1, 3, 10, 1023, HISTORY_RESTARTS_MAX };
	struct sim s;
	int i, k;

	for (k = 0; k < LENGTH(budgets); k++) {
		sim_init(&s);
		s.policy.restarts_max = budgets[k];
		for (i = 0; i < budgets[k]; i++) {
			sim_verdict(&s, "infrastructure", "network_error",
			    "backoff_retry", "n1");
			sim_sign(&s, 50 + i, SELECTION_FOUND, 40 + i);
			s.facts.now_ns += 3600 * NS_PER_S;
			check_restart(sim_decide(&s));
			ck_assert_int_eq(s.in.decision.budget_left,
			    budgets[k] - i - 1);
		}
		sim_sign(&s, 50 + i, SELECTION_FOUND, 40 + i);
		sim_verdict(&s, "infrastructure", "network_error",
		    "backoff_retry", "n1");
		check_stop(sim_decide(&s), EXIT_BUDGET);
	}
}
END_TEST

/* In no window are there more restarts than allowed, and none is refused before. */
START_TEST(window_slides)
{
	int64_t times[2000], window_ns = 3600 * NS_PER_S;
	struct sim s;
	int i, k, n = 0, inside, refused = 0;

	sim_init(&s);
	s.policy = (struct restart_policy){ 5, 3600000, 1000 };
	for (i = 0; i < 2000; i++) {
		sim_verdict(&s, "infrastructure", "network_error",
		    "backoff_retry", "n1");
		sim_sign(&s, 50 + i, SELECTION_FOUND, 40 + i);
		s.facts.now_ns += (int64_t)unit_random(1200) * NS_PER_S;
		for (k = n, inside = 0; k > 0; k--)
			inside += times[k - 1] >= s.facts.now_ns - window_ns;
		if (inside < 5) {
			check_restart(sim_decide(&s));
			times[n++] = s.facts.now_ns;
		} else {
			check_stop(sim_decide(&s), EXIT_BUDGET);
			refused++;
		}
	}
	ck_assert_int_gt(refused, 10);
	ck_assert_int_gt(n, 100);
}
END_TEST

START_TEST(taken_port_is_free_three_times)
{
	struct sim s;
	int i;

	sim_init(&s);
	s.policy.restarts_max = 1;
	for (i = 0; i < RESTART_FREE_MAX; i++) {
		sim_verdict(&s, "infrastructure", "port_in_use", "backoff_retry",
		    "p1");
		sim_sign(&s, UNKNOWN, SELECTION_NONE, UNKNOWN);
		check_restart(sim_decide(&s));
		ck_assert(s.in.decision.is_free);
	}
	sim_sign(&s, UNKNOWN, SELECTION_NONE, UNKNOWN);
	check_restart(sim_decide(&s));
	ck_assert(!s.in.decision.is_free);
	/* The budget was one, and free retries did not count. */
	sim_verdict(&s, "infrastructure", "network_error", "backoff_retry", "n1");
	sim_sign(&s, UNKNOWN, SELECTION_NONE, UNKNOWN);
	check_stop(sim_decide(&s), EXIT_BUDGET);
}
END_TEST

static int64_t
delay(int nth, int64_t first_ms, uint32_t random)
{
	struct sim s;
	int i;

	sim_init(&s);
	s.policy = (struct restart_policy){ 1000000, 0, first_ms };
	s.facts.random = random;
	for (i = 0; i < nth; i++) {
		sim_verdict(&s, "infrastructure", "network_error",
		    "backoff_retry", "n1");
		sim_sign(&s, 50, SELECTION_FOUND, 40);
		check_restart(sim_decide(&s));
	}
	return s.in.decision.delay_ms;
}

START_TEST(backoff_doubles_up_to_its_bound)
{
	static const int64_t firsts[] = { 1000, 5000, 299999, 300000,
	    86400000, INT64_MAX / 2 };
	int64_t want, least, most, d;
	int k, n, r;

	for (k = 0; k < LENGTH(firsts); k++) {
		want = firsts[k];
		for (n = 1; n < 40; n++) {
			if (want > RESTART_BACKOFF_MAX_MS)
				want = RESTART_BACKOFF_MAX_MS;
			least = INT64_MAX;
			most = 0;
			for (r = 0; r <= 1000; r += 50) {
				d = delay(n, firsts[k], (uint32_t)r);
				least = d < least ? d : least;
				most = d > most ? d : most;
			}
			ck_assert_int_ge(least, want - want / 4);
			ck_assert_int_le(most, want + want / 4 + 1);
			/* It is spread over nearly all of that. */
			ck_assert_int_ge(most - least, want * 45 / 100);
			want *= 2;
		}
	}
	ck_assert_int_ge(delay(3, 5000, UINT32_MAX), 15000);
	ck_assert_int_le(delay(3, 5000, UINT32_MAX), 25000);
	ck_assert_int_eq(delay(3, 0, 7), 0);
}
END_TEST

START_TEST(external_ends)
{
	struct sim s;

	sim_init(&s);
	s.policy.restarts_max = 0;
	sim_verdict(&s, "external", "job_preempted", "requeue", "e1");
	sim_sign(&s, 100, SELECTION_FOUND, 90);
	ck_assert_int_eq(sim_decide(&s)->kind, DECISION_REQUEUE);
	ck_assert_int_eq(s.in.decision.exit_code, EXIT_REQUEUE);
	sim_verdict(&s, "external", "job_cancelled", "stop", "e2");
	sim_sign(&s, 100, SELECTION_ALL_BAD, UNKNOWN);
	check_stop(sim_decide(&s), EXIT_NEGATIVE);
}
END_TEST

START_TEST(ignored_checkpoint_stops_with_the_story)
{
	struct sim s;

	sim_init(&s);
	sim_verdict(&s, "framework", "checkpoint_mismatch", "stop", "m1");
	sim_sign(&s, 1, SELECTION_FOUND, 90);
	s.in.sign.kind = SIGN_RESUME_MISMATCH;
	snprintf(s.in.sign.text, sizeof(s.in.sign.text), "the first step was 1");
	check_stop(sim_decide(&s), EXIT_NEGATIVE);
	ck_assert_str_eq(s.in.decision.why, "the first step was 1");
}
END_TEST

START_TEST(bad_checkpoints_are_for_a_person)
{
	struct sim s;

	sim_init(&s);
	sim_verdict(&s, "infrastructure", "network_error", "backoff_retry", "n1");
	sim_sign(&s, 100, SELECTION_ALL_BAD, UNKNOWN);
	s.in.selection.skipped = 2;
	check_stop(sim_decide(&s), EXIT_NEGATIVE);
	ck_assert_ptr_nonnull(strstr(s.in.decision.why, "all 2 checkpoints"));
	/* The first one, torn by the failure itself, is no loss. */
	sim_init(&s);
	sim_verdict(&s, "infrastructure", "network_error", "backoff_retry", "n1");
	sim_sign(&s, 100, SELECTION_ALL_BAD, UNKNOWN);
	s.in.selection.skipped = 1;
	check_restart(sim_decide(&s));
}
END_TEST

START_TEST(unknown_failures_stop_soon)
{
	struct sim s;
	int i;

	/* Before any step, in the first minute: configuration. */
	sim_init(&s);
	sim_verdict(&s, "meta", "unknown", "restart", "unknown");
	s.facts.uptime_ms = RESTART_EARLY_MS - 1;
	sim_sign(&s, UNKNOWN, SELECTION_NONE, UNKNOWN);
	check_restart(sim_decide(&s));
	sim_sign(&s, UNKNOWN, SELECTION_NONE, UNKNOWN);
	check_stop(sim_decide(&s), EXIT_NEGATIVE);
	/* Later it gets one more. */
	sim_init(&s);
	sim_verdict(&s, "meta", "unknown", "restart", "unknown");
	for (i = 0; i < RESTART_UNKNOWN_MAX - 1; i++) {
		sim_sign(&s, 100, SELECTION_FOUND, 90);
		check_restart(sim_decide(&s));
	}
	sim_sign(&s, 100, SELECTION_FOUND, 90);
	check_stop(sim_decide(&s), EXIT_NEGATIVE);
}
END_TEST

START_TEST(rollback_goes_before_the_onset)
{
	struct sim s;

	sim_init(&s);
	sim_verdict(&s, "framework", "loss_nan", "rollback", "l1");
	s.in.verdict.step = 95;
	sim_sign(&s, 100, SELECTION_FOUND, 90);
	check_restart(sim_decide(&s));
	ck_assert_int_eq(s.in.decision.before_step, 95);
	sim_init(&s);
	sim_verdict(&s, "framework", "loss_nan", "rollback", "l1");
	sim_sign(&s, 100, SELECTION_FOUND, 90);
	check_restart(sim_decide(&s));
	ck_assert_int_eq(s.in.decision.before_step, 100);
	sim_init(&s);
	sim_verdict(&s, "script", "key_error", "stop", "f1");
	sim_sign(&s, 100, SELECTION_FOUND, 90);
	check_restart(sim_decide(&s));
	ck_assert_int_eq(s.in.decision.before_step, UNKNOWN);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_loop_test(t, code_stops_at_its_second_occurrence, 0,
	    LENGTH(code_categories));
	tcase_add_test(t, progress_forgives);
	tcase_add_test(t, another_failure_between_does_not_forgive);
	tcase_add_test(t, late_code_failure_after_bad_starts_gets_its_retry);
	tcase_add_test(t, taken_ports_are_no_lack_of_progress);
	tcase_add_test(t, attempts_that_get_no_further_stop);
	tcase_add_loop_test(t, infrastructure_never_stops_at_its_first_failure, 0,
	    LENGTH(infrastructure));
	tcase_add_loop_test(t, infrastructure_goes_on_while_the_budget_lasts, 0,
	    LENGTH(infrastructure));
	tcase_add_test(t, budget_ends_the_run);
	tcase_add_test(t, window_slides);
	tcase_add_test(t, taken_port_is_free_three_times);
	tcase_add_test(t, backoff_doubles_up_to_its_bound);
	tcase_add_test(t, external_ends);
	tcase_add_test(t, ignored_checkpoint_stops_with_the_story);
	tcase_add_test(t, bad_checkpoints_are_for_a_person);
	tcase_add_test(t, unknown_failures_stop_soon);
	tcase_add_test(t, rollback_goes_before_the_onset);
}

int
main(void)
{
	return unit_run("supervisor_restart", add);
}
