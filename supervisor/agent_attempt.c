/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_attempt.c - one attempt on this node.
 *
 * Decides when the kill ladder goes on and when the attempt counts as gone:
 * after ECHILD from the reaper (or empty sweeps when the reaper was killed), the
 * end of all output, and its arrival in the files.  Reads the reaper's reports;
 * emits events, and NODE.exits for `holdfast diagnose`.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/log.h"
#include "supervisor/agent_attempt.h"
#include "supervisor/proc.h"

#define FLUSH_WAIT_MS	5000

static const char *const phase_names[] = { "starting", "running", "ending",
    "gone" };

static void exits_say(struct attempt *, const char *, ...)
    __attribute__((format(printf, 2, 3)));

/* One line of NODE.exits; diagnose knows their wording (rules/holdfast.yaml). */
static void
exits_say(struct attempt *at, const char *fmt, ...)
{
	char when[CLOCK_TEXT_MAX], text[512], line[640];
	va_list ap;
	int n;

	clock_format(clock_wall_ns(&clock_system), when);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	n = snprintf(line, sizeof(line), "%s holdfast: %s\n", when, text);
	writer_append(at->exits, line, (size_t)n, NULL, NULL);
}

/* "rank 2 (pid 123)" */
static void
name_main(const struct attempt *at, int i, char *out, size_t size)
{
	if (at->rank0 < 0)
		snprintf(out, size, "the launcher (pid %d)",
		    (int)at->mains[i].pid);
	else
		snprintf(out, size, "rank %d (pid %d)", at->rank0 + i,
		    (int)at->mains[i].pid);
}

static bool
outputs_ended(const struct attempt *at)
{
	int i;

	for (i = 0; i < at->count; i++)
		if (at->outputs[i] != NULL && !output_ended(at->outputs[i]))
			return false;
	return true;
}

static void
tell_gone(struct attempt *at)
{
	struct agent *a = at->agent;
	cJSON *m;

	if (at->phase == PHASE_GONE)
		return;
	at->phase = PHASE_GONE;
	m = agent_message(a, "gone", at->number);
	json_add_text(m, "proof", at->proof);
	json_add_int(m, "killed", at->killed);
	json_add_int(m, "unreadable", at->unreadable);
	agent_event(a, m);
	agent_attempt_over(a);
}

static void
on_flushed(int errnum, void *arg)
{
	struct agent *a = arg;

	(void)errnum;
	if (a->attempt != NULL && a->attempt->proven)
		tell_gone(a->attempt);
}

static void
on_flush_timeout(void *arg)
{
	tell_gone(arg);
}

/* Gone is told when nothing runs, all output was read, and it is in the files
 * (or the file system had its chance). */
static void
check_gone(struct attempt *at)
{
	char when[CLOCK_TEXT_MAX], line[128];
	int n;

	if (!at->proven || at->flushed)
		return;
	/* Someone outside the tree may hold a pipe open; what nobody of the
	 * attempt can write any more is not waited for long. */
	if (!loop_timer_pending(at->flush))
		loop_timer_set(at->flush, FLUSH_WAIT_MS);
	if (!outputs_ended(at))
		return;
	at->flushed = true;
	kernel_catch_up(at->kernel);
	clock_format(clock_wall_ns(&clock_system), when);
	n = snprintf(line, sizeof(line), "%s holdfast: attempt %d is over\n",
	    when, at->number);
	/* The writer keeps order: when this line is synced, all is written.  A
	 * file system that hangs gets its chance, no more. */
	writer_append(at->exits, line, (size_t)n, on_flushed, at->agent);
}

void
attempt_output_ended(struct attempt *at)
{
	check_gone(at);
}

static void
tell_exit(struct attempt *at, int i, const cJSON *report)
{
	const char *kind = json_str(report, "kind", "exited");
	int status = (int)json_int(report, "status", 0), k;
	cJSON *m = agent_message(at->agent, "exit", at->number);
	char who[64];

	for (k = 0; k < at->count; k++)
		if (at->outputs[k] != NULL)
			output_flush(at->outputs[k]);
	name_main(at, i, who, sizeof(who));
	if (strcmp(kind, "exited") == 0)
		exits_say(at, "node %s: %s exited with status %d",
		    at->agent->node, who, status);
	else
		exits_say(at, "node %s: %s was ended by signal %d (SIG%s)",
		    at->agent->node, who, status,
		    sigabbrev_np(status) ? sigabbrev_np(status) : "?");
	json_add_int(m, "rank", at->rank0 < 0 ? JSON_UNKNOWN : at->rank0 + i);
	json_add_int(m, "index", i);
	json_add_int(m, "pid", at->mains[i].pid);
	json_add_text(m, "kind", kind);
	json_add_int(m, "status", status);
	json_add_text(m, "time_ns", json_str(report, "time_ns", NULL));
	agent_event(at->agent, m);
}

