/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c - epoll with a timerfd for the nearest timer, signalfd and pidfd.
 *
 * Timers are few, so they stand in a plain list; the timerfd carries the
 * earliest one.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/loop.h"

enum watch_kind { WATCH_FD, WATCH_SIGNALS, WATCH_PROCESS };

struct loop_watch {
	struct loop		*loop;
	struct loop_watch	*prev, *next;
	enum watch_kind		 kind;
	int			 fd;
	pid_t			 pid;
	bool			 dead;
	union {
		loop_fd_fn	 fd;
		loop_signal_fn	 signal;
		loop_process_fn	 process;
	} fn;
	void			*arg;
};

struct loop_timer {
	struct loop		*loop;
	struct loop_timer	*prev, *next;
	int64_t			 at_ns;		/* 0: unset */
	bool			 dead;
	loop_timer_fn		 fn;
	void			*arg;
};

struct loop {
	int			 epoll_fd;
	int			 timer_fd;
	bool			 running;
	bool			 has_dead;
	int			 status;
	struct loop_watch	*watches;
	struct loop_timer	*timers;
};

int
loop_new(struct loop **out, struct err *err)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = NULL };
	struct loop *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return err_memory(err);
	l->timer_fd = -1;
	if ((l->epoll_fd = epoll_create1(EPOLL_CLOEXEC)) == -1 ||
	    (l->timer_fd = timerfd_create(CLOCK_MONOTONIC,
	    TFD_CLOEXEC | TFD_NONBLOCK)) == -1 ||
	    epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->timer_fd, &ev) == -1) {
		err_errno(err, "cannot make an event loop");
		loop_free(l);
		return -1;
	}
	*out = l;
	return 0;
}

static void
watch_release(struct loop_watch *w)
{
	if (w->prev != NULL)
		w->prev->next = w->next;
	else
		w->loop->watches = w->next;
	if (w->next != NULL)
		w->next->prev = w->prev;
	free(w);
}

static void
timer_release(struct loop_timer *t)
{
	if (t->prev != NULL)
		t->prev->next = t->next;
	else
		t->loop->timers = t->next;
	if (t->next != NULL)
		t->next->prev = t->prev;
	free(t);
}

static void
sweep(struct loop *l)
{
	struct loop_watch *w, *wn;
	struct loop_timer *t, *tn;

	if (!l->has_dead)
		return;
	for (w = l->watches; w != NULL; w = wn) {
		wn = w->next;
		if (w->dead)
			watch_release(w);
	}
	for (t = l->timers; t != NULL; t = tn) {
		tn = t->next;
		if (t->dead)
			timer_release(t);
	}
	l->has_dead = false;
}

void
loop_free(struct loop *l)
{
	struct loop_watch *w = NULL;
	struct loop_timer *t;

	if (l == NULL)
		return;
	for (w = l->watches; w != NULL; w = w->next)
		loop_unwatch(w);
	for (t = l->timers; t != NULL; t = t->next)
		loop_timer_free(t);
	sweep(l);
	if (l->timer_fd != -1)
		close(l->timer_fd);
	if (l->epoll_fd != -1)
		close(l->epoll_fd);
	free(l);
}

static int
watch_add(struct loop *l, int fd, uint32_t events, enum watch_kind kind,
    void *arg, struct loop_watch **out, struct err *err)
{
	struct loop_watch *w = calloc(1, sizeof(*w));
	struct epoll_event ev = { .events = events, .data.ptr = w };

	if (w == NULL)
		return err_memory(err);
	w->loop = l;
	w->kind = kind;
	w->fd = fd;
	w->arg = arg;
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev) == -1) {
		err_errno(err, "cannot watch a descriptor");
		free(w);
		return -1;
	}
	w->next = l->watches;
	if (w->next != NULL)
		w->next->prev = w;
	l->watches = w;
	if (out != NULL)
		*out = w;
	return 0;
}

int
loop_watch_fd(struct loop *l, int fd, uint32_t events, loop_fd_fn fn,
    void *arg, struct loop_watch **out, struct err *err)
{
	struct loop_watch *w = NULL;

	if (watch_add(l, fd, events, WATCH_FD, arg, &w, err) == -1)
		return -1;
	w->fn.fd = fn;
	if (out != NULL)
		*out = w;
	return 0;
}

int
loop_watch_events(struct loop_watch *w, uint32_t events, struct err *err)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };

	if (epoll_ctl(w->loop->epoll_fd, EPOLL_CTL_MOD, w->fd, &ev) == -1)
		return err_errno(err, "cannot change a watch");
	return 0;
}

int
loop_watch_signals(struct loop *l, const int *signals, loop_signal_fn fn,
    void *arg, struct loop_watch **out, struct err *err)
{
	struct loop_watch *w = NULL;
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (; *signals != 0; signals++)
		sigaddset(&set, *signals);
	if (sigprocmask(SIG_BLOCK, &set, NULL) == -1 ||
	    (fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) == -1)
		return err_errno(err, "cannot watch signals");
	if (watch_add(l, fd, EPOLLIN, WATCH_SIGNALS, arg, &w, err) == -1) {
		close(fd);
		return -1;
	}
	w->fn.signal = fn;
	if (out != NULL)
		*out = w;
	return 0;
}

