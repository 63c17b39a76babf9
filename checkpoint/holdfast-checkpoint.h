/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holdfast-checkpoint.h - is this checkpoint whole, which one is the newest that
 * is, and saving without waiting for the storage.
 *
 * The library never resolves code named in a pickle, never moves or deletes
 * anything, never logs and never exits.  All functions may be called from several
 * threads at once.  Results belong to the caller and are freed with the function
 * named at them; free functions accept NULL.
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
	/* structure only (milliseconds), or every byte; of VALID then only that much
	 * is known */
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

/*
 * Copies the path of the newest valid checkpoint of a directory to path[path_size]
 * and its step (or ..._UNKNOWN) to *step, which may be NULL.  Returns 1, 0 when none
 * is valid (the error says why the newest is not), or -1.
 */
int	holdfast_checkpoint_latest_valid(const char *dir, char *path,
	    size_t path_size, int64_t *step, char *error, size_t error_size);

/*
 * Snapshots.
 *
 * A rank copies its state into memory that it shares with another process, and trains
 * on; that process writes a file which torch.load() reads.  It is
 * `holdfast checkpoint stage --socket PATH', which `holdfast run --stage' starts.
 *
 *	open, reserve			once
 *	begin, snapshot..., set_*, commit	for each checkpoint
 *	wait, close			at the end
 *
 * There is room for two snapshots.  While one is written the next one is taken; when
 * a third one begins before the second's turn has come, it takes the second's place.
 * A rank or that process may die at any moment; what was committed is written as long
 * as one of the two lives.
 *
 * All of these return HOLDFAST_CHECKPOINT_OK or one of the other codes, with a line
 * in error[error_size] (which may be NULL).  After LOST the rank saves by itself; the
 * connection is made again in the background.
 */
enum holdfast_checkpoint_code {
	HOLDFAST_CHECKPOINT_OK = 0,
	HOLDFAST_CHECKPOINT_NO_SERVER = -1,	/* nobody listens there */
	HOLDFAST_CHECKPOINT_LOST = -2,		/* the other process is gone */
	HOLDFAST_CHECKPOINT_INVALID = -3,	/* an argument, or the order of calls */
	HOLDFAST_CHECKPOINT_NO_MEMORY = -4,	/* no room for the snapshot */
	HOLDFAST_CHECKPOINT_TIMEOUT = -5,
	HOLDFAST_CHECKPOINT_FAILED = -6,	/* it could not be written */
	HOLDFAST_CHECKPOINT_REPLACED = -7	/* a newer one took its place */
};

/* The names are those of torch: HOLDFAST_CHECKPOINT_BF16 is torch.bfloat16. */
enum holdfast_checkpoint_dtype {
	HOLDFAST_CHECKPOINT_F64 = 1,
	HOLDFAST_CHECKPOINT_F32 = 2,
	HOLDFAST_CHECKPOINT_F16 = 3,
	HOLDFAST_CHECKPOINT_BF16 = 4,
	HOLDFAST_CHECKPOINT_I64 = 5,
	HOLDFAST_CHECKPOINT_I32 = 6,
	HOLDFAST_CHECKPOINT_I16 = 7,
	HOLDFAST_CHECKPOINT_I8 = 8,
	HOLDFAST_CHECKPOINT_U8 = 9,
	HOLDFAST_CHECKPOINT_BOOL = 10,
	HOLDFAST_CHECKPOINT_C64 = 11,
	HOLDFAST_CHECKPOINT_C128 = 12,
	HOLDFAST_CHECKPOINT_U16 = 13,
	HOLDFAST_CHECKPOINT_U32 = 14,
	HOLDFAST_CHECKPOINT_U64 = 15,
	HOLDFAST_CHECKPOINT_F8_E4M3FN = 16,
	HOLDFAST_CHECKPOINT_F8_E5M2 = 17,
	HOLDFAST_CHECKPOINT_F8_E4M3FNUZ = 18,
	HOLDFAST_CHECKPOINT_F8_E5M2FNUZ = 19,
	HOLDFAST_CHECKPOINT_F8_E8M0FNU = 20
};

struct holdfast_checkpoint_client;

/* socket_path NULL: that of HOLDFAST_STAGE_SOCKET.  One connection a rank. */
int	holdfast_checkpoint_open(const char *socket_path,
	    struct holdfast_checkpoint_client **out, char *error,
	    size_t error_size);
/* Ends the connection; what was committed is still written.  No other thread may be
 * inside a call.  A forked child must not call it. */
void	holdfast_checkpoint_close(struct holdfast_checkpoint_client *);

/* Asks for room for two snapshots of so many bytes.  Returns at once: the memory is
 * made ready in the background, which the first snapshot need not wait for then. */
int	holdfast_checkpoint_reserve(struct holdfast_checkpoint_client *,
	    uint64_t bytes, char *error, size_t error_size);

/*
 * Begins a snapshot.  world is the number of ranks that save this step: 1 makes the
 * file stepNNNNNNNN.pt, more a folder stepNNNNNNNN with a file for each (such as
 * rank-00000-of-00002.pt), which appears when all of them are written.  With a
 * separator other than 0 names are paths: with '/', "model/w" is w in the dict model.
 */
int	holdfast_checkpoint_begin(struct holdfast_checkpoint_client *, int64_t step,
	    int rank, int world, char separator, char *error, size_t error_size);

/* Copies a tensor that lies in the memory of the host, row by row without gaps.  The
 * shape has ndim lengths; bytes must be what it takes. */
int	holdfast_checkpoint_snapshot(struct holdfast_checkpoint_client *,
	    const char *name, int dtype, int ndim, const int64_t *shape,
	    const void *data, uint64_t bytes, char *error, size_t error_size);
/* Values beside tensors. */
int	holdfast_checkpoint_set_int(struct holdfast_checkpoint_client *,
	    const char *name, int64_t value, char *error, size_t error_size);
int	holdfast_checkpoint_set_float(struct holdfast_checkpoint_client *,
	    const char *name, double value, char *error, size_t error_size);
int	holdfast_checkpoint_set_bool(struct holdfast_checkpoint_client *,
	    const char *name, int value, char *error, size_t error_size);
int	holdfast_checkpoint_set_none(struct holdfast_checkpoint_client *,
	    const char *name, char *error, size_t error_size);
/* UTF-8 */
int	holdfast_checkpoint_set_text(struct holdfast_checkpoint_client *,
	    const char *name, const char *text, char *error, size_t error_size);
int	holdfast_checkpoint_set_bytes(struct holdfast_checkpoint_client *,
	    const char *name, const void *data, uint64_t bytes, char *error,
	    size_t error_size);

/* Hands the snapshot over and returns; the memory of the tensors was free to change
 * since each of them was copied. */
int	holdfast_checkpoint_commit(struct holdfast_checkpoint_client *, char *error,
	    size_t error_size);
/* Forgets the snapshot that was begun, if any. */
int	holdfast_checkpoint_abort(struct holdfast_checkpoint_client *, char *error,
	    size_t error_size);
/* Waits until the newest committed snapshot is durable, for timeout_ms at most (0:
 * asks only, -1: without end), and tells what became of it. */
int	holdfast_checkpoint_wait(struct holdfast_checkpoint_client *,
	    int64_t timeout_ms, char *error, size_t error_size);

#ifdef __cplusplus
}
#endif
#endif
