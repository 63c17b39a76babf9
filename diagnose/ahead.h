/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.h - scans streams window by window, in threads ahead of the reader.
 */
#ifndef HOLDFAST_DIAGNOSE_AHEAD_H
#define HOLDFAST_DIAGNOSE_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "diagnose/feed.h"
#include "diagnose/rule.h"

struct ahead_hit {
	uint32_t	literal;
	uint32_t	start;		/* in the window */
};

/* A piece of a stream that ends at a line end where there is one. */
struct ahead_window {
	size_t		 from, to;	/* in the stream */
	size_t		 newlines;
	const struct ahead_hit *hits;	/* valid until the next call */
	size_t		 count;
	bool		 failed;	/* no memory */
};

struct ahead;

/* Will scan the streams first to last - 1, the last RULE_TAIL_BYTES of each with
 * the second scanner; exit records are left out.  threads 0 scans in the
 * reader's own. */
int	ahead_new(const struct scanner *, const struct scanner *tail,
	    const struct feed *, uint32_t first, uint32_t last, unsigned threads,
	    struct ahead **out, struct err *err);
/* Ends the threads. */
void	ahead_free(struct ahead *);
/* The next window of a stream; false behind its last one.  Streams must be asked
 * for in order; what is left of earlier ones is dropped. */
bool	ahead_next(struct ahead *, uint32_t stream, struct ahead_window *out);

/* Threads that are worth it for a feed: as many as processors may be used, at
 * most 8; none for a small one. */
unsigned ahead_threads(const struct feed *);

#endif
