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
	const char	*begin;		/* of the line that a collector took over */
	const char	*timed;		/* where the last time stamp ended */
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
has_at(const struct cursor *c, size_t at, const char *text)
{
	size_t n = strlen(text);

	return at <= left(c) && left(c) - at >= n &&
	    memcmp(c->p + at, text, n) == 0;
}

static inline bool
has(const struct cursor *c, const char *text)
{
	return has_at(c, 0, text);
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

static inline size_t
spaces(const struct cursor *c, size_t n)
{
	while (n < left(c) && (c->p[n] == ' ' || c->p[n] == '\t'))
		n++;
	return n;
}

/* A collector's prefix of n bytes: what stands behind is a whole line again. */
static inline size_t
prefix_begin(struct cursor *c, size_t n)
{
	if (n > 0)
		c->begin = c->p + n;
	return n;
}

/* Bytes from `at` on that are letters, digits or one of `more`. */
size_t	prefix_word(const struct cursor *, size_t at, const char *more);
/* The text behind `key` inside the first n bytes, NULL when it is not there. */
const char *prefix_behind(const struct cursor *, size_t n, const char *key);

/* Who printed a line is told by the prefixes that name someone. */
void	prefix_mix_key(struct cursor *, const char *p, size_t n);
void	prefix_set_rank(struct cursor *, int rank);
void	prefix_set_node(struct cursor *, const char *name, size_t n);
/* The most telling time of a line stays. */
void	prefix_set_time(struct cursor *, const struct line_time *);

/* prefix_rank.c: launchers and collectors. */
size_t	prefix_bracket_rank(struct cursor *);
size_t	prefix_rank_word(struct cursor *);
size_t	prefix_process_group(struct cursor *);
size_t	prefix_ray(struct cursor *);
size_t	prefix_srun(struct cursor *);
size_t	prefix_pdsh(struct cursor *);
size_t	prefix_number(struct cursor *);
size_t	prefix_host_pid(struct cursor *);
size_t	prefix_channel(struct cursor *);
size_t	prefix_task(struct cursor *);
size_t	prefix_container(struct cursor *);
size_t	prefix_ascend(struct cursor *);

/* prefix_time.c: times, syslog, the journal, dmesg. */
size_t	prefix_time(struct cursor *);
size_t	prefix_clock(struct cursor *);
size_t	prefix_epoch(struct cursor *);
size_t	prefix_priority(struct cursor *);
size_t	prefix_host_program(struct cursor *);
size_t	prefix_kernel(struct cursor *);

/* prefix_log.c: loggers, their levels and source locations. */
size_t	prefix_glog(struct cursor *);
size_t	prefix_nemo(struct cursor *);
size_t	prefix_level(struct cursor *);
size_t	prefix_logger(struct cursor *);
size_t	prefix_location(struct cursor *);

#endif
