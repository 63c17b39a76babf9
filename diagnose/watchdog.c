/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watchdog.c - arithmetic on the counters of watchdogs.
 *
 * Within one process group: a rank that enqueued less than the collective the others
 * wait in never entered it; so did one that completed all it enqueued and only heard of
 * the timeout, and one that is silent while the others complain.  The same number with
 * another operation or size is a mismatch of collectives.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/suspects.h"
#include "diagnose/watchdog.h"

#define SPEAKERS_MIN	3	/* so many complain before silence means something */
#define RANKS_MAX	65536
#define SILENT_MAX	4	/* more of them are not told apart */

/* The members of one group in the list. */
struct group {
	const struct watch_peer **peers;
	size_t		 count;
	int64_t		 seq;		/* that most of them wait in, -1 */
	size_t		 seq_count;
	int64_t		 enqueued;	/* most */
};

static const char *
named(const struct watch_peer *p, char *text, size_t size)
{
	if (p->local)
		snprintf(text, size, "rank %d of group %s", p->rank, p->group);
	else
		snprintf(text, size, "rank %d", p->rank);
	return text;
}

static void
accuse(struct verdict *v, const struct watch_peer *p, const char *why)
{
	char who[128], text[320];

	snprintf(text, sizeof(text), "%s %s", named(p, who, sizeof(who)), why);
	suspect_add(v, p->node, p->local ? -1 : p->rank, text);
}

static int
by_seq(const void *a, const void *b)
{
	const struct watch_peer *const *x = a, *const *y = b;

	return (*x)->seq < (*y)->seq ? -1 : (*x)->seq > (*y)->seq;
}

/* The number that most members wait in, and the most that any enqueued. */
static void
measure(struct group *g)
{
	size_t i, run = 0;

	g->seq = g->enqueued = -1;
	g->seq_count = 0;
	qsort(g->peers, g->count, sizeof(*g->peers), by_seq);
	for (i = 0; i < g->count; i++) {
		const struct watch_peer *p = g->peers[i];

		run = i > 0 && p->seq == g->peers[i - 1]->seq ? run + 1 : 1;
		if (p->seq >= 0 && run > g->seq_count) {
			g->seq_count = run;
			g->seq = p->seq;
		}
		if (p->enqueued > g->enqueued)
			g->enqueued = p->enqueued;
	}
}

/* Ranks in a group without a name may be in different ones, so that only the few that
 * are behind many tell something. */
static bool
is_behind(const struct group *g, const struct watch_peer *p)
{
	if (p->seq >= 0 && g->seq >= 0 && p->seq < g->seq)
		return g->seq_count > 1 && g->seq_count * 2 > g->count;
	return false;
}

static const struct watch_peer *
find_stragglers(const struct group *g, struct verdict *v)
{
	const struct watch_peer *first = NULL;
	int64_t need;
	char why[200];
	size_t i;

	for (i = 0; i < g->count; i++) {
		const struct watch_peer *p = g->peers[i];

		need = g->seq >= 0 ? g->seq : g->enqueued;
		if (p->enqueued >= 0 && p->enqueued < need &&
		    (g->seq >= 0 || g->count > 1)) {
			snprintf(why, sizeof(why), "enqueued %lld collectives, "
			    "others %lld: it did not enter the one that timed out",
			    (long long)p->enqueued, (long long)
			    (g->enqueued > need ? g->enqueued : need));
		} else if (is_behind(g, p)) {
			snprintf(why, sizeof(why), "waits in collective %lld, the "
			    "others in %lld", (long long)p->seq,
			    (long long)g->seq);
		} else if (p->told && !p->timed_out && p->enqueued >= 0 &&
		    p->enqueued == p->completed) {
			snprintf(why, sizeof(why), "had completed all of its %lld "
			    "collectives when it heard of the timeout",
			    (long long)p->enqueued);
		} else {
			continue;
		}
		accuse(v, p, why);
		if (first == NULL || p->enqueued < first->enqueued)
			first = p;
	}
	return first;
}

/* Operations whose sizes are the same on all ranks. */
static bool
is_even(const char *op)
{
	return strncmp(op, "ALLREDUCE", 9) == 0 || strcmp(op, "BROADCAST") == 0 ||
	    strcmp(op, "_BROADCAST_OOP") == 0 || strcmp(op, "REDUCE") == 0 ||
	    strcmp(op, "_REDUCE_OOP") == 0 || strcmp(op, "_ALLGATHER_BASE") == 0 ||
	    strcmp(op, "_REDUCE_SCATTER_BASE") == 0;
}

