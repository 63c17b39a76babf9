/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reaper.c - spawns the main processes of an attempt, reports their ends, kills
 * on order, and proves by ECHILD that nothing is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "common/loop.h"
#include "supervisor/proc.h"
#include "supervisor/reaper.h"
#include "supervisor/spawn.h"
#include "supervisor/verbs.h"
#include "supervisor/wire.h"

#define KILL_PASS_MS	20
#define STUCK_AFTER_MS	2000
#define STUCK_LIST_MAX	64

struct main_process {
	pid_t			 pid;
	struct loop_watch	*watch;
	bool			 over;
};

struct reaper {
	struct loop		*loop;
	struct wire		*agent;
	struct loop_watch	*signals;
	struct main_process	*mains;
	int			 count;
	bool			 spawned;
	bool			 killing;
	bool			 gone;
	int64_t			 kill_since_ns;
	int64_t			 stuck_said_ns;
	int			 killed;
	struct loop_timer	*kill_timer;
};

static void
say_gone(struct reaper *r)
{
	cJSON *m;

	if (r->gone)
		return;
	r->gone = true;
	loop_timer_cancel(r->kill_timer);
	m = wire_message("gone");
	json_add_int(m, "killed", r->killed);
	wire_send(r->agent, m);
	if (r->agent == NULL)
		loop_stop(r->loop, 0);
}

static void
say_exit(struct reaper *r, int index, const siginfo_t *si)
{
	cJSON *m = wire_message("exit");
	bool exited = si->si_code == CLD_EXITED;

	json_add_int(m, "index", index);
	json_add_int(m, "pid", si->si_pid);
	json_add_text(m, "kind", exited ? "exited" : "signaled");
	json_add_int(m, "status", si->si_status);
	cJSON_AddBoolToObject(m, "core", si->si_code == CLD_DUMPED);
	/* Nanoseconds since 1970 do not fit a double exactly: text. */
	char when[32];

	snprintf(when, sizeof(when), "%lld",
	    (long long)clock_wall_ns(&clock_system));
	json_add_text(m, "time_ns", when);
	wire_send(r->agent, m);
}

static struct main_process *
find_main(struct reaper *r, pid_t pid, int *index)
{
	int i;

	for (i = 0; i < r->count; i++) {
		if (r->mains[i].pid == pid && !r->mains[i].over) {
			*index = i;
			return &r->mains[i];
		}
	}
	return NULL;
}

/* Reaps whatever has ended; main processes are reported. */
static void
reap(struct reaper *r)
{
	struct main_process *m;
	siginfo_t si;
	int index;

	for (;;) {
		si = (siginfo_t){0};
		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG) == -1) {
			if (errno == EINTR)
				continue;
			if (errno == ECHILD && r->spawned)
				say_gone(r);
			return;
		}
		if (si.si_pid == 0)
			return;
		if ((m = find_main(r, si.si_pid, &index)) == NULL)
			continue;
		m->over = true;
		loop_unwatch(m->watch);
		m->watch = NULL;
		say_exit(r, index, &si);
	}
}

static void
on_main_over(pid_t pid, void *arg)
{
	(void)pid;
	reap(arg);
}

static void
on_signal(const struct signalfd_siginfo *si, void *arg)
{
	/* TERM, INT and HUP are for the ranks' ladder, which the agent climbs;
	 * here they are only kept from ending the reaper. */
	if (si->ssi_signo == SIGCHLD)
		reap(arg);
}

static void
say_stuck(struct reaper *r, const struct proc_stat *list, size_t n,
    const bool *mark)
{
	cJSON *m = wire_message("stuck"), *a, *o;
	char wchan[PROC_WCHAN_MAX];
	int listed = 0;
	size_t i;

	a = cJSON_AddArrayToObject(m, "processes");
	for (i = 0; i < n && listed < STUCK_LIST_MAX; i++) {
		if (!mark[i] || !proc_can_run(&list[i]))
			continue;
		proc_read_wchan(list[i].pid, wchan);
		o = cJSON_CreateObject();
		json_add_int(o, "pid", list[i].pid);
		json_add_text(o, "comm", list[i].comm);
		json_add_text(o, "state", (char[]){ list[i].state, '\0' });
		json_add_text(o, "wchan", wchan);
		cJSON_AddItemToArray(a, o);
		listed++;
	}
	if (listed > 0)
		wire_send(r->agent, m);
	else
		cJSON_Delete(m);
}

/* One pass of KILL over all descendants. A process may fork between the look
 * and the blow, so passes go on until ECHILD. */
static void
kill_pass(struct reaper *r)
{
	int64_t now = clock_mono_ns(&clock_system);
	struct proc_stat *list = NULL;
	bool *mark = NULL;
	size_t n, i;

	if (proc_list(&list, &n) == -1 ||
	    (mark = calloc(n + 1, sizeof(*mark))) == NULL)
		goto out;
	proc_mark_descendants(list, n, getpid(), mark);
	for (i = 0; i < n; i++)
		if (mark[i] && proc_can_run(&list[i]) &&
		    kill(list[i].pid, SIGKILL) == 0 &&
		    now - r->kill_since_ns < STUCK_AFTER_MS * NS_PER_MS)
			r->killed++;
	if (now - r->kill_since_ns > STUCK_AFTER_MS * NS_PER_MS &&
	    now - r->stuck_said_ns > 5 * STUCK_AFTER_MS * NS_PER_MS) {
		r->stuck_said_ns = now;
		say_stuck(r, list, n, mark);
	}
out:
	free(mark);
	free(list);
}

