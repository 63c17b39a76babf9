/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mkrules.c - build-time program: reads a sample of healthy logs and YAML rule
 * files, writes the rules as C tables with their literals worked out and the
 * search for them planned, to standard output.  Any problem ends the build.
 *
 * usage: mkrules SAMPLE FILE...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "diagnose/rule.h"

/* The tables this program makes are empty while it runs. */
const struct rule_def rule_builtin[1];
const size_t rule_builtin_count = 0;
const struct reason reason_builtin[1];
const size_t reason_builtin_count = 0;
const char sample_builtin[1];
const size_t sample_builtin_len = 0;

#define PLAN_PASSES	4
#define COMMON		8.0	/* occurrences in the sample */
#define SAMPLE_MAX	(1u << 20)

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
put_literals(size_t i, const struct scan_literal *l, size_t count)
{
	size_t k;

	if (l == NULL)
		return;
	printf("static const struct scan_literal l%zu[] = {\n", i);
	for (k = 0; k < count; k++, l++) {
		printf("\t{ ");
		put_string(l->text);
		printf(", %u, %d, 1, %d, %u, %u, %u },\n", l->len, l->fold,
		    l->any_case, l->offset, l->exact, l->nibble);
	}
	printf("\t{ .text = NULL } };\n");
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
put_rule(const struct rule_set *set, size_t i)
{
	const struct rule *r = &set->rules[i];
	const struct rule_def *d = &r->def;
	char file[256];

	snprintf(file, sizeof(file), "%s%s", rule_is_mark(d) ? "" : "rules/",
	    base_name(d->file));
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
	    " .blind = %d, .tail = %d, .prepared = 1, .reason_row = %d,",
	    d->line, d->column, (int)d->role, (int)d->source,
	    d->action, d->priority, d->within, d->confidence, d->blind,
	    d->tail, r->reason ? (int)(r->reason - set->reasons) : 0);
	put_list_member(i, "hides", "h", d->hides);
	put_list_member(i, "cancels", "k", d->cancels);
	put_list_member(i, "examples", "e", d->examples);
	put_list_member(i, "counterexamples", "c", d->counterexamples);
	if (rule_literal_count(d) > 0)
		printf(" .literals = l%zu,", i);
	printf(" },\n");
}

static void
put_rules(const struct rule_set *set)
{
	size_t i;

	for (i = 0; i < set->count; i++) {
		const struct rule_def *d = &set->rules[i].def;

		put_list(i, "h", d->hides);
		put_list(i, "k", d->cancels);
		put_list(i, "e", d->examples);
		put_list(i, "c", d->counterexamples);
		put_literals(i, rule_set_planned(set, i), rule_literal_count(d));
	}
	printf("\nconst struct rule_def rule_builtin[] = {\n");
	for (i = 0; i < set->count; i++)
		put_rule(set, i);
	printf("{ .id = NULL },\n};\nconst size_t rule_builtin_count = %zu;\n\n",
	    set->count);
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

/* A literal that stands in each step line would make every healthy log slow. */
static void
check_literals(const struct rule_set *set)
{
	struct err why = {0};
	size_t i;

	for (i = 0; i < set->literal_end[RULES_LOUD]; i++) {
		const struct scan_literal *l = &set->literals[i];
		const struct rule_def *d =
		    &set->rules[set->literal_rule[i]].def;

		if (scan_sample_cost(set->sample, l->text, l->len, l->fold) <
		    COMMON)
			continue;
		err_set(&why, ERR_FORMAT, "%s:%d: rule '%s' is looked for by "
		    "'%s', which healthy logs are full of; say more of the line, "
		    "or tail: true", d->file, d->line, d->id, l->text);
		problem(why.text, NULL);
	}
}

static void
put_sample(const char *text, size_t len)
{
	size_t i;

	printf("const char sample_builtin[] = {");
	for (i = 0; i < len; i++)
		printf("%s%d,", i % 24 == 0 ? "\n\t" : " ", text[i]);
	printf("\n\t0 };\nconst size_t sample_builtin_len = %zu;\n\n", len);
}

int
main(int argc, char **argv)
{
	struct rule_set *set;
	struct err err = {0};
	struct buf sample = {0};
	int i;

	if (argc < 3) {
		fprintf(stderr, "usage: mkrules SAMPLE FILE...\n");
		return 2;
	}
	if (rule_set_new(&set, &err) == -1 ||
	    file_read(argv[1], SAMPLE_MAX, &sample, &err) == -1 ||
	    scan_sample_new(sample.data, sample.len, &set->sample, &err) == -1)
		goto fail;
	set->plan_passes = PLAN_PASSES;
	for (i = 2; i < argc; i++)
		rule_read_file(set, argv[i], problem, NULL);
	if (rule_set_finish(set, problem, NULL, &err) == -1)
		goto fail;
	check_literals(set);
	if (problems > 0)
		return 1;
	printf("/* Made by mkrules from rules/; do not edit. */\n"
	    "#include \"diagnose/rule.h\"\n\n");
	put_rules(set);
	put_reasons(set);
	put_sample(sample.data, sample.len);
	buf_fini(&sample);
	rule_set_free(set);
	return ferror(stdout) != 0 || fflush(stdout) != 0;
fail:
	fprintf(stderr, "mkrules: %s\n", err.text);
	return 1;
}
