/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.c - which rule wins a line.
 *
 * The scanner says where literals of rules stand; here a line is tried against
 * the patterns of those rules only.  One rule wins a line: a benign one over
 * all, then the higher priority, then the stronger role, then the longer
 * literal.
 */
#include <stdlib.h>
#include <string.h>

#include "diagnose/collector.h"
#include "diagnose/guard.h"
#include "diagnose/time_text.h"

static struct match *
compiled(struct match **slot, const char *pattern, struct rule *r)
{
	struct err err = {0};

	if (*slot == NULL && !r->broken && match_new(pattern, slot, &err) == -1)
		r->broken = true;
	return *slot;
}

static void
give_up(struct collector *c, struct rule *r)
{
	c->gave_up = c->events->gave_up = true;
	r->broken = ++r->given_up >= RULE_GIVEN_UP_MAX;
}

static bool
rule_matches(struct collector *c, struct rule *r, const struct line *line,
    const char *whole, size_t whole_len)
{
	struct match *m = compiled(&r->match, r->def.match, r), *u;
	enum match_result got;
	const char *text = line->text;
	size_t len = line->len;

	if (m == NULL)
		return false;
	got = match_run_line(m, &text, &len, whole, whole_len);
	if (got == MATCH_LIMIT)
		give_up(c, r);
	if (got != MATCH_YES)
		return false;
	if (r->def.unless != NULL) {
		u = compiled(&r->unless, r->def.unless, r);
		got = u == NULL ? MATCH_YES : match_run(u, whole, whole_len);
		if (got == MATCH_LIMIT)
			give_up(c, r);
		if (got == MATCH_YES)
			return false;
	}
	return !rule_is_guarded(&r->def) ||
	    guard_check(line, text, len, match_start(m)) == GUARD_NONE;
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

/* Slurm writes the time into the message: "CANCELLED AT 2026-01-31T03:12:41". */
static void
read_inner_time(struct event *e, const struct line *line)
{
	const char *at = memmem(line->text, line->len, " AT ", 4);
	struct line_time when;

	if (at == NULL)
		return;
	at += 4;
	if (time_read(at, (size_t)(line->text + line->len - at), &when) == 0)
		return;
	e->when = when;
	e->time_ns = when.clock == CLOCK_DATE ? when.ns : LINE_NO_TIME;
}

void
collector_fill(struct event *e, struct rule *r, const struct line *line,
    size_t text)
{
	const struct match *m = r->match;
	const char *p;
	size_t len;

	e->rule = r;
	e->text = text;
	e->key = line->key;
	e->level = line->level;
	e->time_ns = line->time_ns;
	e->when = line->when;
	if (e->when.clock == CLOCK_NONE && r->def.source == SOURCE_SCHEDULER)
		read_inner_time(e, line);
	e->rank = (int)group_number(m, "rank", line->rank);
	e->task = line->task;
	e->rank_is_task = line->rank_is_task && e->rank == line->rank;
	e->local_rank = (int)group_number(m, "local", line->local_rank);
	e->pid = (int)group_number(m, "pid", line->pid);
	e->step = group_number(m, "step", -1);
	if ((p = match_group(m, "node", &len)) != NULL)
		copy_text(e->node, sizeof(e->node), p, len);
	else
		copy_text(e->node, sizeof(e->node), line->node, line->node_len);
	if ((p = match_group(m, "gpu", &len)) != NULL)
		copy_text(e->gpu, sizeof(e->gpu), p, len);
	if ((p = match_group(m, "nic", &len)) != NULL)
		copy_text(e->nic, sizeof(e->nic), p, len);
	if ((p = match_group(m, "path", &len)) != NULL)
		copy_text(e->path, sizeof(e->path), p, len);
}

void
collector_remember(struct collector *c, uint32_t rule)
{
	if (c->states != NULL)
		c->states[rule].last_start = c->piece.start;
	if (c->memory != NULL)
		c->memory->last[rule] = c->memory->line;
}

void
collector_hit(struct collector *c, uint32_t literal)
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
	if (i == c->hit_count)
		c->hits[c->hit_count++] = (struct hit){ rule, 0 };
	if (c->set->literals[literal].len > c->hits[i].literal_len)
		c->hits[i].literal_len = c->set->literals[literal].len;
}

static bool
on_quiet_hit(uint32_t literal, size_t start, void *arg)
{
	struct collector *c = arg;

	(void)start;
	collector_hit(c, rule_set_quiet_base(c->set) + literal);
	return true;
}

/* Adds the quiet rules that a line may match to its hits. */
static void
find_quiet(struct collector *c, const char *data, size_t len)
{
	const struct scanner *s = rule_set_scanner(c->set, SCANNER_QUIET);

	if (s != NULL)
		(void)scan_run(s, data, len, on_quiet_hit, c);
}

