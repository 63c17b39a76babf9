/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_judged.h - what staging made of each checkpoint, as it was then: not worth a
 * second look until it changes; for stage.c.
 */
#ifndef HOLDFAST_CHECKPOINT_STAGE_JUDGED_H
#define HOLDFAST_CHECKPOINT_STAGE_JUDGED_H

#include "checkpoint/checkpoint.h"

enum judged_as {
	JUDGED_DURABLE,		/* it is in TO */
	JUDGED_MOVED,		/* in its place, but that may not be on the disk */
	JUDGED_REFUSED,		/* broken */
	JUDGED_BROUGHT		/* waits in TO for the parts of other nodes */
};

struct judged {
	char		*name;		/* owned */
	int64_t		 mtime_ns, size_bytes;
	enum judged_as	 what;
	bool		 kept;
};

struct judged_list {
	struct judged	*list;
	size_t		 n, cap;
};

/* NULL when it was not judged as it is now. */
struct judged *judged_find(const struct judged_list *, const char *name,
	    const struct checkpoint *);
/* Replaces what was known of the name.  Without memory it is judged again. */
void	judged_set(struct judged_list *, const char *name,
	    const struct checkpoint *, enum judged_as);
/* Between the two, names are kept; the end forgets the others. */
void	judged_begin(struct judged_list *);
void	judged_keep(struct judged_list *, const char *name);
void	judged_end(struct judged_list *);
void	judged_fini(struct judged_list *);

#endif
