/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history.c - folds journal records into the state decisions are made from.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/verb.h"
#include "supervisor/history.h"

void
history_init(struct history *h)
{
	*h = (struct history){0};
	h->resume_step = h->furthest_step = JSON_UNKNOWN;
	h->sign.step = JSON_UNKNOWN;
}

/* Times are texts in nanoseconds: a double cannot hold them exactly. */
static int64_t
read_ns(const cJSON *r, const char *key)
{
	const char *text = json_str(r, key, NULL);

	return text ? strtoll(text, NULL, 10) : 0;
}

static void
apply_campaign(struct history *h, const cJSON *r)
{
	struct history fresh;

	history_init(&fresh);
	fresh.seq = h->seq;
	fresh.generation = h->generation;
	fresh.attempt = h->attempt;
	fresh.incidents = h->incidents;
	fresh.campaign = (int)json_int(r, "campaign", h->campaign + 1);
	memcpy(fresh.instance, h->instance, sizeof(fresh.instance));
	fresh.event_seq = h->event_seq;
	memcpy(fresh.last_agent, h->last_agent, sizeof(fresh.last_agent));
	*h = fresh;
}

static void
apply_attempt(struct history *h, const cJSON *r)
{
	const cJSON *resume = cJSON_GetObjectItem(r, "resume");

	h->attempt = (int)json_int(r, "attempt", h->attempt);
	h->phase = ATTEMPT_ORDERED;
	h->started_ns = read_ns(r, "time_ns");
	h->resume_step = json_int(resume, "step", JSON_UNKNOWN);
	h->sign = (struct sign){ .step = JSON_UNKNOWN, .rank = -1 };
	h->exits_ok = h->exits_failed = 0;
	h->pid_count = 0;
}

static void
apply_ranks(struct history *h, const cJSON *r)
{
	const cJSON *pid;

	h->phase = ATTEMPT_RUNNING;
	h->pid_count = 0;
	cJSON_ArrayForEach(pid, cJSON_GetObjectItem(r, "pids"))
		if (h->pid_count < HISTORY_PIDS_MAX && cJSON_IsNumber(pid))
			h->pids[h->pid_count++] = (int32_t)pid->valuedouble;
}

static void
apply_exit(struct history *h, const cJSON *r)
{
	int64_t index = json_int(r, "index", -1);
	struct sign *s = &h->sign;

	if (index >= 0 && index < h->pid_count)
		h->pids[index] = 0;
	if (strcmp(json_str(r, "kind", ""), "exited") == 0 &&
	    json_int(r, "status", 1) == 0) {
		h->exits_ok++;
		return;
	}
	if (h->exits_failed++ > 0 || s->kind != SIGN_NONE)
		return;
	s->kind = SIGN_EXIT;
	s->rank = (int)json_int(r, "rank", -1);
	s->pid = (pid_t)json_int(r, "pid", 0);
	s->signaled = strcmp(json_str(r, "kind", ""), "exited") != 0;
	s->status = (int)json_int(r, "status", 0);
}

static void
apply_incident(struct history *h, const cJSON *r)
{
	h->incidents = (int)json_int(r, "incident", h->incidents);
	if (h->phase != ATTEMPT_GONE)
		h->phase = ATTEMPT_ENDING;
	h->sign.kind = sign_kind_find(json_str(r, "sign", ""));
	h->sign.rank = (int)json_int(r, "rank", -1);
	h->sign.step = json_int(r, "step", JSON_UNKNOWN);
	snprintf(h->sign.text, sizeof(h->sign.text), "%s",
	    json_str(r, "text", ""));
}

static struct ledger_entry *
ledger_slot(struct history *h, const char *fingerprint)
{
	struct ledger_entry *e;
	int i;

	for (i = 0; i < h->ledger_count; i++)
		if (strcmp(h->ledger[i].fingerprint, fingerprint) == 0)
			return &h->ledger[i];
	/* A full ledger forgets its oldest kind. */
	if (h->ledger_count == HISTORY_LEDGER_MAX) {
		memmove(h->ledger, h->ledger + 1,
		    (HISTORY_LEDGER_MAX - 1) * sizeof(h->ledger[0]));
		h->ledger_count--;
	}
	e = &h->ledger[h->ledger_count++];
	*e = (struct ledger_entry){ .checkpoint_step = JSON_UNKNOWN,
	    .furthest_step = JSON_UNKNOWN };
	snprintf(e->fingerprint, sizeof(e->fingerprint), "%s", fingerprint);
	return e;
}

