/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.c - makes the times of different streams comparable.
 *
 * A time without year or date is set next to those that have them.  A stream whose
 * clock is off is told by what all streams share: the same step completed, or both
 * their first and their last line off by the same amount.
 */
#include <stdlib.h>
#include <string.h>

#include "diagnose/clock.h"
#include "diagnose/time_text.h"

#define SECOND_NS	1000000000ll
#define DAY_NS		(86400 * SECOND_NS)
#define OFF_NS		(30 * SECOND_NS)	/* less is a late start or end */
#define SPAN_NS		(60 * SECOND_NS)	/* shorter streams prove nothing */

/* The years before, of and after a point in time. */
static int64_t
with_year(int64_t in_year, int64_t near)
{
	int year = 1970 + (int)(near / (31556952 * SECOND_NS)), y;
	int64_t best = LINE_NO_TIME, t;

	for (y = year - 1; y <= year + 1; y++) {
		t = time_of_date(y, 1, 1) + in_year;
		/* The year the text was read in had a 29th of February. */
		if (in_year >= 59 * DAY_NS && (y % 4 != 0 ||
		    (y % 100 == 0 && y % 400 != 0)))
			t -= DAY_NS;
		if (best == LINE_NO_TIME || llabs(t - near) < llabs(best - near))
			best = t;
	}
	return best;
}

static int64_t
with_day(int64_t in_day, int64_t near)
{
	int64_t t = near - near % DAY_NS + in_day;

	if (t - near > DAY_NS / 2)
		t -= DAY_NS;
	else if (near - t > DAY_NS / 2)
		t += DAY_NS;
	return t;
}

/* near: LINE_NO_TIME when there is none. */
int64_t
clock_near(const struct line_time *t, int64_t near)
{
	switch (t->clock) {
	case CLOCK_DATE:
		return t->ns;
	case CLOCK_NO_YEAR:
		return near == LINE_NO_TIME ? t->ns : with_year(t->ns, near);
	case CLOCK_NO_DATE:
		return near == LINE_NO_TIME ? t->ns : with_day(t->ns, near);
	default:
		return LINE_NO_TIME;
	}
}

static void
keep_latest(const struct line_time *t, enum line_clock clock, int64_t *latest)
{
	if (t->clock == clock && (*latest == LINE_NO_TIME || t->ns > *latest))
		*latest = t->ns;
}

/* The latest time with the fullest date anywhere: the others are close to it. */
static int64_t
reference(const struct case_file *c, enum line_clock clock)
{
	int64_t latest = LINE_NO_TIME;
	size_t i;

	for (i = 0; i < c->feed->count; i++) {
		keep_latest(&c->facts[i].first, clock, &latest);
		keep_latest(&c->facts[i].last, clock, &latest);
	}
	for (i = 0; i < c->count; i++)
		keep_latest(&c->causes[i].event.when, clock, &latest);
	return latest;
}

/* Without any year, a first of January comes behind a last of December. */
static int64_t
unwrap(int64_t ns, int64_t latest, int64_t period)
{
	return latest != LINE_NO_TIME && latest - ns > period / 2 ?
	    ns + period : ns;
}

static int64_t
one_clock(const struct line_time *t, int64_t own, const struct clock_near *n)
{
	int64_t near = own != LINE_NO_TIME ? own : n->any;

	if (near == LINE_NO_TIME && t->clock == CLOCK_NO_YEAR)
		return unwrap(t->ns, n->year, 366 * DAY_NS);
	if (near == LINE_NO_TIME && t->clock == CLOCK_NO_DATE)
		return n->year != LINE_NO_TIME ? with_day(t->ns, n->year) :
		    unwrap(t->ns, n->day, DAY_NS);
	return clock_near(t, near);
}

void
clock_near_init(struct clock_near *n, const struct case_file *c)
{
	n->any = reference(c, CLOCK_DATE);
	n->year = reference(c, CLOCK_NO_YEAR);
	n->day = reference(c, CLOCK_NO_DATE);
}

int64_t
clock_time(const struct clock_near *n, const struct case_file *c,
    uint32_t stream, const struct line_time *t)
{
	const struct stream_facts *f = &c->facts[stream];
	int64_t ns = one_clock(t, f->last.clock == CLOCK_DATE ? f->last_ns :
	    LINE_NO_TIME, n);

	return ns != LINE_NO_TIME ? ns - f->ahead_ns : ns;
}

