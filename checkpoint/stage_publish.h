/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_publish.h - the last step of a copy: one rename to its place; for stage.c.
 */
#ifndef HOLDFAST_CHECKPOINT_STAGE_PUBLISH_H
#define HOLDFAST_CHECKPOINT_STAGE_PUBLISH_H

#include <stdbool.h>

#include "common/err.h"

/* Moves the synced copy at `from` to `to`, in place of what stands there, and syncs
 * the directories.  Afterwards either the old or the new one is there, whole; the new
 * one also after a failure, when only the syncing failed. */
int	publish_move(const char *from, const char *to, struct err *err);

/* What stands at `to` already was published from `from` (NULL: not known), perhaps by a
 * publish_move() that failed, or was interrupted: syncs that, then removes what it
 * replaced. */
int	publish_settle(const char *from, const char *to, struct err *err);

/* Removes what an interrupted copy left in `incoming`, and puts back what was set
 * aside for one that did not come. */
int	publish_recover(const char *incoming, const char *to, struct err *err);

/* The same names with the same sizes and times, as far as the file system of `copy`
 * keeps those. */
bool	publish_is_same(const char *original, const char *copy);

/* Where a checkpoint of that name is put together: NAME's slashes become '%'. */
char	*publish_incoming(const char *incoming, const char *name);

enum publish_there {
	PUBLISH_ABSENT,
	PUBLISH_THERE,		/* the same, or a link to the one in its place */
	PUBLISH_NAME		/* another link: a name, no checkpoint */
};

/* Whether what is to be published lies in its place already. */
enum publish_there publish_look(const char *original, const char *place);

#endif
