/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holdfast-checkpoint.h - is this checkpoint whole, and which one is the newest
 * that is?
 *
 * The library reads files only.  It never resolves code named in a pickle, never
 * moves or deletes anything, never logs and never exits.  All functions may be
 * called from several threads at once.  Results belong to the caller and are
 * freed with the function named at them; free functions accept NULL.
 */
#ifndef HOLDFAST_CHECKPOINT_H
#define HOLDFAST_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is known of a checkpoint. */
enum holdfast_checkpoint_state {
	HOLDFAST_CHECKPOINT_VALID = 0,
	/* nothing wrong was seen, but not everything could be or was looked at */
	HOLDFAST_CHECKPOINT_UNVERIFIED,
	/* whole, and a floating-point tensor holds NaN or infinity */
	HOLDFAST_CHECKPOINT_NON_FINITE,
	/* the storage did not give the bytes (EIO, ESTALE, EACCES, ...) */
	HOLDFAST_CHECKPOINT_UNREADABLE,
	/* a part is missing: cut off, a shard absent, not finished */
	HOLDFAST_CHECKPOINT_INCOMPLETE,
	/* the bytes are wrong, and a second read said the same */
	HOLDFAST_CHECKPOINT_CORRUPT
};

/* "valid", "unverified", "non_finite", "unreadable", "incomplete", "corrupt" */
const char *holdfast_checkpoint_state_name(enum holdfast_checkpoint_state);

/* Unknown steps and sizes. */
#define HOLDFAST_CHECKPOINT_UNKNOWN	INT64_MIN

struct holdfast_checkpoint_options {
	/* structure only (milliseconds), or every byte */
	int		structure_only;
	/* threads; 0: the number of cores, at most 4 */
	int		threads;
	/* latest: only steps below this one; HOLDFAST_CHECKPOINT_UNKNOWN: all */
	int64_t		before_step;
	/* latest: leave out what changed within this time; 0: nothing */
	int64_t		quiet_ms;
};
#define HOLDFAST_CHECKPOINT_OPTIONS_INIT \
	{ 0, 0, HOLDFAST_CHECKPOINT_UNKNOWN, 0 }

struct holdfast_checkpoint_report {
	char				*path;
	char				*format;	/* NULL: not recognised */
	int64_t				 step;		/* or ..._UNKNOWN */
	enum holdfast_checkpoint_state	 state;
	char				*reason;	/* NULL when valid */
	int64_t				 size_bytes;	/* or ..._UNKNOWN */
	int64_t				 mtime_ns;	/* since 1970 */
	uint64_t			 nonfinite_tensors;
	uint64_t			 nonfinite_values;
};

struct holdfast_checkpoint_list {
	/* the newest valid one at [0] when `found`, then what was skipped on the
	 * way to it, newest first; without `found` all are skipped ones */
	struct holdfast_checkpoint_report	*reports;
	size_t					 n_reports;
	int					 found;
};

/*
 * Verifies one checkpoint (a file, or a folder that is one).  options may be
 * NULL.  Returns 0 with *out set whatever the state is; -1 when memory is short
 * or the path is a folder without a checkpoint's layout, with one line in
 * error[error_size] (which may be NULL).
 */
int	holdfast_checkpoint_verify(const char *path,
	    const struct holdfast_checkpoint_options *options,
	    struct holdfast_checkpoint_report **out, char *error,
	    size_t error_size);
void	holdfast_checkpoint_report_free(struct holdfast_checkpoint_report *);

/*
 * Walks the checkpoints of a save directory from the newest to the oldest and
 * stops at the first valid one.  Returns 0 with *out set, -1 when the directory
 * cannot be read.
 */
int	holdfast_checkpoint_latest(const char *dir,
	    const struct holdfast_checkpoint_options *options,
	    struct holdfast_checkpoint_list **out, char *error,
	    size_t error_size);
void	holdfast_checkpoint_list_free(struct holdfast_checkpoint_list *);

#ifdef __cplusplus
}
#endif
#endif
