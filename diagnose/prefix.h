/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefix.h - what the readers of line prefixes share; for prefix*.c alone.
 *
 * A reader looks at the front of what is left and returns how many bytes of its
 * prefix stand there, 0 for none; it may fill the line.
 */
#ifndef HOLDFAST_DIAGNOSE_PREFIX_H
#define HOLDFAST_DIAGNOSE_PREFIX_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "diagnose/line.h"

struct cursor {
	const char	*p;
	const char	*end;
	const char	*begin;
	struct line	*out;
};

static inline size_t
left(const struct cursor *c)
{
	return (size_t)(c->end - c->p);
}

static inline bool
at_digit(const char *p, const char *end)
{
	return p < end && *p >= '0' && *p <= '9';
}

static inline bool
has(const struct cursor *c, const char *text)
{
	size_t n = strlen(text);

	return left(c) >= n && memcmp(c->p, text, n) == 0;
}

/* Digits at p: their count, the value capped at a billion. */
static inline size_t
digits(const char *p, const char *end, int *value)
{
	size_t n = 0;
	long v = 0;

	while (at_digit(p + n, end)) {
		if (v < 100000000)
			v = v * 10 + (p[n] - '0');
		n++;
	}
	*value = (int)v;
	return n;
}

static inline size_t
one_space(const struct cursor *c, size_t n)
{
	return n > 0 && n < left(c) && (c->p[n] == ' ' || c->p[n] == '\t') ?
	    n + 1 : n;
}

/* Who printed a line is told by the prefixes that name someone. */
void	prefix_mix_key(struct cursor *, const char *p, size_t n);
void	prefix_set_rank(struct cursor *, int rank);

/* prefix_log.c: times, levels, loggers, syslog, dmesg. */
size_t	prefix_time(struct cursor *);
size_t	prefix_clock(struct cursor *);
size_t	prefix_us_time(struct cursor *);
size_t	prefix_syslog(struct cursor *);
size_t	prefix_kernel(struct cursor *);
size_t	prefix_glog(struct cursor *);
size_t	prefix_level(struct cursor *);
size_t	prefix_logger(struct cursor *);

#endif
