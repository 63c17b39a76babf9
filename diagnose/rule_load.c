/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rule_load.c - loads rule sets; lints them and runs their samples.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "diagnose/event.h"
#include "diagnose/match.h"
#include "diagnose/rule_cache.h"
#include "diagnose/rule_load.h"

struct counter {
	rule_problem_fn	 problem;
	void		*arg;
	int		 count;
};

static void
count_problem(const char *text, void *arg)
{
	struct counter *c = arg;

	c->count++;
	if (c->problem != NULL)
		c->problem(text, c->arg);
}

static bool
is_store(const char *dir)
{
	char *path = file_join(dir, "reasons.yaml");
	bool yes = path != NULL && access(path, F_OK) == 0;

	free(path);
	return yes;
}

int
rule_load(const char *dir, rule_problem_fn problem, void *arg,
    struct rule_set **out, int *problems, struct err *err)
{
	struct counter count = { problem, arg, 0 };
	struct rule_set *set;
	bool cached;

	if (rule_set_new(&set, err) == -1)
		return -1;
	if (dir == NULL || !is_store(dir))
		if (rule_set_add_builtin(set, err) == -1)
			goto fail;
	if (dir != NULL &&
	    rule_read_dir(set, dir, count_problem, &count, err) == -1)
		goto fail;
	cached = dir != NULL && rule_cache_load(set, dir);
	if (rule_set_finish(set, count_problem, &count, err) == -1)
		goto fail;
	if (dir != NULL && !cached)
		rule_cache_store(set, dir);
	if (problems != NULL)
		*problems = count.count;
	*out = set;
	return 0;
fail:
	rule_set_free(set);
	return -1;
}

static void __attribute__((format(printf, 3, 4)))
tell(struct counter *c, const struct rule *r, const char *fmt, ...)
{
	struct err text = {0};
	char why[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	err_set(&text, ERR_FORMAT, "%s:%d:%d: rule '%s': %s", r->def.file,
	    r->def.line, r->def.column, r->def.id, why);
	count_problem(text.text, c);
}

static bool
is_mark(const struct rule *r)
{
	return strcmp(r->def.file, "built in") == 0;
}

/* The plain text a pattern begins with. */
static size_t
leading_text(const char *pattern, char *out, size_t size)
{
	size_t n = 0;

	pattern += *pattern == '^';
	while (n < size && pattern[n] != '\0' &&
	    strchr("\\^$.[|()?*+{", pattern[n]) == NULL) {
		out[n] = pattern[n];
		n++;
	}
	return n;
}

/* Runs of one kind of character behind the text a pattern begins with. */
static bool
explodes_on_run(struct match *m, const char *run, const char *lead, size_t n)
{
	char text[MATCH_LINE_MAX];
	size_t k, at = 0, len = strlen(run);

	for (; at + len <= sizeof(text); at += len)
		memcpy(text + at, run, len);
	memcpy(text, lead, n < 200 ? n : 200);
	/* All characters once: PCRE2 gives up early on a line that lacks one the
	 * pattern ends with. */
	for (k = 0; k < 0x7f - 0x20; k++)
		text[at - 0x60 + k] = (char)(0x20 + k);
	return match_run(m, text, at) == MATCH_LIMIT;
}

/* Feeds a pattern what makes backtracking explode: long runs, and its own
 * examples repeated with the end broken off. */
static bool
explodes(struct match *m, const char *pattern, const struct rule *r)
{
	static const char *const runs[] = { "a", "0", " ", "a ", "0:", "[", "\"",
	    "x", "/" };
	char text[MATCH_LINE_MAX], lead[200];
	size_t i, n, k, n_lead = leading_text(pattern, lead, sizeof(lead));

	for (i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		if (explodes_on_run(m, runs[i], lead, n_lead))
			return true;
		for (k = 0; k < 3 && r->def.literals != NULL &&
		    r->def.literals[k].text != NULL; k++)
			if (explodes_on_run(m, runs[i], r->def.literals[k].text,
			    r->def.literals[k].len))
				return true;
	}
	for (i = 0; r->def.examples != NULL && r->def.examples[i]; i++) {
		k = strlen(r->def.examples[i]);
		if (k < 2 || k > 2000)
			continue;
		for (n = 0; n + k <= sizeof(text); n += k - 1)
			memcpy(text + n, r->def.examples[i], k - 1);
		if (match_run(m, text, n) == MATCH_LIMIT)
			return true;
	}
	return false;
}

static void
lint_pattern(struct counter *c, const struct rule *r, const char *key,
    const char *pattern)
{
	struct match *m = NULL;
	struct err err = {0};

	if (pattern == NULL)
		return;
	if (match_new(pattern, &m, &err) == -1)
		tell(c, r, "%s: %s", key, err.text);
	else if (explodes(m, pattern, r))
		tell(c, r, "%s backtracks too much on long lines", key);
	match_free(m);
}

static void
lint_rule(struct counter *c, const struct rule_set *set, size_t i)
{
	const struct rule *r = &set->rules[i];
	size_t k;

	lint_pattern(c, r, "match", r->def.match);
	lint_pattern(c, r, "unless", r->def.unless);
	if (r->def.examples == NULL || r->def.examples[0] == NULL)
		tell(c, r, "has no examples");
	if (r->def.counterexamples == NULL || r->def.counterexamples[0] == NULL)
		tell(c, r, "has no counterexamples");
	for (k = 0; r->def.hides != NULL && r->def.hides[k] != NULL; k++)
		if (r->def.reason != NULL &&
		    strcmp(r->def.hides[k], r->def.reason) == 0)
			tell(c, r, "hides its own reason");
	for (k = 0; k < i; k++)
		if (strcmp(set->rules[k].def.match, r->def.match) == 0 &&
		    (r->def.after == NULL) == (set->rules[k].def.after == NULL))
			tell(c, r, "has the same match as '%s'",
			    set->rules[k].def.id);
}

int
rule_lint(struct rule_set *set, rule_problem_fn problem, void *arg)
{
	struct counter c = { problem, arg, 0 };
	size_t i;

	for (i = 0; i < set->count; i++)
		if (!is_mark(&set->rules[i]))
			lint_rule(&c, set, i);
	return c.count;
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

int
rule_test(struct rule_set *set, rule_problem_fn problem, void *arg,
    int *samples)
{
	struct counter c = { problem, arg, 0 };
	const char *winner, *const *s;
	uint32_t i;

	*samples = 0;
	for (i = 0; i < set->count; i++) {
		const struct rule *r = &set->rules[i];

		for (s = r->def.examples; s != NULL && *s != NULL; s++) {
			++*samples;
			if (sample_wins(set, i, EVENTS_AND_BENIGN, *s, &winner) != 1)
				tell(&c, r, "example is won by '%s': %.200s",
				    winner, *s);
		}
		for (s = r->def.counterexamples; s != NULL && *s != NULL; s++) {
			++*samples;
			if (sample_wins(set, i, i, *s, &winner) != 0)
				tell(&c, r, "matches its counterexample: %.200s", *s);
		}
	}
	return c.count;
}