/* Tries the hits from one on; the best rule so far and its literal's length. */
static struct rule *
try_hits(struct collector *c, size_t from, const struct line *line,
    const char *whole, size_t whole_len, struct rule *best, uint16_t *best_len)
{
	size_t i;

	for (i = from; i < c->hit_count; i++) {
		const struct hit *hit = &c->hits[i];
		struct rule *r = &c->set->rules[hit->rule];

		if (r->broken || (best != NULL &&
		    !wins(r, hit->literal_len, best, *best_len)))
			continue;
		if (!after_holds(c, r) ||
		    !rule_matches(c, r, line, whole, whole_len))
			continue;
		best = r;
		*best_len = hit->literal_len;
	}
	return best;
}

/* A context rule also marks its place on a line another rule wins. */
static void
mark_contexts(struct collector *c, const struct line *line, const char *whole,
    size_t whole_len, const struct rule *best, struct outcome *out)
{
	size_t i;

	for (i = 0; i < c->hit_count; i++) {
		struct rule *r = &c->set->rules[c->hits[i].rule];

		if (r == best || r->def.role != ROLE_CONTEXT || r->broken ||
		    !after_holds(c, r) ||
		    !rule_matches(c, r, line, whole, whole_len))
			continue;
		collector_remember(c, c->hits[i].rule);
		if (out->mark_count < OUTCOME_MARKS)
			out->marks[out->mark_count] = c->hits[i].rule;
		out->mark_count++;
	}
}

void
collector_parse(struct collector *c, const char *data, size_t len,
    struct line *line, const char **whole, size_t *whole_len)
{
	*whole = data;
	*whole_len = len;
	if (memchr(data, '\033', len) != NULL) {
		*whole_len = line_strip_ansi(data, len, c->scratch);
		*whole = c->scratch;
	}
	line_parse(*whole, *whole_len, line);
}

/* False when no rule of the hits can match, which is known before the line's
 * prefixes are read: most hits in healthy text end here. */
static bool
may_match(struct collector *c, const char *data, size_t len)
{
	size_t i;

	for (i = 0; i < c->hit_count; i++) {
		struct rule *r = &c->set->rules[c->hits[i].rule];
		struct match *m = compiled(&r->match, r->def.match, r);

		if (m != NULL && (!match_is_free(m) ||
		    match_probe(m, data, len) != MATCH_NO))
			return true;
	}
	return false;
}

struct rule *
collector_best(struct collector *c, const char *data, size_t len,
    struct event *e, struct outcome *out)
{
	size_t whole_len, loud = c->hit_count;
	uint16_t best_len = 0;
	struct rule *best;
	const char *whole;
	struct line line;

	*out = (struct outcome){ .rule = NULL };
	c->gave_up = false;
	if (memchr(data, '\033', len) == NULL && !may_match(c, data, len))
		return NULL;
	collector_parse(c, data, len, &line, &whole, &whole_len);
	if (line.ours)
		return NULL;
	if (line_styles_learn(&c->events->styles, &line))
		c->prefixes = ++c->events->prefixes_learnt;
	line_styles_apply(&c->events->styles, &line);
	best = try_hits(c, 0, &line, whole, whole_len, NULL, &best_len);
	if (best != NULL && c->only == EVENTS_ALL) {
		find_quiet(c, data, len);
		best = try_hits(c, loud, &line, whole, whole_len, best,
		    &best_len);
	}
	mark_contexts(c, &line, whole, whole_len, best, out);
	out->rule = best;
	if (best == NULL)
		return NULL;
	collector_fill(e, best, &line, whole == data ?
	    (size_t)(line.text - data) : 0);
	collector_remember(c, (uint32_t)(best - c->set->rules));
	return best;
}

static bool
on_line_hit(uint32_t literal, size_t start, void *arg)
{
	(void)start;
	collector_hit(arg, literal);
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
rule_set_may_match(struct rule_set *set, const char *line, size_t len)
{
	const struct scanner *s = rule_set_scanner(set, SCANNER_TAIL);
	bool yes = false;

	if (s != NULL)
		(void)scan_run(s, line, len, on_any_hit, &yes);
	return yes;
}

struct rule *
rule_set_match_line(struct rule_set *set, const char *line, size_t len,
    struct line_memory *memory, struct event *out)
{
	const struct scanner *s = rule_set_scanner(set, SCANNER_TAIL);
	struct events none = {0};
	struct collector c = { .events = &none, .set = set, .memory = memory,
	    .only = EVENTS_ALL };
	struct event e = { .rank = -1, .step = -1 };
	char scratch[MATCH_LINE_MAX];
	struct outcome got;
	struct rule *r;

	if (len > MATCH_LINE_MAX)
		len = MATCH_LINE_MAX;
	c.scratch = scratch;
	if (s != NULL)
		(void)scan_run(s, line, len, on_line_hit, &c);
	if (c.hit_count == 0)
		return NULL;
	if (memory != NULL)
		none.styles = memory->styles;
	r = collector_best(&c, line, len, &e, &got);
	if (memory != NULL)
		memory->styles = none.styles;
	if (r != NULL && out != NULL) {
		e.len = (uint32_t)len;
		*out = e;
	}
	return r;
}
