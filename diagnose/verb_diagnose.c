/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_diagnose.c - holdfast diagnose: reads logs, prints the verdict.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/verb.h"
#include "diagnose/card.h"
#include "diagnose/causes.h"
#include "diagnose/explain.h"
#include "diagnose/follow.h"
#include "diagnose/meter.h"
#include "diagnose/quote.h"
#include "diagnose/rule_load.h"
#include "diagnose/rule_show.h"
#include "diagnose/verbs.h"

struct diagnose_opts {
	bool		 json;
	bool		 all;
	bool		 follow;
	const char	*rules;
	const char	*explain_rule;
	int64_t		 threads;	/* 0: as many as are worth it */
};

static const struct opt diagnose_opts[] = {
	{ .name = "json", .type = OPT_FLAG, .cli_only = true,
	  .offset = offsetof(struct diagnose_opts, json),
	  .help = "print the verdict as JSON (holdfast.verdict/1)" },
	{ .name = "rules", .type = OPT_TEXT, .arg = "DIR",
	  .offset = offsetof(struct diagnose_opts, rules),
	  .help = "also use the rules in DIR; same id replaces a shipped rule" },
	{ .name = "all", .type = OPT_FLAG, .cli_only = true,
	  .offset = offsetof(struct diagnose_opts, all),
	  .help = "list every finding in order of time" },
	{ .name = "explain-rule", .type = OPT_TEXT, .arg = "ID", .cli_only = true,
	  .offset = offsetof(struct diagnose_opts, explain_rule),
	  .help = "show a rule, and what became of each line it matches" },
	{ .name = "follow", .letter = 'f', .type = OPT_FLAG, .cli_only = true,
	  .offset = offsetof(struct diagnose_opts, follow),
	  .help = "print findings of growing FILEs as they come, a verdict last" },
	{ .name = "threads", .type = OPT_INT, .arg = "N", .most = 64,
	  .offset = offsetof(struct diagnose_opts, threads),
	  .help = "use at most N processors; 0 (default): those there are, up to 8" },
	{ .name = NULL }
};

static void
problem(const char *text, void *arg)
{
	(void)arg;
	fprintf(stderr, "holdfast diagnose: %s\n", text);
}

/* Only a rule of the site should ever be told here: `rules lint' looks for them. */
static void
report_given_up(const struct rule_set *set)
{
	const struct rule *r;

	for (r = set->rules; r < set->rules + set->count; r++)
		if (r->given_up >= RULE_GIVEN_UP_MAX)
			fprintf(stderr, "holdfast diagnose: rule '%s' backtracks too "
			    "much, and was not tried to the end; see holdfast rules "
			    "lint\n", r->def.id);
}

/* Rows for what the card only counts. */
static void
print_row(const char *label, const char *name, const char *text)
{
	struct buf b = {0};

	if (name != NULL)
		quote_clean(name, strlen(name), NULL, &b);
	buf_puts(&b, name != NULL ? ": " : "");
	quote_clean(text, strlen(text), NULL, &b);
	printf("| %-8s%s\n", label, b.data ? b.data : "");
	buf_fini(&b);
}

static void
print_rest(const struct verdict *v, const struct card_style *style)
{
	size_t i;

	for (i = 0; i < v->suspect_count; i++)
		if (v->suspects[i].why != NULL)
			print_row("suspect", v->suspects[i].node,
			    v->suspects[i].why);
	for (i = 0; i < v->missing_count; i++)
		print_row("unread", NULL, v->missing[i]);
	if (v->suspect_count + v->missing_count > 0)
		card_put_rule("", NULL, style, stdout);
}

static int
print_verdict(const struct diagnose_opts *o, const struct verdict *v,
    const struct findings *all, const struct card_style *style,
    struct err *err)
{
	char *text;

