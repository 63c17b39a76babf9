/* SPDX-License-Identifier: Apache-2.0 */
/*
 * causes.c - decides which candidate caused the others.
 *
 * In this order: exceptions of one chain are one candidate (the most telling,
 * then the first); what another candidate explains is an echo; what came after
 * the teardown began yields to what came before; then the place on the ladder;
 * then which rank ended first, then time, then position.
 */
#include <string.h>

#include "diagnose/causes.h"
#include "diagnose/confirm.h"
#include "diagnose/echo.h"
#include "diagnose/report.h"
#include "diagnose/summary.h"
#include "diagnose/watchdog.h"

#define BEFORE_NS	60000000000ll	/* a record is late by less */
#define FATAL_NS	120000000000ll	/* a rank says no more after its end */

int
cause_compare_time(const struct cause *a, const struct cause *b)
{
	int64_t d;

	if (a->time_ns == LINE_NO_TIME || b->time_ns == LINE_NO_TIME)
		return 0;
	d = a->time_ns - b->time_ns;
	return d < -CAUSE_SKEW_NS ? -1 : d > CAUSE_SKEW_NS;
}

/* Negative when a came first. */
int
cause_compare(const struct cause *a, const struct cause *b)
{
	int d;

	if (a->event.stream == b->event.stream)
		return a->event.start < b->event.start ? -1 :
		    a->event.start > b->event.start;
	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	if ((d = cause_compare_time(a, b)) != 0)
		return d;
	return a->event.stream < b->event.stream ? -1 : 1;
}

/* The rank that torchelastic saw fail first, among ranks that are told apart. */
static int
compare_table(const struct case_file *c, const struct cause *a,
    const struct cause *b)
{
	if (c->tables.count == 0 || a->event.rank < 0 || b->event.rank < 0 ||
	    a->event.rank == b->event.rank)
		return 0;
	return table_is_first(&c->tables, a->event.rank) -
	    table_is_first(&c->tables, b->event.rank);
}

/* SIGABRT is a weak symptom, unless it stands before the others: then the abort
 * is what the others saw. */
static bool
is_abort(const struct cause *a)
{
	return a->rank_class >= CLASS_SYMPTOM && !a->exit &&
	    a->event.rule->def.source != SOURCE_LAUNCHER &&
	    strcmp(a->reason->name, "native_crash") == 0;
}

/* Weaker by the ladder, but well before the other, and the log that has it ends with
 * it: what came later cannot have led to it. */
static bool
came_well_before(const struct case_file *c, const struct cause *a,
    const struct cause *b)
{
	const struct stream_facts *f = &c->facts[a->event.stream];

	return a->time_ns != LINE_NO_TIME && b->time_ns != LINE_NO_TIME &&
	    b->time_ns - a->time_ns > BEFORE_NS && !a->exit && !b->exit &&
	    f->last_ns != LINE_NO_TIME &&
	    f->last_ns - f->ahead_ns - a->time_ns < FATAL_NS;
}

static bool
better(const struct case_file *c, const struct cause *a, const struct cause *b)
{
	int d;

	if (a->echo != b->echo)
		return b->echo;
	if ((a->rank_class >= CLASS_SYMPTOM) != (b->rank_class >= CLASS_SYMPTOM))
		return a->rank_class < b->rank_class;
	if (a->late != b->late)
		return b->late;
	if (a->rank_class >= CLASS_SYMPTOM && is_abort(a) != is_abort(b))
		return cause_compare(a, b) < 0;
	if (a->rank_class != b->rank_class && a->rank_class < CLASS_SYMPTOM) {
		if (came_well_before(c, a, b))
			return true;
		if (came_well_before(c, b, a))
			return false;
	}
	if (a->rank_class != b->rank_class)
		return a->rank_class < b->rank_class;
	if ((d = compare_table(c, a, b)) != 0)
		return d > 0;
	return cause_compare(a, b) < 0;
}

static bool
is_external(const struct cause *a)
{
	return strcmp(a->reason->category, "external") == 0;
}

