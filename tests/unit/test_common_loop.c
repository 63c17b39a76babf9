/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_common_loop.c - timers, descriptors, signals and processes of the loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/loop.h"
#include "unit.h"

static struct loop *loop;
static char seen[64];
static int seen_count;

struct timer_case {
	char			 name;
	struct loop_timer	*t, *victim;
	int			 again;		/* times it sets itself */
	bool			 frees_itself;
	bool			 stops;
};

static void
note(char c)
{
	ck_assert_int_lt(seen_count, (int)sizeof(seen) - 1);
	seen[seen_count++] = c;
	seen[seen_count] = '\0';
}

static void
on_timer(void *arg)
{
	struct timer_case *c = arg;

	ck_assert(!loop_timer_pending(c->t));
	note(c->name);
	loop_timer_cancel(c->victim);
	if (c->again-- > 0)
		loop_timer_set(c->t, 0);
	if (c->frees_itself)
		loop_timer_free(c->t);
	if (c->stops)
		loop_stop(loop, 7);
}

static void
timer_make(struct timer_case *c, int64_t delay_ms)
{
	ck_assert_int_eq(loop_timer_new(loop, on_timer, c, &c->t, NULL), 0);
	ck_assert(!loop_timer_pending(c->t));
	loop_timer_set(c->t, delay_ms);
	ck_assert(loop_timer_pending(c->t));
}

static void
setup(void)
{
	ck_assert_int_eq(loop_new(&loop, NULL), 0);
	seen_count = 0;
	seen[0] = '\0';
}

static void
teardown(void)
{
	loop_free(loop);
	loop = NULL;
}

/* All are due when the loop first looks: the order is that of the deadlines,
 * whatever the order of creation. */
START_TEST(timers_fire_in_order_of_deadline)
{
	struct timer_case c[5] = { { .name = 'a' }, { .name = 'b' },
	    { .name = 'c' }, { .name = 'd' }, { .name = 'e', .stops = true } };
	int i;

	setup();
	for (i = 0; i < 4; i++)
		timer_make(&c[i], 0);
	/* Set again: b goes behind d. */
	loop_timer_set(c[1].t, 0);
	timer_make(&c[4], 20);
	ck_assert_int_eq(loop_run(loop, NULL), 7);
	ck_assert_str_eq(seen, "acdbe");
	teardown();
}
END_TEST

START_TEST(later_timers_wait)
{
	struct timer_case c[3] = { { .name = 'a', .stops = true },
	    { .name = 'b' }, { .name = 'c' } };
	int64_t start = clock_mono_ns(&clock_system);

	setup();
	timer_make(&c[0], 30);
	timer_make(&c[1], 10);
	timer_make(&c[2], -5);
	ck_assert_int_eq(loop_run(loop, NULL), 7);
	ck_assert_str_eq(seen, "cba");
	ck_assert_int_ge(clock_mono_ns(&clock_system) - start, 30 * NS_PER_MS);
	teardown();
}
END_TEST

START_TEST(timer_cancelled_in_a_callback_stays_silent)
{
	struct timer_case a = { .name = 'a' }, b = { .name = 'b' };
	struct timer_case c = { .name = 'c', .stops = true };

	setup();
	timer_make(&a, 0);
	timer_make(&b, 0);
	a.victim = b.t;
	timer_make(&c, 1);
	ck_assert_int_eq(loop_run(loop, NULL), 7);
	ck_assert_str_eq(seen, "ac");
	ck_assert(!loop_timer_pending(b.t));
	loop_timer_cancel(NULL);
	teardown();
}
END_TEST

START_TEST(timer_may_set_and_free_itself)
{
	struct timer_case a = { .name = 'a', .again = 3 };
	struct timer_case b = { .name = 'b', .frees_itself = true };
	struct timer_case c = { .name = 'c', .stops = true };

	setup();
	timer_make(&a, 0);
	timer_make(&b, 0);
	timer_make(&c, 20);
	ck_assert_int_eq(loop_run(loop, NULL), 7);
	ck_assert_int_eq(seen_count, 6);
	ck_assert_ptr_nonnull(strchr(seen, 'b'));
	ck_assert_int_eq(seen[5], 'c');
	loop_timer_free(NULL);
	teardown();
}
END_TEST

/* Descriptors */
struct fd_case {
	char			 name;
	int			 fds[2];
	struct loop_watch	*w, *victim;
	bool			 unwatches_itself;
};

static void
on_fd(int fd, uint32_t events, void *arg)
{
	struct fd_case *c = arg;
	char byte;

	ck_assert(events & (EPOLLIN | EPOLLHUP));
	ck_assert_int_eq(fd, c->fds[0]);
	note(c->name);
	if (!c->unwatches_itself)
		ck_assert_int_ge(read(fd, &byte, 1), 0);
	if (c->unwatches_itself) {
		loop_unwatch(c->w);
		close(c->fds[0]);
	}
	loop_unwatch(c->victim);
	c->victim = NULL;
}

static void
fd_make(struct fd_case *c)
{
	ck_assert_int_eq(pipe2(c->fds, O_CLOEXEC), 0);
	ck_assert_int_eq(loop_watch_fd(loop, c->fds[0], EPOLLIN, on_fd, c, &c->w,
	    NULL), 0);
	ck_assert_int_eq(write(c->fds[1], "x", 1), 1);
}

START_TEST(watch_may_remove_itself)
{
	struct fd_case a = { .name = 'a', .unwatches_itself = true };
	struct fd_case b = { .name = 'b' };

	setup();
	fd_make(&a);
	fd_make(&b);
	unit_turn(loop);
	unit_turn(loop);
	ck_assert_int_eq(seen_count, 2);
	ck_assert_ptr_ne(strchr(seen, 'a'), strchr(seen, 'b'));
	loop_unwatch(b.w);
	loop_unwatch(NULL);
	close(a.fds[1]);
	close(b.fds[0]);
	close(b.fds[1]);
	teardown();
}
END_TEST

