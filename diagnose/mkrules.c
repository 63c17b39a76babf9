/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mkrules.c - build-time program: reads YAML rule files, writes them as C
 * tables with their literals worked out, to standard output.  Any problem ends
 * the build.
 *
 * usage: mkrules FILE...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/rule.h"

/* The tables this program makes are empty while it runs. */
const struct rule_def rule_builtin[1];
const size_t rule_builtin_count = 0;
const struct reason reason_builtin[1];
const size_t reason_builtin_count = 0;

static int problems;

static void
problem(const char *text, void *arg)
{
	(void)arg;
	fprintf(stderr, "mkrules: %s\n", text);
	problems++;
}

static void
put_string(const char *s)
{
	if (s == NULL) {
		fputs("NULL", stdout);
		return;
	}
	putchar('"');
	for (; *s != '\0'; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\' || c == '?')
			printf("\\%c", c);
		else if (c >= 0x20 && c < 0x7f)
			putchar(c);
		else
			printf("\\%03o", c);
	}
	putchar('"');
}

static void
put_list(size_t i, const char *name, const char *const *list)
{
	if (list == NULL)
		return;
	printf("static const char *const %s%zu[] = {", name, i);
	for (; *list != NULL; list++) {
		putchar(' ');
		put_string(*list);
		putchar(',');
	}
	printf(" NULL };\n");
}

static void
put_member(const char *name, const char *text)
{
	if (text == NULL)
		return;
	printf(" .%s = ", name);
	put_string(text);
	putchar(',');
}

static void
put_list_member(size_t i, const char *name, const char *array,
    const char *const *list)
{
	if (list != NULL)
		printf(" .%s = %s%zu,", name, array, i);
}

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void
put_rule(size_t i, const struct rule_def *d)
{
	char file[256];

	snprintf(file, sizeof(file), "rules/%s", base_name(d->file));
	printf("{");
	put_member("id", d->id);
	put_member("reason", d->reason);
	put_member("match", d->match);
	put_member("unless", d->unless);
	put_member("after", d->after);
	put_member("advice", d->advice);
	put_member("file", file);
	printf(" .line = %d, .column = %d, .role = %d, .source = %d, "
	    ".action = %d, .priority = %d, .within = %d, .confidence = %g,"
	    " .fold = %d,", d->line, d->column, (int)d->role, (int)d->source,
	    d->action, d->priority, d->within, d->confidence, d->fold);
	put_list_member(i, "hides", "h", d->hides);
	put_list_member(i, "cancels", "k", d->cancels);
	put_list_member(i, "examples", "e", d->examples);
	put_list_member(i, "counterexamples", "c", d->counterexamples);
	put_list_member(i, "literals", "l", d->literals);
	printf(" },\n");
}

/* The engine's own marks are in every set already. */
static bool
is_mark(const struct rule_def *d)
{
	return strcmp(d->file, "built in") == 0;
}

static void
put_rules(const struct rule_set *set)
{
	size_t i, n = 0;

	for (i = 0; i < set->count; i++) {
		const struct rule_def *d = &set->rules[i].def;

		if (is_mark(d))
			continue;
		put_list(i, "h", d->hides);
		put_list(i, "k", d->cancels);
		put_list(i, "e", d->examples);
		put_list(i, "c", d->counterexamples);
		put_list(i, "l", d->literals);
	}
	printf("\nconst struct rule_def rule_builtin[] = {\n");
	for (i = 0; i < set->count; i++) {
		if (is_mark(&set->rules[i].def))
			continue;
		put_rule(i, &set->rules[i].def);
		n++;
	}
	printf("{ .id = NULL },\n};\nconst size_t rule_builtin_count = %zu;\n\n",
	    n);
}

static void
put_reasons(const struct rule_set *set)
{
	size_t i;

	printf("const struct reason reason_builtin[] = {\n");
	for (i = 0; i < set->reason_count; i++) {
		const struct reason *r = &set->reasons[i];

		printf("{");
		put_member("name", r->name);
		put_member("category", r->category);
		put_member("what", r->what);
		put_member("advice", r->advice);
		printf(" .action = %d, .rung = %d },\n", (int)r->action, r->rung);
	}
	printf("{ .name = NULL },\n};\nconst size_t reason_builtin_count = %zu;\n",
	    set->reason_count);
}

int
main(int argc, char **argv)
{
	struct rule_set *set;
	struct err err = {0};
	int i;

	if (rule_set_new(&set, &err) == -1)
		goto fail;
	for (i = 1; i < argc; i++)
		rule_read_file(set, argv[i], problem, NULL);
	if (rule_set_finish(set, problem, NULL, &err) == -1)
		goto fail;
	if (problems > 0)
		return 1;
	printf("/* Made by mkrules from rules/; do not edit. */\n"
	    "#include \"diagnose/rule.h\"\n\n");
	put_rules(set);
	put_reasons(set);
	rule_set_free(set);
	return ferror(stdout) != 0 || fflush(stdout) != 0;
fail:
	fprintf(stderr, "mkrules: %s\n", err.text);
	return 1;
}
