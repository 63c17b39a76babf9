/* SPDX-License-Identifier: Apache-2.0 */
/*
 * examine.c - finds cause and checkpoint of a failed attempt.
 *
 * Both are verbs of this program, run as children with deadlines: a hung file
 * system or a crash in a parser stays there.  Reads their JSON; emits verdict,
 * checkpoint and decision records.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/json.h"
#include "common/log.h"
#include "common/verb.h"
#include "supervisor/restart.h"
#include "supervisor/run_stage.h"
#include "supervisor/supervisor.h"

#define DIAGNOSE_DEADLINE_MS	60000
#define CHECKPOINT_DEADLINE_MS	(30 * 60 * 1000)
#define OUTPUT_MAX		(4u << 20)
#define SELECT_AGAIN_MS		30000
#define SELECT_TRIES_MAX	20

static void examine_join(struct supervisor *);

static void
copy_name(char out[INCIDENT_NAME_MAX], const cJSON *o, const char *key,
    const char *def)
{
	snprintf(out, INCIDENT_NAME_MAX, "%s", json_str(o, key, def));
}

static void
verdict_read(struct verdict *v, cJSON *json)
{
	const cJSON *action = cJSON_GetObjectItem(json, "action");

	cJSON_Delete(v->json);
	*v = (struct verdict){ .json = json, .step = JSON_UNKNOWN };
	copy_name(v->status, json, "status", "undetermined");
	copy_name(v->category, json, "category", "meta");
	copy_name(v->reason, json, "reason", "unknown");
	copy_name(v->action, action, "kind", "restart");
	copy_name(v->fingerprint, json, "fingerprint", "unknown");
	v->step = json_int(json, "step", JSON_UNKNOWN);
}

/* A verdict of the supervisor's own, where no log can know: same schema. */
static cJSON *
verdict_make(const char *reason, const char *category, const char *action,
    const char *text, const char *advice)
{
	static const char *const nulls[] = { "stage", "step", NULL };
	cJSON *v = cJSON_CreateObject(), *o;
	char fingerprint[INCIDENT_NAME_MAX];
	int i;

	json_add_text(v, "schema", "holdfast.verdict/1");
	json_add_text(v, "status", strcmp(reason, "unknown") == 0 ?
	    "undetermined" : "diagnosed");
	json_add_text(v, "category", category);
	json_add_text(v, "reason", reason);
	cJSON_AddNumberToObject(v, "confidence",
	    strcmp(reason, "unknown") == 0 ? 0.0 : 0.9);
	json_add_text(v, "source", "monitor");
	o = cJSON_AddObjectToObject(v, "action");
	json_add_text(o, "kind", action);
	cJSON_AddArrayToObject(o, "nodes");
	o = cJSON_AddObjectToObject(v, "root");
	json_add_text(o, "rule", NULL);
	json_add_text(o, "file", NULL);
	json_add_text(o, "line", NULL);
	json_add_text(o, "text", text);
	json_add_text(o, "rank", NULL);
	json_add_text(o, "node", NULL);
	json_add_text(o, "gpu", NULL);
	cJSON_AddArrayToObject(v, "symptoms");
	cJSON_AddArrayToObject(v, "suspects");
	cJSON_AddArrayToObject(v, "alternatives");
	for (i = 0; nulls[i] != NULL; i++)
		json_add_text(v, nulls[i], NULL);
	snprintf(fingerprint, sizeof(fingerprint), "monitor:%s", reason);
	json_add_text(v, "fingerprint", fingerprint);
	json_add_text(v, "advice", advice);
	cJSON_AddArrayToObject(v, "missing_evidence");
	return v;
}

static void
replace_int(cJSON *object, const char *key, int64_t n)
{
	cJSON_DeleteItemFromObject(object, key);
	json_add_int(object, key, n);
}

