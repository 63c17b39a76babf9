/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit.c - the frame of a unit test.  The folder is made and removed by the
 * parent of the forked tests, so a test that dies leaves nothing behind.
 */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/loop.h"
#include "unit.h"

static char base[PATH_MAX];

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	remove(path);
	return 0;
}

int
unit_run(const char *name, void (*add)(TCase *))
{
	const char *tmp = getenv("TMPDIR");
	Suite *s = suite_create(name);
	TCase *t = tcase_create("all");
	SRunner *r;
	int failed;

	snprintf(base, sizeof(base), "%s/hf-unit-XXXXXX",
	    tmp && *tmp ? tmp : "/tmp");
	if (mkdtemp(base) == NULL) {
		perror(base);
		return 1;
	}
	tcase_set_timeout(t, 120);
	add(t);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return failed != 0;
}

const char *
unit_dir(void)
{
	static char dirs[4][PATH_MAX];
	static unsigned next;
	char *dir = dirs[next++ % 4];

	snprintf(dir, PATH_MAX, "%.4000s/XXXXXX", base);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	return dir;
}

const char *
unit_path(const char *dir, const char *name)
{
	static char paths[8][PATH_MAX];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, PATH_MAX, "%s/%s", dir, name);
	return path;
}

void
unit_write(const char *path, const void *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ne(fd, -1);
	ck_assert_int_eq(write(fd, data, len), (ssize_t)len);
	close(fd);
}

const char *
unit_read(const char *path, size_t *len)
{
	static char data[1 << 20];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t had = 0;
	ssize_t n;

	ck_assert_msg(fd != -1, "cannot open %s", path);
	while ((n = read(fd, data + had, sizeof(data) - 1 - had)) > 0)
		had += (size_t)n;
	close(fd);
	ck_assert_uint_lt(had, sizeof(data) - 1);
	data[had] = '\0';
	if (len != NULL)
		*len = had;
	return data;
}

int
unit_count(const char *dir)
{
	DIR *d = opendir(dir);
	int n = 0;

	ck_assert_ptr_nonnull(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n - 2;
}

struct turn {
	struct loop		*loop;
	struct loop_timer	*timer;
	int			 left;
};

static void
on_turn(void *arg)
{
	struct turn *t = arg;

	if (t->left-- > 0)
		loop_timer_set(t->timer, 0);
	else
		loop_stop(t->loop, 0);
}

/* A round ends with the timer at the latest; the rounds before the last one are
 * complete. */
void
unit_turn(struct loop *l)
{
	struct turn t = { l, NULL, 2 };

	ck_assert_int_eq(loop_timer_new(l, on_turn, &t, &t.timer, NULL), 0);
	loop_timer_set(t.timer, 0);
	ck_assert_int_eq(loop_run(l, NULL), 0);
	loop_timer_free(t.timer);
}

/* xorshift32 (Marsaglia, "Xorshift RNGs", 2003). */
unsigned
unit_random(unsigned n)
{
	static uint32_t x = 2463534242u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x % n;
}
