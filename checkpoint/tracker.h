/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracker.h - the small files in a save directory by which a trainer remembers its
 * newest checkpoint: latest.json {"file","step"}, Megatron's
 * latest_checkpointed_iteration.txt, DeepSpeed's latest, and symbolic links such
 * as last.ckpt.
 */
#ifndef HOLDFAST_CHECKPOINT_TRACKER_H
#define HOLDFAST_CHECKPOINT_TRACKER_H

#include <stdint.h>

#include "common/err.h"
#include "checkpoint/names.h"

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
