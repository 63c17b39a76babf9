/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_stage.c - the process that copies staged checkpoints (`holdfast checkpoint
 * stage`), as long as the agent lives: it may hang in a file system, and it goes on
 * when this agent is killed.
 *
 * Reads its events, a line of JSON each; emits notes "stage" with them, and "drained"
 * when it has ended after it was told to.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint/stage_offer.h"
#include "checkpoint/stage_room.h"
#include "common/buf.h"
#include "common/child.h"
#include "common/file.h"
#include "common/json.h"
#include "common/log.h"
#include "supervisor/agent.h"
#include "supervisor/run_stage.h"

#define AGAIN_MS	1000	/* before it is started again */
#define LINE_MAX_LEN	65536
#define NOTE_ROOM	(1u << 20)

struct staging {
	struct agent		*agent;
	struct run_stage	 places;
	pid_t			 pid;		/* 0: none runs */
	int			 in, out;	/* -1 */
	struct loop_watch	*process, *output;
	struct loop_timer	*again;
	struct buf		 line;
	bool			 draining;	/* told to end */
};

static void start(struct staging *);

static void
forward(struct staging *st, const char *line, size_t len)
{
	cJSON *event, *m;

	if (json_parse(line, len, &event, NULL) == -1) {
		log_warn("stage: %.*s", (int)(len < 200 ? len : 200), line);
		return;
	}
	m = agent_message(st->agent, "stage", st->agent->last_attempt);
	cJSON_AddItemToObject(m, "stage", event);
	agent_note(st->agent, m, NOTE_ROOM);
}

static void
on_output(int fd, uint32_t events, void *arg)
{
	struct staging *st = arg;
	char text[8192], *nl;
	ssize_t n;

	(void)events;
	while ((n = read(fd, text, sizeof(text))) > 0)
		if (st->line.len + (size_t)n < LINE_MAX_LEN)
			buf_append(&st->line, text, (size_t)n);
	while (st->line.len > 0 && (nl = memchr(st->line.data, '\n',
	    st->line.len)) != NULL) {
		forward(st, st->line.data, (size_t)(nl - st->line.data));
		buf_consume(&st->line, (size_t)(nl - st->line.data) + 1);
	}
	if (n == 0) {
		loop_unwatch(st->output);
		st->output = NULL;
	}
}

static void
tell_drained(struct agent *a)
{
	agent_note(a, agent_message(a, "drained", a->last_attempt), NOTE_ROOM);
}

static void
forget_process(struct staging *st)
{
	loop_unwatch(st->process);
	loop_unwatch(st->output);
	st->process = st->output = NULL;
	if (st->in != -1)
		close(st->in);
	if (st->out != -1)
		close(st->out);
	st->in = st->out = -1;
	st->pid = 0;
	buf_clear(&st->line);
}

static void
on_ended(pid_t pid, void *arg)
{
	struct staging *st = arg;

	if (st->out != -1)
		on_output(st->out, 0, st);
	(void)waitpid(pid, NULL, WNOHANG);
	forget_process(st);
	if (st->draining) {
		tell_drained(st->agent);
		return;
	}
	log_warn("stage: the process that copies checkpoints ended, starting it "
	    "again");
	loop_timer_set(st->again, AGAIN_MS);
}

static void
on_again(void *arg)
{
	start(arg);
}

/* In the child's place: standard streams, and nothing else of the agent. */
static int
spawn(struct staging *st, const int in[2], const int out[2], struct err *err)
{
	char room[24], speed[24];
	const char *argv[] = { "holdfast", "checkpoint", "stage", "--json",
	    "--end-with-input", "--room", room, "--bandwidth", speed, "--link",
	    st->places.link, "--socket", st->places.socket, st->places.fast,
	    st->places.durable, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none;
	int rc;

	snprintf(room, sizeof(room), "%lld", (long long)st->places.bytes);
	snprintf(speed, sizeof(speed), "%lld",
	    (long long)st->agent->spec->options.stage_bandwidth);
	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, out[1], STDERR_FILENO);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID |
	    POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &none);
	rc = posix_spawn(&st->pid, CHILD_SELF, &files, &attr,
	    (char *const *)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	if (rc == 0)
		return 0;
	st->pid = 0;
	errno = rc;
	return err_errno(err, "cannot start the process that copies checkpoints");
}

