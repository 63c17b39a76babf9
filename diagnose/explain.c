/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.c - follows one rule through a case, line by line.
 *
 * Runs the pattern alone, without what limits it; then says for each line which
 * limit held it back, which other rule won the line, or which part the line has in
 * the verdict.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/text.h"
#include "diagnose/explain.h"
#include "diagnose/guard.h"
#include "diagnose/match.h"
#include "diagnose/quote.h"
#include "diagnose/rule_show.h"
#include "diagnose/summary.h"

#define SHOWN_MAX	40	/* lines */
#define TEXT_MAX	600

struct explain {
	const struct explain_options *o;
	struct rule_set	*set;
	struct rule	*rule;
	const struct feed *feed;
	struct rule_set	*bare;		/* the pattern and nothing else */
	uint32_t	 bare_rule;
	struct verdict	 verdict;
	struct findings	 findings;	/* of this rule */
	struct events	 won;		/* of one stream: who won its lines */
	struct events	 after;		/* ... and where the `after` rule stands */
	uint64_t	 lines;
	uint64_t	 shown;
	FILE		*f;
	cJSON		*list;
};

static int
make_bare(struct explain *x, struct err *err)
{
	struct rule_def d = x->rule->def;
	int at;

	d.role = ROLE_CONTEXT;
	d.reason = d.unless = d.after = NULL;
	d.hides = d.cancels = d.examples = d.counterexamples = NULL;
	if (rule_set_new(&x->bare, err) == -1 ||
	    rule_set_add(x->bare, &d, err) == -1 ||
	    rule_set_finish(x->bare, NULL, NULL, err) == -1)
		return -1;
	at = rule_set_find(x->bare, d.id);
	if (at == -1 || x->bare->rules[at].broken)
		return err_set(err, ERR_FORMAT, "rule '%s' cannot be used; see "
		    "holdfast rules lint", d.id);
	x->bare_rule = (uint32_t)at;
	return 0;
}

static const struct event *
event_at(const struct events *ev, size_t start)
{
	size_t i;

	for (i = 0; i < ev->count; i++)
		if (ev->list[i].start == start)
			return &ev->list[i];
	return NULL;
}

static bool
after_holds(const struct explain *x, struct stream *s, size_t start)
{
	uint64_t line = stream_line(s, start), at;
	size_t i;

	for (i = 0; i < x->after.count; i++) {
		if (x->after.list[i].start >= start)
			continue;
		at = stream_line(s, x->after.list[i].start);
		if (line - at <= (uint64_t)rule_within(x->rule))
			return true;
	}
	return false;
}

/* The line, padded as the matcher needs it. */
struct text {
	char	*whole;
	size_t	 len;
	struct line line;
};

static int
text_init(struct text *t, const struct stream *s, const struct event *e,
    struct err *err)
{
	t->whole = calloc(1, (size_t)e->len + MAP_TAIL);
	if (t->whole == NULL)
		return err_memory(err);
	t->len = line_strip_ansi(s->data + e->start, e->len, t->whole);
	line_parse(t->whole, t->len, &t->line);
	return 0;
}

static bool
unless_holds(const struct explain *x, const struct text *t)
{
	struct match *m = NULL;
	bool yes;

	if (x->rule->def.unless == NULL ||
	    match_new(x->rule->def.unless, &m, NULL) == -1)
		return false;
	yes = match_run(m, t->whole, t->len) == MATCH_YES;
	match_free(m);
	return yes;
}

static enum guard
guard_of(const struct explain *x, const struct text *t)
{
	struct match *m = x->bare->rules[x->bare_rule].match;
	const char *at = t->line.text;
	size_t len = t->line.len;

	if (m == NULL || !rule_is_guarded(&x->rule->def))
		return GUARD_NONE;
	if (match_run_line(m, &at, &len, t->whole, t->len) != MATCH_YES)
		return GUARD_NONE;
	return guard_check(&t->line, at, len, match_start(m));
}

/* What became of a line: a word for programs, a sentence for people. */
struct outcome {
	const char	*word;
	struct buf	 why;
};

/* Whether something kept the rule from winning the line. */
static bool
was_held_back(const struct explain *x, struct stream *s, const struct event *e,
    const struct text *t, struct outcome *out)
{
	static const struct { const char *word, *why; } guards[] = {
		[GUARD_SOURCE] = { "source", "source code or a manual" },
		[GUARD_DATA] = { "data", "a field of the data set" },
		[GUARD_GUESS] = { "guess", "the words before it make it a guess" },
		[GUARD_QUOTE] = { "quote", "it stands in quotation marks" }
	};
	const struct rule_def *d = &x->rule->def;
	enum guard g = guard_of(x, t);

	if (unless_holds(x, t)) {
		out->word = "unless";
		buf_puts(&out->why, "its `unless' matches as well");
	} else if (g != GUARD_NONE) {
		out->word = guards[g].word;
		buf_puts(&out->why, guards[g].why);
	} else if (d->after != NULL && !after_holds(x, s, e->start)) {
		out->word = "after";
		buf_printf(&out->why, "no line of '%s' in the %d lines before it",
		    d->after, rule_within(x->rule));
	} else {
		return false;
	}
	return true;
}