static void
on_exit_report(struct attempt *at, const cJSON *report)
{
	int64_t i = json_int(report, "index", -1);

	if (i < 0 || i >= at->count || at->mains[i].over)
		return;
	at->mains[i].over = true;
	tell_exit(at, (int)i, report);
}

static void
on_spawned(struct attempt *at, const cJSON *report)
{
	const cJSON *pids = cJSON_GetObjectItem(report, "pids"), *pid;
	cJSON *m = agent_message(at->agent, "started", at->number);
	int i = 0;

	cJSON_ArrayForEach(pid, pids)
		if (i < at->count && cJSON_IsNumber(pid))
			at->mains[i++].pid = (pid_t)pid->valuedouble;
	at->phase = PHASE_RUNNING;
	json_add_int(m, "rank0", at->rank0);
	json_add_int(m, "port", at->port);
	cJSON_AddItemToObject(m, "pids", cJSON_Duplicate(pids, true));
	agent_event(at->agent, m);
}

static void
on_spawn_failed(struct attempt *at, const cJSON *report)
{
	cJSON *m = agent_message(at->agent, "failed", at->number);
	const char *text = json_str(report, "text", "cannot start");

	exits_say(at, "node %s: %s", at->agent->node, text);
	json_add_int(m, "errnum", json_int(report, "errnum", 0));
	json_add_text(m, "text", text);
	agent_event(at->agent, m);
}

/* What KILL does not end is in the kernel's hands; its wait channel tells where. */
static void
on_stuck(struct attempt *at, const cJSON *report)
{
	cJSON *m = agent_message(at->agent, "stuck", at->number);
	const cJSON *list = cJSON_GetObjectItem(report, "processes"), *p;

	cJSON_ArrayForEach(p, list)
		exits_say(at, "node %s: pid %d (%s) does not die: state %s, "
		    "waits in %s", at->agent->node, (int)json_int(p, "pid", 0),
		    json_str(p, "comm", "?"), json_str(p, "state", "?"),
		    json_str(p, "wchan", "?"));
	cJSON_AddItemToObject(m, "processes", cJSON_Duplicate(list, true));
	agent_event(at->agent, m);
}

void
attempt_report(const char *type, const cJSON *report, void *arg)
{
	struct attempt *at = arg;

	if (strcmp(type, "exit") == 0) {
		on_exit_report(at, report);
	} else if (strcmp(type, "spawned") == 0) {
		on_spawned(at, report);
	} else if (strcmp(type, "spawn_failed") == 0) {
		on_spawn_failed(at, report);
	} else if (strcmp(type, "stuck") == 0) {
		on_stuck(at, report);
	} else if (strcmp(type, "gone") == 0) {
		at->killed += (int)json_int(report, "killed", 0);
		at->proof = "echild";
		at->proven = true;
		loop_timer_cancel(at->ladder);
		check_gone(at);
	}
}

/* The reaper should not end before it has said "gone": somebody killed it. Its
 * ranks get KILL from the kernel (PR_SET_PDEATHSIG), their children fall to this
 * process; the environment finds them all. */
void
attempt_reaper_lost(const struct err *why, void *arg)
{
	struct attempt *at = arg;

	(void)why;
	wire_free(at->reaper);
	at->reaper = NULL;
	if (at->proven)
		return;
	log_warn("the reaper of attempt %d was lost, sweeping", at->number);
	exits_say(at, "node %s: the reaper was lost, ending its processes",
	    at->agent->node);
	loop_timer_set(at->sweep, 0);
}

