/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_fixture.c - see snapshot_fixture.h.
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint_fixture.h"
#include "snapshot_fixture.h"
#include "unit.h"

struct served {
	struct loop		*loop;
	struct snapshot_server	*server;
};

const char *snapshot_dir, *snapshot_socket;
char snapshot_why[300];
float *snapshot_data;

const char *
snapshot_target(void *arg)
{
	(void)arg;
	return snapshot_dir;
}

void
snapshot_told(void *arg, const struct snapshot_done *d)
{
	(void)arg;
	if ((d->path == NULL) == (d->why == NULL))
		abort();
}

static void
idle(void *arg)
{
	struct served *s = arg;

	loop_stop(s->loop, 0);
}

static void
on_signal(const struct signalfd_siginfo *si, void *arg)
{
	struct served *s = arg;

	(void)si;
	snapshot_server_end(s->server);
}

static int
serve(uint64_t bytes_per_s, rlim_t files)
{
	struct snapshot_server_ops ops = { snapshot_target, snapshot_told, idle,
	    bytes_per_s };
	static const int signals[] = { SIGTERM, 0 };
	struct rlimit limit = { files, files };
	struct served s = {0};
	struct err err = {0};
	int rc = 1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_FSIZE, &limit);
	if (loop_new(&s.loop, &err) == 0 && loop_watch_signals(s.loop, signals,
	    on_signal, &s, NULL, &err) == 0 && snapshot_server_new(s.loop,
	    snapshot_socket, &ops, &s, &s.server, &err) == 0)
		rc = loop_run(s.loop, &err);
	snapshot_server_free(s.server, 5000);
	loop_free(s.loop);
	return rc == 0 ? 0 : 1;
}

pid_t
snapshot_start(uint64_t bytes_per_s, rlim_t files)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(serve(bytes_per_s, files));
	return pid;
}

/* Ends as when a run ends: what is committed is written. */
void
snapshot_stop(pid_t pid)
{
	int status;

	kill(pid, SIGTERM);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

void
snapshot_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

struct holdfast_checkpoint_client *
snapshot_open(void)
{
	struct holdfast_checkpoint_client *c;
	int i;

	for (i = 0; i < 1000; i++) {
		if (holdfast_checkpoint_open(snapshot_socket, &c, WHY) == 0)
			return c;
		poll(NULL, 0, 10);
	}
	ck_abort_msg("%s", snapshot_why);
}

/* A snapshot of mb MB, begun and filled. */
void
snapshot_fill(struct holdfast_checkpoint_client *c, int64_t step, int rank, int world,
    size_t mb)
{
	int64_t shape[] = { (int64_t)(mb * MB / 4) };

	OK(holdfast_checkpoint_begin(c, step, rank, world, '/', WHY));
	OK(holdfast_checkpoint_set_int(c, "step", step, WHY));
	OK(holdfast_checkpoint_snapshot(c, "model/w", HOLDFAST_CHECKPOINT_F32, 1,
	    shape, snapshot_data, mb * MB, WHY));
}

void
snapshot_save(struct holdfast_checkpoint_client *c, int64_t step, int rank, int world,
    size_t mb)
{
	snapshot_fill(c, step, rank, world, mb);
	OK(holdfast_checkpoint_commit(c, WHY));
}

void
snapshot_is_valid(const char *name, int64_t step)
{
	struct checkpoint c;

	fixture_check(&c, unit_path(snapshot_dir, name), false);
	ck_assert_msg(c.report.state <= HOLDFAST_CHECKPOINT_UNVERIFIED, "%s: %s",
	    name, c.report.reason);
	ck_assert_int_eq(checkpoint_step(&c), step);
	checkpoint_fini(&c);
}

bool
snapshot_is_there(const char *name)
{
	return access(unit_path(snapshot_dir, name), F_OK) == 0;
}

void
snapshot_set_up(void)
{
	size_t i;

	snapshot_dir = strdup(unit_dir());
	snapshot_socket = strdup(unit_path(unit_dir(), "socket"));
	snapshot_data = malloc(16 * MB);
	for (i = 0; i < 16 * MB / 4; i++)
		snapshot_data[i] = (float)i;
}