static void
say_lost(const struct explain *x, const struct rule *w, struct outcome *out)
{
	const struct rule_def *a = &w->def, *b = &x->rule->def;

	out->word = "lost";
	buf_printf(&out->why, "rule '%s' won the line: ", a->id);
	if (a->role == ROLE_BENIGN && b->role != ROLE_BENIGN)
		buf_puts(&out->why, "it calls it harmless");
	else if (a->role != b->role && b->role == ROLE_CONTEXT)
		buf_puts(&out->why, "this one only marks a place");
	else if (a->priority != b->priority)
		buf_printf(&out->why, "its priority is %d", a->priority);
	else if (a->role != b->role)
		buf_printf(&out->why, "its role is %s", rule_role_name(a->role));
	else
		buf_puts(&out->why, "its literal is longer");
}

static void
say_root(const struct explain *x, struct buf *b)
{
	const struct verdict_root *r = &x->verdict.root;

	quote_clean(r->file ? r->file : "", r->file ? strlen(r->file) : 0, NULL,
	    b);
	buf_printf(b, ":%" PRId64 " (%s, %s)", r->line,
	    r->rule ? r->rule : "exit record", x->verdict.reason);
}

/* Whether the root's rule says that it explains the reason of this one. */
static bool
is_hidden_by_root(const struct explain *x)
{
	const char *const *h;
	int at;

	if (x->verdict.root.rule == NULL || x->rule->def.reason == NULL ||
	    (at = rule_set_find(x->set, x->verdict.root.rule)) == -1)
		return false;
	for (h = x->set->rules[at].def.hides; h != NULL && *h != NULL; h++)
		if (strcmp(*h, x->rule->def.reason) == 0)
			return true;
	return false;
}

static void
say_echo(const struct explain *x, struct buf *b)
{
	if (is_hidden_by_root(x))
		buf_puts(b, "an echo, explained by ");
	else if (x->rule->def.role == ROLE_SYMPTOM)
		buf_puts(b, "a symptom, and there is something better: ");
	else
		buf_puts(b, "explained by another line; the cause is ");
	say_root(x, b);
}

static void
say_part(const struct explain *x, const struct finding *f, struct outcome *out)
{
	struct buf *b = &out->why;

	out->word = finding_role_name(f->role);
	switch (f->role) {
	case FINDING_CAUSE:
		buf_puts(b, "the cause");
		break;
	case FINDING_SAME:
		buf_puts(b, "says the same as the cause, ");
		say_root(x, b);
		break;
	case FINDING_OTHER:
		buf_puts(b, "could be the cause as well, but yields to ");
		say_root(x, b);
		break;
	case FINDING_ECHO:
		say_echo(x, b);
		break;
	case FINDING_LATE:
		buf_puts(b, "came after the job began to be ended; the cause is ");
		say_root(x, b);
		break;
	case FINDING_PASSED:
		buf_puts(b, "training completed more steps behind it");
		break;
	case FINDING_TEARDOWN:
		buf_puts(b, "marks that the job is being ended");
		break;
	default:
		buf_puts(b, "ignored by the program, or taken back by a later "
		    "line");
	}
}

static const struct finding *
finding_at(const struct explain *x, const struct stream *s, uint64_t line)
{
	size_t i;

	for (i = 0; i < x->findings.count; i++)
		if (x->findings.list[i].file == s->name &&
		    x->findings.list[i].line == (int64_t)line)
			return &x->findings.list[i];
	return NULL;
}

static void
decide(const struct explain *x, struct stream *s, const struct event *e,
    const struct text *t, struct outcome *out)
{
	const struct event *won = event_at(&x->won, e->start);
	const struct finding *part;

	if (was_held_back(x, s, e, t, out))
		return;
	if (won != NULL && won->rule != x->rule) {
		say_lost(x, won->rule, out);
	} else if (x->rule->def.role == ROLE_BENIGN) {
		out->word = "benign";
		buf_puts(&out->why, "calls the line harmless");
	} else if (x->rule->def.role == ROLE_CONTEXT) {
		out->word = "context";
		buf_puts(&out->why, "marks the place for other rules");
	} else if ((part = finding_at(x, s, stream_line(s, e->start))) != NULL) {
		say_part(x, part, out);
	} else {
		out->word = "unknown";
		buf_puts(&out->why, "one of too many lines to keep them all");
	}
}

