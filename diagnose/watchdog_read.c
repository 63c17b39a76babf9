/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watchdog_read.c - collects the counters that watchdogs print, per rank and process
 * group.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/watchdog.h"

#define READ_MAX	((size_t)64 << 20)	/* of one stream, from its first line */
#define BEFORE_MAX	((size_t)256 << 10)
#define NAMED_MAX	64
#define PEERS_MAX	262144

static const char *
find(const char *p, const char *end, const char *words)
{
	return memmem(p, (size_t)(end - p), words, strlen(words));
}

/* The number behind words, -1 when it is not there; "-1" stands for none so far. */
static int64_t
number(const char *p, const char *end, const char *words)
{
	const char *at = find(p, end, words);
	int64_t v = 0;
	int digits = 0;

	if (at == NULL)
		return -1;
	at += strlen(words);
	if (end - at >= 2 && memcmp(at, "-1", 2) == 0)
		return 0;
	for (; at < end && isdigit((unsigned char)*at) && digits < 15;
	    at++, digits++)
		v = v * 10 + (*at - '0');
	return digits > 0 ? v : -1;
}

static int64_t
either(int64_t a, int64_t b)
{
	return a >= 0 ? a : b;
}

/* "[PG ID 2 PG GUID 5(mesh_dp) Rank 1]": "5(mesh_dp)"; "[PG 1 Rank 3]": "1". */
static int
read_group(const char *p, const char *end, char *group)
{
	const char *from = find(p, end, "[PG "), *to, *guid;
	size_t n;

	group[0] = '\0';
	if (from == NULL || (to = find(from, end, " Rank ")) == NULL ||
	    to - from > 150)
		return (int)number(p, end, "[Rank ");
	guid = find(from, to, "GUID ");
	from = guid ? guid + 5 : from + 4;
	n = (size_t)(to - from);
	if (n >= WATCH_GROUP_MAX)
		n = WATCH_GROUP_MAX - 1;
	memcpy(group, from, n);
	group[n] = '\0';
	return (int)number(to, end, " Rank ");
}

static struct watch_peer *
find_peer(struct watch_list *l, const struct watch_peer *like, struct err *err)
{
	struct watch_peer *p;
	size_t i;

	for (i = l->count; i > 0; i--) {
		p = &l->list[i - 1];
		if (p->rank == like->rank && p->local == like->local &&
		    strcmp(p->group, like->group) == 0)
			return p;
	}
	if (l->count == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 64;
		p = realloc(l->list, l->cap * sizeof(*p));
		if (p == NULL) {
			err_memory(err);
			return NULL;
		}
		l->list = p;
	}
	p = &l->list[l->count++];
	*p = *like;
	return p;
}

static void
read_work(const char *p, const char *end, struct watch_peer *w)
{
	const char *op = find(p, end, "OpType=");
	size_t n = 0;

	w->seq = number(p, end, "SeqNum=");
	w->numel_in = number(p, end, "NumelIn=");
	w->numel_out = number(p, end, "NumelOut=");
	if (op == NULL)
		return;
	for (op += 7; op + n < end && n + 1 < WATCH_OP_MAX &&
	    (isalnum((unsigned char)op[n]) || op[n] == '_'); n++)
		;
	memcpy(w->op, op, n);
	w->op[n] = '\0';
}

/* One line into one peer: what it has and the peer lacks. */
static void
merge(struct watch_peer *to, const struct watch_peer *w)
{
	if (to->seq < 0 && w->seq >= 0) {
		to->seq = w->seq;
		to->numel_in = w->numel_in;
		to->numel_out = w->numel_out;
		memcpy(to->op, w->op, sizeof(to->op));
		to->stream = w->stream;
		to->start = w->start;
	}
	if (w->enqueued > to->enqueued)
		to->enqueued = w->enqueued;
	if (w->completed > to->completed)
		to->completed = w->completed;
	to->timed_out |= w->timed_out;
	to->told |= w->told;
	to->stuck |= w->stuck;
	if (to->node[0] == '\0')
		memcpy(to->node, w->node, sizeof(to->node));
}

/* Ranks behind words: "Ranks 3, 5 failed", "missing ranks are {3, 5}". */
static void
read_named(struct watch_list *l, const char *at, const char *end)
{
	size_t i;

	if (l->named == NULL)
		l->named = calloc(NAMED_MAX, sizeof(*l->named));
	while (l->named != NULL && at < end && l->named_count < NAMED_MAX) {
		int v = 0, k = 0;

		while (at < end && (*at == ' ' || *at == ',' || *at == '{' ||
		    *at == '['))
			at++;
		for (; at < end && isdigit((unsigned char)*at) && k < 7; at++, k++)
			v = v * 10 + (*at - '0');
		if (k == 0)
			return;
		for (i = 0; i < l->named_count && l->named[i] != v; i++)
			;
		if (i == l->named_count)
			l->named[l->named_count++] = v;
	}
}

