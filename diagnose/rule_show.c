/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rule_show.c - prints all there is to know of one rule.
 */
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "diagnose/quote.h"
#include "diagnose/rule_show.h"

#define MARGIN	10	/* "| name    " */
#define WITHIN_DEFAULT	20

void
rule_layer(const struct rule *r, char out[RULE_LAYER_MAX])
{
	const char *base = strrchr(r->def.file, '/');
	size_t n;

	base = base != NULL ? base + 1 : r->def.file;
	n = strlen(base);
	if (n > 5 && strcmp(base + n - 5, ".yaml") == 0)
		n -= 5;
	snprintf(out, RULE_LAYER_MAX, "%.*s", (int)n, base);
}

enum action_kind
rule_action(const struct rule *r)
{
	if (r->def.action >= 0)
		return (enum action_kind)r->def.action;
	return r->reason != NULL ? r->reason->action : ACTION_NONE;
}

int
rule_within(const struct rule *r)
{
	return r->def.within > 0 ? r->def.within : WITHIN_DEFAULT;
}

struct rule *
rule_named(const struct rule_set *set, const char *id, struct err *err)
{
	struct text_nearest near = {0};
	int at = rule_set_find(set, id);
	size_t i;

	if (at >= 0)
		return &set->rules[at];
	for (i = 0; i < set->count; i++)
		text_nearest_try(&near, id, set->rules[i].def.id);
	err_set(err, ERR_USAGE, "no rule '%.100s'%s%s%s", id,
	    near.best ? ", did you mean '" : "", near.best ? near.best : "",
	    near.best ? "'?" : " (holdfast rules list)");
	return NULL;
}

static void
add_items(cJSON *o, const char *key, const char *const *texts)
{
	cJSON *list = cJSON_AddArrayToObject(o, key);

	for (; texts != NULL && *texts != NULL; texts++)
		json_add_item(list, *texts);
}

static void
add_literals(cJSON *o, const struct scan_literal *l)
{
	cJSON *list = cJSON_AddArrayToObject(o, "literals");

	for (; l != NULL && l->text != NULL; l++)
		json_add_item(list, l->text);
}

void
rule_show_json(const struct rule *r, cJSON *o)
{
	const struct rule_def *d = &r->def;
	char layer[RULE_LAYER_MAX];

	rule_layer(r, layer);
	json_add_text(o, "id", d->id);
	json_add_text(o, "reason", d->reason);
	json_add_text(o, "category", r->reason ? r->reason->category : NULL);
	json_add_text(o, "what", r->reason ? r->reason->what : NULL);
	json_add_text(o, "role", rule_role_name(d->role));
	json_add_text(o, "source", rule_source_name(d->source));
	json_add_text(o, "match", d->match);
	json_add_text(o, "unless", d->unless);
	json_add_text(o, "after", d->after);
	json_add_int(o, "within", d->after ? rule_within(r) : JSON_UNKNOWN);
	json_add_text(o, "action", r->reason || d->action >= 0 ?
	    rule_action_name(rule_action(r)) : NULL);
	json_add_text(o, "advice", d->advice ? d->advice :
	    r->reason ? r->reason->advice : NULL);
	json_add_int(o, "priority", d->priority);
	add_items(o, "hides", d->hides);
	add_items(o, "cancels", d->cancels);
	add_literals(o, d->literals);
	add_items(o, "examples", d->examples);
	add_items(o, "counterexamples", d->counterexamples);
	json_add_text(o, "layer", layer);
	json_add_text(o, "file", d->file);
	json_add_int(o, "line", d->line);
}

struct output {
	const struct card_style *style;
	FILE	*f;
};

static void
put_name(const struct output *o, const char *name)
{
	bool colour = o->style->colour && *name != '\0';

	fprintf(o->f, "| %s%-8s%s", colour ? "\033[2m" : "", name,
	    colour ? "\033[0m" : "");
}

/* A sentence, at words; "" as name for what belongs to the row before. */
static void
put_text(const struct output *o, const char *name, const char *text)
{
	size_t room = (size_t)o->style->columns - MARGIN, at, n;
	struct buf b = {0};

	if (text == NULL)
		return;
	quote_clean(text, strlen(text), NULL, &b);
	for (at = 0; at < b.len; at += n, name = "") {
		for (; b.data[at] == ' '; at++)
			;
		n = quote_row(b.data + at, b.len - at, room);
		put_name(o, name);
		fprintf(o->f, "%.*s\n", (int)n, b.data + at);
	}
	buf_fini(&b);
}

