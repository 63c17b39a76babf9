/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - fills the verdict: where the cause stands, what it hid, what else it
 * could be, how far the job had come, and what to do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/confidence.h"
#include "diagnose/entity.h"
#include "diagnose/fingerprint.h"
#include "diagnose/nccl_log.h"
#include "diagnose/report.h"
#include "diagnose/suspects.h"

#define TEXT_MAX	600	/* of the quoted line */

static char *
copy(const char *text, size_t len)
{
	char *p = malloc(len + 1);

	if (p != NULL) {
		memcpy(p, text, len);
		p[len] = '\0';
	}
	return p;
}

/* A reason that begins with one of the words. */
static bool
is_about(const char *reason, const char *words)
{
	size_t n = strcspn(reason, "_");
	const char *at = words;

	while ((at = strchr(at, reason[0])) != NULL) {
		if ((at == words || at[-1] == ' ') &&
		    strncmp(at, reason, n + 1) == 0)
			return true;
		at++;
	}
	return false;
}

static char *
copy_or_null(const char *text)
{
	return text != NULL && *text != '\0' ? copy(text, strlen(text)) : NULL;
}

/* What the rule captured, else what the line names where it matters. */
static void
fill_entities(struct verdict *v, const struct case_file *c,
    const struct event *e)
{
	const char *text = c->feed->streams[e->stream].data + e->start;
	size_t len = e->len;
	char gpu[EVENT_GPU_MAX], nic[EVENT_NIC_MAX], path[EVENT_PATH_MAX];

	entity_gpu(text, len, gpu, sizeof(gpu));
	entity_nic(text, len, nic, sizeof(nic));
	entity_path(text, len, path, sizeof(path));
	if (!is_about(v->reason, "gpu_ nvlink_ pcie_ cuda_ cublas_ cudnn_ driver_"))
		gpu[0] = '\0';
	if (!is_about(v->reason, "network_ nccl_ rendezvous_ pcie_ node_"))
		nic[0] = '\0';
	if (!is_about(v->reason, "file_ permission_ storage_ checkpoint_ model_ "
	    "dataset_ os_ shm_ import_ fd_ called_"))
		path[0] = '\0';
	v->root.gpu = copy_or_null(*e->gpu ? e->gpu : gpu);
	v->root.nic = copy_or_null(*e->nic ? e->nic : nic);
	v->root.path = copy_or_null(*e->path ? e->path : path);
	v->root.pid = e->pid > 0 ? e->pid : entity_pid(text, len);
	if (v->root.rank == -1 && e->rule->def.source == SOURCE_KERNEL &&
	    v->root.gpu != NULL)
		v->root.rank = nccl_rank_of_gpu(c, e->node, v->root.gpu);
}

static void
fill_root(struct verdict *v, const struct case_file *c,
    const struct cause *w)
{
	struct stream *s = &c->feed->streams[w->event.stream];
	size_t len = w->event.len > TEXT_MAX ? TEXT_MAX : w->event.len;
	char text[TEXT_MAX];

	v->has_root = true;
	v->root.rule = w->exit ? NULL : copy_or_null(w->event.rule->def.id);
	v->root.file = copy_or_null(s->name);
	v->root.line = (int64_t)stream_line(s, w->event.start);
	v->root.text_len = line_strip_ansi(s->data + w->event.start, len, text);
	v->root.text = copy(text, v->root.text_len);
	v->root.rank = w->event.rank;
	v->root.node = copy_or_null(w->event.node);
	fill_entities(v, c, &w->event);
}

static bool
listed(const struct verdict *v, const char *reason, const char *rule)
{
	size_t i;

	for (i = 0; i < v->symptom_count; i++)
		if (strcmp(v->symptoms[i].reason, reason) == 0 &&
		    strcmp(v->symptoms[i].rule, rule) == 0)
			return true;
	return false;
}

static void
fill_symptoms(struct verdict *v, const struct case_file *c,
    const struct cause *w)
{
	size_t i;

	for (i = 0; i < c->count && v->symptom_count < VERDICT_SYMPTOMS; i++) {
		const struct cause *a = &c->causes[i];
		struct stream *s = &c->feed->streams[a->event.stream];
		const char *id = a->event.rule->def.id;
		struct verdict_symptom *y;

		if (a == w || a->exit || strcmp(a->reason->name,
		    w->reason->name) == 0 || listed(v, a->reason->name, id))
			continue;
		y = &v->symptoms[v->symptom_count++];
		y->reason = copy_or_null(a->reason->name);
		y->rule = copy_or_null(id);
		y->file = copy_or_null(s->name);
		y->line = (int64_t)stream_line(s, a->event.start);
		y->count = 1;
		if (a->event.rule >= c->set->rules &&
		    a->event.rule < c->set->rules + c->set->count)
			y->count = c->events.matched[a->event.rule -
			    c->set->rules];
	}
}

