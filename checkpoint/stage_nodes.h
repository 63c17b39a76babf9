/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_nodes.h - checkpoints whose parts lie in the fast directories of several nodes;
 * for stage.c.
 *
 * Each node brings its part to TO/.incoming/NAME, which all share, and leaves a note
 * .node-NODE.json there.  The checkpoint is published by one rename when its format
 * calls the whole complete; where the format cannot know, when all nodes have brought
 * theirs.
 */
#ifndef HOLDFAST_CHECKPOINT_STAGE_NODES_H
#define HOLDFAST_CHECKPOINT_STAGE_NODES_H

#include "common/err.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/stage.h"
#include "checkpoint/stage_copy.h"

/* What lies in the fast directory and may be a part, newest first: one that no format
 * knows by itself counts. */
int	nodes_list(struct checkpoints *, const char *from, struct err *err);

/* Checks the files of a part by themselves; findings go to its report, where
 * "incomplete" means that it may still be written. */
int	nodes_check_part(struct checkpoint *, struct err *err);

/* Brings a part to `work`.  0, or -1 with what is there so far left for a next try. */
int	nodes_bring(struct stage_copy *, const struct checkpoint *,
	    const char *work, const char *node, struct err *err);

/* Publishes what is whole in `work` as `place`.  1 when it is there now, 0 when parts
 * are missing or another node is at it, -1 with the reason it cannot. */
int	nodes_publish(const char *work, const char *place,
	    const struct stage_options *, struct err *err);

/* Removes what nobody came back for within a day. */
int	nodes_clear(const char *incoming, const char *node, struct err *err);

#endif
