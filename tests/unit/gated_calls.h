/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gated_calls.h - calls that change something, replaced in front of the C library's.  For
 * tests that are one file, which define gate() and renameat2() before they include this:
 * a call fails, with the errno that gate() set, when gate() says so.
 */
#ifndef HOLDFAST_TESTS_GATED_CALLS_H
#define HOLDFAST_TESTS_GATED_CALLS_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int
rename(const char *old, const char *new)
{
	return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0);
}

int
link(const char *old, const char *new)
{
	return gate() ? -1 : (int)syscall(SYS_linkat, AT_FDCWD, old, AT_FDCWD, new,
	    0);
}

int
symlink(const char *target, const char *path)
{
	return gate() ? -1 : (int)syscall(SYS_symlinkat, target, AT_FDCWD, path);
}

int
mkdir(const char *path, mode_t mode)
{
	return gate() ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int
unlink(const char *path)
{
	return gate() ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

ssize_t
write(int fd, const void *data, size_t n)
{
	return gate() ? -1 : (ssize_t)syscall(SYS_write, fd, data, n);
}

#endif
