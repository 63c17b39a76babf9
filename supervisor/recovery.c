/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recovery.c - the table that orders the stages, and nothing else.
 */
#include <stddef.h>

#include "supervisor/recovery.h"

struct row {
	enum recovery_state	state;
	enum recovery_event	event;
	enum recovery_action	action;
	enum recovery_state	next;
};

#define ROW(s, e, a, n)	{ STATE_##s, EVENT_##e, DO_##a, STATE_##n }

static const struct row rows[] = {
	/* state      event               action              next */
	ROW(CONNECTING, AGENT_IDLE,         SELECT,             SELECTING),
	ROW(CONNECTING, AGENT_HAS_ATTEMPT,  ADOPT,              TRAINING),
	ROW(CONNECTING, RESUME_EXAMINATION, EXAMINE,            EXAMINING),
	ROW(CONNECTING, AGENT_LOST,         RECONNECT,          CONNECTING),
	ROW(CONNECTING, AGENT_FAILED,       CLOSE_NO_AGENT,     CLOSED),
	/* an agent that comes may have ranks to stop */
	ROW(CONNECTING, STOP_ASKED,         NOTHING,            STOPPING),
	/* a new supervisor finds an attempt that ended well */
	ROW(CONNECTING, ALL_ENDED_WELL,     FINISH,             DRAINING),

	ROW(SELECTING,  SELECTED,           LAUNCH,             LAUNCHING),
	/* could not be found out: look again */
	ROW(SELECTING,  DELAY_OVER,         SELECT,             SELECTING),
	ROW(SELECTING,  GIVE_UP,            CLOSE_GIVEN_UP,     DRAINING),
	ROW(SELECTING,  AGENT_LOST,         RECONNECT,          CONNECTING),
	ROW(SELECTING,  STOP_ASKED,         CLOSE_STOPPED,      DRAINING),

	ROW(LAUNCHING,  STARTED,            NOTE_START,         TRAINING),
	ROW(LAUNCHING,  START_FAILED,       OPEN_INCIDENT,      ENDING),
	ROW(LAUNCHING,  RANK_FAILED,        OPEN_INCIDENT,      ENDING),
	ROW(LAUNCHING,  GONE,               EXAMINE,            EXAMINING),
	ROW(LAUNCHING,  AGENT_LOST,         OPEN_INCIDENT_LOST, LOST),
	ROW(LAUNCHING,  STOP_ASKED,         STOP_RANKS,         STOPPING),

	ROW(TRAINING,   RANK_ENDED_WELL,    WAIT_FOR_EXITS,     TRAINING),
	ROW(TRAINING,   ALL_ENDED_WELL,     WAIT_FOR_STRAYS,    LINGERING),
	ROW(TRAINING,   RANK_FAILED,        OPEN_INCIDENT,      ENDING),
	ROW(TRAINING,   SIGN,               OPEN_INCIDENT,      ENDING),
	ROW(TRAINING,   EXIT_TIMEOUT,       OPEN_INCIDENT,      ENDING),
	ROW(TRAINING,   START_FAILED,       OPEN_INCIDENT,      ENDING),
	ROW(TRAINING,   GONE,               EXAMINE,            EXAMINING),
	ROW(TRAINING,   AGENT_LOST,         OPEN_INCIDENT_LOST, LOST),
	ROW(TRAINING,   STOP_ASKED,         STOP_RANKS,         STOPPING),

	ROW(LINGERING,  GONE,               FINISH,             DRAINING),
	ROW(LINGERING,  AGENT_LOST,         RECONNECT,          LINGERING),
	ROW(LINGERING,  AGENT_IDLE,         FINISH,             DRAINING),
	ROW(LINGERING,  AGENT_HAS_ATTEMPT,  WAIT_FOR_STRAYS,    LINGERING),
	ROW(LINGERING,  AGENT_FAILED,       FINISH,             DRAINING),
	ROW(LINGERING,  STOP_ASKED,         STOP_RANKS,         STOPPING),

	ROW(ENDING,     GONE,               EXAMINE,            EXAMINING),
	ROW(ENDING,     AGENT_LOST,         RECONNECT,          LOST),
	ROW(ENDING,     STOP_ASKED,         STOP_RANKS,         STOPPING),

	ROW(LOST,       AGENT_IDLE,         EXAMINE,            EXAMINING),
	ROW(LOST,       AGENT_HAS_ATTEMPT,  OPEN_INCIDENT,      ENDING),
	ROW(LOST,       AGENT_LOST,         RECONNECT,          LOST),
	ROW(LOST,       AGENT_FAILED,       CLOSE_NO_AGENT,     CLOSED),
	ROW(LOST,       STOP_ASKED,         NOTHING,            STOPPING),

	ROW(EXAMINING,  RESTART,            START_DELAY,        WAITING),
	ROW(EXAMINING,  GIVE_UP,            CLOSE_GIVEN_UP,     DRAINING),
	ROW(EXAMINING,  STOP_ASKED,         CLOSE_STOPPED,      DRAINING),

	ROW(WAITING,    DELAY_OVER,         SELECT,             SELECTING),
	ROW(WAITING,    STOP_ASKED,         CLOSE_STOPPED,      DRAINING),

	ROW(DRAINING,   DRAINED,            CLOSE,              CLOSED),
	ROW(DRAINING,   AGENT_LOST,         CLOSE,              CLOSED),
	/* asked again: at once */
	ROW(DRAINING,   STOP_ASKED,         CLOSE,              CLOSED),

	ROW(STOPPING,   GONE,               CLOSE_STOPPED,      DRAINING),
	ROW(STOPPING,   AGENT_LOST,         RECONNECT,          STOPPING),
	ROW(STOPPING,   AGENT_IDLE,         CLOSE_STOPPED,      DRAINING),
	ROW(STOPPING,   AGENT_HAS_ATTEMPT,  STOP_RANKS,         STOPPING),
	ROW(STOPPING,   AGENT_FAILED,       CLOSE_NO_AGENT,     CLOSED),
	/* asked again: at once */
	ROW(STOPPING,   STOP_ASKED,         STOP_RANKS,         STOPPING),
};

#undef ROW

int
recovery_step(enum recovery_state state, enum recovery_event event,
    enum recovery_action *action, enum recovery_state *next)
{
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].state != state || rows[i].event != event)
			continue;
		*action = rows[i].action;
		*next = rows[i].next;
		return 0;
	}
	return -1;
}

#define X(name) #name,
static const char *const state_names[] = { RECOVERY_STATES(X) };
static const char *const event_names[] = { RECOVERY_EVENTS(X) };
static const char *const action_names[] = { RECOVERY_ACTIONS(X) };
#undef X

const char *
recovery_state_name(enum recovery_state s)
{
	return s < STATE_COUNT ? state_names[s] : "?";
}

const char *
recovery_event_name(enum recovery_event e)
{
	return e < EVENT_COUNT ? event_names[e] : "?";
}

const char *
recovery_action_name(enum recovery_action a)
{
	return a < DO_COUNT ? action_names[a] : "?";
}

const char *
recovery_public_name(enum recovery_state s)
{
	switch (s) {
	case STATE_CONNECTING:
	case STATE_SELECTING:
	case STATE_LAUNCHING:
		return "starting";
	case STATE_TRAINING:
	case STATE_LINGERING:
		return "training";
	default:
		return "recovering";
	}
}
