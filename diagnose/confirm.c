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

/* Who has a process number: an exit record, a row of a table or a candidate, in this
 * order. */
struct owner {
	int		 pid;
	uint32_t	 index;		/* counted through all three */
	bool		 silent;	/* the first of a number: none tells a rank */
};

struct victim {
	struct cause	*cause;
	int		 pid;
};

/* What the candidates are looked for by, each list in their order. */
struct join {
	struct case_file *c;
	struct owner	*owners;	/* by number */
	struct victim	*victims;	/* of a kill */
	struct cause	**errors;	/* of CUDA */
	size_t		 owner_count, victim_count, error_count;
};

/* The first of the owners of a number; NULL when it has none. */
static struct owner *
first_owner(const struct join *j, int pid)
{
	size_t from = 0, to = j->owner_count, mid;

	while (from < to) {
		mid = from + (to - from) / 2;
		if (j->owners[mid].pid < pid)
			from = mid + 1;
		else
			to = mid;
	}
	return from < j->owner_count && j->owners[from].pid == pid ?
	    &j->owners[from] : NULL;
}

static bool
may_be_node(const char *host, const struct cause *p)
{
	return host == NULL || *host == '\0' || *p->event.node == '\0' ||
	    strcmp(host, p->event.node) == 0;
}

/* Tells the rank that an owner has, or -1 when it does not know; `here`: it may be
 * the process on the node of p. */
static int
rank_of_owner(const struct join *j, const struct owner *o, const struct cause *p,
    bool *here)
{
	const struct case_file *c = j->c;
	size_t i = o->index;
	const struct cause *q;

	if (i < c->exits.count) {
		*here = may_be_node(
		    c->feed->streams[c->exits.list[i].stream].node, p);
		return c->exits.list[i].rank;
	}
	if ((i -= c->exits.count) < c->tables.count) {
		const struct table_entry *e = &c->tables.list[i];

		*here = strcmp(e->host, "localhost") == 0 ||
		    may_be_node(e->host, p);
		return e->rank;
	}
	/* "mpirun noticed that process rank 1 with PID 81 on node n2 ..." */
	q = &c->causes[i - c->tables.count];
	*here = q->event.rank >= 0 && !q->event.rank_is_task &&
	    !echo_other_node(p, q);
	return q->event.rank_is_task ? -1 : q->event.rank;
}

/* The rank whose process has this number on a node; -1 when no one says. */
static int
rank_of_pid(const struct join *j, const struct cause *p, int pid)
{
	struct owner *first = first_owner(j, pid), *o = first;
	const struct owner *end = j->owners + j->owner_count;
	bool silent = true, here;
	int rank;

	if (first == NULL || first->silent)
		return -1;
	for (; o < end && o->pid == pid; o++) {
		rank = rank_of_owner(j, o, p, &here);
		if (here)
			return rank;
		silent &= rank < 0;
	}
	first->silent = silent;
	return -1;
}

/* Others may learn it from this one now. */
static void
set_rank(const struct join *j, struct cause *p, int rank)
{
	struct owner *first = p->event.pid > 0 ? first_owner(j, p->event.pid) :
	    NULL;

	p->event.rank = rank;
	if (first != NULL && rank >= 0)
		first->silent = false;
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
complete(const struct join *j, struct cause *to, const struct cause *from)
{
	if (to->event.rank == -1)
		set_rank(j, to, from->event.rank);
	if (to->event.node[0] == '\0')
		memcpy(to->event.node, from->event.node, EVENT_NODE_MAX);
	if (to->event.gpu[0] == '\0')
		memcpy(to->event.gpu, from->event.gpu, EVENT_GPU_MAX);
}

/* An OOM record and those that may be its victims. */
static void
join_kill(const struct join *j, struct cause *o)
{
	struct cause *victim = NULL;
	int pid = pid_of(j->c, o);
	bool far = false, exact = false;
	size_t i;

	if (pid > 0 && o->event.rank == -1)
		set_rank(j, o, rank_of_pid(j, o, pid));
	for (i = 0; i < j->victim_count; i++) {
		struct cause *p = j->victims[i].cause;

		if (p == o)
			continue;
		if (pid > 0 && j->victims[i].pid == pid &&
		    !echo_other_node(o, p)) {
			p->echo = true;
			victim = p;
			exact = true;
		} else if (!together(o, p) || echo_other_node(o, p)) {
			far = true;
		} else if (victim == NULL) {
			victim = p;
		}
	}
	if (victim != NULL) {
		o->confirmed = true;
		victim->echo = true;
		if (exact || o->event.rank == -1)
			complete(j, o, victim);
	} else if (far && o->event.rank == -1) {
		/* Another process, on another node or at another time. */
		o->late = true;
	}
}

/* A GPU's record and the first CUDA error of its node. */
static void
join_gpu(const struct join *j, struct cause *x)
{
	struct cause *first = NULL;
	int pid = pid_of(j->c, x);
	size_t i;

	if (pid > 0 && x->event.rank == -1)
		set_rank(j, x, rank_of_pid(j, x, pid));
	for (i = 0; i < j->error_count; i++) {
		struct cause *p = j->errors[i];

		if ((first == NULL || cause_compare(p, first) < 0) &&
		    together(x, p) && !echo_other_node(x, p))
			first = p;
	}
	if (first == NULL)
		return;
	x->confirmed = true;
	complete(j, x, first);		/* it has a GPU of its own */
}

static int
by_pid(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static void
add_owner(struct join *j, int pid, size_t index)
{
	if (pid > 0)
		j->owners[j->owner_count++] = (struct owner){ .pid = pid,
		    .index = (uint32_t)index };
}

static int
prepare(struct join *j, struct err *err)
{
	struct case_file *c = j->c;
	size_t others = c->exits.count + c->tables.count, i;

	j->owners = calloc(others + c->count + 1, sizeof(*j->owners));
	j->victims = calloc(c->count + 1, sizeof(*j->victims));
	j->errors = calloc(c->count + 1, sizeof(struct cause *));
	if (j->owners == NULL || j->victims == NULL || j->errors == NULL)
		return err_memory(err);
	for (i = 0; i < c->exits.count; i++)
		add_owner(j, c->exits.list[i].pid, i);
	for (i = 0; i < c->tables.count; i++)
		add_owner(j, c->tables.list[i].pid, c->exits.count + i);
	for (i = 0; i < c->count; i++) {
		struct cause *p = &c->causes[i];

		add_owner(j, p->event.pid, others + i);
		if (is_victim(c, p))
			j->victims[j->victim_count++] =
			    (struct victim){ p, pid_of(c, p) };
		if (!is_kernel(p) && strncmp(p->reason->name, "cu", 2) == 0)
			j->errors[j->error_count++] = p;
	}
	qsort(j->owners, j->owner_count, sizeof(*j->owners), by_pid);
	return 0;
}

int
confirm_join(struct case_file *c, struct err *err)
{
	struct join j = { .c = c };
	size_t i;
	int rc = -1;

	if (prepare(&j, err) == -1)
		goto out;
	for (i = 0; i < c->count; i++) {
		struct cause *p = &c->causes[i];

		if (p->event.rank == -1 && p->event.pid > 0 && !is_kernel(p))
			set_rank(&j, p, rank_of_pid(&j, p, p->event.pid));
		if (is_kernel(p) && is_reason(p, "host_oom"))
			join_kill(&j, p);
		else if (is_kernel(p) && p->event.gpu[0] != '\0')
			join_gpu(&j, p);
	}
	rc = 0;
out:
	free(j.owners);
	free(j.victims);
	free(j.errors);
	return rc;
}
