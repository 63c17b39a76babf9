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

enum stream_kind {
	STREAM_LOG,	/* output of one rank or of many */
	STREAM_KERNEL,	/* kernel messages of a node */
	STREAM_EXITS,	/* how ranks ended, as the agent wrote it */
	STREAM_ERROR	/* error.json of torchelastic */
};

struct stream {
	char		*name;		/* file as given, or relative to its directory */
	char		*node;		/* from the path, NULL unknown */
	int		 rank;		/* from the path, -1 unknown */
	enum stream_kind kind;
	const char	*data;
	size_t		 len;
	bool		 mapped;
	bool		 borrowed;
};

struct feed {
	struct stream	*streams;
	size_t		 count, cap;
	char		**missing;	/* "path: why" of what could not be read */
	size_t		 missing_count, missing_cap;
};

/* Adds what a path names: a file, a directory (searched to the bottom, names in
 * order), "-" for standard input.  A path that cannot be read at all is an
 * error; a file inside a directory that cannot is listed in `missing`. */
int	feed_add(struct feed *, const char *path, struct err *err);
/* Adds bytes of the caller, borrowed. */
int	feed_add_memory(struct feed *, const char *name, const char *data,
	    size_t len, struct err *err);
void	feed_fini(struct feed *);

#endif
