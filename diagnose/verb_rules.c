/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_rules.c - holdfast rules: lists, shows, lints and tests rules.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/text.h"
#include "common/verb.h"
#include "diagnose/rule_load.h"
#include "diagnose/verbs.h"

struct rules_opts {
	bool		 json;
	const char	*rules;
};

static const struct opt rules_opts[] = {
	{ .name = "json", .type = OPT_FLAG, .cli_only = true,
	  .offset = offsetof(struct rules_opts, json),
	  .help = "print JSON, one object per line" },
	{ .name = "rules", .type = OPT_TEXT, .arg = "DIR",
	  .offset = offsetof(struct rules_opts, rules),
	  .help = "list, show: also use the rules in DIR" },
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

static void
add_texts(cJSON *o, const char *key, const char *const *list)
{
	cJSON *a = cJSON_AddArrayToObject(o, key);

	for (; list != NULL && *list != NULL; list++) {
		cJSON *holder = cJSON_CreateObject();

		if (json_add_text(holder, "x", *list) == 0)
			cJSON_AddItemToArray(a,
			    cJSON_DetachItemFromObject(holder, "x"));
		cJSON_Delete(holder);
	}
}

static void
add_literals(cJSON *o, const struct scan_literal *l)
{
	const char *list[2] = { NULL, NULL };
	cJSON *a = cJSON_AddArrayToObject(o, "literals");

	for (; l != NULL && l->text != NULL; l++) {
		cJSON *holder = cJSON_CreateObject();

		list[0] = l->text;
		add_texts(holder, "x", list);
		cJSON_AddItemToArray(a, cJSON_DetachItemFromArray(
		    cJSON_GetObjectItemCaseSensitive(holder, "x"), 0));
		cJSON_Delete(holder);
	}
}

static const char *
action_of(const struct rule *r)
{
	if (r->def.action >= 0)
		return rule_action_name((enum action_kind)r->def.action);
	return r->reason ? rule_action_name(r->reason->action) : NULL;
}

static cJSON *
rule_json(const struct rule *r)
{
	cJSON *o = cJSON_CreateObject();

	json_add_text(o, "id", r->def.id);
	json_add_text(o, "reason", r->def.reason);
	json_add_text(o, "role", rule_role_name(r->def.role));
	json_add_text(o, "source", rule_source_name(r->def.source));
	json_add_text(o, "match", r->def.match);
	json_add_text(o, "unless", r->def.unless);
	json_add_text(o, "after", r->def.after);
	json_add_text(o, "action", action_of(r));
	json_add_int(o, "priority", r->def.priority);
	add_texts(o, "hides", r->def.hides);
	add_texts(o, "cancels", r->def.cancels);
	add_literals(o, r->def.literals);
	add_texts(o, "examples", r->def.examples);
	add_texts(o, "counterexamples", r->def.counterexamples);
	json_add_text(o, "file", r->def.file);
	json_add_int(o, "line", r->def.line);
	return o;
}

static void
put_row(const char *name, const char *text)
{
	if (text != NULL)
		printf("%-10s%s\n", name, text);
}

static void
put_rows(const char *name, const char *const *list)
{
	for (; list != NULL && *list != NULL; list++, name = "")
		printf("%-10s%s\n", name, *list);
}

static void
put_literals(const struct scan_literal *l)
{
	const char *name = "literals";

	for (; l != NULL && l->text != NULL; l++, name = "")
		printf("%-10s%s\n", name, l->text);
}

static void
show(const struct rule *r)
{
	printf("%s  (%s:%d)\n", r->def.id, r->def.file, r->def.line);
	put_row("reason", r->def.reason);
	put_row("means", r->reason ? r->reason->what : NULL);
	put_row("role", rule_role_name(r->def.role));
	put_row("source", rule_source_name(r->def.source));
	put_row("match", r->def.match);
	put_row("unless", r->def.unless);
	put_row("after", r->def.after);
	put_row("action", action_of(r));
	put_row("advice", r->def.advice ? r->def.advice :
	    r->reason ? r->reason->advice : NULL);
	put_rows("hides", r->def.hides);
	put_rows("cancels", r->def.cancels);
	put_literals(r->def.literals);
	put_rows("examples", r->def.examples);
}

static int
by_id(const void *a, const void *b)
{
	const struct rule *const *x = a, *const *y = b;

	return strcmp((*x)->def.id, (*y)->def.id);
}

static int
run_list(const struct rule_set *set, bool json)
{
	const struct rule **sorted = calloc(set->count + 1, sizeof(*sorted));
	size_t i;

	if (sorted == NULL)
		return EXIT_USAGE;
	for (i = 0; i < set->count; i++)
		sorted[i] = &set->rules[i];
	qsort(sorted, set->count, sizeof(*sorted), by_id);
	for (i = 0; i < set->count; i++) {
		const struct rule *r = sorted[i];

		if (json)
			put_json(rule_json(r));
		else
			printf("%-34s %-9s %-24s %s\n", r->def.id,
			    rule_role_name(r->def.role),
			    r->def.reason ? r->def.reason : "-",
			    action_of(r) ? action_of(r) : "-");
	}
	free(sorted);
	return EXIT_OK;
}

static int
run_show(const struct rule_set *set, const char *id, bool json)
{
	int at = id ? rule_set_find(set, id) : -1;
	struct text_nearest near = {0};
	size_t i;

	if (id == NULL) {
		fprintf(stderr, "holdfast rules show: which rule? "
		    "(holdfast rules list)\n");
		return EXIT_USAGE;
	}
	if (at == -1) {
		for (i = 0; i < set->count; i++)
			text_nearest_try(&near, id, set->rules[i].def.id);
		fprintf(stderr, "holdfast rules: no rule '%s'%s%s%s\n", id,
		    near.best ? ", did you mean '" : "",
		    near.best ? near.best : "", near.best ? "'?" : "");
		return EXIT_USAGE;
	}
	if (json)
		put_json(rule_json(&set->rules[at]));
	else
		show(&set->rules[at]);
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
run_check(const struct verb *verb, int what, const char *dir, bool json)
{
	struct printer p = { .json = json };
	struct rule_set *set = NULL;
	struct err err = {0};
	int samples = -1;

	if (rule_load(dir, problem, &p, &set, NULL, &err) == -1)
		return verb_fail(verb, &err);
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
	const char *operand;
	int first, what, rc;
	bool done;

	if (verb_parse(verb, &o, argc, argv, &first, &done) == -1)
		return EXIT_USAGE;
	if (done)
		return EXIT_OK;
	if ((what = verb_action(verb, argc, argv, first)) == -1)
		return EXIT_USAGE;
	operand = first + 1 < argc ? argv[first + 1] : NULL;
	if (argc > first + 2 || (what == RULES_LIST && operand != NULL)) {
		err_set(&err, ERR_USAGE, "too many operands");
		return verb_fail(verb, &err);
	}
	if (what == RULES_LINT || what == RULES_TEST)
		return run_check(verb, what, operand ? operand : o.rules, o.json);
	if (rule_load(o.rules, warn_problem, NULL, &set, NULL, &err) == -1)
		return verb_fail(verb, &err);
	rc = what == RULES_LIST ? run_list(set, o.json) :
	    run_show(set, operand, o.json);
	rule_set_free(set);
	return rc;
}

const struct verb verb_rules = {
	.name = "rules",
	.summary = "list, show and check the rules of the diagnosis",
	.operands = "[ID|DIR]",
	.actions = actions,
	.opts = rules_opts,
	.run = run_rules
};
