/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_common_file.c - files that are whole or absent.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "unit.h"

START_TEST(read_takes_all_bytes)
{
	const char *path = unit_path(unit_dir(), "f");
	struct buf b = {0};
	char data[200000];
	size_t i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7);
	unit_write(path, data, sizeof(data));
	ck_assert_int_eq(buf_puts(&b, "head"), 0);
	ck_assert_int_eq(file_read(path, sizeof(data), &b, NULL), 0);
	ck_assert_uint_eq(b.len, sizeof(data) + 4);
	ck_assert_int_eq(memcmp(b.data, "head", 4), 0);
	ck_assert_int_eq(memcmp(b.data + 4, data, sizeof(data)), 0);
	ck_assert_int_eq(b.data[b.len], '\0');
	buf_fini(&b);
}
END_TEST

START_TEST(read_is_bounded)
{
	const char *path = unit_path(unit_dir(), "f");
	struct err err = {0};
	struct buf b = {0};

	unit_write(path, "12345", 5);
	ck_assert_int_eq(file_read(path, 5, &b, &err), 0);
	buf_clear(&b);
	ck_assert_int_eq(file_read(path, 4, &b, &err), -1);
	ck_assert_int_eq(err.code, ERR_LIMIT);
	ck_assert_ptr_nonnull(strstr(err.text, path));
	unit_write(path, "", 0);
	buf_clear(&b);
	ck_assert_int_eq(file_read(path, 0, &b, &err), 0);
	ck_assert_uint_eq(b.len, 0);
	buf_fini(&b);
}
END_TEST

START_TEST(read_refuses_what_is_no_file)
{
	const char *dir = unit_dir(), *fifo = unit_path(dir, "fifo");
	struct err err = {0};
	struct buf b = {0};

	ck_assert_int_eq(file_read(dir, 10, &b, &err), -1);
	ck_assert_int_eq(err.code, ERR_FORMAT);
	/* A FIFO without a writer would hang an open that blocks. */
	ck_assert_int_eq(mkfifo(fifo, 0600), 0);
	ck_assert_int_eq(file_read(fifo, 10, &b, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "not a regular file"));
	ck_assert_int_eq(file_read(unit_path(dir, "none"), 10, &b, &err), -1);
	ck_assert_int_eq(err.code, ERR_SYSTEM);
	ck_assert_int_eq(err.errnum, ENOENT);
	ck_assert_int_eq(errno, ENOENT);
	buf_fini(&b);
}
END_TEST

START_TEST(write_replaces_the_whole)
{
	const char *dir = unit_dir(), *path = unit_path(dir, "f");
	struct stat st;
	size_t len;

	umask(0);
	ck_assert_int_eq(file_write_atomic(path, "one two", 7, 0640, NULL), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0640);
	ck_assert_int_eq(file_write_atomic(path, "2\0x", 3, 0600, NULL), 0);
	ck_assert_int_eq(memcmp(unit_read(path, &len), "2\0x", 3), 0);
	ck_assert_uint_eq(len, 3);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(file_write_atomic(path, NULL, 0, 0600, NULL), 0);
	unit_read(path, &len);
	ck_assert_uint_eq(len, 0);
	ck_assert_int_eq(unit_count(dir), 1);
}
END_TEST

START_TEST(write_in_the_working_directory)
{
	const char *dir = unit_dir();

	ck_assert_int_eq(chdir(dir), 0);
	ck_assert_int_eq(file_write_atomic("f", "x", 1, 0600, NULL), 0);
	ck_assert_str_eq(unit_read("f", NULL), "x");
	ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

/* The old file stands and nothing lies beside it. */
static void
check_failed(const char *dir, const char *path, int errnum, size_t len)
{
	struct err err = {0};
	char *data = calloc(1, len);

	ck_assert_int_eq(file_write_atomic(path, data, len, 0600, &err), -1);
	free(data);
	ck_assert_int_eq(err.code, ERR_SYSTEM);
	ck_assert_msg(err.errnum == errnum, "%s", err.text);
	ck_assert_ptr_nonnull(strstr(err.text, path));
	ck_assert_str_eq(unit_read(path, NULL), "old");
	ck_assert_int_eq(unit_count(dir), 1);
}

START_TEST(failed_write_keeps_the_old_file)
{
	const char *dir = unit_dir(), *path = unit_path(dir, "f");
	struct rlimit rl;

	unit_write(path, "old", 3);
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &rl), 0);
	rl.rlim_cur = 4096;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &rl), 0);
	check_failed(dir, path, EFBIG, 100000);
	rl.rlim_cur = rl.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &rl), 0);
}
END_TEST

/* In a mount namespace of its own, so that nothing stays mounted. */
START_TEST(full_file_system_keeps_the_old_file)
{
	const char *dir = unit_dir(), *path = unit_path(dir, "f");

	if (geteuid() != 0 || unshare(CLONE_NEWNS) == -1 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1 ||
	    mount("none", dir, "tmpfs", 0, "size=64k") == -1)
		return;		/* needs root; EFBIG above is the same way out */
	unit_write(path, "old", 3);
	check_failed(dir, path, ENOSPC, 1 << 20);
	ck_assert_int_eq(file_write_atomic(path, "new", 3, 0600, NULL), 0);
	ck_assert_str_eq(unit_read(path, NULL), "new");
	ck_assert_int_eq(umount(dir), 0);
}
END_TEST

