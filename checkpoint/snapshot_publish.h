/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_publish.h - from a committed snapshot to a checkpoint that is there as a
 * whole.
 *
 * One rank alone makes DIR/stepNNNNNNNN.pt.  Several make DIR/stepNNNNNNNN with a file
 * rank-NNNNN-of-NNNNN.pt each: it is put together as .stepNNNNNNNN.incoming-ATTEMPT,
 * which trainers and Holdfast pass over, and renamed by who finds all files there, on
 * whichever node that is.  These calls block; they belong into threads.
 */
#ifndef HOLDFAST_CHECKPOINT_SNAPSHOT_PUBLISH_H
#define HOLDFAST_CHECKPOINT_SNAPSHOT_PUBLISH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "checkpoint/sink.h"
#include "checkpoint/snapshot_wire.h"

#define SNAPSHOT_PATIENCE_MS	60000

/* Where a file goes, and what became of it. */
struct snapshot_place {
	const char	*dir;		/* the caller's */
	int64_t		 step;
	uint32_t	 rank, world, attempt;
	uint64_t	 writer;	/* unique among those of this process */
	/* the folder that is put together, to be known again under its new name */
	dev_t		 dev;
	ino_t		 ino;
	bool		 synced;	/* this file's name in it */
	bool		 moved;		/* to its new name, by this one */
	int64_t		 failing_ns;	/* since then the storage fails; 0: it does not */
	char		*path;		/* the checkpoint when it is there; owned */
	uint64_t	 bytes;		/* of this rank's file */
};

enum snapshot_outcome {
	SNAPSHOT_DURABLE,	/* the checkpoint is in its place and synced */
	SNAPSHOT_JOINED,	/* the same, by another rank's doing */
	SNAPSHOT_WAITING,	/* this file is written; others are not there yet, or
				 * the storage fails for now, and err says how */
	SNAPSHOT_PAST,		/* other ranks have saved a later one */
	SNAPSHOT_LOST		/* not written */
};

/* Writes the rank's file from the area that `commit` describes; err is not NULL in
 * both. */
enum snapshot_outcome snapshot_write(struct snapshot_place *,
	    const struct snapshot_message *commit, int area_fd,
	    uint64_t area_bytes, struct sink_limit *, struct err *err);
/* Looks again at one that was waiting.  It is lost when the storage has failed for
 * SNAPSHOT_PATIENCE_MS. */
enum snapshot_outcome snapshot_join(struct snapshot_place *, struct err *err);
/* Removes what a writer of single files that is gone has left in dir. */
void	snapshot_clear_left(const char *dir);
void	snapshot_place_fini(struct snapshot_place *);

#endif
