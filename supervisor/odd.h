/* SPDX-License-Identifier: Apache-2.0 */
/*
 * odd.h - which rank of a hung attempt differs from the others, and how.
 *
 * Pure.  Ranks that wait for one in a collective all look the same; that one is
 * stopped, blocked, elsewhere in the program, or behind.
 */
#ifndef HOLDFAST_SUPERVISOR_ODD_H
#define HOLDFAST_SUPERVISOR_ODD_H

#include <stddef.h>
#include <stdint.h>

#define ODD_WHY_MAX	400
#define ODD_UNKNOWN	INT64_MIN

struct odd_rank {
	char		 state;		/* as in /proc/PID/stat; '?' unknown */
	int64_t		 cpu;		/* percent of a core, or ODD_UNKNOWN */
	int64_t		 silent_ms;	/* or ODD_UNKNOWN */
	int64_t		 step;		/* or ODD_UNKNOWN */
	const char	*wchan;		/* NULL unknown */
	const char	*frame;		/* innermost; NULL unknown */
};

/* The index of the one that differs, with a phrase such as "stopped (T)" in why; -1
 * when none does, or too many. */
int	odd_find(const struct odd_rank *, size_t n, char why[ODD_WHY_MAX]);

#endif