/* What the monitor saw with its own eyes, if the logs did not say better. */
static void
verdict_from_sign(struct supervisor *s)
{
	const struct sign *sign = &s->incident.sign;
	struct verdict *v = &s->incident.verdict;
	bool open = strcmp(v->status, "diagnosed") != 0;
	cJSON *made = NULL;

	switch (sign->kind) {
	case SIGN_RESUME_MISMATCH:
		made = verdict_make("checkpoint_mismatch", "framework", "stop",
		    sign->text, "The trainer ignores the checkpoint it is given: "
		    "see --resume-args and HOLDFAST_RESUME_FROM.");
		break;
	case SIGN_LOSS:
		if (strcmp(v->reason, "loss_nan") != 0)
			made = verdict_make("loss_nan", "framework", "rollback",
			    sign->text, "Look at the data of these steps and at "
			    "the gradient norms before them.");
		break;
	case SIGN_AGENT_LOST:
		if (open)
			made = verdict_make("process_killed", "infrastructure",
			    "restart", "the agent and the ranks of this node were "
			    "killed", "Look for who sends SIGKILL: the kernel log "
			    "(OOM), the scheduler, a cleanup script.");
		break;
	case SIGN_SPIKE:
		made = verdict_make("loss_spike", "framework", "rollback",
		    sign->text, "Look at the data of these steps and at the "
		    "gradient norms before them; --loss-spike sets what counts.");
		replace_int(made, "step", s->spike_step);
		break;
	case SIGN_HANG:
		/* Ended from outside: that was this supervisor. */
		if (open || strcmp(v->category, "external") == 0 ||
		    strcmp(v->reason, "process_killed") == 0)
			made = verdict_make("hang", "infrastructure", "test_nodes",
			    sign->text, "The stacks of all ranks are in evidence/ of "
			    "the run directory: the one that differs is the one to "
			    "look at.");
		if (made != NULL && sign->rank >= 0)
			replace_int(cJSON_GetObjectItem(made, "root"), "rank",
			    sign->rank);
		break;
	case SIGN_EXIT_TIMEOUT:
		if (open)
			made = verdict_make("hang", "infrastructure", "restart",
			    sign->text, "Some ranks ended, others hang in their "
			    "shutdown.");
		break;
	case SIGN_START:
		if (open)
			made = verdict_make("file_not_found", "script", "stop",
			    sign->text, "The command cannot be started.");
		break;
	default:
		break;
	}
	if (made != NULL)
		verdict_read(v, made);
}

static void
child_complaint(const struct child_result *r, const char *what, char *out,
    size_t size)
{
	static const char *const ends[] = { "ended with status",
	    "was ended by signal", "ran into its deadline",
	    "is stuck in the kernel" };

	if (r->end == CHILD_EXITED || r->end == CHILD_SIGNALED)
		snprintf(out, size, "%s %s %d: %.200s", what, ends[r->end],
		    r->code, r->errors.data ? r->errors.data : "");
	else
		snprintf(out, size, "%s %s", what, ends[r->end]);
}

static void
on_diagnosed(const struct child_result *r, void *arg)
{
	struct supervisor *s = arg;
	char why[INCIDENT_TEXT_MAX];
	cJSON *json = NULL;

	s->diagnose_child = NULL;
	if (r->end != CHILD_EXITED || r->code > 1 || r->truncated ||
	    json_parse(r->out.data ? r->out.data : "", r->out.len, &json,
	    NULL) == -1) {
		child_complaint(r, "diagnose", why, sizeof(why));
		log_error("%s", why);
		json = verdict_make("unknown", "meta", "restart", why,
		    "The logs could not be examined; look at them by hand.");
	}
	verdict_read(&s->incident.verdict, json);
	verdict_from_sign(s);
	examine_join(s);
}

static void
selection_read(struct selection *sel, cJSON *json)
{
	const cJSON *skipped = cJSON_GetObjectItem(json, "skipped");
	const char *path = json_str(json, "path", NULL);

	sel->json = json;
	sel->skipped = cJSON_GetArraySize(skipped);
	sel->step = json_int(json, "step", JSON_UNKNOWN);
	if (path != NULL && strlen(path) < sizeof(sel->path)) {
		sel->result = SELECTION_FOUND;
		snprintf(sel->path, sizeof(sel->path), "%s", path);
	} else {
		sel->result = sel->skipped > 0 ? SELECTION_ALL_BAD :
		    SELECTION_NONE;
	}
}

static void
say_skipped(struct supervisor *s)
{
	const cJSON *o;

	cJSON_ArrayForEach(o, cJSON_GetObjectItem(s->selection.json, "skipped"))
		supervisor_say(s, "checkpoint %s skipped: %s (%s)",
		    json_str(o, "path", "?"), json_str(o, "state", "?"),
		    json_str(o, "reason", "no reason given"));
	if (s->selection.result == SELECTION_UNKNOWN)
		supervisor_say(s, "%s", s->selection.text);
}

static void
journal_selection(struct supervisor *s)
{
	static const char *const results[] = { "not_asked", "found", "none",
	    "all_bad", "unknown" };
	const struct selection *sel = &s->selection;
	cJSON *r = journal_record("checkpoint", s->history.attempt);

	json_add_text(r, "result", results[sel->result]);
	json_add_text(r, "path", sel->result == SELECTION_FOUND ? sel->path :
	    NULL);
	json_add_int(r, "step", sel->step);
	cJSON_AddItemToObject(r, "skipped", sel->json == NULL ?
	    cJSON_CreateArray() : cJSON_Duplicate(cJSON_GetObjectItem(sel->json,
	    "skipped"), true));
	if (sel->text[0] != '\0')
		json_add_text(r, "why", sel->text);
	journal_append(s->journal, r, NULL, NULL);
}