static void
start(struct staging *st)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 };
	struct err err = {0};

	if (st->pid != 0)
		return;
	if (pipe2(in, O_CLOEXEC) == -1 || pipe2(out, O_CLOEXEC) == -1) {
		err_errno(&err, "cannot make a pipe");
	} else if (spawn(st, in, out, &err) == 0) {
		st->in = in[1];
		st->out = out[0];
		in[1] = out[0] = -1;
		fcntl(st->out, F_SETFL, O_NONBLOCK);
		if (loop_watch_fd(st->agent->loop, st->out, EPOLLIN, on_output,
		    st, &st->output, &err) == 0)
			(void)loop_watch_process(st->agent->loop, st->pid,
			    on_ended, st, &st->process, &err);
	}
	if (in[0] != -1)
		close(in[0]);
	if (in[1] != -1)
		close(in[1]);
	if (out[0] != -1)
		close(out[0]);
	if (out[1] != -1)
		close(out[1]);
	if (err.code == ERR_NONE)
		return;
	log_error("stage: %s", err.text);
	if (st->pid == 0)
		loop_timer_set(st->again, AGAIN_MS);
}

static int
staging_new(struct agent *a, struct err *err)
{
	struct staging *st = calloc(1, sizeof(*st));

	if (st == NULL)
		return err_memory(err);
	st->agent = a;
	st->in = st->out = -1;
	run_stage_places(a->spec, &st->places);
	if (loop_timer_new(a->loop, on_again, st, &st->again, err) == -1) {
		free(st);
		return -1;
	}
	a->staging = st;
	return 0;
}

/* The copying process looks after the link; but the first save may come before it has
 * begun, and the fast directory may be much smaller than was said.  What is resumed from
 * must be where the trainer looks. */
static int
make_link(struct staging *st, const char *resume, struct err *err)
{
	struct run_stage *p = &st->places;
	struct room r;
	cJSON *m, *event;
	char why[200];

	if (resume != NULL && file_inside(p->fast, resume) != NULL)
		return room_link(p->link, p->fast, err);
	if (room_is_linked(p->link, p->durable))
		return 0;
	if (room_read(p->fast, 0, &r, err) == -1)
		return -1;
	if (r.free >= (uint64_t)p->bytes / 2)
		return room_link(p->link, p->fast, err);
	snprintf(why, sizeof(why), "%s leaves %llu MiB of the %llu MiB of --stage",
	    r.bound, (unsigned long long)r.free >> 20,
	    (unsigned long long)p->bytes >> 20);
	m = agent_message(st->agent, "stage", st->agent->last_attempt);
	event = cJSON_AddObjectToObject(m, "stage");
	json_add_text(event, "event", "switched");
	json_add_text(event, "to", "durable");
	json_add_text(event, "why", why);
	agent_note(st->agent, m, NOTE_ROOM);
	return room_link(p->link, p->durable, err);
}

int
staging_prepare(struct agent *a, const char *resume, struct err *err)
{
	struct staging *st;

	if (a->spec->options.stage == NULL)
		return 0;
	if (a->staging == NULL && staging_new(a, err) == -1)
		return -1;
	st = a->staging;
	if (run_stage_make_fast(&st->places, err) == -1 ||
	    file_mkdirs(st->places.durable, 0777, err) == -1)
		return -1;
	if (make_link(st, resume, err) == -1)
		return -1;
	if (resume != NULL && stage_offer(st->places.fast, st->places.durable,
	    resume, err) == -1)
		return -1;
	st->draining = false;
	start(st);
	return 0;
}

void
staging_attempt_over(struct agent *a)
{
	struct staging *st = a->staging;
	char line[64];
	int n;

	if (st == NULL || st->in == -1)
		return;
	n = snprintf(line, sizeof(line), "drop %lld\n",
	    (long long)clock_wall_ns(&clock_system));
	/* A pipe that nobody reads has room for thousands of these. */
	if (write(st->in, line, (size_t)n) == -1)
		log_warn("stage: cannot be told that the attempt is over");
}

void
staging_drain(struct agent *a)
{
	struct staging *st = a->staging;
	struct err err = {0};

	if (a->spec->options.stage == NULL || (st == NULL &&
	    staging_prepare(a, NULL, &err) == -1) || (st = a->staging) == NULL) {
		tell_drained(a);
		return;
	}
	/* One that ended meanwhile may have left something. */
	start(st);
	loop_timer_cancel(st->again);
	st->draining = true;
	if (st->pid == 0) {
		tell_drained(a);
		return;
	}
	/* One that was just started did not hear that the attempt is over. */
	staging_attempt_over(a);
	close(st->in);
	st->in = -1;
}

void
staging_free(struct agent *a)
{
	struct staging *st = a->staging;

	if (st == NULL)
		return;
	forget_process(st);
	loop_timer_free(st->again);
	buf_fini(&st->line);
	free(st);
	a->staging = NULL;
}
