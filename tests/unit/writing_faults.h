/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writing_faults.h - calls that write, replaced in front of the C library's: a chosen one
 * fails.  For tests that are one file: it defines the functions.
 *
 * All are counted from set_fault() to end_fault().  What happens to checkpoints in the
 * directories FROM and TO is watched meanwhile.
 */
#ifndef HOLDFAST_TESTS_WRITING_FAULTS_H
#define HOLDFAST_TESTS_WRITING_FAULTS_H

#include <check.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "checkpoint_fixture.h"
#include "unit.h"

#define VALID		HOLDFAST_CHECKPOINT_VALID
#define NEVER		(-1)
#define ALWAYS		(-1)
#define CALLS_MAX	1000

static char *top, *from, *to;

static struct {
	long		 at, calls;	/* NEVER: none fails */
	int		 errnum;
	bool		 stays;		/* all later calls fail as well */
	bool		 hit;
	bool		 no_exchange;	/* a file system that cannot */
	const char	*read;		/* of calls that read below it, NULL: none, */
	long		 read_at, reads;	/* that one fails; ALWAYS: all do */
} fault = { .at = NEVER };

/* stepN... has a new name in TO that is not synced; it was called durable, or went from
 * FROM, then. */
static bool unsynced[10], trusted_unsynced;

/* True when this call is to fail. */
static bool
gate(void)
{
	long call;

	if (fault.at == NEVER)
		return false;
	call = fault.calls++;
	if (call != fault.at && (!fault.stays || call < fault.at))
		return false;
	fault.hit = true;
	errno = fault.errnum;
	return true;
}

static bool
gate_reading(const char *path)
{
	if (fault.read == NULL ||
	    strncmp(path, fault.read, strlen(fault.read)) != 0 ||
	    (fault.reads++ != fault.read_at && fault.read_at != ALWAYS))
		return false;
	fault.hit = true;
	errno = fault.errnum;
	return true;
}

/* What was opened for each descriptor, and whether it writes. */
static struct {
	char	path[400];
	bool	writes;
} opened[64];

static int
remember(int fd, const char *path, bool writes)
{
	if (fd >= 0 && fd < 64) {
		snprintf(opened[fd].path, sizeof(opened[fd].path), "%s", path);
		opened[fd].writes = writes;
	}
	return fd;
}

int
open(const char *path, int flags, ...)
{
	bool writes = (flags & O_ACCMODE) != O_RDONLY;
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = va_arg(ap, int);
	va_end(ap);
	if (writes ? gate() : gate_reading(path))
		return -1;
	return remember((int)syscall(SYS_openat, AT_FDCWD, path, flags, mode), path,
	    writes);
}

static void *
next_of(const char *name)
{
	void *next = dlsym(RTLD_NEXT, name);

	if (next == NULL)
		abort();
	return next;
}

int
mkostemp(char *path, int flags)
{
	int (*next)(char *, int);

	*(void **)&next = next_of("mkostemp");
	return gate() ? -1 : remember(next(path, flags), path, true);
}

int
fsync(int fd)
{
	if (gate() || syscall(SYS_fsync, fd) == -1)
		return -1;
	if (fd < 64 && strcmp(opened[fd].path, to) == 0)
		memset(unsynced, 0, sizeof(unsynced));
	return 0;
}

/* It is closed in any case. */
int
close(int fd)
{
	bool writes = fd >= 0 && fd < 64 && opened[fd].writes;

	if (writes)
		opened[fd].writes = false;
	return (int)syscall(SYS_close, fd) == -1 || (writes && gate()) ? -1 : 0;
}

int
futimens(int fd, const struct timespec times[2])
{
	return gate() ? -1 : (int)syscall(SYS_utimensat, fd, NULL, times, 0);
}

int
fchmod(int fd, mode_t mode)
{
	return gate() ? -1 : (int)syscall(SYS_fchmod, fd, mode);
}

/* N of DIR/stepN...: a checkpoint under its own name; otherwise -1. */
static int
digit_in(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && strncmp(path + n, "/step", 5) == 0 &&
	    strchr(path + n + 1, '/') == NULL ? path[n + 5] - '0' : -1;
}