/* Streams of one node share its clock. */
static bool
same_clock(const struct case_file *c, size_t i, size_t k)
{
	const char *a = c->feed->streams[i].node, *b = c->feed->streams[k].node;

	return i == k || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* A stream that tells the time of many others is the one to measure by. */
static int64_t
measure(const struct stream_facts *a, const struct stream_facts *base)
{
	int64_t first, last, apart;

	if (a->step_ns != LINE_NO_TIME && base->step_ns != LINE_NO_TIME &&
	    a->step >= 0 && a->step == base->step)
		return llabs(a->step_ns - base->step_ns) > CAUSE_SKEW_NS ?
		    a->step_ns - base->step_ns : 0;
	if (a->first_ns == LINE_NO_TIME || base->first_ns == LINE_NO_TIME ||
	    a->last_ns == LINE_NO_TIME || base->last_ns == LINE_NO_TIME ||
	    a->last_ns - a->first_ns < SPAN_NS ||
	    base->last_ns - base->first_ns < SPAN_NS)
		return 0;
	first = a->first_ns - base->first_ns;
	last = a->last_ns - base->last_ns;
	apart = llabs(first - last);
	if (llabs(first) < OFF_NS || llabs(last) < OFF_NS ||
	    apart > llabs(last) / 10 || apart > OFF_NS)
		return 0;
	return last;
}

static int
by_last(const void *a, const void *b)
{
	const struct stream_facts *const *x = a, *const *y = b;

	return (*x)->last_ns < (*y)->last_ns ? -1 : (*x)->last_ns > (*y)->last_ns;
}

/* The median by its end among the logs that tell times. */
static const struct stream_facts *
median(const struct case_file *c)
{
	const struct stream_facts **list, *found = NULL;
	size_t i, n = 0;

	list = calloc(c->feed->count + 1, sizeof(*list));
	if (list == NULL)
		return NULL;
	for (i = 0; i < c->feed->count; i++)
		if (c->feed->streams[i].kind == STREAM_LOG &&
		    c->facts[i].first_ns != LINE_NO_TIME &&
		    c->facts[i].last_ns != LINE_NO_TIME)
			list[n++] = &c->facts[i];
	if (n > 1) {
		qsort(list, n, sizeof(*list), by_last);
		found = list[n / 2];
	}
	free(list);
	return found;
}

static void
find_offsets(struct case_file *c)
{
	const struct stream_facts *base = median(c);
	size_t i, k;

	for (i = 0; base != NULL && i < c->feed->count; i++)
		if (c->feed->streams[i].kind == STREAM_LOG)
			c->facts[i].ahead_ns = measure(&c->facts[i], base);
	/* What has no measure of its own goes by its node's: kernel logs. */
	for (i = 0; base != NULL && i < c->feed->count; i++)
		for (k = 0; k < c->feed->count && c->facts[i].ahead_ns == 0 &&
		    c->feed->streams[i].kind != STREAM_LOG; k++)
			if (same_clock(c, i, k))
				c->facts[i].ahead_ns = c->facts[k].ahead_ns;
}

/* Written when the exception was raised; feed.c puts the time at its end. */
static bool
is_error_file(const struct case_file *c, const struct cause *p)
{
	return c->feed->streams[p->event.stream].kind == STREAM_ERROR &&
	    p->event.when.clock == CLOCK_NONE;
}

void
clock_align(struct case_file *c)
{
	struct clock_near near;
	int64_t own;
	size_t i;

	clock_near_init(&near, c);
	for (i = 0; i < c->feed->count; i++) {
		struct stream_facts *f = &c->facts[i];

		own = f->last.clock == CLOCK_DATE ? f->last.ns :
		    f->first.clock == CLOCK_DATE ? f->first.ns : LINE_NO_TIME;
		f->first_ns = one_clock(&f->first, own, &near);
		f->last_ns = one_clock(&f->last, own, &near);
		f->step_ns = one_clock(&f->step_time, own, &near);
	}
	find_offsets(c);
	for (i = 0; i < c->count; i++) {
		struct cause *p = &c->causes[i];

		if (!p->exit)
			p->time_ns = clock_time(&near, c, p->event.stream,
			    is_error_file(c, p) ?
			    &c->facts[p->event.stream].last : &p->event.when);
		else if (p->time_ns != LINE_NO_TIME)
			p->time_ns -= c->facts[p->event.stream].ahead_ns;
	}
	for (i = 0; i < c->tables.count; i++)
		if (c->tables.list[i].time_ns != LINE_NO_TIME)
			c->tables.list[i].time_ns -=
			    c->facts[c->tables.list[i].stream].ahead_ns;
}

void
clock_span(const struct case_file *c, int64_t *first_ns, int64_t *last_ns,
    bool *zones)
{
	bool with = false, without = false;
	size_t i;

	*first_ns = *last_ns = LINE_NO_TIME;
	for (i = 0; i < c->feed->count; i++) {
		const struct stream_facts *f = &c->facts[i];

		with |= f->last.clock == CLOCK_DATE && f->last.zoned;
		without |= f->last.clock != CLOCK_NONE && !f->last.zoned;
		if (c->feed->streams[i].kind != STREAM_LOG)
			continue;
		if (f->first_ns != LINE_NO_TIME && (*first_ns == LINE_NO_TIME ||
		    f->first_ns - f->ahead_ns < *first_ns))
			*first_ns = f->first_ns - f->ahead_ns;
		if (f->last_ns != LINE_NO_TIME && (*last_ns == LINE_NO_TIME ||
		    f->last_ns - f->ahead_ns > *last_ns))
			*last_ns = f->last_ns - f->ahead_ns;
	}
	*zones = with && without;
}
