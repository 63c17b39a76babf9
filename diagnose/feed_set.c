/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_set.c - names that only tell something beside others.
 *
 * "log_3.txt" alone may be the third try; beside log_0 to log_7 it is taken for
 * rank 3.  Numbers must begin at 0 and leave none out, and each stands once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/feed_name.h"
#include "diagnose/feed_path.h"
#include "diagnose/feed_set.h"

struct member {
	char		*key;		/* the name without the number */
	int		 number;	/* -1: one that has none, against the set */
	struct stream	*stream;
};

static size_t
stem_of(const struct stream *s, struct feed_part *part)
{
	const char *base = feed_name_base(s->name);

	feed_name_part(base, part);
	return (size_t)(base - s->name) + part->stem;
}

static bool
same_stem(const struct stream *a, const struct stream *b)
{
	struct feed_part p;
	size_t n = stem_of(a, &p);

	return n == stem_of(b, &p) && memcmp(a->name, b->name, n) == 0;
}

/* A name as a member of a set: its last number masked, or that of its rotation
 * ("stderr.0", "stderr.1" with no "stderr" are not rotated), and hosts masked. */
static char *
key_of(const struct stream *s, int *number)
{
	struct feed_part part;
	struct feed_number n;
	size_t stem = stem_of(s, &part);
	int64_t back = FEED_PART_CURRENT - part.when;
	char *key;

	if (feed_path_number(s->name, stem, &n)) {
		*number = atoi(s->name + n.at);
		if (n.host_len == 0)
			n.host_at = n.at;
		if (asprintf(&key, "%.*s@%.*s#%.*s", (int)n.host_at, s->name,
		    (int)(n.at - n.host_at - n.host_len),
		    s->name + n.host_at + n.host_len,
		    (int)(stem - n.at - n.len), s->name + n.at + n.len) == -1)
			return NULL;
		return key;
	}
	*number = back > 0 && back <= 1000 && s->name[stem +
	    strspn(s->name + stem, ".0123456789")] == '\0' ? (int)back - 1 : -1;
	return asprintf(&key, "%.*s", (int)stem, s->name) == -1 ? NULL : key;
}

static int
by_key(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	int d = strcmp(x->key, y->key);

	if (d != 0)
		return d;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->stream < y->stream ? -1 : x->stream > y->stream;
}

/* Members with one key, in order of their numbers. */
static void
set_ranks(struct member *m, size_t n)
{
	size_t i;
	int next = 0;

	for (i = 0; i < n; i++) {
		if (m[i].number == next)
			next++;
		/* Twice the same: parts of it, or it is no rank. */
		else if (next == 0 || m[i].number != next - 1 ||
		    !same_stem(m[i].stream, m[i - 1].stream))
			return;
	}
	if (next < 2)
		return;
	for (i = 0; i < n; i++)
		m[i].stream->rank = m[i].number;
}

static int
compare_numbers(struct feed *f, struct err *err)
{
	struct member *m = calloc(f->count + 1, sizeof(*m));
	size_t i, k, n = 0;
	int rc = -1;

	if (m == NULL)
		return err_memory(err);
	for (i = 0; i < f->count; i++) {
		struct stream *s = &f->streams[i];

		if (s->kind != STREAM_LOG || s->rank != -1 ||
		    s->local_rank != -1)
			continue;
		m[n].stream = s;
		if ((m[n].key = key_of(s, &m[n].number)) == NULL) {
			err_memory(err);
			goto out;
		}
		n++;
	}
	qsort(m, n, sizeof(*m), by_key);
	for (i = 0; i < n; i = k) {
		for (k = i + 1; k < n && strcmp(m[i].key, m[k].key) == 0; k++)
			;
		set_ranks(m + i, k - i);
	}
	rc = 0;
out:
	for (i = 0; i < n; i++)
		free(m[i].key);
	free(m);
	return rc;
}

/* The folder of the attempt or, elsewhere, of the file: of one node. */
static size_t
node_prefix(const struct stream *s)
{
	const char *at = strstr(s->name, "attempt_");

	if (at == NULL)
		at = feed_name_base(s->name);
	return (size_t)(at - s->name);
}

/* One node's local ranks are ranks, as far as anyone can see. */
static void
compare_local_ranks(struct feed *f)
{
	const struct stream *first = NULL;
	size_t i, n = 0;

	for (i = 0; i < f->count; i++) {
		const struct stream *s = &f->streams[i];

		if (s->local_rank == -1 || s->rank != -1)
			continue;
		if (first == NULL) {
			first = s;
			n = node_prefix(s);
		} else if (node_prefix(s) != n ||
		    memcmp(s->name, first->name, n) != 0) {
			return;
		}
	}
	for (i = 0; i < f->count; i++)
		if (f->streams[i].rank == -1)
			f->streams[i].rank = f->streams[i].local_rank;
}

int
feed_set_compare(struct feed *f, struct err *err)
{
	struct feed_part a, b;
	size_t i;

	if (compare_numbers(f, err) == -1)
		return -1;
	compare_local_ranks(f);
	for (i = 0; i + 1 < f->count; i++) {
		struct stream *s = &f->streams[i];

		(void)stem_of(s, &a);
		(void)stem_of(s + 1, &b);
		s->goes_on = a.when < b.when && same_stem(s, s + 1) &&
		    s->rank == s[1].rank;
	}
	return 0;
}
