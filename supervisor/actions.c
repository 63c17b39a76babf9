/* SPDX-License-Identifier: Apache-2.0 */
/*
 * actions.c - carries out what the table of recovery.c orders, one function for
 * each action that is more than a line.
 *
 * Emits the records attempt, incident, gone and end, and orders to the agent.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/text.h"
#include "common/verb.h"
#include "supervisor/supervisor.h"

#define DRAIN_LIMIT_MS	(60 * 60 * 1000)

static void
on_attempt_journaled(void *arg)
{
	struct supervisor *s = arg;

	if (s->start_order == NULL)
		return;
	link_send(s, s->start_order);
	s->start_order = NULL;
}

/* The command may hold any bytes, the journal holds UTF-8. */
static void
add_clean_argv(cJSON *r, const cJSON *argv)
{
	cJSON *list = cJSON_AddArrayToObject(r, "argv");
	struct buf word = {0};
	const cJSON *w;

	cJSON_ArrayForEach(w, argv) {
		buf_clear(&word);
		if (text_utf8_clean(w->valuestring, strlen(w->valuestring),
		    &word) == 0)
			cJSON_AddItemToArray(list,
			    cJSON_CreateString(word.data));
	}
	buf_fini(&word);
}

/* The record comes first: an attempt nobody wrote down cannot be re-adopted. */
static void
do_launch(struct supervisor *s)
{
	int attempt = s->history.attempt + 1;
	struct err err = {0};
	cJSON *r, *resume;

	cJSON_Delete(s->start_order);
	s->start_order = launch_order(s, attempt, &err);
	if (s->start_order == NULL) {
		supervisor_close(s, EXIT_NEGATIVE, err.text);
		return;
	}
	r = journal_record("attempt", attempt);
	add_clean_argv(r, cJSON_GetObjectItem(s->start_order, "argv"));
	json_add_int(r, "world_size", s->spec->options.nproc_per_node > 0 ?
	    s->count : JSON_UNKNOWN);
	json_add_text(r, "node", s->node);
	json_add_text(r, "log_dir", json_str(s->start_order, "log_dir", NULL));
	resume = cJSON_AddObjectToObject(r, "resume");
	json_add_text(resume, "path", s->selection.result == SELECTION_FOUND ?
	    s->selection.path : NULL);
	json_add_int(resume, "step", s->selection.result == SELECTION_FOUND ?
	    s->selection.step : JSON_UNKNOWN);
	monitor_reset(s);
	/* Ranks may tell progress before the agent tells that all have started. */
	monitor_begin(s);
	s->launched_ns = clock_mono_ns(&clock_system);
	journal_append(s->journal, r, on_attempt_journaled, s);
}

static void
do_note_start(struct supervisor *s)
{
	char from[128] = "", took[TEXT_SPAN_MAX];
	int64_t now = clock_mono_ns(&clock_system);

	if (s->selection.result == SELECTION_FOUND &&
	    s->selection.step != JSON_UNKNOWN)
		snprintf(from, sizeof(from), ", from the checkpoint of step %lld",
		    (long long)s->selection.step);
	else if (s->selection.result == SELECTION_FOUND)
		snprintf(from, sizeof(from), ", from a checkpoint");
	s->agent_starts = 0;
	if (s->spec->options.nproc_per_node > 0)
		supervisor_say(s, "attempt %d: %d rank%s started on %s%s",
		    s->history.attempt, s->count, s->count == 1 ? "" : "s",
		    s->node, from);
	else
		supervisor_say(s, "attempt %d: launcher started on %s (pid %d)%s",
		    s->history.attempt, s->node, (int)s->history.pids[0], from);
	if (s->failed_ns != 0) {
		s->lost_ms += (now - s->failed_ns) / NS_PER_MS;
		text_format_span((now - s->failed_ns) / NS_PER_MS, took);
		supervisor_say(s, "recovered %s after the failure", took);
		s->failed_ns = 0;
	}
}

/* A sentence for the sign, when the logs have not been read yet. */
static void
describe_sign(const struct supervisor *s, struct sign *sign)
{
	char who[64];

	if (sign->text[0] != '\0')
		return;
	if (sign->rank >= 0)
		snprintf(who, sizeof(who), "rank %d (pid %d)", sign->rank,
		    (int)sign->pid);
	else
		snprintf(who, sizeof(who), "the launcher (pid %d)",
		    (int)sign->pid);
	switch (sign->kind) {
	case SIGN_EXIT:
		if (sign->signaled)
			snprintf(sign->text, sizeof(sign->text),
			    "%s was ended by signal %d (%s)", who, sign->status,
			    strsignal(sign->status));
		else
			snprintf(sign->text, sizeof(sign->text),
			    "%s exited with status %d", who, sign->status);
		break;
	case SIGN_EXIT_TIMEOUT:
		snprintf(sign->text, sizeof(sign->text), "%d of %d ranks ended "
		    "well, the others still run after %lld s",
		    s->history.exits_ok, s->count,
		    (long long)s->spec->options.exit_timeout_ms / 1000);
		break;
	case SIGN_AGENT_LOST:
		snprintf(sign->text, sizeof(sign->text),
		    "the agent on %s was lost", s->node);
		break;
	default:
		snprintf(sign->text, sizeof(sign->text),
		    "the attempt ended without a reason");
		break;
	}
}

