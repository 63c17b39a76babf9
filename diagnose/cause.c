/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cause.c - collects what could be the cause from all streams.
 *
 * Reads the events of the rules, the exit records and the tracebacks no rule
 * knows; leaves out what was ignored by the program or was followed by completed
 * steps; notes what came after the job began to be ended.
 */
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/ahead.h"
#include "diagnose/cause.h"
#include "diagnose/progress.h"

#define GRACE_BYTES	(64u << 10)
#define TRACEBACK_MAX	(64u << 10)	/* bytes of a traceback */
#define TAIL_MAX	(256u << 10)	/* searched for the last step line */

#define LATE_END_NS	2000000000ll	/* dying takes so long */

static const struct rule rule_exception = {
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
	if (role == ROLE_SYMPTOM)
		return CLASS_SYMPTOM + rung;
	return classes[rung < 0 || rung > 10 ? 0 : rung];
}

static struct cause *
add_cause(struct case_file *c, struct err *err)
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

/* The last two lines of completed steps of a stream. */
static void
find_progress(const struct stream *s, struct stream_facts *f)
{
	size_t floor = s->len > TAIL_MAX ? s->len - TAIL_MAX : 0;
	struct piece p = { s->len, s->len };
	struct progress step;

	f->progress = f->progress_before = SIZE_MAX;
	f->step = -1;
	while (line_piece_before(s->data, p.start, &p) && p.start >= floor) {
		if (p.end - p.start < 8 ||
		    !progress_parse(s->data + p.start, p.end - p.start, &step))
			continue;
		if (f->progress == SIZE_MAX) {
			f->progress = p.start;
			f->step = step.step;
			f->finite = step.has_loss && isfinite(step.loss);
		} else if (step.step < 0 || step.step != f->step) {
			f->progress_before = p.start;
			return;
		}
		if (f->step < 0)
			f->step = step.step;
	}
}

/* Two steps completed after a line: the job got over it.  What a scheduler says is
 * followed by some steps while ranks still hold out; many are another attempt
 * that writes into the same file. */
static bool
got_over(const struct stream_facts *f, const struct event *e)
{
	size_t grace = e->rule->def.source == SOURCE_SCHEDULER ?
	    GRACE_BYTES : 0;

	return f->progress_before != SIZE_MAX &&
	    f->progress_before > e->start + grace;
}

/* Steps after a bad loss say nothing while the loss stays bad. */
static bool
survives_progress(const struct stream_facts *f, const struct event *e)
{
	const struct reason *r = e->rule->reason;

	return !f->finite && r != NULL && strncmp(r->name, "loss_", 5) == 0;
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
		    f->teardown == SIZE_MAX && !got_over(f, e))
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

static int
number_at(const char *p, const char *end)
{
	int v = 0, k;

	for (k = 0; p < end && *p >= '0' && *p <= '9' && k < 7; p++, k++)
		v = v * 10 + (*p - '0');
	return k > 0 ? v : -1;
}

/* A line of torchelastic's table ("  exitcode  : -9 ...") belongs to the rank two
 * lines above; its log line ("failed (exitcode: -9) local_rank: 1 (pid: ...")
 * names the local rank, which the table below it pairs with the rank. */
static int
rank_of_table(const struct stream *s, const struct event *e)
{
	const char *line = s->data + e->start, *end = line + e->len, *at, *p;
	const char *from = line - (e->start < 400 ? e->start : 400);
	size_t left = s->len - e->start;
	int rank = -1, local;
	char pair[40];

	if (memmem(line, e->len, "exitcode  : ", 12) != NULL) {
		for (p = from; (at = memmem(p, (size_t)(line - p),
		    "rank      : ", 12)) != NULL; p = at + 12)
			rank = number_at(at + 12, line);
		return rank;
	}
	at = memmem(line, e->len, ") local_rank: ", 14);
	if (at == NULL || (local = number_at(at + 14, end)) == -1)
		return -1;
	snprintf(pair, sizeof(pair), " (local_rank: %d)", local);
	at = memmem(line, left < 262144 ? left : 262144, pair, strlen(pair));
	for (p = at; p != NULL && p > line && p[-1] >= '0' && p[-1] <= '9'; p--)
		;
	return p != NULL ? number_at(p, at) : -1;
}

