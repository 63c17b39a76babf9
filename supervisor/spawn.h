/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn.h - starts one main process of an attempt: a rank, or the launcher that
 * starts the ranks itself.
 */
#ifndef HOLDFAST_SUPERVISOR_SPAWN_H
#define HOLDFAST_SUPERVISOR_SPAWN_H

#include <cjson/cJSON.h>
#include <sys/types.h>

#include "common/err.h"

struct spawn_plan {
	char		**argv;		/* borrowed words, NULL-terminated */
	const char	*cwd;
	const char	*error_dir;	/* for TORCHELASTIC_ERROR_FILE */
	int		 count;		/* main processes */
	int		 rank0;		/* global rank of the first; -1: a launcher */
};

/* Reads the agent's spawn order; borrows its texts. */
int	spawn_plan_read(const cJSON *order, struct spawn_plan *out,
	    struct err *err);
void	spawn_plan_fini(struct spawn_plan *);

/* Starts main process i with both output streams on output_fd, standard input
 * /dev/null, in its own session.  0 only after exec has worked; otherwise err
 * names the path and errno. */
int	spawn_main(const struct spawn_plan *, int i, int output_fd, pid_t *pid,
	    struct err *err);

#endif
