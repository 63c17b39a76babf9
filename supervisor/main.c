/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - the holdfast command: finds the verb and runs it.
 */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint/verbs.h"
#include "common/text.h"
#include "common/verb.h"
#include "config.h"
#include "diagnose/verbs.h"
#include "supervisor/verbs.h"

static const struct verb *const verbs[] = {
	&verb_run, &verb_status, &verb_stop, &verb_diagnose, &verb_checkpoint,
	&verb_rules, &verb_supervisor, &verb_agent, &verb_reaper, NULL
};

static int
usage(FILE *f)
{
	size_t i;

	fprintf(f, "usage: holdfast VERB [options] ...\n\n"
	    "Keeps an LLM pretraining run alive.\n\n");
	for (i = 0; verbs[i] != NULL; i++)
		if (!verbs[i]->internal)
			fprintf(f, "  %-12s %s\n", verbs[i]->name,
			    verbs[i]->summary);
	fprintf(f, "\nholdfast VERB --help lists the options of a verb; "
	    "man holdfast is the manual.\n");
	return f == stdout ? EXIT_OK : EXIT_USAGE;
}

int
main(int argc, char **argv)
{
	struct text_nearest near = {0};
	size_t i;

	setlocale(LC_CTYPE, "");
	if (argc < 2)
		return usage(stderr);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0)
		return usage(stdout);
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		printf("holdfast %s\n", PACKAGE_VERSION);
		return EXIT_OK;
	}
	for (i = 0; verbs[i] != NULL; i++) {
		if (strcmp(verbs[i]->name, argv[1]) == 0)
			return verbs[i]->run(verbs[i], argc - 1, argv + 1);
		if (!verbs[i]->internal)
			text_nearest_try(&near, argv[1], verbs[i]->name);
	}
	fprintf(stderr, "holdfast: unknown verb '%s'%s%s%s\n", argv[1],
	    near.best ? ", did you mean '" : "", near.best ? near.best : "",
	    near.best ? "'?" : " (holdfast --help lists them)");
	return EXIT_USAGE;
}
