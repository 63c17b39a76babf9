/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_daemon.h - staging as long as a job runs: notices saves, copies them in a
 * thread, decides which directory the trainer sees, and takes snapshots.
 */
#ifndef HOLDFAST_CHECKPOINT_STAGE_DAEMON_H
#define HOLDFAST_CHECKPOINT_STAGE_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/stage.h"

struct stage_daemon_options {
	struct stage_options	 stage;		/* cancel is the daemon's */
	uint64_t		 budget;	/* bytes FROM may hold; 0: no limit */
	const char		*link;		/* what the trainer sees, or NULL */
	const char		*socket;	/* takes snapshots there, or NULL */
	bool			 once;		/* one round, then end */
	bool			 drop_unfinished;	/* first; no trainer runs */
	bool			 end_with_input;	/* when standard input ends */
	/* The trainer sees another directory now. */
	void			(*switched)(void *arg, bool fast, const char *why);
};

/*
 * Runs until told to end: by SIGTERM, SIGINT or the end of its input it copies what
 * is complete and ends; told twice, it ends at once.  Returns 0 with *lost the number
 * of complete checkpoints that are not durable, or -1.
 */
int	stage_daemon_run(const struct stage_daemon_options *, unsigned *lost,
	    struct err *err);

#endif
