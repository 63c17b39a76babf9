/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_common_child.c - foreign calls with a deadline.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child.h"
#include "unit.h"

static struct loop *loop;

/* What the callback saw. */
static struct child_result last;
static char *out, *errors;
static size_t out_len;
static int calls;

static void
on_done(const struct child_result *r, void *arg)
{
	ck_assert_ptr_eq(arg, &last);
	calls++;
	last = *r;
	out_len = r->out.len;
	out = calloc(1, r->out.len + 1);
	errors = calloc(1, r->errors.len + 1);
	memcpy(out, r->out.data ? r->out.data : "", r->out.len);
	memcpy(errors, r->errors.data ? r->errors.data : "", r->errors.len);
	loop_stop(loop, 0);
}

static void
forget(void)
{
	free(out);
	free(errors);
	out = errors = NULL;
}

static void
run(const struct child_spec *spec)
{
	struct err err = {0};

	calls = 0;
	ck_assert_msg(child_start(loop, spec, on_done, &last, NULL, &err) == 0,
	    "%s", err.text);
	ck_assert_int_eq(loop_run(loop, NULL), 0);
	unit_turn(loop);
	ck_assert_int_eq(calls, 1);
}

static void
run_script(const char *script)
{
	const char *argv[] = { "sh", "-c", script, NULL };
	struct child_spec spec = { .argv = argv, .deadline_ms = 60000 };

	run(&spec);
}

static void
setup(void)
{
	signal(SIGPIPE, SIG_IGN);
	ck_assert_int_eq(loop_new(&loop, NULL), 0);
}

static void
teardown(void)
{
	forget();
	loop_free(loop);
}

START_TEST(exit_status_and_both_streams)
{
	run_script("echo one; echo two >&2; exit 3");
	ck_assert_int_eq(last.end, CHILD_EXITED);
	ck_assert_int_eq(last.code, 3);
	ck_assert_str_eq(out, "one\n");
	ck_assert_str_eq(errors, "two\n");
	ck_assert(!last.truncated);
}
END_TEST

START_TEST(end_by_a_signal)
{
	run_script("echo last words; kill -SEGV $$");
	ck_assert_int_eq(last.end, CHILD_SIGNALED);
	ck_assert_int_eq(last.code, SIGSEGV);
	ck_assert_str_eq(out, "last words\n");
}
END_TEST

START_TEST(input_is_null_or_given)
{
	size_t len = 300000, i;
	char *data = malloc(len);
	const char *argv[] = { "cat", NULL };
	struct child_spec spec = { .argv = argv, .deadline_ms = 60000 };

	run(&spec);
	ck_assert_int_eq(last.code, 0);
	ck_assert_uint_eq(out_len, 0);
	forget();
	for (i = 0; i < len; i++)
		data[i] = (char)(i * 13);
	spec.input = data;
	spec.input_len = len;
	run(&spec);
	ck_assert_int_eq(last.end, CHILD_EXITED);
	ck_assert_uint_eq(out_len, len);
	ck_assert_int_eq(memcmp(out, data, len), 0);
	free(data);
}
END_TEST

START_TEST(input_that_nobody_reads)
{
	size_t len = 1 << 20;
	char *data = calloc(1, len);
	const char *argv[] = { "true", NULL };
	struct child_spec spec = { .argv = argv, .deadline_ms = 60000,
	    .input = data, .input_len = len };

	run(&spec);
	ck_assert_int_eq(last.end, CHILD_EXITED);
	ck_assert_int_eq(last.code, 0);
	free(data);
}
END_TEST

START_TEST(output_is_bounded)
{
	const char *argv[] = { "sh", "-c", "head -c 200000 /dev/zero; "
	    "printf 12345 >&2", NULL };
	struct child_spec spec = { .argv = argv, .deadline_ms = 60000,
	    .output_max = 1000 };

	run(&spec);
	ck_assert_int_eq(last.end, CHILD_EXITED);
	ck_assert_int_eq(last.code, 0);
	ck_assert(last.truncated);
	ck_assert_uint_eq(out_len, 1000);
	ck_assert_str_eq(errors, "12345");
	forget();
	argv[2] = "head -c 1000 /dev/zero";
	run(&spec);
	ck_assert(!last.truncated);
	ck_assert_uint_eq(out_len, 1000);
}
END_TEST

START_TEST(environment_and_path)
{
	const char *env[] = { "PATH=/usr/bin:/bin", "A=only this", NULL };
	const char *argv[] = { "env", NULL };
	struct child_spec spec = { .argv = argv, .envp = env,
	    .deadline_ms = 60000 };

	run(&spec);
	ck_assert_str_eq(out, "PATH=/usr/bin:/bin\nA=only this\n");
}
END_TEST

