/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restart_sim.c - a run without processes, for the tests of the decision.
 */
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "restart_sim.h"
#include "unit.h"

void
sim_init(struct sim *s)
{
	cJSON *r = cJSON_CreateObject();

	memset(s, 0, sizeof(*s));
	history_init(&s->h);
	json_add_text(r, "type", "campaign");
	history_apply(&s->h, r);
	cJSON_Delete(r);
	s->policy = (struct restart_policy){ 10, 0, 5000 };
	s->facts.now_ns = 1700000000 * NS_PER_S;
	s->facts.uptime_ms = 3600000;
}

void
sim_sign(struct sim *s, int64_t step, enum selection_result result,
    int64_t checkpoint)
{
	s->in.sign = (struct sign){ .kind = SIGN_EXIT, .step = step };
	s->in.selection.result = result;
	s->in.selection.step = checkpoint;
	s->in.selection.skipped = 0;
}

void
sim_verdict(struct sim *s, const char *category, const char *reason,
    const char *action, const char *fingerprint)
{
	struct verdict *v = &s->in.verdict;

	*v = (struct verdict){ .step = UNKNOWN };
	snprintf(v->status, sizeof(v->status), "diagnosed");
	snprintf(v->category, sizeof(v->category), "%s", category);
	snprintf(v->reason, sizeof(v->reason), "%s", reason);
	snprintf(v->action, sizeof(v->action), "%s", action);
	snprintf(v->fingerprint, sizeof(v->fingerprint), "%s", fingerprint);
}

const struct decision *
sim_decide(struct sim *s)
{
	const struct decision *d = &s->in.decision;
	char ns[24];
	cJSON *r;

	restart_decide(&s->h, &s->policy, &s->facts, &s->in, &s->count);
	r = cJSON_CreateObject();
	snprintf(ns, sizeof(ns), "%lld", (long long)s->facts.now_ns);
	json_add_text(r, "type", "decision");
	json_add_text(r, "time_ns", ns);
	json_add_text(r, "kind", decision_kind_name(d->kind));
	json_add_text(r, "why", d->why);
	json_add_text(r, "reason", s->in.verdict.reason);
	json_add_text(r, "fingerprint", s->in.verdict.fingerprint);
	json_add_int(r, "count", s->count);
	json_add_int(r, "step", s->in.sign.step);
	json_add_int(r, "checkpoint_step", s->in.selection.result ==
	    SELECTION_FOUND ? s->in.selection.step : UNKNOWN);
	json_add_int(r, "before_step", d->before_step);
	json_add_int(r, "delay_ms", d->delay_ms);
	cJSON_AddBoolToObject(r, "free", d->is_free);
	json_add_int(r, "budget_left", d->budget_left);
	history_apply(&s->h, r);
	cJSON_Delete(r);
	ck_assert_uint_gt(strlen(d->why), 0);
	return d;
}
