/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watchdog.c - arithmetic on the counters that PyTorch's watchdog prints.
 *
 * "last enqueued NCCL work: 1582, last completed NCCL work: 1579" (2.4 to 2.6),
 * "last enqueued work: ..." (later).  A rank that enqueued less than the others
 * never entered the collective; so did one that is silent while all others of
 * its job complain.  Reads the candidates of a case, adds suspects.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/watchdog.h"

#define RANKS_MAX	65536
#define SPEAKERS_MIN	3	/* so many complain before silence means something */

struct counters {
	bool	speaks;
	int64_t	enqueued;	/* -1 unknown */
	char	node[EVENT_NODE_MAX];
};

static int64_t
number_behind(const char *p, size_t len, const char *words)
{
	const char *at = memmem(p, len, words, strlen(words)), *end = p + len;
	int64_t v = 0;
	int digits = 0;

	if (at == NULL)
		return -1;
	for (at += strlen(words); at < end && *at >= '0' && *at <= '9' &&
	    digits < 15; at++, digits++)
		v = v * 10 + (*at - '0');
	return digits > 0 ? v : -1;
}

/* Counters per rank; the highest rank, -1 when none is named. */
static int
collect(const struct case_file *c, struct counters *ranks)
{
	int highest = -1, rank;
	size_t i;

	for (i = 0; i < c->count; i++) {
		const struct event *e = &c->causes[i].event;
		const char *text = c->feed->streams[e->stream].data + e->start;
		int64_t n;

		rank = e->rank;
		if (rank < 0 || rank >= RANKS_MAX ||
		    strcmp(c->causes[i].reason->name, "nccl_timeout") != 0)
			continue;
		if (!ranks[rank].speaks)
			ranks[rank].enqueued = -1;
		ranks[rank].speaks = true;
		memcpy(ranks[rank].node, e->node, sizeof(e->node));
		n = number_behind(text, e->len, "last enqueued NCCL work: ");
		if (n < 0)
			n = number_behind(text, e->len, "last enqueued work: ");
		if (n > ranks[rank].enqueued)
			ranks[rank].enqueued = n;
		if (rank > highest)
			highest = rank;
	}
	return highest;
}

static void
add(struct verdict *v, const char *node, const char *why)
{
	struct verdict_suspect *s;

	if (v->suspect_count == VERDICT_SUSPECTS)
		return;
	s = &v->suspects[v->suspect_count++];
	s->node = *node ? strdup(node) : NULL;
	s->why = strdup(why);
}

void
watchdog_suspects(const struct case_file *c, struct verdict *v)
{
	struct counters *ranks = calloc(RANKS_MAX, sizeof(*ranks));
	int highest, r, speakers = 0, silent = 0;
	int64_t most = -1;
	char why[160];

	if (ranks == NULL)
		return;
	highest = collect(c, ranks);
	for (r = 0; r <= highest; r++) {
		if (!ranks[r].speaks) {
			silent++;
			continue;
		}
		speakers++;
		if (ranks[r].enqueued > most)
			most = ranks[r].enqueued;
	}
	for (r = 0; r <= highest; r++) {
		if (!ranks[r].speaks || ranks[r].enqueued < 0 ||
		    ranks[r].enqueued >= most)
			continue;
		snprintf(why, sizeof(why), "rank %d enqueued %lld collectives, "
		    "others %lld: it did not enter the one that timed out", r,
		    (long long)ranks[r].enqueued, (long long)most);
		add(v, ranks[r].node, why);
	}
	for (r = 0; r <= highest && silent == 1 && speakers >= SPEAKERS_MIN; r++) {
		if (ranks[r].speaks)
			continue;
		snprintf(why, sizeof(why), "rank %d is silent while %d others "
		    "complain: it may have stopped first", r, speakers);
		add(v, "", why);
	}
	free(ranks);
}
