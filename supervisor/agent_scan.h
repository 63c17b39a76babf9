/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_scan.h - live reading of one output stream: progress, and lines that a
 * rule knows as a sign of trouble.
 *
 * Memory is bounded whatever comes: the head of a line is looked at, the rest of
 * an over-long one skipped.
 */
#ifndef HOLDFAST_SUPERVISOR_AGENT_SCAN_H
#define HOLDFAST_SUPERVISOR_AGENT_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct agent;
struct agent_scan;

/* rank -1: a launcher, whose lines may carry the ranks' own prefixes. */
int	agent_scan_new(struct agent *, int attempt, int rank,
	    struct agent_scan **out, struct err *err);
void	agent_scan_feed(struct agent_scan *, const char *data, size_t len);
/* Tells the last progress now, if it was held back. */
void	agent_scan_report(struct agent_scan *);
/* The newest step, JSON_UNKNOWN before the first. */
int64_t	agent_scan_step(const struct agent_scan *);
/* The stream has ended: an unfinished last line counts too. */
void	agent_scan_end(struct agent_scan *);
void	agent_scan_free(struct agent_scan *);

#endif
