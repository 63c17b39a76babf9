/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cause.c - collects what could be the cause from all streams.
 *
 * Reads the events of the rules, the exit records and the tracebacks no rule
 * knows; leaves out what was ignored by the program or was followed by completed
 * steps; notes what came after the job began to be ended.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/ahead.h"
#include "diagnose/cause.h"
#include "diagnose/clock.h"
#include "diagnose/entity.h"
#include "diagnose/facts.h"
#include "diagnose/nccl_log.h"

#define TRACEBACK_MAX	(64u << 10)	/* bytes of a traceback */

const struct rule cause_rule_exception = {
	.def = { .id = RULE_EXCEPTION, .file = "built in", .role = ROLE_ROOT,
	    .source = SOURCE_RANK, .action = -1, .priority = -50 },
	.after = -1
};

/* Rungs of the ladder (design: from scheduler decision to bare exit code), by
 * reason where the category alone does not tell. */
static const struct {
	const char	*reason;
	int		 rung;
} rungs[] = {
	{ "gpu_ecc_error", 2 }, { "gpu_lost", 2 }, { "gpu_fault", 2 },
	{ "nvlink_error", 2 }, { "pcie_error", 2 },
	{ "node_failure", 3 }, { "host_oom", 5 },
	{ "runtime_error", 7 }, { "os_error", 7 }, { "called_process_error", 7 },
	{ "native_crash", 7 }, { "cuda_error", 6 },
	{ "nccl_timeout", 8 }, { "nccl_remote_error", 8 },
	{ "nccl_system_error", 8 }, { "nccl_internal_error", 8 },
	{ "hang", 8 }, { "rendezvous_timeout", 7 }, { "process_killed", 9 },
	{ "unknown", 10 }, { NULL, 0 }
};

static int
rung_of(const struct reason *r)
{
	size_t i;

	if (r->rung > 0)
		return r->rung;
	for (i = 0; rungs[i].reason != NULL; i++)
		if (strcmp(rungs[i].reason, r->name) == 0)
			return rungs[i].rung;
	if (strcmp(r->category, "external") == 0)
		return 1;
	if (strcmp(r->category, "infrastructure") == 0)
		return 4;
	return 6;
}

/* Rungs whose members are told apart by order alone share a class. */
static int
class_of(const struct reason *r, enum rule_role role)
{
	static const int classes[] = { 9, 1, 2, 3, 5, 4, 5, 7, 8, 9, 10 };
	int rung = rung_of(r);

	/* SIGABRT is how NCCL's watchdog and C++ exceptions end a rank: its line
	 * says less than whatever they said before. */
	if (role == ROLE_SYMPTOM && strcmp(r->name, "native_crash") == 0)
		rung = 9;
	if (role == ROLE_TEARDOWN)	/* better than nothing */
		rung = 10;
	if (role == ROLE_SYMPTOM || role == ROLE_TEARDOWN)
		return CLASS_SYMPTOM + rung;
	return classes[rung < 0 || rung > 10 ? 0 : rung];
}

struct cause *
case_add(struct case_file *c, struct err *err)
{
	struct cause *p;

	if (c->count == c->cap) {
		c->cap = c->cap ? c->cap * 2 : 64;
		p = realloc(c->causes, c->cap * sizeof(*p));
		if (p == NULL) {
			err_memory(err);
			return NULL;
		}
		c->causes = p;
	}
	p = &c->causes[c->count++];
	memset(p, 0, sizeof(*p));
	p->order = INT_MAX;
	p->time_ns = LINE_NO_TIME;
	return p;
}

static bool
outlives_teardown(const struct event *e)
{
	return e->rule->def.role == ROLE_CONFIRM ||
	    e->rule->def.source == SOURCE_KERNEL ||
	    e->rule->def.source == SOURCE_LAUNCHER ||
	    e->rule->def.source == SOURCE_SCHEDULER;
}

static void
find_teardown(struct case_file *c, size_t from, size_t to)
{
	size_t i;

	for (i = from; i < to; i++) {
		const struct event *e = &c->events.list[i];
		struct stream_facts *f = &c->facts[e->stream];

		if (e->rule->def.role == ROLE_TEARDOWN &&
		    f->teardown == SIZE_MAX && !facts_got_over(f, e))
			f->teardown = e->start;
	}
}

