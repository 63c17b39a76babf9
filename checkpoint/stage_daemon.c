/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_daemon.c - two threads: one copies and may be stuck in a file system for as
 * long as that takes; the other one watches, answers signals, and decides.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/file.h"
#include "common/loop.h"
#include "checkpoint/stage_daemon.h"
#include "checkpoint/snapshot_server.h"
#include "checkpoint/stage_switch.h"

#define SCAN_MS		1000	/* inotify does not see into folders */
#define AGAIN_MS	5000	/* after a failure */
#define THREADS_END_MS	1000	/* those that write snapshots */
#define ROOM_MS		500
#define WORKER_NICE	10
#define SETTLE_QUIETS	2	/* times the quiet time, until all is quiet */

struct daemon {
	const struct stage_daemon_options *o;
	struct stage_options	 stage_options;
	struct loop		*loop;
	struct loop_timer	*scan, *room;
	struct loop_watch	*input;
	struct stage		*stage;
	int			 notify_fd, done_fd;
	atomic_bool		 cancel;
	bool			 ending, running;
	bool			 over;		/* no trainer runs any more */
	int64_t			 settle_until_ns;	/* monotonic, at the end */
	bool			 settled;	/* the last round is over */
	bool			 again;		/* something happened meanwhile */
	int64_t			 began_ns;	/* the attempt, or this process */
	struct stage_switch	 link;
	struct snapshot_server	*snapshots;	/* or NULL */
	bool			 written;	/* all snapshots, at the end */
	unsigned		 unwritten;	/* failed since one was durable */
	struct stage_pass	 pass;		/* the worker's while it runs */
	struct stage_pass	 last;
	int			 last_rc;
	struct err		 last_err;
	/* between the threads */
	pthread_mutex_t		 mutex;
	pthread_cond_t		 wake;
	bool			 work, quit;
	int64_t			 drop_ns;	/* 0: nothing to drop */
};

static void *
worker(void *arg)
{
	struct daemon *d = arg;
	int64_t drop_ns;
	uint64_t one = 1;

	/* Of this thread alone; the trainer comes first. */
	(void)setpriority(PRIO_PROCESS, 0, WORKER_NICE);

	pthread_mutex_lock(&d->mutex);
	while (!d->quit) {
		if (!d->work) {
			pthread_cond_wait(&d->wake, &d->mutex);
			continue;
		}
		d->work = false;
		drop_ns = d->drop_ns;
		d->drop_ns = 0;
		pthread_mutex_unlock(&d->mutex);
		d->last_rc = 0;
		if (drop_ns > 0)
			d->last_rc = stage_drop_unfinished(d->stage, drop_ns,
			    &d->last_err);
		if (d->last_rc == 0)
			d->last_rc = stage_run(d->stage, &d->pass, &d->last_err);
		if (write(d->done_fd, &one, sizeof(one)) == -1)
			abort();	/* an eventfd takes 2^64 - 1 of these */
		pthread_mutex_lock(&d->mutex);
	}
	pthread_mutex_unlock(&d->mutex);
	return NULL;
}

static void
start_round(struct daemon *d)
{
	if (d->running) {
		d->again = true;
		return;
	}
	d->running = true;
	d->again = false;
	loop_timer_cancel(d->scan);
	pthread_mutex_lock(&d->mutex);
	d->work = true;
	pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->mutex);
}

static void
on_scan(void *arg)
{
	start_round(arg);
}

static void
stop_when_done(struct daemon *d)
{
	if (d->settled && (d->snapshots == NULL || d->written))
		loop_stop(d->loop, 0);
}

static const char *
snapshot_dir(void *arg)
{
	const struct daemon *d = arg;

	return d->o->stage.to;
}

