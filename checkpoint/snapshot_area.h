/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_area.h - memory of the server that a rank fills: an anonymous file
 * (memfd_create(2)) that can grow and cannot shrink.
 */
#ifndef HOLDFAST_CHECKPOINT_SNAPSHOT_AREA_H
#define HOLDFAST_CHECKPOINT_SNAPSHOT_AREA_H

#include <stdint.h>

#include "common/err.h"

/* An empty one; its descriptor, or -1. */
int	snapshot_area_new(struct err *err);
/*
 * Makes it at least `bytes` long and has the kernel find all of its pages now: a rank
 * that fills it later waits for none, and one that finds no memory is told so instead
 * of being killed.  Blocks for as long as that takes.
 */
int	snapshot_area_grow(int fd, uint64_t bytes, struct err *err);
/* Takes one that another process sends: 0 with its size when it is an anonymous file
 * that cannot shrink. */
int	snapshot_area_check(int fd, uint64_t *bytes, struct err *err);

#endif
