/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_diagnose.c - holdfast diagnose: reads logs, prints the verdict.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/verb.h"
#include "diagnose/card.h"
#include "diagnose/causes.h"
#include "diagnose/rule_load.h"
#include "diagnose/verbs.h"

struct diagnose_opts {
	bool		 json;
	bool		 all;
	const char	*rules;
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
	  .help = "show all echoes and alternatives" },
	{ .name = NULL }
};

static void
problem(const char *text, void *arg)
{
	(void)arg;
	fprintf(stderr, "holdfast diagnose: %s\n", text);
}

static int
print_verdict(const struct diagnose_opts *o, const struct verdict *v)
{
	char *text;

	if (!o->json) {
		card_print(v, isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL,
		    o->all, stdout);
	} else {
		if ((text = verdict_json(v)) == NULL)
			return EXIT_USAGE;
		fputs(text, stdout);
		free(text);
	}
	if (fflush(stdout) != 0)
		return EXIT_USAGE;
	return v->status == VERDICT_UNDETERMINED ? EXIT_NEGATIVE : EXIT_OK;
}

static int
run_diagnose(const struct verb *verb, int argc, char **argv)
{
	struct diagnose_opts o = {0};
	struct rule_set *set = NULL;
	struct verdict v = {0};
	struct feed feed = {0};
	struct err err = {0};
	int first, i, rc = EXIT_USAGE;
	bool done;

	if (verb_parse(verb, &o, argc, argv, &first, &done) == -1)
		return EXIT_USAGE;
	if (done)
		return EXIT_OK;
	if (first >= argc) {
		err_set(&err, ERR_USAGE, "which log? give a FILE, a DIR, or - "
		    "for standard input");
		return verb_fail(verb, &err);
	}
	for (i = first; i < argc; i++)
		if (feed_add(&feed, argv[i], &err) == -1)
			goto fail;
	if (feed_settle(&feed, &err) == -1 ||
	    rule_load(o.rules, problem, NULL, &set, NULL, &err) == -1 ||
	    causes_find(set, &feed, &v, &err) == -1)
		goto fail;
	rc = print_verdict(&o, &v);
	goto out;
fail:
	verb_fail(verb, &err);
out:
	verdict_fini(&v);
	feed_fini(&feed);
	rule_set_free(set);
	return rc;
}

const struct verb verb_diagnose = {
	.name = "diagnose",
	.summary = "say what went wrong in logs, and prove it",
	.operands = "FILE|DIR|-...",
	.opts = diagnose_opts,
	.run = run_diagnose
};
