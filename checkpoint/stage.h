/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.h - staging: checkpoints are saved to a fast directory, and copied from
 * there to a durable one while training goes on.
 *
 * What is complete and valid in FROM is copied to TO/.incoming, synced, and renamed
 * to its place in TO; then it is durable.  The trackers of the trainer follow when
 * what they name is durable.  So a crash at any moment leaves TO with whole
 * checkpoints alone, and what was not durable yet in FROM.
 */
#ifndef HOLDFAST_CHECKPOINT_STAGE_H
#define HOLDFAST_CHECKPOINT_STAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

#define STAGE_INCOMING	".incoming"	/* in TO; a dot hides it from trainers */

enum stage_kind {
	STAGE_DURABLE,		/* it is in TO, whole and synced */
	STAGE_REFUSED,		/* broken or not finite: stays in FROM alone */
	STAGE_DROPPED,		/* removed from FROM, durable or never finished */
	STAGE_FAILED,		/* not copied now; tried again */
	STAGE_LOST		/* a snapshot that could not be written */
};

struct stage_event {
	enum stage_kind	 kind;
	const char	*name;		/* of the checkpoint, relative to FROM and TO */
	const char	*why;		/* NULL for STAGE_DURABLE */
	int64_t		 step;		/* or REPORT_UNKNOWN */
	uint64_t	 bytes;
	int64_t		 ms;		/* that the copy took */
};

struct stage_options {
	const char		*from, *to;
	uint64_t		 bytes_per_s;	/* 0: no limit */
	int64_t			 keep;		/* durable ones that stay in FROM */
	int64_t			 quiet_ms;	/* a folder untouched so long is whole */
	int64_t			 nodes;		/* whose parts make a checkpoint; 0, 1 */
	const char		*node;		/* this one's name, when several */
	const atomic_bool	*cancel;	/* may be NULL */
	/* from the thread that runs the pass */
	void			(*tell)(void *arg, const struct stage_event *);
	void			*tell_arg;
};

struct stage;

/* Opens both directories (TO is created), takes the lock that keeps a second one
 * away (ERR_BUSY), and clears what an earlier one left half-done. */
int	stage_open(const struct stage_options *, struct stage **out,
	    struct err *err);
void	stage_close(struct stage *);

/* Removes from FROM what is incomplete and did not change since then (nanoseconds
 * since 1970): what a trainer that is gone began to write. */
int	stage_drop_unfinished(struct stage *, int64_t since_ns, struct err *err);

struct stage_pass {
	unsigned	waiting;	/* may still be written */
	bool		unquiet;	/* something changed a moment ago */
	int64_t		started_ns;	/* since 1970 */
	unsigned	failed;		/* to be tried again */
	uint64_t	largest;	/* bytes of the largest one seen */
};

/* One round: copies what became complete, oldest first; blocks as long as that
 * takes.  Returns 0, or -1 when FROM cannot be read or the round was cancelled
 * (ERR_BUSY). */
int	stage_run(struct stage *, struct stage_pass *, struct err *err);

/* When no trainer runs any more: gives the room in FROM back, all of it when nothing
 * is left that is not durable. */
int	stage_finish(struct stage *, struct err *err);

#endif
