/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prune.h - which checkpoints of a save directory are no longer needed.
 *
 * Only whole ones count: "keep the last 3" with three poisoned ones in front has lost
 * runs.  In doubt a checkpoint stays.
 */
#ifndef HOLDFAST_CHECKPOINT_PRUNE_H
#define HOLDFAST_CHECKPOINT_PRUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/checkpoint.h"

#define PRUNE_LAST_LEAST	2	/* one of two may turn out to be broken */

/* All checkpoints of one step: the files of several ranks go together. */
struct prune_step {
	int64_t		 step;
	int64_t		 mtime_ns;
	size_t		 first, n;	/* in the list they were grouped from */
	enum holdfast_checkpoint_state state;	/* the worst of them */
	bool		 pinned;	/* a tracker gives it */
	bool		 held;		/* may still be written */
	bool		 unnamed;	/* a name without step: "best.pt" */
	/* the answer */
	bool		 remove;
	const char	*why;		/* static text */
};

struct prune_policy {
	int64_t		 keep_last;	/* >= PRUNE_LAST_LEAST */
	int64_t		 keep_every;	/* steps; 0: no such rule */
	int64_t		 keep_after_ns;	/* younger stays; or REPORT_UNKNOWN */
	const int64_t	*spikes;	/* the newest whole one before each stays */
	size_t		 n_spikes;
	/* Reads all of a step that looks whole, sets its state; 0, or -1 when that
	 * cannot be done.  NULL: what is there counts. */
	int		(*verify)(void *arg, struct prune_step *);
	void		*arg;
};

/*
 * Decides on n steps, newest first.  *refused is why nothing may be removed at all, or
 * NULL.  Returns 0, or -1 when verify() failed.
 *
 * Kept are the last keep_last whole steps; of every keep_every steps the first whole
 * one; what is younger than the limit; for each spike the last whole one before it;
 * what a tracker gives, what may still be written, what has no step in its name, what
 * cannot be judged.  Broken ones go once keep_last whole ones are newer.
 */
int	prune_decide(struct prune_step *, size_t n, const struct prune_policy *,
	    const char **refused);

#endif
