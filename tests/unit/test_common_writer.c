/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_common_writer.c - file output by a thread.
 *
 * A FIFO without a reader is the hung file system: opening it for writing
 * blocks the thread until the test opens the other end.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/writer.h"
#include "unit.h"

/* Of bytes and what keeping them costs; a block is more than half of it. */
#define QUEUE_MAX	100000
#define BLOCK		60000

static struct loop *loop;
static struct writer *writer;
static const char *dir;
static int done_count, done_last, done_errnum;

/* Stops the loop at each call; arg is the number of the job. */
static void
on_done(int errnum, void *arg)
{
	done_count++;
	done_last = *(int *)arg;
	done_errnum = errnum;
	loop_stop(loop, 0);
}

static void
setup(void)
{
	ck_assert_int_eq(loop_new(&loop, NULL), 0);
	ck_assert_int_eq(writer_new(loop, QUEUE_MAX, &writer, NULL), 0);
	dir = unit_dir();
	done_count = done_errnum = 0;
	done_last = -1;
}

static struct writer_file *
open_file(const char *name)
{
	struct writer_file *f = NULL;

	ck_assert_int_eq(writer_open(writer, unit_path(dir, name), &f, NULL), 0);
	return f;
}

static size_t
append(struct writer_file *f, const char *text)
{
	return writer_append(f, text, strlen(text), NULL, NULL);
}

/* Appends and waits until it is on disk; the errno it ended with. */
static int
append_and_wait(struct writer_file *f, const char *text)
{
	int number = 1, before = done_count;

	ck_assert_uint_eq(writer_append(f, text, strlen(text), on_done, &number),
	    strlen(text));
	while (done_count == before)
		ck_assert_int_eq(loop_run(loop, NULL), 0);
	return done_errnum;
}

static void
end(void)
{
	ck_assert(writer_free(writer, 60000));
	loop_free(loop);
}

START_TEST(appends_keep_their_order)
{
	struct writer_file *f, *g;
	char want[4000] = "", text[16];
	int i, number[3] = { 0, 1, 2 };

	setup();
	f = open_file("f");
	g = open_file("g");
	for (i = 0; i < 300; i++) {
		snprintf(text, sizeof(text), "line %d\n", i);
		snprintf(want + strlen(want), sizeof(want) - strlen(want), "%s",
		    text);
		/* The bound is small: wait from time to time. */
		if (i % 50 == 49)
			ck_assert_int_eq(append_and_wait(f, text), 0);
		else
			ck_assert_uint_eq(append(f, text), strlen(text));
		ck_assert_uint_eq(append(g, "."), 1);
	}
	/* Callbacks come in order too. */
	done_count = 0;
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(writer_append(f, "x", 1, on_done, &number[i]),
		    1);
	while (done_count < 3) {
		ck_assert_int_eq(loop_run(loop, NULL), 0);
		ck_assert_int_eq(done_last, done_count - 1);
	}
	ck_assert_uint_eq(writer_dropped(writer), 0);
	writer_close(f);
	writer_close(g);
	writer_close(NULL);
	end();
	snprintf(want + strlen(want), sizeof(want) - strlen(want), "xxx");
	ck_assert_str_eq(unit_read(unit_path(dir, "f"), NULL), want);
	ck_assert_uint_eq(strlen(unit_read(unit_path(dir, "g"), NULL)), 300);
}
END_TEST

