/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.c - one thread that opens, appends, syncs and replaces files for the
 * loop.
 *
 * Jobs stand in one list under one mutex; finished ones that someone waits for
 * go to a second list and an eventfd wakes the loop.  The thread is detached
 * from the fate of the process: when the file system hangs, writer_free()
 * leaves it behind, together with the memory it may still touch.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/file.h"
#include "common/writer.h"

enum job_kind { JOB_OPEN, JOB_APPEND, JOB_CLOSE, JOB_REPLACE, JOB_TOUCH };

/* What a job costs beside its bytes, so that a flood of short lines stays in the
 * bound as well. */
#define JOB_COST	160

struct writer_file {
	struct writer	*writer;
	char		*path;
	int		 fd;		/* the thread's */
	bool		 borrowed;	/* fd is not ours to close */
	int		 errnum;	/* the thread's: why fd is -1 */
	uint64_t	 lost;		/* the thread's: refused by the file */
	uint64_t	 dropped;	/* the loop's: not yet said in the file */
};

struct job {
	struct job		*next;
	enum job_kind		 kind;
	struct writer_file	*file;
	char			*path;
	struct buf		 data;
	int			 errnum;
	writer_done_fn		 done;
	void			*arg;
};

struct writer {
	struct loop_watch	*watch;
	int			 event_fd;
	size_t			 queue_max;
	size_t			 waiting;	/* under lock */
	uint64_t		 dropped;
	pthread_t		 thread;
	pthread_mutex_t		 lock;
	pthread_cond_t		 work, idle;
	struct job		*head, **tail;
	struct job		*finished, **finished_tail;
	bool			 busy;
	bool			 ending;
};

static void
job_free(struct job *j)
{
	if (j == NULL)
		return;
	free(j->path);
	buf_fini(&j->data);
	free(j);
}

static int
write_fully(int fd, const char *p, size_t len, size_t *written)
{
	ssize_t n;

	for (*written = 0; *written < len; *written += (size_t)n) {
		n = write(fd, p + *written, len - *written);
		if (n == -1 && errno == EINTR)
			n = 0;
		if (n == -1)
			return errno;
	}
	return 0;
}

/* A full file system may take a part of a record; the next record, once there is
 * room, must not be glued to it.  The file has no other writer. */
static void
take_back(int fd, size_t written)
{
	off_t size = lseek(fd, 0, SEEK_END);	/* -1 for a pipe */

	if (written > 0 && size >= (off_t)written &&
	    ftruncate(fd, size - (off_t)written) == -1)
		return;		/* then the part stays */
}

static int
mark_loss(struct writer_file *f)
{
	char text[96];
	size_t written;
	int n = snprintf(text, sizeof(text),
	    "\n[holdfast: %llu bytes lost, the file could not be written]\n",
	    (unsigned long long)f->lost);

	if (write_fully(f->fd, text, (size_t)n, &written) != 0) {
		take_back(f->fd, written);
		return -1;
	}
	f->lost = 0;
	return 0;
}

/* The folder is made on demand: that may hang as well as any other call. */
static void
job_open(struct writer_file *f)
{
	const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
	char *slash;

	f->fd = open(f->path, flags, 0600);
	if (f->fd == -1 && errno == ENOENT &&
	    (slash = strrchr(f->path, '/')) != NULL && slash != f->path) {
		*slash = '\0';
		file_mkdirs(f->path, 0700, NULL);
		*slash = '/';
		f->fd = open(f->path, flags, 0600);
	}
	f->errnum = f->fd == -1 ? errno : 0;
}

static void
job_append(struct job *j)
{
	struct writer_file *f = j->file;
	size_t written;

	/* A record may be tried again later, when the store is back. */
	if (f->fd == -1 && j->done != NULL)
		job_open(f);
	if (f->fd == -1) {
		j->errnum = f->errnum;
		return;
	}
	if (f->lost > 0 && mark_loss(f) != 0) {
		j->errnum = ENOSPC;
	} else if ((j->errnum = write_fully(f->fd, j->data.data, j->data.len,
	    &written)) != 0) {
		take_back(f->fd, written);
	}
	/* A record is reported to whoever waits for it; a hole in a log is
	 * marked in the log. */
	if (j->errnum != 0 && j->done == NULL)
		f->lost += j->data.len;
	if (j->errnum == 0 && j->done != NULL && fdatasync(f->fd) == -1 &&
	    errno != EINVAL)
		j->errnum = errno;
}

