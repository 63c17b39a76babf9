/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_client.h - a rank's side of a connection; only for snapshot_client.c and
 * snapshot_link.c.
 *
 * A thread of the client's own reads what the server says, makes memory ready, and
 * connects again when the server is gone.  One mutex guards all; calls of the rank
 * hold it as long as they copy, and let it go while they wait for an answer.
 */
#ifndef HOLDFAST_CHECKPOINT_SNAPSHOT_CLIENT_H
#define HOLDFAST_CHECKPOINT_SNAPSHOT_CLIENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buf.h"
#include "checkpoint/holdfast-checkpoint.h"
#include "checkpoint/snapshot_wire.h"

enum client_area_state {
	CLIENT_IDLE,		/* the server may grant it */
	CLIENT_FILLING,
	CLIENT_COMMITTED	/* what became of it is not known yet */
};

struct client_area {
	int			 fd;		/* -1: none */
	uint64_t		 bytes;
	uint8_t			*map;		/* NULL, or `mapped' bytes */
	uint64_t		 mapped;
	uint64_t		 populated, touched;	/* bytes of the map */
	enum client_area_state	 state;
	struct snapshot_message	 commit;
};

struct holdfast_checkpoint_client {
	pthread_mutex_t		 calls;		/* one of the rank's at a time */
	pthread_mutex_t		 mutex;
	pthread_cond_t		 changed;
	pthread_t		 thread;
	pid_t			 owner;
	char			*path;
	int			 fd;		/* -1: the server is gone */
	int			 wake_fd;	/* an eventfd: end */
	bool			 closing;
	int64_t			 lost_ns;	/* since when fd is -1 */
	uint32_t		 attempt;
	unsigned		 threads;
	struct client_area	 areas[SNAPSHOT_AREAS];
	/* a request of the rank: answered once */
	bool			 asking, answered;
	struct snapshot_message	 answer;
	/* the snapshot that is made */
	int			 filling;	/* its area, or -1 */
	struct snapshot_message	 begin;
	uint64_t		 used;
	struct buf		 table;
	uint32_t		 entries;
	uint64_t		 expected;	/* bytes of the one before */
	/* the newest one that was committed */
	uint64_t		 sequence;	/* 0: none */
	bool			 pending;
	int			 code;
	char			 text[SNAPSHOT_TEXT_MAX];
};

/* A connection to the socket at path: 0 with *fd, or a code with a line in text. */
int	snapshot_link_connect(const char *path, int *fd, char *text, size_t size);
/* The thread; arg is the client. */
void	*snapshot_link_run(void *arg);
/* Maps all of an area; 0, or -1. */
int	snapshot_link_map(struct client_area *);

#endif
