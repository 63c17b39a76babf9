/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_supervisor_history.c - what a run has been through, folded from records.
 */
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "supervisor/history.h"
#include "unit.h"

#define LENGTH(a)	((int)(sizeof(a) / sizeof((a)[0])))

/* The journal of a run with two campaigns and a requeue, shortened to what
 * counts. */
static const char *const recorded[] = {
	"{\"type\":\"campaign\",\"campaign\":1}",
	"{\"type\":\"supervisor\",\"pid\":10,\"generation\":1}",
	"{\"type\":\"agent\",\"node\":\"n1\",\"pid\":11,\"phase\":\"idle\"}",
	"{\"type\":\"checkpoint\",\"result\":\"none\",\"step\":null}",
	"{\"type\":\"attempt\",\"attempt\":1,\"time_ns\":\"1700000000000000001\","
	    "\"resume\":{\"path\":null,\"step\":null}}",
	"{\"type\":\"ranks\",\"attempt\":1,\"instance\":\"a1\",\"event_seq\":1}",
	"{\"type\":\"exit\",\"attempt\":1,\"rank\":0,\"pid\":20,"
	    "\"kind\":\"exited\",\"status\":0,\"instance\":\"a1\",\"event_seq\":2}",
	"{\"type\":\"exit\",\"attempt\":1,\"rank\":1,\"pid\":21,"
	    "\"kind\":\"signaled\",\"status\":9,\"instance\":\"a1\","
	    "\"event_seq\":3}",
	"{\"type\":\"incident\",\"attempt\":1,\"incident\":1,\"sign\":\"exit\","
	    "\"rank\":1,\"step\":120,\"text\":\"rank 1 was ended\"}",
	"{\"type\":\"exit\",\"attempt\":1,\"rank\":2,\"pid\":22,"
	    "\"kind\":\"exited\",\"status\":1,\"instance\":\"a1\",\"event_seq\":4}",
	"{\"type\":\"gone\",\"attempt\":1,\"proof\":\"ECHILD\","
	    "\"instance\":\"a1\",\"event_seq\":5}",
	"{\"type\":\"verdict\",\"attempt\":1,\"verdict\":{}}",
	"{\"type\":\"decision\",\"attempt\":1,\"incident\":1,\"kind\":\"restart\","
	    "\"why\":\"again\",\"reason\":\"process_killed\","
	    "\"fingerprint\":\"k\",\"count\":1,\"step\":120,"
	    "\"checkpoint_step\":100,\"before_step\":null,\"delay_ms\":250,"
	    "\"free\":false,\"budget_left\":9,"
	    "\"time_ns\":\"1700000100000000001\"}",
	"{\"type\":\"supervisor\",\"pid\":30,\"generation\":2}",
	"{\"type\":\"attempt\",\"attempt\":2,\"time_ns\":\"1700000101000000001\","
	    "\"resume\":{\"path\":\"/c/100\",\"step\":100}}",
	"{\"type\":\"start_failed\",\"attempt\":2,\"instance\":\"a2\","
	    "\"event_seq\":1}",
	"{\"type\":\"incident\",\"attempt\":2,\"incident\":2,\"sign\":\"start\","
	    "\"rank\":null,\"step\":null,\"text\":\"cannot start\"}",
	"{\"type\":\"gone\",\"attempt\":2,\"instance\":\"a2\",\"event_seq\":2}",
	"{\"type\":\"decision\",\"attempt\":2,\"incident\":2,\"kind\":\"restart\","
	    "\"why\":\"port\",\"reason\":\"port_in_use\",\"fingerprint\":\"p\","
	    "\"count\":1,\"step\":null,\"checkpoint_step\":100,\"free\":true,"
	    "\"time_ns\":\"1700000102000000001\"}",
	"{\"type\":\"attempt\",\"attempt\":3,\"time_ns\":\"1700000103000000001\","
	    "\"resume\":{\"path\":\"/c/100\",\"step\":100}}",
	"{\"type\":\"ranks\",\"attempt\":3}",
	"{\"type\":\"stop\",\"attempt\":3,\"signal\":10,\"by\":\"signal\"}",
	"{\"type\":\"gone\",\"attempt\":3}",
	"{\"type\":\"end\",\"attempt\":3,\"code\":75,\"state\":\"stopped\"}",
	"{\"type\":\"supervisor\",\"pid\":40,\"generation\":3}",
	"{\"type\":\"attempt\",\"attempt\":4,\"resume\":{\"step\":140}}",
	"{\"type\":\"ranks\",\"attempt\":4}",
	"{\"type\":\"exit\",\"attempt\":4,\"rank\":0,\"kind\":\"exited\","
	    "\"status\":0}",
	"{\"type\":\"gone\",\"attempt\":4}",
	"{\"type\":\"end\",\"attempt\":4,\"code\":0,\"state\":\"finished\"}",
	"{\"type\":\"campaign\",\"campaign\":2}",
	"{\"type\":\"supervisor\",\"pid\":50,\"generation\":4}",
	"{\"type\":\"of a later version\",\"anything\":[1,2,{}]}"
};