static int
add_event(struct case_file *c, const struct event *e,
    const struct reason *reason, struct err *err)
{
	const struct stream *s = &c->feed->streams[e->stream];
	const struct stream_facts *f = &c->facts[e->stream];
	struct block block;
	struct cause *p;

	if (got_over(f, e) && !survives_progress(f, e))
		return 0;
	block_find(s, &c->events.styles, e, &block);
	if (block.ignored)
		return 0;
	if ((p = add_cause(c, err)) == NULL)
		return -1;
	p->event = *e;
	if (e->when.clock == CLOCK_DATE)
		p->time_ns = e->when.ns;
	p->reason = reason;
	p->block = block;
	p->rank_class = class_of(reason, e->rule->def.role);
	if (p->event.rank == -1)
		p->event.rank = s->rank != -1 ? s->rank :
		    rank_of_table(s, e);
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

	if (!block_exception(s, &c->events.styles, mark, &p, &line)) {
		if (!got_over(&c->facts[mark->stream], mark) &&
		    !has_event_behind(c, mark, to))
			c->unknown_exception = true;
		return 0;
	}
	if (is_event(c, from, to, p.start))
		return 0;
	c->unknown_exception = true;
	if (r == NULL)
		return 0;
	e.rule = &rule_exception;
	e.start = p.start;
	e.len = (uint32_t)(p.end - p.start > 4096 ? 4096 : p.end - p.start);
	e.text = (size_t)(line.text - s->data);
	e.rank = line.rank;
	e.level = line.level;
	e.when = line.when;
	return add_event(c, &e, r, err);
}

/* torchelastic's table names the rank that failed first on its node:
 * "  rank      : 3 (local_rank: 3)" below "Root Cause (first observed failure):". */
static void
read_table(struct case_file *c, const struct event *mark)
{
	const struct stream *s = &c->feed->streams[mark->stream];
	const char *p = s->data + mark->start, *end = s->data + s->len, *at;
	size_t n = (size_t)(end - p) < 1500 ? (size_t)(end - p) : 1500;
	int rank = 0;

	at = memmem(p, n, "rank      : ", 12);
	if (at == NULL || c->table_rank >= 0)
		return;
	for (at += 12; at < end && *at >= '0' && *at <= '9' && rank < 10000000;
	    at++)
		rank = rank * 10 + (*at - '0');
	c->table_rank = rank;
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
	size_t from = c->events.count, i, to;

	c->facts[stream].teardown = SIZE_MAX;
	c->facts[stream].progress = c->facts[stream].progress_before = SIZE_MAX;
	c->facts[stream].step = -1;
	if (s->kind == STREAM_EXITS)
		return exits_read(&c->exits, c->feed, stream, err);
	if (events_collect(&c->events, c->set, c->feed, stream, err) == -1)
		return -1;
	to = c->events.count;
	if (s->kind == STREAM_LOG)
		find_progress(s, &c->facts[stream]);
	find_teardown(c, from, to);
	for (i = from; i < to; i++) {
		struct event *e = &c->events.list[i];

		if (strcmp(e->rule->def.id, "elastic-root") == 0)
			read_table(c, e);
		if (strcmp(e->rule->def.id, "traceback") == 0) {
			if (add_unknown_exception(c, e, from, to, err) == -1)
				return -1;
			continue;
		}
		if (e->rule->reason == NULL || e->rule->def.role == ROLE_BENIGN ||
		    e->rule->def.role == ROLE_CONTEXT ||
		    e->rule->def.role == ROLE_TEARDOWN ||
		    is_cancelled(c, i, to))
			continue;
		if (add_event(c, e, e->rule->reason, err) == -1)
			return -1;
	}
	return 0;
}

static const char *
reason_of_signal(int signal)
{
	switch (signal) {
	case SIGKILL:
		return "process_killed";
	case SIGSEGV: case SIGBUS: case SIGABRT: case SIGILL: case SIGFPE:
		return "native_crash";
	case SIGTERM: case SIGINT: case SIGHUP:
		return "job_cancelled";
	default:
		return "unknown";
	}
}

/* True when the log of a rank has something to say about its end. */
static bool
rank_speaks(const struct case_file *c, int rank)
{
	size_t i;

	for (i = 0; i < c->count; i++)
		if (c->causes[i].event.rank == rank && !c->causes[i].late)
			return true;
	return false;
}

/* The first thing a rank's log says about its end; NULL when it says nothing. */
static struct cause *
first_word(struct case_file *c, int rank)
{
	struct cause *first = NULL;
	size_t i;

	for (i = 0; i < c->count; i++) {
		struct cause *p = &c->causes[i];

		if (p->event.rank == rank && !p->late && (first == NULL ||
		    p->event.start < first->event.start))
			first = p;
	}
	return first;
}

