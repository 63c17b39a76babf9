/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_feed.c - from paths to streams: sizes, many files, what cannot be
 * read.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "diagnose/causes.h"
#include "diagnose/feed.h"
#include "diagnose/feed_file.h"
#include "diagnose/rule_load.h"
#include "unit.h"

static void
add(struct feed *f, const char *path)
{
	struct err err = {0};

	ck_assert_msg(feed_add(f, path, &err) == 0, "%s", err.text);
}

static void
write_text(const char *path, const char *text)
{
	unit_write(path, text, strlen(text));
}

static void
expect_missing(const struct feed *f, size_t i, const char *path,
    const char *why)
{
	ck_assert_uint_gt(f->missing_count, i);
	ck_assert_msg(strstr(f->missing[i], path) != NULL &&
	    strstr(f->missing[i], why) != NULL, "%s", f->missing[i]);
}

/* Healthy lines of 64 bytes. */
static char *
lines_of(size_t len)
{
	char *data = malloc(len);
	size_t i;

	ck_assert_ptr_nonnull(data);
	for (i = 0; i < len; i++)
		data[i] = i % 64 == 63 ? '\n' : "all is well "[i % 64 % 12];
	return data;
}

/* Whatever way the bytes take, they arrive whole, and can be read a bit beyond. */
START_TEST(sizes)
{
	size_t lens[] = { 0, 1, 8191, 8192, 8193, 12288, 65536, 1 << 20,
	    (1 << 20) + 1 };
	size_t i, k;

	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		const char *path = unit_path(unit_dir(), "a.log");
		char *data = malloc(lens[i] + 1);
		struct feed f = {0};
		char sum = 0;

		ck_assert_ptr_nonnull(data);
		for (k = 0; k < lens[i]; k++)
			data[k] = (char)(' ' + k % 90);
		unit_write(path, data, lens[i]);
		add(&f, path);
		ck_assert_uint_eq(f.count, 1);
		ck_assert_uint_eq(f.missing_count, 0);
		ck_assert_uint_eq(f.streams[0].len, lens[i]);
		ck_assert_int_eq(memcmp(f.streams[0].data, data, lens[i]), 0);
		ck_assert(f.streams[0].mapped == (lens[i] > 8192));
		for (k = 0; k < MAP_TAIL && lens[i] > 0; k++)
			sum |= f.streams[0].data[lens[i] + k];
		ck_assert_int_eq(sum, 0);
		feed_fini(&f);
		free(data);
	}
}
END_TEST

/* No descriptor stays open, and the heap does not grow with the files. */
START_TEST(many_files)
{
	struct rlimit limit = { 40, 40 };
	const char *dir = unit_dir();
	char name[32], data[8000];
	struct feed f = {0};
	size_t i, mapped = 0;

	memset(data, 'x', sizeof(data));
	for (i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "rank%05zu.log", i);
		unit_write(unit_path(dir, name), data, sizeof(data));
	}
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	add(&f, dir);
	ck_assert_uint_eq(f.count, 3000);
	ck_assert_uint_eq(f.missing_count, 0);
	ck_assert_uint_le(f.heap, FEED_HEAP_MAX);
	for (i = 0; i < f.count; i++) {
		mapped += f.streams[i].mapped;
		ck_assert_int_eq(f.streams[i].rank, (int)i);
		ck_assert_uint_eq(f.streams[i].len, sizeof(data));
		ck_assert_int_eq(f.streams[i].data[7999], 'x');
	}
	ck_assert_uint_eq(3000 - mapped, FEED_HEAP_MAX / sizeof(data));
	feed_fini(&f);
	ck_assert_uint_eq(f.heap, 0);
}
END_TEST

START_TEST(unreadable_is_listed)
{
	const char *dir = unit_dir(), *good = unit_path(dir, "good.log");
	const char *gone = unit_path(dir, "gone.log");
	const char *link = unit_path(dir, "link.log");
	struct err err = {0};
	struct feed f = {0};

	write_text(good, "a line\n");
	ck_assert_int_eq(symlink("nowhere", link), 0);
	add(&f, gone);
	ck_assert_int_eq(feed_settle(&f, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "gone.log: cannot open: No such"));
	add(&f, "/dev/null");
	add(&f, dir);
	ck_assert_int_eq(feed_settle(&f, &err), 0);
	ck_assert_uint_eq(f.count, 1);
	ck_assert_uint_eq(f.missing_count, 3);
	expect_missing(&f, 0, gone, "No such file");
	expect_missing(&f, 1, "/dev/null: ", "neither a file nor a pipe");
	expect_missing(&f, 2, "link.log: ", "No such file");
	feed_fini(&f);
	ck_assert_int_eq(feed_settle(&f, &err), -1);
	add(&f, unit_dir());
	expect_missing(&f, 0, "/", "no log in it");
	feed_fini(&f);
}
END_TEST