static void stop_run(struct supervisor *, const char *, ...)
    __attribute__((format(printf, 2, 3)));

/* What the look at the checkpoints leaves no other way than to stop for. */
static void
stop_run(struct supervisor *s, const char *fmt, ...)
{
	struct decision *d = &s->incident.decision;
	va_list ap;

	d->kind = DECISION_STOP;
	d->exit_code = EXIT_NEGATIVE;
	va_start(ap, fmt);
	vsnprintf(d->why, sizeof(d->why), fmt, ap);
	va_end(ap);
	supervisor_event(s, EVENT_GIVE_UP);
}

/* Unknown is not none: starting from nothing beside good checkpoints that cannot
 * be read now would throw the work away. */
static void
look_again(struct supervisor *s)
{
	if (++s->select_tries < SELECT_TRIES_MAX) {
		supervisor_say(s, "looking for a checkpoint again in %d s",
		    SELECT_AGAIN_MS / 1000);
		loop_timer_set(s->delay, SELECT_AGAIN_MS);
		return;
	}
	stop_run(s, "whether there is a usable checkpoint could not be found out "
	    "in %d tries: %.300s", SELECT_TRIES_MAX, s->selection.text);
}

/* A run that goes back must have something to go back to, where there are checkpoints
 * at all. */
static bool
lacks_target(const struct supervisor *s)
{
	return s->history.phase == ATTEMPT_DECIDED &&
	    s->history.decision.before_step != JSON_UNKNOWN &&
	    s->selection.result != SELECTION_FOUND && s->selection.skipped > 0;
}

static void
on_selected(const struct child_result *r, void *arg)
{
	struct supervisor *s = arg;
	struct selection *sel = &s->selection;
	cJSON *json = NULL;

	s->checkpoint_child = NULL;
	if (r->end == CHILD_EXITED && r->code <= 1 && !r->truncated &&
	    json_parse(r->out.data ? r->out.data : "", r->out.len, &json,
	    NULL) == 0) {
		selection_read(sel, json);
		s->select_tries = 0;
	} else {
		sel->result = SELECTION_UNKNOWN;
		child_complaint(r, "checkpoint latest", sel->text,
		    sizeof(sel->text));
	}
	say_skipped(s);
	journal_selection(s);
	if (s->examining)
		examine_join(s);
	else if (sel->result == SELECTION_UNKNOWN)
		look_again(s);
	else if (lacks_target(s))
		stop_run(s, "no valid checkpoint is older than step %lld; starting "
		    "from nothing is for a person to decide",
		    (long long)s->history.decision.before_step);
	else
		supervisor_event(s, EVENT_SELECTED);
}

static int
start_child(struct supervisor *s, const char *const *argv, int64_t deadline_ms,
    child_done_fn done, struct child **out)
{
	struct child_spec spec = { .argv = argv, .deadline_ms = deadline_ms,
	    .output_max = OUTPUT_MAX };
	struct err err = {0};

	if (child_start(s->loop, &spec, done, s, out, &err) == 0)
		return 0;
	log_error("%s", err.text);
	return -1;
}

/* Starts the search; the answer comes to on_selected(), at once when there is
 * no directory to search. */
static void
start_selection(struct supervisor *s, int64_t before_step)
{
	const struct run_options *o = &s->spec->options;
	const char *argv[15] = { CHILD_SELF, "checkpoint", "latest", "--json",
	    "--write-manifest", "--quarantine", o->quarantine };
	static const struct child_result failed = { .end = CHILD_STUCK };
	char before[24], dir[PATH_MAX];
	struct run_stage stage;
	int n = 7;

	child_cancel(s->checkpoint_child);
	s->checkpoint_child = NULL;
	cJSON_Delete(s->selection.json);
	s->selection = (struct selection){ .step = JSON_UNKNOWN };
	if (o->checkpoint_dir == NULL) {
		if (!s->examining)
			supervisor_event(s, EVENT_SELECTED);
		return;
	}
	if (before_step != JSON_UNKNOWN) {
		snprintf(before, sizeof(before), "%lld", (long long)before_step);
		argv[n++] = "--before-step";
		argv[n++] = before;
	}
	run_spec_absolute(s->spec, o->checkpoint_dir, dir);
	run_stage_places(s->spec, &stage);
	if (stage.on) {
		argv[n++] = "--staged";
		argv[n++] = stage.fast;
		argv[n++] = "--socket";
		argv[n++] = stage.socket;
	}
	argv[n++] = dir;
	if (start_child(s, argv, CHECKPOINT_DEADLINE_MS, on_selected,
	    &s->checkpoint_child) == -1)
		on_selected(&failed, s);
}