static void
open_incident(struct supervisor *s, enum sign_kind kind)
{
	struct sign *sign = &s->history.sign;
	cJSON *r;

	if (s->history.phase == ATTEMPT_ENDING)
		return;
	if (sign->kind == SIGN_NONE)
		sign->kind = kind;
	if (s->progress.step != JSON_UNKNOWN)
		sign->step = s->progress.step;
	sign->wall_ns = clock_wall_ns(&clock_system);
	describe_sign(s, sign);
	s->failed_ns = clock_mono_ns(&clock_system);
	r = journal_record("incident", s->history.attempt);
	json_add_int(r, "incident", s->history.incidents + 1);
	json_add_text(r, "sign", sign_kind_name(sign->kind));
	json_add_int(r, "rank", sign->rank >= 0 ? sign->rank : JSON_UNKNOWN);
	json_add_int(r, "step", sign->step);
	json_add_text(r, "text", sign->text);
	journal_append(s->journal, r, NULL, NULL);
	supervisor_say(s, "attempt %d: %s", s->history.attempt, sign->text);
}

static void
order_stop(struct supervisor *s, int64_t grace_ms, const char *why)
{
	cJSON *m = link_order(s, "stop");

	json_add_int(m, "grace_ms", grace_ms);
	json_add_text(m, "why", why);
	link_send(s, m);
}

void
action_settled(void *arg)
{
	struct supervisor *s = arg;

	if (s->state == STATE_ENDING)
		order_stop(s, s->spec->options.failure_grace_ms,
		    s->history.sign.kind == SIGN_HANG ? s->history.sign.text :
		    "another rank failed");
}

void
action_exits_over(void *arg)
{
	struct supervisor *s = arg;

	if (s->state == STATE_LINGERING)
		order_stop(s, 0, "all ranks ended well, this is left");
	else
		supervisor_event(s, EVENT_EXIT_TIMEOUT);
}

static void
do_adopt(struct supervisor *s)
{
	supervisor_say(s, "attempt %d goes on, taken over on %s",
	    s->history.attempt, s->node);
	monitor_begin(s);
	if (s->history.phase == ATTEMPT_ENDING) {
		s->state = STATE_ENDING;
		loop_timer_set(s->settle, 0);
	} else if (s->history.exits_failed > 0) {
		supervisor_event(s, EVENT_RANK_FAILED);
	} else if (s->history.exits_ok >= s->count) {
		supervisor_event(s, EVENT_ALL_ENDED_WELL);
	} else if (s->history.exits_ok > 0) {
		supervisor_event(s, EVENT_RANK_ENDED_WELL);
	}
}

/* Ranks a new agent swept away: nobody saw how they ended. */
static void
journal_swept(struct supervisor *s)
{
	cJSON *r;
	int i;

	for (i = 0; i < s->history.pid_count; i++) {
		if (s->history.pids[i] == 0)
			continue;
		r = journal_record("exit", s->history.attempt);
		json_add_int(r, "rank", s->spec->options.nproc_per_node > 0 ? i :
		    JSON_UNKNOWN);
		json_add_int(r, "index", i);
		json_add_int(r, "pid", s->history.pids[i]);
		json_add_text(r, "kind", "swept");
		journal_append(s->journal, r, NULL, NULL);
	}
	r = journal_record("gone", s->history.attempt);
	json_add_text(r, "proof", "swept by a new agent");
	journal_append(s->journal, r, NULL, NULL);
}

/* An agent without the attempt has swept the node before it spoke. */
static void
prove_gone(struct supervisor *s)
{
	enum attempt_phase p = s->history.phase;

	if (p == ATTEMPT_ORDERED || p == ATTEMPT_RUNNING || p == ATTEMPT_ENDING)
		journal_swept(s);
}

static void
do_examine(struct supervisor *s)
{

	loop_timer_cancel(s->settle);
	loop_timer_cancel(s->exits);
	if (s->history.phase != ATTEMPT_GONE) {
		open_incident(s, SIGN_AGENT_LOST);
		journal_swept(s);
	} else if (s->history.sign.kind == SIGN_NONE) {
		open_incident(s, SIGN_EXIT);
	}
	incident_clear(&s->incident);
	s->incident.number = s->history.incidents;
	s->incident.attempt = s->history.attempt;
	s->incident.sign = s->history.sign;
	describe_sign(s, &s->incident.sign);
	examine_incident(s);
}