static void
job_run(struct job *j)
{
	struct writer_file *f = j->file;
	struct err err = {0};

	switch (j->kind) {
	case JOB_OPEN:
		job_open(f);
		break;
	case JOB_APPEND:
		job_append(j);
		break;
	case JOB_CLOSE:
		if (f->fd != -1 && !f->borrowed)
			close(f->fd);
		free(f->path);
		free(f);
		break;
	case JOB_REPLACE:
		if (file_write_atomic(j->path, j->data.data, j->data.len, 0600,
		    &err) == -1)
			j->errnum = err.errnum ? err.errnum : EIO;
		break;
	case JOB_TOUCH:
		if (utimensat(AT_FDCWD, j->path, NULL, 0) == -1)
			j->errnum = errno;
		break;
	}
}

static void
job_finish(struct writer *w, struct job *j)
{
	uint64_t one = 1;

	w->waiting -= j->data.len + JOB_COST;
	w->busy = false;
	if (j->done == NULL) {
		job_free(j);
		return;
	}
	*w->finished_tail = j;
	w->finished_tail = &j->next;
	if (write(w->event_fd, &one, sizeof(one)) == -1)
		return;		/* the counter is full: the loop is awake anyway */
}

static void *
writer_thread(void *arg)
{
	struct writer *w = arg;
	struct job *j;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		while (w->head == NULL && !w->ending)
			pthread_cond_wait(&w->work, &w->lock);
		if ((j = w->head) == NULL)
			break;
		if ((w->head = j->next) == NULL)
			w->tail = &w->head;
		j->next = NULL;
		w->busy = true;
		pthread_mutex_unlock(&w->lock);
		job_run(j);
		pthread_mutex_lock(&w->lock);
		job_finish(w, j);
		if (w->head == NULL)
			pthread_cond_signal(&w->idle);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static void
on_finished(int fd, uint32_t events, void *arg)
{
	struct writer *w = arg;
	struct job *j, *next;
	uint64_t count;

	(void)events;
	if (read(fd, &count, sizeof(count)) == -1)
		return;
	pthread_mutex_lock(&w->lock);
	j = w->finished;
	w->finished = NULL;
	w->finished_tail = &w->finished;
	pthread_mutex_unlock(&w->lock);
	for (; j != NULL; j = next) {
		next = j->next;
		j->done(j->errnum, j->arg);
		job_free(j);
	}
}

static int
thread_start(struct writer *w, struct err *err)
{
	sigset_t all, old;
	int rc;

	/* Signals belong to the loop's signalfd, never to this thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&w->thread, NULL, writer_thread, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc == 0)
		return 0;
	errno = rc;
	return err_errno(err, "cannot start the writer thread");
}

int
writer_new(struct loop *loop, size_t queue_max, struct writer **out,
    struct err *err)
{
	struct writer *w = calloc(1, sizeof(*w));
	pthread_condattr_t mono;

	if (w == NULL)
		return err_memory(err);
	w->queue_max = queue_max;
	w->tail = &w->head;
	w->finished_tail = &w->finished;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->work, NULL);
	pthread_condattr_init(&mono);
	pthread_condattr_setclock(&mono, CLOCK_MONOTONIC);
	pthread_cond_init(&w->idle, &mono);
	pthread_condattr_destroy(&mono);
	w->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->event_fd == -1) {
		err_errno(err, "cannot make an eventfd");
		goto fail;
	}
	if (loop_watch_fd(loop, w->event_fd, EPOLLIN, on_finished, w, &w->watch,
	    err) == -1)
		goto fail;
	if (thread_start(w, err) == -1)
		goto fail;
	*out = w;
	return 0;
fail:
	loop_unwatch(w->watch);
	if (w->event_fd != -1)
		close(w->event_fd);
	free(w);
	return -1;
}

static bool
wait_idle(struct writer *w, int64_t wait_ms)
{
	struct timespec until;
	bool idle;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += wait_ms / 1000;
	until.tv_nsec += wait_ms % 1000 * NS_PER_MS;
	if (until.tv_nsec >= NS_PER_S) {
		until.tv_sec++;
		until.tv_nsec -= NS_PER_S;
	}
	while ((w->head != NULL || w->busy) &&
	    pthread_cond_timedwait(&w->idle, &w->lock, &until) == 0)
		;
	idle = w->head == NULL && !w->busy;
	return idle;
}

bool
writer_free(struct writer *w, int64_t wait_ms)
{
	struct job *j, *next;
	bool idle;

	if (w == NULL)
		return true;
	loop_unwatch(w->watch);
	pthread_mutex_lock(&w->lock);
	idle = wait_idle(w, wait_ms);
	w->ending = true;
	pthread_cond_signal(&w->work);
	pthread_mutex_unlock(&w->lock);
	if (!idle) {
		pthread_detach(w->thread);
		return false;
	}
	pthread_join(w->thread, NULL);
	for (j = w->finished; j != NULL; j = next) {
		next = j->next;
		job_free(j);
	}
	close(w->event_fd);
	free(w);
	return true;
}

static void
job_queue(struct writer *w, struct job *j)
{
	pthread_mutex_lock(&w->lock);
	*w->tail = j;
	w->tail = &j->next;
	w->waiting += j->data.len + JOB_COST;
	pthread_cond_signal(&w->work);
	pthread_mutex_unlock(&w->lock);
}

static struct job *
job_new(enum job_kind kind, struct writer_file *f, writer_done_fn done,
    void *arg)
{
	struct job *j = calloc(1, sizeof(*j));

	if (j == NULL)
		return NULL;
	j->kind = kind;
	j->file = f;
	j->done = done;
	j->arg = arg;
	return j;
}

int
writer_open(struct writer *w, const char *path, struct writer_file **out,
    struct err *err)
{
	struct writer_file *f = calloc(1, sizeof(*f));
	struct job *j = job_new(JOB_OPEN, f, NULL, NULL);

	if (f == NULL || j == NULL || (f->path = strdup(path)) == NULL) {
		free(f);
		free(j);
		return err_memory(err);
	}
	f->writer = w;
	f->fd = -1;
	job_queue(w, j);
	*out = f;
	return 0;
}

int
writer_adopt(struct writer *w, int fd, struct writer_file **out,
    struct err *err)
{
	struct writer_file *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return err_memory(err);
	f->writer = w;
	f->fd = fd;
	f->borrowed = true;
	*out = f;
	return 0;
}

static int
append_mark(struct job *j, uint64_t dropped)
{
	return buf_printf(&j->data,
	    "\n[holdfast: %llu bytes dropped, the file system was too slow]\n",
	    (unsigned long long)dropped);
}

void
writer_close(struct writer_file *f)
{
	struct job *j;

	if (f == NULL)
		return;
	/* Beyond the bound, but short, and nothing would tell it later. */
	if (f->dropped > 0 &&
	    (j = job_new(JOB_APPEND, f, NULL, NULL)) != NULL) {
		if (append_mark(j, f->dropped) == 0)
			job_queue(f->writer, j);
		else
			job_free(j);
	}
	/* Without memory for the job the descriptor lives as long as the
	 * process: better than closing it under the thread. */
	if ((j = job_new(JOB_CLOSE, f, NULL, NULL)) != NULL)
		job_queue(f->writer, j);
}

size_t
writer_append(struct writer_file *f, const void *data, size_t len,
    writer_done_fn done, void *arg)
{
	struct writer *w = f->writer;
	struct job *j;

	if (writer_waiting(w) + len + JOB_COST > w->queue_max ||
	    (j = job_new(JOB_APPEND, f, done, arg)) == NULL) {
		f->dropped += len;
		w->dropped += len;
		return 0;
	}
	if ((f->dropped > 0 && append_mark(j, f->dropped) == -1) ||
	    buf_append(&j->data, data, len) == -1) {
		job_free(j);
		f->dropped += len;
		w->dropped += len;
		return 0;
	}
	f->dropped = 0;
	job_queue(w, j);
	return len;
}

int
writer_replace(struct writer *w, const char *path, const void *data,
    size_t len, writer_done_fn done, void *arg)
{
	struct job *j = job_new(JOB_REPLACE, NULL, done, arg);

	if (j == NULL || (j->path = strdup(path)) == NULL ||
	    buf_append(&j->data, data, len) == -1) {
		job_free(j);
		return -1;
	}
	job_queue(w, j);
	return 0;
}

int
writer_touch(struct writer *w, const char *path, writer_done_fn done, void *arg)
{
	struct job *j = job_new(JOB_TOUCH, NULL, done, arg);

	if (j == NULL || (j->path = strdup(path)) == NULL) {
		job_free(j);
		return -1;
	}
	job_queue(w, j);
	return 0;
}

size_t
writer_waiting(const struct writer *w)
{
	struct writer *m = (struct writer *)(uintptr_t)w;
	size_t n;

	pthread_mutex_lock(&m->lock);
	n = m->waiting;
	pthread_mutex_unlock(&m->lock);
	return n;
}

uint64_t
writer_dropped(const struct writer *w)
{
	return w->dropped;
}
