/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_scan.c - reads the output of a rank while it runs: progress and the
 * first line of each cause a rule knows, told to the supervisor as notes.
 *
 * A sign decides nothing: it is shown and journaled, so that a person sees the
 * first trouble before the attempt is over.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "diagnose/live.h"
#include "supervisor/agent.h"
#include "supervisor/agent_scan.h"

#define REPORT_EVERY_NS	(200 * NS_PER_MS)
#define NOTE_ROOM	(1u << 18)
#define SIGNS_MAX	8	/* different rules told per stream */
#define SIGN_TEXT_MAX	300

struct agent_scan {
	struct agent		*agent;
	struct live		*live;
	int			 attempt;
	int			 rank;
	int64_t			 last_step;
	int64_t			 interval;
	int64_t			 reported_ns;
	struct progress		 held;		/* not told yet */
	bool			 holds;
	const struct rule	*told[SIGNS_MAX];
	int			 told_count;
};

static void
report(struct agent_scan *s, const struct progress *p)
{
	cJSON *m = agent_message(s->agent, "progress", s->attempt);

	json_add_int(m, "rank", s->rank);
	if (p->step >= 0)
		json_add_int(m, "step", p->step);
	json_add_int(m, "interval", s->interval);
	if (p->has_loss && isfinite(p->loss))
		cJSON_AddNumberToObject(m, "loss", p->loss);
	cJSON_AddBoolToObject(m, "not_finite", p->has_loss &&
	    !isfinite(p->loss));
	if (p->has_step_ms && isfinite(p->step_ms))
		cJSON_AddNumberToObject(m, "step_ms", p->step_ms);
	agent_note(s->agent, m, NOTE_ROOM);
}

void
agent_scan_report(struct agent_scan *s)
{
	if (s->holds)
		report(s, &s->held);
	s->holds = false;
}

int64_t
agent_scan_step(const struct agent_scan *s)
{
	return s->last_step;
}

/* The first step of an attempt and a loss that is no number are told at once,
 * the rest not more often than it can be read. */
static void
on_progress(const struct progress *p, uint64_t line, void *arg)
{
	struct agent_scan *s = arg;
	int64_t now = clock_mono_ns(&clock_system);
	bool first = p->step >= 0 && s->last_step == JSON_UNKNOWN;
	bool bad = p->has_loss && !isfinite(p->loss);

	(void)line;
	if (p->bar && !p->has_loss)
		return;
	if (p->step >= 0) {
		if (!first && p->step > s->last_step)
			s->interval = p->step - s->last_step;
		s->last_step = p->step;
	}
	s->held = *p;
	s->holds = true;
	if (!first && !bad && now - s->reported_ns < REPORT_EVERY_NS)
		return;
	s->reported_ns = now;
	agent_scan_report(s);
}

static void
on_match(const struct live_match *hit, void *arg)
{
	struct agent_scan *s = arg;
	cJSON *m;
	int i;

	if (hit->rule->def.role != ROLE_ROOT || hit->rule->reason == NULL)
		return;
	for (i = 0; i < s->told_count; i++)
		if (s->told[i] == hit->rule)
			return;
	if (s->told_count == SIGNS_MAX)
		return;
	s->told[s->told_count++] = hit->rule;
	m = agent_message(s->agent, "sign", s->attempt);
	json_add_text(m, "rule", hit->rule->def.id);
	json_add_text(m, "reason", hit->rule->reason->name);
	json_add_int(m, "rank", hit->rank >= 0 ? hit->rank :
	    s->rank >= 0 ? s->rank : JSON_UNKNOWN);
	json_add_int(m, "line", (int64_t)hit->line);
	json_add_bytes(m, "text", hit->text,
	    hit->len < SIGN_TEXT_MAX ? hit->len : SIGN_TEXT_MAX);
	agent_note(s->agent, m, NOTE_ROOM);
}

int
agent_scan_new(struct agent *a, int attempt, int rank,
    struct agent_scan **out, struct err *err)
{
	struct agent_scan *s = calloc(1, sizeof(*s));
	struct live_calls calls = { on_match, on_progress, s };

	if (s == NULL)
		return err_memory(err);
	s->agent = a;
	s->attempt = attempt;
	s->rank = rank;
	s->last_step = s->interval = JSON_UNKNOWN;
	if (live_new(a->rules, &calls, &s->live, err) == -1) {
		free(s);
		return -1;
	}
	*out = s;
	return 0;
}

void
agent_scan_free(struct agent_scan *s)
{
	if (s == NULL)
		return;
	live_free(s->live);
	free(s);
}

void
agent_scan_feed(struct agent_scan *s, const char *data, size_t len)
{
	live_feed(s->live, data, len);
}

void
agent_scan_end(struct agent_scan *s)
{
	live_flush(s->live);
	agent_scan_report(s);
}
