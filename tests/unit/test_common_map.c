/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_common_map.c - mapped files that are cut, many of them, and the signal.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/map.h"
#include "unit.h"

static size_t page;
static const char *path;

/* A file of n bytes 'x', opened for writing. */
static int
file_of(size_t n)
{
	char *data = malloc(n + 1);
	int fd;

	path = unit_path(unit_dir(), "f");
	ck_assert_ptr_nonnull(data);
	memset(data, 'x', n);
	unit_write(path, data, n);
	free(data);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_int_ne(fd, -1);
	return fd;
}

static size_t
count_x(const char *data, size_t len)
{
	const volatile char *p = data;
	size_t i, n = 0;

	for (i = 0; i < len; i++)
		n += p[i] == 'x';
	return n;
}

START_TEST(every_length_can_be_read_beyond_its_end)
{
	size_t lens[] = { 0, 1, 4032, 4033, 4095, 4096, 4097, 8128, 8129, 8192,
	    65536, 65537 };
	size_t i;

	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		int fd = file_of(lens[i]);
		struct map m;

		ck_assert_int_eq(map_open(&m, fd, 0, lens[i], NULL), 0);
		close(fd);
		ck_assert_uint_eq(m.len, lens[i]);
		ck_assert_uint_eq(count_x(m.data, m.len + MAP_TAIL), lens[i]);
		ck_assert(!map_is_hurt(&m));
		map_close(&m);
		map_close(&m);
	}
}
END_TEST

START_TEST(from_an_offset)
{
	int fd = file_of(3 * page + 10);
	struct map m;

	ck_assert_int_eq(pwrite(fd, "y", 1, (off_t)(2 * page)), 1);
	ck_assert_int_eq(map_open(&m, fd, (off_t)(2 * page), page + 10, NULL), 0);
	close(fd);
	ck_assert_int_eq(m.data[0], 'y');
	ck_assert_uint_eq(count_x(m.data, m.len), page + 9);
	map_close(&m);
}
END_TEST

START_TEST(a_file_that_is_cut_reads_as_zeros)
{
	int fd = file_of(10 * page);
	struct map m, other;

	ck_assert_int_eq(map_open(&m, fd, 0, 10 * page, NULL), 0);
	ck_assert_int_eq(map_open(&other, fd, 0, 2 * page, NULL), 0);
	ck_assert_uint_eq(count_x(m.data, m.len), m.len);
	ck_assert_int_eq(ftruncate(fd, (off_t)(3 * page + 100)), 0);
	ck_assert_uint_eq(count_x(m.data, m.len + MAP_TAIL), 3 * page + 100);
	ck_assert(map_is_hurt(&m));
	ck_assert(!map_is_hurt(&other));
	/* What was put in its place stays when the file grows again. */
	ck_assert_int_eq(ftruncate(fd, (off_t)(10 * page)), 0);
	ck_assert_int_eq(pwrite(fd, "xxxx", 4, (off_t)(8 * page)), 4);
	ck_assert_uint_eq(count_x(m.data, m.len), 3 * page + 100);
	map_release(&m, 0, m.len);
	ck_assert_uint_eq(count_x(m.data, m.len), 3 * page + 100);
	map_close(&m);
	/* The slot is fresh for the next one. */
	ck_assert_int_eq(map_open(&m, fd, 0, page, NULL), 0);
	ck_assert(!map_is_hurt(&m));
	map_close(&m);
	map_close(&other);
	close(fd);
}
END_TEST

static sigjmp_buf back;
static volatile sig_atomic_t passed_on;

static void
on_foreign(int sig, siginfo_t *info, void *context)
{
	(void)context;
	passed_on = sig == SIGBUS ? info->si_code : -1;
	siglongjmp(back, 1);
}