/* Someone ending the job from outside is the cause unless something failed
 * before.  What a scheduler says outright also stands against an earlier line
 * that may be an echo: ranks die before the scheduler's line is written. */
static bool
external_wins(const struct case_file *c, const struct cause *x,
    const struct cause *w)
{
	if (w == NULL || w->echo != x->echo)
		return w == NULL || w->echo;
	if (w->rank_class >= CLASS_SYMPTOM || w->late)
		return x->rank_class < CLASS_SYMPTOM || better(c, x, w);
	if (x->rank_class >= CLASS_SYMPTOM)
		return false;
	if (cause_compare(x, w) < 0)
		return true;
	return x->event.rule->def.source == SOURCE_SCHEDULER &&
	    w->event.rule->def.role == ROLE_EITHER;
}

static const struct cause *
choose(const struct case_file *c)
{
	const struct cause *w = NULL, *x = NULL;
	size_t i;

	for (i = 0; i < c->count; i++) {
		const struct cause *a = &c->causes[i];
		const struct cause **best = is_external(a) ? &x : &w;

		if (*best == NULL || better(c, a, *best))
			*best = a;
	}
	return x != NULL && external_wins(c, x, w) ? x : w;
}

/* Which rank a collective that timed out waited for; its own line is the better one
 * to show, and ranks that called different collectives are another reason. */
static const struct cause *
ask_watchdog(struct case_file *c, const struct cause *w, struct verdict *v)
{
	const struct reason *other;
	const struct cause *own;
	bool mismatch;
	size_t i;

	if (w == NULL || (strcmp(w->reason->name, "nccl_timeout") != 0 &&
	    strcmp(w->reason->name, "collective_mismatch") != 0 &&
	    strcmp(w->reason->name, "hang") != 0))
		return w;
	own = watchdog_judge(c, v, &mismatch);
	if (own != NULL && own->reason == w->reason)
		w = own;
	other = rule_set_reason(c->set, "collective_mismatch");
	for (i = 0; mismatch && other != NULL && i < c->count; i++)
		if (&c->causes[i] == w) {
			c->causes[i].reason = other;
			c->causes[i].rank_class = CLASS_SYMPTOM - 1;
		}
	return w;
}

struct reading {
	const struct causes_extra *extra;
	uint64_t	 all;
};

static void
on_read(uint64_t bytes, void *arg)
{
	const struct reading *r = arg;

	r->extra->progress(bytes, r->all, r->extra->arg);
}

int
causes_find(struct rule_set *set, const struct feed *feed,
    struct verdict *out, struct err *err)
{
	const struct causes_extra none = { .findings = NULL };

	return causes_find_all(set, feed, &none, out, err);
}

int
causes_find_all(struct rule_set *set, const struct feed *feed,
    const struct causes_extra *extra, struct verdict *out, struct err *err)
{
	struct reading reading = { extra, 0 };
	const struct cause *w = NULL;
	struct case_file c = {0};
	int rc = -1;
	size_t i;

	for (i = 0; i < feed->count; i++)
		reading.all += feed->streams[i].len;
	if (extra->progress != NULL) {
		c.events.progress = on_read;
		c.events.progress_arg = &reading;
	}
	out->step = -1;
	out->root.rank = -1;
	if (case_read(&c, set, feed, err) == -1)
		goto out;
	confirm_drop(&c);
	if (case_add_ends(&c, err) == -1)
		goto out;
	if (confirm_join(&c, err) == -1)
		goto out;
	if (echo_mark(&c, err) == -1)
		goto out;
	w = ask_watchdog(&c, choose(&c), out);
	report_fill(out, &c, w);
	summary_fill(out, &c, w);
	if (extra->findings != NULL &&
	    findings_fill(extra->findings, &c, w, err) == -1)
		goto out;
	out->missing = feed_list_missing(feed, &out->missing_count);
	rc = out->missing != NULL ? 0 : err_memory(err);
out:
	case_fini(&c);
	return rc;
}