static bool
differs(const struct watch_peer *a, const struct watch_peer *b)
{
	if (strcmp(a->op, b->op) != 0)
		return true;
	return is_even(a->op) && a->numel_in >= 0 && b->numel_in >= 0 &&
	    (a->numel_in != b->numel_in || a->numel_out != b->numel_out);
}

/* The members at the common number that do not do what most of them do. */
static const struct watch_peer *
find_mismatch(const struct group *g, struct verdict *v)
{
	const struct watch_peer *first = NULL, *most = NULL;
	size_t i, k, n, best = 0;
	char why[240];

	if (g->peers[0]->group[0] == '\0' || g->seq < 0)
		return NULL;
	for (i = 0; i < g->count; i++) {
		for (n = 0, k = 0; k < g->count; k++)
			n += g->peers[i]->seq == g->seq &&
			    g->peers[k]->seq == g->seq &&
			    !differs(g->peers[i], g->peers[k]);
		if (n > best) {
			best = n;
			most = g->peers[i];
		}
	}
	for (i = 0; i < g->count && most != NULL; i++) {
		const struct watch_peer *p = g->peers[i];

		if (p->seq != g->seq || !differs(p, most))
			continue;
		snprintf(why, sizeof(why), "is in %s of %lld elements as collective "
		    "%lld, others in %s of %lld", p->op, (long long)p->numel_in,
		    (long long)p->seq, most->op, (long long)most->numel_in);
		accuse(v, p, why);
		if (first == NULL)
			first = p;
	}
	return first;
}

static void
find_stuck(const struct group *g, struct verdict *v)
{
	size_t i;

	for (i = 0; i < g->count; i++)
		if (g->peers[i]->stuck)
			accuse(v, g->peers[i], "does not get on: its watchdog itself "
			    "is stuck, in a call of CUDA or for Python's lock");
}

/* Notes who speaks, and how high the ranks go. */
static int
find_speakers(const struct case_file *c, const struct watch_list *l, char *seen,
    int *speakers)
{
	int highest = -1, r;
	size_t i;

	for (i = 0; i < l->count; i++) {
		r = l->list[i].rank;
		if (l->list[i].local || r >= RANKS_MAX)
			continue;
		*speakers += seen[r] == 0;
		seen[r] = 1;
		highest = r > highest ? r : highest;
	}
	for (i = 0; i < c->count; i++) {
		const struct event *e = &c->causes[i].event;

		if (e->rank < 0 || e->rank >= RANKS_MAX || e->rank_is_task)
			continue;
		*speakers += seen[e->rank] == 0;
		seen[e->rank] = 1;
		highest = e->rank > highest ? e->rank : highest;
	}
	for (i = 0; i < c->feed->count; i++) {
		r = c->feed->streams[i].rank;
		highest = r > highest && r < RANKS_MAX ? r : highest;
	}
	return highest;
}

static void
accuse_silent(const struct case_file *c, struct verdict *v, int from, int to,
    int speakers)
{
	char why[160], node[EVENT_NODE_MAX];

	if (from == to)
		snprintf(why, sizeof(why), "rank %d is silent while %d others "
		    "complain: it may have stopped first", from, speakers);
	else
		snprintf(why, sizeof(why), "ranks %d to %d are silent while %d "
		    "others complain: they may have stopped first", from, to,
		    speakers);
	suspect_node_of_rank(c, from, node, sizeof(node));
	suspect_add(v, node, from, why);
}

/* Ranks that a log of their own, or the numbers around them, show to exist, and that
 * say nothing while many others complain: few of them, or all of one node. */
static void
find_silent(const struct case_file *c, const struct watch_list *l,
    struct verdict *v)
{
	int highest, r, from, speakers = 0, silent = 0, runs = 0;
	char *seen = calloc(RANKS_MAX + 1, 1);

