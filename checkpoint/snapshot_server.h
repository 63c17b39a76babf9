/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_server.h - takes snapshots that ranks make in shared memory and writes
 * checkpoints from them, in threads, so that nothing holds up the loop.
 *
 * A rank has two areas.  While one is written the other one is filled; a third
 * snapshot takes the place of a second whose turn has not come.  Ranks that save
 * together are written in step: none goes on to a snapshot that another one has not
 * committed, so that what is written fits together.
 *
 * What is committed outlives the rank.  When this process dies, ranks that live hand
 * their areas to the next one; what belongs to ranks that are gone as well is lost.
 */
#ifndef HOLDFAST_CHECKPOINT_SNAPSHOT_SERVER_H
#define HOLDFAST_CHECKPOINT_SNAPSHOT_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/loop.h"

struct snapshot_server;

struct snapshot_done {
	int64_t		 step;
	const char	*path;		/* of the checkpoint; NULL when it failed */
	uint64_t	 bytes;		/* of the file that made it complete */
	int64_t		 ms;		/* since that rank's commit */
	const char	*why;		/* NULL when it is durable */
};

struct snapshot_server_ops {
	/* The directory for checkpoints; it must stay as long as the server. */
	const char	*(*target_dir)(void *arg);
	/* A checkpoint is durable, or a rank's part of it is not going to be. */
	void		(*done)(void *arg, const struct snapshot_done *);
	/* After snapshot_server_end(): nothing is left to write.  May be NULL. */
	void		(*idle)(void *arg);
	uint64_t	bytes_per_s;	/* of writing in all; 0: no limit */
};

/* Listens at socket_path (less than 108 bytes; a socket nobody serves is replaced)
 * for processes of this user.  ops is copied. */
int	snapshot_server_new(struct loop *, const char *socket_path,
	    const struct snapshot_server_ops *, void *arg,
	    struct snapshot_server **out, struct err *err);
/* Takes no more snapshots; what is committed is written, then idle is called, also
 * from within this call. */
void	snapshot_server_end(struct snapshot_server *);
/* Gives up what is not written and waits for the threads for wait_ms; one that a file
 * system holds up is left behind, with its memory. */
void	snapshot_server_free(struct snapshot_server *, int64_t wait_ms);

#endif
