/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_supervisor_recovery.c - the table by itself: rows, names, walks.
 *
 * The table is private to recovery.c, so the file is included.
 */
#include <stdbool.h>
#include <string.h>

#include "supervisor/recovery.c"
#include "unit.h"

#define LENGTH(a)	((int)(sizeof(a) / sizeof((a)[0])))

START_TEST(every_row_is_the_only_one)
{
	int i, k;

	for (i = 0; i < LENGTH(rows); i++)
		for (k = i + 1; k < LENGTH(rows); k++)
			ck_assert_msg(rows[i].state != rows[k].state ||
			    rows[i].event != rows[k].event, "%s, %s twice",
			    state_names[rows[i].state],
			    event_names[rows[i].event]);
}
END_TEST

START_TEST(every_pair_is_a_row_or_ignored)
{
	enum recovery_action action;
	enum recovery_state next;
	int s, e, i, found = 0;

	for (s = 0; s < STATE_COUNT; s++) {
		for (e = 0; e < EVENT_COUNT; e++) {
			action = DO_COUNT;
			next = STATE_COUNT;
			if (recovery_step((enum recovery_state)s,
			    (enum recovery_event)e, &action, &next) == -1) {
				/* Ignored: nothing is touched. */
				ck_assert_int_eq(action, DO_COUNT);
				ck_assert_int_eq(next, STATE_COUNT);
				continue;
			}
			found++;
			ck_assert_int_lt(action, DO_COUNT);
			ck_assert_int_lt(next, STATE_COUNT);
			for (i = 0; rows[i].state != (enum recovery_state)s ||
			    rows[i].event != (enum recovery_event)e; i++)
				;
			ck_assert_int_eq(rows[i].action, action);
			ck_assert_int_eq(rows[i].next, next);
		}
	}
	ck_assert_int_eq(found, LENGTH(rows));
}
END_TEST

START_TEST(nothing_is_left_unused)
{
	bool events[EVENT_COUNT] = { false }, actions[DO_COUNT] = { false };
	bool into[STATE_COUNT] = { false };
	int i;

	for (i = 0; i < LENGTH(rows); i++) {
		events[rows[i].event] = true;
		actions[rows[i].action] = true;
		into[rows[i].next] = true;
	}
	for (i = 0; i < EVENT_COUNT; i++)
		ck_assert_msg(events[i], "%s", event_names[i]);
	for (i = 0; i < DO_COUNT; i++)
		ck_assert_msg(actions[i], "%s", action_names[i]);
	for (i = 0; i < STATE_COUNT; i++)
		ck_assert_msg(into[i], "%s", state_names[i]);
}
END_TEST

START_TEST(the_end_is_the_end)
{
	static const enum recovery_action stating[] = { DO_FINISH,
	    DO_CLOSE_STOPPED, DO_CLOSE_GIVEN_UP };
	int i, k;

	for (i = 0; i < LENGTH(rows); i++) {
		bool states = false, closes = rows[i].action == DO_CLOSE ||
		    rows[i].action == DO_CLOSE_NO_AGENT;

		ck_assert_int_ne(rows[i].state, STATE_CLOSED);
		for (k = 0; k < LENGTH(stating); k++)
			states = states || rows[i].action == stating[k];
		ck_assert_msg(states == (rows[i].next == STATE_DRAINING) &&
		    closes == (rows[i].next == STATE_CLOSED), "%s, %s",
		    state_names[rows[i].state], event_names[rows[i].event]);
		if (rows[i].action == DO_CLOSE_GIVEN_UP)
			ck_assert_int_eq(rows[i].event, EVENT_GIVE_UP);
		if (rows[i].action == DO_CLOSE_NO_AGENT)
			ck_assert_int_eq(rows[i].event, EVENT_AGENT_FAILED);
		/* Success is only what all ranks ended well. */
		if (rows[i].action == DO_FINISH)
			ck_assert(rows[i].state == STATE_LINGERING ||
			    rows[i].event == EVENT_ALL_ENDED_WELL);
		if (rows[i].next == STATE_LINGERING &&
		    rows[i].state != STATE_LINGERING)
			ck_assert_int_eq(rows[i].event, EVENT_ALL_ENDED_WELL);
	}
}
END_TEST

START_TEST(a_stop_is_heard_everywhere)
{
	enum recovery_action action;
	enum recovery_state next;
	int s;

	for (s = 0; s < STATE_COUNT; s++) {
		if (s == STATE_CLOSED)
			continue;
		ck_assert_int_eq(recovery_step((enum recovery_state)s,
		    EVENT_STOP_ASKED, &action, &next), 0);
		ck_assert_msg(next == STATE_STOPPING || next == STATE_DRAINING ||
		    next == STATE_CLOSED, "%s", state_names[s]);
	}
}
END_TEST

/* Which states can be reached from one, taking only rows the filter lets by. */
static void
reach(int from, bool (*may)(const struct row *), bool seen[STATE_COUNT])
{
	int i;

	seen[from] = true;
	for (i = 0; i < LENGTH(rows); i++)
		if (rows[i].state == (enum recovery_state)from && may(&rows[i]) &&
		    !seen[rows[i].next])
			reach((int)rows[i].next, may, seen);
}

static bool
any_row(const struct row *r)
{
	(void)r;
	return true;
}

