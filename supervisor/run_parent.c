/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_parent.c - the small process in the foreground.
 *
 * It decides nothing about the run.  It connects to the supervisor if one lives
 * (its parent may have died), else starts one; when that one dies without having
 * said "end", it starts the next, at most RESPAWN_MAX times in RESPAWN_WINDOW.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/json.h"
#include "common/loop.h"
#include "common/writer.h"
#include "common/verb.h"
#include "supervisor/role.h"
#include "supervisor/run_life.h"
#include "supervisor/run_parent.h"
#include "supervisor/wire.h"

#define RESPAWN_MAX		5
#define RESPAWN_WINDOW_NS	(60 * NS_PER_S)
#define CONNECT_MS		20
#define CONNECT_LIMIT_NS	(20 * NS_PER_S)
#define TERMINAL_QUEUE_MAX	(4u << 20)
#define TERMINAL_WAIT_MS	3000

struct parent {
	const struct run_spec	*spec;
	struct loop		*loop;
	struct wire		*wire;
	pid_t			 child;		/* supervisor started here, or 0 */
	struct loop_watch	*child_watch;
	struct loop_timer	*connect;
	int64_t			 connect_until_ns;
	int64_t			 starts_ns[RESPAWN_MAX];
	int			 starts;
	int			 pending[16];	/* signals no supervisor has confirmed */
	int			 pending_count;
	bool			 had_one;	/* a supervisor of this run */
	char			 campaign[16];	/* last one that was over before */
	bool			 ended;
	struct writer		*writer;
	struct writer_file	*terminal;
	bool			 line_start;	/* of the terminal */
	struct err		*err;
};

static void start_or_connect(struct parent *);

int
run_parent_connect(const struct run_spec *spec, struct err *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/control", spec->socket_dir);
	return wire_connect(path, err);
}

/* A terminal that nobody reads (a pager, Ctrl-S) must keep neither signals from
 * being forwarded nor the end from being heard: a thread writes, what does not
 * fit is dropped with a mark. */
static void
show(struct parent *p, const char *text, size_t len)
{
	writer_append(p->terminal, text, len, NULL, NULL);
}

/* Output of ranks, each line with its rank in front unless the launcher has
 * done that. */
static void
show_tee(struct parent *p, const cJSON *m)
{
	const char *text = json_str(m, "text", ""), *nl;
	int64_t rank = json_int(m, "rank", -1);
	int64_t dropped = json_int(m, "dropped", 0);
	struct buf out = {0};
	size_t len;

	if (dropped > 0)
		buf_printf(&out, "[holdfast: %lld bytes not shown]\n",
		    (long long)dropped);
	while (*text != '\0') {
		nl = strchr(text, '\n');
		len = nl ? (size_t)(nl - text) + 1 : strlen(text);
		if (rank >= 0 && p->line_start)
			buf_printf(&out, "[rank%lld]: ", (long long)rank);
		buf_append(&out, text, len);
		p->line_start = nl != NULL;
		text += len;
	}
	show(p, out.data ? out.data : "", out.len);
	buf_fini(&out);
}

static void
show_record(struct parent *p, const cJSON *m)
{
	char *line = json_line(cJSON_GetObjectItem(m, "record"));

	if (line != NULL)
		show(p, line, strlen(line));
	free(line);
}

/* A supervisor that dies with the signal unread confirms nothing: the next one
 * gets it again. */
static void
take_heard(struct parent *p, int sig)
{
	int i;

	for (i = 0; i < p->pending_count; i++) {
		if (p->pending[i] != sig)
			continue;
		memmove(p->pending + i, p->pending + i + 1,
		    (size_t)(--p->pending_count - i) * sizeof(int));
		return;
	}
}

static void
on_message(const char *type, const cJSON *m, void *arg)
{
	struct parent *p = arg;
	const char *text;

	if (strcmp(type, "say") == 0) {
		text = json_str(m, "text", "");
		if (!p->line_start)
			show(p, "\n", 1);
		p->line_start = true;
		show(p, text, strlen(text));
	} else if (strcmp(type, "tee") == 0) {
		show_tee(p, m);
	} else if (strcmp(type, "record") == 0) {
		show_record(p, m);
	} else if (strcmp(type, "heard") == 0) {
		take_heard(p, (int)json_int(m, "signal", 0));
	} else if (strcmp(type, "end") == 0) {
		p->ended = true;
		loop_stop(p->loop, (int)json_int(m, "code", EXIT_NEGATIVE));
	}
}

static void
fail(struct parent *p)
{
	loop_stop(p->loop, -1);
}

static void
on_close(const struct err *why, void *arg)
{
	struct parent *p = arg;

	(void)why;
	wire_free(p->wire);
	p->wire = NULL;
	/* Without "end" it crashed or was killed: the ranks live on, and the
	 * next supervisor takes them over. */
	if (!p->ended)
		start_or_connect(p);
}

static void
send_signal(struct parent *p, int sig)
{
	cJSON *m = wire_message("signal");

	json_add_int(m, "signal", sig);
	wire_send(p->wire, m);
}

