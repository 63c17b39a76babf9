/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restart.h - what to do after a failure: restart, when, from before which step,
 * or stop and why.
 *
 * Pure: history, incident, policy, time and randomness come in, a decision comes
 * out.  The rules stand in holdfast(7) under POLICY.
 */
#ifndef HOLDFAST_SUPERVISOR_RESTART_H
#define HOLDFAST_SUPERVISOR_RESTART_H

#include <stdbool.h>
#include <stdint.h>

#include "supervisor/history.h"
#include "supervisor/incident.h"

struct restart_policy {
	int64_t	restarts_max;
	int64_t	window_ms;		/* 0: the whole campaign */
	int64_t	backoff_ms;		/* first delay */
};

/* What is known beside the incident itself. */
struct restart_facts {
	int64_t		now_ns;		/* wall clock */
	int64_t		uptime_ms;	/* of the attempt */
	int64_t		step_interval;	/* between two reported steps, 0 unknown */
	uint32_t	random;		/* for the jitter */
};

/* Constants of the policy, for the manual and the tests. */
#define RESTART_EARLY_MS	60000	/* before any step: configuration */
#define RESTART_FREE_MAX	3	/* retries for a taken port */
#define RESTART_UNKNOWN_MAX	3	/* same unknown failure, no progress */
#define RESTART_NODE_MAX	3	/* same node fault, no other node */
#define RESTART_NO_PROGRESS_MAX	4	/* attempts that get no further */
#define RESTART_BACKOFF_MAX_MS	300000

/* Fills in->decision; occurrences of the fingerprint without progress in *count. */
void	restart_decide(const struct history *, const struct restart_policy *,
	    const struct restart_facts *, struct incident *in, int *count);

#endif