static void
do_select(struct supervisor *s)
{
	const struct decision *d = &s->history.decision;
	bool decided = s->history.phase == ATTEMPT_DECIDED;

	/* It may have gone while nothing was asked of it. */
	if (s->agent == NULL) {
		supervisor_event(s, EVENT_AGENT_LOST);
		return;
	}
	if (decided && d->before_step != JSON_UNKNOWN)
		examine_select(s, d->before_step);
	else if (decided && s->incident.verdict.json != NULL &&
	    s->selection.result != SELECTION_UNKNOWN)
		supervisor_event(s, EVENT_SELECTED);	/* just examined */
	else
		examine_select(s, JSON_UNKNOWN);
}

static void
do_start_delay(struct supervisor *s)
{
	int64_t ms = s->incident.decision.delay_ms;
	char span[TEXT_SPAN_MAX];

	if (ms > 0) {
		text_format_span(ms, span);
		supervisor_say(s, "next attempt in %s", span);
	}
	loop_timer_set(s->delay, ms);
}

/* True when there was an order that still waited for its record. */
static bool
forget_start_order(struct supervisor *s)
{
	bool waited = s->start_order != NULL;

	cJSON_Delete(s->start_order);
	s->start_order = NULL;
	return waited;
}

static void
do_stop_ranks(struct supervisor *s)
{
	int64_t grace = s->stops > 1 ? 0 : s->spec->options.grace_ms;
	cJSON *r;

	loop_timer_cancel(s->exits);
	loop_timer_cancel(s->settle);
	if (forget_start_order(s)) {
		r = journal_record("gone", s->history.attempt);
		json_add_text(r, "proof", "never started");
		journal_append(s->journal, r, NULL, NULL);
		supervisor_event(s, EVENT_GONE);
		return;
	}
	order_stop(s, grace, "the run was asked to stop");
	supervisor_say(s, grace > 0 ? "stopping the ranks (again to kill them)" :
	    "killing the ranks");
}

static int
stop_code(const struct supervisor *s)
{
	int sig = s->stop_signal ? s->stop_signal : SIGTERM;

	return sig == SIGUSR1 ? EXIT_REQUEUE : EXIT_SIGNALED + sig;
}

/* Staged checkpoints become durable before the end is written: a run that was told to
 * stop has its grace for that, another one all the time it needs. */
static void
state_end(struct supervisor *s, int code, const char *why)
{
	s->end_code = code;
	snprintf(s->end_why, sizeof(s->end_why), "%s", why);
	examine_cancel(s);
	if (s->spec->options.stage == NULL || s->agent == NULL) {
		supervisor_event(s, EVENT_DRAINED);
		return;
	}
	supervisor_say(s, "making staged checkpoints durable (again to leave that)");
	link_send(s, link_order(s, "drain"));
	loop_timer_set(s->drain, s->stops > 0 ? s->spec->options.grace_ms :
	    DRAIN_LIMIT_MS);
}

void
action_drain_over(void *arg)
{
	struct supervisor *s = arg;

	supervisor_say(s, "not all staged checkpoints are durable yet; the copying "
	    "goes on by itself as long as this node lets it");
	supervisor_event(s, EVENT_DRAINED);
}

void
action_do(struct supervisor *s, enum recovery_action action)
{
	switch (action) {
	case DO_NOTHING:
		break;
	case DO_SELECT:
		do_select(s);
		break;
	case DO_LAUNCH:
		do_launch(s);
		break;
	case DO_ADOPT:
		do_adopt(s);
		break;
	case DO_NOTE_START:
		do_note_start(s);
		break;
	case DO_WAIT_FOR_EXITS:
		if (!loop_timer_pending(s->exits))
			loop_timer_set(s->exits,
			    s->spec->options.exit_timeout_ms);
		break;
	case DO_WAIT_FOR_STRAYS:
		loop_timer_set(s->exits, s->spec->options.grace_ms);
		break;
	case DO_OPEN_INCIDENT:
		open_incident(s, SIGN_EXIT_TIMEOUT);
		loop_timer_set(s->settle, SUPERVISOR_SETTLE_MS);
		break;
	case DO_OPEN_INCIDENT_LOST:
		forget_start_order(s);
		open_incident(s, SIGN_AGENT_LOST);
		link_connect(s);
		break;
	case DO_RECONNECT:
		link_connect(s);
		break;
	case DO_EXAMINE:
		do_examine(s);
		break;
	case DO_START_DELAY:
		do_start_delay(s);
		break;
	case DO_FINISH:
		prove_gone(s);
		state_end(s, EXIT_OK, "all ranks ended well");
		break;
	case DO_STOP_RANKS:
		do_stop_ranks(s);
		break;
	case DO_CLOSE_STOPPED:
		prove_gone(s);
		state_end(s, stop_code(s), "as asked");
		break;
	case DO_CLOSE_GIVEN_UP:
		state_end(s, s->incident.decision.exit_code,
		    s->incident.decision.why);
		break;
	case DO_CLOSE:
		loop_timer_cancel(s->drain);
		supervisor_close(s, s->end_code, s->end_why);
		break;
	case DO_CLOSE_NO_AGENT:
		supervisor_close(s, EXIT_NODES, "no node to run on");
		break;
	case DO_COUNT:
		break;
	}
}
