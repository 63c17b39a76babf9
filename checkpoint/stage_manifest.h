/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_manifest.h - the manifest of a checkpoint that was staged; for stage.c.
 */
#ifndef HOLDFAST_CHECKPOINT_STAGE_MANIFEST_H
#define HOLDFAST_CHECKPOINT_STAGE_MANIFEST_H

#include "checkpoint/checkpoint.h"
#include "checkpoint/stage_copy.h"

/* Writes it beside the copy at `place`, from the digests of the copying.  A copy is as
 * good without one: nothing is told when it cannot be written. */
void	stage_manifest(const struct stage_copy *, const struct checkpoint *,
	    const char *place);

/* Removes the one beside a file that is gone; a folder's went with it. */
void	stage_manifest_drop(const struct checkpoint *);

#endif
