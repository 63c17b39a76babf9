/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loss.h - decides whether the loss has risen for good.
 *
 * Pure.  The level is the median of the newest losses, its noise their median absolute
 * deviation, so that single outliers move neither.  A loss counts as high above both a
 * multiple of the level (by half a nat at least) and six times the noise; so many of
 * them in a row are a spike, which began with the first one.  One that comes down before
 * was none, and the high ones are left out of the level meanwhile.  Until the level has
 * settled after a start (warm-up, a reset of the optimizer), nothing is high.
 */
#ifndef HOLDFAST_SUPERVISOR_LOSS_H
#define HOLDFAST_SUPERVISOR_LOSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOSS_WINDOW	128
#define LOSS_SETTLED	32	/* losses after a start */

struct loss_limits {
	double	factor;		/* of the level; 0: no spike is ever seen */
	int	count;		/* in a row */
};

struct loss {
	struct loss_limits	 limits;
	double			 ring[LOSS_WINDOW];
	size_t			 n;		/* that were added in all */
	int			 high;		/* in a row, so far */
	int64_t			 onset;		/* step of the first of them */
	int64_t			 step;		/* of the newest */
	double			 level;		/* when the spike was seen */
};

void	loss_begin(struct loss *, const struct loss_limits *);
/* Another attempt goes on from a checkpoint: the level is what it was.  Otherwise a run
 * that went back would take the height it fled from for its level. */
void	loss_resume(struct loss *);
/* True when this loss, which is finite, makes it a spike: of `onset' and `level'.  A
 * step that is not newer is left out. */
bool	loss_add(struct loss *, int64_t step, double value);

#endif