static void
apply(struct history *h, const char *text)
{
	cJSON *r = NULL;

	ck_assert_msg(json_parse(text, strlen(text), &r, NULL) == 0, "%s", text);
	json_add_int(r, "seq", h->seq + 1);
	history_apply(h, r);
	cJSON_Delete(r);
}

static void
apply_first(struct history *h, int count)
{
	int i;

	history_init(h);
	for (i = 0; i < count; i++)
		apply(h, recorded[i]);
}

/* Index of the record behind the n-th (from 1) of this type. */
static int
behind(const char *type, int n)
{
	char word[40];
	int i;

	snprintf(word, sizeof(word), "{\"type\":\"%s\"", type);
	for (i = 0; i < LENGTH(recorded); i++)
		if (strncmp(recorded[i], word, strlen(word)) == 0 && --n == 0)
			return i + 1;
	ck_abort_msg("no such record: %s", type);
	return -1;
}

START_TEST(history_starts_unknown)
{
	struct history h;

	history_init(&h);
	ck_assert_int_eq(h.furthest_step, JSON_UNKNOWN);
	ck_assert_int_eq(h.resume_step, JSON_UNKNOWN);
	ck_assert_int_eq(h.phase, ATTEMPT_NONE);
	ck_assert_ptr_null(history_find(&h, "k"));
	ck_assert_int_eq(history_restarts_since(&h, 0), 0);
	history_apply(&h, NULL);
	ck_assert_int_eq(h.seq, 0);
}
END_TEST

START_TEST(phases_follow_the_records)
{
	static const struct {
		const char		*type;
		int			 n;
		enum attempt_phase	 want;
	} rows[] = {
		{ "campaign", 1, ATTEMPT_NONE }, { "attempt", 1, ATTEMPT_ORDERED },
		{ "ranks", 1, ATTEMPT_RUNNING }, { "exit", 2, ATTEMPT_RUNNING },
		{ "incident", 1, ATTEMPT_ENDING }, { "exit", 3, ATTEMPT_ENDING },
		{ "gone", 1, ATTEMPT_GONE }, { "verdict", 1, ATTEMPT_GONE },
		{ "decision", 1, ATTEMPT_DECIDED },
		{ "supervisor", 2, ATTEMPT_DECIDED },
		{ "attempt", 2, ATTEMPT_ORDERED }, { "stop", 1, ATTEMPT_RUNNING },
		{ "end", 1, ATTEMPT_NONE }, { "end", 2, ATTEMPT_NONE }
	};
	struct history h;
	int i;

	for (i = 0; i < LENGTH(rows); i++) {
		apply_first(&h, behind(rows[i].type, rows[i].n));
		ck_assert_msg(h.phase == rows[i].want, "%s %d: %d", rows[i].type,
		    rows[i].n, h.phase);
	}
}
END_TEST