/* The node of the stream, unless the line names one. */
static void
set_node(struct event *e, const char *node)
{
	if (e->node[0] == '\0' && node != NULL &&
	    strlen(node) < EVENT_NODE_MAX)
		memcpy(e->node, node, strlen(node) + 1);
}

/* Which rank and node printed a line, by the tables of the agents that started
 * them: inside a table, its entry; elsewhere the process that the line names.
 * srun's label is that of an agent then, and no rank. */
static void
place(struct case_file *c, struct cause *p)
{
	struct table_list *t = &c->tables;
	struct event *e = &p->event;
	const struct table_entry *entry = table_at(t, e->stream, e->start);
	const struct table_entry *agent = table_of_task(t, e->stream, e->task);
	const struct stream *s = &c->feed->streams[e->stream];

	if (e->pid == -1 && t->count > 0)
		e->pid = entity_pid(s->data + e->start, e->len);
	if (agent != NULL && e->rank_is_task)
		e->rank = -1;
	if (entry == NULL && e->rank == -1)
		entry = table_of_process(t, e->stream, e->pid, e->local_rank);
	if (entry == NULL && e->rank == -1 && e->text >= e->start &&
	    e->text - e->start < e->len)
		entry = table_of_message(t, s, e->stream, s->data + e->text,
		    e->len - (e->text - e->start));
	if (entry == NULL && e->rank == -1 &&
	    strcmp(p->reason->name, "native_crash") == 0)
		entry = table_of_crash(t, e->stream);
	if (entry != NULL) {
		if (entry->rank >= 0)
			e->rank = entry->rank;
		if (e->pid == -1)
			e->pid = entry->pid;
	}
	if (entry == NULL)
		entry = agent;
	if (entry != NULL && strcmp(entry->host, "localhost") != 0)
		set_node(e, entry->host);
}

/* An error of NCCL whose innermost call lost a peer is the echo of that peer's end. */
static void
ask_nccl(const struct case_file *c, struct cause *p)
{
	const struct reason *remote = rule_set_reason(c->set,
	    "nccl_remote_error");
	struct nccl_origin o;

	if (remote == NULL || (strcmp(p->reason->name, "nccl_internal_error") != 0 &&
	    strcmp(p->reason->name, "nccl_system_error") != 0) ||
	    !nccl_find_origin(&c->feed->streams[p->event.stream],
	    p->event.start, &o) || o.result != NCCL_REMOTE)
		return;
	p->reason = remote;
	p->rank_class = class_of(remote, ROLE_SYMPTOM);
}

static int
add_event(struct case_file *c, const struct event *e,
    const struct reason *reason, struct err *err)
{
	const struct stream *s = &c->feed->streams[e->stream];
	const struct stream_facts *f = &c->facts[e->stream];
	struct block block;
	struct cause *p;

	if (facts_got_over(f, e) && !facts_loss_stays_bad(f, e))
		return 0;
	block_find(c->lines, s, &c->events.styles, e, &block);
	if (block.ignored)
		return 0;
	if ((p = case_add(c, err)) == NULL)
		return -1;
	p->event = *e;
	p->reason = reason;
	p->block = block;
	p->rank_class = class_of(reason, e->rule->def.role);
	if (strncmp(reason->name, "nccl_", 5) == 0)
		ask_nccl(c, p);
	if (s->rank != -1 && (e->rank == -1 || e->rank_is_task))
		p->event.rank = s->rank;
	set_node(&p->event, s->node);
	p->late = e->start > f->teardown && !outlives_teardown(e);
	return 0;
}

/* A line some rule already won. */
static bool
is_event(const struct case_file *c, size_t from, size_t to, size_t start)
{
	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (c->events.list[mid].start == start)
			return true;
		if (c->events.list[mid].start < start)
			from = mid + 1;
		else
			to = mid;
	}
	return false;
}

/* Some rule knows what a traceback ends with, or what came soon after. */
static bool
has_event_behind(const struct case_file *c, const struct event *mark,
    size_t to)
{
	const struct event *e = mark + 1, *end = c->events.list + to;

	for (; e < end && e->start - mark->start < TRACEBACK_MAX; e++)
		if (e->rule->def.role != ROLE_CONTEXT)
			return true;
	return false;
}