static void
put_line(struct explain *x, struct stream *s, const struct event *e,
    const struct text *t, const struct outcome *out)
{
	size_t room = (size_t)x->o->style->columns - 10;
	size_t len = t->len > TEXT_MAX ? TEXT_MAX : t->len;
	struct quote_span tell;
	struct buf row = {0}, cut = {0};
	cJSON *o;

	if (x->o->json) {
		if ((o = cJSON_CreateObject()) == NULL)
			return;
		json_add_text(o, "file", s->name);
		json_add_int(o, "line", (int64_t)stream_line(s, e->start));
		json_add_bytes(o, "text", t->whole, len);
		json_add_text(o, "outcome", out->word);
		json_add_text(o, "why", out->why.data);
		cJSON_AddItemToArray(x->list, o);
		return;
	}
	quote_clean(s->name, strlen(s->name), NULL, &row);
	fprintf(x->f, "| %-8s%s:%" PRIu64 ": %s\n", out->word,
	    row.data ? row.data : "", stream_line(s, e->start),
	    out->why.data ? out->why.data : "");
	buf_clear(&row);
	tell = summary_telling(&x->bare->rules[x->bare_rule], t->whole, len);
	quote_clean(t->whole, len, &tell, &row);
	if (x->o->whole && row.len > 0)
		buf_append(&cut, row.data, row.len);
	else if (row.len > 0)
		quote_cut(row.data, row.len, &tell, room, &cut);
	fprintf(x->f, "|         %s\n", cut.data ? cut.data : "");
	buf_fini(&row);
	buf_fini(&cut);
}

static int
explain_stream(struct explain *x, uint32_t stream, struct err *err)
{
	struct stream *s = &x->feed->streams[stream];
	struct events bare = {0};
	struct outcome out;
	struct text t;
	size_t i;
	int rc = -1;

	if (s->kind == STREAM_EXITS)
		return 0;
	if (events_collect_rule(&bare, x->bare, x->feed, stream, x->bare_rule,
	    err) == -1)
		goto out;
	x->lines += bare.matched[x->bare_rule];
	if (bare.count == 0) {
		rc = 0;
		goto out;
	}
	if (events_collect_rule(&x->won, x->set, x->feed, stream,
	    EVENTS_AND_BENIGN, err) == -1 || (x->rule->after >= 0 &&
	    events_collect_rule(&x->after, x->set, x->feed, stream,
	    (uint32_t)x->rule->after, err) == -1))
		goto out;
	for (i = 0; i < bare.count && x->shown < SHOWN_MAX; i++, x->shown++) {
		if (text_init(&t, s, &bare.list[i], err) == -1)
			goto out;
		out = (struct outcome){ NULL, { NULL, 0, 0 } };
		decide(x, s, &bare.list[i], &t, &out);
		put_line(x, s, &bare.list[i], &t, &out);
		buf_fini(&out.why);
		free(t.whole);
	}
	rc = 0;
out:
	events_fini(&bare);
	events_fini(&x->won);
	events_fini(&x->after);
	return rc;
}

static void
put_end(struct explain *x)
{
	char count[TEXT_SPAN_MAX];

	if (x->lines == 0)
		fprintf(x->f, "| its pattern matches no line of %s\n",
		    x->feed->count == 1 ? "this log" : "these logs");
	if (x->lines > x->shown) {
		text_format_count((int64_t)(x->lines - x->shown), count);
		fprintf(x->f, "| and %s more lines\n", count);
	}
	card_put_rule("", NULL, x->o->style, x->f);
}

static int
explain_lines(struct explain *x, struct err *err)
{
	const struct causes_extra extra = { .findings = &x->findings };
	uint32_t i;

	x->findings.only = x->rule;
	if (make_bare(x, err) == -1 ||
	    causes_find_all(x->set, x->feed, &extra, &x->verdict, err) == -1)
		return -1;
	for (i = 0; i < x->feed->count; i++)
		if (explain_stream(x, i, err) == -1)
			return -1;
	if (!x->o->json)
		put_end(x);
	return 0;
}

int
explain_rule(const struct explain_options *o, struct rule_set *set,
    struct rule *rule, const struct feed *feed, FILE *f, struct err *err)
{
	struct explain x = { .o = o, .set = set, .rule = rule, .feed = feed,
	    .f = f };
	cJSON *json = NULL;
	char *text = NULL;
	int rc = 0;

	if (o->json) {
		if ((json = cJSON_CreateObject()) == NULL)
			return err_memory(err);
		json_add_text(json, "schema", "holdfast.explain/1");
		rule_show_json(rule, cJSON_AddObjectToObject(json, "rule"));
		x.list = cJSON_AddArrayToObject(json, "lines");
	} else {
		rule_show(rule, o->style, f);
	}
	if (feed->count > 0)
		rc = explain_lines(&x, err);
	if (rc == 0 && o->json) {
		json_add_int(json, "line_count", feed->count > 0 ?
		    (int64_t)x.lines : JSON_UNKNOWN);
		if ((text = json_line(json)) == NULL)
			rc = err_memory(err);
		else
			fputs(text, f);
	}
	free(text);
	cJSON_Delete(json);
	verdict_fini(&x.verdict);
	findings_fini(&x.findings);
	rule_set_free(x.bare);
	return rc;
}
