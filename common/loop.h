/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h - one thread, one epoll: descriptors, timers, signals, processes.
 *
 * Callbacks must not block.  A callback may remove any watch, its own included:
 * memory of removed watches is released after the round.
 */
#ifndef HOLDFAST_COMMON_LOOP_H
#define HOLDFAST_COMMON_LOOP_H

#include <stdint.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include "common/clock.h"
#include "common/err.h"

struct loop;
struct loop_watch;
struct loop_timer;

typedef void	(*loop_fd_fn)(int fd, uint32_t events, void *arg);
typedef void	(*loop_timer_fn)(void *arg);
typedef void	(*loop_signal_fn)(const struct signalfd_siginfo *, void *arg);
/* The process is over (its pidfd is readable); it is not reaped yet. */
typedef void	(*loop_process_fn)(pid_t pid, void *arg);

int	loop_new(struct loop **out, struct err *err);
/* Removes all watches and timers, closes what the loop itself opened. */
void	loop_free(struct loop *);
/* Runs until loop_stop(); returns the status given there, or -1 and *err when
 * the kernel refuses to wait. */
int	loop_run(struct loop *, struct err *err);
void	loop_stop(struct loop *, int status);

/* fd stays the caller's. */
int	loop_watch_fd(struct loop *, int fd, uint32_t events, loop_fd_fn,
	    void *arg, struct loop_watch **out, struct err *err);
int	loop_watch_events(struct loop_watch *, uint32_t events,
	    struct err *err);
/* Blocks the signals (0-terminated list) in the process and reads them here. */
int	loop_watch_signals(struct loop *, const int *signals, loop_signal_fn,
	    void *arg, struct loop_watch **out, struct err *err);
/* Opens a pidfd; works for any process, also one that is no child. */
int	loop_watch_process(struct loop *, pid_t pid, loop_process_fn,
	    void *arg, struct loop_watch **out, struct err *err);
/* NULL is fine. */
void	loop_unwatch(struct loop_watch *);

/* A timer fires once per loop_timer_set(); unset until then.  Timers fire in the
 * order of their deadlines, none after loop_stop(). */
int	loop_timer_new(struct loop *, loop_timer_fn, void *arg,
	    struct loop_timer **out, struct err *err);
void	loop_timer_set(struct loop_timer *, int64_t delay_ms);
void	loop_timer_cancel(struct loop_timer *);
int	loop_timer_pending(const struct loop_timer *);
void	loop_timer_free(struct loop_timer *);

#endif
