/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_supervisor_world.c - the recovery table in a small model of everything
 * around it, walked through completely.
 *
 * The model has the agent, its connection, the attempt and what supervisor.c and
 * link.c do for each action.  Two things must hold in every state that can be
 * reached: there is a way to the end without anybody's help (no dead end), and
 * no attempt starts, and no run is closed, while an earlier one may be alive.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/recovery.h"
#include "unit.h"

enum agent { UP, DOWN, CONNECTING };		/* down: nobody connects */
/* The attempt, as the agent knows it; UNSENT: its order waits for the journal. */
enum ranks { NONE, UNSENT, STARTING, RUNNING, ALL_WELL, BEING_ENDED };
/* The attempt, as the journal knows it. */
enum phase { NO_ATTEMPT, OPEN, INCIDENT, GONE, DECIDED };

struct world {
	enum recovery_state	state;
	enum agent		agent;
	enum ranks		ranks;
	enum phase		phase;
	bool			selecting, examining, delaying, exits_timer;
};

#define WORLDS	(STATE_COUNT * 3 * 6 * 5 * 16)

static int
number(const struct world *w)
{
	return (((((((int)w->state * 3 + (int)w->agent) * 6 + (int)w->ranks) * 5 +
	    (int)w->phase) * 2 + w->selecting) * 2 + w->examining) * 2 +
	    w->delaying) * 2 + w->exits_timer;
}

static struct world
world_of(int n)
{
	struct world w = { 0 };

	w.exits_timer = n % 2, n /= 2;
	w.delaying = n % 2, n /= 2;
	w.examining = n % 2, n /= 2;
	w.selecting = n % 2, n /= 2;
	w.phase = (enum phase)(n % 5), n /= 5;
	w.ranks = (enum ranks)(n % 6), n /= 6;
	w.agent = (enum agent)(n % 3), n /= 3;
	w.state = (enum recovery_state)n;
	return w;
}

static const char *
describe(const struct world *w)
{
	static const char *const agents[] = { "up", "down", "connecting" };
	static const char *const ranks[] = { "no ranks", "unsent", "starting",
	    "running", "all well", "being ended" };
	static const char *const phases[] = { "no attempt", "open", "incident",
	    "gone", "decided" };
	static char text[200];

	snprintf(text, sizeof(text), "%s, agent %s, %s, %s%s%s%s%s",
	    recovery_state_name(w->state), agents[w->agent], ranks[w->ranks],
	    phases[w->phase], w->selecting ? ", selecting" : "",
	    w->examining ? ", examining" : "", w->delaying ? ", delaying" : "",
	    w->exits_timer ? ", timer" : "");
	return text;
}

static bool
is_open(const struct world *w)
{
	return w->phase == OPEN || w->phase == INCIDENT;
}

static void event(struct world *, enum recovery_event);

/* supervisor.c: order_stop() */
static void
order_stop(struct world *w)
{
	if (w->agent == UP && w->ranks >= STARTING)
		w->ranks = BEING_ENDED;
}

/* An order that still waits for the journal is never sent. */
static void
forget_order(struct world *w)
{
	if (w->ranks == UNSENT)
		w->ranks = NONE;
}

static void
open_incident(struct world *w)
{
	w->phase = INCIDENT;
}

/* supervisor.c: do_adopt() */
static void
adopt(struct world *w)
{
	if (w->phase == INCIDENT) {
		w->state = STATE_ENDING;
		order_stop(w);
	} else if (w->ranks == ALL_WELL) {
		event(w, EVENT_ALL_ENDED_WELL);
	}
}

