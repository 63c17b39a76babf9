/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confirm.c - what the kernel wrote, against what the ranks say.
 *
 * A record of the out-of-memory killer confirms a SIGKILL of the same process, or of
 * one on the same node at that time; a Xid confirms a CUDA error of its node.  Kernel
 * logs reach back far: what is older than the job has nothing to do with it.
 */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/clock.h"
#include "diagnose/confirm.h"
#include "diagnose/echo.h"
#include "diagnose/entity.h"
#include "diagnose/facts.h"

#define SECOND_NS	1000000000ll
#define AROUND_NS	(600 * SECOND_NS)	/* before and after the job's logs */
#define ZONES_NS	(15 * 3600 * SECOND_NS)	/* between two time zones */
#define OVER_NS		(120 * SECOND_NS)	/* no step completes so much later */
#define TOGETHER_NS	(120 * SECOND_NS)	/* a kill and its record */

static bool
is_kernel(const struct cause *p)
{
	return !p->exit && p->event.rule->def.source == SOURCE_KERNEL;
}

/* A step that another stream completed long after a line: the job got over it. */
static bool
got_over_elsewhere(const struct case_file *c, const struct cause *p)
{
	size_t i;

	for (i = 0; i < c->feed->count; i++) {
		const struct stream_facts *f = &c->facts[i];

		if (i != p->event.stream && f->step_ns != LINE_NO_TIME &&
		    f->progress_before != SIZE_MAX &&
		    f->step_ns - f->ahead_ns - p->time_ns > OVER_NS &&
		    !facts_loss_stays_bad(f, &p->event))
			return true;
	}
	return false;
}

/* A rank that lost a peer names the node of the record: then the record counts
 * whatever the clocks say, which may be minutes apart. */
static bool
is_lost_peer(const struct case_file *c, const struct cause *p)
{
	size_t i, n = strcspn(p->event.node, ".");
	const char *node = p->event.node, *line, *at, *end;

	for (i = 0; n > 0 && i < c->count; i++) {
		const struct event *e = &c->causes[i].event;

		if (c->causes[i].exit || e->stream == p->event.stream ||
		    strcmp(c->causes[i].reason->name, "nccl_remote_error") != 0)
			continue;
		line = c->feed->streams[e->stream].data + e->start;
		end = line + e->len;
		at = memmem(line, e->len, node, n);
		if (at != NULL && (at == line || !isalnum((unsigned char)at[-1])) &&
		    (at + n == end || !isalnum((unsigned char)at[n])) &&
		    (size_t)(at - line) >= e->text - e->start)
			return true;
	}
	return false;
}

bool
confirm_got_over_later(const struct case_file *c, const struct event *e)
{
	size_t i = e->stream;

	while (c->feed->streams[i].goes_on && i + 1 < c->feed->count)
		if (c->facts[++i].progress_before != SIZE_MAX &&
		    !facts_loss_stays_bad(&c->facts[i], e))
			return true;
	return false;
}

void
confirm_drop(struct case_file *c)
{
	int64_t first, last, around = AROUND_NS;
	size_t i, n = 0;
	bool zones;

	clock_span(c, &first, &last, &zones);
	if (zones)
		around += ZONES_NS;
	for (i = 0; i < c->count; i++) {
		struct cause *p = &c->causes[i];
		bool drop = !p->exit && confirm_got_over_later(c, &p->event);

		if (p->time_ns != LINE_NO_TIME && !p->exit) {
			drop |= is_kernel(p) && c->feed->count > 1 &&
			    ((first != LINE_NO_TIME &&
			    p->time_ns < first - around) ||
			    (last != LINE_NO_TIME && p->time_ns > last + around));
			drop |= !zones && p->event.rule->def.source !=
			    SOURCE_SCHEDULER && got_over_elsewhere(c, p) &&
			    !(is_kernel(p) && is_lost_peer(c, p));
		}
		if (!drop)
			c->causes[n++] = *p;
	}
	c->count = n;
}

/* The rank whose process has this number on a node; -1 when no one says. */
static int
rank_of_pid(const struct case_file *c, const struct cause *p, int pid)
{
	size_t i;

	for (i = 0; i < c->exits.count; i++) {
		const struct exit_record *r = &c->exits.list[i];
		const char *node = c->feed->streams[r->stream].node;

		if (r->pid == pid && (node == NULL || *p->event.node == '\0' ||
		    strcmp(node, p->event.node) == 0))
			return r->rank;
	}
	for (i = 0; i < c->tables.count; i++) {
		const struct table_entry *e = &c->tables.list[i];

		if (e->pid == pid && (*e->host == '\0' ||
		    *p->event.node == '\0' || strcmp(e->host, "localhost") == 0 ||
		    strcmp(e->host, p->event.node) == 0))
			return e->rank;
	}
	/* "mpirun noticed that process rank 1 with PID 81 on node n2 ..." */
	for (i = 0; i < c->count; i++)
		if (c->causes[i].event.pid == pid &&
		    c->causes[i].event.rank >= 0 &&
		    !c->causes[i].event.rank_is_task &&
		    !echo_other_node(p, &c->causes[i]))
			return c->causes[i].event.rank;
	return -1;
}

