/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint.h - one checkpoint, whatever its format: looked at, then checked.
 */
#ifndef HOLDFAST_CHECKPOINT_CHECKPOINT_H
#define HOLDFAST_CHECKPOINT_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "checkpoint/format.h"
#include "checkpoint/report.h"

#define CHECKPOINT_THREADS_MAX	64

struct checkpoint {
	char			*path;		/* owned */
	const struct format	*format;	/* NULL: not recognised */
	bool			 is_dir;
	bool			 held;		/* latest: not judged, left out */
	int64_t			 name_step;	/* or REPORT_UNKNOWN */
	int64_t			 size_bytes;	/* of its parts; or REPORT_UNKNOWN */
	int64_t			 mtime_ns;	/* the newest of its parts */
	struct report		 report;
	struct parts		 parts;
};

/* Recognises path, lists its parts and says what is missing.  Returns 0 whatever
 * was found, -1 when memory is short. */
int	checkpoint_look(struct checkpoint *, const char *path);
void	checkpoint_fini(struct checkpoint *);

/* The step its files tell, otherwise its name's, otherwise REPORT_UNKNOWN. */
int64_t	checkpoint_step(const struct checkpoint *);

/* Only time tells whether it is still written: what makes it whole is not written
 * last.  (A file ends with that.) */
bool	checkpoint_needs_quiet(const struct checkpoint *);

/* The name of the format for people and JSON; NULL when not recognised. */
const char *checkpoint_format_name(const struct checkpoint *);

struct checkpoint_options {
	bool	structure_only;
	/* what its manifest says was found valid, and is unchanged, is not read */
	bool	trust_manifest;
	/* keep the digests of what is read, for manifest_write() */
	bool	keep_digests;
	int	threads;		/* 0: cores, at most 4 */
	/* told the bytes read so far in all, from any thread; may be NULL */
	void	(*progress)(void *arg, uint64_t bytes);
	void	*progress_arg;
};

/*
 * Checks the parts of n checkpoints, several files at a time, and tells done (may
 * be NULL) each checkpoint in order as soon as it and those before it are ready.
 * Findings go to their reports.  "corrupt" is said only after a second read.
 * Returns 0, or -1 when threads or memory are short.
 */
int	checkpoint_check(struct checkpoint *list, size_t n,
	    const struct checkpoint_options *,
	    void (*done)(void *arg, struct checkpoint *), void *done_arg,
	    struct err *err);

struct checkpoints {
	struct checkpoint	*list;
	size_t			 n, cap;
};

/* The checkpoints in a save directory, newest first: looked at, checked for structure,
 * compared with one another (expect.h).  Returns 0, or -1 when the directory cannot be
 * read. */
int	checkpoints_find(struct checkpoints *, const char *dir, int threads,
	    struct err *err);
/* As checkpoints_find() for what lies beside path, itself included, and differs from
 * it by numbers in the name only. */
int	checkpoints_find_like(struct checkpoints *, const char *path, int threads,
	    struct err *err);
/* Those of two directories together; of two of one step that of `first` comes
 * before the other.  A `first` that does not exist is empty. */
int	checkpoints_find_both(struct checkpoints *, const char *first,
	    const char *dir, int threads, struct err *err);
/* As checkpoints_find() without the structure check and in the order of names. */
int	checkpoints_list(struct checkpoints *, const char *dir, struct err *err);
void	checkpoints_fini(struct checkpoints *);
/* Moves all of `from` to the end of `to`; 0, or -1 when memory is short.  `from` is
 * empty then in any case. */
int	checkpoints_move(struct checkpoints *to, struct checkpoints *from,
	    struct err *err);

struct latest_options {
	int64_t	before_step;		/* or REPORT_UNKNOWN */
	int64_t	quiet_ms;
	int64_t	now_ns;			/* since 1970; for quiet_ms */
	bool	structure_only;
	bool	full;			/* read what its manifest stands for, too */
	bool	keep_digests;		/* of the chosen one */
	int	threads;
};

/*
 * Of checkpoints as checkpoints_find() gives them: the index of the newest valid
 * one, or -1.  All before it have a report that says why they were skipped; with
 * -1 all have.
 */
int	checkpoints_latest(struct checkpoints *, const struct latest_options *,
	    long *chosen, struct err *err);

#endif
