/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_lock.h - keeps a second process away from a directory that is staged; for
 * stage.c.
 */
#ifndef HOLDFAST_CHECKPOINT_STAGE_LOCK_H
#define HOLDFAST_CHECKPOINT_STAGE_LOCK_H

#include "common/err.h"

#define STAGE_LOCK_NAME	".holdfast-stage.lock"

/* Locks dir until *out is closed; -1 (ERR_BUSY) when another one has it. */
int	stage_lock_take(const char *dir, int *out, struct err *err);

#endif
