/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - one clock for the times of all streams.
 */
#ifndef HOLDFAST_DIAGNOSE_CLOCK_H
#define HOLDFAST_DIAGNOSE_CLOCK_H

#include "diagnose/cause.h"

/* Completes times without year or date, finds streams whose clock is off, and sets
 * time_ns of all candidates. */
void	clock_align(struct case_file *);
/* For lines that are no candidates; after clock_align(). */
struct clock_near {
	int64_t	any, year, day;		/* the latest times of each kind */
};
void	clock_near_init(struct clock_near *, const struct case_file *);
/* By the same clock; LINE_NO_TIME when the line does not tell. */
int64_t	clock_time(const struct clock_near *, const struct case_file *,
	    uint32_t stream, const struct line_time *);
/* One time, completed by another one that it is close to; LINE_NO_TIME when it is
 * none of the day. */
int64_t	clock_near(const struct line_time *, int64_t near_ns);
/* When the job's own logs begin and end; LINE_NO_TIME unknown.  `zones` tells that
 * some of them print a zone and some do not, so that hours may be between them. */
void	clock_span(const struct case_file *, int64_t *first_ns, int64_t *last_ns,
	    bool *zones);

#endif
