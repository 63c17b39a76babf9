/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect.h - what a checkpoint without an expected set of its own should hold:
 * the files of the one before it.
 */
#ifndef HOLDFAST_CHECKPOINT_EXPECT_H
#define HOLDFAST_CHECKPOINT_EXPECT_H

#include "checkpoint/checkpoint.h"

/* Of checkpoints newest first: says "incomplete" of plain folders that lack a file
 * which the next older sound folder has (steps in the names apart).  Returns 0, or
 * -1 when memory is short. */
int	expect_same_files(struct checkpoints *);

#endif
