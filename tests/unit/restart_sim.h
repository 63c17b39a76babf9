/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restart_sim.h - a run without processes: failures come in, decisions go out and
 * into the history by the same records that a supervisor writes.
 */
#ifndef HOLDFAST_TESTS_RESTART_SIM_H
#define HOLDFAST_TESTS_RESTART_SIM_H

#include "common/json.h"
#include "supervisor/restart.h"

#define UNKNOWN	JSON_UNKNOWN

struct sim {
	struct history		h;
	struct restart_policy	policy;
	struct restart_facts	facts;
	struct incident		in;
	int			count;
};

/* A new campaign: budget 10 for the whole of it, first delay 5 s, an hour up. */
void	sim_init(struct sim *);
/* What the next failure is: where it happened ... */
void	sim_sign(struct sim *, int64_t step, enum selection_result,
	    int64_t checkpoint);
/* ... and what it is. */
void	sim_verdict(struct sim *, const char *category, const char *reason,
	    const char *action, const char *fingerprint);
/* Decides, and journals the decision as examine.c does. */
const struct decision *sim_decide(struct sim *);

#endif
