/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool.h - events of an agent that no supervisor has acknowledged yet.
 *
 * Kept in memory and in a node-local file, one JSON line each, so that they
 * outlive the supervisor and the agent.  Each has a seq of its own; sending one
 * twice is harmless because the supervisor knows the last it has journaled.
 */
#ifndef HOLDFAST_SUPERVISOR_SPOOL_H
#define HOLDFAST_SUPERVISOR_SPOOL_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

struct spool;

/* Opens the file and takes over what an earlier agent left in it. */
int	spool_open(const char *path, struct spool **out, struct err *err);
void	spool_free(struct spool *);

/* Gives the event its "seq" and keeps a copy; the event stays the caller's.
 * Returns the seq; when the file cannot be written it is kept in memory only. */
int64_t	spool_add(struct spool *, cJSON *event);
/* Forgets all up to seq. */
void	spool_ack(struct spool *, int64_t seq);
/* True when all is acknowledged. */
bool	spool_is_empty(const struct spool *);
/* Calls fn for all kept events in order. */
void	spool_each(const struct spool *,
	    void (*fn)(const cJSON *event, void *arg), void *arg);

#endif
