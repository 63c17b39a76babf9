/* SPDX-License-Identifier: Apache-2.0 */
/*
 * causes.c - decides which candidate caused the others, and fills the verdict.
 *
 * In this order: exceptions of one chain are one candidate (the most telling,
 * then the first); what another candidate explains is an echo; what came after
 * the teardown began yields to what came before; then the place on the ladder;
 * then which rank ended first, then time, then position.
 */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/cause.h"
#include "diagnose/causes.h"
#include "diagnose/watchdog.h"

#define TEXT_MAX	600	/* of the quoted line */
#define SKEW_NS		2000000000ll	/* clocks of two nodes differ less */

static int
compare_time(const struct cause *a, const struct cause *b)
{
	int64_t d;

	if (a->time_ns == LINE_NO_TIME || b->time_ns == LINE_NO_TIME)
		return 0;
	d = a->time_ns - b->time_ns;
	return d < -SKEW_NS ? -1 : d > SKEW_NS;
}

/* Negative when a came first. */
static int
compare_order(const struct cause *a, const struct cause *b)
{
	int d;

	if (a->event.stream == b->event.stream)
		return a->event.start < b->event.start ? -1 :
		    a->event.start > b->event.start;
	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	if ((d = compare_time(a, b)) != 0)
		return d;
	return a->event.stream < b->event.stream ? -1 : 1;
}