static bool
is_start(const struct row *r)
{
	return r->action == DO_SELECT || r->action == DO_LAUNCH;
}

static bool
no_start(const struct row *r)
{
	return !is_start(r);
}

/* What happens without a person and without another loss. */
static bool
by_itself(const struct row *r)
{
	return r->event != EVENT_STOP_ASKED && r->event != EVENT_AGENT_LOST;
}

START_TEST(every_state_is_reached_and_can_end)
{
	bool from_start[STATE_COUNT] = { false }, seen[STATE_COUNT];
	enum recovery_action action;
	enum recovery_state next;
	int s;

	reach(STATE_CONNECTING, any_row, from_start);
	for (s = 0; s < STATE_COUNT; s++) {
		ck_assert_msg(from_start[s], "%s", state_names[s]);
		memset(seen, 0, sizeof(seen));
		reach(s, by_itself, seen);
		ck_assert_msg(seen[STATE_CLOSED], "%s never ends by itself",
		    state_names[s]);
		if (s == STATE_CLOSED)
			continue;
		/* After a stop: only STOPPING, DRAINING and the end. */
		ck_assert_int_eq(recovery_step((enum recovery_state)s,
		    EVENT_STOP_ASKED, &action, &next), 0);
		memset(seen, 0, sizeof(seen));
		reach((int)next, any_row, seen);
		ck_assert(seen[STATE_CLOSED]);
		seen[STATE_CLOSED] = seen[STATE_STOPPING] = false;
		seen[STATE_DRAINING] = false;
		for (int k = 0; k < STATE_COUNT; k++)
			ck_assert_msg(!seen[k], "%s after a stop in %s",
			    state_names[k], state_names[s]);
	}
}
END_TEST

START_TEST(no_restart_without_a_start_between)
{
	bool seen[STATE_COUNT] = { false };
	enum recovery_action action;
	enum recovery_state next;
	int s;

	ck_assert_int_eq(recovery_step(STATE_EXAMINING, EVENT_RESTART, &action,
	    &next), 0);
	reach((int)next, no_start, seen);
	for (s = 0; s < STATE_COUNT; s++)
		if (seen[s])
			ck_assert_int_eq(recovery_step((enum recovery_state)s,
			    EVENT_RESTART, &action, &next), -1);
}
END_TEST

/* All sequences of up to six events that mean something, with what must hold
 * along each. */
static long walked;

static void
walk(enum recovery_state s, int left, bool selected, bool launched, bool ended)
{
	enum recovery_action action;
	enum recovery_state next;
	int e;

	walked++;
	for (e = 0; left > 0 && e < EVENT_COUNT; e++) {
		if (recovery_step(s, (enum recovery_event)e, &action, &next) == -1)
			continue;
		/* A start follows a look for a checkpoint, and the proof that
		 * the attempt before is gone. */
		if (action == DO_LAUNCH)
			ck_assert(selected && !launched);
		if (action == DO_NOTE_START)
			ck_assert(launched);
		if (action == DO_FINISH)
			ck_assert(ended || e == EVENT_ALL_ENDED_WELL);
		if (action == DO_SELECT)
			ck_assert(!launched);
		walk(next, left - 1, action == DO_SELECT ||
		    (selected && action != DO_LAUNCH),
		    action == DO_LAUNCH || action == DO_ADOPT ||
		    (launched && action != DO_EXAMINE),
		    (ended && action != DO_LAUNCH) || e == EVENT_ALL_ENDED_WELL);
	}
}

START_TEST(walks_of_six_events)
{
	walk(STATE_CONNECTING, 6, false, false, false);
	walk(STATE_TRAINING, 6, false, true, false);
	walk(STATE_LOST, 6, false, true, false);
	walk(STATE_EXAMINING, 6, false, false, false);
	ck_assert_int_gt(walked, 10000);
}
END_TEST

START_TEST(names_are_all_there)
{
	static const char *const public[] = { "starting", "training",
	    "recovering", "stopped", "finished" };
	int i, k;

	for (i = 0; i < STATE_COUNT; i++) {
		bool known = false;

		for (k = 0; k < LENGTH(public); k++)
			known = known || strcmp(recovery_public_name(
			    (enum recovery_state)i), public[k]) == 0;
		ck_assert(known);
	}
	ck_assert_str_eq(recovery_state_name(STATE_TRAINING), "TRAINING");
	ck_assert_str_eq(recovery_event_name(EVENT_GONE), "GONE");
	ck_assert_str_eq(recovery_action_name(DO_EXAMINE), "EXAMINE");
	ck_assert_str_eq(recovery_state_name(STATE_COUNT), "?");
	ck_assert_str_eq(recovery_event_name(EVENT_COUNT), "?");
	ck_assert_str_eq(recovery_action_name(DO_COUNT), "?");
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_test(t, every_row_is_the_only_one);
	tcase_add_test(t, every_pair_is_a_row_or_ignored);
	tcase_add_test(t, nothing_is_left_unused);
	tcase_add_test(t, the_end_is_the_end);
	tcase_add_test(t, a_stop_is_heard_everywhere);
	tcase_add_test(t, every_state_is_reached_and_can_end);
	tcase_add_test(t, no_restart_without_a_start_between);
	tcase_add_test(t, walks_of_six_events);
	tcase_add_test(t, names_are_all_there);
}

int
main(void)
{
	return unit_run("supervisor_recovery", add);
}
