/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child.c - runs one child in the loop: posix_spawn, three pipes, a pidfd and
 * a deadline.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child.h"

extern char **environ;

#define STUCK_AFTER_MS	1000

struct child_stream {
	struct child		*child;
	int			 fd;
	struct loop_watch	*watch;
	struct buf		*into;
};

struct child {
	struct loop		*loop;
	pid_t			 pid;
	struct loop_watch	*process;
	struct loop_timer	*deadline;
	struct child_stream	 out, errors, in;
	struct buf		 input;
	size_t			 output_max;
	child_done_fn		 done;
	void			*arg;
	struct child_result	 result;
	bool			 over;		/* reaped */
	bool			 killed;	/* at the deadline */
};

static void
stream_close(struct child_stream *s)
{
	loop_unwatch(s->watch);
	s->watch = NULL;
	if (s->fd != -1)
		close(s->fd);
	s->fd = -1;
}

static void
child_release(struct child *c)
{
	stream_close(&c->in);
	stream_close(&c->out);
	stream_close(&c->errors);
	loop_unwatch(c->process);
	loop_timer_free(c->deadline);
	buf_fini(&c->input);
	buf_fini(&c->result.out);
	buf_fini(&c->result.errors);
	free(c);
}

/* Done when the process is reaped and its output has ended, or at once when it
 * was killed: a grandchild may hold the pipes open for ever. */
static void
child_finish(struct child *c)
{
	if (!c->over && c->result.end != CHILD_STUCK)
		return;
	if (!c->killed && (c->out.fd != -1 || c->errors.fd != -1))
		return;
	if (c->done != NULL)
		c->done(&c->result, c->arg);
	child_release(c);
}

static void
on_output(int fd, uint32_t events, void *arg)
{
	struct child_stream *s = arg;
	struct child *c = s->child;
	char chunk[16384];
	ssize_t n;
	size_t room;

	(void)events;
	n = read(fd, chunk, sizeof(chunk));
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		stream_close(s);
		child_finish(c);
		return;
	}
	room = c->output_max - s->into->len;
	if ((size_t)n > room) {
		c->result.truncated = true;
		n = (ssize_t)room;
	}
	if (n > 0 && buf_append(s->into, chunk, (size_t)n) == -1)
		c->result.truncated = true;
}

static void
on_input(int fd, uint32_t events, void *arg)
{
	struct child *c = arg;
	ssize_t n;

	(void)events;
	n = write(fd, c->input.data, c->input.len);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		buf_consume(&c->input, (size_t)n);
	if (n <= 0 || c->input.len == 0)
		stream_close(&c->in);
}

static void
on_exit_of_child(pid_t pid, void *arg)
{
	struct child *c = arg;
	siginfo_t si = {0};

	if (waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG) == -1) {
		/* Someone else has reaped it: how it ended is unknown. */
		si.si_code = CLD_EXITED;
		si.si_status = 255;
	}
	if (si.si_pid == 0 && si.si_code != CLD_EXITED)
		return;
	if (!c->killed) {
		c->result.end = si.si_code == CLD_EXITED ? CHILD_EXITED :
		    CHILD_SIGNALED;
		c->result.code = si.si_status;
	}
	c->over = true;
	loop_unwatch(c->process);
	c->process = NULL;
	child_finish(c);
}

static void
on_deadline(void *arg)
{
	struct child *c = arg;

	if (!c->killed) {
		c->killed = true;
		c->result.end = CHILD_DEADLINE;
		kill(-c->pid, SIGKILL);
		if (c->over) {
			child_finish(c);
			return;
		}
		loop_timer_set(c->deadline, STUCK_AFTER_MS);
		return;
	}
	c->result.end = CHILD_STUCK;
	child_finish(c);
}