static void
on_snapshot(void *arg, const struct snapshot_done *done)
{
	struct daemon *d = arg;
	char name[40];
	struct stage_event e = { .kind = done->why == NULL ? STAGE_DURABLE :
	    STAGE_LOST, .why = done->why, .step = done->step,
	    .bytes = done->bytes, .ms = done->ms };

	d->unwritten = done->why == NULL ? 0 : d->unwritten + 1;
	if (done->path != NULL)
		e.name = file_inside(d->o->stage.to, done->path);
	if (e.name == NULL) {
		snprintf(name, sizeof(name), "snapshot of step %lld",
		    (long long)done->step);
		e.name = name;
	}
	d->o->stage.tell(d->o->stage.tell_arg, &e);
}

static void
on_written(void *arg)
{
	struct daemon *d = arg;

	d->written = true;
	stop_when_done(d);
}

static int
start_snapshots(struct daemon *d, struct err *err)
{
	struct snapshot_server_ops ops = { .target_dir = snapshot_dir,
	    .done = on_snapshot, .idle = on_written,
	    .bytes_per_s = d->o->stage.bytes_per_s };

	return d->o->socket == NULL ? 0 : snapshot_server_new(d->loop,
	    d->o->socket, &ops, d, &d->snapshots, err);
}

static void
on_round(int fd, uint32_t events, void *arg)
{
	struct daemon *d = arg;
	uint64_t n;

	(void)events;
	if (read(fd, &n, sizeof(n)) != (ssize_t)sizeof(n))
		return;
	d->running = false;
	d->last = d->pass;
	if (d->o->link != NULL)
		loop_timer_set(d->room, 0);
	if (atomic_load(&d->cancel) || d->o->once) {
		loop_stop(d->loop, 0);
	} else if (d->again) {
		start_round(d);
	} else if (d->ending && d->last.unquiet &&
	    clock_mono_ns(&clock_system) < d->settle_until_ns) {
		loop_timer_set(d->scan, d->o->stage.quiet_ms / 2 + 1);
	} else if (d->ending) {
		/* What is still written to FROM now nobody waits for. */
		d->settled = true;
		stop_when_done(d);
	} else {
		loop_timer_set(d->scan, d->last_rc == -1 || d->last.failed > 0 ?
		    AGAIN_MS : SCAN_MS);
	}
}

/* A scheduler sends SIGTERM to every process of a job, more than once, and the agent
 * that has it copied ends the input as well: only a person asks twice. */
static void
end(struct daemon *d, bool again_is_now)
{
	if (d->ending && again_is_now)
		atomic_store(&d->cancel, true);
	d->ending = true;
	d->settle_until_ns = clock_mono_ns(&clock_system) +
	    SETTLE_QUIETS * d->o->stage.quiet_ms * NS_PER_MS;
	d->settled = false;
	start_round(d);
	if (d->snapshots != NULL)
		snapshot_server_end(d->snapshots);
	/* A thread in a file system that hangs is not waited for. */
	if (atomic_load(&d->cancel))
		loop_stop(d->loop, 0);
}

static void
on_signal(const struct signalfd_siginfo *si, void *arg)
{
	struct daemon *d = arg;

	if (si->ssi_signo == SIGTERM || si->ssi_signo == SIGINT)
		end(d, !d->o->end_with_input);
}

/* "drop NS": what a trainer left unfinished before then may go.  The end of the
 * input is the order to end. */
static void
on_input(int fd, uint32_t events, void *arg)
{
	struct daemon *d = arg;
	char text[256];
	ssize_t n = read(fd, text, sizeof(text) - 1);

	(void)events;
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		loop_unwatch(d->input);
		d->input = NULL;
		d->over = true;
		end(d, false);
		return;
	}
	text[n] = '\0';
	if (strncmp(text, "drop ", 5) == 0) {
		d->began_ns = strtoll(text + 5, NULL, 10);
		pthread_mutex_lock(&d->mutex);
		d->drop_ns = d->began_ns;
		pthread_mutex_unlock(&d->mutex);
		start_round(d);
	}
}

