/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_notes.h - the small files beside the checkpoints of a save directory: the
 * trackers by which a trainer finds its newest one, and what else it keeps there.
 */
#ifndef HOLDFAST_CHECKPOINT_STAGE_NOTES_H
#define HOLDFAST_CHECKPOINT_STAGE_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buf.h"
#include "common/err.h"

#define NOTE_MAX	((size_t)64 << 10)	/* bytes; larger files are no trackers */

struct note {
	char		*name;
	struct buf	 text;		/* of a file, or the target of a link */
	mode_t		 mode;
	bool		 is_link;
};

struct notes {
	struct note	*list;
	size_t		 n, cap;
	bool		 young;		/* some were left out for their age */
	/* one that is there and could not be read, and why; owned, NULL: none */
	char		*unread;
	struct err	 why;
};

/* Takes in those of dir that are not empty and did not change since then
 * (nanoseconds since 1970): most trainers write them in place.  notes_fini() in any
 * case. */
int	notes_read(struct notes *, const char *dir, int64_t since_ns,
	    struct err *err);
void	notes_fini(struct notes *);
/* True when the text may name that checkpoint: by its last component or its step. */
bool	notes_mention(const struct note *, const char *name, int64_t step);
/* True when it stands in dir as it is. */
bool	notes_stand(const struct note *, const char *dir);
/* It does not stand in dir, and names a checkpoint there. */
bool	notes_are_due(const struct note *, const char *dir);
/* Writes it to dir unless it stands there; whole or not at all.  A link is left out as
 * long as dir lacks what it leads to. */
int	notes_write(const struct note *, const char *dir, struct err *err);

#endif