START_TEST(first_failure_is_the_sign)
{
	struct history h;

	apply_first(&h, behind("exit", 3));
	ck_assert_int_eq(h.exits_ok, 1);
	ck_assert_int_eq(h.exits_failed, 2);
	ck_assert_int_eq(h.sign.kind, SIGN_EXIT);
	ck_assert_int_eq(h.sign.rank, 1);
	ck_assert_int_eq(h.sign.pid, 21);
	ck_assert(h.sign.signaled);
	ck_assert_int_eq(h.sign.status, 9);
	ck_assert_int_eq(h.sign.step, 120);
	ck_assert_str_eq(h.sign.text, "rank 1 was ended");
	ck_assert_str_eq(h.instance, "a1");
	ck_assert_int_eq(h.event_seq, 4);
	/* Nothing of it is left in the next attempt. */
	apply_first(&h, behind("attempt", 2));
	ck_assert_int_eq(h.sign.kind, SIGN_NONE);
	ck_assert_int_eq(h.sign.rank, -1);
	ck_assert_str_eq(h.sign.text, "");
	ck_assert_int_eq(h.exits_ok + h.exits_failed, 0);
	ck_assert_int_eq(h.resume_step, 100);
	ck_assert_int_eq(h.started_ns, 1700000101000000001LL);
}
END_TEST

START_TEST(decisions_are_counted)
{
	const struct ledger_entry *e;
	struct history h;

	apply_first(&h, behind("decision", 1));
	e = history_find(&h, "k");
	ck_assert_ptr_nonnull(e);
	ck_assert_int_eq(e->count, 1);
	ck_assert_int_eq(e->checkpoint_step, 100);
	ck_assert_int_eq(e->furthest_step, 120);
	ck_assert_str_eq(e->reason, "process_killed");
	ck_assert_int_eq(h.decision.kind, DECISION_RESTART);
	ck_assert_int_eq(h.decision.delay_ms, 250);
	ck_assert_int_eq(h.decision.before_step, JSON_UNKNOWN);
	ck_assert_int_eq(h.decision.budget_left, 9);
	ck_assert_str_eq(h.decision.why, "again");
	ck_assert_int_eq(h.restarts, 1);
	ck_assert_int_eq(h.no_progress, 0);
	ck_assert_int_eq(history_restarts_since(&h, 1700000100000000001LL), 1);
	ck_assert_int_eq(history_restarts_since(&h, 1700000100000000002LL), 0);
	apply_first(&h, behind("decision", 2));
	ck_assert_int_eq(h.restarts, 1);
	ck_assert_int_eq(h.free_retries, 1);
	ck_assert_int_eq(h.furthest_step, 120);
	ck_assert_int_eq(h.no_progress, 0);
}
END_TEST

START_TEST(requeue_keeps_budgets_and_counts)
{
	struct history h;

	apply_first(&h, behind("end", 1));
	ck_assert(h.ended && h.stop_asked);
	ck_assert_int_eq(h.end_code, 75);
	apply_first(&h, behind("supervisor", 3));
	ck_assert(!h.ended && !h.stop_asked);
	ck_assert_int_eq(h.campaign, 1);
	ck_assert_int_eq(h.generation, 3);
	ck_assert_int_eq(h.restarts, 1);
	ck_assert_int_eq(h.furthest_step, 120);
	ck_assert_ptr_nonnull(history_find(&h, "k"));
	ck_assert_ptr_nonnull(history_find(&h, "p"));
}
END_TEST

START_TEST(new_campaign_starts_at_zero)
{
	struct history h;

	apply_first(&h, LENGTH(recorded));
	ck_assert_int_eq(h.campaign, 2);
	ck_assert(!h.ended && !h.stop_asked);
	ck_assert_int_eq(h.restarts, 0);
	ck_assert_int_eq(h.free_retries, 0);
	ck_assert_int_eq(h.no_progress, 0);
	ck_assert_int_eq(h.furthest_step, JSON_UNKNOWN);
	ck_assert_ptr_null(history_find(&h, "k"));
	ck_assert_int_eq(history_restarts_since(&h, 0), 0);
	/* Numbers go on, and what tells old events from new ones stays. */
	ck_assert_int_eq(h.attempt, 4);
	ck_assert_int_eq(h.incidents, 2);
	ck_assert_int_eq(h.generation, 4);
	ck_assert_str_eq(h.instance, "a2");
	ck_assert_int_eq(h.seq, LENGTH(recorded));
}
END_TEST

/* An end other than 75 stays one for the next supervisor: the campaign record
 * that follows says that a person started anew. */
START_TEST(an_end_is_kept)
{
	struct history h;

	apply_first(&h, behind("end", 2));
	apply(&h, "{\"type\":\"supervisor\",\"generation\":9}");
	ck_assert(h.ended);
	ck_assert_int_eq(h.end_code, 0);
}
END_TEST

