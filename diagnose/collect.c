/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collect.c - the events of a stream.
 *
 * Reads the literals that ahead.c found, cuts only the lines they stand in,
 * gives each to the rules (or knows it from its template) and keeps the first
 * and the last events of each rule.  Healthy text is never cut into lines.
 */
#include <stdlib.h>
#include <string.h>

#include "diagnose/ahead.h"
#include "diagnose/collector.h"

#define GIVE_BACK	((size_t)8 << 20)	/* of a mapped file, at once */

static struct event *
event_slot(struct collector *c, struct rule_state *s)
{
	struct events *ev = c->events;
	struct event *p;

	if (s->count >= EVENT_FIRST + EVENT_LAST) {
		p = &ev->list[s->first_index + s->ring];
		s->ring = (s->ring + 1) % EVENT_LAST;
		return p;
	}
	return NULL;
}

/* Events of one rule beyond the first ones reuse a ring of slots that are not
 * next to each other, so each state keeps their indices implicitly: the ring is
 * allocated at once when the first ones are used up. */
static struct event *
event_new(struct collector *c, struct rule_state *s)
{
	struct events *ev = c->events;
	struct event *p = event_slot(c, s);
	size_t want = s->count == EVENT_FIRST ? EVENT_LAST : 1;

	if (p != NULL)
		return p;
	if (s->count > EVENT_FIRST)
		return &ev->list[s->first_index + (s->count - EVENT_FIRST)];
	if (ev->count + want > ev->cap) {
		size_t cap = ev->cap ? ev->cap * 2 : 64;

		while (cap < ev->count + want)
			cap *= 2;
		if ((p = realloc(ev->list, cap * sizeof(*p))) == NULL)
			return NULL;
		ev->list = p;
		ev->cap = cap;
	}
	p = &ev->list[ev->count];
	memset(p, 0, want * sizeof(*p));
	if (want > 1)
		s->first_index = (uint32_t)ev->count;
	ev->count += want;
	return p;
}

/* Of the many events of one rule only the last ones matter, so what they say is
 * read when the stream is done. */
static void
keep_event(struct collector *c, const struct event *e)
{
	struct rule_state *s = &c->states[e->rule - c->set->rules];
	struct event *slot = event_new(c, s);

	if (slot == NULL) {
		c->failed = true;
		return;
	}
	*slot = *e;
	slot->stream = c->stream_index;
	slot->start = c->piece.start;
	s->count++;
	c->events->matched[e->rule - c->set->rules]++;
}

/* Counts a line whose outcome was known. */
static void
repeat_line(struct collector *c, size_t len, const struct outcome *known)
{
	struct event e = { .rank = -1, .step = -1, .rule = known->rule,
	    .time_ns = LINE_NO_TIME, .len = (uint32_t)len, .bare = true };
	size_t i;

	for (i = 0; i < known->mark_count; i++)
		collector_remember(c, known->marks[i]);
	if (known->rule == NULL)
		return;
	collector_remember(c, (uint32_t)(known->rule - c->set->rules));
	keep_event(c, &e);
}

static void
close_line(struct collector *c)
{
	const char *data = c->stream->data + c->piece.start;
	size_t len = c->piece.end - c->piece.start;
	struct event e = { .rank = -1, .step = -1 };
	struct outcome got;

	if (len > MATCH_LINE_MAX)
		len = MATCH_LINE_MAX;
	if (c->templates != NULL && c->only == EVENTS_ALL &&
	    templates_find(c, data, len, &got)) {
		repeat_line(c, len, &got);
		c->hit_count = 0;
		return;
	}
	if (collector_best(c, data, len, &e, &got) != NULL) {
		e.len = (uint32_t)len;
		e.text += c->piece.start;
		keep_event(c, &e);
	}
	if (c->templates != NULL && c->only == EVENTS_ALL)
		templates_add(c, len, &got);
	c->hit_count = 0;
}

/* Reads what a bare event's line says. */
static void
complete(struct collector *c, struct event *e)
{
	const char *data = c->stream->data + e->start, *whole, *text;
	struct rule *r = &c->set->rules[e->rule - c->set->rules];
	size_t whole_len, len;
	struct line line;

	e->bare = false;
	collector_parse(c, data, e->len, &line, &whole, &whole_len);
	line_styles_apply(&c->events->styles, &line);
	text = line.text;
	len = line.len;
	if (match_run_line(r->match, &text, &len, whole, whole_len) != MATCH_YES)
		return;
	collector_fill(e, r, &line, e->start +
	    (whole == data ? (size_t)(line.text - data) : 0));
}

/* Too far into a line without an end: nothing of it counts. */
static void
skip_line(struct collector *c, size_t start)
{
	c->open = c->skip = true;
	c->piece.start = start;
	c->piece.end = line_end(c->stream->data, c->stream->len, start);
}

static void
on_hit(struct collector *c, uint32_t literal, size_t start)
{
	if (c->open && start >= c->piece.start && start <= c->piece.end) {
		if (!c->skip)
			collector_hit(c, literal);
		return;
	}
	if (c->open && start < c->piece.start)
		return;			/* a literal across a line end */
	if (c->open && c->hit_count > 0)
		close_line(c);
	c->skip = false;
	c->open = line_piece(c->stream->data, c->stream->len, start,
	    MATCH_LINE_MAX, &c->piece);
	if (c->open)
		collector_hit(c, literal);
	else
		skip_line(c, start);
}

static int
read_windows(struct collector *c, struct ahead *a, const struct feed *feed,
    struct err *err)
{
	struct stream *s = &feed->streams[c->stream_index];
	struct ahead_window w;
	uint64_t lines = 0;
	size_t i, given = 0;