static void
act(struct world *w, enum recovery_action action)
{
	switch (action) {
	case DO_SELECT:
		/* do_select(): without an agent there is nothing to select for */
		if (w->agent != UP)
			event(w, EVENT_AGENT_LOST);
		else
			w->selecting = true;
		break;
	case DO_LAUNCH:
		ck_assert_msg(w->ranks == NONE, "a start beside: %s",
		    describe(w));
		ck_assert_msg(w->agent == UP, "a start nowhere: %s",
		    describe(w));
		w->phase = OPEN;
		w->ranks = UNSENT;
		break;
	case DO_ADOPT:
		adopt(w);
		break;
	case DO_WAIT_FOR_EXITS:
	case DO_WAIT_FOR_STRAYS:
		w->exits_timer = true;
		break;
	case DO_OPEN_INCIDENT:
		open_incident(w);
		order_stop(w);
		break;
	case DO_OPEN_INCIDENT_LOST:
		forget_order(w);
		open_incident(w);
		w->agent = CONNECTING;
		break;
	case DO_RECONNECT:
		w->agent = CONNECTING;
		break;
	case DO_EXAMINE:
		w->exits_timer = false;
		w->phase = GONE;
		w->examining = true;
		break;
	case DO_START_DELAY:
		w->phase = DECIDED;
		w->delaying = true;
		break;
	case DO_STOP_RANKS:
		w->exits_timer = false;
		if (w->ranks == UNSENT) {
			/* do_stop_ranks(): never sent, so it is gone */
			forget_order(w);
			w->phase = GONE;
			event(w, EVENT_GONE);
		} else {
			order_stop(w);
		}
		break;
	case DO_FINISH:
		/* All ranks ended well; whether a stray is left nobody can say
		 * when no agent can be had, and that was said. */
		if (w->agent == DOWN && w->ranks >= ALL_WELL)
			w->ranks = NONE;
		/* FALLTHROUGH */
	case DO_CLOSE_STOPPED:
	case DO_CLOSE_GIVEN_UP:
		ck_assert_msg(w->ranks == NONE, "closed beside: %s", describe(w));
		/* FALLTHROUGH */
	case DO_CLOSE_NO_AGENT:
		*w = (struct world){ .state = STATE_CLOSED, .agent = DOWN };
		break;
	default:
		break;
	}
}

static void
event(struct world *w, enum recovery_event e)
{
	enum recovery_action action;
	enum recovery_state next;

	if (recovery_step(w->state, e, &action, &next) == -1)
		return;
	w->state = next;
	act(w, action);
}

/* link.c: take_hello() */
static void
hello(struct world *w)
{
	w->agent = UP;
	if (!is_open(w)) {
		event(w, w->phase == GONE && w->state == STATE_CONNECTING ?
		    EVENT_RESUME_EXAMINATION : EVENT_AGENT_IDLE);
	} else if (w->ranks < STARTING) {
		if (w->state == STATE_CONNECTING)
			w->state = STATE_LOST;
		event(w, EVENT_AGENT_IDLE);
	} else {
		event(w, EVENT_AGENT_HAS_ATTEMPT);
	}
}

/* What can happen next.  Each step is tried on a copy; false: not possible. */
static bool
step(struct world *w, int n, bool *by_itself)
{
	bool up = w->agent == UP;

	*by_itself = true;
	switch (n) {
	case 0:		/* the start order's record is durable: send it */
		if (w->ranks != UNSENT)
			return false;
		w->ranks = up ? STARTING : NONE;
		return true;
	case 1:
		if (!up || w->ranks != STARTING)
			return false;
		w->ranks = RUNNING;
		event(w, EVENT_STARTED);
		return true;
	case 2:
		if (!up || w->ranks != STARTING)
			return false;
		w->ranks = BEING_ENDED;
		event(w, EVENT_START_FAILED);
		return true;
	case 3:
		if (!up || w->ranks != RUNNING)
			return false;
		event(w, EVENT_RANK_ENDED_WELL);
		return true;
	case 4:
		if (!up || w->ranks != RUNNING)
			return false;
		w->ranks = ALL_WELL;
		event(w, EVENT_ALL_ENDED_WELL);
		return true;
	case 5:
		if (!up || (w->ranks != RUNNING && w->ranks != BEING_ENDED))
			return false;
		event(w, EVENT_RANK_FAILED);
		return true;
	case 6:
		if (!up || w->ranks != RUNNING)
			return false;
		event(w, EVENT_SIGN);
		return true;
	case 7:		/* proven gone */
		if (!up || (w->ranks != BEING_ENDED && w->ranks != ALL_WELL))
			return false;
		w->ranks = NONE;
		if (is_open(w)) {
			w->phase = GONE;
			event(w, EVENT_GONE);
		}
		return true;
	case 8:
		if (!w->selecting)
			return false;
		w->selecting = false;
		event(w, EVENT_SELECTED);
		return true;
	case 9:
	case 10:
		if (!w->examining)
			return false;
		w->examining = false;
		event(w, n == 9 ? EVENT_RESTART : EVENT_GIVE_UP);
		return true;
	case 11:
		if (!w->delaying)
			return false;
		w->delaying = false;
		event(w, EVENT_DELAY_OVER);
		return true;
	case 12:	/* on_exits_timer() */
		if (!w->exits_timer)
			return false;
		w->exits_timer = false;
		if (w->state == STATE_LINGERING)
			order_stop(w);
		else
			event(w, EVENT_EXIT_TIMEOUT);
		return true;
	case 13:	/* the agent answers, with what it has */
		if (w->agent != CONNECTING)
			return false;
		hello(w);
		return true;
	case 14:	/* a new agent, which has swept the node */
		if (w->agent != CONNECTING)
			return false;
		if (w->ranks != UNSENT)
			w->ranks = NONE;
		hello(w);
		return true;
	case 15:	/* no agent can be had */
		if (w->agent != CONNECTING)
			return false;
		w->agent = DOWN;
		event(w, EVENT_AGENT_FAILED);
		return true;
	case 16:	/* what is gone had ended well, hello_of_idle() */
		if (w->agent != CONNECTING || w->phase != GONE ||
		    w->state != STATE_CONNECTING)
			return false;
		w->agent = UP;
		event(w, EVENT_ALL_ENDED_WELL);
		return true;
	case 17:	/* the search for a checkpoint gave no answer */
		if (!w->selecting || w->delaying)
			return false;
		w->selecting = false;
		w->delaying = true;
		return true;
	case 18:	/* the connection breaks, the ranks live on */
		if (!up)
			return false;
		*by_itself = false;
		w->agent = DOWN;
		event(w, EVENT_AGENT_LOST);
		return true;
	case 19:
		*by_itself = false;
		event(w, EVENT_STOP_ASKED);
		return true;
	default:
		return false;
	}
}