static void
read_missing(struct watch_list *l, const char *p, const char *end)
{
	static const char *const words[] = {
		"missing ranks are ", "issing ranks: ", "issing ranks "
	};
	const char *at = find(p, end, "failed to pass monitoredBarrier");
	size_t i;

	if (at != NULL) {
		const char *from = at - 1;

		while (from > p && (isdigit((unsigned char)from[-1]) ||
		    from[-1] == ' ' || from[-1] == ','))
			from--;
		read_named(l, from, at);
	}
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if ((at = find(p, end, words[i])) != NULL) {
			read_named(l, at + strlen(words[i]), end);
			return;
		}
}

static int
read_line(struct watch_list *l, const struct case_file *c, uint32_t stream,
    const struct piece *piece, struct err *err)
{
	const struct stream *s = &c->feed->streams[stream];
	const char *p = s->data + piece->start, *end = s->data + piece->end;
	struct watch_peer w = { .rank = -1, .stream = stream,
	    .start = piece->start, .seq = -1, .numel_in = -1, .numel_out = -1 };
	struct watch_peer *to;
	struct line line;
	int inner;

	if (end - p > 4096)
		end = p + 4096;
	read_missing(l, p, end);
	w.enqueued = either(number(p, end, "ast enqueued NCCL work: "),
	    number(p, end, "ast enqueued work: "));
	w.completed = either(number(p, end, "ast completed NCCL work: "),
	    number(p, end, "ast completed work: "));
	w.told = find(p, end, "dump signal due to a collective timeout from  rank") ||
	    find(p, end, "global timeout from another rank") ||
	    find(p, end, "dump signal from another rank");
	w.stuck = find(p, end, "watchdog got stuck for") != NULL;
	if (find(p, end, "WorkNCCL(") != NULL)
		read_work(p, end, &w);
	w.timed_out = w.seq >= 0 || find(p, end, "from this local rank") ||
	    find(p, end, "detected by watchdog at work") ||
	    find(p, end, "Timeout at NCCL work");
	if (!w.told && !w.stuck && !w.timed_out && w.enqueued < 0)
		return 0;
	line_parse(p, (size_t)(end - p), &line);
	inner = read_group(p, end, w.group);
	w.rank = line.rank_is_task && inner >= 0 ? -1 : line.rank;
	if (w.rank == -1)
		w.rank = s->rank;
	if (w.rank == -1) {
		w.rank = inner;
		w.local = w.group[0] != '\0';
	}
	if (w.rank < 0 || l->count >= PEERS_MAX)
		return 0;
	if (line.node != NULL && line.node_len < sizeof(w.node))
		memcpy(w.node, line.node, line.node_len);
	else if (s->node != NULL && strlen(s->node) < sizeof(w.node))
		memcpy(w.node, s->node, strlen(s->node));
	if ((to = find_peer(l, &w, err)) == NULL)
		return -1;
	merge(to, &w);
	return 0;
}

static int
read_words(struct watch_list *l, const struct case_file *c, uint32_t stream,
    size_t from, const char *words, struct err *err)
{
	const struct stream *s = &c->feed->streams[stream];
	size_t to = s->len - from > READ_MAX ? from + READ_MAX : s->len;
	struct piece piece;
	const char *at;

	while (from < to && (at = find(s->data + from, s->data + to, words)) !=
	    NULL) {
		from = (size_t)(at - s->data);
		if (!line_piece(s->data, s->len, from, 65536, &piece))
			return 0;
		if (read_line(l, c, stream, &piece, err) == -1)
			return -1;
		from = piece.end + 1;
	}
	return 0;
}

int
watch_read(struct watch_list *l, const struct case_file *c, struct err *err)
{
	static const char *const words[] = {
		"WorkNCCL(", "ast enqueued", "dump signal", "got stuck for",
		"global timeout from", "failed to pass monitoredBarrier",
		"issing ranks"
	};
	size_t i, k, from;

	for (i = 0; i < c->feed->count; i++) {
		from = SIZE_MAX;
		for (k = 0; k < c->count; k++)
			if (c->causes[k].event.stream == i &&
			    !c->causes[k].exit && c->causes[k].event.start < from)
				from = c->causes[k].event.start;
		if (from == SIZE_MAX)
			continue;
		from = from > BEFORE_MAX ? from - BEFORE_MAX : 0;
		for (k = 0; k < sizeof(words) / sizeof(words[0]); k++)
			if (read_words(l, c, (uint32_t)i, from, words[k],
			    err) == -1)
				return -1;
		stream_release(&c->feed->streams[i], from,
		    c->feed->streams[i].len);
	}
	return 0;
}

void
watch_fini(struct watch_list *l)
{
	free(l->list);
	free(l->named);
	memset(l, 0, sizeof(*l));
}
