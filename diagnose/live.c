/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.c - cuts a stream into lines with bounded memory and runs the rules.
 *
 * A chunk is scanned as a whole, so lines without a literal of a rule cost no more
 * than finding their end.  A line that lies in one chunk is looked at where it
 * lies; only what crosses a chunk's end is copied, at most LIVE_HEAD_MAX bytes
 * of it, and scanned again when it is whole.
 */
#include <stdlib.h>
#include <string.h>

#include "diagnose/event.h"
#include "diagnose/live.h"

#define HITS_MAX	256

struct live {
	struct rule_set	*set;
	struct live_calls calls;
	uint64_t	 bytes;		/* before the current chunk's rest */
	uint64_t	 lines;
	uint64_t	 start;		/* offset of the current line */
	struct line_memory memory;
	/* Where literals stand in the current chunk, in order; what lies behind
	 * the last of as many as fit is not known. */
	const char	*chunk;
	size_t		 hits[HITS_MAX];
	size_t		 hit_count;
	size_t		 hit_next;
	size_t		 head_len;
	char		 head[LIVE_HEAD_MAX];
};

int
live_new(struct rule_set *set, const struct live_calls *calls,
    struct live **out, struct err *err)
{
	struct live *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return err_memory(err);
	l->set = set;
	l->calls = *calls;
	l->memory.last = calloc(set->count + 1, sizeof(*l->memory.last));
	if (l->memory.last == NULL) {
		live_free(l);
		return err_memory(err);
	}
	*out = l;
	return 0;
}

void
live_free(struct live *l)
{
	if (l == NULL)
		return;
	free(l->memory.last);
	free(l);
}

uint64_t
live_bytes(const struct live *l)
{
	return l->bytes;
}

uint64_t
live_lines(const struct live *l)
{
	return l->lines;
}

static void
report(struct live *l, const struct rule *r, const struct event *e,
    const char *line, size_t len)
{
	struct live_match m = {
		.rule = r, .line = l->lines + 1, .offset = l->start,
		.text = line, .len = len, .rank = e->rank, .step = e->step,
		.node = e->node, .gpu = e->gpu
	};

	if (l->calls.match != NULL && r->def.role != ROLE_CONTEXT &&
	    r->def.role != ROLE_BENIGN)
		l->calls.match(&m, l->calls.arg);
}

static bool
on_hit(uint32_t literal, size_t start, void *arg)
{
	struct live *l = arg;

	(void)literal;
	l->hits[l->hit_count++] = start;
	return l->hit_count < HITS_MAX;
}

static void
scan_chunk(struct live *l, const char *data, size_t len)
{
	const struct scanner *s = rule_set_scanner(l->set, SCANNER_TAIL);

	l->chunk = data;
	l->hit_count = l->hit_next = 0;
	if (s != NULL)
		(void)scan_run(s, data, len, on_hit, l);
}

/* Whether a rule may match a line of the chunk. */
static bool
has_hit(struct live *l, const char *line, size_t len)
{
	size_t from = (size_t)(line - l->chunk), end = from + len;

	while (l->hit_next < l->hit_count && l->hits[l->hit_next] < from)
		l->hit_next++;
	if (l->hit_next < l->hit_count)
		return l->hits[l->hit_next] < end;
	return l->hit_count == HITS_MAX && rule_set_may_match(l->set, line, len);
}

static void
on_line(struct live *l, const char *line, size_t len, bool whole)
{
	struct progress step;
	struct event e;
	struct rule *r;

	if (len == 0)
		return;
	if (len > LIVE_HEAD_MAX)
		len = LIVE_HEAD_MAX;
	l->memory.line = l->lines + 1;
	if ((whole ? has_hit(l, line, len) :
	    rule_set_may_match(l->set, line, len)) &&
	    (r = rule_set_match_line(l->set, line, len, &l->memory, &e)) != NULL)
		report(l, r, &e, line, len);
	if (l->calls.progress != NULL && progress_parse(line, len, &step))
		l->calls.progress(&step, l->lines + 1, l->calls.arg);
}

/* Keeps the head of a line whose end is not here yet. */
static void
keep(struct live *l, const char *data, size_t len)
{
	size_t room = LIVE_HEAD_MAX - l->head_len;

	if (len > room)
		len = room;
	memcpy(l->head + l->head_len, data, len);
	l->head_len += len;
}

static void
end_line(struct live *l, const char *data, size_t len)
{
	if (l->head_len == 0) {
		on_line(l, data, len, true);
		return;
	}
	keep(l, data, len);
	on_line(l, l->head, l->head_len, false);
	l->head_len = 0;
}

/* One piece between newlines may hold several bars. */
static void
feed_pieces(struct live *l, const char *data, size_t len, bool ended)
{
	const char *cr;
	size_t n;

	while (len > 0 && (cr = memchr(data, '\r', len)) != NULL) {
		n = (size_t)(cr - data);
		end_line(l, data, n);
		data += n + 1;
		len -= n + 1;
		l->bytes += n + 1;
		l->start = l->bytes;
	}
	l->bytes += len;
	if (ended)
		end_line(l, data, len);
	else
		keep(l, data, len);
}

void
live_feed(struct live *l, const char *data, size_t len)
{
	const char *nl;
	size_t n;

	scan_chunk(l, data, len);
	while (len > 0) {
		nl = memchr(data, '\n', len);
		n = nl ? (size_t)(nl - data) : len;
		feed_pieces(l, data, n, nl != NULL);
		if (nl == NULL)
			return;
		l->lines++;
		l->bytes++;
		l->start = l->bytes;
		data += n + 1;
		len -= n + 1;
	}
}

void
live_flush(struct live *l)
{
	if (l->head_len > 0)
		on_line(l, l->head, l->head_len, false);
	l->head_len = 0;
}