	if (o->json) {
		text = o->all ? verdict_json_all(v, all) : verdict_json(v);
		if (text == NULL)
			return err_memory(err);
		fputs(text, stdout);
		free(text);
		return 0;
	}
	card_print(v, style, stdout);
	if (o->all) {
		findings_print(all, style, !isatty(STDOUT_FILENO), stdout);
		print_rest(v, style);
	}
	return 0;
}

static int
add_paths(struct feed *feed, char **paths, int count, struct err *err)
{
	int i;

	for (i = 0; i < count; i++)
		if (feed_add(feed, paths[i], err) == -1)
			return -1;
	return feed_settle(feed, err);
}

static int
explain(const struct diagnose_opts *o, struct rule_set *set, char **paths,
    int count, struct err *err)
{
	const struct card_style style = card_style_of(STDOUT_FILENO);
	const struct explain_options how = { &style, o->json,
	    !isatty(STDOUT_FILENO) };
	struct rule *rule = rule_named(set, o->explain_rule, err);
	struct feed feed = {0};
	int rc = -1;

	if (rule != NULL && (count == 0 ||
	    add_paths(&feed, paths, count, err) == 0))
		rc = explain_rule(&how, set, rule, &feed, stdout, err);
	feed_fini(&feed);
	return rc;
}

static int
diagnose(const struct diagnose_opts *o, struct rule_set *set, char **paths,
    int count, struct err *err)
{
	const struct card_style style = card_style_of(STDOUT_FILENO);
	const struct follow_options how = { set, &style, o->json,
	    !isatty(STDOUT_FILENO) };
	struct findings all = {0};
	struct meter meter;
	const struct causes_extra extra = { o->all ? &all : NULL, meter_update,
	    &meter };
	struct verdict v = {0};
	struct feed feed = { .spooled = meter_unpack, .spooled_arg = &meter };
	int rc = -1;

	meter_init(&meter);
	if (o->follow)
		rc = follow_run(&how, paths, (size_t)count, &extra, &feed, &v, err);
	else if (add_paths(&feed, paths, count, err) == 0)
		rc = causes_find_all(set, &feed, &extra, &v, err);
	meter_end(&meter);
	if (rc == 0)
		rc = print_verdict(o, &v, &all, &style, err);
	if (rc == 0 && v.status == VERDICT_UNDETERMINED)
		rc = EXIT_NEGATIVE;
	verdict_fini(&v);
	findings_fini(&all);
	feed_fini(&feed);
	return rc;
}

static int
run_diagnose(const struct verb *verb, int argc, char **argv)
{
	struct diagnose_opts o = {0};
	struct rule_set *set = NULL;
	struct err err = {0};
	int first, rc = -1;
	bool done;

	if (verb_begin_output(verb) == -1 ||
	    verb_parse(verb, &o, argc, argv, &first, &done) == -1)
		return EXIT_USAGE;
	if (done)
		return verb_end_output(verb, EXIT_OK);
	if (first >= argc && o.explain_rule == NULL) {
		err_set(&err, ERR_USAGE, "which log? give a FILE, a DIR, or - "
		    "for standard input");
		return verb_fail(verb, &err);
	}
	if (o.follow && o.explain_rule != NULL) {
		err_set(&err, ERR_USAGE, "--follow and --explain-rule do not go "
		    "together");
		return verb_fail(verb, &err);
	}
	argv += first;
	argc -= first;
	if (rule_load(o.rules, problem, NULL, &set, NULL, &err) == 0) {
		set->threads = (unsigned)o.threads;
		rc = o.explain_rule != NULL ? explain(&o, set, argv, argc, &err) :
		    diagnose(&o, set, argv, argc, &err);
		report_given_up(set);
	}
	rule_set_free(set);
	return rc == -1 ? verb_fail(verb, &err) : verb_end_output(verb, rc);
}

const struct verb verb_diagnose = {
	.name = "diagnose",
	.summary = "say what went wrong in logs, and prove it",
	.operands = "FILE|DIR|-...",
	.opts = diagnose_opts,
	.run = run_diagnose
};