static void
apply_decision(struct history *h, const cJSON *r)
{
	const char *fingerprint = json_str(r, "fingerprint", NULL);
	const char *kind = json_str(r, "kind", "stop");
	int64_t step = json_int(r, "step", JSON_UNKNOWN);
	struct ledger_entry *e;

	if (fingerprint != NULL) {
		e = ledger_slot(h, fingerprint);
		e->count = (int)json_int(r, "count", e->count + 1);
		e->checkpoint_step = json_int(r, "checkpoint_step",
		    JSON_UNKNOWN);
		e->furthest_step = step;
		snprintf(e->reason, sizeof(e->reason), "%s",
		    json_str(r, "reason", ""));
	}
	if (step != JSON_UNKNOWN && (h->furthest_step == JSON_UNKNOWN ||
	    step > h->furthest_step)) {
		h->furthest_step = step;
		h->no_progress = 0;
	} else if (!json_bool(r, "free", false)) {
		h->no_progress++;
	}
	h->decision = (struct decision){ .budget_left = json_int(r,
	    "budget_left", 0), .before_step = json_int(r, "before_step",
	    JSON_UNKNOWN), .delay_ms = json_int(r, "delay_ms", 0) };
	h->decision.is_free = json_bool(r, "free", false);
	snprintf(h->decision.why, sizeof(h->decision.why), "%s",
	    json_str(r, "why", ""));
	if (strcmp(kind, "restart") != 0) {
		h->decision.kind = DECISION_STOP;
		return;
	}
	h->phase = ATTEMPT_DECIDED;
	if (h->decision.is_free) {
		h->free_retries++;
		return;
	}
	h->free_retries = 0;
	h->restarts_ns[h->restarts++ % HISTORY_RESTARTS_MAX] =
	    read_ns(r, "time_ns");
}

static void
apply_end(struct history *h, const cJSON *r)
{
	h->end_code = (int)json_int(r, "code", 1);
	h->ended = true;
	h->phase = ATTEMPT_NONE;
}

void
history_apply(struct history *h, const cJSON *r)
{
	const char *type = json_str(r, "type", "");
	const char *instance = json_str(r, "instance", NULL);

	h->seq = json_int(r, "seq", h->seq);
	if (instance != NULL) {
		snprintf(h->instance, sizeof(h->instance), "%s", instance);
		h->event_seq = json_int(r, "event_seq", h->event_seq);
	}
	if (strcmp(type, "campaign") == 0) {
		apply_campaign(h, r);
	} else if (strcmp(type, "supervisor") == 0) {
		h->generation = json_int(r, "generation", h->generation + 1);
		/* A requeued run goes on where it was: budgets and counts stay. */
		if (h->ended && h->end_code == EXIT_REQUEUE)
			h->ended = h->stop_asked = false;
	} else if (strcmp(type, "agent") == 0) {
		snprintf(h->last_agent, sizeof(h->last_agent), "%s",
		    json_str(r, "agent", ""));
	} else if (strcmp(type, "attempt") == 0) {
		apply_attempt(h, r);
	} else if (strcmp(type, "ranks") == 0) {
		apply_ranks(h, r);
	} else if (strcmp(type, "exit") == 0) {
		apply_exit(h, r);
	} else if (strcmp(type, "incident") == 0) {
		apply_incident(h, r);
	} else if (strcmp(type, "gone") == 0) {
		h->phase = ATTEMPT_GONE;
	} else if (strcmp(type, "decision") == 0) {
		apply_decision(h, r);
	} else if (strcmp(type, "stop") == 0) {
		h->stop_asked = true;
		h->stop_signal = (int)json_int(r, "signal", 0);
	} else if (strcmp(type, "end") == 0) {
		apply_end(h, r);
	}
}

const struct ledger_entry *
history_find(const struct history *h, const char *fingerprint)
{
	int i;

	for (i = 0; i < h->ledger_count; i++)
		if (strcmp(h->ledger[i].fingerprint, fingerprint) == 0)
			return &h->ledger[i];
	return NULL;
}

int
history_restarts_since(const struct history *h, int64_t wall_ns)
{
	int i, n = 0, kept = h->restarts < HISTORY_RESTARTS_MAX ? h->restarts :
	    HISTORY_RESTARTS_MAX;

	for (i = 0; i < kept; i++)
		if (h->restarts_ns[i] >= wall_ns)
			n++;
	return n;
}