static void
on_sweep(void *arg)
{
	struct attempt *at = arg;
	cJSON *report;
	int i, left;

	left = sweep_pass(at->agent->spec, &at->killed,
	    &at->unreadable);
	at->empty_passes = left == 0 ? at->empty_passes + 1 : 0;
	if (at->empty_passes < SWEEP_EMPTY_PASSES) {
		loop_timer_set(at->sweep, SWEEP_MS);
		return;
	}
	for (i = 0; i < at->count; i++) {
		if (at->mains[i].over || at->mains[i].pid == 0)
			continue;
		at->mains[i].over = true;
		report = cJSON_CreateObject();
		json_add_text(report, "kind", "signaled");
		json_add_int(report, "status", SIGKILL);
		tell_exit(at, i, report);
		cJSON_Delete(report);
	}
	at->proof = "scan";
	at->proven = true;
	check_gone(at);
}

static void
on_ladder(void *arg)
{
	struct attempt *at = arg;
	char who[64];
	int i;

	for (i = 0; i < at->count; i++) {
		if (at->mains[i].over)
			continue;
		name_main(at, i, who, sizeof(who));
		exits_say(at, "node %s: %s did not end within %lld s and was "
		    "killed", at->agent->node, who,
		    (long long)at->grace_ms / 1000);
	}
	wire_send(at->reaper, wire_message("kill"));
}

/* What the ranks that still run do at this moment is evidence: a stopped or a
 * stuck one may be why the others failed. */
static void
note_states(struct attempt *at)
{
	char who[64], wchan[PROC_WCHAN_MAX];
	struct proc_stat st;
	int i;

	for (i = 0; i < at->count; i++) {
		if (at->mains[i].over ||
		    proc_read_stat(at->mains[i].pid, &st) == -1)
			continue;
		proc_read_wchan(st.pid, wchan);
		name_main(at, i, who, sizeof(who));
		exits_say(at, "node %s: %s was still running (state %c%s%s)",
		    at->agent->node, who, st.state, wchan[0] ? ", in " : "",
		    wchan);
	}
}

void
attempt_stop(struct attempt *at, int64_t grace_ms, const char *why)
{
	if (at->proven || at->reaper == NULL)
		return;
	if (at->phase == PHASE_ENDING && loop_timer_pending(at->ladder) &&
	    grace_ms >= at->grace_ms)
		return;
	if (at->phase != PHASE_ENDING)
		note_states(at);
	at->phase = PHASE_ENDING;
	at->grace_ms = grace_ms;
	if (grace_ms > 0) {
		exits_say(at, "attempt stopped: sending SIGTERM to the remaining "
		    "ranks (%s)", why);
		wire_send(at->reaper, wire_message("term"));
		loop_timer_set(at->ladder, grace_ms);
	} else {
		exits_say(at, "attempt stopped: sending SIGKILL to the remaining "
		    "ranks (%s)", why);
		wire_send(at->reaper, wire_message("kill"));
	}
}

void
attempt_signal(struct attempt *at, int sig)
{
	cJSON *m = wire_message("signal");

	json_add_int(m, "signal", sig);
	wire_send(at->reaper, m);
}

bool
attempt_is_over(const struct attempt *at)
{
	return at->phase == PHASE_GONE;
}

void
attempt_describe(const struct attempt *at, cJSON *hello)
{
	cJSON *pids = cJSON_AddArrayToObject(hello, "pids");
	int i;

	for (i = 0; i < at->count; i++)
		cJSON_AddItemToArray(pids, cJSON_CreateNumber(
		    at->mains[i].over ? 0 : at->mains[i].pid));
	json_add_text(hello, "phase", phase_names[at->phase]);
	json_add_int(hello, "rank0", at->rank0);
}

int
attempt_make_timers(struct attempt *at, struct err *err)
{
	struct loop *loop = at->agent->loop;

	if (loop_timer_new(loop, on_ladder, at, &at->ladder, err) == -1 ||
	    loop_timer_new(loop, on_flush_timeout, at, &at->flush, err) == -1 ||
	    loop_timer_new(loop, on_sweep, at, &at->sweep, err) == -1)
		return -1;
	return 0;
}

void
attempt_free(struct attempt *at)
{
	int i;

	if (at == NULL)
		return;
	for (i = 0; at->outputs != NULL && i < at->count; i++)
		output_free(at->outputs[i]);
	writer_close(at->exits);
	wire_free(at->reaper);
	if (at->port_fd != -1)
		close(at->port_fd);
	loop_timer_free(at->ladder);
	loop_timer_free(at->flush);
	loop_timer_free(at->sweep);
	evidence_free(at->evidence);
	kernel_end(at->kernel);
	watch_free(at->watch);
	free(at->mains);
	free(at->outputs);
	free(at);
}
