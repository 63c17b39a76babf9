/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow_file.h - one log that grows while it is read, by its path: also when it is
 * not there yet, is replaced, or is cut.
 */
#ifndef HOLDFAST_DIAGNOSE_FOLLOW_FILE_H
#define HOLDFAST_DIAGNOSE_FOLLOW_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/buf.h"
#include "diagnose/feed_spool.h"
#include "diagnose/live.h"

#define FOLLOW_PIECES	8	/* replaced files that are still held open */

struct follow_file {
	const char	*path;		/* "-": standard input; borrowed */
	struct rule_set	*set;
	struct live_calls calls;
	int		 fd;		/* -1 while there is none */
	dev_t		 dev;
	ino_t		 ino;
	uint64_t	 offset;	/* read so far */
	struct live	*live;
	char		 tail[64];	/* what was read last: others when it was cut */
	size_t		 tail_len;
	bool		 cut;
	bool		 at_end;	/* of what was there when it was read last */
	bool		 ended;		/* standard input only: no more will come */
	int		 pieces[FOLLOW_PIECES];
	struct buf	 piece_kept[FOLLOW_PIECES];	/* see kept */
	size_t		 piece_count;
	uint64_t	 dropped_pieces;
	uint64_t	 cut_bytes;	/* that were read and cannot be read again */
	struct buf	 lost;		/* lines of findings among them */
	struct buf	 kept;		/* of findings in what is still there */
	uint64_t	 kept_line;	/* newlines in kept */
	struct feed_spool spool;	/* of standard input */
};

/* calls are copied; path is borrowed.  The feed is the one that follow_file_feed()
 * will get; standard input goes there first. */
int	follow_file_init(struct follow_file *, const char *path,
	    struct rule_set *, const struct live_calls *, struct feed *,
	    struct err *err);
void	follow_file_fini(struct follow_file *);

/* Reads at most `most` bytes and gives them to the rules; returns how many. */
size_t	follow_file_read(struct follow_file *, size_t most);
/* At the end of a file, or before there is one: looks whether the path names
 * another file now, or the file was cut.  True when there is a new beginning to
 * read; watches on the path have to be renewed then. */
bool	follow_file_check(struct follow_file *);

/* Remembers a line for the case that the file is cut. */
void	follow_file_keep(struct follow_file *, const struct live_match *);
/* Training went on: what was before the file that is read now does not count. */
void	follow_file_forget(struct follow_file *);

/* True for "-". */
bool	follow_file_is_input(const struct follow_file *);
/* Adds everything that was read, the oldest first. */
int	follow_file_feed(struct follow_file *, struct feed *, struct err *err);

#endif