START_TEST(other_addresses_go_to_the_handler_before)
{
	struct sigaction sa = { .sa_sigaction = on_foreign,
	    .sa_flags = SA_SIGINFO };
	int fd = file_of(4 * page);
	struct map m;
	char *p;

	ck_assert_int_eq(sigaction(SIGBUS, &sa, NULL), 0);
	ck_assert_int_eq(map_open(&m, fd, 0, 4 * page, NULL), 0);
	p = mmap(NULL, 4 * page, PROT_READ, MAP_PRIVATE, fd, 0);
	ck_assert_ptr_ne(p, MAP_FAILED);
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	if (sigsetjmp(back, 1) == 0) {
		count_x(p, 1);
		ck_abort_msg("read behind the end");
	}
	ck_assert_int_eq(passed_on, BUS_ADRERR);
	ck_assert(!map_is_hurt(&m));
	ck_assert_uint_eq(count_x(m.data, m.len), 0);
	ck_assert(map_is_hurt(&m));
	map_close(&m);
	close(fd);
}
END_TEST

/* How a child ends that maps a file and then does what `how` says. */
static int
end_of(int how)
{
	struct rlimit none = {0};
	int fd = file_of(page), status;
	pid_t pid = fork();
	struct map m;
	char *p;

	ck_assert_int_ne(pid, -1);
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGBUS, how == 2 ? SIG_IGN : SIG_DFL);
		if (map_open(&m, fd, 0, page, NULL) == -1)
			_exit(99);
		if (how == 0) {
			p = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
			if (ftruncate(fd, 0) == -1)
				_exit(99);
			count_x(p, 1);
		}
		if (how >= 1)
			raise(SIGBUS);
		_exit(7);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	close(fd);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

START_TEST(without_a_handler_before_it_kills)
{
	ck_assert_int_eq(end_of(0), -SIGBUS);
	ck_assert_int_eq(end_of(1), -SIGBUS);
	ck_assert_int_eq(end_of(2), 7);
}
END_TEST

/* More mappings than the process may have: refused in time. */
START_TEST(mappings_are_bounded)
{
	int fd = file_of(100);
	struct err err = {0};
	struct map *all;
	size_t n = 0, i, max = 300000;
	void *p;

	all = calloc(max, sizeof(*all));
	ck_assert_ptr_nonnull(all);
	while (n < max && map_open(&all[n], fd, 0, 100, &err) == 0)
		n++;
	ck_assert_uint_gt(n, 1000);
	ck_assert_uint_lt(n, max);
	ck_assert_int_eq(err.code, ERR_LIMIT);
	p = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(p, MAP_FAILED);
	ck_assert_uint_eq(count_x(all[n - 1].data, 100), 100);
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	map_release(&all[n - 1], 0, 100);
	ck_assert_uint_eq(count_x(all[n - 1].data, 100), 0);
	for (i = 0; i < n; i++)
		map_close(&all[i]);
	ck_assert_int_eq(map_open(&all[0], fd, 0, 100, NULL), 0);
	map_close(&all[0]);
	free(all);
	close(fd);
}
END_TEST

static _Atomic bool stop;

static void *
open_and_close(void *arg)
{
	int fd = *(int *)arg;
	struct map m;

	while (!stop) {
		if (map_open(&m, fd, 0, page, NULL) == -1)
			return arg;
		map_close(&m);
	}
	return NULL;
}

START_TEST(threads_do_not_disturb_each_other)
{
	int fd = file_of(64 * page), i, same;
	pthread_t threads[3];
	struct map m;
	void *bad;

	same = open(path, O_RDONLY | O_CLOEXEC);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL,
		    open_and_close, &same), 0);
	for (i = 0; i < 300; i++) {
		ck_assert_int_eq(ftruncate(fd, (off_t)(64 * page)), 0);
		ck_assert_int_eq(map_open(&m, fd, 0, 64 * page, NULL), 0);
		ck_assert_int_eq(ftruncate(fd, 0), 0);
		ck_assert_uint_eq(count_x(m.data, m.len), 0);
		ck_assert(map_is_hurt(&m));
		map_close(&m);
	}
	stop = true;
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(pthread_join(threads[i], &bad), 0);
		ck_assert_ptr_null(bad);
	}
	close(same);
	close(fd);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_test(t, every_length_can_be_read_beyond_its_end);
	tcase_add_test(t, from_an_offset);
	tcase_add_test(t, a_file_that_is_cut_reads_as_zeros);
	tcase_add_test(t, other_addresses_go_to_the_handler_before);
	tcase_add_test(t, without_a_handler_before_it_kills);
	tcase_add_test(t, mappings_are_bounded);
	tcase_add_test(t, threads_do_not_disturb_each_other);
}

int
main(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	return unit_run("map", add_tests);
}