static void
fill_alternatives(struct verdict *v, const struct case_file *c,
    const struct cause *w)
{
	size_t i, k;

	for (i = 0; i < c->count; i++) {
		const struct cause *a = &c->causes[i];
		struct verdict_alternative *alt;

		if (a == w || a->echo || a->rank_class >= CLASS_SYMPTOM ||
		    strcmp(a->reason->name, w->reason->name) == 0)
			continue;
		for (k = 0; k < v->alternative_count; k++)
			if (strcmp(v->alternatives[k].reason,
			    a->reason->name) == 0)
				break;
		if (k < v->alternative_count || k == VERDICT_ALTERNATIVES)
			continue;
		alt = &v->alternatives[v->alternative_count++];
		alt->reason = copy_or_null(a->reason->name);
		alt->confidence = a->late ? 0.05 :
		    a->rank_class == w->rank_class ? 0.2 : 0.1;
	}
}

/* Where an error of NCCL comes from that says no more than that there is one. */
static void
add_origin(struct verdict *v, const struct case_file *c, const struct cause *w)
{
	const struct reason *r;
	struct nccl_origin o;
	const char *name;

	if (w->exit || w->rank_class < CLASS_SYMPTOM ||
	    strncmp(w->reason->name, "nccl_", 5) != 0 ||
	    strcmp(w->reason->name, "nccl_timeout") == 0 ||
	    v->alternative_count == VERDICT_ALTERNATIVES ||
	    !nccl_find_origin(&c->feed->streams[w->event.stream],
	    w->event.start, &o))
		return;
	name = nccl_reason_of_file(o.file);
	r = name ? rule_set_reason(c->set, name) : NULL;
	if (r == NULL || r == w->reason)
		return;
	v->alternatives[v->alternative_count].reason = copy_or_null(name);
	v->alternatives[v->alternative_count++].confidence = 0.3;
}

static void
fill_stage(struct verdict *v, const struct case_file *c,
    const struct cause *w)
{
	int64_t step = -1;
	size_t i;
	bool trained = false;

	for (i = 0; i < c->feed->count; i++) {
		if (c->facts[i].progress == SIZE_MAX)
			continue;
		trained = true;
		if (c->facts[i].step > step)
			step = c->facts[i].step;
	}
	v->step = w != NULL && w->event.step >= 0 ? w->event.step : step;
	if (w != NULL && w->block.saving)
		v->stage = "checkpoint";
	else if (w != NULL && w->block.loading && !trained)
		v->stage = "load";
	else
		v->stage = trained ? "training" : w != NULL ? "startup" : NULL;
}

static void
set_reason(struct verdict *v, const struct reason *r, const char *name,
    const char *category)
{
	v->reason = copy_or_null(r ? r->name : name);
	v->category = copy_or_null(r ? r->category : category);
	v->what = copy_or_null(r ? r->what : NULL);
	v->advice = copy_or_null(r ? r->advice : NULL);
	v->action = r ? r->action : ACTION_NONE;
}

void
report_fill(struct verdict *v, const struct case_file *c,
    const struct cause *w)
{
	const struct rule_def *d;

	if (w == NULL) {
		v->status = c->unknown_exception ? VERDICT_UNDETERMINED :
		    VERDICT_NO_ERROR;
		if (v->status == VERDICT_NO_ERROR)
			set_reason(v, rule_set_reason(c->set, "none"), "none",
			    "meta");
		else
			set_reason(v, rule_set_reason(c->set, "unknown"),
			    "unknown", "meta");
		v->confidence = v->status == VERDICT_NO_ERROR ?
		    confidence_of_none(c) : 0.1;
		fill_stage(v, c, NULL);
		return;
	}
	d = &w->event.rule->def;
	v->status = w->rank_class >= CLASS_SYMPTOM ||
	    strcmp(w->reason->name, "process_killed") == 0 ?
	    VERDICT_SYMPTOM_ONLY : VERDICT_DIAGNOSED;
	if (strcmp(w->reason->name, "unknown") == 0)
		v->status = VERDICT_UNDETERMINED;
	set_reason(v, w->reason, NULL, NULL);
	if (!w->exit && d->action >= 0)
		v->action = (enum action_kind)d->action;
	if (!w->exit && d->advice != NULL) {
		free(v->advice);
		v->advice = copy_or_null(d->advice);
	}
	fill_root(v, c, w);
	fill_symptoms(v, c, w);
	fill_alternatives(v, c, w);
	add_origin(v, c, w);
	suspects_find(v, c, w);
	fill_stage(v, c, w);
	fingerprint_make(c, w, v->fingerprint);
	v->confidence = confidence_of(c, w, v);
}

