/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_copy.h - copies memory as fast as several threads can.
 */
#ifndef HOLDFAST_CHECKPOINT_SNAPSHOT_COPY_H
#define HOLDFAST_CHECKPOINT_SNAPSHOT_COPY_H

#include <stddef.h>

#define SNAPSHOT_COPY_THREADS_MAX	8

/* One for each processor that this process may use, 4 at most. */
unsigned snapshot_copy_threads(void);
/* to and from do not overlap.  Small pieces are copied by the caller alone. */
void	snapshot_copy(void *to, const void *from, size_t len, unsigned threads);

#endif
