/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history.h - what a run has been through, folded from its journal.
 *
 * The same function takes records at replay and while they are written, so a
 * supervisor that is respawned knows what its predecessor knew.  Everything is
 * keyed by attempt; a new campaign (a start by hand after an end) sets the
 * counts to zero, attempt numbers go on.
 */
#ifndef HOLDFAST_SUPERVISOR_HISTORY_H
#define HOLDFAST_SUPERVISOR_HISTORY_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "supervisor/incident.h"

#define HISTORY_LEDGER_MAX	64
#define HISTORY_RESTARTS_MAX	1024
#define HISTORY_PIDS_MAX	4096

/* One kind of failure, by the fingerprint of its verdict. */
struct ledger_entry {
	char	fingerprint[INCIDENT_NAME_MAX];
	char	reason[INCIDENT_NAME_MAX];
	int	count;			/* occurrences without progress between */
	int64_t	checkpoint_step;	/* newest valid one at the last of them */
	int64_t	furthest_step;		/* reached by the last of them */
};

/* How far the open attempt got, by its last record. */
enum attempt_phase {
	ATTEMPT_NONE,		/* none is open */
	ATTEMPT_ORDERED,	/* start was ordered, nothing heard yet */
	ATTEMPT_RUNNING,
	ATTEMPT_ENDING,		/* an incident is open */
	ATTEMPT_GONE,		/* proven gone, not decided yet */
	ATTEMPT_DECIDED		/* restart was decided, next one not ordered */
};

struct history {
	int64_t			seq;		/* of the last record */
	int64_t			generation;	/* supervisors so far */
	int			campaign;
	int			attempt;	/* last number given */
	enum attempt_phase	phase;
	int			incidents;
	bool			stop_asked;
	int			stop_signal;
	bool			ended;		/* the campaign has an end */
	int			end_code;
	char			instance[24];	/* agent, and its last event */
	int64_t			event_seq;
	char			last_agent[24];	/* instance that said hello last */
	int64_t			started_ns;	/* of the open attempt, wall clock */
	int32_t			pids[HISTORY_PIDS_MAX];	/* main processes of the
						   open attempt; 0: over */
	int			pid_count;
	int			exits_ok;	/* of the open attempt */
	int			exits_failed;
	int64_t			resume_step;	/* it was told to start from */
	int64_t			furthest_step;	/* of the campaign's attempts */
	int			no_progress;	/* attempts that got no further */
	int			free_retries;	/* in a row */
	int64_t			restarts_ns[HISTORY_RESTARTS_MAX];
	int			restarts;	/* counted ones, this campaign */
	struct ledger_entry	ledger[HISTORY_LEDGER_MAX];
	int			ledger_count;
	struct sign		sign;		/* of the open attempt, first one */
	struct decision		decision;	/* the last one */
};

void	history_init(struct history *);
/* Takes one journal record. */
void	history_apply(struct history *, const cJSON *record);
/* Entry of a fingerprint, NULL when it never occurred in this campaign. */
const struct ledger_entry *history_find(const struct history *,
	    const char *fingerprint);
/* Counted restarts since a point in time. */
int	history_restarts_since(const struct history *, int64_t wall_ns);

#endif
