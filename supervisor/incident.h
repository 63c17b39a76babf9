/* SPDX-License-Identifier: Apache-2.0 */
/*
 * incident.h - the record that travels through the stages, filled from left to
 * right: sign -> verdict -> selection (checkpoint) -> decision.
 *
 * Each stage writes its own part and reads only the earlier ones.
 */
#ifndef HOLDFAST_SUPERVISOR_INCIDENT_H
#define HOLDFAST_SUPERVISOR_INCIDENT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define INCIDENT_TEXT_MAX	512
#define INCIDENT_NAME_MAX	80

/* monitor: the first thing that was noticed */
enum sign_kind {
	SIGN_NONE,
	SIGN_EXIT,		/* a main process ended and should not have */
	SIGN_START,		/* it could not be started */
	SIGN_LOSS,		/* the loss is not finite */
	SIGN_RESUME_MISMATCH,	/* the trainer did not take the checkpoint */
	SIGN_EXIT_TIMEOUT,	/* others ended well, this one hangs */
	SIGN_HANG,		/* no step, for too long */
	SIGN_SPIKE,		/* the loss rose for good */
	SIGN_AGENT_LOST
};

struct sign {
	enum sign_kind	kind;
	int		rank;		/* -1 unknown */
	pid_t		pid;
	bool		signaled;
	int		status;		/* exit status or signal */
	int64_t		wall_ns;
	int64_t		step;		/* furthest step of the attempt, or unknown */
	char		text[INCIDENT_TEXT_MAX];
};

/* diagnose: what holdfast-diagnose says, in the parts decisions need */
struct verdict {
	char	status[INCIDENT_NAME_MAX];
	char	category[INCIDENT_NAME_MAX];
	char	reason[INCIDENT_NAME_MAX];
	char	action[INCIDENT_NAME_MAX];
	char	fingerprint[INCIDENT_NAME_MAX];
	int64_t	step;		/* of the onset, or unknown */
	cJSON	*json;		/* the whole verdict, owned */
};

/* checkpoint: where to start again */
enum selection_result {
	SELECTION_NOT_ASKED,	/* no --checkpoint-dir */
	SELECTION_FOUND,
	SELECTION_NONE,		/* there is no checkpoint at all */
	SELECTION_ALL_BAD,	/* there are some, none can be used */
	SELECTION_UNKNOWN	/* could not be found out; text says why */
};

struct selection {
	enum selection_result	result;
	char			path[4096];
	int64_t			step;		/* unknown when it does not say */
	int			skipped;
	char			text[INCIDENT_TEXT_MAX];
	cJSON			*json;		/* owned, or NULL */
};

/* restart: what the run does about it */
enum decision_kind { DECISION_RESTART, DECISION_STOP, DECISION_REQUEUE };

struct decision {
	enum decision_kind	kind;
	int			exit_code;	/* when it ends the run */
	int64_t			delay_ms;
	int64_t			before_step;	/* roll back before it, or unknown */
	bool			is_free;	/* does not count against the budget */
	int64_t			budget_left;
	char			why[INCIDENT_TEXT_MAX];
};

struct incident {
	int			number;
	int			attempt;
	struct sign		sign;
	struct verdict		verdict;
	struct selection	selection;
	struct decision		decision;
};

const char *sign_kind_name(enum sign_kind);
enum sign_kind sign_kind_find(const char *name);	/* SIGN_NONE when unknown */
const char *decision_kind_name(enum decision_kind);
/* Frees what the parts own and zeroes the record. */
void	incident_clear(struct incident *);

#endif