static void
on_notify(int fd, uint32_t events, void *arg)
{
	char sink[4096];

	(void)events;
	while (read(fd, sink, sizeof(sink)) > 0)
		;
	start_round(arg);
}

static void
on_room(void *arg)
{
	struct daemon *d = arg;

	loop_timer_set(d->room, ROOM_MS);
	if (d->last.started_ns != 0)	/* else nothing is known yet */
		stage_switch_look(&d->link, &d->last, d->began_ns, !d->running);
}

static int
start_watching(struct daemon *d, struct err *err)
{
	static const int signals[] = { SIGTERM, SIGINT, 0 };

	if (loop_new(&d->loop, err) == -1 ||
	    loop_timer_new(d->loop, on_scan, d, &d->scan, err) == -1 ||
	    loop_timer_new(d->loop, on_room, d, &d->room, err) == -1 ||
	    loop_watch_signals(d->loop, signals, on_signal, d, NULL, err) == -1)
		return -1;
	if ((d->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) == -1 ||
	    (d->notify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) == -1 ||
	    inotify_add_watch(d->notify_fd, d->o->stage.from, IN_CLOSE_WRITE |
	    IN_MOVED_TO | IN_CREATE) == -1)
		return err_errno(err, "cannot watch %s", d->o->stage.from);
	if (loop_watch_fd(d->loop, d->done_fd, EPOLLIN, on_round, d, NULL, err)
	    == -1 || loop_watch_fd(d->loop, d->notify_fd, EPOLLIN, on_notify, d,
	    NULL, err) == -1)
		return -1;
	return d->o->end_with_input ? loop_watch_fd(d->loop, STDIN_FILENO,
	    EPOLLIN, on_input, d, &d->input, err) : 0;
}

static int
run(struct daemon *d, struct err *err)
{
	pthread_t thread;
	int rc;

	if (pthread_create(&thread, NULL, worker, d) != 0)
		return err_set(err, ERR_SYSTEM, "cannot start a thread");
	d->began_ns = clock_wall_ns(&clock_system);
	start_round(d);
	if (d->o->link != NULL) {
		stage_switch_begin(&d->link, d->o);
		loop_timer_set(d->room, 0);
	}
	rc = loop_run(d->loop, err);
	snapshot_server_free(d->snapshots, THREADS_END_MS);
	d->snapshots = NULL;
	/* It may hang for ever; the process ends anyway. */
	if (d->running)
		return rc;
	pthread_mutex_lock(&d->mutex);
	d->quit = true;
	pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->mutex);
	pthread_join(thread, NULL);
	if (rc == 0 && d->last_rc == -1) {
		*err = d->last_err;
		rc = -1;
	}
	return rc;
}

int
stage_daemon_run(const struct stage_daemon_options *o, unsigned *lost,
    struct err *err)
{
	struct daemon d = { .o = o, .stage_options = o->stage,
	    .notify_fd = -1, .done_fd = -1,
	    .mutex = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER };
	int rc = -1;

	*lost = 0;
	atomic_init(&d.cancel, false);
	d.stage_options.cancel = &d.cancel;
	if (stage_open(&d.stage_options, &d.stage, err) == -1)
		return -1;
	if ((!o->drop_unfinished || stage_drop_unfinished(d.stage,
	    clock_wall_ns(&clock_system), err) == 0) &&
	    start_watching(&d, err) == 0 && start_snapshots(&d, err) == 0)
		rc = run(&d, err);
	*lost = d.last.failed + d.unwritten + (d.running ? 1 : 0);
	/* The thread that still runs has the rest. */
	if (d.running)
		return rc;
	if (rc == 0 && d.over)
		rc = stage_finish(d.stage, err);
	stage_close(d.stage);
	if (d.notify_fd != -1)
		close(d.notify_fd);
	if (d.done_fd != -1)
		close(d.done_fd);
	loop_timer_free(d.scan);
	loop_timer_free(d.room);
	loop_free(d.loop);
	return rc;
}
