/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exits.c - reads NODE.exits.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/exits.h"
#include "diagnose/line.h"

#define STOP_NS		2000000000ll	/* within it all agents are told to stop */

static int
number_behind(const char *p, const char *end, const char *words, int def)
{
	size_t n = strlen(words);
	const char *at = memmem(p, (size_t)(end - p), words, n);
	int v = 0, k;

	if (at == NULL || at + n >= end || !isdigit((unsigned char)at[n]))
		return def;
	for (at += n, k = 0; at < end && isdigit((unsigned char)*at) && k < 8;
	    at++, k++)
		v = v * 10 + (*at - '0');
	return v;
}

static bool
contains(const char *p, const char *end, const char *words)
{
	return memmem(p, (size_t)(end - p), words, strlen(words)) != NULL;
}

static bool
parse(const char *p, const char *end, struct exit_record *r)
{
	r->rank = number_behind(p, end, ": rank ", -1);
	if (r->rank == -1)
		return false;
	r->pid = number_behind(p, end, "(pid ", -1);
	r->time_ns = LINE_NO_TIME;
	(void)line_parse_time(p, (size_t)(end - p), &r->time_ns);
	r->code = number_behind(p, end, "exited with status ", -1);
	if (r->code >= 0) {
		r->how = EXIT_HOW_STATUS;
		return true;
	}
	r->code = number_behind(p, end, "ended by signal ", -1);
	if (r->code >= 0) {
		r->how = EXIT_HOW_SIGNAL;
		return true;
	}
	r->how = EXIT_HOW_TIMEOUT;
	r->code = 9;
	return contains(p, end, "did not end within");
}

int
exits_read(struct exit_list *l, const struct feed *f, uint32_t stream,
    struct err *err)
{
	const struct stream *s = &f->streams[stream];
	const char *p = s->data, *end = s->data + s->len, *nl;
	struct exit_record r, *grown;
	int64_t stop_ns = LINE_NO_TIME;
	size_t from = l->count;
	bool stopped = false;

	for (; p < end; p = nl + 1) {
		nl = memchr(p, '\n', (size_t)(end - p));
		if (nl == NULL)
			nl = end;
		if (contains(p, nl, "attempt stopped: sending SIGTERM")) {
			stopped = true;
			(void)line_parse_time(p, (size_t)(nl - p), &stop_ns);
		}
		r = (struct exit_record){ .stream = stream, .stopped = stopped };
		if (!parse(p, nl, &r))
			continue;
		r.start = (size_t)(p - s->data);
		r.len = (size_t)(nl - p);
		if (r.how == EXIT_HOW_TIMEOUT)
			r.stopped = true;
		if (l->count == l->cap) {
			l->cap = l->cap ? l->cap * 2 : 16;
			grown = realloc(l->list, l->cap * sizeof(*grown));
			if (grown == NULL)
				return err_memory(err);
			l->list = grown;
		}
		l->list[l->count++] = r;
	}
	for (; from < l->count; from++)
		l->list[from].stop_ns = stop_ns;
	return 0;
}

static int
by_time(const void *a, const void *b)
{
	const struct exit_record *x = a, *y = b;

	if (x->stopped != y->stopped)
		return x->stopped ? 1 : -1;
	if (x->stream != y->stream && x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static int
by_stop(const void *a, const void *b)
{
	const struct exit_record *x = a, *y = b;

	return x->stop_ns < y->stop_ns ? -1 : x->stop_ns > y->stop_ns;
}

static void
align(struct exit_list *l)
{
	int64_t median, ahead;
	size_t i, none = 0;

	qsort(l->list, l->count, sizeof(*l->list), by_stop);
	while (none < l->count && l->list[none].stop_ns == LINE_NO_TIME)
		none++;
	if (none == l->count)
		return;
	median = l->list[none + (l->count - none) / 2].stop_ns;
	for (i = none; i < l->count; i++) {
		ahead = l->list[i].stop_ns - median;
		if (llabs(ahead) > STOP_NS && l->list[i].time_ns != LINE_NO_TIME)
			l->list[i].time_ns -= ahead;
	}
}

void
exits_sort(struct exit_list *l)
{
	if (l->count > 1)
		align(l);
	if (l->count > 1)
		qsort(l->list, l->count, sizeof(*l->list), by_time);
}

static bool
abnormal(const struct exit_record *r)
{
	return r->how != EXIT_HOW_STATUS || r->code != 0;
}

const struct exit_record *
exits_first(const struct exit_list *l)
{
	size_t i;

	for (i = 0; i < l->count; i++)
		if (abnormal(&l->list[i]) && !l->list[i].stopped)
			return &l->list[i];
	return NULL;
}

const struct exit_record *
exits_next(const struct exit_list *l, const struct exit_record *after,
    const struct exit_record *from, int64_t window_ns)
{
	const struct exit_record *r = from ? from + 1 : l->list;

	for (; r < l->list + l->count; r++)
		if (r->rank != after->rank && abnormal(r) && !r->stopped &&
		    r->time_ns != LINE_NO_TIME &&
		    after->time_ns != LINE_NO_TIME &&
		    r->time_ns - after->time_ns <= window_ns)
			return r;
	return NULL;
}

int
exits_order(const struct exit_list *l, int rank)
{
	size_t i;
	int n = 0;

	for (i = 0; i < l->count; i++) {
		if (!abnormal(&l->list[i]))
			continue;
		if (l->list[i].rank == rank)
			return n;
		n++;
	}
	return -1;
}

void
exits_fini(struct exit_list *l)
{
	free(l->list);
	memset(l, 0, sizeof(*l));
}
