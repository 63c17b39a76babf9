/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_daemon.c - two threads: one copies and may be stuck in a file system for as
 * long as that takes; the other one watches, answers signals, and switches the link.
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
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/loop.h"
#include "checkpoint/names.h"
#include "checkpoint/stage_daemon.h"
#include "checkpoint/stage_room.h"

#define SCAN_MS		1000	/* inotify does not see into folders */
#define AGAIN_MS	5000	/* after a failure */
#define ROOM_MS		500
#define SETTLED_NS	(5 * NS_PER_S)	/* no save goes on in TO */
#define WORKER_NICE	10
#define SETTLE_QUIETS	2	/* times the quiet time, until all is quiet */
#define UNFINISHED_NS	(600 * NS_PER_S)
#define DEPTH_MAX	3

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
	bool			 again;		/* something happened meanwhile */
	int64_t			 began_ns;	/* the attempt, or this process */
	bool			 fast;		/* what the link names */
	bool			 link_failed;	/* and it was said */
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
		/* What is still written now nobody waits for. */
		loop_stop(d->loop, 0);
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
	start_round(d);
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

/* When something below a directory changed last.  The directory itself changes when
 * staging takes something out. */
static int64_t
newest_change(const char *path, int depth)
{
	struct names names = {0};
	int64_t newest, below;
	struct stat st;
	char *name;
	size_t i;

	if (lstat(path, &st) == -1)
		return 0;
	newest = depth == 0 ? 0 : file_mtime_ns(&st);
	if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX &&
	    names_read(&names, path) == 0)
		for (i = 0; i < names.n; i++) {
			if (names.list[i][0] == '.' ||
			    (name = file_join(path, names.list[i])) == NULL)
				continue;
			below = newest_change(name, depth + 1);
			newest = below > newest ? below : newest;
			free(name);
		}
	names_fini(&names);
	return newest;
}

static bool
is_settled(const char *dir, int64_t ns)
{
	return clock_wall_ns(&clock_system) - newest_change(dir, 0) > ns;
}

/* "x.tmp" is whole and waits for its rename.  What is old was left by a save that was
 * cut short. */
static bool
is_unfinished(const char *name, const struct stat *st)
{
	if (!name_is_temporary(name) ||
	    (name[0] == '.' && strstr(name, "tmp") == NULL))
		return false;
	return clock_wall_ns(&clock_system) - file_mtime_ns(st) <
	    UNFINISHED_NS;
}

static bool
has_unfinished(const char *dir, int depth)
{
	struct names names = {0};
	bool found = false;
	struct stat st;
	char *path;
	size_t i;

	if (names_read(&names, dir) == -1) {
		names_fini(&names);
		return false;
	}
	for (i = 0; !found && i < names.n; i++) {
		path = file_join(dir, names.list[i]);
		if (path != NULL && lstat(path, &st) == 0)
			found = is_unfinished(names.list[i], &st) ||
			    (S_ISDIR(st.st_mode) && depth < DEPTH_MAX &&
			    has_unfinished(path, depth + 1));
		free(path);
	}
	names_fini(&names);
	return found;
}

/* All that lay in FROM was whole when the last round began, and nothing was begun
 * since.  A trainer that has not saved yet may still be loading: then what it loads
 * must be in both places. */
static bool
is_between_saves(const struct daemon *d)
{
	int64_t newest = newest_change(d->o->stage.from, 0);

	return d->last.waiting == 0 && newest < d->last.started_ns &&
	    !has_unfinished(d->o->stage.from, 0) &&
	    (newest > d->began_ns ||
	    (d->last.failed == 0 && !d->last.unquiet && !d->running));
}

static void
switch_link(struct daemon *d, bool fast, const char *why)
{
	struct err err = {0};

	if (room_link(d->o->link, fast ? d->o->stage.from : d->o->stage.to, &err)
	    == -1) {
		if (!d->link_failed)
			d->o->switched(d->o->stage.tell_arg, d->fast, err.text);
		d->link_failed = true;
		return;
	}
	d->link_failed = false;
	d->fast = fast;
	d->o->switched(d->o->stage.tell_arg, fast, why);
}

/* What the next save may take: a fifth more than the largest so far.  Before the
 * first one, half of what FROM may hold is to be there: /dev/shm of a container has
 * 64 MiB. */
static uint64_t
needed(const struct daemon *d)
{
	uint64_t largest = d->last.largest;

	if (largest > 0)
		return largest + largest / 5;
	return d->o->budget / 2;
}

/* Only between saves: one that is cut in two would be lost. */
static void
on_room(void *arg)
{
	struct daemon *d = arg;
	uint64_t need = needed(d);
	struct err err = {0};
	struct room r;
	char why[200];

	loop_timer_set(d->room, ROOM_MS);
	if (d->last.started_ns == 0)
		return;		/* nothing is known yet */
	if (room_read(d->o->stage.from, d->o->budget, &r, &err) == -1) {
		if (d->fast)
			switch_link(d, false, err.text);
		return;
	}
	if (d->fast && r.free < need && is_between_saves(d)) {
		snprintf(why, sizeof(why), "%s leaves %llu MiB, the next save may "
		    "need %llu MiB", r.bound, (unsigned long long)r.free >> 20,
		    (unsigned long long)need >> 20);
		switch_link(d, false, why);
	} else if (!d->fast && r.free >= 2 * need &&	/* and one that stays */
	    is_settled(d->o->stage.to, SETTLED_NS) &&
	    !has_unfinished(d->o->stage.to, 0)) {
		switch_link(d, true, "there is room again");
	}
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
		d->fast = room_is_linked(d->o->link, d->o->stage.from);
		loop_timer_set(d->room, 0);
	}
	rc = loop_run(d->loop, err);
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
	    start_watching(&d, err) == 0)
		rc = run(&d, err);
	*lost = d.last.failed + (d.running ? 1 : 0);
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
