/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_rules.c - holdfast rules: lists, shows, lints and tests rules.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/text.h"
#include "common/verb.h"
#include "diagnose/rule_load.h"
#include "diagnose/rule_show.h"
#include "diagnose/verbs.h"

#define LAYERS_MAX	64	/* told apart */

struct rules_opts {
	bool		 json;
	const char	*rules;
	const char	*reason;
	const char	*layer;
};

static const struct opt rules_opts[] = {
	{ .name = "json", .type = OPT_FLAG, .cli_only = true,
	  .offset = offsetof(struct rules_opts, json),
	  .help = "print JSON, one object per line" },
	{ .name = "rules", .type = OPT_TEXT, .arg = "DIR",
	  .offset = offsetof(struct rules_opts, rules),
	  .help = "list, show: also use the rules in DIR" },
	{ .name = "reason", .type = OPT_TEXT, .arg = "REASON", .cli_only = true,
	  .offset = offsetof(struct rules_opts, reason),
	  .help = "list: only rules that speak for REASON" },
	{ .name = "layer", .type = OPT_TEXT, .arg = "LAYER", .cli_only = true,
	  .offset = offsetof(struct rules_opts, layer),
	  .help = "list: only rules of LAYER.yaml" },
	{ .name = NULL }
};

static const char *const actions[] = { "list", "show", "lint", "test", NULL };
enum { RULES_LIST, RULES_SHOW, RULES_LINT, RULES_TEST };

struct printer {
	bool	json;
	int	count;
};

static void
put_json(cJSON *o)
{
	char *text = json_line(o);

	if (text != NULL)
		fputs(text, stdout);
	free(text);
	cJSON_Delete(o);
}

/* "file:line:column: why": the place apart from the rest of the text. */
static void
add_place(cJSON *o, const char **text)
{
	int line = 0, column = 0, end = 0;
	const char *colon = *text;
	struct buf file = {0};

	while ((colon = strchr(colon, ':')) != NULL && (sscanf(colon,
	    ":%9d:%9d: %n", &line, &column, &end) != 2 || end == 0))
		colon++;
	if (colon == NULL)
		return;
	if (buf_append(&file, *text, (size_t)(colon - *text)) == 0)
		json_add_text(o, "file", file.data);
	json_add_int(o, "line", line);
	json_add_int(o, "column", column);
	buf_fini(&file);
	*text = colon + end;
}

static void
problem(const char *text, void *arg)
{
	struct printer *p = arg;
	cJSON *o;

	p->count++;
	if (!p->json) {
		printf("%s\n", text);
		return;
	}
	o = cJSON_CreateObject();
	add_place(o, &text);
	json_add_text(o, "problem", text);
	put_json(o);
}

/* Problems of loading, when they are not what was asked for. */
static void
warn_problem(const char *text, void *arg)
{
	(void)arg;
	fprintf(stderr, "holdfast rules: %s\n", text);
}

/* What `list' is asked for. */
struct filter {
	const char	*reason;	/* NULL: any */
	const char	*layer;
};

static bool
passes(const struct filter *want, const struct rule *r)
{
	char layer[RULE_LAYER_MAX];

	rule_layer(r, layer);
	return (want->reason == NULL || (r->def.reason != NULL &&
	    strcmp(r->def.reason, want->reason) == 0)) &&
	    (want->layer == NULL || strcmp(layer, want->layer) == 0);
}

static int
unknown_name(const char *what, const char *name, const char *best,
    struct err *err)
{
	return err_set(err, ERR_USAGE, "no %s '%.60s'%s%s%s", what, name,
	    best ? ", did you mean '" : "", best ? best : "", best ? "'?" : "");
}

/* A name that nothing has is a mistake, a reason without rules is none. */
static int
check_filter(const struct filter *want, const struct rule_set *set,
    struct err *err)
{
	char layers[LAYERS_MAX][RULE_LAYER_MAX];
	struct text_nearest near = {0};
	size_t i, k, n = 0;

	if (want->reason != NULL &&
	    rule_set_reason(set, want->reason) == NULL) {
		for (i = 0; i < set->reason_count; i++)
			text_nearest_try(&near, want->reason,
			    set->reasons[i].name);
		return unknown_name("reason", want->reason, near.best, err);
	}
	if (want->layer == NULL)
		return 0;
	for (i = 0; i < set->count && n < LAYERS_MAX; i++) {
		rule_layer(&set->rules[i], layers[n]);
		if (strcmp(layers[n], want->layer) == 0)
			return 0;
		for (k = 0; k < n && strcmp(layers[k], layers[n]) != 0; k++)
			;
		n += k == n;
	}
	for (i = 0; i < n; i++)
		text_nearest_try(&near, want->layer, layers[i]);
	return unknown_name("layer", want->layer, near.best, err);
}

static int
by_id(const void *a, const void *b)
{
	const struct rule *const *x = a, *const *y = b;

	return strcmp((*x)->def.id, (*y)->def.id);
}

/* The columns of one row. */
#define COLUMNS	4
static void
fill_row(const struct rule *r, const char *row[COLUMNS])
{
	row[0] = r->def.id;
	row[1] = rule_role_name(r->def.role);
	row[2] = r->def.reason ? r->def.reason : "-";
	row[3] = r->reason || r->def.action >= 0 ?
	    rule_action_name(rule_action(r)) : "-";
}