static void
on_kill_timer(void *arg)
{
	struct reaper *r = arg;

	reap(r);
	if (r->gone)
		return;
	kill_pass(r);
	reap(r);
	if (!r->gone)
		loop_timer_set(r->kill_timer, KILL_PASS_MS);
}

static void
kill_everything(struct reaper *r)
{
	if (r->killing || r->gone)
		return;
	r->killing = true;
	r->kill_since_ns = clock_mono_ns(&clock_system);
	on_kill_timer(r);
}

static void
signal_mains(struct reaper *r, int sig)
{
	int i;

	for (i = 0; i < r->count; i++)
		if (!r->mains[i].over)
			kill(r->mains[i].pid, sig);
}

static void
say_spawn_failed(struct reaper *r, const struct err *err)
{
	cJSON *m = wire_message("spawn_failed");

	json_add_int(m, "errnum", err->errnum);
	json_add_text(m, "text", err->text);
	wire_send(r->agent, m);
}

static void
spawn_mains(struct reaper *r, const cJSON *order)
{
	struct spawn_plan plan;
	cJSON *m, *pids;
	struct err err = {0};
	int i;

	if (r->spawned || spawn_plan_read(order, &plan, &err) == -1) {
		say_spawn_failed(r, &err);
		return;
	}
	/* A rank gets its own pipe as standard output, and no other. */
	for (i = 0; i < plan.count; i++)
		fcntl(REAPER_OUTPUT_FD + i, F_SETFD, FD_CLOEXEC);
	r->mains = calloc((size_t)plan.count, sizeof(*r->mains));
	m = wire_message("spawned");
	pids = cJSON_AddArrayToObject(m, "pids");
	r->spawned = true;
	for (i = 0; r->mains != NULL && i < plan.count; i++) {
		if (spawn_main(&plan, i, REAPER_OUTPUT_FD + i, &r->mains[i].pid,
		    &err) == -1) {
			say_spawn_failed(r, &err);
			cJSON_Delete(m);
			m = NULL;
			break;
		}
		r->count = i + 1;
		cJSON_AddItemToArray(pids,
		    cJSON_CreateNumber(r->mains[i].pid));
	}
	/* End of file on the agent's side must mean that the ranks closed
	 * theirs. */
	for (i = 0; i < plan.count; i++)
		close(REAPER_OUTPUT_FD + i);
	spawn_plan_fini(&plan);
	if (m == NULL) {
		kill_everything(r);
		return;
	}
	wire_send(r->agent, m);
	for (i = 0; i < r->count; i++)
		if (loop_watch_process(r->loop, r->mains[i].pid, on_main_over,
		    r, &r->mains[i].watch, &err) == -1)
			log_warn("%s; SIGCHLD serves instead", err.text);
}

static void
on_order(const char *type, const cJSON *order, void *arg)
{
	struct reaper *r = arg;

	if (strcmp(type, "spawn") == 0) {
		spawn_mains(r, order);
	} else if (strcmp(type, "signal") == 0) {
		signal_mains(r, (int)json_int(order, "signal", 0));
	} else if (strcmp(type, "term") == 0) {
		signal_mains(r, SIGTERM);
		signal_mains(r, SIGCONT);
	} else if (strcmp(type, "kill") == 0) {
		kill_everything(r);
	} else {
		log_warn("unknown order '%s'", type);
	}
}

static void
on_agent_lost(const struct err *why, void *arg)
{
	struct reaper *r = arg;

	(void)why;
	wire_free(r->agent);
	r->agent = NULL;
	if (r->gone || !r->spawned) {
		loop_stop(r->loop, 0);
		return;
	}
	log_warn("the agent is gone, ending the ranks");
	kill_everything(r);
}

static int
reaper_run(const struct verb *v, int argc, char **argv)
{
	static const int signals[] = { SIGCHLD, SIGTERM, SIGINT, SIGHUP, 0 };
	struct reaper r = {0};
	struct err err = {0};

	(void)v;
	(void)argc;
	(void)argv;
	log_open_environment("reaper");
	signal(SIGPIPE, SIG_IGN);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) == -1) {
		log_error("cannot become a subreaper: %s", strerror(errno));
		return EXIT_NEGATIVE;
	}
	fcntl(REAPER_SOCKET_FD, F_SETFD, FD_CLOEXEC);
	if (loop_new(&r.loop, &err) == -1 ||
	    loop_watch_signals(r.loop, signals, on_signal, &r, &r.signals,
	    &err) == -1 ||
	    loop_timer_new(r.loop, on_kill_timer, &r, &r.kill_timer,
	    &err) == -1 ||
	    wire_new(r.loop, REAPER_SOCKET_FD, on_order, on_agent_lost, &r,
	    &r.agent, &err) == -1 || loop_run(r.loop, &err) == -1) {
		log_error("%s", err.text);
		return EXIT_NEGATIVE;
	}
	free(r.mains);
	loop_free(r.loop);
	return EXIT_OK;
}

const struct verb verb_reaper = {
	.name = "reaper",
	.summary = "own the processes of an attempt (started by the agent)",
	.run = reaper_run,
	.internal = true
};
