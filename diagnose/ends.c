/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ends.c - what the ends of ranks say about the cause.
 *
 * Reads the exit records of agents and the tables of torchelastic; orders candidates
 * by when their rank ended, and adds the first end itself when the log of that rank
 * does not tell why.
 */
#include <limits.h>
#include <signal.h>
#include <string.h>

#include "diagnose/cause.h"

#define LATE_END_NS	2000000000ll	/* dying takes so long */
#define WAITING_LINES	3	/* behind the last sign of waiting */
#define RULE_WAITING	"store-warning"

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
	const char *node;
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
	if ((p = case_add(c, err)) == NULL)
		return -1;
	p->exit = true;
	p->reason = reason;
	p->rank_class = speaks ? CLASS_SYMPTOM + 10 : CLASS_SYMPTOM - 1;
	p->order = 0;
	p->time_ns = r->time_ns;
	p->event = (struct event){ .rule = &cause_rule_exception,
	    .stream = r->stream, .start = r->start, .len = (uint32_t)r->len,
	    .text = r->start, .rank = r->rank, .local_rank = -1, .task = -1,
	    .pid = r->pid, .step = -1, .time_ns = r->time_ns };
	node = c->feed->streams[r->stream].node;
	if (node != NULL && strlen(node) < EVENT_NODE_MAX)
		memcpy(p->event.node, node, strlen(node) + 1);
	return 0;
}

/* Lines that are not blank behind a place, at most `most`. */
static int
lines_behind(const struct stream *s, size_t at, int most)
{
	const char *p = s->data + at, *end = s->data + s->len, *nl;
	int n = 0;

	for (; n <= most && (nl = memchr(p, '\n', (size_t)(end - p))) != NULL;
	    p = nl + 1)
		if (nl + 1 < end && nl[1] != '\n' && nl[1] != '\r')
			n++;
	return n;
}

/* Nothing is known but that the job was ended. */
static bool
only_ended(const struct case_file *c)
{
	size_t i;

	for (i = 0; i < c->count; i++)
		if (c->causes[i].exit ||
		    c->causes[i].event.rule->def.role != ROLE_TEARDOWN)
			return false;
	return true;
}

/* A log that ends while its rank waits for the store, and no log tells more: what is
 * no more than a hint elsewhere is all there is. */
static int
add_waiting(struct case_file *c, struct err *err)
{
	const struct reason *r = rule_set_reason(c->set, "rendezvous_timeout");
	const struct event *e;
	struct cause *p;
	size_t i;
	bool found = false;

	for (i = 0; i < c->feed->count; i++)
		if (c->facts[i].progress != SIZE_MAX)
			return 0;
	if (r == NULL || !only_ended(c))
		return 0;
	for (i = 0; i < c->events.count && !found; i++) {
		const char *text;

		e = &c->events.list[i];
		text = c->feed->streams[e->stream].data + e->start;
		if (strcmp(e->rule->def.id, RULE_WAITING) != 0 ||
		    memmem(text, e->len, "(errno: 97", 10) != NULL ||
		    memmem(text, e->len, "(errno: 99", 10) != NULL ||
		    lines_behind(&c->feed->streams[e->stream], e->start,
		    WAITING_LINES) > WAITING_LINES)
			continue;
		if ((p = case_add(c, err)) == NULL)
			return -1;
		p->event = *e;
		p->reason = r;
		p->rank_class = CLASS_SYMPTOM + 9;
		found = true;
	}
	return 0;
}

int
case_add_ends(struct case_file *c, struct err *err)
{
	size_t i;
	int order;

	for (i = 0; i < c->exits.count; i++)
		if (c->exits.list[i].time_ns != LINE_NO_TIME)
			c->exits.list[i].time_ns -=
			    c->facts[c->exits.list[i].stream].ahead_ns;
	exits_sort(&c->exits);
	for (i = 0; i < c->count; i++) {
		order = exits_order(&c->exits, c->causes[i].event.rank);
		if (order == -1 && c->exits.count == 0)
			order = table_order(&c->tables,
			    c->causes[i].event.rank);
		if (order >= 0)
			c->causes[i].order = order;
	}
	if (add_waiting(c, err) == -1)
		return -1;
	return add_exit(c, err);
}
