/* SPDX-License-Identifier: Apache-2.0 */
/*
 * action.h - the actions of the checkpoint verb; each returns the exit status.
 */
#ifndef HOLDFAST_CHECKPOINT_ACTION_H
#define HOLDFAST_CHECKPOINT_ACTION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/verb.h"
#include "checkpoint/checkpoint.h"

struct action_values {
	bool		 json, structure, full, list, undo;
	bool		 force, dry_run;
	bool		 xxhsum;
	bool		 once, drop_unfinished, end_with_input;
	bool		 write_manifest;
	int64_t		 jobs, before_step, quiet_ms;
	int64_t		 bandwidth, room;	/* bytes (a second) */
	int64_t		 keep, nodes;
	int64_t		 keep_last, keep_every, keep_newer_ms;	/* -1, 0, -1 */
	const char	*quarantine, *link, *socket, *staged, *node, *spikes;
};

/* paths: the n operands behind the action's name, at least one */
int	action_list(const struct verb *, const struct action_values *, int n,
	    char **paths);
int	action_verify(const struct verb *, const struct action_values *, int n,
	    char **paths);
int	action_latest(const struct verb *, const struct action_values *, int n,
	    char **paths);
int	action_quarantine(const struct verb *, const struct action_values *,
	    int n, char **paths);
int	action_stage(const struct verb *, const struct action_values *, int n,
	    char **paths);
int	action_select(const struct verb *, const struct action_values *, int n,
	    char **paths);
int	action_prune(const struct verb *, const struct action_values *, int n,
	    char **paths);
int	action_manifest(const struct verb *, const struct action_values *, int n,
	    char **paths);

/* Adds the checkpoint at path; of a folder that holds checkpoints, those. */
int	action_collect(struct checkpoints *, const char *path, struct err *err);

/* Says that memory is short; returns EXIT_USAGE. */
int	action_fail_memory(const struct verb *);

#endif
