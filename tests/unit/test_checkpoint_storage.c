/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_storage.c - sound checkpoints of every layout on storage that fails:
 * each reading call with each error, and files and directories that change between two
 * calls.  What could not be read is "unreadable" and says so; it is never taken for
 * damage, never chosen, never moved.
 *
 * The calls are replaced here, in front of the C library's.
 */
#include <check.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "checkpoint_fixture.h"
#include "checkpoint_layouts.h"
#include "common/file.h"
#include "checkpoint/action.h"
#include "checkpoint/manifest.h"
#include "unit.h"

#define VALID		HOLDFAST_CHECKPOINT_VALID
#define UNREADABLE	HOLDFAST_CHECKPOINT_UNREADABLE
#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE
#define NEVER		(-1)
#define CALLS_MAX	4000

static char *top, *dir;

static struct {
	long	 at, calls;		/* NEVER: none fails */
	int	 errnum;		/* 0: none, only `before' is called */
	bool	 stays;			/* all calls on that path fail from then on */
	size_t	 shorter;		/* reads give at most so much; 0: all */
	void	(*before)(const char *path);
	char	 path[PATH_MAX];	/* the one that call was about */
} fault = { .at = NEVER };

/* True when this call is to fail.  Only those on what lies in top count. */
static bool
gate(const char *path)
{
	void (*before)(const char *) = fault.before;
	long call;

	if (fault.at == NEVER || strncmp(path, top, strlen(top)) != 0)
		return false;
	if ((call = fault.calls++) == fault.at) {
		snprintf(fault.path, sizeof(fault.path), "%s", path);
		if (before != NULL) {
			fault.at = NEVER;
			before(fault.path);
			fault.at = call;
		}
	} else if (!fault.stays || call < fault.at ||
	    strcmp(path, fault.path) != 0) {
		return false;
	}
	errno = fault.errnum;
	return fault.errnum != 0;
}

/* What was opened for each descriptor. */
static char opened[64][512];

static int
remember(int fd, const char *path)
{
	if (fd >= 0 && fd < 64)
		snprintf(opened[fd], sizeof(opened[0]), "%s", path);
	return fd;
}

static bool
gate_fd(int fd)
{
	return fd >= 0 && fd < 64 && gate(opened[fd]);
}

int
open(const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = va_arg(ap, int);
	va_end(ap);
	return gate(path) ? -1 : remember((int)syscall(SYS_openat, AT_FDCWD, path,
	    flags, mode), path);
}

int
stat(const char *path, struct stat *st)
{
	return gate(path) ? -1 : (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, 0);
}

int
lstat(const char *path, struct stat *st)
{
	return gate(path) ? -1 : (int)syscall(SYS_newfstatat, AT_FDCWD, path, st,
	    AT_SYMLINK_NOFOLLOW);
}

int
fstat(int fd, struct stat *st)
{
	return gate_fd(fd) ? -1 : (int)syscall(SYS_fstat, fd, st);
}