/* A group of its own, nothing blocked or ignored. */
START_TEST(child_starts_clean)
{
	const char *argv[] = { "sh", "-c", "cut -d' ' -f5 /proc/$$/stat; echo $$; "
	    "grep -E '^Sig(Blk|Ign)' /proc/self/status", NULL };
	struct child_spec spec = { .argv = argv, .deadline_ms = 60000 };
	unsigned long long blocked, ignored;
	sigset_t set;
	int pgid, pid;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGUSR1, SIG_IGN);
	run(&spec);
	ck_assert_int_eq(sscanf(out, "%d %d SigBlk: %llx SigIgn: %llx", &pgid,
	    &pid, &blocked, &ignored), 4);
	ck_assert_int_eq(pgid, pid);
	ck_assert_int_ne(pgid, getpgrp());
	ck_assert_uint_eq(blocked, 0);
	/* Signals 32 and 33 are the C library's, which lets nobody touch them. */
	ck_assert_uint_eq(ignored & ~(3ULL << 31), 0);
}
END_TEST

/* The test adopts orphans, so it can wait for the grandchild. */
START_TEST(deadline_kills_the_whole_group)
{
	const char *argv[] = { "sh", "-c",
	    "sleep 1000 & echo $!; exec sleep 1000", NULL };
	struct child_spec spec = { .argv = argv, .deadline_ms = 300 };
	int64_t start = clock_mono_ns(&clock_system);
	pid_t grandchild;
	int status = 0;

	ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	run(&spec);
	ck_assert_int_eq(last.end, CHILD_DEADLINE);
	ck_assert_int_ge(clock_mono_ns(&clock_system) - start, 300 * NS_PER_MS);
	grandchild = (pid_t)atoi(out);
	ck_assert_int_gt(grandchild, 1);
	ck_assert_int_eq(waitpid(grandchild, &status, 0), grandchild);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}
END_TEST

/* Its parent has ended well, but holds nobody's pipe open for ever. */
START_TEST(grandchild_does_not_hold_the_call)
{
	const char *argv[] = { "sh", "-c", "sleep 1000 & echo $!", NULL };
	struct child_spec spec = { .argv = argv, .deadline_ms = 300 };
	pid_t grandchild;
	int status = 0;

	ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	run(&spec);
	ck_assert_int_eq(last.end, CHILD_DEADLINE);
	grandchild = (pid_t)atoi(out);
	ck_assert_int_eq(waitpid(grandchild, &status, 0), grandchild);
	ck_assert(WIFSIGNALED(status));
}
END_TEST

START_TEST(what_cannot_be_started)
{
	static const char *const names[] = { "no-such-program-at-all",
	    "/no/such/path", "/dev/null", "" };
	const char *argv[] = { NULL, NULL };
	struct child_spec spec = { .argv = argv, .deadline_ms = 1000,
	    .input = "x", .input_len = 1 };
	int before = unit_count("/proc/self/fd");
	struct err err;
	size_t i;

	/* A folder in it that may not be searched would make ENOENT EACCES. */
	setenv("PATH", "/usr/bin:/bin", 1);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		argv[0] = names[i];
		err = (struct err){0};
		ck_assert_int_eq(child_start(loop, &spec, on_done, &last, NULL,
		    &err), -1);
		ck_assert_int_eq(err.code, ERR_SYSTEM);
		ck_assert_int_eq(err.errnum, i == 2 ? EACCES : ENOENT);
		ck_assert_ptr_nonnull(strstr(err.text, names[i]));
	}
	unit_turn(loop);
	ck_assert_int_eq(unit_count("/proc/self/fd"), before);
}
END_TEST

START_TEST(cancelled_child_is_killed_and_not_reported)
{
	const char *argv[] = { "sleep", "1000", NULL };
	struct child_spec spec = { .argv = argv, .deadline_ms = 60000 };
	int before = unit_count("/proc/self/fd");
	struct child *c = NULL;
	siginfo_t si = {0};

	calls = 0;
	ck_assert_int_eq(child_start(loop, &spec, on_done, &last, &c, NULL), 0);
	child_cancel(c);
	child_cancel(NULL);
	/* It may be reaped by the call already. */
	if (waitid(P_ALL, 0, &si, WEXITED) == 0)
		ck_assert_int_eq(si.si_status, SIGKILL);
	else
		ck_assert_int_eq(errno, ECHILD);
	unit_turn(loop);
	ck_assert_int_eq(calls, 0);
	ck_assert_int_eq(unit_count("/proc/self/fd"), before);
}
END_TEST

START_TEST(many_children_leave_nothing)
{
	int before = unit_count("/proc/self/fd"), i;

	for (i = 0; i < 50; i++) {
		run_script("echo x; exit 1");
		ck_assert_int_eq(last.code, 1);
		ck_assert_str_eq(out, "x\n");
		forget();
	}
	ck_assert_int_eq(unit_count("/proc/self/fd"), before);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, exit_status_and_both_streams);
	tcase_add_test(t, end_by_a_signal);
	tcase_add_test(t, input_is_null_or_given);
	tcase_add_test(t, input_that_nobody_reads);
	tcase_add_test(t, output_is_bounded);
	tcase_add_test(t, environment_and_path);
	tcase_add_test(t, child_starts_clean);
	tcase_add_test(t, deadline_kills_the_whole_group);
	tcase_add_test(t, grandchild_does_not_hold_the_call);
	tcase_add_test(t, what_cannot_be_started);
	tcase_add_test(t, cancelled_child_is_killed_and_not_reported);
	tcase_add_test(t, many_children_leave_nothing);
}

int
main(void)
{
	return unit_run("common_child", add);
}
