/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_job.c - see snapshot_job.h.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "checkpoint/snapshot_job.h"

struct job {
	struct snapshot_jobs	*jobs;
	struct job		*next;
	pthread_t		 thread;
	void			(*work)(void *);
	void			(*done)(void *);
	void			*arg;
};

struct snapshot_jobs {
	struct loop_watch	*watch;
	int			 fd;		/* an eventfd: some have ended */
	unsigned		 running;	/* the loop's */
	pthread_mutex_t		 mutex;
	struct job		*ended;
};

static void *
run(void *arg)
{
	struct job *job = arg;
	uint64_t one = 1;

	job->work(job->arg);
	pthread_mutex_lock(&job->jobs->mutex);
	job->next = job->jobs->ended;
	job->jobs->ended = job;
	/* Inside the lock: the jobs are there as long as one of them is in the list.
	 * An eventfd takes 2^64 - 1 of these. */
	if (write(job->jobs->fd, &one, sizeof(one)) == -1)
		abort();
	pthread_mutex_unlock(&job->jobs->mutex);
	return NULL;
}

static void
on_ended(int fd, uint32_t events, void *arg)
{
	struct snapshot_jobs *jobs = arg;
	struct job *list, *job;
	uint64_t n;

	(void)events;
	if (read(fd, &n, sizeof(n)) == -1)
		return;
	pthread_mutex_lock(&jobs->mutex);
	list = jobs->ended;
	jobs->ended = NULL;
	pthread_mutex_unlock(&jobs->mutex);
	while ((job = list) != NULL) {
		list = job->next;
		pthread_join(job->thread, NULL);
		jobs->running--;
		job->done(job->arg);
		free(job);
	}
}

int
snapshot_jobs_new(struct loop *loop, struct snapshot_jobs **out, struct err *err)
{
	struct snapshot_jobs *jobs = calloc(1, sizeof(*jobs));

	if (jobs == NULL)
		return err_memory(err);
	pthread_mutex_init(&jobs->mutex, NULL);
	if ((jobs->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) == -1) {
		err_errno(err, "cannot make an eventfd");
	} else if (loop_watch_fd(loop, jobs->fd, EPOLLIN, on_ended, jobs,
	    &jobs->watch, err) == 0) {
		*out = jobs;
		return 0;
	}
	if (jobs->fd != -1)
		close(jobs->fd);
	free(jobs);
	return -1;
}

int
snapshot_jobs_start(struct snapshot_jobs *jobs, void (*work)(void *),
    void (*done)(void *), void *arg, struct err *err)
{
	struct job *job = calloc(1, sizeof(*job));
	sigset_t all, old;
	int rc;

	if (job == NULL)
		return err_memory(err);
	*job = (struct job){ .jobs = jobs, .work = work, .done = done, .arg = arg };
	/* Signals are the loop's, and SIGXFSZ must become EFBIG. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&job->thread, NULL, run, job);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc == 0) {
		jobs->running++;
		return 0;
	}
	free(job);
	errno = rc;
	return err_errno(err, "cannot start a thread");
}

bool
snapshot_jobs_free(struct snapshot_jobs *jobs, int64_t wait_ms)
{
	struct pollfd p;
	int64_t left, now = clock_mono_ns(&clock_system);
	int64_t end = now + wait_ms * NS_PER_MS;

	if (jobs == NULL)
		return true;
	p = (struct pollfd){ .fd = jobs->fd, .events = POLLIN };
	while (jobs->running > 0 && now <= end) {
		left = (end - now) / NS_PER_MS + 1;
		if (poll(&p, 1, left < 1000 ? (int)left : 1000) > 0)
			on_ended(jobs->fd, EPOLLIN, jobs);
		now = clock_mono_ns(&clock_system);
	}
	loop_unwatch(jobs->watch);
	if (jobs->running > 0)
		return false;
	/* The last of them may be about to leave the lock. */
	pthread_mutex_lock(&jobs->mutex);
	pthread_mutex_unlock(&jobs->mutex);
	close(jobs->fd);
	pthread_mutex_destroy(&jobs->mutex);
	free(jobs);
	return true;
}
