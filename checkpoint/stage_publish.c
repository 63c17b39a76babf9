/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_publish.c - replaces a checkpoint in one step where the file system can
 * exchange two names, and in two that can be undone where it cannot.
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
#include "checkpoint/manifest.h"
#include "checkpoint/names.h"
#include "checkpoint/stage_copy.h"
#include "checkpoint/stage_publish.h"

#define OLD_SUFFIX	"%old"
#define SLASH		'%'

char *
publish_incoming(const char *incoming, const char *name)
{
	char *path = file_join(incoming, name), *p;

	if (path == NULL)
		return NULL;
	for (p = path + strlen(incoming) + 1; *p != '\0'; p++)
		if (*p == '/')
			*p = SLASH;
	return path;
}

/* 1 when something has that name, 0 when not; -1 when the storage does not tell: then
 * nothing may be renamed to it. */
static int
exists(const char *path, struct err *err)
{
	struct stat st;

	if (lstat(path, &st) == 0)
		return 1;
	return errno == ENOENT ? 0 : err_errno(err, "cannot stat %s", path);
}

/* Two renames: the old one waits under a name that publish_recover() knows. */
static int
move_in_two_steps(const char *from, const char *to, struct err *err)
{
	char old[PATH_MAX];

	if (snprintf(old, sizeof(old), "%s%s", from, OLD_SUFFIX) >=
	    (int)sizeof(old))
		return err_set(err, ERR_LIMIT, "path too long: %s", from);
	if (stage_remove(old, err) == -1)
		return -1;
	if (rename(to, old) == -1)
		return err_errno(err, "cannot rename %s", to);
	if (rename(from, to) == -1) {
		err_errno(err, "cannot rename %s to %s", from, to);
		(void)rename(old, to);
		return -1;
	}
	if (file_sync_parent(to, err) == -1)
		return -1;
	return stage_remove(old, err);
}

int
publish_move(const char *from, const char *to, struct err *err)
{
	char *dir = strdup(to), *slash;
	int rc;

	if (dir == NULL)
		return err_memory(err);
	rc = 0;
	if ((slash = strrchr(dir, '/')) != NULL && slash != dir) {
		*slash = '\0';
		rc = file_mkdirs(dir, 0777, err);
	}
	free(dir);
	if (rc == -1)
		return -1;
	if ((rc = exists(to, err)) == -1)
		return -1;
	if (rc == 0) {
		if (rename(from, to) == -1)
			return err_errno(err, "cannot rename %s to %s", from, to);
		return file_sync_parent(to, err) == -1 ? -1 : file_sync_parent(from, err);
	}
	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == -1) {
		if (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP)
			return move_in_two_steps(from, to, err);
		return err_errno(err, "cannot exchange %s and %s", from, to);
	}
	if (file_sync_parent(to, err) == -1 || file_sync_parent(from, err) == -1)
		return -1;
	return stage_remove(from, err);
}

int
publish_settle(const char *from, const char *to, struct err *err)
{
	char *old;
	int rc;

	if (file_sync_parent(to, err) == -1)
		return -1;
	if (from == NULL)
		return 0;
	if (asprintf(&old, "%s%s", from, OLD_SUFFIX) == -1)
		return err_memory(err);
	rc = stage_remove(from, err) == -1 ? -1 : stage_remove(old, err);
	free(old);
	return rc;
}

/* "NAME%old": the place it was moved from, with the slashes of its name. */
static char *
place_of(const char *to, const char *entry)
{
	size_t n = strlen(entry) - strlen(OLD_SUFFIX);
	char *path, *p;

	if (asprintf(&path, "%s/%.*s", to, (int)n, entry) == -1)
		return NULL;
	for (p = path + strlen(to) + 1; *p != '\0'; p++)
		if (*p == SLASH)
			*p = '/';
	return path;
}

static int
recover_one(const char *incoming, const char *to, const char *entry,
    struct err *err)
{
	char *path = file_join(incoming, entry), *place;
	int rc = 0;

	if (path == NULL)
		return err_memory(err);
	if (name_ends_with(entry, OLD_SUFFIX)) {
		if ((place = place_of(to, entry)) == NULL)
			rc = err_memory(err);
		else if ((rc = exists(place, err)) == 0 &&
		    rename(path, place) == -1)
			rc = err_errno(err, "cannot put %s back", place);
		else if (rc == 1)
			rc = 0;
		free(place);
	}
	if (rc == 0)
		rc = stage_remove(path, err);
	free(path);
	return rc;
}

int
publish_recover(const char *incoming, const char *to, struct err *err)
{
	struct names names = {0};
	size_t i;
	int rc = 0;

	if (names_read(&names, incoming) == -1)
		rc = err_errno(err, "cannot read %s", incoming);
	for (i = 0; rc == 0 && i < names.n; i++)
		if (names.list[i][0] != '.')
			rc = recover_one(incoming, to, names.list[i], err);
	names_fini(&names);
	return rc;
}

/* A file system that keeps seconds or microseconds cut the rest off. */
static bool
same_time(const struct timespec *original, const struct timespec *copy)
{
	long ns = original->tv_nsec, kept = copy->tv_nsec;

	if (original->tv_sec != copy->tv_sec)
		return false;
	return kept == ns || kept == ns / 100 * 100 || kept == ns / 1000 * 1000 ||
	    kept == ns / 1000000 * 1000000 || kept == 0;
}

static bool
same_dir(const char *original, const char *copy)
{
	struct names names = {0};
	char *a, *b;
	bool same;
	size_t i;

	same = names_read(&names, original) == 0;
	for (i = 0; same && i < names.n; i++) {
		/* each place has its own */
		if (manifest_is_name(names.list[i]))
			continue;
		a = file_join(original, names.list[i]);
		b = file_join(copy, names.list[i]);
		same = a != NULL && b != NULL && publish_is_same(a, b);
		free(a);
		free(b);
	}
	names_fini(&names);
	return same;
}

bool
publish_is_same(const char *original, const char *copy)
{
	struct stat a, b;

	if (lstat(original, &a) == -1 || lstat(copy, &b) == -1 ||
	    (a.st_mode & S_IFMT) != (b.st_mode & S_IFMT))
		return false;
	if (S_ISDIR(a.st_mode))
		return same_dir(original, copy);
	if (!S_ISREG(a.st_mode))
		return true;
	return a.st_size == b.st_size && same_time(&a.st_mtim, &b.st_mtim);
}

enum publish_there
publish_look(const char *original, const char *place)
{
	struct stat own;

	if (lstat(original, &own) == -1 || !S_ISLNK(own.st_mode))
		return publish_is_same(original, place) ? PUBLISH_THERE :
		    PUBLISH_ABSENT;
	return file_is_same(original, place) ? PUBLISH_THERE : PUBLISH_NAME;
}
