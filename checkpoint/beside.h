/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beside.h - folders beside a save directory, to which checkpoints are moved by one
 * rename each: the quarantine, what `select` sets aside, the trash of `prune`.
 *
 * Outside, because frameworks load or count what lies inside; beside, because a rename
 * must stay on one file system to move a checkpoint whole or not at all.
 */
#ifndef HOLDFAST_CHECKPOINT_BESIDE_H
#define HOLDFAST_CHECKPOINT_BESIDE_H

#include <stdbool.h>

#include "common/err.h"
#include "checkpoint/names.h"

/* PARENT/<before>NAME<behind> of the save directory PARENT/NAME, with links resolved;
 * to be freed; NULL with *err set. */
char	*beside_path(const char *save_dir, const char *before, const char *behind,
	    struct err *err);

/* Creates dir, as beside_path() gives it, unless it is there; refuses one on another
 * file system, with advice. */
int	beside_make(const char *save_dir, const char *dir, struct err *err);

/* Renames to a name that does not exist and syncs both directories.  Fails with
 * errnum set and the next step said, and then nothing has moved. */
int	beside_move(const char *from, const char *to, struct err *err);

/*
 * What belongs to a checkpoint but lies beside it: NeMo's NAME-unfinished, .md5 sums of
 * InternEvo, the manifest of a single file.  Moves those of `from`, whose checkpoint is
 * at `to` now, after it.
 */
int	beside_follow(const char *from, const char *to, struct err *err);

/* Adds what a person can do about its errnum, as far as that is known; returns -1. */
int	beside_advise(struct err *err);

/* The resolved directory of path, to be freed, and the name in it; NULL with *err set,
 * also for names such as "..". */
char	*beside_split(const char *path, const char **name, struct err *err);

#endif