/* Both are ready in the same round and each removes the other. */
START_TEST(removed_watch_is_not_called_in_the_same_round)
{
	struct fd_case a = { .name = 'a' }, b = { .name = 'b' };

	setup();
	fd_make(&a);
	fd_make(&b);
	a.victim = b.w;
	b.victim = a.w;
	unit_turn(loop);
	ck_assert_int_eq(seen_count, 1);
	teardown();
	close(a.fds[0]);
	close(a.fds[1]);
	close(b.fds[0]);
	close(b.fds[1]);
}
END_TEST

START_TEST(events_can_be_changed)
{
	struct fd_case a = { .name = 'a' };

	setup();
	fd_make(&a);
	ck_assert_int_eq(loop_watch_events(a.w, 0, NULL), 0);
	unit_turn(loop);
	ck_assert_str_eq(seen, "");
	ck_assert_int_eq(loop_watch_events(a.w, EPOLLIN, NULL), 0);
	unit_turn(loop);
	ck_assert_str_eq(seen, "a");
	teardown();
	close(a.fds[0]);
	close(a.fds[1]);
}
END_TEST

START_TEST(what_cannot_be_watched_is_an_error)
{
	struct loop_watch *w = NULL;
	struct err err = {0};

	setup();
	ck_assert_int_eq(loop_watch_fd(loop, -1, EPOLLIN, on_fd, NULL, &w, &err),
	    -1);
	ck_assert_int_eq(err.errnum, EBADF);
	ck_assert_int_eq(loop_watch_process(loop, 0x3fffffff, NULL, NULL, &w,
	    &err), -1);
	ck_assert_int_eq(err.errnum, ESRCH);
	ck_assert_ptr_null(w);
	loop_free(NULL);
	teardown();
}
END_TEST

/* Signals */
static int signals_seen[NSIG];

static void
on_signal(const struct signalfd_siginfo *si, void *arg)
{
	struct loop_watch **w = arg;

	signals_seen[si->ssi_signo]++;
	ck_assert_int_eq(si->ssi_pid, getpid());
	if (si->ssi_signo == SIGUSR2) {
		loop_unwatch(*w);
		loop_stop(loop, 0);
	}
}

START_TEST(signals_arrive_in_the_loop)
{
	static const int list[] = { SIGUSR1, SIGTERM, SIGUSR2, 0 };
	struct loop_watch *w = NULL;

	setup();
	memset(signals_seen, 0, sizeof(signals_seen));
	ck_assert_int_eq(loop_watch_signals(loop, list, on_signal, &w, &w, NULL),
	    0);
	kill(getpid(), SIGUSR1);
	kill(getpid(), SIGTERM);
	unit_turn(loop);
	ck_assert_int_eq(signals_seen[SIGUSR1], 1);
	ck_assert_int_eq(signals_seen[SIGTERM], 1);
	kill(getpid(), SIGUSR2);
	ck_assert_int_eq(loop_run(loop, NULL), 0);
	ck_assert_int_eq(signals_seen[SIGUSR2], 1);
	teardown();
}
END_TEST

/* Processes */
static void
on_process(pid_t pid, void *arg)
{
	struct loop_watch **w = arg;
	siginfo_t si;

	/* It is over, and still there to be reaped. */
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG), 0);
	ck_assert_int_eq(si.si_pid, pid);
	ck_assert_int_eq(si.si_status, 5);
	loop_unwatch(*w);
	loop_stop(loop, 3);
}

START_TEST(end_of_a_process_is_seen)
{
	struct loop_watch *w = NULL;
	int gate[2];
	pid_t pid;
	char c;

	setup();
	ck_assert_int_eq(pipe(gate), 0);
	if ((pid = fork()) == 0) {
		close(gate[1]);
		_exit(read(gate[0], &c, 1) == 0 ? 5 : 6);
	}
	ck_assert_int_eq(loop_watch_process(loop, pid, on_process, &w, &w, NULL),
	    0);
	close(gate[0]);
	unit_turn(loop);
	close(gate[1]);
	ck_assert_int_eq(loop_run(loop, NULL), 3);
	teardown();
}
END_TEST

static int
count_fds(void)
{
	return unit_count("/proc/self/fd");
}

START_TEST(loop_closes_what_it_opened)
{
	static const int list[] = { SIGUSR1, 0 };
	int before = count_fds();
	struct timer_case a = { .name = 'a' };

	setup();
	ck_assert_int_eq(loop_watch_signals(loop, list, on_signal, NULL, NULL,
	    NULL), 0);
	ck_assert_int_eq(loop_watch_process(loop, getppid(), on_process, NULL,
	    NULL, NULL), 0);
	timer_make(&a, 1000);
	ck_assert_int_gt(count_fds(), before);
	teardown();
	ck_assert_int_eq(count_fds(), before);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_test(t, timers_fire_in_order_of_deadline);
	tcase_add_test(t, later_timers_wait);
	tcase_add_test(t, timer_cancelled_in_a_callback_stays_silent);
	tcase_add_test(t, timer_may_set_and_free_itself);
	tcase_add_test(t, watch_may_remove_itself);
	tcase_add_test(t, removed_watch_is_not_called_in_the_same_round);
	tcase_add_test(t, events_can_be_changed);
	tcase_add_test(t, what_cannot_be_watched_is_an_error);
	tcase_add_test(t, signals_arrive_in_the_loop);
	tcase_add_test(t, end_of_a_process_is_seen);
	tcase_add_test(t, loop_closes_what_it_opened);
}

int
main(void)
{
	return unit_run("common_loop", add);
}