void
examine_select(struct supervisor *s, int64_t before_step)
{
	s->examining = false;
	start_selection(s, before_step);
}

void
examine_incident(struct supervisor *s)
{
	const char *argv[8] = { CHILD_SELF, "diagnose", "--json" };
	static const struct child_result failed = { .end = CHILD_STUCK };
	const struct run_options *o = &s->spec->options;
	char dir[PATH_MAX];
	int n = 3;

	s->examining = true;
	start_selection(s, JSON_UNKNOWN);
	if (o->rules != NULL) {
		argv[n++] = "--rules";
		argv[n++] = o->rules;
	}
	snprintf(dir, sizeof(dir), "%.3000s/attempts/%04d",
	    o->log_dir ? o->log_dir : s->spec->dir, s->history.attempt);
	argv[n++] = dir;
	if (start_child(s, argv, DIAGNOSE_DEADLINE_MS, on_diagnosed,
	    &s->diagnose_child) == -1)
		on_diagnosed(&failed, s);
}

void
examine_cancel(struct supervisor *s)
{
	child_cancel(s->diagnose_child);
	child_cancel(s->checkpoint_child);
	s->diagnose_child = s->checkpoint_child = NULL;
	s->examining = false;
}

static void
journal_verdict(struct supervisor *s)
{
	cJSON *r = journal_record("verdict", s->history.attempt);
	char path[PATH_MAX], *text;

	json_add_int(r, "incident", s->incident.number);
	cJSON_AddItemToObject(r, "verdict",
	    cJSON_Duplicate(s->incident.verdict.json, true));
	journal_append(s->journal, r, NULL, NULL);
	snprintf(path, sizeof(path), "%.4000s/verdict.json", s->spec->dir);
	if ((text = json_line(s->incident.verdict.json)) != NULL)
		writer_replace(s->writer, path, text, strlen(text), NULL, NULL);
	free(text);
}

static void
journal_decision(struct supervisor *s, int count)
{
	const struct incident *in = &s->incident;
	const struct decision *d = &in->decision;
	cJSON *r = journal_record("decision", s->history.attempt);

	json_add_int(r, "incident", in->number);
	json_add_text(r, "kind", decision_kind_name(d->kind));
	json_add_text(r, "why", d->why);
	json_add_text(r, "reason", in->verdict.reason);
	json_add_text(r, "fingerprint", in->verdict.fingerprint);
	json_add_int(r, "count", count);
	json_add_int(r, "step", in->sign.step);
	json_add_int(r, "checkpoint_step", s->selection.result ==
	    SELECTION_FOUND ? s->selection.step : JSON_UNKNOWN);
	json_add_text(r, "checkpoint", s->selection.result ==
	    SELECTION_FOUND ? s->selection.path : NULL);
	cJSON_AddArrayToObject(r, "nodes");
	json_add_int(r, "before_step", d->before_step);
	json_add_int(r, "delay_ms", d->delay_ms);
	cJSON_AddBoolToObject(r, "free", d->is_free);
	json_add_int(r, "budget_left", d->budget_left);
	json_add_int(r, "code", d->kind == DECISION_RESTART ? JSON_UNKNOWN :
	    d->exit_code);
	journal_append(s->journal, r, NULL, NULL);
}

/* Both answers are there: decide. */
static void
examine_join(struct supervisor *s)
{
	struct restart_policy policy = { s->spec->restarts_max,
	    s->spec->window_ms, s->spec->options.backoff_ms };
	struct restart_facts facts = { 0 };
	struct incident *in = &s->incident;
	char *card;
	int count;

	if (!s->examining || s->diagnose_child != NULL ||
	    s->checkpoint_child != NULL || in->verdict.json == NULL)
		return;
	s->examining = false;
	in->selection = s->selection;
	in->selection.json = NULL;
	facts.now_ns = clock_wall_ns(&clock_system);
	facts.uptime_ms = s->history.started_ns == 0 ? 0 :
	    (facts.now_ns - s->history.started_ns) / NS_PER_MS;
	facts.step_interval = s->progress.interval == JSON_UNKNOWN ? 1 :
	    s->progress.interval;
	if (getrandom(&facts.random, sizeof(facts.random), GRND_NONBLOCK) == -1)
		facts.random = (uint32_t)facts.now_ns;
	restart_decide(&s->history, &policy, &facts, in, &count);
	journal_verdict(s);
	journal_decision(s, count);
	if ((card = card_format(in, s)) != NULL)
		control_broadcast_text(s, card);
	free(card);
	supervisor_event(s, in->decision.kind == DECISION_RESTART ?
	    EVENT_RESTART : EVENT_GIVE_UP);
}
