/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.h - a new file that is written once, past the page cache where the file system
 * lets it, at a speed that several writers share.
 */
#ifndef HOLDFAST_CHECKPOINT_SINK_H
#define HOLDFAST_CHECKPOINT_SINK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

#define SINK_BLOCK	((size_t)1 << 20)	/* bytes written at once */

/* Shared by any number of sinks; may change hands between threads. */
struct sink_limit {
	pthread_mutex_t		 mutex;
	uint64_t		 bytes_per_s;	/* 0: as fast as it goes */
	int64_t			 due_ns;	/* when the next byte may go */
	const atomic_bool	*cancel;	/* may be NULL */
};
#define SINK_LIMIT_INIT { PTHREAD_MUTEX_INITIALIZER, 0, 0, NULL }

struct sink {
	const char		*path;		/* the caller's */
	int			 fd;
	bool			 direct;
	uint8_t			*block;		/* owned */
	size_t			 fill;
	uint64_t		 offset;	/* bytes put so far */
	struct sink_limit	*limit;		/* may be NULL */
};

/* Creates the file, which must not exist.  On failure nothing is left. */
int	sink_open(struct sink *, const char *path, mode_t mode,
	    struct sink_limit *, struct err *err);
/* crc (may be NULL) is carried on over the bytes as the file gets them. */
int	sink_put(struct sink *, const void *data, size_t len, uint32_t *crc,
	    struct err *err);
/* Without a copy: where the next bytes may be put, *room of them, at least one; then
 * how many there are.  A block that is full is written. */
void	*sink_room(const struct sink *, size_t *room);
int	sink_filled(struct sink *, size_t len, struct err *err);
/* Writes the rest: only sink_close() may follow. */
int	sink_flush(struct sink *, struct err *err);
/* Writes the rest, syncs and closes: 0 when all of it is on the disk. */
int	sink_close(struct sink *, struct err *err);
/* Closes it and removes the file; also after sink_close() failed. */
void	sink_abandon(struct sink *);

#endif