static void
connected(struct parent *p, int fd)
{
	struct err err = {0};
	cJSON *m;
	int i;

	if (wire_new(p->loop, fd, on_message, on_close, p, &p->wire,
	    &err) == -1) {
		close(fd);
		*p->err = err;
		fail(p);
		return;
	}
	p->had_one = true;
	m = wire_message("attach");
	cJSON_AddBoolToObject(m, "json", p->spec->options.json);
	wire_send(p->wire, m);
	for (i = 0; i < p->pending_count; i++)
		send_signal(p, p->pending[i]);
}


static void
on_child_over(pid_t pid, void *arg)
{
	struct parent *p = arg;
	int status = 0;

	waitpid(pid, &status, 0);
	loop_unwatch(p->child_watch);
	p->child_watch = NULL;
	p->child = 0;
	/* It never listened: a usage or system error, already printed. */
	if (p->wire == NULL && !p->ended && WIFEXITED(status)) {
		err_set(p->err, ERR_SYSTEM, "the supervisor could not start "
		    "(see %s/agents/supervisor.log)", p->spec->dir);
		fail(p);
	}
}

static int
open_log(const struct run_spec *spec)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/agents/supervisor.log", spec->dir);
	return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int
spawn_supervisor(struct parent *p)
{
	int log_fd = open_log(p->spec), rc;

	if (log_fd == -1)
		return err_errno(p->err, "cannot open %s/agents/supervisor.log",
		    p->spec->dir);
	rc = role_start("supervisor", p->spec->dir, p->had_one ? p->campaign :
	    NULL, log_fd, &p->child, p->err);
	close(log_fd);
	if (rc == -1)
		return -1;
	p->had_one = true;
	return loop_watch_process(p->loop, p->child, on_child_over, p,
	    &p->child_watch, p->err);
}

static bool
may_start(struct parent *p)
{
	int64_t now = clock_mono_ns(&clock_system);
	int64_t oldest = p->starts_ns[p->starts % RESPAWN_MAX];

	if (p->starts >= RESPAWN_MAX && now - oldest < RESPAWN_WINDOW_NS)
		return false;
	p->starts_ns[p->starts++ % RESPAWN_MAX] = now;
	return true;
}

static void
on_connect(void *arg)
{
	struct parent *p = arg;
	struct err err = {0};
	int fd;

	if ((fd = run_parent_connect(p->spec, &err)) != -1) {
		connected(p, fd);
		return;
	}
	if (p->child == 0) {
		if (!may_start(p)) {
			err_set(p->err, ERR_LIMIT, "the supervisor crashed %d "
			    "times in a minute (see %s/agents/supervisor.log); "
			    "the ranks may live: holdfast status %s",
			    RESPAWN_MAX, p->spec->dir, p->spec->options.name);
			fail(p);
			return;
		}
		if (spawn_supervisor(p) == -1) {
			fail(p);
			return;
		}
	}
	if (clock_mono_ns(&clock_system) > p->connect_until_ns) {
		*p->err = err;
		fail(p);
		return;
	}
	loop_timer_set(p->connect, CONNECT_MS);
}

static void
start_or_connect(struct parent *p)
{
	p->connect_until_ns = clock_mono_ns(&clock_system) + CONNECT_LIMIT_NS;
	loop_timer_set(p->connect, 0);
}

static void
on_signal(const struct signalfd_siginfo *si, void *arg)
{
	struct parent *p = arg;

	if (si->ssi_signo == SIGHUP)
		return;		/* the terminal went; the run does not */
	if (p->pending_count < 16)
		p->pending[p->pending_count++] = (int)si->ssi_signo;
	if (p->wire != NULL)
		send_signal(p, (int)si->ssi_signo);
}

int
run_parent(const struct run_spec *spec, int first_signal, struct err *err)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGUSR1, SIGHUP, 0 };
	struct parent p = { .spec = spec, .err = err, .line_start = true };
	int rc = -1;

	signal(SIGPIPE, SIG_IGN);
	if (loop_new(&p.loop, err) == -1 ||
	    loop_watch_signals(p.loop, signals, on_signal, &p, NULL,
	    err) == -1 ||
	    loop_timer_new(p.loop, on_connect, &p, &p.connect, err) == -1 ||
	    writer_new(p.loop, TERMINAL_QUEUE_MAX, &p.writer, err) == -1 ||
	    writer_adopt(p.writer, STDOUT_FILENO, &p.terminal, err) == -1)
		goto out;
	snprintf(p.campaign, sizeof(p.campaign), "%d", run_life_campaign(spec));
	if (first_signal != 0)
		p.pending[p.pending_count++] = first_signal;
	start_or_connect(&p);
	rc = loop_run(p.loop, err);
	wire_free(p.wire);
out:
	writer_close(p.terminal);
	writer_free(p.writer, TERMINAL_WAIT_MS);
	loop_free(p.loop);
	return rc;
}
