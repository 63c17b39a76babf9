/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.c - from literal hits to the lines that rules win.
 *
 * Reads the raw bytes of a stream; where a literal of a rule stands, cuts out
 * the line around it, takes the prefixes off and asks that rule's pattern.  One
 * rule wins a line: a benign one over all, then the higher priority, then the
 * stronger role, then the longer literal.  Healthy text is never cut into lines.
 */
#include <stdlib.h>
#include <string.h>

#include "diagnose/event.h"
#include "diagnose/guard.h"
#include "diagnose/match.h"

struct hit {
	uint32_t	 rule;
	uint16_t	 literal_len;
};

#define WINDOW		((size_t)16 << 20)	/* of a mapped file */
#define EVENTS_ALL	UINT32_MAX

/* Candidates of one line; the same rule counts once, with its first literal. */
#define HITS_MAX	256

/* Where a rule won last, for `after:`, and its events of this stream. */
struct rule_state {
	size_t		 last_start;	/* SIZE_MAX never */
	uint32_t	 count;
	uint32_t	 ring;		/* next of the last ones to overwrite */
	uint32_t	 first_index;	/* of the ring in the list */
};

struct collector {
	struct events	*events;
	struct rule_set	*set;
	const struct stream *stream;
	uint32_t	 stream_index;
	struct rule_state *states;
	struct piece	 piece;		/* the current line */
	bool		 open;		/* piece is set */
	bool		 skip;		/* ... and is the rest of an endless line */
	struct hit	 hits[HITS_MAX];
	size_t		 hit_count;
	size_t		 base;		/* of the window that is scanned */
	char		*scratch;	/* MATCH_LINE_MAX bytes */
	struct err	*err;
	bool		 failed;
	struct line_memory *memory;	/* for a single line, or NULL */
	uint32_t	 only;		/* this rule alone, or EVENTS_... */
};

static struct match *
compiled(struct match **slot, const char *pattern, struct rule *r)
{
	struct err err = {0};

	if (*slot == NULL && !r->broken && match_new(pattern, slot, &err) == -1)
		r->broken = true;
	return *slot;
}

/* The text behind the prefixes first, then the line as it is: a pattern with ^
 * means the text, one that names a prefix needs the line. */
static bool
rule_matches(struct collector *c, struct rule *r, const struct line *line,
    const char *whole, size_t whole_len)
{
	struct match *m = compiled(&r->match, r->def.match, r), *u;
	enum match_result got;
	const char *text = line->text;

	if (m == NULL)
		return false;
	got = match_run(m, text, line->len);
	if (got == MATCH_NO && line->len != whole_len) {
		text = whole;
		got = match_run(m, whole, whole_len);
	}
	if (got == MATCH_LIMIT)
		c->events->gave_up = true;
	if (got != MATCH_YES)
		return false;
	if (r->def.unless != NULL) {
		u = compiled(&r->unless, r->def.unless, r);
		if (u == NULL || match_run(u, whole, whole_len) == MATCH_YES)
			return false;
	}
	return r->def.role == ROLE_BENIGN || r->def.role == ROLE_CONTEXT ||
	    (!guard_is_guess(text, match_start(m)) && !guard_is_source(line));
}

