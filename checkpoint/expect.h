/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect.h - what a checkpoint without an expected set of its own should hold:
 * the files of the one before it.
 */
#ifndef HOLDFAST_CHECKPOINT_EXPECT_H
#define HOLDFAST_CHECKPOINT_EXPECT_H

#include "checkpoint/checkpoint.h"

/* Of checkpoints newest first: says "incomplete" of those that lack a file which the
 * next older sound one has (steps in the names apart).  Returns 0, or -1 when memory
 * is short. */
int	expect_same_files(struct checkpoints *);

/* The same for checkpoints that were named one by one: each is held against what else
 * lies in its directory.  Returns 0, or -1 when memory is short. */
int	expect_beside(struct checkpoint *list, size_t n, int threads);

#endif
