/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspects.c - who is to be looked at, and who may be left out for it.
 *
 * One node with a cause of its own is a suspect; the same cause on more than a fifth
 * of the nodes is the fault of something they share, and nobody is excluded.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/nccl_log.h"
#include "diagnose/suspects.h"

#define NODES_MAX	4096	/* told apart when their share is counted */
#define SHARED_PERCENT	20	/* more nodes than this: shared infrastructure */

void
suspect_add(struct verdict *v, const char *node, int rank, const char *why)
{
	struct verdict_suspect *s;
	size_t i;

	for (i = 0; i < v->suspect_count; i++)
		if (rank >= 0 && v->suspects[i].rank == rank)
			return;
	if (v->suspect_count == VERDICT_SUSPECTS)
		return;
	s = &v->suspects[v->suspect_count++];
	s->node = *node && strcmp(node, "localhost") != 0 ? strdup(node) : NULL;
	s->rank = rank;
	s->why = strdup(why);
}

void
suspect_node_of_rank(const struct case_file *c, int rank, char *out, size_t size)
{
	const char *node = "";
	size_t i;

	for (i = 0; i < c->feed->count && *node == '\0'; i++)
		if (c->feed->streams[i].rank == rank &&
		    c->feed->streams[i].node != NULL)
			node = c->feed->streams[i].node;
	for (i = 0; i < c->tables.count && *node == '\0'; i++)
		if (c->tables.list[i].rank == rank)
			node = c->tables.list[i].host;
	for (i = 0; i < c->count && *node == '\0'; i++)
		if (c->causes[i].event.rank == rank &&
		    !c->causes[i].event.rank_is_task)
			node = c->causes[i].event.node;
	if (*node == '\0' || strlen(node) >= size)
		nccl_node_of_rank(c, rank, out, size);
	else
		memcpy(out, node, strlen(node) + 1);
}

static size_t
add_node(const char **nodes, size_t n, const char *name)
{
	size_t i;

	if (name == NULL || *name == '\0' || n == NODES_MAX)
		return n;
	for (i = 0; i < n; i++)
		if (strcmp(nodes[i], name) == 0)
			return n;
	nodes[n] = name;
	return n + 1;
}

static size_t
add_all_nodes(const struct case_file *c, const char **nodes)
{
	size_t i, n = 0;

	for (i = 0; i < c->feed->count; i++)
		n = add_node(nodes, n, c->feed->streams[i].node);
	for (i = 0; i < c->count; i++)
		n = add_node(nodes, n, c->causes[i].event.node);
	for (i = 0; i < c->tables.count; i++)
		n = add_node(nodes, n, c->tables.list[i].host);
	return n;
}

/* How many nodes have the cause, and of how many. */
static size_t
count_nodes(const struct case_file *c, const struct cause *w, size_t *all)
{
	const char **nodes = calloc(NODES_MAX, sizeof(*nodes));
	size_t i, hit = 0;

	*all = 0;
	if (nodes == NULL)
		return 0;
	for (i = 0; i < c->count; i++)
		if (c->causes[i].reason == w->reason && !c->causes[i].echo)
			hit = add_node(nodes, hit, c->causes[i].event.node);
	*all = add_all_nodes(c, nodes);
	free(nodes);
	return hit;
}

/* A rank that left no word, while all others tell of losing a peer. */
static void
find_speechless(struct verdict *v, const struct case_file *c)
{
	char why[160];
	size_t i, k;

	for (i = 0; i < c->tables.count; i++) {
		const struct table_entry *e = &c->tables.list[i];

		if (e->told || e->rank < 0 || e->exitcode == 0 ||
		    e->exitcode == -15 || e->exitcode == INT_MIN)
			continue;
		for (k = 0; k < c->count; k++)
			if (c->causes[k].event.rank == e->rank &&
			    c->causes[k].event.rule->def.source != SOURCE_LAUNCHER)
				break;
		if (k < c->count)
			continue;
		if (e->exitcode < 0)
			snprintf(why, sizeof(why), "rank %d was ended by signal %d "
			    "and left no message", e->rank, -e->exitcode);
		else
			snprintf(why, sizeof(why), "rank %d exited with status %d "
			    "and left no message", e->rank, e->exitcode);
		suspect_add(v, e->host, e->rank, why);
	}
}

/* True when some entry of the tables has a message: then silence says something. */
static bool
tables_tell(const struct case_file *c)
{
	size_t i;

	for (i = 0; i < c->tables.count; i++)
		if (c->tables.list[i].told)
			return true;
	return false;
}

/* What a node can have of its own, though its category is not infrastructure. */
static bool
is_of_node(const struct verdict *v)
{
	static const char *const names[] = {
		"file_not_found", "permission_denied", "import_error", "os_error",
		"native_crash", "cuda_illegal_access", "cublas_error", "cudnn_error",
		"version_incompatibility", "fd_limit", "dataloader_killed",
		"loss_nan"
	};
	size_t i;

	if (strcmp(v->category, "infrastructure") == 0)
		return true;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(v->reason, names[i]) == 0)
			return true;
	return false;
}

/* Who only waited for others, or lost them, is no suspect. */
static bool
is_waiting(const struct verdict *v)
{
	return v->status == VERDICT_SYMPTOM_ONLY &&
	    (strcmp(v->reason, "nccl_timeout") == 0 ||
	    strcmp(v->reason, "nccl_remote_error") == 0);
}

/* Names of one node with and without its domain are the same. */
static bool
same_node(const char *a, const char *b)
{
	size_t n = strcspn(a, "."), k = strcspn(b, ".");

	return n == k && strncmp(a, b, n) == 0;
}

/* A line in the output of a process that runs elsewhere, about a node that no file
 * and no launcher knows: whatever was printed there, the job did not run on it. */
static bool
is_foreign(const struct case_file *c, const struct event *e)
{
	const struct stream *s = &c->feed->streams[e->stream];
	size_t i;

	if (s->kind != STREAM_LOG || s->rank < 0 || s->node == NULL ||
	    e->rule->def.source == SOURCE_SCHEDULER)
		return false;
	for (i = 0; i < c->feed->count; i++)
		if (c->feed->streams[i].node != NULL &&
		    same_node(c->feed->streams[i].node, e->node))
			return false;
	for (i = 0; i < c->tables.count; i++)
		if (same_node(c->tables.list[i].host, e->node))
			return false;
	return true;
}

void
suspects_find(struct verdict *v, const struct case_file *c,
    const struct cause *w)
{
	bool infrastructure = strcmp(v->category, "infrastructure") == 0;
	size_t all, hit = count_nodes(c, w, &all);
	char why[200];

	if (v->status == VERDICT_SYMPTOM_ONLY && tables_tell(c))
		find_speechless(v, c);
	if (w->event.node[0] != '\0' && is_of_node(v) && !is_waiting(v) &&
	    (infrastructure || (hit == 1 && all > 1))) {
		snprintf(why, sizeof(why), "%s (%s)%s", w->reason->name,
		    w->exit ? "first to end" : w->event.rule->def.id,
		    infrastructure ? "" : ", on no other node");
		suspect_add(v, w->event.node, w->event.rank, why);
	}
	if (v->action != ACTION_RESTART_EXCLUDING_NODE ||
	    w->event.node[0] == '\0' || is_foreign(c, &w->event))
		return;
	if (hit > 1 && hit * 100 > all * SHARED_PERCENT)
		v->action = ACTION_BACKOFF_RETRY;
	else
		v->action_node = strdup(w->event.node);
}