START_TEST(cut_while_it_is_read)
{
	const char *path = unit_path(unit_dir(), "a.log");
	size_t len = 1 << 20, i, n = 0, count;
	char *data = malloc(len), **list;
	struct feed f = {0};

	ck_assert_ptr_nonnull(data);
	memset(data, 'x', len);
	unit_write(path, data, len);
	free(data);
	add(&f, path);
	ck_assert_int_eq(truncate(path, 100), 0);
	for (i = 0; i < len; i++)
		n += f.streams[0].data[i] == 'x';
	ck_assert_uint_eq(n, 100);
	list = feed_list_missing(&f, &count);
	ck_assert_ptr_nonnull(list);
	ck_assert_uint_eq(count, 1);
	ck_assert_ptr_nonnull(strstr(list[0], "a.log: cut short"));
	free(list[0]);
	free(list);
	feed_fini(&f);
}
END_TEST

/* Against counting one by one, with marks and without. */
START_TEST(line_numbers)
{
	size_t len = (1 << 20) + 77, i, block = 256 << 10;
	const char *path = unit_path(unit_dir(), "a.log");
	struct feed whole = {0}, f = {0};
	char *data = malloc(len);
	uint64_t *line = malloc((len + 1) * sizeof(*line));

	ck_assert(data != NULL && line != NULL);
	line[0] = 1;
	for (i = 0; i < len; i++) {
		/* Many empty lines too: the counters of eight bytes. */
		data[i] = i > 500000 && i < 600000 ? '\n' :
		    unit_random(60) == 0 ? '\n' : (char)(unit_random(256));
		line[i + 1] = line[i] + (data[i] == '\n');
	}
	unit_write(path, data, len);
	add(&f, path);
	ck_assert_int_eq(feed_add_memory(&whole, "m", data, len, NULL), 0);
	for (i = block; i < len; i += block)
		ck_assert_int_eq(stream_mark(&f.streams[0], i, line[i] - 1,
		    NULL), 0);
	for (i = 0; i < 1000; i++) {
		size_t at = i % 3 == 0 ? i % 90 : i % 3 == 1 ?
		    (1 + i % 2) * block + i % 50 - 25 :
		    (size_t)unit_random((unsigned)len);

		ck_assert_uint_eq(stream_line(&f.streams[0], at), line[at]);
		ck_assert_uint_eq(stream_line(&whole.streams[0], at), line[at]);
	}
	ck_assert_uint_eq(stream_lines(&f.streams[0]), line[len - 1]);
	ck_assert_int_eq(stream_mark(&f.streams[0], len, line[len] - 1, NULL),
	    0);
	ck_assert_uint_eq(stream_lines(&f.streams[0]), line[len - 1]);
	ck_assert_uint_eq(stream_lines(&whole.streams[0]), line[len - 1]);
	feed_fini(&f);
	feed_fini(&whole);
	free(data);
	free(line);
}
END_TEST

/* Of many files, each with something to be found, only a few are in memory. */
START_TEST(memory_does_not_grow)
{
	static const char oom[] = "torch.OutOfMemoryError: CUDA out of memory.\n";
	const char *dir = unit_dir();
	size_t len = 128 << 10, i;
	char *data = lines_of(len), name[32];
	struct rusage used;
	int status;
	pid_t pid;

	memcpy(data + len / 2, oom, strlen(oom));
	for (i = 0; i < 800; i++) {
		snprintf(name, sizeof(name), "rank%zu.log", i);
		unit_write(unit_path(dir, name), data, len);
	}
	free(data);
	ck_assert_int_ne(pid = fork(), -1);
	if (pid == 0) {
		struct rule_set *set = NULL;
		struct verdict v = {0};
		struct feed f = {0};

		_exit(feed_add(&f, dir, NULL) == -1 || f.count != 800 ||
		    rule_load(NULL, NULL, NULL, &set, NULL, NULL) == -1 ||
		    causes_find(set, &f, &v, NULL) == -1 ||
		    v.reason == NULL || strcmp(v.reason, "gpu_oom") != 0 ||
		    v.lines != 800 * (len / 64 + 1));
	}
	ck_assert_int_eq(wait4(pid, &status, 0, &used), pid);
	ck_assert_int_eq(status, 0);
#ifndef __SANITIZE_ADDRESS__
	/* Kilobytes; the files have 100 MB. */
	ck_assert_int_lt(used.ru_maxrss, 48 << 10);
#endif
}
END_TEST

