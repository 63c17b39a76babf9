/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grid.h - files numbered by rank: all combinations of their numbers must be there.
 */
#ifndef HOLDFAST_CHECKPOINT_GRID_H
#define HOLDFAST_CHECKPOINT_GRID_H

#include <stdbool.h>
#include <stddef.h>

#include "checkpoint/names.h"
#include "checkpoint/report.h"

#define GRID_DIMS	4
#define GRID_MAX	65536	/* numbers from this one on are no ranks */

struct grid {
	const char	*pattern;	/* '#' stands for a number, at most GRID_DIMS */
	/* how many there must be, from 0 on; 0: as many as the largest tells */
	unsigned	 size[GRID_DIMS];
	/* numbers may be absent altogether (layers without parameters) */
	bool		 holes[GRID_DIMS];
};

/* True when the name is of the pattern; its numbers go to `at`. */
bool	grid_match(const char *name, const char *pattern,
	    unsigned at[GRID_DIMS]);

/* True when each of the numbers is below its `size'. */
bool	grid_fits(const struct grid *, const unsigned at[GRID_DIMS]);
/* Says "incomplete" when a combination is absent; numbers beyond `size', left by a
 * larger world that wrote to the same folder, do not count.  Returns the number of
 * names that match, 0 without a word when none does. */
size_t	grid_check(const struct names *, const struct grid *, struct report *);

#endif
