/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_flush.h - waits for what ranks that are gone have committed: the next
 * attempt should go on from there.
 */
#ifndef HOLDFAST_CHECKPOINT_SNAPSHOT_FLUSH_H
#define HOLDFAST_CHECKPOINT_SNAPSHOT_FLUSH_H

#include <stdint.h>

#include "common/err.h"

/* Asks the process that takes snapshots at socket_path; blocks until all that was
 * committed is written or given up, for timeout_ms at most.  0 then, and when nobody
 * listens there; -1 (ERR_BUSY) when time ran out. */
int	snapshot_flush(const char *socket_path, int64_t timeout_ms,
	    struct err *err);

#endif