/* As it is written: a pattern or a line of a log. */
static void
put_exact(const struct output *o, const char *name, const char *text)
{
	struct buf b = {0};
	const char *nl;
	size_t n;

	for (; text != NULL && *text != '\0'; text += n, name = "") {
		nl = strchr(text, '\n');
		n = nl != NULL ? (size_t)(nl + 1 - text) : strlen(text);
		buf_clear(&b);
		quote_clean(text, n, NULL, &b);
		put_name(o, name);
		fprintf(o->f, "%s\n", b.data ? b.data : "");
	}
	buf_fini(&b);
}

static void
put_list(const struct output *o, const char *name, const char *const *list)
{
	struct buf b = {0};

	for (; list != NULL && *list != NULL; list++)
		buf_printf(&b, "%s%s", b.len > 0 ? ", " : "", *list);
	put_text(o, name, b.data);
	buf_fini(&b);
}

static void
put_samples(const struct output *o, const char *name, const char *const *list)
{
	for (; list != NULL && *list != NULL; list++, name = "")
		put_exact(o, name, *list);
}

static void
put_literals(const struct output *o, const char *name,
    const struct scan_literal *l)
{
	for (; l != NULL && l->text != NULL; l++, name = "")
		put_exact(o, name, l->text);
}

static void
put_action(const struct output *o, const struct rule *r)
{
	enum action_kind kind = rule_action(r);
	char words[CARD_ACTION_MAX], text[CARD_ACTION_MAX + 40];

	if (r->reason == NULL && r->def.action < 0)
		return;
	card_action(kind, NULL, words);
	snprintf(text, sizeof(text), "%s: %s", rule_action_name(kind),
	    kind == ACTION_RESTART_EXCLUDING_NODE ?
	    "restart, leave out the node of the line" : words);
	put_text(o, "action", text);
}

static const char *
role_meaning(enum rule_role role)
{
	static const char *const means[] = {
		[ROLE_ROOT] = "can be the cause",
		[ROLE_EITHER] = "cause or echo, the order of events decides",
		[ROLE_SYMPTOM] = "an echo, reported when nothing better is there",
		[ROLE_TEARDOWN] = "the job is being ended, what follows is aftermath",
		[ROLE_CONFIRM] =
		    "a record of a cause, counts also after the job was ended",
		[ROLE_CONTEXT] = "no cause, other rules refer to it",
		[ROLE_BENIGN] = "looks bad and is not, no other rule counts there"
	};

	return means[role];
}

void
rule_show(const struct rule *r, const struct card_style *style, FILE *f)
{
	const struct output o = { style, f };
	const struct rule_def *d = &r->def;
	char text[200];

	if (d->line > 0)
		snprintf(text, sizeof(text), " rule %.60s - %.100s:%d ", d->id,
		    d->file, d->line);
	else
		snprintf(text, sizeof(text), " rule %.60s - %.100s ", d->id, d->file);
	card_put_rule(text, "\033[1m", style, f);
	if (r->reason != NULL) {
		snprintf(text, sizeof(text), "%s, %s", r->reason->name,
		    r->reason->category);
		put_text(&o, "reason", text);
		put_text(&o, "means", r->reason->what);
	}
	snprintf(text, sizeof(text), "%s: %s", rule_role_name(d->role),
	    role_meaning(d->role));
	put_text(&o, "role", text);
	put_text(&o, "source", rule_source_name(d->source));
	put_exact(&o, "match", d->match);
	put_exact(&o, "unless", d->unless);
	if (d->after != NULL) {
		snprintf(text, sizeof(text), "%.100s, within %d lines", d->after,
		    rule_within(r));
		put_text(&o, "after", text);
	}
	if (d->priority != 0) {
		snprintf(text, sizeof(text), "%d", d->priority);
		put_text(&o, "priority", text);
	}
	put_list(&o, "hides", d->hides);
	put_list(&o, "cancels", d->cancels);
	put_action(&o, r);
	put_text(&o, "advice", d->advice ? d->advice :
	    r->reason ? r->reason->advice : NULL);
	put_literals(&o, "literal", d->literals);
	put_samples(&o, "sample", d->examples);
	put_samples(&o, "not", d->counterexamples);
	card_put_rule("", NULL, style, f);
}
