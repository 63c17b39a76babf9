/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select.h - makes a trainer's own "resume from the latest" take a given checkpoint:
 * trackers are rewritten, newer checkpoints moved to a folder beside the save
 * directory, SAVEDIR.aside/NNNN; nothing is deleted, and all of it can be undone.
 *
 * select.c says what has to change, select_apply.c does it.  The order is such that a
 * trainer started at any moment in between, also after a kill, resumes from what it
 * would have resumed from before, from the selected checkpoint, or from a whole one
 * between them: trackers first, then broken newer checkpoints from the oldest on, then
 * whole ones from the newest on.
 */
#ifndef HOLDFAST_CHECKPOINT_SELECT_H
#define HOLDFAST_CHECKPOINT_SELECT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/tracker.h"

#define SELECT_SUFFIX	".aside"
#define SELECT_SCHEMA	"holdfast.select/1"

enum select_kind {
	SELECT_TRACKER,		/* a text or link gets another value */
	SELECT_COPY,		/* a second copy is replaced */
	SELECT_LINK,		/* a link that was not there */
	SELECT_MOVE		/* moved out of the save directory */
};

struct select_change {
	enum select_kind	 kind;
	char			*name;	/* in the save directory, may be "a/b" */
	char			*from;	/* of trackers: what they gave */
	char			*to;	/* and give: a name in the directory */
	/* for select_apply.c */
	struct tracker		 tracker;	/* the old one; of a copy its file */
	struct buf		 text;		/* the new one's */
	char			*source;	/* of a copy: a path */
};

struct select_plan {
	char			*dir;		/* resolved */
	char			*name;		/* of the checkpoint in it */
	int64_t			 step;
	struct select_change	*list;
	size_t			 n, cap;
	struct names		 left;		/* "NAME: why it stays as it is" */
	char			*entry;		/* where old values are kept; NULL
						 * before select_apply() */
};

/* Marks the checkpoints of that step in member[], which has room for all: by the step
 * that their files tell, or that of their names when no file tells it.  Second copies
 * (last.ckpt) are none.  Returns how many. */
size_t	select_members(const struct checkpoints *, const char *dir, int64_t step,
	    bool *member);

/* Says what has to change so that the members, at least one, are the newest of dir.
 * cs is as checkpoints_find(dir) gives it.  select_fini() in any case. */
int	select_plan(struct select_plan *, const char *dir,
	    const struct checkpoints *cs, const bool *member, struct err *err);
void	select_fini(struct select_plan *);

/* Does it.  On failure all of it is undone again; err says so, or what could not be. */
int	select_apply(struct select_plan *, struct err *err);

/* Undoes the last select_apply() of dir, also one that was killed; the plan says what
 * was undone.  Refuses (ERR_BUSY) when a trainer has gone on since, unless forced; then
 * its trackers are overwritten.  select_fini() in any case. */
int	select_undo(struct select_plan *, const char *dir, bool force,
	    struct err *err);

/* For select_apply.c: a change at the end of the plan; NULL when memory is short. */
struct select_change *select_add(struct select_plan *, enum select_kind,
	    const char *name);

/* The name of a checkpoint of dir relative to it. */
const char *select_name(const char *dir, const char *path);

#endif