static int
pid_of(const struct case_file *c, const struct cause *p)
{
	const struct stream *s = &c->feed->streams[p->event.stream];

	return p->event.pid > 0 ? p->event.pid :
	    entity_pid(s->data + p->event.start, p->event.len);
}

static bool
is_reason(const struct cause *p, const char *name)
{
	return strcmp(p->reason->name, name) == 0;
}

/* Killed, as far as its own line tells. */
static bool
is_victim(const struct case_file *c, const struct cause *p)
{
	const char *text = c->feed->streams[p->event.stream].data +
	    p->event.start;

	return is_reason(p, "process_killed") ||
	    (is_reason(p, "dataloader_killed") &&
	    (memmem(text, p->event.len, "Killed", 6) != NULL ||
	    memmem(text, p->event.len, "SIGKILL", 7) != NULL ||
	    memmem(text, p->event.len, "exited unexpectedly", 19) != NULL));
}

static bool
together(const struct cause *a, const struct cause *b)
{
	return a->time_ns == LINE_NO_TIME || b->time_ns == LINE_NO_TIME ||
	    llabs(a->time_ns - b->time_ns) < TOGETHER_NS;
}

static void
complete(struct cause *to, const struct cause *from)
{
	if (to->event.rank == -1)
		to->event.rank = from->event.rank;
	if (to->event.node[0] == '\0')
		memcpy(to->event.node, from->event.node, EVENT_NODE_MAX);
	if (to->event.gpu[0] == '\0')
		memcpy(to->event.gpu, from->event.gpu, EVENT_GPU_MAX);
}

/* An OOM record and those that may be its victims. */
static void
join_kill(struct case_file *c, struct cause *o)
{
	struct cause *victim = NULL;
	int pid = pid_of(c, o), other;
	bool far = false, exact = false;
	size_t i;

	if (pid > 0 && o->event.rank == -1)
		o->event.rank = rank_of_pid(c, o, pid);
	for (i = 0; i < c->count; i++) {
		struct cause *p = &c->causes[i];

		if (p == o || !is_victim(c, p))
			continue;
		other = pid_of(c, p);
		if (pid > 0 && other == pid && !echo_other_node(o, p)) {
			p->echo = true;
			victim = p;
			exact = true;
		} else if (echo_other_node(o, p) || !together(o, p)) {
			far = true;
		} else if (victim == NULL) {
			victim = p;
		}
	}
	if (victim != NULL) {
		o->confirmed = true;
		victim->echo = true;
		if (exact || o->event.rank == -1)
			complete(o, victim);
	} else if (far && o->event.rank == -1) {
		/* Another process, on another node or at another time. */
		o->late = true;
	}
}

/* A GPU's record and the first CUDA error of its node. */
static void
join_gpu(struct case_file *c, struct cause *x)
{
	struct cause *first = NULL;
	int pid = pid_of(c, x);
	size_t i;

	if (pid > 0 && x->event.rank == -1)
		x->event.rank = rank_of_pid(c, x, pid);
	for (i = 0; i < c->count; i++) {
		struct cause *p = &c->causes[i];

		if (is_kernel(p) || strstr(p->reason->name, "cu") !=
		    p->reason->name || echo_other_node(x, p) || !together(x, p))
			continue;
		if (first == NULL || cause_compare(p, first) < 0)
			first = p;
	}
	if (first == NULL)
		return;
	x->confirmed = true;
	complete(x, first);		/* it has a GPU of its own */
}

void
confirm_join(struct case_file *c)
{
	size_t i;

	for (i = 0; i < c->count; i++) {
		struct cause *p = &c->causes[i];

		if (p->event.rank == -1 && p->event.pid > 0 && !is_kernel(p))
			p->event.rank = rank_of_pid(c, p, p->event.pid);
		if (is_reason(p, "host_oom") && is_kernel(p))
			join_kill(c, p);
		else if (is_kernel(p) && p->event.gpu[0] != '\0')
			join_gpu(c, p);
	}
}