int
loop_watch_process(struct loop *l, pid_t pid, loop_process_fn fn, void *arg,
    struct loop_watch **out, struct err *err)
{
	struct loop_watch *w = NULL;
	int fd;

	if ((fd = (int)syscall(SYS_pidfd_open, pid, 0)) == -1)
		return err_errno(err, "cannot open process %d", (int)pid);
	if (watch_add(l, fd, EPOLLIN, WATCH_PROCESS, arg, &w, err) == -1) {
		close(fd);
		return -1;
	}
	w->pid = pid;
	w->fn.process = fn;
	if (out != NULL)
		*out = w;
	return 0;
}

void
loop_unwatch(struct loop_watch *w)
{
	if (w == NULL || w->dead)
		return;
	epoll_ctl(w->loop->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
	if (w->kind != WATCH_FD)
		close(w->fd);
	w->dead = true;
	w->loop->has_dead = true;
}

int
loop_timer_new(struct loop *l, loop_timer_fn fn, void *arg,
    struct loop_timer **out, struct err *err)
{
	struct loop_timer *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return err_memory(err);
	t->loop = l;
	t->fn = fn;
	t->arg = arg;
	t->next = l->timers;
	if (t->next != NULL)
		t->next->prev = t;
	l->timers = t;
	*out = t;
	return 0;
}

/* The next one due; among equals the oldest, which stands last in the list. */
static struct loop_timer *
timers_first(struct loop *l)
{
	struct loop_timer *t, *first = NULL;

	for (t = l->timers; t != NULL; t = t->next)
		if (!t->dead && t->at_ns != 0 &&
		    (first == NULL || t->at_ns <= first->at_ns))
			first = t;
	return first;
}

static void
timers_arm(struct loop *l)
{
	const struct loop_timer *t = timers_first(l);
	struct itimerspec spec = {0};
	int64_t first = t ? t->at_ns : 0;

	spec.it_value.tv_sec = first / NS_PER_S;
	spec.it_value.tv_nsec = first % NS_PER_S;
	timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

void
loop_timer_set(struct loop_timer *t, int64_t delay_ms)
{
	if (delay_ms < 0)
		delay_ms = 0;
	t->at_ns = clock_mono_ns(&clock_system) + delay_ms * NS_PER_MS;
	timers_arm(t->loop);
}

void
loop_timer_cancel(struct loop_timer *t)
{
	if (t == NULL || t->at_ns == 0)
		return;
	t->at_ns = 0;
	timers_arm(t->loop);
}

int
loop_timer_pending(const struct loop_timer *t)
{
	return t != NULL && t->at_ns != 0;
}

void
loop_timer_free(struct loop_timer *t)
{
	if (t == NULL)
		return;
	t->at_ns = 0;
	t->dead = true;
	t->loop->has_dead = true;
}

/* In the order of their deadlines: whoever was late must not turn it round. */
static void
timers_run(struct loop *l)
{
	int64_t now = clock_mono_ns(&clock_system);
	struct loop_timer *t;
	uint64_t ticks;

	if (read(l->timer_fd, &ticks, sizeof(ticks)) == -1 && errno != EAGAIN)
		return;
	while (l->running && (t = timers_first(l)) != NULL && t->at_ns <= now) {
		t->at_ns = 0;
		t->fn(t->arg);
	}
	timers_arm(l);
}

static void
dispatch(struct loop_watch *w, uint32_t events)
{
	struct signalfd_siginfo si;

	switch (w->kind) {
	case WATCH_FD:
		w->fn.fd(w->fd, events, w->arg);
		break;
	case WATCH_SIGNALS:
		while (!w->dead && read(w->fd, &si, sizeof(si)) == sizeof(si))
			w->fn.signal(&si, w->arg);
		break;
	case WATCH_PROCESS:
		w->fn.process(w->pid, w->arg);
		break;
	}
}

int
loop_run(struct loop *l, struct err *err)
{
	struct epoll_event evs[64];
	struct loop_watch *w = NULL;
	int i, n;

	l->running = true;
	while (l->running) {
		sweep(l);
		n = epoll_wait(l->epoll_fd, evs, 64, -1);
		if (n == -1 && errno != EINTR)
			return err_errno(err, "cannot wait for events");
		for (i = 0; i < n && l->running; i++) {
			w = evs[i].data.ptr;
			if (w == NULL)
				timers_run(l);
			else if (!w->dead)
				dispatch(w, evs[i].events);
		}
	}
	sweep(l);
	return l->status;
}

void
loop_stop(struct loop *l, int status)
{
	l->running = false;
	l->status = status;
}
