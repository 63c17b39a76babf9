/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beside.c - makes a folder beside the save directory and moves into it, by renames
 * that never replace anything.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "checkpoint/beside.h"

static const char *
advice(int errnum)
{
	switch (errnum) {
	case EXDEV:
		return " (moves stay on one file system: use a subdirectory of the "
		    "mount as save directory, or move it by hand)";
	case EROFS:
		return " (mount it writable, or run this where it is)";
	case ENOSPC:
	case EDQUOT:
		return " (free some space or quota, then try again)";
	case EACCES:
	case EPERM:
		return " (run this as the owner of the directory, who must be able "
		    "to write its parent too)";
	case ENOENT:
		return " (it is gone or was replaced meanwhile: list again)";
	case ESTALE:
		return " (the server no longer knows it: enter the directory again)";
	case EEXIST:
	case ENOTEMPTY:
		return " (something has that name: move it away first)";
	case EBUSY:
		return " (it is a mount point or in use)";
	default:
		return "";
	}
}

int
beside_advise(struct err *err)
{
	struct err old;

	if (err == NULL || err->errnum == 0)
		return -1;
	old = *err;
	err_set(err, old.code, "%s%s", old.text, advice(old.errnum));
	err->errnum = old.errnum;
	return -1;
}

/* As err_errno(), with the next step behind it. */
static int
fail(struct err *err, const char *what, const char *path)
{
	err_errno(err, "cannot %s %s", what, path);
	return beside_advise(err);
}

char *
beside_split(const char *path, const char **name, struct err *err)
{
	const char *slash = strrchr(path, '/');
	char *dir, *real = NULL;

	*name = slash != NULL ? slash + 1 : path;
	dir = slash == NULL ? strdup(".") : slash == path ? strdup("/") :
	    strndup(path, (size_t)(slash - path));
	if (dir == NULL)
		err_memory(err);
	else if (**name == '\0' || strcmp(*name, ".") == 0 ||
	    strcmp(*name, "..") == 0)
		err_set(err, ERR_USAGE, "%s does not name a checkpoint", path);
	else if ((real = realpath(dir, NULL)) == NULL)
		fail(err, "resolve", dir);
	free(dir);
	return real;
}

char *
beside_path(const char *save_dir, const char *before, const char *behind,
    struct err *err)
{
	char *real, *slash, *out = NULL;

	if ((real = realpath(save_dir, NULL)) == NULL) {
		fail(err, "resolve", save_dir);
		return NULL;
	}
	slash = strrchr(real, '/');
	if (slash == NULL || slash[1] == '\0') {
		err_set(err, ERR_USAGE, "/ has no room beside it: use a "
		    "subdirectory as save directory");
	} else {
		*slash = '\0';
		if (asprintf(&out, "%s/%s%s%s", real, before, slash + 1, behind)
		    == -1) {
			out = NULL;
			err_memory(err);
		}
	}
	free(real);
	return out;
}

int
beside_make(const char *save_dir, const char *dir, struct err *err)
{
	struct stat from, to;
	bool made;

	if (stat(save_dir, &from) == -1)
		return fail(err, "stat", save_dir);
	made = mkdir(dir, (from.st_mode & 0777) | 0700) == 0;
	if (!made && errno != EEXIST)
		return fail(err, "create", dir);
	if (lstat(dir, &to) == -1)
		return fail(err, "stat", dir);
	if (!S_ISDIR(to.st_mode))
		return err_set(err, ERR_SYSTEM, "%s is in the way: not a "
		    "directory (move it away)", dir);
	if (from.st_dev == to.st_dev)
		return 0;
	if (made)
		(void)rmdir(dir);
	errno = EXDEV;
	return fail(err, "move checkpoints to", dir);
}

/* renameat2() with RENAME_NOREPLACE; file systems that lack it get a check first. */
static int
rename_new(const char *from, const char *to)
{
	struct stat st;

	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP)
		return -1;
	if (lstat(to, &st) == 0) {
		errno = EEXIST;
		return -1;
	}
	return rename(from, to);
}

/* Some file systems (overlayfs) give another inode number when they copy on a rename;
 * those keep size and time. */
static bool
is_same(const struct stat *a, const struct stat *b)
{
	if (a->st_ino == b->st_ino)
		return true;
	return a->st_size == b->st_size &&
	    a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	    a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int
beside_move(const char *from, const char *to, struct err *err)
{
	struct stat before, after;
	bool seen = lstat(from, &before) == 0;

	if (rename_new(from, to) == -1) {
		err_errno(err, "cannot move %s to %s", from, to);
		return beside_advise(err);
	}
	/* Another one took the name between the two calls: it stays where it was. */
	if (seen && lstat(to, &after) == 0 && !is_same(&before, &after)) {
		(void)rename_new(to, from);
		return err_set(err, ERR_BUSY, "%s was replaced meanwhile: stop "
		    "the job that writes it, then try again", from);
	}
	/* What cannot be synced has moved nevertheless. */
	(void)file_sync_parent(to, NULL);
	(void)file_sync_parent(from, NULL);
	return 0;
}

/* The path with its last component between two texts. */
static int
companion(const char *path, const char *before, const char *behind,
    char out[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	int at = slash != NULL ? (int)(slash - path) + 1 : 0;

	return snprintf(out, PATH_MAX, "%.*s%s%s%s", at, path, before, path + at,
	    behind) < PATH_MAX ? 0 : -1;
}

int
beside_follow(const char *from, const char *to, struct err *err)
{
	static const struct {
		const char	*before, *behind;
	} rows[] = {
		{ ".", ".holdfast-manifest.json" },
		{ "", ".md5" },
		{ "", "-unfinished" }	/* last: until then the rest is not whole */
	};
	char here[PATH_MAX], there[PATH_MAX];
	struct stat st;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (companion(from, rows[i].before, rows[i].behind, here) == -1 ||
		    companion(to, rows[i].before, rows[i].behind, there) == -1)
			return err_set(err, ERR_LIMIT, "path too long: %s", from);
		if (lstat(here, &st) == 0 && beside_move(here, there, err) == -1)
			return -1;
	}
	return 0;
}