/* Whether a rank's end explains its peers' echoes: it said nothing, or nothing but
 * that it crashed. */
static bool
ended_first_in_truth(struct case_file *c, const struct exit_record *r,
    struct cause **word)
{
	*word = first_word(c, r->rank);
	if (*word == NULL)
		return true;
	return r->how == EXIT_HOW_SIGNAL && (*word)->rank_class >= CLASS_SYMPTOM &&
	    strcmp((*word)->reason->name, reason_of_signal(r->code)) == 0;
}

/* A rank takes longer to die (core dump, fault handler, tear-down of interpreter and
 * address space) than its peers need to see the connection close.  So one that
 * ended first, with nothing but an echo in its log, yields to one that ended right
 * behind it without having complained of anything before. */
static const struct exit_record *
yield_to_late_end(struct case_file *c, const struct exit_record *first,
    struct cause **word)
{
	const struct cause *echo = first_word(c, first->rank);
	const struct exit_record *r = NULL;

	if (first->how == EXIT_HOW_STATUS && echo != NULL &&
	    echo->rank_class >= CLASS_SYMPTOM)
		while ((r = exits_next(&c->exits, first, r,
		    LATE_END_NS)) != NULL)
			if (ended_first_in_truth(c, r, word))
				return r;
	*word = NULL;
	return first;
}

/* The rank that ended first is the best clue.  If its log does not say why, its
 * end is the candidate, and what ranks that ended later say is aftermath,
 * hardware records aside. */
static int
add_exit(struct case_file *c, struct err *err)
{
	const struct exit_record *r = exits_first(&c->exits);
	const struct reason *reason;
	struct cause *p;
	size_t i;
	bool speaks;

	if (r == NULL)
		return 0;
	r = yield_to_late_end(c, r, &p);
	if (p != NULL) {
		/* Its own line says it better than the agent's. */
		p->rank_class = CLASS_SYMPTOM - 1;
		p->order = 0;
		return 0;
	}
	reason = rule_set_reason(c->set, r->how == EXIT_HOW_SIGNAL ?
	    reason_of_signal(r->code) : "unknown");
	if (reason == NULL)
		return 0;
	speaks = rank_speaks(c, r->rank);
	for (i = 0; !speaks && i < c->count; i++)
		if (c->causes[i].order != INT_MAX && c->causes[i].order > 0 &&
		    c->causes[i].rank_class > CLASS_RECORD)
			c->causes[i].late = true;
	if ((p = add_cause(c, err)) == NULL)
		return -1;
	p->exit = true;
	p->reason = reason;
	p->rank_class = speaks ? CLASS_SYMPTOM + 10 : CLASS_SYMPTOM - 1;
	p->order = 0;
	p->event = (struct event){ .rule = &rule_exception, .stream = r->stream,
	    .start = r->start, .len = (uint32_t)r->len, .text = r->start,
	    .rank = r->rank, .local_rank = -1, .pid = -1, .step = -1 };
	p->time_ns = r->time_ns;
	set_node(&p->event, c->feed->streams[r->stream].node);
	return 0;
}

int
case_read(struct case_file *c, struct rule_set *set, const struct feed *feed,
    struct err *err)
{
	size_t i;
	int order;

	c->set = set;
	c->feed = feed;
	c->table_rank = -1;
	c->facts = calloc(feed->count + 1, sizeof(*c->facts));
	if (c->facts == NULL)
		return err_memory(err);
	if (events_begin(&c->events, set, feed, set->threads > 0 ?
	    set->threads - 1 : ahead_threads(feed), err) == -1)
		return -1;
	for (i = 0; i < feed->count; i++) {
		if (read_stream(c, (uint32_t)i, err) == -1)
			return -1;
		stream_release(&feed->streams[i], 0, feed->streams[i].len);
	}
	exits_sort(&c->exits);
	for (i = 0; i < c->count; i++) {
		order = exits_order(&c->exits, c->causes[i].event.rank);
		if (order >= 0)
			c->causes[i].order = order;
	}
	return add_exit(c, err);
}

void
case_fini(struct case_file *c)
{
	events_fini(&c->events);
	exits_fini(&c->exits);
	free(c->facts);
	free(c->causes);
	memset(c, 0, sizeof(*c));
}