START_TEST(failed_rename_leaves_no_temp)
{
	const char *dir = unit_dir(), *path = unit_path(dir, "taken");
	struct err err = {0};

	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_eq(file_write_atomic(path, "x", 1, 0600, &err), -1);
	ck_assert_int_eq(err.errnum, EISDIR);
	ck_assert_int_eq(unit_count(dir), 1);
	ck_assert_int_eq(file_write_atomic(unit_path(dir, "no/f"), "x", 1, 0600,
	    &err), -1);
	ck_assert_int_eq(err.errnum, ENOENT);
}
END_TEST

START_TEST(mkdirs_makes_the_missing_ones)
{
	const char *dir = unit_dir();
	struct stat st;

	umask(0);
	ck_assert_int_eq(mkdir(unit_path(dir, "a"), 0755), 0);
	ck_assert_int_eq(file_mkdirs(unit_path(dir, "a/b/c"), 0700, NULL), 0);
	ck_assert_int_eq(stat(unit_path(dir, "a/b/c"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	ck_assert_int_eq(stat(unit_path(dir, "a"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0755);
	ck_assert_int_eq(file_mkdirs(unit_path(dir, "a/b/c"), 0700, NULL), 0);
	ck_assert_int_eq(file_mkdirs(unit_path(dir, "a//d/"), 0700, NULL), 0);
	ck_assert_int_eq(stat(unit_path(dir, "a/d"), &st), 0);
	ck_assert_int_eq(file_mkdirs("/", 0700, NULL), 0);
}
END_TEST

START_TEST(mkdirs_through_a_file_fails)
{
	const char *dir = unit_dir();
	struct err err = {0};
	char word[6000];

	unit_write(unit_path(dir, "f"), "x", 1);
	ck_assert_int_eq(file_mkdirs(unit_path(dir, "f/a/b"), 0700, &err), -1);
	ck_assert_int_eq(err.errnum, ENOTDIR);
	ck_assert_ptr_nonnull(strstr(err.text, "/f/a"));
	ck_assert_int_eq(file_mkdirs(unit_path(dir, "f"), 0700, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "not a directory"));
	ck_assert_str_eq(unit_read(unit_path(dir, "f"), NULL), "x");
	ck_assert_int_eq(file_mkdirs("", 0700, &err), -1);
	memset(word, 'a', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	ck_assert_int_eq(file_mkdirs(word, 0700, &err), -1);
	ck_assert_int_eq(err.code, ERR_LIMIT);
	ck_assert_int_eq(file_write_atomic(word, "x", 1, 0600, &err), -1);
	ck_assert_int_eq(err.code, ERR_LIMIT);
}
END_TEST

START_TEST(sync_and_join)
{
	struct err err = {0};
	char *p = file_join("/a", "b");

	ck_assert_str_eq(p, "/a/b");
	free(p);
	ck_assert_int_eq(file_sync_dir(unit_dir(), NULL), 0);
	ck_assert_int_eq(file_sync_dir("/no/such/folder", &err), -1);
	ck_assert_int_eq(err.errnum, ENOENT);
}
END_TEST

START_TEST(same)
{
	const char *dir = unit_dir(), *a = unit_path(dir, "a");
	const char *b = unit_path(dir, "b"), *name = unit_path(dir, "name");

	unit_write(a, "x", 1);
	unit_write(b, "x", 1);
	ck_assert_int_eq(symlink("a", name), 0);
	ck_assert(file_is_same(a, a) && file_is_same(a, name));
	ck_assert(!file_is_same(a, b) && !file_is_same(name, b));
	ck_assert_int_eq(unlink(a), 0);
	ck_assert(!file_is_same(a, name) && !file_is_same(name, name));
}
END_TEST

/* A neighbour whose name begins alike is not inside. */
START_TEST(inside)
{
	static const struct {
		const char	*dir, *path, *name;
	} rows[] = {
		{ "/a/fast", "/a/fast/x", "x" },
		{ "/a/fast/", "/a/fast/x/y", "x/y" },
		{ "/", "/x", NULL },		/* by their texts: "//x" is */
		{ "/", "//x", "x" },
		{ "/a/fast", "/a/fast2/x", NULL },
		{ "/a/fast", "/a/fast", NULL },
		{ "/a/fast", "/a/fast/", NULL },
		{ "/a/fast", "/a", NULL }
	};
	const char *got;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		got = file_inside(rows[i].dir, rows[i].path);
		if (rows[i].name == NULL)
			ck_assert_msg(got == NULL, "%s", rows[i].path);
		else
			ck_assert_pstr_eq(got, rows[i].name);
	}
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_test(t, inside);
	tcase_add_test(t, same);
	tcase_add_test(t, read_takes_all_bytes);
	tcase_add_test(t, read_is_bounded);
	tcase_add_test(t, read_refuses_what_is_no_file);
	tcase_add_test(t, write_replaces_the_whole);
	tcase_add_test(t, write_in_the_working_directory);
	tcase_add_test(t, failed_write_keeps_the_old_file);
	tcase_add_test(t, full_file_system_keeps_the_old_file);
	tcase_add_test(t, failed_rename_leaves_no_temp);
	tcase_add_test(t, mkdirs_makes_the_missing_ones);
	tcase_add_test(t, mkdirs_through_a_file_fails);
	tcase_add_test(t, sync_and_join);
}

int
main(void)
{
	return unit_run("common_file", add);
}
