/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_spool.h - bytes that come one after the other become those of a stream.
 *
 * Few of them stay in memory; more go to a file in TMPDIR that has no name any
 * more, and are mapped at the end.  All streams of a feed share that file, one
 * spool at a time.
 */
#ifndef HOLDFAST_DIAGNOSE_FEED_SPOOL_H
#define HOLDFAST_DIAGNOSE_FEED_SPOOL_H

#include "common/buf.h"
#include "diagnose/feed.h"

struct feed_spool {
	struct feed	*feed;
	struct buf	 heap;
	size_t		 heap_max;
	bool		 in_file;
	bool		 keep_all;	/* rather an error than the end alone */
	uint64_t	 start;		/* in the file */
	uint64_t	 len;
	uint64_t	 dropped;	/* bytes at the beginning ... */
	uint64_t	 dropped_lines;	/* ... and their newlines */
};

void	feed_spool_init(struct feed_spool *, struct feed *);
/* Where there would be more than TMPDIR should take, the beginning gives way: a
 * failure is told at the end.  ERR_LIMIT where that is not possible; what was
 * written before stays. */
int	feed_spool_write(struct feed_spool *, const void *data, size_t len,
	    struct err *err);
/* Hands everything to a stream, in place of the bytes it had. */
int	feed_spool_finish(struct feed_spool *, struct stream *, struct err *err);
void	feed_spool_fini(struct feed_spool *);

/* Closes the file of a feed; its streams stay. */
void	feed_spool_close(struct feed *);

#endif
