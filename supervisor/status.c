/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.c - status.json: what a person wants to know, readable with no process
 * alive (schema in holdfast-status(1)).
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "supervisor/proc.h"
#include "supervisor/supervisor.h"

#define STATUS_INTERVAL_MS	500

static const char *
public_state(const struct supervisor *s)
{
	if (s->state != STATE_CLOSED)
		return recovery_public_name(s->state);
	return s->exit_code == 0 ? "finished" : "stopped";
}

static void
add_incident(const struct supervisor *s, cJSON *root)
{
	const struct incident *in = &s->incident;
	cJSON *o;

	if (in->verdict.json == NULL) {
		json_add_text(root, "last_incident", NULL);
		return;
	}
	o = cJSON_AddObjectToObject(root, "last_incident");
	json_add_int(o, "incident", in->number);
	json_add_int(o, "attempt", in->attempt);
	json_add_text(o, "sign", in->sign.text);
	json_add_text(o, "category", in->verdict.category);
	json_add_text(o, "reason", in->verdict.reason);
	json_add_text(o, "status", in->verdict.status);
	json_add_text(o, "advice", json_str(in->verdict.json, "advice", NULL));
	json_add_text(o, "decision", in->decision.why[0] == '\0' ? NULL :
	    decision_kind_name(in->decision.kind));
	json_add_text(o, "why", in->decision.why[0] == '\0' ? NULL :
	    in->decision.why);
}

static void
add_progress(const struct supervisor *s, cJSON *root)
{
	const struct latest_progress *p = &s->progress;

	json_add_int(root, "step", p->step);
	if (p->has_loss)
		cJSON_AddNumberToObject(root, "loss", p->loss);
	else
		json_add_text(root, "loss", NULL);
	if (p->has_step_ms)
		cJSON_AddNumberToObject(root, "step_ms", p->step_ms);
	else
		json_add_text(root, "step_ms", NULL);
	json_add_text(root, "suspicion", s->state == STATE_TRAINING &&
	    s->hang.state != HANG_NONE ? s->hang_why : NULL);
}

static void
add_processes(const struct supervisor *s, cJSON *root)
{
	struct proc_stat st = {0};
	char boot_id[PROC_BOOT_ID_MAX];
	cJSON *o, *a;
	int i;

	proc_read_boot_id(boot_id);
	proc_read_stat(getpid(), &st);
	o = cJSON_AddObjectToObject(root, "supervisor");
	json_add_int(o, "pid", getpid());
	json_add_int(o, "starttime", (int64_t)st.starttime);
	json_add_text(o, "boot_id", boot_id);
	json_add_int(root, "agent_pid", s->agent_pid > 0 ? s->agent_pid :
	    JSON_UNKNOWN);
	a = cJSON_AddArrayToObject(root, "pids");
	for (i = 0; i < s->history.pid_count; i++)
		cJSON_AddItemToArray(a, s->history.pids[i] != 0 ?
		    cJSON_CreateNumber(s->history.pids[i]) : cJSON_CreateNull());
}

static cJSON *
status_make(const struct supervisor *s)
{
	cJSON *root = cJSON_CreateObject(), *o;
	char when[CLOCK_TEXT_MAX];
	int used;

	clock_format(clock_wall_ns(&clock_system), when);
	json_add_text(root, "schema", "holdfast.status/1");
	json_add_text(root, "name", s->spec->options.name);
	json_add_text(root, "run_id", s->spec->run_id);
	json_add_text(root, "state", public_state(s));
	json_add_text(root, "stage", recovery_state_name(s->state));
	json_add_int(root, "campaign", s->history.campaign);
	json_add_int(root, "attempt", s->history.attempt);
	add_progress(s, root);
	json_add_int(root, "world_size", s->spec->options.nproc_per_node > 0 ?
	    s->count : JSON_UNKNOWN);
	json_add_text(root, "node", s->node[0] ? s->node : NULL);
	o = cJSON_AddObjectToObject(root, "checkpoint");
	json_add_text(o, "path", s->selection.result == SELECTION_FOUND ?
	    s->selection.path : NULL);
	json_add_int(o, "step", s->selection.result == SELECTION_FOUND ?
	    s->selection.step : JSON_UNKNOWN);
	json_add_int(o, "durable_step", s->durable_step);
	used = s->history.restarts;
	json_add_int(root, "restarts", used);
	json_add_int(root, "restarts_max", s->spec->restarts_max);
	json_add_int(root, "lost_ms", s->lost_ms);
	add_incident(s, root);
	json_add_int(root, "exit_code", s->state == STATE_CLOSED ?
	    s->exit_code : JSON_UNKNOWN);
	add_processes(s, root);
	json_add_text(root, "updated", when);
	return root;
}

void
status_write(struct supervisor *s)
{
	cJSON *root = status_make(s);
	char path[PATH_MAX], *text = json_line(root);

	snprintf(path, sizeof(path), "%.4000s/status.json", s->spec->dir);
	if (text != NULL)
		writer_replace(s->writer, path, text, strlen(text), NULL, NULL);
	cJSON_Delete(root);
	free(text);
}

static void
on_status_timer(void *arg)
{
	status_write(arg);
}

/* The first change is written at once, those that follow within half a second
 * together. */
void
status_changed(struct supervisor *s)
{
	if (s->status_timer == NULL &&
	    loop_timer_new(s->loop, on_status_timer, s, &s->status_timer,
	    NULL) == -1)
		return;
	if (loop_timer_pending(s->status_timer))
		return;
	loop_timer_set(s->status_timer, STATUS_INTERVAL_MS);
	if (s->state != s->status_state) {
		s->status_state = s->state;
		status_write(s);
	}
}
