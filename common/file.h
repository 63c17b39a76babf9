/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - files that are whole or absent.
 *
 * These calls block; programs with a loop use them at start-up only, or
 * through writer.h.
 */
#ifndef HOLDFAST_COMMON_FILE_H
#define HOLDFAST_COMMON_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "common/buf.h"
#include "common/err.h"

/* Appends the file's bytes to out; more than max bytes is ERR_LIMIT.  Refuses
 * what is no regular file. */
int	file_read(const char *path, size_t max, struct buf *out,
	    struct err *err);

/* Replaces path by a file with these bytes: temp file beside it, fsync, rename,
 * fsync of the directory.  On failure the old file stands. */
int	file_write_atomic(const char *path, const void *data, size_t len,
	    mode_t mode, struct err *err);

/* fsync of a directory, so that a rename in it survives a power loss. */
int	file_sync_dir(const char *dir, struct err *err);

/* The same of the directory that path lies in. */
int	file_sync_parent(const char *path, struct err *err);

/* When the contents changed last, in nanoseconds since 1970. */
int64_t	file_mtime_ns(const struct stat *);

/* Both are there, and are one file or directory; links are followed. */
bool	file_is_same(const char *a, const char *b);

/* mkdir -p; what exists keeps its mode. */
int	file_mkdirs(const char *dir, mode_t mode, struct err *err);

/* What path is called inside dir, by their texts; NULL when it is not below dir. */
const char *file_inside(const char *dir, const char *path);

/* "dir/name" into a new string, NULL when memory is short. */
char	*file_join(const char *dir, const char *name);

#endif