static int
child_spawn(struct child *c, const struct child_spec *spec, const int fds[3],
    struct err *err)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, defaults;
	int rc;

	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	sigemptyset(&none);
	sigfillset(&defaults);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP |
	    POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &defaults);
	posix_spawn_file_actions_adddup2(&actions, fds[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, fds[2], STDERR_FILENO);
	rc = posix_spawnp(&c->pid, spec->argv[0], &actions, &attr,
	    (char *const *)(uintptr_t)spec->argv,
	    spec->envp ? (char *const *)(uintptr_t)spec->envp : environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	if (rc == 0)
		return 0;
	errno = rc;
	return err_errno(err, "cannot start %s", spec->argv[0]);
}

static int
stream_watch(struct child *c, struct child_stream *s, uint32_t events,
    loop_fd_fn fn, void *arg, struct err *err)
{
	if (fcntl(s->fd, F_SETFL, O_NONBLOCK) == -1)
		return err_errno(err, "cannot set up a pipe");
	return loop_watch_fd(c->loop, s->fd, events, fn, arg, &s->watch, err);
}

static int
child_watch(struct child *c, int64_t deadline_ms, struct err *err)
{
	if (stream_watch(c, &c->out, EPOLLIN, on_output, &c->out, err) == -1 ||
	    stream_watch(c, &c->errors, EPOLLIN, on_output, &c->errors,
	    err) == -1)
		return -1;
	if (c->input.len == 0)
		stream_close(&c->in);
	else if (stream_watch(c, &c->in, EPOLLOUT, on_input, c, err) == -1)
		return -1;
	if (loop_watch_process(c->loop, c->pid, on_exit_of_child, c,
	    &c->process, err) == -1 ||
	    loop_timer_new(c->loop, on_deadline, c, &c->deadline, err) == -1)
		return -1;
	loop_timer_set(c->deadline, deadline_ms);
	return 0;
}

int
child_start(struct loop *loop, const struct child_spec *spec,
    child_done_fn done, void *arg, struct child **out, struct err *err)
{
	int in[2] = {-1, -1}, o[2] = {-1, -1}, e[2] = {-1, -1}, rc = -1;
	struct child *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return err_memory(err);
	*c = (struct child){ .loop = loop, .done = done, .arg = arg,
	    .output_max = spec->output_max ? spec->output_max : 1u << 20 };
	c->out = (struct child_stream){ c, -1, NULL, &c->result.out };
	c->errors = (struct child_stream){ c, -1, NULL, &c->result.errors };
	c->in = (struct child_stream){ c, -1, NULL, NULL };
	if (buf_append(&c->input, spec->input, spec->input_len) == -1) {
		err_memory(err);
		goto out;
	}
	if (pipe2(in, O_CLOEXEC) == -1 || pipe2(o, O_CLOEXEC) == -1 ||
	    pipe2(e, O_CLOEXEC) == -1) {
		err_errno(err, "cannot make pipes for %s", spec->argv[0]);
		goto out;
	}
	if (child_spawn(c, spec, (int[]){ in[0], o[1], e[1] }, err) == -1)
		goto out;
	c->in.fd = in[1];
	c->out.fd = o[0];
	c->errors.fd = e[0];
	in[1] = o[0] = e[0] = -1;
	if (child_watch(c, spec->deadline_ms, err) == -1) {
		child_cancel(c);
		c = NULL;
		goto out;
	}
	if (out != NULL)
		*out = c;
	c = NULL;
	rc = 0;
out:
	for (int i = 0; i < 2; i++) {
		if (in[i] != -1)
			close(in[i]);
		if (o[i] != -1)
			close(o[i]);
		if (e[i] != -1)
			close(e[i]);
	}
	if (c != NULL)
		child_release(c);
	return rc;
}

void
child_cancel(struct child *c)
{
	if (c == NULL)
		return;
	if (!c->over)
		kill(-c->pid, SIGKILL);
	if (c->over || c->process == NULL) {
		child_release(c);
		return;
	}
	/* It stays until it is reaped, but says nothing more. */
	c->done = NULL;
	c->killed = true;
	stream_close(&c->in);
	stream_close(&c->out);
	stream_close(&c->errors);
	loop_timer_cancel(c->deadline);
}