/* Lines between two offsets, at most `most`. */
static uint32_t
lines_between(const char *data, size_t from, size_t to, uint32_t most)
{
	const char *p = data + from, *end = data + to;
	uint32_t n = 0;

	if (to - from > (size_t)most * MATCH_LINE_MAX)
		return most + 1;
	while (n <= most && (p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
		n++;
		p++;
	}
	return n;
}

static bool
after_holds(struct collector *c, const struct rule *r)
{
	const struct rule_state *s;
	uint32_t within = (uint32_t)(r->def.within > 0 ? r->def.within : 20);

	if (r->def.after == NULL)
		return true;
	if (r->after < 0)
		return false;
	if (c->memory != NULL) {
		uint64_t last = c->memory->last[r->after];

		return last > 0 && last < c->memory->line &&
		    c->memory->line - last <= within;
	}
	if (c->states == NULL)
		return false;
	s = &c->states[r->after];
	return s->last_start != SIZE_MAX && s->last_start < c->piece.start &&
	    lines_between(c->stream->data, s->last_start, c->piece.start,
	    within) <= within;
}

/* Stronger roles have smaller numbers. */
static int
role_order(enum rule_role role)
{
	static const int order[] = {
		[ROLE_BENIGN] = 0, [ROLE_ROOT] = 1, [ROLE_CONFIRM] = 2,
		[ROLE_EITHER] = 3, [ROLE_SYMPTOM] = 4, [ROLE_TEARDOWN] = 5,
		[ROLE_CONTEXT] = 6
	};

	return order[role];
}

/* True when a wins a line over b. */
static bool
wins(const struct rule *a, uint16_t a_len, const struct rule *b, uint16_t b_len)
{
	bool ba = a->def.role == ROLE_BENIGN, bb = b->def.role == ROLE_BENIGN;
	bool ca = a->def.role == ROLE_CONTEXT, cb = b->def.role == ROLE_CONTEXT;

	if (ba != bb)
		return ba;
	if (ca != cb)
		return cb;
	if (a->def.priority != b->def.priority)
		return a->def.priority > b->def.priority;
	if (role_order(a->def.role) != role_order(b->def.role))
		return role_order(a->def.role) < role_order(b->def.role);
	if (a_len != b_len)
		return a_len > b_len;
	return strcmp(a->def.id, b->def.id) < 0;
}

static void
copy_text(char *out, size_t size, const char *text, size_t len)
{
	if (text == NULL || len == 0 || len >= size)
		return;
	memcpy(out, text, len);
	out[len] = '\0';
}

static int64_t
group_number(const struct match *m, const char *name, int64_t def)
{
	size_t len, i;
	const char *p = match_group(m, name, &len);
	int64_t v = 0;

	if (p == NULL || len == 0 || len > 15)
		return def;
	for (i = 0; i < len; i++) {
		if (p[i] == ',')
			continue;
		if (p[i] < '0' || p[i] > '9')
			return def;
		v = v * 10 + (p[i] - '0');
	}
	return v;
}

static void
fill_event(struct event *e, struct rule *r, const struct line *line)
{
	const struct match *m = r->match;
	const char *p;
	size_t len;

	e->rule = r;
	e->key = line->key;
	e->level = line->level;
	e->time_ns = line->time_ns;
	e->rank = (int)group_number(m, "rank", line->rank);
	e->step = group_number(m, "step", -1);
	if ((p = match_group(m, "node", &len)) != NULL)
		copy_text(e->node, sizeof(e->node), p, len);
	else
		copy_text(e->node, sizeof(e->node), line->node, line->node_len);
	if ((p = match_group(m, "gpu", &len)) != NULL)
		copy_text(e->gpu, sizeof(e->gpu), p, len);
}

/* A benign rule matters only where another one found something, unless it takes
 * earlier lines back. */
static bool
waits(const struct rule *r)
{
	return r->def.role == ROLE_BENIGN && r->def.cancels == NULL;
}

static void
remember(struct collector *c, uint32_t rule)
{
	if (c->states != NULL)
		c->states[rule].last_start = c->piece.start;
	if (c->memory != NULL)
		c->memory->last[rule] = c->memory->line;
}

/* The rule that wins the line; `text_offset` is where the text begins in it. */
static struct rule *
best_rule(struct collector *c, const char *data, size_t len, struct event *e,
    size_t *text_offset)
{
	uint16_t best_len = 0;
	struct rule *best = NULL;
	struct line line;
	const char *whole = data;
	size_t whole_len = len, i;

	if (memchr(data, '\033', len) != NULL) {
		whole_len = line_strip_ansi(data, len, c->scratch);
		whole = c->scratch;
	}
	line_parse(whole, whole_len, &line);
	if (line.ours)
		return NULL;
	line_styles_learn(&c->events->styles, &line);
	line_styles_apply(&c->events->styles, &line);
	*text_offset = whole == data ? (size_t)(line.text - data) : 0;
	/* First the rules that find something, then the benign ones, which
	 * only matter where something was found. */
	for (i = 0; i < 2 * c->hit_count; i++) {
		const struct hit *hit = &c->hits[i % c->hit_count];
		struct rule *r = &c->set->rules[hit->rule];

		if (waits(r) != (i >= c->hit_count) ||
		    (i >= c->hit_count && best == NULL && c->only == EVENTS_ALL))
			continue;
		if (r->broken || (best != NULL &&
		    !wins(r, hit->literal_len, best, best_len)))
			continue;
		if (!after_holds(c, r) ||
		    !rule_matches(c, r, &line, whole, whole_len))
			continue;
		best = r;
		best_len = hit->literal_len;
	}
	/* A context rule also marks its place on a line another rule wins. */
	for (i = 0; i < c->hit_count; i++) {
		struct rule *r = &c->set->rules[c->hits[i].rule];

		if (r != best && r->def.role == ROLE_CONTEXT && !r->broken &&
		    after_holds(c, r) &&
		    rule_matches(c, r, &line, whole, whole_len))
			remember(c, c->hits[i].rule);
	}
	if (best == NULL)
		return NULL;
	fill_event(e, best, &line);
	remember(c, (uint32_t)(best - c->set->rules));
	return best;
}

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

static void
close_line(struct collector *c)
{
	const char *data = c->stream->data + c->piece.start;
	size_t len = c->piece.end - c->piece.start, text = 0;
	struct event e = { .rank = -1, .step = -1 }, *slot;
	struct rule_state *s;
	struct rule *r;

	if (len > MATCH_LINE_MAX)
		len = MATCH_LINE_MAX;
	r = best_rule(c, data, len, &e, &text);
	c->hit_count = 0;
	if (r == NULL)
		return;
	s = &c->states[r - c->set->rules];
	slot = event_new(c, s);
	if (slot == NULL) {
		c->failed = true;
		return;
	}
	e.stream = c->stream_index;
	e.start = c->piece.start;
	e.len = (uint32_t)len;
	e.text = c->piece.start + text;
	*slot = e;
	s->count++;
	c->events->matched[r - c->set->rules]++;
}

static void
add_hit(struct collector *c, uint32_t literal)
{
	uint32_t rule = c->set->literal_rule[literal];
	size_t i;

	if (c->only < EVENTS_AND_BENIGN && rule != c->only &&
	    (int)rule != c->set->rules[c->only].after)
		return;
	for (i = 0; i < c->hit_count; i++)
		if (c->hits[i].rule == rule)
			break;
	if (i == HITS_MAX)
		return;
	if (i == c->hit_count) {
		c->hits[c->hit_count++] = (struct hit){ rule, 0 };
	}
	if (c->set->literal_len[literal] > c->hits[i].literal_len)
		c->hits[i].literal_len = c->set->literal_len[literal];
}

static bool
on_hit(uint32_t literal, size_t start, void *arg)
{
	struct collector *c = arg;

	start += c->base;

	if (c->open && start >= c->piece.start && start <= c->piece.end) {
		if (!c->skip)
			add_hit(c, literal);
		return !c->failed;
	}
	if (c->open && start < c->piece.start)
		return true;		/* a literal across a line end */
	if (c->open && c->hit_count > 0)
		close_line(c);
	c->open = line_piece(c->stream->data, c->stream->len, start,
	    MATCH_LINE_MAX, &c->piece);
	if (!c->open) {
		/* Too far into a line without an end: nothing of it counts. */
		const char *nl = memchr(c->stream->data + start, '\n',
		    c->stream->len - start);

		c->open = true;
		c->piece.start = start;
		c->piece.end = nl ? (size_t)(nl - c->stream->data) :
		    c->stream->len;
		c->skip = true;
		return true;
	}
	c->skip = false;
	add_hit(c, literal);
	return !c->failed;
}

/* Scans a mapped file in windows and gives the pages back behind them, so that a
 * large log does not count as memory of this process. */
static void
scan_stream(struct collector *c)
{
	const struct stream *s = c->stream;
	size_t from = 0, to;
	const char *nl;

	while (from < s->len && !c->failed) {
		to = s->len;
		if (s->mapped && s->len - from > WINDOW) {
			nl = memrchr(s->data + from, '\n', WINDOW);
			to = nl ? (size_t)(nl + 1 - s->data) : from + WINDOW;
		}
		c->base = from;
		scan_run(c->set->scanner, s->data + from, to - from, on_hit, c);
		stream_release(s, from, to);
		from = to;
	}
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

int
events_collect_rule(struct events *ev, struct rule_set *set,
    const struct feed *feed, uint32_t stream, uint32_t rule, struct err *err)
{
	struct collector c = { .events = ev, .set = set, .err = err,
	    .stream = &feed->streams[stream], .stream_index = stream,
	    .only = rule };
	size_t i, from = ev->count;
	int rc = -1;

	memset(&ev->styles, 0, sizeof(ev->styles));
	if (ev->matched == NULL)
		ev->matched = calloc(set->count + 1, sizeof(*ev->matched));
	c.states = calloc(set->count + 1, sizeof(*c.states));
	c.scratch = calloc(1, MATCH_LINE_MAX + MAP_TAIL);
	if (ev->matched == NULL || c.states == NULL || c.scratch == NULL) {
		err_memory(err);
		goto out;
	}
	for (i = 0; i < set->count; i++)
		c.states[i].last_start = SIZE_MAX;
	scan_stream(&c);
	if (c.open && c.hit_count > 0)
		close_line(&c);
	if (c.failed) {
		err_memory(err);
		goto out;
	}
	/* Slots of a ring that were not used. */
	for (i = from; i < ev->count; )
		if (ev->list[i].rule == NULL)
			ev->list[i] = ev->list[--ev->count];
		else
			i++;
	if (ev->count > from)
		qsort(ev->list + from, ev->count - from, sizeof(*ev->list),
		    by_position);
	rc = 0;
out:
	free(c.states);
	free(c.scratch);
	return rc;
}

int
events_collect(struct events *ev, struct rule_set *set,
    const struct feed *feed, uint32_t stream, struct err *err)
{
	return events_collect_rule(ev, set, feed, stream, EVENTS_ALL, err);
}

void
events_fini(struct events *ev)
{
	free(ev->list);
	free(ev->matched);
	memset(ev, 0, sizeof(*ev));
}

static bool
on_line_hit(uint32_t literal, size_t start, void *arg)
{
	(void)start;
	add_hit(arg, literal);
	return true;
}

static bool
on_any_hit(uint32_t literal, size_t start, void *arg)
{
	(void)literal;
	(void)start;
	*(bool *)arg = true;
	return false;
}

bool
rule_set_may_match(const struct rule_set *set, const char *line, size_t len)
{
	bool yes = false;

	scan_run(set->scanner, line, len, on_any_hit, &yes);
	return yes;
}

struct rule *
rule_set_match_line(struct rule_set *set, const char *line, size_t len,
    struct line_memory *memory, struct event *out)
{
	struct events none = {0};
	struct collector c = { .events = &none, .set = set, .memory = memory,
	    .only = EVENTS_ALL };
	struct event e = { .rank = -1, .step = -1 };
	size_t text;
	struct rule *r;
	char scratch[MATCH_LINE_MAX];

	if (len > MATCH_LINE_MAX)
		len = MATCH_LINE_MAX;
	c.scratch = scratch;
	scan_run(set->scanner, line, len, on_line_hit, &c);
	if (c.hit_count == 0)
		return NULL;
	if (memory != NULL)
		none.styles = memory->styles;
	r = best_rule(&c, line, len, &e, &text);
	if (memory != NULL)
		memory->styles = none.styles;
	if (r != NULL && out != NULL) {
		e.text = text;
		e.len = (uint32_t)len;
		*out = e;
	}
	return r;
}