START_TEST(bytes_are_on_disk_when_done_is_called)
{
	struct writer_file *f;
	struct stat st;

	setup();
	f = open_file("a/b/f");
	ck_assert_int_eq(append_and_wait(f, "abc"), 0);
	ck_assert_str_eq(unit_read(unit_path(dir, "a/b/f"), NULL), "abc");
	ck_assert_int_eq(stat(unit_path(dir, "a/b/f"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(stat(unit_path(dir, "a/b"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	writer_close(f);
	/* What is there already is kept. */
	f = open_file("a/b/f");
	ck_assert_int_eq(append_and_wait(f, "def"), 0);
	ck_assert_str_eq(unit_read(unit_path(dir, "a/b/f"), NULL), "abcdef");
	writer_close(f);
	end();
}
END_TEST

START_TEST(free_writes_what_waits)
{
	struct writer_file *f;
	int i;

	setup();
	f = open_file("f");
	for (i = 0; i < 500; i++)
		ck_assert_uint_eq(append(f, "x"), 1);
	writer_close(f);
	end();
	ck_assert_uint_eq(strlen(unit_read(unit_path(dir, "f"), NULL)), 500);
}
END_TEST

/* The thread hangs in open() of the FIFO until the test reads it. */
static struct writer_file *
hang(void)
{
	ck_assert_int_eq(mkfifo(unit_path(dir, "fifo"), 0600), 0);
	return open_file("fifo");
}

static void
unhang(void)
{
	int fd = open(unit_path(dir, "fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	ck_assert_int_ne(fd, -1);
}

static const char mark[] =
    "\n[holdfast: 60000 bytes dropped, the file system was too slow]\n";

START_TEST(queue_is_bounded_and_the_loss_is_told)
{
	char block[BLOCK + 1];
	struct writer_file *fifo, *f;

	setup();
	memset(block, 'a', BLOCK);
	block[BLOCK] = '\0';
	fifo = hang();
	f = open_file("f");
	ck_assert_uint_eq(append(f, block), BLOCK);
	ck_assert_uint_eq(append(f, block), 0);
	ck_assert_uint_ge(writer_waiting(writer), BLOCK);
	ck_assert_uint_eq(writer_dropped(writer), BLOCK);
	unhang();
	ck_assert_int_eq(append_and_wait(f, "later"), 0);
	ck_assert_int_eq(append_and_wait(f, "."), 0);
	ck_assert_int_eq(strncmp(unit_read(unit_path(dir, "f"), NULL), block,
	    BLOCK), 0);
	ck_assert_int_eq(strncmp(unit_read(unit_path(dir, "f"), NULL) + BLOCK,
	    mark, strlen(mark)), 0);
	ck_assert_str_eq(unit_read(unit_path(dir, "f"), NULL) + BLOCK +
	    strlen(mark), "later.");
	ck_assert_uint_eq(writer_waiting(writer), 0);
	writer_close(f);
	writer_close(fifo);
	end();
}
END_TEST

/* A loss at the end has nothing behind it that could tell it. */
START_TEST(loss_is_told_at_the_close)
{
	char block[BLOCK + 1];
	struct writer_file *fifo, *f;

	setup();
	memset(block, 'a', BLOCK);
	block[BLOCK] = '\0';
	fifo = hang();
	f = open_file("f");
	ck_assert_uint_eq(append(f, block), BLOCK);
	ck_assert_uint_eq(append(f, block), 0);
	writer_close(f);
	unhang();
	writer_close(fifo);
	end();
	ck_assert_str_eq(unit_read(unit_path(dir, "f"), NULL) + BLOCK, mark);
}
END_TEST

START_TEST(more_than_the_bound_is_never_taken)
{
	char block[QUEUE_MAX + 1];
	struct writer_file *f;

	setup();
	memset(block, 'a', QUEUE_MAX);
	block[QUEUE_MAX] = '\0';
	f = open_file("f");
	ck_assert_uint_eq(append(f, block), 0);
	block[QUEUE_MAX - 1000] = '\0';
	ck_assert_uint_eq(append(f, block), QUEUE_MAX - 1000);
	writer_close(f);
	end();
}
END_TEST

START_TEST(hung_file_does_not_hang_the_end)
{
	int64_t start = clock_mono_ns(&clock_system);
	/* Left behind with the thread, and for a leak checker to see. */
	static struct writer_file *volatile left;

	setup();
	left = hang();
	append(left, "never");
	ck_assert(!writer_free(writer, 50));
	ck_assert_int_lt(clock_mono_ns(&clock_system) - start, 10 * NS_PER_S);
	loop_free(loop);
	/* The thread ends by itself once the file system answers. */
	unhang();
}
END_TEST

START_TEST(replace_is_whole)
{
	const char *path;
	int number = 4;

	setup();
	path = unit_path(dir, "status");
	ck_assert_int_eq(writer_replace(writer, path, "one", 3, NULL, NULL), 0);
	ck_assert_int_eq(writer_replace(writer, path, "2", 1, on_done, &number),
	    0);
	ck_assert_int_eq(loop_run(loop, NULL), 0);
	ck_assert_int_eq(done_errnum, 0);
	ck_assert_int_eq(done_last, 4);
	ck_assert_str_eq(unit_read(path, NULL), "2");
	ck_assert_int_eq(unit_count(dir), 1);
	end();
}
END_TEST

START_TEST(failures_are_reported)
{
	struct writer_file *f;
	int number = 5;

	setup();
	unit_write(unit_path(dir, "file"), "x", 1);
	f = open_file("file/below");
	ck_assert_int_eq(append_and_wait(f, "x"), ENOTDIR);
	writer_close(f);
	ck_assert_int_eq(mkdir(unit_path(dir, "sub"), 0700), 0);
	f = open_file("sub");
	ck_assert_int_eq(append_and_wait(f, "x"), EISDIR);
	writer_close(f);
	ck_assert_int_eq(writer_replace(writer, unit_path(dir, "sub"), "x", 1,
	    on_done, &number), 0);
	ck_assert_int_eq(loop_run(loop, NULL), 0);
	ck_assert_int_eq(done_errnum, EISDIR);
	end();
}
END_TEST

/* Bytes that nobody waits for and that did not fit are told in the file. */
START_TEST(hole_in_a_log_is_marked)
{
	struct rlimit rl, tight;
	struct writer_file *f;
	char first = '1';
	int number = 1;

	setup();
	f = open_file("f");
	ck_assert_int_eq(append_and_wait(f, "1234\n"), 0);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &rl), 0);
	tight = rl;
	tight.rlim_cur = 8;
	setrlimit(RLIMIT_FSIZE, &tight);
	done_count = 0;
	append(f, "lost line\n");
	/* Something else in the queue says when it was tried. */
	writer_replace(writer, unit_path(dir, "g"), &first, 1, on_done, &number);
	while (done_count == 0)
		loop_run(loop, NULL);
	setrlimit(RLIMIT_FSIZE, &rl);
	ck_assert_int_eq(append_and_wait(f, "5678\n"), 0);
	ck_assert_ptr_nonnull(strstr(unit_read(unit_path(dir, "f"), NULL),
	    "[holdfast: 10 bytes"));
	ck_assert_ptr_nonnull(strstr(unit_read(unit_path(dir, "f"), NULL),
	    "5678\n"));
	ck_assert_int_eq(strncmp(unit_read(unit_path(dir, "f"), NULL), "1234\n",
	    5), 0);
	writer_close(f);
	end();
}
END_TEST

/* A record may be tried again; what stood in the way may be gone then. */
START_TEST(failed_open_is_tried_again)
{
	struct writer_file *f;

	setup();
	unit_write(unit_path(dir, "file"), "x", 1);
	f = open_file("file/below");
	ck_assert_int_eq(append_and_wait(f, "1"), ENOTDIR);
	ck_assert_int_eq(unlink(unit_path(dir, "file")), 0);
	ck_assert_int_eq(append_and_wait(f, "2"), 0);
	ck_assert_str_eq(unit_read(unit_path(dir, "file/below"), NULL), "2");
	writer_close(f);
	end();
}
END_TEST

/* A record that did not fit must not stay there in part: the next one would be
 * glued to it. */
START_TEST(failed_append_leaves_no_part)
{
	struct rlimit rl, tight;
	struct writer_file *f;
	int number = 1;

	setup();
	f = open_file("f");
	ck_assert_int_eq(append_and_wait(f, "12345678\n"), 0);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &rl), 0);
	tight = rl;
	tight.rlim_cur = 12;
	/* No assertion while the limit is tight: Check writes a file of its own. */
	setrlimit(RLIMIT_FSIZE, &tight);
	done_count = 0;
	writer_append(f, "does not fit\n", 13, on_done, &number);
	while (done_count == 0)
		loop_run(loop, NULL);
	setrlimit(RLIMIT_FSIZE, &rl);
	ck_assert_int_eq(done_errnum, EFBIG);
	ck_assert_int_eq(append_and_wait(f, "fits\n"), 0);
	ck_assert_str_eq(unit_read(unit_path(dir, "f"), NULL), "12345678\nfits\n");
	writer_close(f);
	end();
}
END_TEST

/* Nobody calls back after the end, and nothing is left open. */
START_TEST(end_is_quiet)
{
	int before = unit_count("/proc/self/fd"), number = 1;
	struct writer_file *f;

	setup();
	f = open_file("f");
	ck_assert_uint_eq(writer_append(f, "x", 1, on_done, &number), 1);
	writer_close(f);
	ck_assert(writer_free(writer, 60000));
	ck_assert(writer_free(NULL, 0));
	unit_turn(loop);
	ck_assert_int_eq(done_count, 0);
	loop_free(loop);
	ck_assert_int_eq(unit_count("/proc/self/fd"), before);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_test(t, appends_keep_their_order);
	tcase_add_test(t, bytes_are_on_disk_when_done_is_called);
	tcase_add_test(t, free_writes_what_waits);
	tcase_add_test(t, queue_is_bounded_and_the_loss_is_told);
	tcase_add_test(t, loss_is_told_at_the_close);
	tcase_add_test(t, more_than_the_bound_is_never_taken);
	tcase_add_test(t, hung_file_does_not_hang_the_end);
	tcase_add_test(t, replace_is_whole);
	tcase_add_test(t, failures_are_reported);
	tcase_add_test(t, hole_in_a_log_is_marked);
	tcase_add_test(t, failed_open_is_tried_again);
	tcase_add_test(t, failed_append_leaves_no_part);
	tcase_add_test(t, end_is_quiet);
}

int
main(void)
{
	return unit_run("common_writer", add);
}
