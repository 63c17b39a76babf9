/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hang.h - decides whether an attempt has come to a stop without an error.
 *
 * Pure: no I/O, no clock.  Told of steps, output, phases that the log announces, and
 * samples of what the ranks' processes do; says when to suspect a hang, and when
 * several of these agree so long that the attempt should be ended.
 *
 * A phase that is silent by its nature (start-up, compiling, evaluating, saving) has
 * limits of its own, learnt from this run.  Processes that compute, and files that
 * grow, delay the end: a collective that waits on a GPU spins, and so does a long
 * evaluation.  State belongs to one attempt; what was learnt goes on to the next one.
 */
#ifndef HOLDFAST_SUPERVISOR_HANG_H
#define HOLDFAST_SUPERVISOR_HANG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HANG_GAPS	256	/* the newest gaps between steps */
#define HANG_SUSPECT_MS	30000	/* at least */
#define HANG_WHY_MAX	256

enum hang_phase {
	HANG_STARTUP,		/* until the first step */
	HANG_TRAINING,
	HANG_COMPILE,
	HANG_EVALUATION,
	HANG_CHECKPOINT,
	HANG_SHUTDOWN,		/* the last step is done */
	HANG_PHASES
};

struct hang_limits {
	int64_t	idle_ms;	/* nothing moves: at least so long; 0: never end it */
	int64_t	busy_ms;	/* processors are busy, or a phase is silent */
	int64_t	start_ms;	/* until the first step */
};

/* What all ranks of the attempt did since the sample before. */
struct hang_sample {
	bool	known;		/* of every rank */
	bool	idle;		/* no rank used a processor to speak of */
	bool	io;		/* some rank read or wrote files in earnest */
};

enum hang_state {
	HANG_NONE,
	HANG_SUSPECT,		/* look closer */
	HANG_CERTAIN		/* end the attempt */
};

/* Survives the attempt. */
struct hang_learnt {
	int64_t	gaps_ms[HANG_GAPS];	/* between steps, a ring */
	size_t	n_gaps;			/* that were added in all */
	int64_t	longest_ms[HANG_PHASES];	/* that ended well */
};

struct hang {
	struct hang_limits	 limits;
	struct hang_learnt	*learnt;	/* the caller's */
	enum hang_phase		 phase;
	enum hang_state		 state;
	int64_t			 step;		/* INT64_MIN before the first one */
	/* monotonic times, 0: not yet */
	int64_t			 begun_ns;
	int64_t			 step_ns;	/* of the newest step */
	int64_t			 phase_ns;	/* when the log last said what is done */
	int64_t			 output_ns;
	int64_t			 io_ns;
	int64_t			 idle_ns;	/* since when all are idle */
	int64_t			 checked_ns;
};

void	hang_begin(struct hang *, const struct hang_limits *,
	    struct hang_learnt *, int64_t now_ns);
/* A line with a step; one that is not newer is output and no more. */
void	hang_step(struct hang *, int64_t now_ns, int64_t step);
void	hang_output(struct hang *, int64_t now_ns);
/* A line said what is done now. */
void	hang_announce(struct hang *, int64_t now_ns, enum hang_phase);
void	hang_take(struct hang *, int64_t now_ns, const struct hang_sample *);
/*
 * To be called every few seconds; every_ns is how often.  A call that comes much too
 * late, because this process was stopped as well, or the machine, moves all times by as
 * much.  why says what was seen, for a person, unless the state is HANG_NONE.
 */
enum hang_state hang_check(struct hang *, int64_t now_ns, int64_t every_ns,
	    char why[HANG_WHY_MAX]);

/* The gap between steps below which p percent of the newest ones are; 0 when there are
 * fewer than 8. */
int64_t	hang_percentile_ms(const struct hang_learnt *, int p);

/* The phase that a line of output announces; -1: none.  The line need not be ended. */
int	hang_phase_of(const char *line, size_t len);
const char *hang_phase_name(enum hang_phase);

#endif