#define STEPS	20

static bool reached[WORLDS], ends[WORLDS];
static int stack[WORLDS * 2];

static void
walk_from(const struct world *start)
{
	int depth = 0, n, k;
	bool by_itself;
	struct world w;

	if (reached[number(start)])
		return;
	reached[number(start)] = true;
	stack[depth++] = number(start);
	while (depth > 0) {
		n = stack[--depth];
		for (k = 0; k < STEPS; k++) {
			w = world_of(n);
			if (w.state == STATE_CLOSED || !step(&w, k, &by_itself) ||
			    reached[number(&w)])
				continue;
			reached[number(&w)] = true;
			stack[depth++] = number(&w);
		}
	}
}

/* A supervisor starts with what the journal and the agent know. */
static void
walk_all(void)
{
	static const struct {
		enum phase	phase;
		enum ranks	ranks;
	} starts[] = {
		{ NO_ATTEMPT, NONE }, { OPEN, NONE }, { OPEN, STARTING },
		{ OPEN, RUNNING }, { OPEN, ALL_WELL }, { OPEN, BEING_ENDED },
		{ INCIDENT, NONE }, { INCIDENT, STARTING }, { INCIDENT, RUNNING },
		{ INCIDENT, BEING_ENDED }, { GONE, NONE }, { DECIDED, NONE }
	};
	struct world w;
	size_t i;

	for (i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		w = (struct world){ .state = STATE_CONNECTING,
		    .agent = CONNECTING, .phase = starts[i].phase,
		    .ranks = starts[i].ranks };
		walk_from(&w);
	}
}

START_TEST(numbers_are_exact)
{
	struct world w;
	int n;

	for (n = 0; n < WORLDS; n++) {
		w = world_of(n);
		ck_assert_int_eq(number(&w), n);
	}
}
END_TEST

/* The assertions are in act(). */
START_TEST(nothing_starts_or_closes_beside_living_ranks)
{
	int n, count = 0;

	walk_all();
	for (n = 0; n < WORLDS; n++)
		count += reached[n];
	ck_assert_int_ge(count, 50);
}
END_TEST

START_TEST(every_world_comes_to_an_end_by_itself)
{
	bool by_itself, changed = true;
	struct world w;
	int n, k;

	walk_all();
	for (n = 0; n < WORLDS; n++)
		ends[n] = reached[n] && world_of(n).state == STATE_CLOSED;
	while (changed) {
		changed = false;
		for (n = 0; n < WORLDS; n++) {
			for (k = 0; reached[n] && !ends[n] && k < STEPS; k++) {
				w = world_of(n);
				if (step(&w, k, &by_itself) && by_itself &&
				    ends[number(&w)])
					changed = ends[n] = true;
			}
		}
	}
	for (n = 0; n < WORLDS; n++) {
		w = world_of(n);
		ck_assert_msg(!reached[n] || ends[n], "dead end: %s",
		    describe(&w));
	}
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_test(t, numbers_are_exact);
	tcase_add_test(t, nothing_starts_or_closes_beside_living_ranks);
	tcase_add_test(t, every_world_comes_to_an_end_by_itself);
}

int
main(void)
{
	return unit_run("supervisor_world", add);
}
