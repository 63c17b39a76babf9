/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary.c - counts for the verdict of a case whose cause is chosen.
 *
 * Reads the candidates and the streams; emits ranks per echoed reason, the telling
 * part of the quoted line, files, bytes and lines.
 */
#include <stdlib.h>
#include <string.h>

#include "diagnose/match.h"
#include "diagnose/summary.h"

bool
summary_is_echo(const struct cause *a, const struct cause *w)
{
	return a != w && !a->exit && a->reason != w->reason &&
	    (a->echo || a->late || a->rank_class >= CLASS_SYMPTOM);
}

static int
by_number(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static uint32_t
count_distinct(int *list, size_t n)
{
	uint32_t distinct = 0;
	size_t i;

	if (n > 1)
		qsort(list, n, sizeof(*list), by_number);
	for (i = 0; i < n; i++)
		distinct += i == 0 || list[i] != list[i - 1];
	return distinct;
}

/* Which candidates to count the ranks of: NULL matches all. */
struct choice {
	const struct reason	*reason;
	const char		*rule;
	bool			 echo;
};

static bool
is_chosen(const struct choice *ch, const struct cause *a,
    const struct cause *w)
{
	return (ch->reason == NULL || a->reason == ch->reason) &&
	    (ch->rule == NULL || strcmp(a->event.rule->def.id, ch->rule) == 0) &&
	    (!ch->echo || summary_is_echo(a, w));
}

static uint32_t
count_ranks(const struct case_file *c, const struct cause *w,
    const struct choice *ch, int *room)
{
	size_t i, n = 0;

	for (i = 0; i < c->count; i++)
		if (c->causes[i].event.rank >= 0 &&
		    is_chosen(ch, &c->causes[i], w))
			room[n++] = c->causes[i].event.rank;
	return count_distinct(room, n);
}

/* All lines of the rules that speak for a reason here: of repeated ones only some
 * are candidates. */
static uint64_t
count_lines(const struct case_file *c, const struct cause *w,
    const struct reason *reason)
{
	uint64_t n = 0;
	size_t i, k;

	for (i = 0; i < c->set->count; i++) {
		if (c->set->rules[i].reason != reason ||
		    c->events.matched == NULL || c->events.matched[i] == 0)
			continue;
		for (k = 0; k < c->count; k++)
			if (c->causes[k].event.rule == &c->set->rules[i] &&
			    summary_is_echo(&c->causes[k], w))
				break;
		if (k < c->count)
			n += c->events.matched[i];
	}
	return n > 0 ? n : 1;
}

static int
by_count(const void *a, const void *b)
{
	const struct verdict_echo *x = a, *y = b;

	if (x->ranks != y->ranks)
		return x->ranks < y->ranks ? 1 : -1;
	if (x->lines != y->lines)
		return x->lines < y->lines ? 1 : -1;
	return strcmp(x->reason, y->reason);
}

static void
fill_echoes(struct verdict *v, const struct case_file *c,
    const struct cause *w, int *room)
{
	struct choice ch = { .echo = true };
	struct verdict_echo *e;
	size_t i, k;

	v->echo_ranks = count_ranks(c, w, &ch, room);
	for (i = 0; i < c->count; i++) {
		const struct cause *a = &c->causes[i];

		if (!summary_is_echo(a, w))
			continue;
		for (k = 0; k < v->echo_count; k++)
			if (strcmp(v->echoes[k].reason, a->reason->name) == 0)
				break;
		if (k < v->echo_count || k == VERDICT_ECHOES)
			continue;
		ch.reason = a->reason;
		e = &v->echoes[k];
		if ((e->reason = strdup(a->reason->name)) == NULL)
			return;
		e->ranks = count_ranks(c, w, &ch, room);
		e->lines = count_lines(c, w, a->reason);
		v->echo_count++;
	}
	if (v->echo_count > 1)
		qsort(v->echoes, v->echo_count, sizeof(*e), by_count);
}

static void
fill_ranks(struct verdict *v, const struct case_file *c,
    const struct cause *w)
{
	int *room = calloc(c->count + 1, sizeof(*room));
	struct choice ch = { .reason = w->reason };
	size_t i;

	if (room == NULL)
		return;
	v->same_ranks = count_ranks(c, w, &ch, room);
	if (v->same_ranks > 0 && w->event.rank >= 0)
		v->same_ranks--;
	fill_echoes(v, c, w, room);
	for (i = 0; i < v->symptom_count; i++) {
		ch = (struct choice){ .rule = v->symptoms[i].rule };
		v->symptoms[i].ranks = count_ranks(c, w, &ch, room);
	}
	free(room);
}

struct quote_span
summary_telling(const struct rule *r, const char *text, size_t len)
{
	struct quote_span s = { 0, 0 };
	struct line line;
	const char *tried;
	char *padded;
	size_t at, n;

	/* PCRE2's JIT reads whole blocks. */
	if (r == NULL || r->match == NULL || text == NULL ||
	    (padded = calloc(1, len + MAP_TAIL)) == NULL)
		return s;
	memcpy(padded, text, len);
	line_parse(padded, len, &line);
	tried = line.text;
	n = line.len;
	if (match_run_line(r->match, &tried, &n, padded, len) != MATCH_YES)
		goto out;
	at = (size_t)(tried - padded);
	s.from = at + match_start(r->match);
	s.to = at + match_end(r->match);
	if (s.to > len || s.from > s.to)
		s.from = s.to = 0;
out:
	free(padded);
	return s;
}

static void
fill_proof(struct verdict *v, const struct cause *w)
{
	struct verdict_root *r = &v->root;
	struct quote_span s;

	if (r->text == NULL || w->exit)
		return;
	s = summary_telling(w->event.rule, r->text, r->text_len);
	r->tell_from = s.from;
	r->tell_to = s.to;
}

static void
fill_inputs(struct verdict *v, const struct feed *f)
{
	size_t i;

	v->files = f->count;
	for (i = 0; i < f->count; i++) {
		const struct stream *s = &f->streams[i];

		v->bytes += s->len;
		v->has_kernel |= s->kind == STREAM_KERNEL;
		v->lines += stream_lines(s);
	}
}

void
summary_fill(struct verdict *v, const struct case_file *c,
    const struct cause *w)
{
	fill_inputs(v, c->feed);
	if (w == NULL)
		return;
	fill_proof(v, w);
	fill_ranks(v, c, w);
}
