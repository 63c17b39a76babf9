/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_room.h - is there room for another save in memory, and which directory the
 * trainer sees.
 *
 * The trainer saves through a symbolic link.  It names the fast directory as long as
 * another checkpoint fits there: into the budget, the file system, the memory of the
 * machine, and that of the cgroup, whose limit kills ranks.  Otherwise it names the
 * durable one, and saves are slow but safe.
 */
#ifndef HOLDFAST_CHECKPOINT_STAGE_ROOM_H
#define HOLDFAST_CHECKPOINT_STAGE_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

#define ROOM_UNKNOWN	UINT64_MAX

struct room {
	uint64_t	 free;		/* the least of these; ROOM_UNKNOWN: no limit */
	const char	*bound;		/* which one that is, for a person */
};

/* What may still be written to `dir`, of which `budget` bytes (0: all) may be used. */
int	room_read(const char *dir, uint64_t budget, struct room *, struct err *err);

/* Bytes left below the memory limits of this process's cgroups; ROOM_UNKNOWN
 * without one.  root is "" but in tests. */
uint64_t room_of_cgroup(const char *root);

/* Points the link to target in one step; makes it when it is absent. */
int	room_link(const char *link, const char *target, struct err *err);
/* True when the link names target. */
bool	room_is_linked(const char *link, const char *target);

#endif
