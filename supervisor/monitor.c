/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor.c - turns what the agent reports into signs of trouble.
 *
 * Decides whether an exit is a failure, whether the loss is still a number, and
 * whether the first step after a restart follows the chosen checkpoint.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "supervisor/supervisor.h"

void
monitor_reset(struct supervisor *s)
{
	s->progress = (struct latest_progress){ .first_step = JSON_UNKNOWN,
	    .step = JSON_UNKNOWN, .interval = s->progress.interval };
	s->resume_checked = false;
}

void
monitor_begin(struct supervisor *s)
{
	struct loss_limits limits = { .factor = s->spec->spike_factor,
	    .count = (int)s->spec->spike_count };

	if (s->selection.result == SELECTION_FOUND &&
	    s->loss.limits.factor == limits.factor)
		loss_resume(&s->loss);
	else
		loss_begin(&s->loss, &limits);
	monitor_hang_begin(s);
}

void
monitor_exit(struct supervisor *s, const cJSON *record)
{
	bool well = strcmp(json_str(record, "kind", ""), "exited") == 0 &&
	    json_int(record, "status", 1) == 0;

	if (!well)
		supervisor_event(s, EVENT_RANK_FAILED);
	else if (s->history.exits_ok >= s->count)
		supervisor_event(s, EVENT_ALL_ENDED_WELL);
	else
		supervisor_event(s, EVENT_RANK_ENDED_WELL);
}

void
monitor_raise(struct supervisor *s, enum sign_kind kind, int rank,
    const char *text)
{
	struct sign *sign = &s->history.sign;

	if (s->state != STATE_TRAINING || sign->kind != SIGN_NONE)
		return;
	sign->kind = kind;
	sign->rank = rank;
	snprintf(sign->text, sizeof(sign->text), "%s", text);
	supervisor_event(s, EVENT_SIGN);
}

/* A trainer prints either the number of the step it has done or of the one it
 * does, and perhaps only every so many: the first one may be anything from the
 * checkpoint's step to one interval after it. */
static void
check_resume(struct supervisor *s, int rank)
{
	const struct selection *sel = &s->selection;
	int64_t first = s->progress.first_step;
	int64_t interval = s->progress.interval;
	char text[INCIDENT_TEXT_MAX];

	s->resume_checked = true;
	if (sel->result != SELECTION_FOUND || sel->step == JSON_UNKNOWN)
		return;
	if (interval == JSON_UNKNOWN || interval < 1)
		interval = INT64_MAX / 2 - sel->step;
	if (first >= sel->step && first <= sel->step + interval)
		return;
	snprintf(text, sizeof(text), "the first step was %lld, but the checkpoint "
	    "chosen is of step %lld: the trainer did not resume from %.300s",
	    (long long)first, (long long)sel->step, sel->path);
	monitor_raise(s, SIGN_RESUME_MISMATCH, rank, text);
}

static void
take_step(struct supervisor *s, int64_t step, int rank)
{
	struct latest_progress *p = &s->progress;

	if (p->step == JSON_UNKNOWN || step > p->step)
		p->step = step;
	if (p->first_step == JSON_UNKNOWN)
		p->first_step = step;
	if (!s->resume_checked)
		check_resume(s, rank);
}

/* A line of a rank that a rule knows as a cause: shown and written down. */
void
monitor_sign(struct supervisor *s, const cJSON *note)
{
	cJSON *r;

	if ((int)json_int(note, "attempt", 0) != s->history.attempt ||
	    s->state != STATE_TRAINING)
		return;
	r = journal_record("sign", s->history.attempt);
	json_add_text(r, "rule", json_str(note, "rule", ""));
	json_add_text(r, "reason", json_str(note, "reason", ""));
	json_add_int(r, "rank", json_int(note, "rank", JSON_UNKNOWN));
	json_add_int(r, "line", json_int(note, "line", 0));
	json_add_text(r, "text", json_str(note, "text", ""));
	journal_append(s->journal, r, NULL, NULL);
}

