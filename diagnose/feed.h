/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.h - bytes of logs: files, directories of them, standard input.
 */
#ifndef HOLDFAST_DIAGNOSE_FEED_H
#define HOLDFAST_DIAGNOSE_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/map.h"

struct feed_seen;	/* feed_seen.c */
struct feed_store;	/* feed_spool.c */

enum stream_kind {
	STREAM_LOG,	/* output of one rank or of many */
	STREAM_KERNEL,	/* kernel messages of a node */
	STREAM_EXITS,	/* how ranks ended, as the agent wrote it */
	STREAM_ERROR	/* error.json of torchelastic */
};

/* Newlines before an offset of a stream. */
struct line_mark {
	size_t		 offset;
	uint64_t	 lines;
};

struct stream {
	char		*name;		/* file as given, or relative to its directory */
	char		*node;		/* from the path, NULL unknown */
	int		 rank;		/* from the path, -1 unknown */
	int		 local_rank;	/* likewise, where the rank is not told */
	bool		 goes_on;	/* the next stream is its next part */
	enum stream_kind kind;
	const char	*data;		/* unless borrowed, MAP_TAIL more are readable */
	size_t		 len;
	bool		 mapped;
	bool		 borrowed;
	struct map	 map;		/* when mapped */
	struct line_mark *marks;	/* see stream_mark() */
	size_t		 mark_count, mark_cap;
	uint64_t	 lines_before;	/* in the file, not among the bytes */
	bool		 renumbered;	/* they count lines of another form of it */
};

struct feed {
	struct stream	*streams;
	size_t		 count, cap;
	char		**missing;	/* "path: why" of what could not be read */
	size_t		 missing_count, missing_cap;
	size_t		 missing_more;	/* not listed, too many */
	size_t		 heap;		/* bytes of streams that are not mapped */
	struct feed_seen *seen;
	struct feed_store *store;
	uint64_t	spool_max;	/* bytes in TMPDIR; 0: by the space there */
	/* Told of the bytes unpacked so far from one file, when it is not NULL. */
	void		(*spooled)(uint64_t bytes, void *arg);
	void		*spooled_arg;
};

/* Adds what a path names: a file, a directory (searched to the bottom, names in
 * order, parts of a rotated log oldest first), "-" for standard input.  What was
 * added before under another name is passed over; what cannot be read is listed in
 * `missing`; only a lack of memory is an error. */
int	feed_add(struct feed *, const char *path, struct err *err);
/* Adds bytes of the caller, borrowed. */
int	feed_add_memory(struct feed *, const char *name, const char *data,
	    size_t len, struct err *err);
/* When all is added: reads from the names of all streams together what none tells
 * alone.  An error that says why when there is no stream at all. */
int	feed_settle(struct feed *, struct err *err);
void	feed_fini(struct feed *);

/* Lists why a file, or a part of it, is not diagnosed; -1 when memory is short. */
int	feed_add_missing(struct feed *, const char *name, const char *why);
/* A copy of `missing`, which the caller frees, and what was damaged while it was
 * read; NULL when memory is short. */
char	**feed_list_missing(const struct feed *, size_t *count);
/* A new empty stream, NULL when memory is short; feed_drop_stream() removes it
 * while it is the last one. */
struct stream *feed_add_stream(struct feed *, const char *name,
	    struct err *err);
void	feed_drop_stream(struct feed *);
/* Gives a stream its bytes, in place of those it had: from the heap, which it
 * then owns (MAP_TAIL zeros stand behind them), or from a page of a file on.
 * Small files are read, while that is not too much together; others are mapped,
 * or read where that is not possible. */
#define FEED_READ_MAX	((size_t)8192)
#define FEED_HEAP_MAX	((size_t)16 << 20)
void	feed_set_heap(struct feed *, struct stream *, char *data, size_t len);
/* Leaves the first n bytes out. */
void	feed_skip(struct feed *, struct stream *, size_t n);
int	feed_set_file(struct feed *, struct stream *, int fd, off_t offset,
	    size_t len, struct err *err);

/* Who reads a stream from its beginning tells how many newlines stand before
 * offsets, in order, so that stream_line() need not count them again; of no effect
 * where the stream was decoded from other lines, whose numbers it has. */
int	stream_mark(struct stream *, size_t offset, uint64_t lines,
	    struct err *err);
/* Number of the line, from 1, that holds an offset. */
uint64_t stream_line(const struct stream *, size_t offset);
/* Lines of the stream; one without an end counts. */
uint64_t stream_lines(const struct stream *);
/* Gives the memory of mapped pages between two offsets back. */
void	stream_release(const struct stream *, size_t from, size_t to);

#endif
