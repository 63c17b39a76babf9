/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restart.c - the restart decision.
 *
 * Two mistakes are possible: a false stop wastes a cluster until a person
 * wakes up, a false restart wastes the time of one attempt.  So only what is
 * deterministic stops early: the same script or framework failure twice
 * without progress.  Infrastructure failures go on while the budget lasts.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/text.h"
#include "common/verb.h"
#include "supervisor/restart.h"

struct judge {
	const struct history		*h;
	const struct restart_policy	*policy;
	const struct restart_facts	*facts;
	struct incident			*in;
	int				 count;
};

static bool
is(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static void decide(struct judge *, enum decision_kind, int, const char *, ...)
    __attribute__((format(printf, 4, 5)));

static void
decide(struct judge *j, enum decision_kind kind, int exit_code,
    const char *fmt, ...)
{
	struct decision *d = &j->in->decision;
	va_list ap;

	d->kind = kind;
	d->exit_code = exit_code;
	va_start(ap, fmt);
	vsnprintf(d->why, sizeof(d->why), fmt, ap);
	va_end(ap);
}

/* Progress between two occurrences: a newer valid checkpoint where we know the
 * checkpoints, otherwise a step that was not reached before. */
static bool
has_progress(const struct judge *j, const struct ledger_entry *e)
{
	const struct selection *s = &j->in->selection;

	if (s->result != SELECTION_NOT_ASKED)
		return s->result == SELECTION_FOUND && s->step != JSON_UNKNOWN &&
		    (e->checkpoint_step == JSON_UNKNOWN ||
		    s->step > e->checkpoint_step);
	/* Ranks are a report or two apart when one of them fails: a difference
	 * as small as that is no progress. */
	return j->in->sign.step != JSON_UNKNOWN &&
	    (e->furthest_step == JSON_UNKNOWN ||
	    j->in->sign.step > e->furthest_step +
	    2 * j->facts->step_interval);
}

static int
count_occurrences(const struct judge *j)
{
	const struct ledger_entry *e;

	e = history_find(j->h, j->in->verdict.fingerprint);
	if (e == NULL || has_progress(j, e))
		return 1;
	return e->count + 1;
}

/* base * 2^(n-1), at most five minutes, then -25 % to +25 % so that a thousand
 * jobs do not come back to a storage server in the same second. */
static int64_t
backoff_ms(const struct judge *j)
{
	int64_t ms = j->policy->backoff_ms;
	int i;

	for (i = 1; i < j->count && ms < RESTART_BACKOFF_MAX_MS; i++)
		ms *= 2;
	if (ms > RESTART_BACKOFF_MAX_MS)
		ms = RESTART_BACKOFF_MAX_MS;
	return ms - ms / 4 + ms / 2 * (int64_t)(j->facts->random % 1001) / 1000;
}

/* What happened before any budget is asked; true when it ends the matter. */
static bool
decide_external(struct judge *j)
{
	const struct verdict *v = &j->in->verdict;

	if (j->in->sign.kind == SIGN_RESUME_MISMATCH) {
		decide(j, DECISION_STOP, EXIT_NEGATIVE, "%s", j->in->sign.text);
		return true;
	}
	if (is(v->category, "external")) {
		if (is(v->action, "requeue")) {
			decide(j, DECISION_REQUEUE, EXIT_REQUEUE,
			    "the scheduler ended it (%s): requeue", v->reason);
		} else {
			decide(j, DECISION_STOP, EXIT_NEGATIVE,
			    "it was ended from outside (%s)", v->reason);
		}
		return true;
	}
	return false;
}

static bool
decide_checkpoint(struct judge *j)
{
	const struct selection *s = &j->in->selection;

	if (s->result == SELECTION_ALL_BAD && s->skipped > 1) {
		decide(j, DECISION_STOP, EXIT_NEGATIVE,
		    "all %d checkpoints are bad; starting from nothing is for "
		    "a person to decide", s->skipped);
		return true;
	}
	return false;
}

static bool
is_early(const struct judge *j)
{
	return j->in->sign.step == JSON_UNKNOWN &&
	    j->facts->uptime_ms < RESTART_EARLY_MS;
}

static bool
got_further(const struct judge *j)
{
	int64_t step = j->in->sign.step;

	return step != JSON_UNKNOWN && (j->h->furthest_step == JSON_UNKNOWN ||
	    step > j->h->furthest_step);
}

static bool
decide_repeated(struct judge *j)
{
	const struct verdict *v = &j->in->verdict;
	bool code = is(v->category, "script") || is(v->category, "framework");
	int limit = RESTART_UNKNOWN_MAX;

	if (is(v->category, "infrastructure")) {
		if (is(v->action, "restart_excluding_node") &&
		    j->count > RESTART_NODE_MAX) {
			decide(j, DECISION_STOP, EXIT_NODES, "%s came back %d "
			    "times on this node and no other node is at hand",
			    v->reason, j->count);
			return true;
		}
		return false;
	}
	if (code || is_early(j))
		limit = 2;
	if (j->count >= limit) {
		decide(j, DECISION_STOP, EXIT_NEGATIVE, "%s, %d times without "
		    "progress: %s", v->reason, j->count, code ?
		    "a restart does not help" : "nothing says it will go away");
		return true;
	}
	if (!got_further(j) &&
	    j->h->no_progress + 1 >= RESTART_NO_PROGRESS_MAX) {
		decide(j, DECISION_STOP, EXIT_NEGATIVE, "%d attempts got no "
		    "further than the ones before", j->h->no_progress + 1);
		return true;
	}
	return false;
}

static bool
decide_free(struct judge *j)
{
	if (!is(j->in->verdict.reason, "port_in_use") ||
	    j->h->free_retries >= RESTART_FREE_MAX)
		return false;
	j->in->decision.is_free = true;
	decide(j, DECISION_RESTART, 0, "the port was taken: retry %d of %d with "
	    "another one, free of charge", j->h->free_retries + 1,
	    RESTART_FREE_MAX);
	return true;
}

static bool
decide_budget(struct judge *j)
{
	int64_t since = 0, max = j->policy->restarts_max, used;
	char window[TEXT_SPAN_MAX];

	if (j->policy->window_ms > 0)
		since = j->facts->now_ns - j->policy->window_ms * NS_PER_MS;
	used = history_restarts_since(j->h, since);
	j->in->decision.budget_left = max > used ? max - used - 1 : 0;
	if (used < max)
		return false;
	text_format_span(j->policy->window_ms, window);
	decide(j, DECISION_STOP, EXIT_BUDGET, "the budget of %lld restarts%s%s "
	    "is used up (last cause: %s)", (long long)max,
	    j->policy->window_ms ? " in " : "", j->policy->window_ms ? window :
	    "", j->in->verdict.reason);
	return true;
}

static void
decide_restart(struct judge *j)
{
	const struct verdict *v = &j->in->verdict;
	struct decision *d = &j->in->decision;

	/* Without probes a node test is not possible: the delay must do. */
	if (is(v->action, "backoff_retry") || is(v->action, "test_nodes")) {
		d->delay_ms = backoff_ms(j);
		decide(j, DECISION_RESTART, 0, "%s: retry after a delay",
		    v->reason);
	} else if (is(v->action, "restart_excluding_node")) {
		d->delay_ms = j->count > 1 ? backoff_ms(j) : 0;
		decide(j, DECISION_RESTART, 0, "%s: the node should leave, but "
		    "there is no other: trying it again", v->reason);
	} else if (is(v->action, "rollback")) {
		d->before_step = v->step != JSON_UNKNOWN ? v->step :
		    j->in->sign.step;
		decide(j, DECISION_RESTART, 0, "%s: back to a checkpoint before "
		    "it began", v->reason);
	} else if (is(v->category, "script") || is(v->category, "framework")) {
		decide(j, DECISION_RESTART, 0, "%s: one retry in case it was "
		    "chance; the same again without progress stops the run",
		    v->reason);
	} else {
		decide(j, DECISION_RESTART, 0, "%s: restart", v->reason);
	}
	/* Unknown failures in a row must not spin. */
	if (d->delay_ms == 0 && j->count > 1)
		d->delay_ms = backoff_ms(j);
}

void
restart_decide(const struct history *h, const struct restart_policy *policy,
    const struct restart_facts *facts, struct incident *in, int *count)
{
	struct judge j = { h, policy, facts, in, 0 };

	in->decision = (struct decision){ .before_step = JSON_UNKNOWN };
	j.count = count_occurrences(&j);
	*count = j.count;
	if (decide_external(&j) || decide_checkpoint(&j) ||
	    decide_repeated(&j) || decide_free(&j) || decide_budget(&j))
		return;
	decide_restart(&j);
}
