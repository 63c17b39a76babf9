/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_stage.h - the places of a run that stages its checkpoints (--stage).
 *
 *   fast     where saves go: DIR/NAME-HASH of --stage SIZE:DIR, in memory by default
 *   durable  --checkpoint-dir
 *   link     RUN/stage, what the trainer is told: one of the two
 *   socket   HOLDFAST_STAGE_SOCKET: takes snapshots (holdfast-checkpoint.h)
 */
#ifndef HOLDFAST_SUPERVISOR_RUN_STAGE_H
#define HOLDFAST_SUPERVISOR_RUN_STAGE_H

#include <limits.h>
#include <stdbool.h>

#include "supervisor/run_spec.h"

struct run_stage {
	bool	on;
	int64_t	bytes;			/* that the fast directory may hold */
	char	fast[PATH_MAX];
	char	durable[PATH_MAX];
	char	link[PATH_MAX];
	char	socket[PATH_MAX];
};

/* Checks --stage and what it needs; before the run has a directory. */
int	run_stage_check(const struct run_options *, struct err *err);
/* Makes the fast directory, or checks that it is ours alone: others may write beside
 * it, and what lies in it is loaded by the trainer. */
int	run_stage_make_fast(const struct run_stage *, struct err *err);
/* The places of a run that was checked. */
void	run_stage_places(const struct run_spec *, struct run_stage *out);

#endif