/* Back to before its first step. */
static void
raise_spike(struct supervisor *s, int rank)
{
	char text[INCIDENT_TEXT_MAX];

	s->spike_step = s->loss.onset;
	snprintf(text, sizeof(text), "the loss has been far above its level of "
	    "%.4g since step %lld: %.4g at step %lld", s->loss.level,
	    (long long)s->loss.onset, s->progress.loss, (long long)s->loss.step);
	monitor_raise(s, SIGN_SPIKE, rank, text);
}

void
monitor_progress(struct supervisor *s, const cJSON *note)
{
	struct latest_progress *p = &s->progress;
	int rank = (int)json_int(note, "rank", -1);
	int64_t step = json_int(note, "step", JSON_UNKNOWN);
	char text[INCIDENT_TEXT_MAX];

	if ((int)json_int(note, "attempt", 0) != s->history.attempt)
		return;
	if (json_int(note, "interval", JSON_UNKNOWN) != JSON_UNKNOWN)
		p->interval = json_int(note, "interval", 1);
	p->has_step_ms = cJSON_GetObjectItem(note, "step_ms") != NULL;
	p->step_ms = json_num(note, "step_ms", 0);
	if (step != JSON_UNKNOWN) {
		monitor_hang_step(s, step);
		take_step(s, step, rank);
	}
	if (json_bool(note, "not_finite", false)) {
		snprintf(text, sizeof(text), "the loss is not finite at step %lld",
		    (long long)(step != JSON_UNKNOWN ? step : -1));
		monitor_raise(s, SIGN_LOSS, rank, text);
	} else if (cJSON_GetObjectItem(note, "loss") != NULL) {
		p->has_loss = true;
		p->loss = json_num(note, "loss", 0);
		if (step != JSON_UNKNOWN && loss_add(&s->loss, step, p->loss))
			raise_spike(s, rank);
	}
	status_changed(s);
}

/* Copies of staged checkpoints: each is written down, and what a person should know
 * is said. */
void
monitor_stage(struct supervisor *s, const cJSON *note)
{
	const cJSON *event = cJSON_GetObjectItem(note, "stage");
	const char *kind = json_str(event, "event", "");
	const char *name = json_str(event, "name", "?");
	const char *why = json_str(event, "why", "?");
	int64_t step = json_int(event, "step", JSON_UNKNOWN);
	cJSON *r;

	if (strcmp(kind, "dropped") == 0)
		return;
	if (strcmp(kind, "durable") == 0 && step > s->durable_step)
		s->durable_step = step;
	else if (strcmp(kind, "switched") == 0)
		supervisor_say(s, "checkpoints are saved to the %s directory now: "
		    "%s", json_str(event, "to", "?"), why);
	else if (strcmp(kind, "refused") == 0)
		supervisor_say(s, "staged checkpoint %s is not copied: %s", name,
		    why);
	else if (strcmp(kind, "failed") == 0 && !s->stage_failed)
		supervisor_say(s, "staged checkpoint %s could not be copied, trying "
		    "again: %s", name, why);
	else if (strcmp(kind, "lost") == 0 && !s->stage_failed)
		supervisor_say(s, "%s could not be written: %s", name, why);
	else if (strcmp(kind, "ended") == 0 && json_int(event, "left", 0) > 0)
		supervisor_say(s, "%lld staged checkpoints are not durable",
		    (long long)json_int(event, "left", 0));
	/* Said once until something succeeds. */
	s->stage_failed = strcmp(kind, "failed") == 0 ||
	    strcmp(kind, "lost") == 0;
	r = journal_record("stage", s->history.attempt);
	cJSON_AddItemToObject(r, "stage", cJSON_Duplicate(event, true));
	journal_append(s->journal, r, NULL, NULL);
	status_changed(s);
}
