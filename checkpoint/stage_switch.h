/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_switch.h - decides which directory the trainer sees: the fast one as long as
 * another save fits there, else the durable one.  The link changes between saves
 * alone: a save that is cut in two would be lost.
 */
#ifndef HOLDFAST_CHECKPOINT_STAGE_SWITCH_H
#define HOLDFAST_CHECKPOINT_STAGE_SWITCH_H

#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/stage_daemon.h"

struct stage_switch {
	const struct stage_daemon_options	*o;
	bool	 fast;		/* what the link names */
	bool	 failed;	/* it could not be changed, and that was said */
};

/* The options stay the caller's, and have a link. */
void	stage_switch_begin(struct stage_switch *,
	    const struct stage_daemon_options *);
/* Looks at the room, and changes the link when that is due.  last is what the last
 * round saw; began_ns (since 1970) is when the trainer started; rests: no round is
 * under way. */
void	stage_switch_look(struct stage_switch *, const struct stage_pass *last,
	    int64_t began_ns, bool rests);

#endif