	while (ahead_next(a, c->stream_index, &w)) {
		if (w.failed)
			return err_memory(err);
		if (stream_mark(s, w.from, lines, err) == -1)
			return -1;
		lines += w.newlines;
		for (i = 0; i < w.count && !c->failed; i++)
			on_hit(c, w.hits[i].literal, w.from + w.hits[i].start);
		/* A large log is not to count as memory of this process. */
		if (w.to - given >= GIVE_BACK) {
			stream_release(s, given, w.to);
			given = w.to;
		}
		c->events->bytes += w.to - w.from;
		if (c->events->progress != NULL)
			c->events->progress(c->events->bytes,
			    c->events->progress_arg);
	}
	if (stream_mark(s, s->len, lines, err) == -1)
		return -1;
	if (c->open && c->hit_count > 0)
		close_line(c);
	return c->failed ? err_memory(err) : 0;
}

static int
by_position(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return 0;
}

/* Drops ring slots that were not used, completes the others, sorts. */
static void
settle(struct collector *c, size_t from)
{
	struct events *ev = c->events;
	size_t i;

	for (i = from; i < ev->count; )
		if (ev->list[i].rule == NULL)
			ev->list[i] = ev->list[--ev->count];
		else
			i++;
	for (i = from; i < ev->count; i++)
		if (ev->list[i].bare)
			complete(c, &ev->list[i]);
	if (ev->count > from)
		qsort(ev->list + from, ev->count - from, sizeof(*ev->list),
		    by_position);
}

static void
collector_free(struct collector *c)
{
	if (c == NULL)
		return;
	templates_free(c->templates);
	free(c->states);
	free(c->scratch);
	free(c);
}

/* The collector of the events, made when the first stream needs it. */
static struct collector *
prepare(struct events *ev, struct rule_set *set, const struct feed *feed,
    uint32_t stream, uint32_t only, struct err *err)
{
	struct collector *c = ev->collector;
	size_t i;

	if (c == NULL) {
		c = ev->collector = calloc(1, sizeof(*c));
		if (c == NULL)
			goto fail;
		ev->matched = calloc(set->count + 1, sizeof(*ev->matched));
		c->states = calloc(set->count + 1, sizeof(*c->states));
		c->scratch = calloc(1, MATCH_LINE_MAX + MAP_TAIL);
		if (ev->matched == NULL || c->states == NULL ||
		    c->scratch == NULL)
			goto fail;
		c->templates = templates_new();
	}
	memset(&ev->styles, 0, sizeof(ev->styles));
	for (i = 0; i < set->count; i++)
		c->states[i] = (struct rule_state){ .last_start = SIZE_MAX };
	c->events = ev;
	c->set = set;
	c->stream = &feed->streams[stream];
	c->stream_index = stream;
	c->only = only;
	c->open = c->skip = c->failed = false;
	c->hit_count = 0;
	c->prefixes = 0;
	return c;
fail:
	collector_free(c);
	ev->collector = NULL;
	err_memory(err);
	return NULL;
}

/* Scans streams ahead.  Small ones are all end, and need the scanner for it alone. */
static int
begin(struct rule_set *set, bool all_rules, const struct feed *feed,
    uint32_t first, uint32_t last, unsigned threads, struct ahead **out,
    struct err *err)
{
	const struct scanner *tail = rule_set_scanner(set,
	    all_rules ? SCANNER_ALL : SCANNER_TAIL), *rest = tail;
	uint32_t i;

	for (i = first; i < last && !all_rules && rest == tail; i++)
		if (feed->streams[i].len > RULE_TAIL_BYTES)
			rest = rule_set_scanner(set, SCANNER_LOUD);
	if (tail == NULL || rest == NULL)
		return err_memory(err);
	return ahead_new(rest, tail, feed, first, last, threads, out, err);
}

/* Windows come from the events' `ahead`, or from one of this stream alone. */
static int
collect(struct collector *c, const struct feed *feed, struct err *err)
{
	bool all_rules = c->only != EVENTS_ALL;
	struct ahead *own = NULL, *ahead = all_rules ? NULL : c->events->ahead;
	size_t from = c->events->count;
	int rc = -1;

	if (ahead == NULL && begin(c->set, all_rules, feed, c->stream_index,
	    c->stream_index + 1, 0, &own, err) == -1)
		return -1;
	if (read_windows(c, own ? own : ahead, feed, err) == 0) {
		settle(c, from);
		rc = 0;
	}
	ahead_free(own);
	return rc;
}

int
events_collect_rule(struct events *ev, struct rule_set *set,
    const struct feed *feed, uint32_t stream, uint32_t rule, struct err *err)
{
	struct collector *c = prepare(ev, set, feed, stream, rule, err);

	return c == NULL ? -1 : collect(c, feed, err);
}

int
events_collect(struct events *ev, struct rule_set *set,
    const struct feed *feed, uint32_t stream, struct err *err)
{
	return events_collect_rule(ev, set, feed, stream, EVENTS_ALL, err);
}

int
events_begin(struct events *ev, struct rule_set *set, const struct feed *feed,
    unsigned threads, struct err *err)
{
	return begin(set, false, feed, 0, (uint32_t)feed->count, threads,
	    &ev->ahead, err);
}

void
events_fini(struct events *ev)
{
	ahead_free(ev->ahead);
	collector_free(ev->collector);
	free(ev->list);
	free(ev->matched);
	memset(ev, 0, sizeof(*ev));
}
