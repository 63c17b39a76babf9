/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loss.c - see loss.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/loss.h"

#define NOISES		6.0
#define RISE_MIN	0.5	/* of losses near zero, as of policies, many times
				 * more is nothing; those of language are in nats */
#define MAD_TO_SIGMA	1.4826	/* of a normal distribution */

void
loss_begin(struct loss *l, const struct loss_limits *limits)
{
	*l = (struct loss){ .limits = *limits, .onset = INT64_MIN,
	    .step = INT64_MIN };
}

void
loss_resume(struct loss *l)
{
	l->high = 0;
	l->onset = l->step = INT64_MIN;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(double *list, size_t n)
{
	qsort(list, n, sizeof(*list), compare);
	return n % 2 == 1 ? list[n / 2] : (list[n / 2 - 1] + list[n / 2]) / 2;
}

/* What a loss must exceed to be high. */
static double
threshold(struct loss *l)
{
	double list[LOSS_WINDOW], level, noise;
	size_t i, n = l->n < LOSS_WINDOW ? l->n : LOSS_WINDOW;

	memcpy(list, l->ring, n * sizeof(*list));
	level = median(list, n);
	for (i = 0; i < n; i++)
		list[i] = fabs(l->ring[i] - level);
	noise = MAD_TO_SIGMA * median(list, n);
	l->level = level;
	/* A loss may be negative (a log-likelihood, a reward): the factor is then
	 * one of its distance from zero. */
	return fmax(level + fmax((l->limits.factor - 1) * fabs(level), RISE_MIN),
	    level + NOISES * noise);
}

bool
loss_add(struct loss *l, int64_t step, double value)
{
	if (l->step != INT64_MIN && step <= l->step)
		return false;
	l->step = step;
	if (l->limits.factor > 0 && l->n >= LOSS_SETTLED && value > threshold(l)) {
		if (l->high++ == 0)
			l->onset = step;
		return l->high == l->limits.count;
	}
	l->high = 0;
	l->onset = INT64_MIN;
	l->ring[l->n++ % LOSS_WINDOW] = value;
	return false;
}
