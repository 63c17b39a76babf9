/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recovery.h - the order of things: (state, event) -> (action, next state).
 *
 * Pure: no I/O, no clock.  supervisor.c feeds events and carries out actions;
 * simulations and tests drive the same table.
 */
#ifndef HOLDFAST_SUPERVISOR_RECOVERY_H
#define HOLDFAST_SUPERVISOR_RECOVERY_H

/* One list yields enum and names. */
#define RECOVERY_STATES(X) \
	X(CONNECTING)	/* no agent yet, no attempt open */ \
	X(SELECTING)	/* looking for the checkpoint to start from */ \
	X(LAUNCHING)	/* start was ordered */ \
	X(TRAINING)	/* ranks run */ \
	X(LINGERING)	/* all ranks ended well, descendants are left */ \
	X(ENDING)	/* a failure was seen, the rest is being ended */ \
	X(LOST)		/* the agent of an open attempt was lost */ \
	X(EXAMINING)	/* gone: cause and checkpoint are looked for */ \
	X(WAITING)	/* back-off before the next attempt */ \
	X(STOPPING)	/* a person or the scheduler asked to stop */ \
	X(DRAINING)	/* the end is stated, staged checkpoints become durable */ \
	X(CLOSED)	/* the end is written */

#define RECOVERY_EVENTS(X) \
	X(AGENT_IDLE)		/* an agent is there, no attempt runs on it */ \
	X(AGENT_HAS_ATTEMPT)	/* an agent is there with the open attempt */ \
	X(AGENT_LOST)		/* connection to the agent broke */ \
	X(AGENT_FAILED)		/* no agent can be had, or its node not cleaned */ \
	X(SELECTED)		/* the checkpoint question is answered */ \
	X(STARTED)		/* all main processes are up */ \
	X(START_FAILED)		/* a main process could not be started */ \
	X(RANK_ENDED_WELL)	/* exit status 0, others still run */ \
	X(ALL_ENDED_WELL)	/* exit status 0 of the last one */ \
	X(RANK_FAILED)		/* any other end of a main process */ \
	X(SIGN)			/* trouble seen in the output */ \
	X(EXIT_TIMEOUT)		/* some ended well long ago, others hang */ \
	X(GONE)			/* nothing of the attempt is left */ \
	X(RESUME_EXAMINATION)	/* a new supervisor finds a gone attempt */ \
	X(RESTART)		/* decided */ \
	X(GIVE_UP)		/* decided */ \
	X(DELAY_OVER)		/* the back-off has passed */ \
	X(DRAINED)		/* what is staged is durable, or cannot be */ \
	X(STOP_ASKED)		/* by signal or by holdfast stop */

#define RECOVERY_ACTIONS(X) \
	X(NOTHING) \
	X(SELECT)		/* look for a checkpoint (no agent: AGENT_LOST) */ \
	X(LAUNCH)		/* order the start of the next attempt */ \
	X(ADOPT)		/* go on with the attempt the agent has */ \
	X(NOTE_START) \
	X(WAIT_FOR_EXITS)	/* start the exit time-out */ \
	X(WAIT_FOR_STRAYS)	/* give descendants the grace */ \
	X(OPEN_INCIDENT)	/* and order the rest of the attempt ended */ \
	X(OPEN_INCIDENT_LOST)	/* the same without an agent; get a new one */ \
	X(RECONNECT)		/* get a new agent, which sweeps the node */ \
	X(EXAMINE)		/* diagnose, and look for a checkpoint */ \
	X(START_DELAY) \
	X(FINISH)		/* state the end: success */ \
	X(STOP_RANKS)		/* the kill ladder with the user's grace */ \
	X(CLOSE_STOPPED)	/* ... as asked */ \
	X(CLOSE_GIVEN_UP)	/* ... as decided */ \
	X(CLOSE)		/* the end that was stated */ \
	X(CLOSE_NO_AGENT)

enum recovery_state {
#define X(name) STATE_##name,
	RECOVERY_STATES(X)
#undef X
	STATE_COUNT
};

enum recovery_event {
#define X(name) EVENT_##name,
	RECOVERY_EVENTS(X)
#undef X
	EVENT_COUNT
};

enum recovery_action {
#define X(name) DO_##name,
	RECOVERY_ACTIONS(X)
#undef X
	DO_COUNT
};

/* Looks the pair up.  0, or -1 when the table has no row for it: the event
 * means nothing in that state and nothing changes. */
int	recovery_step(enum recovery_state, enum recovery_event,
	    enum recovery_action *, enum recovery_state *next);

/* "TRAINING" ... for logs and journal. */
const char *recovery_state_name(enum recovery_state);
const char *recovery_event_name(enum recovery_event);
const char *recovery_action_name(enum recovery_action);

/* The word of status.json: starting, training, recovering, stopped, finished. */
const char *recovery_public_name(enum recovery_state);

#endif