static int
add_unknown_exception(struct case_file *c, const struct event *mark,
    size_t from, size_t to, struct err *err)
{
	const struct stream *s = &c->feed->streams[mark->stream];
	const struct reason *r = rule_set_reason(c->set, "runtime_error");
	struct event e = *mark;
	struct piece p;
	struct line line;

	if (facts_got_over(&c->facts[mark->stream], mark))
		return 0;
	if (!block_exception(s, &c->events.styles, mark, &p, &line)) {
		if (!has_event_behind(c, mark, to) &&
		    block_is_real(s, &c->events.styles, mark))
			c->unknown_exception = true;
		return 0;
	}
	if (is_event(c, from, to, p.start) ||
	    !block_is_real(s, &c->events.styles, mark))
		return 0;
	c->unknown_exception = true;
	if (r == NULL)
		return 0;
	e.rule = &cause_rule_exception;
	e.start = p.start;
	e.len = (uint32_t)(p.end - p.start > 4096 ? 4096 : p.end - p.start);
	e.text = (size_t)(line.text - s->data);
	e.rank = line.rank;
	e.level = line.level;
	e.time_ns = line.time_ns;
	e.when = line.when;
	return add_event(c, &e, r, err);
}

static bool
cancels(const struct rule *r, const char *id)
{
	const char *const *k = r->def.cancels;

	for (; k != NULL && *k != NULL; k++)
		if (strcmp(*k, id) == 0)
			return true;
	return false;
}

/* Behind the last event that takes others back; from when there is none. */
static size_t
cancelling_end(const struct case_file *c, size_t from, size_t to)
{
	while (to > from && c->events.list[to - 1].rule->def.cancels == NULL)
		to--;
	return to;
}

/* Lines that a later one takes back: "server not responding" by "server OK". */
static bool
is_cancelled(const struct case_file *c, size_t i, size_t to)
{
	const char *id = c->events.list[i].rule->def.id;
	size_t k;

	for (k = i + 1; k < to; k++)
		if (c->events.list[k].rule->def.cancels != NULL &&
		    cancels(c->events.list[k].rule, id))
			return true;
	return false;
}

static int
read_stream(struct case_file *c, uint32_t stream, struct err *err)
{
	const struct stream *s = &c->feed->streams[stream];
	size_t from = c->events.count, tables_end = 0, i, to, cancelling;

	facts_init(&c->facts[stream]);
	if (s->kind == STREAM_EXITS)
		return exits_read(&c->exits, c->feed, stream, err);
	if (events_collect(&c->events, c->set, c->feed, stream, err) == -1)
		return -1;
	to = c->events.count;
	cancelling = cancelling_end(c, from, to);
	facts_read(&c->facts[stream], s);
	find_teardown(c, from, to);
	for (i = from; i < to; i++) {
		struct event *e = &c->events.list[i];

		if (e->rule->def.role == ROLE_CONTEXT && e->start >= tables_end &&
		    table_is_mark(s, e) && table_read(&c->tables, c->feed,
		    &c->events.styles, e, &tables_end, err) == -1)
			return -1;
		if (strcmp(e->rule->def.id, "traceback") == 0) {
			if (add_unknown_exception(c, e, from, to, err) == -1)
				return -1;
			continue;
		}
		if (e->rule->reason == NULL || e->rule->def.role == ROLE_BENIGN ||
		    e->rule->def.role == ROLE_CONTEXT ||
		    is_cancelled(c, i, cancelling))
			continue;
		if (add_event(c, e, e->rule->reason, err) == -1)
			return -1;
	}
	return 0;
}

int
case_read(struct case_file *c, struct rule_set *set, const struct feed *feed,
    struct err *err)
{
	size_t i;

	c->set = set;
	c->feed = feed;
	c->facts = calloc(feed->count + 1, sizeof(*c->facts));
	c->lines = block_lines_new();
	if (c->facts == NULL || c->lines == NULL)
		return err_memory(err);
	if (events_begin(&c->events, set, feed, set->threads > 0 ?
	    set->threads - 1 : ahead_threads(feed), err) == -1)
		return -1;
	for (i = 0; i < feed->count; i++) {
		if (read_stream(c, (uint32_t)i, err) == -1)
			return -1;
		stream_release(&feed->streams[i], 0, feed->streams[i].len);
	}
	for (i = 0; i < c->count; i++)
		place(c, &c->causes[i]);
	clock_align(c);
	return 0;
}

void
case_fini(struct case_file *c)
{
	events_fini(&c->events);
	exits_fini(&c->exits);
	table_fini(&c->tables);
	block_lines_free(c->lines);
	free(c->facts);
	free(c->causes);
	memset(c, 0, sizeof(*c));
}