	if (seen == NULL)
		return;
	highest = find_speakers(c, l, seen, &speakers);
	for (r = 0; r <= highest; r++) {
		silent += !seen[r];
		runs += !seen[r] && (r == 0 || seen[r - 1]);
	}
	seen[highest + 1] = 1;
	if (speakers < SPEAKERS_MIN || silent * 2 >= speakers ||
	    (silent > SILENT_MAX && runs > 1))
		highest = -1;
	for (r = 0; r <= highest; r++) {
		if (seen[r])
			continue;
		for (from = r; silent > SILENT_MAX && !seen[r + 1]; r++)
			;
		accuse_silent(c, v, from, r, speakers);
	}
	free(seen);
}

/* "Rank 0 is running collective: ..., but Rank 3 is running collective: ...": the one
 * that is named most is the odd one. */
static void
find_odd(const struct case_file *c, struct verdict *v)
{
	int *named = calloc(RANKS_MAX, sizeof(*named)), best = -1, next = 0, r;
	char why[160], node[EVENT_NODE_MAX];
	size_t i;

	for (i = 0; named != NULL && i < c->count; i++) {
		const struct event *e = &c->causes[i].event;
		const char *p = c->feed->streams[e->stream].data + e->start;
		const char *end = p + e->len;

		while ((p = memmem(p, (size_t)(end - p), "Rank ", 5)) != NULL) {
			for (p += 5, r = 0; p < end && *p >= '0' && *p <= '9' &&
			    r < RANKS_MAX; p++)
				r = r * 10 + (*p - '0');
			if (end - p > 22 && r < RANKS_MAX && memcmp(p,
			    " is running collective", 22) == 0)
				named[r]++;
		}
	}
	for (r = 0; named != NULL && r < RANKS_MAX; r++) {
		if (best == -1 || named[r] > named[best]) {
			next = best == -1 ? 0 : named[best];
			best = r;
		} else if (named[r] > next) {
			next = named[r];
		}
	}
	if (best >= 0 && named[best] > next && next > 0) {
		snprintf(why, sizeof(why), "rank %d runs another collective than "
		    "%d others", best, named[best] - 1);
		suspect_node_of_rank(c, best, node, sizeof(node));
		suspect_add(v, node, best, why);
	}
	free(named);
}

static void
find_named(const struct watch_list *l, struct verdict *v)
{
	char why[100];
	size_t i;

	for (i = 0; i < l->named_count; i++) {
		snprintf(why, sizeof(why), "rank %d is missing, as others say",
		    l->named[i]);
		suspect_add(v, "", l->named[i], why);
	}
}

static int
by_group(const void *a, const void *b)
{
	return strcmp((*(const struct watch_peer *const *)a)->group,
	    (*(const struct watch_peer *const *)b)->group);
}

/* The candidate that is the line of a peer. */
static const struct cause *
line_of(const struct case_file *c, const struct watch_peer *p)
{
	size_t i;

	for (i = 0; p != NULL && i < c->count; i++)
		if (c->causes[i].event.stream == p->stream &&
		    c->causes[i].event.start == p->start && !c->causes[i].exit)
			return &c->causes[i];
	return NULL;
}

const struct cause *
watchdog_judge(const struct case_file *c, struct verdict *v, bool *mismatch)
{
	struct watch_list l = {0};
	const struct watch_peer **all = NULL, *odd = NULL, *late = NULL, *p;
	const struct cause *own;
	struct group g;
	size_t i, k;

	*mismatch = false;
	if (watch_read(&l, c, NULL) == 0)
		all = calloc(l.count + 1, sizeof(struct watch_peer *));
	for (i = 0; all != NULL && i < l.count; i++)
		all[i] = &l.list[i];
	if (all != NULL)
		qsort(all, l.count, sizeof(struct watch_peer *), by_group);
	find_named(&l, v);
	find_odd(c, v);
	for (i = 0; all != NULL && i < l.count; i = k) {
		for (k = i + 1; k < l.count &&
		    strcmp(all[k]->group, all[i]->group) == 0; k++)
			;
		g = (struct group){ .peers = all + i, .count = k - i };
		measure(&g);
		if ((p = find_mismatch(&g, v)) != NULL && odd == NULL)
			odd = p;
		if ((p = find_stragglers(&g, v)) != NULL && late == NULL)
			late = p;
		find_stuck(&g, v);
	}
	find_silent(c, &l, v);
	*mismatch = odd != NULL;
	own = line_of(c, odd != NULL ? odd : late);
	free(all);
	watch_fini(&l);
	return own;
}