/* Rules run on text that ends where readable memory ends: bytes of a caller before a
 * page that must not be touched, and mapped files of whole pages. */
START_TEST(nothing_is_read_behind_the_end)
{
	static const char line[] = "torch.OutOfMemoryError: CUDA out of memory.";
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len = 4 * page, i;
	const char *path = unit_path(unit_dir(), "a.log");
	struct rule_set *set = NULL;
	char *p = mmap(NULL, len + page, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	ck_assert_int_eq(mprotect(p + len, page, PROT_NONE), 0);
	ck_assert_int_eq(rule_load(NULL, NULL, NULL, &set, NULL, NULL), 0);
	memset(p, '\n', len);
	memcpy(p + len - strlen(line), line, strlen(line));
	unit_write(path, p, len);
	for (i = 0; i < 150; i++) {
		size_t from = i == 0 ? 0 : len - strlen(line) - i;
		struct verdict v = {0};
		struct feed f = {0};

		if (i == 0)
			add(&f, path);
		else
			ck_assert_int_eq(feed_add_memory(&f, "m", p + from,
			    len - from, NULL), 0);
		ck_assert_int_eq(causes_find(set, &f, &v, NULL), 0);
		ck_assert_ptr_nonnull(v.reason);
		ck_assert_str_eq(v.reason, "gpu_oom");
		ck_assert_uint_eq(v.root.text_len, strlen(line));
		verdict_fini(&v);
		feed_fini(&f);
	}
	rule_set_free(set);
	munmap(p, len + page);
}
END_TEST

/* Through a pipe, as standard input, from a child that pauses in the middle. */
static void
piped(const char *text, size_t len)
{
	int fds[2];
	pid_t pid;

	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_ne(pid = fork(), -1);
	if (pid == 0) {
		close(fds[0]);
		if (write(fds[1], text, len / 2) == -1 || usleep(20000) == -1 ||
		    write(fds[1], text + len / 2, len - len / 2) == -1)
			_exit(1);
		_exit(0);
	}
	close(fds[1]);
	ck_assert_int_eq(dup2(fds[0], STDIN_FILENO), STDIN_FILENO);
	close(fds[0]);
}

START_TEST(standard_input)
{
	/* "packed\n" by gzip(1) */
	static const char gz[] = "\x1f\x8b\x08\0\0\0\0\0\0\x03\x2b\x48\x4c\xce"
	    "\x4e\x4d\xe1\x02\0\x43\xe0\x41\x2f\x07\0\0\0";
	size_t len = 3 << 20;
	char *data = calloc(1, len);
	struct feed f = {0};

	ck_assert_ptr_nonnull(data);
	memset(data, 'x', len);
	piped(data, len);
	add(&f, "-");
	ck_assert_uint_eq(f.streams[0].len, len);
	ck_assert(f.streams[0].mapped);
	ck_assert_int_eq(memcmp(f.streams[0].data, data, len), 0);
	ck_assert_str_eq(f.streams[0].name, "-");
	feed_fini(&f);
	free(data);

	piped(gz, sizeof(gz) - 1);
	add(&f, "-");
	ck_assert_uint_eq(f.missing_count, 0);
	ck_assert_uint_eq(f.streams[0].len, 7);
	ck_assert_int_eq(memcmp(f.streams[0].data, "packed\n", 7), 0);
	feed_fini(&f);

}
END_TEST

START_TEST(file_as_standard_input)
{
	const char *path = unit_path(unit_dir(), "a");
	struct feed f = {0};
	char line[4];
	int fd;

	write_text(path, "one\ntwo\n");
	ck_assert_int_ne(fd = open(path, O_RDONLY), -1);
	ck_assert_int_eq(dup2(fd, STDIN_FILENO), STDIN_FILENO);
	close(fd);
	add(&f, "-");
	ck_assert_uint_eq(f.streams[0].len, 8);
	feed_fini(&f);
	/* What was read of it before is gone. */
	ck_assert_int_eq(read(STDIN_FILENO, line, 4), 4);
	add(&f, "-");
	ck_assert_uint_eq(f.streams[0].len, 4);
	ck_assert_int_eq(memcmp(f.streams[0].data, "two\n", 4), 0);
	feed_fini(&f);
}
END_TEST

START_TEST(fifo)
{
	const char *path = unit_path(unit_dir(), "fifo");
	struct feed f = {0};
	pid_t pid;

	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_ne(pid = fork(), -1);
	if (pid == 0) {
		usleep(100000);
		write_text(path, "late\n");
		_exit(0);
	}
	add(&f, path);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_uint_eq(f.count, 1);
	ck_assert_uint_eq(f.streams[0].len, 5);
	feed_fini(&f);
	/* Without a writer it ends too, some seconds later. */
	add(&f, path);
	ck_assert_uint_eq(f.count, 0);
	expect_missing(&f, 0, path, "nobody writes to it");
	feed_fini(&f);
}
END_TEST

/* What took the place of a file of a directory is not waited for. */
START_TEST(pipe_in_place_of_a_file)
{
	const char *path = unit_path(unit_dir(), "a.log");
	struct err err = {0};
	struct feed f = {0};
	int fd;

	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_ne(fd = open(path, O_RDWR | O_CLOEXEC), -1);
	ck_assert_int_eq(feed_file_add(&f, path, "a.log", true, &err), -1);
	ck_assert_uint_eq(f.count, 0);
	close(fd);
	feed_fini(&f);
}
END_TEST

/* Of JSON that is too large for an error file, no tree is built. */
START_TEST(large_error_file)
{
	const char *path = unit_path(unit_dir(), "error.json");
	static const char head[] = "{\"message\": \"boom\", \"x\": \"";
	size_t len = 2u << 20, n = sizeof(head) - 1;
	struct feed f = {0};
	char *text;

	ck_assert_ptr_nonnull(text = malloc(len));
	memset(text, 'x', len);
	memcpy(text, head, n);
	memcpy(text + len - 2, "\"}", 2);
	unit_write(path, text, len);
	add(&f, path);
	ck_assert_uint_eq(f.streams[0].len, len);
	feed_fini(&f);
	memcpy(text + 10000, "\"}", 2);
	unit_write(path, text, 10002);
	add(&f, path);
	ck_assert_uint_eq(f.streams[0].len, strlen("boom\n"));
	feed_fini(&f);
	free(text);
}
END_TEST

/* As an ordinary user; root may read everything. */
START_TEST(no_permission)
{
	const char *dir = unit_dir(), *sub = unit_path(dir, "sub");
	struct feed f = {0};

	write_text(unit_path(dir, "good.log"), "a\n");
	write_text(unit_path(dir, "bad.log"), "b\n");
	ck_assert_int_eq(mkdir(sub, 0), 0);
	ck_assert_int_eq(chmod(unit_path(dir, "bad.log"), 0), 0);
	ck_assert_int_eq(chmod(unit_path(dir, "good.log"), 0644), 0);
	ck_assert_int_eq(chmod(dir, 0755), 0);
	ck_assert_int_eq(chmod(unit_path(dir, ".."), 0755), 0);
	if (geteuid() == 0)
		ck_assert_int_eq(seteuid(65534), 0);
	add(&f, dir);
	ck_assert_uint_eq(f.count, 1);
	ck_assert_uint_eq(f.missing_count, 2);
	expect_missing(&f, 0, "bad.log", "Permission denied");
	expect_missing(&f, 1, "sub", "Permission denied");
	feed_fini(&f);
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
	ck_assert_int_eq(chmod(sub, 0700), 0);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_test(t, sizes);
	tcase_add_test(t, many_files);
	tcase_add_test(t, unreadable_is_listed);
	tcase_add_test(t, cut_while_it_is_read);
	tcase_add_test(t, line_numbers);
	tcase_add_test(t, memory_does_not_grow);
	tcase_add_test(t, nothing_is_read_behind_the_end);
	tcase_add_test(t, standard_input);
	tcase_add_test(t, file_as_standard_input);
	tcase_add_test(t, fifo);
	tcase_add_test(t, pipe_in_place_of_a_file);
	tcase_add_test(t, large_error_file);
	tcase_add_test(t, no_permission);
}

int
main(void)
{
	return unit_run("feed", add_tests);
}
