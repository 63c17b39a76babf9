/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracker.h - what in a save directory says which checkpoint is the newest one: small
 * files, links, and second copies.
 *
 *   latest.json                        {"file", "step"}; examples/train.py
 *   latest_checkpointed_iteration.txt  a number; Megatron-LM (iter_N), verl
 *                                      (global_step_N)
 *   latest, latest_universal           a name; DeepSpeed engine.py, ds_to_universal.py
 *   dlrover_latest.txt                 a number; DLRover
 *   last.ckpt, LATEST, X-last, ...     links to a neighbour; Lightning, NeMo, Composer
 *   last.ckpt, checkpoint_last*.pt     second copies; Lightning, fairseq
 *   latest_train_state.pt              copy of iter_N/train_state.pt; Megatron-Bridge
 */
#ifndef HOLDFAST_CHECKPOINT_TRACKER_H
#define HOLDFAST_CHECKPOINT_TRACKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buf.h"
#include "common/err.h"
#include "checkpoint/names.h"

enum tracker_kind { TRACKER_TEXT, TRACKER_LINK, TRACKER_COPY };

struct tracker {
	enum tracker_kind	 kind;
	char			*file;		/* its name in the directory */
	char			*target;	/* the name that it gives; "": none.  Of
						 * a copy "" */
	struct buf		 text;		/* all bytes; of a link where it leads */
	mode_t			 mode;
};

struct trackers {
	struct tracker	*list;
	size_t		 n, cap;
};

/* All trackers of dir; with -1 those that could be read.  trackers_fini() in any
 * case.  A folder that tracker_is_copy() counts, though it may be no checkpoint. */
int	trackers_read(struct trackers *, const char *dir, struct err *err);
void	trackers_fini(struct trackers *);

/* True for "last.ckpt", "checkpoint_last-shard0.pt" and the like: a real file or folder
 * of that name is another copy of a checkpoint. */
bool	tracker_is_copy(const char *name);

/* Its new text when it shall give `name`, a checkpoint of that step; -1 when it cannot:
 * a number for a folder of another layout, the file of another rank, a universal
 * checkpoint for one that is not. */
int	tracker_text(const struct tracker *, const char *name, int64_t step,
	    struct buf *text);

/* Replaces a tracker that is no copy in one step. */
int	tracker_write(const char *dir, const struct tracker *, const struct buf *text,
	    struct err *err);

/* The part of dir/name that a copy of that tracker's kind is taken from: name itself
 * but for latest_train_state.pt.  To be freed. */
char	*tracker_source(const struct tracker *, const char *dir, const char *name);

/*
 * Points every tracker of dir that names nothing (empty, or a checkpoint that is
 * gone) to `name`, the checkpoint of that step inside dir; each is replaced
 * atomically and its old value kept in keep_dir as TRACKER.TIME.  Names of the
 * trackers changed are added to changed (may be NULL).  Returns 0, or -1 with what
 * could not be written; the others are tried nevertheless.
 */
int	tracker_repair(const char *dir, const char *name, int64_t step,
	    const char *keep_dir, struct names *changed, struct err *err);

#endif
