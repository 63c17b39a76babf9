/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict.c - the verdict as JSON.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "diagnose/findings.h"
#include "diagnose/verdict.h"

static const char *const status_names[] = {
	"diagnosed", "symptom_only", "no_error", "undetermined"
};

const char *
verdict_status_name(enum verdict_status s)
{
	return status_names[s];
}

void
verdict_fini(struct verdict *v)
{
	size_t i;

	free(v->category);
	free(v->reason);
	free(v->what);
	free(v->advice);
	free(v->action_node);
	free(v->root.rule);
	free(v->root.file);
	free(v->root.text);
	free(v->root.node);
	free(v->root.gpu);
	free(v->root.nic);
	free(v->root.path);
	for (i = 0; i < v->symptom_count; i++) {
		free(v->symptoms[i].reason);
		free(v->symptoms[i].rule);
		free(v->symptoms[i].file);
	}
	for (i = 0; i < v->echo_count; i++)
		free(v->echoes[i].reason);
	for (i = 0; i < v->suspect_count; i++) {
		free(v->suspects[i].node);
		free(v->suspects[i].why);
	}
	for (i = 0; i < v->alternative_count; i++)
		free(v->alternatives[i].reason);
	for (i = 0; i < v->missing_count; i++)
		free(v->missing[i]);
	free(v->missing);
	memset(v, 0, sizeof(*v));
}

/* Two decimals, so that the same input prints the same digits everywhere. */
static void
add_share(cJSON *o, const char *key, double x)
{
	cJSON_AddNumberToObject(o, key, round(x * 100) / 100);
}

static void
add_count(cJSON *o, const char *key, int64_t n)
{
	json_add_int(o, key, n < 0 ? JSON_UNKNOWN : n);
}

static void
add_root(cJSON *o, const struct verdict *v)
{
	const struct verdict_root *r = &v->root;
	cJSON *root;

	if (!v->has_root) {
		cJSON_AddNullToObject(o, "root");
		return;
	}
	root = cJSON_AddObjectToObject(o, "root");
	json_add_text(root, "rule", r->rule);
	json_add_text(root, "file", r->file);
	add_count(root, "line", r->line);
	json_add_bytes(root, "text", r->text ? r->text : "", r->text_len);
	add_count(root, "rank", r->rank);
	json_add_text(root, "node", r->node);
	json_add_text(root, "gpu", r->gpu);
	json_add_text(root, "nic", r->nic);
	json_add_text(root, "path", r->path);
	add_count(root, "pid", r->pid);
}

static void
add_lists(cJSON *o, const struct verdict *v)
{
	cJSON *list, *item;
	size_t i;

	list = cJSON_AddArrayToObject(o, "symptoms");
	for (i = 0; i < v->symptom_count; i++) {
		item = cJSON_CreateObject();
		json_add_text(item, "reason", v->symptoms[i].reason);
		json_add_text(item, "rule", v->symptoms[i].rule);
		json_add_text(item, "file", v->symptoms[i].file);
		add_count(item, "line", v->symptoms[i].line);
		add_count(item, "count", (int64_t)v->symptoms[i].count);
		add_count(item, "ranks", v->symptoms[i].ranks > 0 ?
		    (int64_t)v->symptoms[i].ranks : -1);
		cJSON_AddItemToArray(list, item);
	}
	list = cJSON_AddArrayToObject(o, "suspects");
	for (i = 0; i < v->suspect_count; i++) {
		item = cJSON_CreateObject();
		json_add_text(item, "node", v->suspects[i].node);
		add_count(item, "rank", v->suspects[i].rank);
		json_add_text(item, "why", v->suspects[i].why);
		cJSON_AddItemToArray(list, item);
	}
	list = cJSON_AddArrayToObject(o, "alternatives");
	for (i = 0; i < v->alternative_count; i++) {
		item = cJSON_CreateObject();
		json_add_text(item, "reason", v->alternatives[i].reason);
		add_share(item, "confidence", v->alternatives[i].confidence);
		cJSON_AddItemToArray(list, item);
	}
}

static void
add_inputs(cJSON *o, const struct verdict *v)
{
	cJSON *in = cJSON_AddObjectToObject(o, "inputs");

	add_count(in, "files", (int64_t)v->files);
	add_count(in, "bytes", (int64_t)v->bytes);
	add_count(in, "lines", (int64_t)v->lines);
}

static cJSON *
make_finding(const struct finding *f)
{
	cJSON *o = cJSON_CreateObject();
	char when[CLOCK_TEXT_MAX];

	if (f->time_ns != LINE_NO_TIME)
		clock_format(f->time_ns, when);
	json_add_text(o, "role", finding_role_name(f->role));
	json_add_text(o, "time", f->time_ns != LINE_NO_TIME ? when : NULL);
	json_add_text(o, "file", f->file);
	add_count(o, "line", f->line);
	add_count(o, "rank", f->rank);
	json_add_text(o, "node", f->node[0] ? f->node : NULL);
	json_add_text(o, "gpu", f->gpu[0] ? f->gpu : NULL);
	json_add_text(o, "rule", f->rule ? f->rule->def.id : NULL);
	json_add_text(o, "reason", f->reason ? f->reason->name : NULL);
	json_add_bytes(o, "text", f->text, f->text_len);
	add_count(o, "count", (int64_t)f->count);
	return o;
}

char *
verdict_finding_json(const struct finding *f)
{
	cJSON *o = make_finding(f);
	char *text = NULL;

	if (o != NULL && json_add_text(o, "schema", "holdfast.finding/1") == 0)
		text = json_line(o);
	cJSON_Delete(o);
	return text;
}

static void
add_findings(cJSON *o, const struct findings *f)
{
	cJSON *list = cJSON_AddArrayToObject(o, "findings"), *item;
	size_t i;

	for (i = 0; i < f->count; i++)
		if ((item = make_finding(&f->list[i])) != NULL)
			cJSON_AddItemToArray(list, item);
	add_count(o, "findings_unlisted", (int64_t)f->unlisted);
}

char *
verdict_json(const struct verdict *v)
{
	return verdict_json_all(v, NULL);
}

char *
verdict_json_all(const struct verdict *v, const struct findings *findings)
{
	cJSON *o = cJSON_CreateObject(), *action, *list;
	char *text;
	size_t i;

	if (o == NULL)
		return NULL;
	json_add_text(o, "schema", "holdfast.verdict/1");
	json_add_text(o, "status", verdict_status_name(v->status));
	json_add_text(o, "category", v->category);
	json_add_text(o, "reason", v->reason);
	add_share(o, "confidence", v->confidence);
	json_add_text(o, "source", "rules");
	action = cJSON_AddObjectToObject(o, "action");
	json_add_text(action, "kind", rule_action_name(v->action));
	list = cJSON_AddArrayToObject(action, "nodes");
	if (v->action_node != NULL)
		json_add_item(list, v->action_node);
	add_root(o, v);
	add_lists(o, v);
	json_add_text(o, "stage", v->stage);
	add_count(o, "step", v->step);
	json_add_text(o, "fingerprint", v->fingerprint[0] ? v->fingerprint : NULL);
	json_add_text(o, "advice", v->advice);
	list = cJSON_AddArrayToObject(o, "missing_evidence");
	for (i = 0; i < v->missing_count; i++)
		json_add_item(list, v->missing[i]);
	add_inputs(o, v);
	if (findings != NULL)
		add_findings(o, findings);
	text = json_line(o);
	cJSON_Delete(o);
	return text;
}