/* The rank torchelastic saw fail first, among ranks that are told apart. */
static int
compare_table(const struct cause *a, const struct cause *b, int rank)
{
	if (rank < 0 || a->event.rank < 0 || b->event.rank < 0 ||
	    a->event.rank == b->event.rank)
		return 0;
	return (a->event.rank == rank) - (b->event.rank == rank);
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

static bool
better(const struct cause *a, const struct cause *b, int table_rank)
{
	int d;

	if (a->echo != b->echo)
		return b->echo;
	if ((a->rank_class >= CLASS_SYMPTOM) != (b->rank_class >= CLASS_SYMPTOM))
		return a->rank_class < b->rank_class;
	if (a->late != b->late)
		return b->late;
	if (a->rank_class >= CLASS_SYMPTOM && is_abort(a) != is_abort(b))
		return compare_order(a, b) < 0;
	if (a->rank_class != b->rank_class)
		return a->rank_class < b->rank_class;
	if ((d = compare_table(a, b, table_rank)) != 0)
		return d > 0;
	return compare_order(a, b) < 0;
}

/* A record of the kernel, the scheduler or the launcher is no exception, though
 * it may stand right behind one, where the rest of its message would. */
static bool
is_exception(const struct cause *a)
{
	enum rule_source s = a->event.rule->def.source;

	return !a->exit && s != SOURCE_KERNEL && s != SOURCE_SCHEDULER &&
	    s != SOURCE_LAUNCHER;
}

static bool
same_chain(const struct cause *a, const struct cause *b)
{
	return is_exception(a) && is_exception(b) &&
	    a->event.stream == b->event.stream &&
	    a->block.begin == b->block.begin && a->event.key == b->event.key;
}

/* Of one chain the most telling exception stays, the first of equals. */
static void
fold_chains(struct case_file *c)
{
	size_t i, k;

	for (i = 0; i < c->count; i++) {
		struct cause *a = &c->causes[i];

		for (k = i + 1; k < c->count && !a->echo; k++) {
			struct cause *b = &c->causes[k];

			if (b->event.stream != a->event.stream)
				break;
			if (b->echo || !same_chain(a, b))
				continue;
			if (b->event.rule->def.priority >
			    a->event.rule->def.priority ||
			    (a->rank_class >= CLASS_SYMPTOM &&
			    b->rank_class < CLASS_SYMPTOM))
				a->echo = true;
			else
				b->echo = true;
		}
	}
}

static bool
hides(const struct cause *a, const char *reason)
{
	const char *const *h = a->event.rule->def.hides;

	for (; h != NULL && *h != NULL; h++)
		if (strcmp(*h, reason) == 0)
			return true;
	return false;
}

/* What a candidate that is no echo itself explains is an echo, unless it also
 * explains the explainer and came first. */
static void
fold_hidden(struct case_file *c)
{
	size_t i, k;

	for (i = 0; i < c->count; i++) {
		struct cause *a = &c->causes[i];

		if (a->exit || a->echo || a->event.rule->def.hides == NULL)
			continue;
		for (k = 0; k < c->count; k++) {
			struct cause *b = &c->causes[k];

			if (k == i || b->echo || !hides(a, b->reason->name) ||
			    strcmp(a->reason->name, b->reason->name) == 0)
				continue;
			if (!b->exit && b->event.rule->def.hides != NULL &&
			    hides(b, a->reason->name) && compare_order(b, a) < 0)
				continue;
			b->echo = true;
		}
	}
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
external_wins(const struct cause *x, const struct cause *w, int table_rank)
{
	if (w == NULL || w->echo != x->echo)
		return w == NULL || w->echo;
	if (w->rank_class >= CLASS_SYMPTOM || w->late)
		return x->rank_class < CLASS_SYMPTOM || better(x, w, table_rank);
	if (x->rank_class >= CLASS_SYMPTOM)
		return false;
	if (compare_order(x, w) < 0)
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

		if (*best == NULL || better(a, *best, c->table_rank))
			*best = a;
	}
	return x != NULL && external_wins(x, w, c->table_rank) ? x : w;
}

static char *
copy(const char *text, size_t len)
{
	char *p = malloc(len + 1);

	if (p != NULL) {
		memcpy(p, text, len);
		p[len] = '\0';
	}
	return p;
}

static char *
copy_or_null(const char *text)
{
	return text != NULL && *text != '\0' ? copy(text, strlen(text)) : NULL;
}

static void
fill_root(struct verdict *v, const struct case_file *c,
    const struct cause *w)
{
	struct stream *s = &c->feed->streams[w->event.stream];
	size_t len = w->event.len > TEXT_MAX ? TEXT_MAX : w->event.len;
	char text[TEXT_MAX];

	v->has_root = true;
	v->root.rule = w->exit ? NULL : copy_or_null(w->event.rule->def.id);
	v->root.file = copy_or_null(s->name);
	v->root.line = (int64_t)stream_line(s, w->event.start);
	v->root.text_len = line_strip_ansi(s->data + w->event.start, len, text);
	v->root.text = copy(text, v->root.text_len);
	v->root.rank = w->event.rank;
	v->root.node = copy_or_null(w->event.node);
	v->root.gpu = copy_or_null(w->event.gpu);
}

static bool
listed(const struct verdict *v, const char *reason, const char *rule)
{
	size_t i;

	for (i = 0; i < v->symptom_count; i++)
		if (strcmp(v->symptoms[i].reason, reason) == 0 &&
		    strcmp(v->symptoms[i].rule, rule) == 0)
			return true;
	return false;
}

static void
fill_symptoms(struct verdict *v, const struct case_file *c,
    const struct cause *w)
{
	size_t i;

	for (i = 0; i < c->count && v->symptom_count < VERDICT_SYMPTOMS; i++) {
		const struct cause *a = &c->causes[i];
		struct stream *s = &c->feed->streams[a->event.stream];
		const char *id = a->event.rule->def.id;
		struct verdict_symptom *y;

		if (a == w || a->exit || strcmp(a->reason->name,
		    w->reason->name) == 0 || listed(v, a->reason->name, id))
			continue;
		y = &v->symptoms[v->symptom_count++];
		y->reason = copy_or_null(a->reason->name);
		y->rule = copy_or_null(id);
		y->file = copy_or_null(s->name);
		y->line = (int64_t)stream_line(s, a->event.start);
		y->count = 1;
		if (a->event.rule >= c->set->rules &&
		    a->event.rule < c->set->rules + c->set->count)
			y->count = c->events.matched[a->event.rule -
			    c->set->rules];
	}
}

static void
fill_alternatives(struct verdict *v, const struct case_file *c,
    const struct cause *w)
{
	size_t i, k;

	for (i = 0; i < c->count; i++) {
		const struct cause *a = &c->causes[i];
		struct verdict_alternative *alt;

		if (a == w || a->echo || a->rank_class >= CLASS_SYMPTOM ||
		    strcmp(a->reason->name, w->reason->name) == 0)
			continue;
		for (k = 0; k < v->alternative_count; k++)
			if (strcmp(v->alternatives[k].reason,
			    a->reason->name) == 0)
				break;
		if (k < v->alternative_count || k == VERDICT_ALTERNATIVES)
			continue;
		alt = &v->alternatives[v->alternative_count++];
		alt->reason = copy_or_null(a->reason->name);
		alt->confidence = a->late ? 0.05 :
		    a->rank_class == w->rank_class ? 0.2 : 0.1;
	}
}

/* FNV-1a over the rule and the stable words of the line: numbers, addresses and
 * paths are left out, so the same failure elsewhere has the same print. */
static void
fill_fingerprint(struct verdict *v, const struct case_file *c,
    const struct cause *w)
{
	static const char digits[] = "0123456789abcdef";
	const struct stream *s = &c->feed->streams[w->event.stream];
	const char *p = s->data + w->event.text;
	const char *end = s->data + w->event.start +
	    (w->event.len > TEXT_MAX ? TEXT_MAX : w->event.len);
	uint64_t h = 0xcbf29ce484222325ull;
	const char *id = w->exit ? w->reason->name : w->event.rule->def.id;
	int i;

	for (; *id != '\0'; id++)
		h = (h ^ (unsigned char)*id) * 0x100000001b3ull;
	while (!w->exit && p < end) {
		const char *word = p;
		bool stable = true;

		while (p < end && !isspace((unsigned char)*p)) {
			if (isdigit((unsigned char)*p) || *p == '/' || *p == '@')
				stable = false;
			p++;
		}
		for (; stable && word < p; word++)
			h = (h ^ (unsigned char)*word) * 0x100000001b3ull;
		while (p < end && isspace((unsigned char)*p))
			p++;
	}
	for (i = 0; i < 16; i++)
		v->fingerprint[i] = digits[h >> (60 - 4 * i) & 15];
	v->fingerprint[16] = '\0';
}

static double
confidence(const struct case_file *c, const struct cause *w,
    const struct verdict *v)
{
	static const double by_role[] = {
		[ROLE_ROOT] = 0.9, [ROLE_EITHER] = 0.75, [ROLE_SYMPTOM] = 0.5,
		[ROLE_CONFIRM] = 0.9, [ROLE_TEARDOWN] = 0.3,
		[ROLE_CONTEXT] = 0.3, [ROLE_BENIGN] = 0.1
	};
	double x = w->event.rule->def.confidence;

	if (x <= 0)
		x = w->exit ? 0.5 : by_role[w->event.rule->def.role];
	if (w->event.rule->def.priority < 0)
		x *= 0.8;
	if (w->late)
		x *= 0.7;
	if (v->alternative_count > 0)
		x *= 0.85;
	if (c->events.gave_up)
		x *= 0.9;
	return x;
}

#define NODES_MAX	4096	/* told apart when their share is counted */
#define SHARED_PERCENT	20	/* more nodes than this: shared infrastructure */

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

/* The same cause on more than a fifth of the nodes is no fault of a node. */
static bool
is_shared(const struct case_file *c, const struct cause *w)
{
	const char **nodes = calloc(NODES_MAX, sizeof(*nodes));
	size_t i, all = 0, hit = 0;

	if (nodes == NULL)
		return false;
	for (i = 0; i < c->count; i++)
		if (c->causes[i].reason == w->reason && !c->causes[i].echo)
			hit = add_node(nodes, hit, c->causes[i].event.node);
	for (i = 0; i < c->feed->count; i++)
		all = add_node(nodes, all, c->feed->streams[i].node);
	for (i = 0; i < c->count; i++)
		all = add_node(nodes, all, c->causes[i].event.node);
	free(nodes);
	return hit > 1 && hit * 100 > all * SHARED_PERCENT;
}

static void
fill_suspects(struct verdict *v, const struct case_file *c,
    const struct cause *w)
{
	struct verdict_suspect *s;
	char why[200];

	if (strcmp(w->reason->name, "nccl_timeout") == 0)
		watchdog_suspects(c, v);
	if (v->suspect_count == VERDICT_SUSPECTS)
		return;
	if (w->event.node[0] == '\0' ||
	    strcmp(v->category, "infrastructure") != 0)
		return;
	snprintf(why, sizeof(why), "%s (%s)", w->reason->name,
	    w->exit ? "first to end" : w->event.rule->def.id);
	s = &v->suspects[v->suspect_count++];
	s->node = copy_or_null(w->event.node);
	s->why = copy_or_null(why);
	if (v->action != ACTION_RESTART_EXCLUDING_NODE)
		return;
	if (is_shared(c, w))
		v->action = ACTION_BACKOFF_RETRY;
	else
		v->action_node = copy_or_null(w->event.node);
}

static void
fill_stage(struct verdict *v, const struct case_file *c,
    const struct cause *w)
{
	int64_t step = -1;
	size_t i;
	bool trained = false;

	for (i = 0; i < c->feed->count; i++) {
		if (c->facts[i].progress == SIZE_MAX)
			continue;
		trained = true;
		if (c->facts[i].step > step)
			step = c->facts[i].step;
	}
	v->step = w != NULL && w->event.step >= 0 ? w->event.step : step;
	if (w != NULL && w->block.saving)
		v->stage = "checkpoint";
	else if (w != NULL && w->block.loading && !trained)
		v->stage = "load";
	else
		v->stage = trained ? "training" : w != NULL ? "startup" : NULL;
}

static void
set_reason(struct verdict *v, const struct reason *r, const char *name,
    const char *category)
{
	v->reason = copy_or_null(r ? r->name : name);
	v->category = copy_or_null(r ? r->category : category);
	v->what = copy_or_null(r ? r->what : NULL);
	v->advice = copy_or_null(r ? r->advice : NULL);
	v->action = r ? r->action : ACTION_NONE;
}

static void
fill_verdict(struct verdict *v, const struct case_file *c,
    const struct cause *w)
{
	const struct rule_def *d;

	if (w == NULL) {
		v->status = c->unknown_exception ? VERDICT_UNDETERMINED :
		    VERDICT_NO_ERROR;
		if (v->status == VERDICT_NO_ERROR)
			set_reason(v, rule_set_reason(c->set, "none"), "none",
			    "meta");
		else
			set_reason(v, rule_set_reason(c->set, "unknown"),
			    "unknown", "meta");
		v->confidence = v->status == VERDICT_NO_ERROR ? 0.7 : 0;
		fill_stage(v, c, NULL);
		return;
	}
	d = &w->event.rule->def;
	v->status = w->rank_class >= CLASS_SYMPTOM ||
	    strcmp(w->reason->name, "process_killed") == 0 ?
	    VERDICT_SYMPTOM_ONLY : VERDICT_DIAGNOSED;
	if (strcmp(w->reason->name, "unknown") == 0)
		v->status = VERDICT_UNDETERMINED;
	set_reason(v, w->reason, NULL, NULL);
	if (!w->exit && d->action >= 0)
		v->action = (enum action_kind)d->action;
	if (!w->exit && d->advice != NULL) {
		free(v->advice);
		v->advice = copy_or_null(d->advice);
	}
	fill_root(v, c, w);
	fill_symptoms(v, c, w);
	fill_alternatives(v, c, w);
	fill_suspects(v, c, w);
	fill_stage(v, c, w);
	fill_fingerprint(v, c, w);
	v->confidence = confidence(c, w, v);
}

int
causes_find(struct rule_set *set, const struct feed *feed,
    struct verdict *out, struct err *err)
{
	const struct cause *w = NULL;
	struct case_file c = {0};
	int rc = -1;

	out->step = -1;
	out->root.rank = -1;
	if (case_read(&c, set, feed, err) == -1)
		goto out;
	fold_chains(&c);
	fold_hidden(&c);
	w = choose(&c);
	fill_verdict(out, &c, w);
	out->missing = feed_list_missing(feed, &out->missing_count);
	rc = out->missing != NULL ? 0 : err_memory(err);
out:
	case_fini(&c);
	return rc;
}