/* Aligned; on a terminal, columns that do not fit are left out. */
static void
print_rows(const struct rule **list, size_t count)
{
	const struct card_style style = card_style_of(STDOUT_FILENO);
	const char *row[COLUMNS];
	int width[COLUMNS] = {0}, columns, used = 0, n;
	size_t i;

	for (i = 0; i < count; i++) {
		fill_row(list[i], row);
		for (n = 0; n < COLUMNS; n++)
			if ((int)strlen(row[n]) > width[n])
				width[n] = (int)strlen(row[n]);
	}
	for (columns = 0; columns < COLUMNS; columns++) {
		used += width[columns] + (columns > 0 ? 2 : 0);
		if (columns > 1 && used > style.columns && isatty(STDOUT_FILENO))
			break;
	}
	for (i = 0; i < count; i++) {
		fill_row(list[i], row);
		for (n = 0; n + 1 < columns; n++)
			printf("%-*s", width[n] + 2, row[n]);
		printf("%s\n", row[n]);
	}
}

static int
run_list(const struct rule_set *set, const struct filter *want, bool json,
    struct err *err)
{
	const struct rule **sorted;
	size_t i, n = 0;
	cJSON *o;

	if (check_filter(want, set, err) == -1)
		return -1;
	if ((sorted = calloc(set->count + 1, sizeof(*sorted))) == NULL)
		return err_memory(err);
	for (i = 0; i < set->count; i++)
		if (passes(want, &set->rules[i]))
			sorted[n++] = &set->rules[i];
	qsort(sorted, n, sizeof(*sorted), by_id);
	for (i = 0; json && i < n; i++) {
		o = cJSON_CreateObject();
		rule_show_json(sorted[i], o);
		put_json(o);
	}
	if (!json)
		print_rows(sorted, n);
	free(sorted);
	return EXIT_OK;
}

static int
run_show(const struct rule_set *set, const char *id, bool json,
    struct err *err)
{
	const struct card_style style = card_style_of(STDOUT_FILENO);
	const struct rule *r;
	cJSON *o;

	if (id == NULL)
		return err_set(err, ERR_USAGE, "show: which rule? "
		    "(holdfast rules list)");
	if ((r = rule_named(set, id, err)) == NULL)
		return -1;
	if (json) {
		o = cJSON_CreateObject();
		rule_show_json(r, o);
		put_json(o);
	} else {
		rule_show(r, &style, stdout);
	}
	return EXIT_OK;
}

static void
put_summary(const struct rule_set *set, const struct printer *p, int samples)
{
	cJSON *o;

	if (p->json) {
		o = cJSON_CreateObject();
		json_add_int(o, "rules", (int64_t)set->count);
		json_add_int(o, "samples", samples < 0 ? JSON_UNKNOWN : samples);
		json_add_int(o, "problems", p->count);
		put_json(o);
	} else if (samples < 0) {
		printf("%zu rules, %d problems\n", set->count, p->count);
	} else {
		printf("%zu rules, %d samples, %d problems\n", set->count,
		    samples, p->count);
	}
}

static int
run_check(int what, const char *dir, bool json, struct err *err)
{
	struct printer p = { .json = json };
	struct rule_set *set = NULL;
	int samples = -1;

	if (rule_load(dir, problem, &p, &set, NULL, err) == -1)
		return -1;
	if (what == RULES_LINT)
		rule_lint(set, problem, &p);
	else
		rule_test(set, problem, &p, &samples);
	put_summary(set, &p, samples);
	rule_set_free(set);
	return p.count > 0 ? EXIT_NEGATIVE : EXIT_OK;
}

static int
run_rules(const struct verb *verb, int argc, char **argv)
{
	struct rules_opts o = {0};
	struct rule_set *set = NULL;
	struct err err = {0};
	struct filter want;
	const char *operand;
	int first, what, rc = -1;
	bool done;

	if (verb_begin_output(verb) == -1 ||
	    verb_parse(verb, &o, argc, argv, &first, &done) == -1)
		return EXIT_USAGE;
	if (done)
		return verb_end_output(verb, EXIT_OK);
	if ((what = verb_action(verb, argc, argv, first)) == -1)
		return EXIT_USAGE;
	operand = first + 1 < argc ? argv[first + 1] : NULL;
	want = (struct filter){ o.reason, o.layer };
	if (argc > first + 2 || (what == RULES_LIST && operand != NULL))
		err_set(&err, ERR_USAGE, "too many operands");
	else if (what != RULES_LIST && (o.reason != NULL || o.layer != NULL))
		err_set(&err, ERR_USAGE, "--reason and --layer are for list");
	else if (what == RULES_LINT || what == RULES_TEST)
		rc = run_check(what, operand ? operand : o.rules, o.json, &err);
	else if (rule_load(o.rules, warn_problem, NULL, &set, NULL, &err) == 0)
		rc = what == RULES_LIST ? run_list(set, &want, o.json, &err) :
		    run_show(set, operand, o.json, &err);
	rule_set_free(set);
	return rc == -1 ? verb_fail(verb, &err) : verb_end_output(verb, rc);
}

const struct verb verb_rules = {
	.name = "rules",
	.summary = "list, show and check the rules of the diagnosis",
	.operands = "[ID|DIR]",
	.actions = actions,
	.opts = rules_opts,
	.run = run_rules
};