START_TEST(ledger_forgets_its_oldest)
{
	struct history h;
	char text[200];
	int i;

	history_init(&h);
	for (i = 0; i < HISTORY_LEDGER_MAX + 10; i++) {
		snprintf(text, sizeof(text), "{\"type\":\"decision\","
		    "\"kind\":\"restart\",\"fingerprint\":\"f%d\",\"count\":%d,"
		    "\"step\":%d}", i, i, i);
		apply(&h, text);
	}
	ck_assert_int_eq(h.ledger_count, HISTORY_LEDGER_MAX);
	ck_assert_ptr_null(history_find(&h, "f9"));
	ck_assert_int_eq(history_find(&h, "f10")->count, 10);
	ck_assert_int_eq(history_find(&h, "f73")->count, 73);
	/* One that is there already takes no new place. */
	apply(&h, "{\"type\":\"decision\",\"kind\":\"restart\","
	    "\"fingerprint\":\"f40\",\"count\":99}");
	ck_assert_int_eq(history_find(&h, "f40")->count, 99);
	ck_assert_ptr_nonnull(history_find(&h, "f10"));
}
END_TEST

START_TEST(restart_times_are_kept_up_to_a_bound)
{
	struct history h;
	char text[200];
	int i;

	history_init(&h);
	for (i = 1; i <= HISTORY_RESTARTS_MAX + 100; i++) {
		snprintf(text, sizeof(text), "{\"type\":\"decision\","
		    "\"kind\":\"restart\",\"time_ns\":\"%d000000000\"}", i);
		apply(&h, text);
	}
	ck_assert_int_eq(history_restarts_since(&h, 0), HISTORY_RESTARTS_MAX);
	ck_assert_int_eq(history_restarts_since(&h, (HISTORY_RESTARTS_MAX + 91) *
	    1000000000LL), 10);
}
END_TEST

/* Four of it are longer than any name is kept. */
#define LONG	"a word of thirty-two characters."

/* Records of a broken or hostile journal: any type with any members. */
START_TEST(odd_records_do_no_harm)
{
	static const char *const types[] = { "campaign", "supervisor", "attempt",
	    "ranks", "exit", "incident", "gone", "decision", "stop", "end" };
	static const char *const values[] = { "null", "-1", "1e300", "\"\"", "[]",
	    "{}", "true", "2147483648", "\"" LONG LONG LONG LONG "\"" };
	static const char *const keys[] = { "campaign", "generation", "attempt",
	    "resume", "time_ns", "kind", "status", "rank", "pid", "incident",
	    "sign", "step", "text", "fingerprint", "count", "reason", "why",
	    "free", "delay_ms", "instance", "event_seq", "signal", "code" };
	struct history h;
	char text[2000];
	int round, i, n;

	history_init(&h);
	for (round = 0; round < 20000; round++) {
		n = snprintf(text, sizeof(text), "{\"type\":\"%s\"",
		    types[unit_random(LENGTH(types))]);
		for (i = (int)unit_random(6); i > 0; i--)
			n += snprintf(text + n, sizeof(text) - (size_t)n,
			    ",\"%s\":%s", keys[unit_random(LENGTH(keys))],
			    values[unit_random(LENGTH(values))]);
		snprintf(text + n, sizeof(text) - (size_t)n, "}");
		apply(&h, text);
		ck_assert_int_le(h.ledger_count, HISTORY_LEDGER_MAX);
		ck_assert_int_ge(h.restarts, 0);
		history_restarts_since(&h, 0);
	}
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_test(t, history_starts_unknown);
	tcase_add_test(t, phases_follow_the_records);
	tcase_add_test(t, first_failure_is_the_sign);
	tcase_add_test(t, decisions_are_counted);
	tcase_add_test(t, requeue_keeps_budgets_and_counts);
	tcase_add_test(t, new_campaign_starts_at_zero);
	tcase_add_test(t, an_end_is_kept);
	tcase_add_test(t, ledger_forgets_its_oldest);
	tcase_add_test(t, restart_times_are_kept_up_to_a_bound);
	tcase_add_test(t, odd_records_do_no_harm);
}

int
main(void)
{
	return unit_run("supervisor_history", add);
}