int
renameat2(int a, const char *old, int b, const char *new, unsigned flags)
{
	if (flags != 0 && fault.no_exchange) {
		errno = EINVAL;
		return -1;
	}
	if (gate() || syscall(SYS_renameat2, a, old, b, new, flags) == -1)
		return -1;
	if (digit_in(to, new) >= 0)
		unsynced[digit_in(to, new)] = true;
	else if (digit_in(from, old) >= 0 && unsynced[digit_in(from, old)])
		trusted_unsynced = true;
	return 0;
}

#include "gated_calls.h"

int
remove(const char *path)
{
	int (*next)(const char *);

	*(void **)&next = next_of("remove");
	return gate() ? -1 : next(path);
}

DIR *
opendir(const char *path)
{
	DIR *(*next)(const char *);

	*(void **)&next = next_of("opendir");
	return gate_reading(path) ? NULL : next(path);
}

int
lstat(const char *path, struct stat *st)
{
	return gate_reading(path) ? -1 : (int)syscall(SYS_newfstatat, AT_FDCWD,
	    path, st, AT_SYMLINK_NOFOLLOW);
}

ssize_t
readlink(const char *path, char *to_text, size_t n)
{
	return gate_reading(path) ? -1 : (ssize_t)syscall(SYS_readlinkat, AT_FDCWD,
	    path, to_text, n);
}

ssize_t
read(int fd, void *to_data, size_t n)
{
	return fd >= 0 && fd < 64 && gate_reading(opened[fd].path) ? -1 :
	    (ssize_t)syscall(SYS_read, fd, to_data, n);
}

static const int errnums[] = { ENOSPC, EDQUOT, EIO, EROFS, ESTALE };
#define N_ERRNUMS	5
#define N_FAULTS	(2 * N_ERRNUMS)		/* once, and all that follow */

static void
set_fault(long at, int which)
{
	fault.at = at;
	fault.calls = 0;
	fault.errnum = errnums[which / 2];
	fault.stays = which % 2 == 1;
	fault.hit = false;
}

/* True when the call was reached. */
static bool
end_fault(void)
{
	fault.at = NEVER;
	ck_assert_int_lt(fault.calls, CALLS_MAX);
	return fault.hit;
}

/* Of the calls that read below dir/name, number k fails. */
static void
set_read_fault(const char *dir, const char *name, long k, int errnum)
{
	static char path[400];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fault.read = path;
	fault.read_at = k;
	fault.reads = 0;
	fault.errnum = errnum;
	fault.stays = false;
	fault.hit = false;
}

static bool
end_read_fault(void)
{
	fault.read = NULL;
	return fault.hit;
}

/* What failed, for messages. */
static const char *
fault_name(long k)
{
	static char text[100];

	snprintf(text, sizeof(text), "call %ld: %s%s%s", k,
	    strerror(fault.errnum), fault.stays ? " and so on" : "",
	    fault.no_exchange ? ", no exchange" : "");
	return text;
}

/* DIR/NAME, to be used at once. */
static const char *
in(const char *dir, const char *name)
{
	return unit_path(dir, name);
}

static bool
has(const char *dir, const char *name)
{
	struct stat st;

	return lstat(in(dir, name), &st) == 0;
}

/* It is there, all its bytes are good, and they are of this step. */
static bool
is_whole(const char *dir, const char *name, long step)
{
	struct checkpoint c;
	bool whole;

	if (!has(dir, name))
		return false;
	fixture_check(&c, in(dir, name), false);
	whole = c.report.state == VALID && checkpoint_step(&c) == step;
	checkpoint_fini(&c);
	return whole;
}

static void
new_dirs(void)
{
	top = fixture_dir();
	from = fixture_path(top, "fast");
	to = fixture_path(top, "durable");
	ck_assert_int_eq(mkdir(from, 0700), 0);
	ck_assert_int_eq(mkdir(to, 0700), 0);
	memset(unsynced, 0, sizeof(unsynced));
	trusted_unsynced = false;
}

static void
old_dirs(void)
{
	free(from);
	free(to);
	fixture_remove(top);
}

#endif
