/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rule_lint.c - checks of a rule set: mistakes a loader does not see, and the
 * samples that every rule carries.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/event.h"
#include "diagnose/match.h"
#include "diagnose/rule_bomb.h"
#include "diagnose/rule_load.h"

struct lint {
	struct rule_set	*set;
	rule_problem_fn	 problem;
	void		*arg;
	int		 count;
	struct match	**matches;	/* per rule, NULL: does not compile */
	struct match	**unless;
};

static void __attribute__((format(printf, 3, 4)))
tell(struct lint *l, const struct rule *r, const char *fmt, ...)
{
	struct err text = {0};
	char why[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	err_set(&text, ERR_FORMAT, "%s:%d:%d: rule '%s': %s", r->def.file,
	    r->def.line, r->def.column, r->def.id, why);
	l->count++;
	if (l->problem != NULL)
		l->problem(text.text, l->arg);
}

/* Runs of one kind of character behind the plain text a pattern begins with. */
static bool
explodes_on_runs(struct match *m, const char *pattern)
{
	static const char *const runs[] = { "a", "0", " ", "a ", "0:", "[", "\"",
	    "x", "/" };
	char text[MATCH_LINE_MAX];
	size_t i, n, at, len;

	pattern += *pattern == '^';
	n = strcspn(pattern, "\\^$.[|()?*+{");
	for (i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		len = strlen(runs[i]);
		for (at = 0; at + len <= sizeof(text) - 0x60; at += len)
			memcpy(text + at, runs[i], len);
		memcpy(text, pattern, n < 200 ? n : 200);
		/* See rule_bomb.c for these. */
		for (len = 0x20; len < 0x7f; len++)
			text[at++] = (char)len;
		if (match_run(m, text, at) == MATCH_LIMIT)
			return true;
	}
	return false;
}

/* Its own examples repeated with the end broken off, and its literals. */
static bool
explodes_on_samples(struct match *m, const struct rule *r)
{
	char text[MATCH_LINE_MAX];
	size_t i, k, n;

	for (i = 0; r->def.examples != NULL && r->def.examples[i]; i++) {
		k = strlen(r->def.examples[i]);
		if (k < 2 || k > 2000)
			continue;
		for (n = 0; n + k <= sizeof(text); n += k - 1)
			memcpy(text + n, r->def.examples[i], k - 1);
		if (match_run(m, text, n) == MATCH_LIMIT)
			return true;
	}
	for (i = 0; r->def.literals != NULL && r->def.literals[i].text; i++) {
		k = r->def.literals[i].len;
		for (n = 0; n + k < sizeof(text); n += k)
			memcpy(text + n, r->def.literals[i].text, k);
		text[n++] = '\001';
		if (match_run(m, text, n) == MATCH_LIMIT)
			return true;
	}
	return false;
}

static void
lint_pattern(struct lint *l, const struct rule *r, const char *key,
    const char *pattern, struct match **out)
{
	struct buf text = {0};
	struct err err = {0};

	if (pattern == NULL)
		return;
	if (match_new(pattern, out, &err) == -1)
		tell(l, r, "%s: %s", key, err.text);
	else if (rule_bomb_explodes(*out, pattern, &text))
		tell(l, r, "%s backtracks too much on lines like '%.60s'", key,
		    text.data);
	else if (explodes_on_runs(*out, pattern) || explodes_on_samples(*out, r))
		tell(l, r, "%s backtracks too much on long lines", key);
	buf_fini(&text);
}

static bool
matches(const struct lint *l, size_t rule, const char *sample)
{
	struct match *m = l->matches[rule], *u = l->unless[rule];
	size_t len = strcspn(sample, "\n");
	struct line line;

	line_parse(sample, len, &line);
	return m != NULL && match_run_line(m, &line.text, &line.len, sample,
	    len) == MATCH_YES &&
	    (u == NULL || match_run(u, sample, len) != MATCH_YES);
}

static bool
matches_samples_of(const struct lint *l, size_t rule, size_t of)
{
	const char *const *s = l->set->rules[of].def.examples;

	if (s == NULL || *s == NULL)
		return false;
	for (; *s != NULL; s++)
		if (!matches(l, rule, *s))
			return false;
	return true;
}

static void
lint_twins(struct lint *l, size_t i)
{
	const struct rule_def *a = &l->set->rules[i].def;
	size_t k;

	for (k = 0; k < i; k++) {
		const struct rule_def *b = &l->set->rules[k].def;

		if (rule_is_mark(&l->set->rules[k].def) ||
		    (a->after == NULL) != (b->after == NULL))
			continue;
		if (strcmp(a->match, b->match) == 0)
			tell(l, &l->set->rules[i], "has the same match as '%s'",
			    b->id);
		else if (a->after == NULL && matches_samples_of(l, i, k) &&
		    matches_samples_of(l, k, i))
			tell(l, &l->set->rules[i], "cannot be told from '%s': each "
			    "matches all examples of the other", b->id);
	}
}

/* Whether the rule wins a line of the sample; *winner is the id that won the
 * last line any rule won. */
static int
sample_wins(struct rule_set *set, uint32_t rule, uint32_t only,
    const char *text, const char **winner)
{
	struct events ev = {0};
	struct feed feed = {0};
	struct err err = {0};
	int won = -1;
	size_t i;

	*winner = "nothing";
	if (feed_add_memory(&feed, "sample", text, strlen(text), &err) == 0 &&
	    events_collect_rule(&ev, set, &feed, 0, only, &err) == 0) {
		won = 0;
		for (i = 0; i < ev.count; i++) {
			*winner = ev.list[i].rule->def.id;
			if (ev.list[i].rule == &set->rules[rule])
				won = 1;
		}
	}
	events_fini(&ev);
	feed_fini(&feed);
	return won;
}

static void
lint_winning(struct lint *l, size_t i)
{
	const struct rule *r = &l->set->rules[i];
	const char *const *s = r->def.examples, *winner = "nothing";

	if (s == NULL || *s == NULL || r->broken || l->matches[i] == NULL)
		return;
	for (; *s != NULL; s++)
		if (sample_wins(l->set, (uint32_t)i, EVENTS_AND_BENIGN, *s,
		    &winner) != 0)
			return;
	tell(l, r, "never wins: the last of its examples goes to '%s'", winner);
}

static void
lint_rule(struct lint *l, size_t i)
{
	const struct rule *r = &l->set->rules[i];
	size_t k;

	lint_pattern(l, r, "match", r->def.match, &l->matches[i]);
	lint_pattern(l, r, "unless", r->def.unless, &l->unless[i]);
	if (r->def.examples == NULL || r->def.examples[0] == NULL)
		tell(l, r, "has no examples");
	if (r->def.counterexamples == NULL || r->def.counterexamples[0] == NULL)
		tell(l, r, "has no counterexamples");
	for (k = 0; r->def.hides != NULL && r->def.hides[k] != NULL; k++)
		if (r->def.reason != NULL &&
		    strcmp(r->def.hides[k], r->def.reason) == 0)
			tell(l, r, "hides its own reason");
	lint_twins(l, i);
	lint_winning(l, i);
}

int
rule_lint(struct rule_set *set, rule_problem_fn problem, void *arg)
{
	struct lint l = { .set = set, .problem = problem, .arg = arg };
	size_t i;

	l.matches = calloc(set->count + 1, sizeof(*l.matches));
	l.unless = calloc(set->count + 1, sizeof(*l.unless));
	for (i = 0; i < set->count && l.matches != NULL && l.unless != NULL; i++)
		if (!rule_is_mark(&set->rules[i].def))
			lint_rule(&l, i);
	for (i = 0; i < set->count && l.matches != NULL && l.unless != NULL; i++) {
		match_free(l.matches[i]);
		match_free(l.unless[i]);
	}
	free(l.matches);
	free(l.unless);
	return l.count;
}

/* The example as another text would show it. */
static char *
quoted(const char *sample, char mark)
{
	struct buf b = {0};

	buf_printf(&b, "it prints %c", mark);
	for (; *sample != '\0'; sample++) {
		if (*sample == mark || *sample == '\\')
			buf_puts(&b, "\\");
		buf_append(&b, sample, 1);
	}
	buf_printf(&b, "%c then", mark);
	return buf_steal(&b);
}

static void
test_quoted(struct lint *l, uint32_t i, const char *sample)
{
	const struct rule *r = &l->set->rules[i];
	const char *mark, *winner;
	char *text;

	if (!rule_is_guarded(&r->def) || strchr(sample, '\n') != NULL)
		return;
	for (mark = "\"'"; *mark != '\0'; mark++) {
		text = quoted(sample, *mark);
		if (text != NULL &&
		    sample_wins(l->set, i, i, text, &winner) == 1)
			tell(l, r, "matches its example in quotation marks: "
			    "%.200s", text);
		free(text);
	}
}

int
rule_test(struct rule_set *set, rule_problem_fn problem, void *arg,
    int *samples)
{
	struct lint l = { .set = set, .problem = problem, .arg = arg };
	const char *winner, *const *s;
	uint32_t i;

	*samples = 0;
	for (i = 0; i < set->count; i++) {
		const struct rule *r = &set->rules[i];

		for (s = r->def.examples; s != NULL && *s != NULL; s++) {
			++*samples;
			if (sample_wins(set, i, EVENTS_AND_BENIGN, *s, &winner) != 1)
				tell(&l, r, "example is won by '%s': %.200s",
				    winner, *s);
			else
				test_quoted(&l, i, *s);
		}
		for (s = r->def.counterexamples; s != NULL && *s != NULL; s++) {
			++*samples;
			if (sample_wins(set, i, i, *s, &winner) != 0)
				tell(&l, r, "matches its counterexample: %.200s", *s);
		}
	}
	return l.count;
}