int
access(const char *path, int mode)
{
	return gate(path) ? -1 : (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
}

static size_t
shortened(size_t n)
{
	return fault.shorter > 0 && n > fault.shorter ? fault.shorter : n;
}

ssize_t
pread(int fd, void *to, size_t n, off_t at)
{
	return gate_fd(fd) ? -1 : (ssize_t)syscall(SYS_pread64, fd, to,
	    shortened(n), at);
}

ssize_t
read(int fd, void *to, size_t n)
{
	return gate_fd(fd) ? -1 : (ssize_t)syscall(SYS_read, fd, to, shortened(n));
}

static void *
next_of(const char *name)
{
	void *next = dlsym(RTLD_NEXT, name);

	if (next == NULL)
		abort();
	return next;
}

DIR *
opendir(const char *path)
{
	DIR *(*next)(const char *), *dp;

	*(void **)&next = next_of("opendir");
	if (gate(path))
		return NULL;
	if ((dp = next(path)) != NULL)
		remember(dirfd(dp), path);
	return dp;
}

struct dirent *
readdir(DIR *dp)
{
	struct dirent *(*next)(DIR *);

	*(void **)&next = next_of("readdir");
	return gate_fd(dirfd(dp)) ? NULL : next(dp);
}

char *
realpath(const char *path, char *out)
{
	char *(*next)(const char *, char *);

	*(void **)&next = next_of("realpath");
	return gate(path) ? NULL : next(path, out);
}

static void
set_fault(long at, int errnum, bool stays)
{
	fault.at = at;
	fault.calls = 0;
	fault.errnum = errnum;
	fault.stays = stays && errnum != EINTR;
	fault.path[0] = '\0';
	errno = 0;
}

/* True when the call was reached. */
static bool
end_fault(void)
{
	bool reached = fault.calls > fault.at;

	fault.at = NEVER;
	return reached;
}

static void
set_up(void)
{
	top = fixture_dir();
	dir = fixture_path(top, "ckpt");
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	fault.at = NEVER;
	fault.before = NULL;
	fault.shorter = 0;
}

static void
tear_down(void)
{
	free(dir);
	fixture_remove(top);
}

static const int errnums[] = { EIO, ESTALE, EACCES, ENXIO, EINTR };
#define N_ERRNUMS	(sizeof(errnums) / sizeof(errnums[0]))

/* What a run was about, for messages. */
static const char *
run_name(const struct layout_row *l, long k)
{
	static char text[PATH_MAX + 128];

	snprintf(text, sizeof(text), "%s, call %ld, %s%s, %s", l->name, k,
	    fault.errnum ? strerror(fault.errnum) : "changed",
	    fault.stays ? " and so on" : "", fault.path);
	return text;
}

/* All that the sound one has was seen, or it says what could not be read. */
static void
assert_read_or_said(const struct checkpoint *c, const struct checkpoint *good,
    const char *what)
{
	const char *reason = c->report.reason ? c->report.reason : "";

	if (c->report.state == VALID)
		ck_assert_msg(c->parts.n == good->parts.n &&
		    c->report.bytes_read >= good->report.bytes_read,
		    "%s: valid with %zu of %zu files, %llu of %llu bytes", what,
		    c->parts.n, good->parts.n,
		    (unsigned long long)c->report.bytes_read,
		    (unsigned long long)good->report.bytes_read);
	else
		ck_assert_msg(c->report.state == UNREADABLE &&
		    strstr(reason, strerror(fault.errnum)) != NULL, "%s: %s: %s",
		    what, holdfast_checkpoint_state_name(c->report.state), reason);
}

/* Without a manifest beside a file, which its format does not need. */
static void
look_at_good(struct checkpoint *good, const char *path)
{
	char *beside = manifest_path(path, false), *away = fixture_path(top, "away");
	bool has = rename(beside, away) == 0;

	fixture_check(good, path, false);
	if (has)
		ck_assert_int_eq(rename(away, beside), 0);
	free(beside);
	free(away);
	ck_assert_msg(good->report.state == VALID, "%s: %s", path,
	    good->report.reason);
}

START_TEST(verify)
{
	const struct layout_row *l = &layout_rows[_i];
	const char *path = layout_make(l, dir, 20);
	struct checkpoint c, good;
	bool reached;
	size_t e, bad = 0;
	long k;

	look_at_good(&good, path);
	for (e = 0; e < 2 * N_ERRNUMS; e++)
		for (k = 0, reached = true; reached; k++) {
			ck_assert_int_lt(k, CALLS_MAX);
			set_fault(k, errnums[e / 2], e % 2 == 1);
			fixture_check(&c, path, false);
			reached = end_fault();
			assert_read_or_said(&c, &good, run_name(l, k));
			bad += c.report.state != VALID;
			checkpoint_fini(&c);
		}
	ck_assert_uint_gt(bad, 0);
	checkpoint_fini(&good);
}
END_TEST

/* A signal that interrupts a read, and reads that give less than was asked for. */
START_TEST(reads_are_continued)
{
	const struct layout_row *l = &layout_rows[_i];
	const char *path = layout_make(l, dir, 20);
	struct checkpoint c;

	for (fault.shorter = 1; fault.shorter < 300; fault.shorter *= 3) {
		set_fault(CALLS_MAX * 100, EIO, false);
		fixture_check(&c, path, false);
		end_fault();
		ck_assert_msg(c.report.state == VALID, "%s, %zu: %s", l->name,
		    fault.shorter, c.report.reason);
		checkpoint_fini(&c);
	}
}
END_TEST

static int
find_latest(struct checkpoints *cs, long *chosen, struct err *err)
{
	struct latest_options o = { .before_step = REPORT_UNKNOWN, .threads = 1 };

	*err = (struct err){0};
	memset(cs, 0, sizeof(*cs));
	return checkpoints_find(cs, dir, 1, err) == -1 ||
	    checkpoints_latest(cs, &o, chosen, err) == -1 ? -1 : 0;
}

static void
assert_latest(const struct layout_row *l, const struct checkpoints *cs, long chosen,
    const struct checkpoint *good, long k)
{
	const char *what = run_name(l, k);
	long i;

	ck_assert_msg(cs->n == 3, "%s: %zu of 3 are shown", what, cs->n);
	for (i = 0; i < (chosen < 0 ? 3 : chosen); i++)
		ck_assert_msg(cs->list[i].report.state == UNREADABLE &&
		    strstr(cs->list[i].report.reason, strerror(fault.errnum)),
		    "%s: skipped %s: %s", what, cs->list[i].path,
		    cs->list[i].report.reason);
	if (chosen < 0)
		return;
	ck_assert_msg(cs->list[chosen].report.state == VALID, "%s", what);
	/* what its manifest stands for was read before */
	if (strstr(l->name, "manifest") == NULL)
		assert_read_or_said(&cs->list[chosen], good, what);
}

START_TEST(latest)
{
	const struct layout_row *l = &layout_rows[_i];
	struct checkpoints cs;
	struct checkpoint good;
	struct err err;
	long k, chosen, skipped = 0;
	bool reached = true;

	layout_make(l, dir, 20);
	layout_make(l, dir, 40);
	look_at_good(&good, layout_make(l, dir, 60));
	ck_assert_int_eq(find_latest(&cs, &chosen, &err), 0);
	ck_assert_msg(cs.n == 3 && chosen == 0, "%s: %zu, %ld", l->name, cs.n,
	    chosen);
	checkpoints_fini(&cs);
	for (k = 0; reached; k++) {
		ck_assert_int_lt(k, CALLS_MAX);
		set_fault(k, errnums[k % N_ERRNUMS], k % 2 == 1);
		if (find_latest(&cs, &chosen, &err) == -1) {
			ck_assert_msg(strstr(err.text, strerror(fault.errnum)) !=
			    NULL, "%s: %s", run_name(l, k), err.text);
			reached = end_fault();
		} else {
			reached = end_fault();
			assert_latest(l, &cs, chosen, &good, k);
			skipped += chosen;
		}
		checkpoints_fini(&cs);
	}
	ck_assert_int_gt(skipped, 0);
	checkpoint_fini(&good);
}
END_TEST

/* What befalls the file that the next call is about. */
static int change;
#define N_CHANGES	6
static const char *const change_names[N_CHANGES] = { "shrinks", "grows",
    "is replaced by another", "is removed", "becomes a folder", "is written to" };

static void
change_file(const char *path)
{
	char other[PATH_MAX + 8];
	struct stat st;
	int fd;

	/* small files that say what belongs to it are read at once */
	if (lstat(path, &st) == -1 || !S_ISREG(st.st_mode) ||
	    !name_is_checkpoint_file(path))
		return;
	snprintf(other, sizeof(other), "%s.tmp", path);
	if (change == 0) {
		ck_assert_int_eq(truncate(path, st.st_size / 2), 0);
	} else if (change == 1) {
		ck_assert_int_eq(truncate(path, st.st_size + 7), 0);
	} else if (change == 2) {
		fixture_good(other, 99);
		ck_assert_int_eq(rename(other, path), 0);
	} else if (change == 3 || change == 4) {
		ck_assert_int_eq(unlink(path), 0);
		if (change == 4)
			ck_assert_int_eq(mkdir(path, 0700), 0);
	} else {
		ck_assert_int_ne(fd = open(path, O_WRONLY), -1);
		ck_assert_int_eq(pwrite(fd, "\0\0\0", 3, st.st_size / 2), 3);
		close(fd);
	}
}

/* A folder in a file's place is said to be one.  A file that is removed before it is
 * listed was never there. */
static bool
is_gone(const struct checkpoint *c)
{
	return change == 4 ? c->report.state == HOLDFAST_CHECKPOINT_UNVERIFIED :
	    change == 3;
}

/* Whole is only what was seen as it is, damaged only what stays so. */
START_TEST(files_change)
{
	const struct layout_row *l = &layout_rows[_i];
	enum holdfast_checkpoint_state state;
	char text[512], *save = NULL, name[32];
	struct checkpoint c;
	bool reached = true;
	const char *path;
	int round;
	long k;

	fault.before = change_file;
	for (round = 0; round < 2; round++)
		for (k = 0, reached = true; reached; k++) {
			change = (int)(k + round * 3) % N_CHANGES;
			snprintf(name, sizeof(name), "%d-%ld", change, k);
			save = fixture_path(dir, name);
			path = layout_make(l, save, 20);
			set_fault(k, 0, false);
			fixture_check(&c, path, false);
			reached = end_fault();
			state = fixture_state(path, text, sizeof(text));
			ck_assert_msg(c.report.state == state ||
			    c.report.state == UNREADABLE ||
			    c.report.state == INCOMPLETE || is_gone(&c) ||
			    (c.report.state == HOLDFAST_CHECKPOINT_CORRUPT &&
			    state != VALID), "%s, call %ld, %s %s: "
			    "%s: %s; afterwards: %s: %s", l->name, k, fault.path,
			    change_names[change],
			    holdfast_checkpoint_state_name(c.report.state),
			    c.report.reason, holdfast_checkpoint_state_name(state),
			    text);
			checkpoint_fini(&c);
			fixture_remove(save);
		}
}
END_TEST

static void
take_away(const char *path)
{
	char *gone = fixture_path(top, "gone");

	(void)path;
	if (change < 2)
		ck_assert_int_eq(rename(dir, gone), 0);
	else
		fixture_remove(strdup(dir));
	if (change % 2 == 1)
		layout_make(&layout_rows[0], dir, 10);
	free(gone);
}

/* The save directory is renamed or removed, and may be replaced, between two calls. */
START_TEST(directory_is_taken_away)
{
	const struct layout_row *l = &layout_rows[_i];
	struct checkpoints cs;
	char *gone = fixture_path(top, "gone");
	struct err err;
	bool reached = true;
	long k, i, chosen;

	fault.before = take_away;
	for (k = 0; reached; k++) {
		change = (int)(k % 4);
		fixture_remove(strdup(gone));
		fixture_remove(strdup(dir));
		layout_make(l, dir, 20);
		layout_make(l, dir, 40);
		set_fault(k, 0, false);
		if (find_latest(&cs, &chosen, &err) == -1) {
			ck_assert_str_ne(err.text, "");
			chosen = -1;
		}
		reached = end_fault();
		for (i = 0; i < (long)cs.n; i++)
			ck_assert_msg(cs.list[i].report.state !=
			    HOLDFAST_CHECKPOINT_CORRUPT, "%s: %s: %s",
			    run_name(l, k), cs.list[i].path,
			    cs.list[i].report.reason);
		ck_assert_msg(chosen < 0 || cs.list[chosen].report.state == VALID,
		    "%s", run_name(l, k));
		checkpoints_fini(&cs);
	}
	free(gone);
}
END_TEST

/* `latest --quarantine auto' over three sound ones moves nothing, whatever fails. */
START_TEST(nothing_is_moved)
{
	const struct layout_row *l = &layout_rows[_i];
	const struct action_values o = { .quarantine = "auto",
	    .before_step = REPORT_UNKNOWN, .jobs = 1 };
	static const struct verb v = { .name = "checkpoint" };
	char *moved = fixture_path(top, "ckpt.quarantine");
	int null = open("/dev/null", O_WRONLY), out = dup(1), err = dup(2);
	bool reached = true;
	long k;

	layout_make(l, dir, 20);
	layout_make(l, dir, 40);
	layout_make(l, dir, 60);
	fflush(stdout);
	dup2(null, 1);
	dup2(null, 2);
	for (k = 0; reached; k++) {
		ck_assert_int_lt(k, CALLS_MAX);
		set_fault(k, errnums[k % N_ERRNUMS], k % 2 == 0);
		(void)action_latest(&v, &o, 1, &dir);
		reached = end_fault();
		ck_assert_msg(access(moved, F_OK) == -1, "%s", run_name(l, k));
	}
	fflush(stdout);
	dup2(out, 1);
	dup2(err, 2);
	free(moved);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_set_timeout(t, 300);
	tcase_add_loop_test(t, verify, 0, n_layout_rows);
	tcase_add_loop_test(t, reads_are_continued, 0, n_layout_rows);
	tcase_add_loop_test(t, latest, 0, n_layout_rows);
	tcase_add_loop_test(t, files_change, 0, n_layout_rows);
	tcase_add_loop_test(t, directory_is_taken_away, 0, n_layout_rows);
	tcase_add_loop_test(t, nothing_is_moved, 0, n_layout_rows);
}

int
main(void)
{
	return unit_run("checkpoint_storage", add_tests);
}
