/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c - reads and replaces whole files.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"

int
file_read(const char *path, size_t max, struct buf *out, struct err *err)
{
	struct stat st;
	ssize_t n;
	size_t had = out->len;
	int fd, rc = -1;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd == -1)
		return err_errno(err, "cannot open %s", path);
	if (fstat(fd, &st) == -1) {
		err_errno(err, "cannot stat %s", path);
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		err_set(err, ERR_FORMAT, "%s is not a regular file", path);
		goto out;
	}
	for (;;) {
		if (out->len - had > max) {
			err_set(err, ERR_LIMIT, "%s is larger than %zu bytes",
			    path, max);
			goto out;
		}
		if (buf_reserve(out, 65536) == -1) {
			err_memory(err);
			goto out;
		}
		n = read(fd, out->data + out->len, 65536);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1) {
			err_errno(err, "cannot read %s", path);
			goto out;
		}
		if (n == 0)
			break;
		out->len += (size_t)n;
		out->data[out->len] = '\0';
	}
	rc = 0;
out:
	close(fd);
	return rc;
}

static int
write_all(int fd, const char *p, size_t len)
{
	ssize_t n;

	while (len > 0) {
		n = write(fd, p, len);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return -1;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int
file_sync_dir(const char *dir, struct err *err)
{
	int fd, rc = 0;

	if ((fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) == -1)
		return err_errno(err, "cannot open %s", dir);
	/* Some file systems cannot sync a directory and say EINVAL. */
	if (fsync(fd) == -1 && errno != EINVAL)
		rc = err_errno(err, "cannot sync %s", dir);
	close(fd);
	return rc;
}

int
file_sync_parent(const char *path, struct err *err)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(path, '/');

	if (slash == NULL)
		return file_sync_dir(".", err);
	if ((size_t)(slash - path) >= sizeof(dir))
		return err_set(err, ERR_LIMIT, "path too long: %s", path);
	snprintf(dir, sizeof(dir), "%.*s",
	    slash == path ? 1 : (int)(slash - path), path);
	return file_sync_dir(dir, err);
}

int64_t
file_mtime_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * NS_PER_S + st->st_mtim.tv_nsec;
}

int
file_write_atomic(const char *path, const void *data, size_t len, mode_t mode,
    struct err *err)
{
	char temp[PATH_MAX];
	int fd;

	if (snprintf(temp, sizeof(temp), "%s.XXXXXX", path) >=
	    (int)sizeof(temp))
		return err_set(err, ERR_LIMIT, "path too long: %s", path);
	if ((fd = mkostemp(temp, O_CLOEXEC)) == -1)
		return err_errno(err, "cannot create %s", temp);
	if (fchmod(fd, mode) == -1 || write_all(fd, data, len) == -1 ||
	    fsync(fd) == -1) {
		err_errno(err, "cannot write %s", temp);
		close(fd);
		goto fail;
	}
	/* Write-back errors of network file systems appear at close. */
	if (close(fd) == -1) {
		err_errno(err, "cannot write %s", temp);
		goto fail;
	}
	if (rename(temp, path) == -1) {
		err_errno(err, "cannot rename %s to %s", temp, path);
		goto fail;
	}
	return file_sync_parent(path, err);
fail:
	unlink(temp);
	return -1;
}

int
file_mkdirs(const char *dir, mode_t mode, struct err *err)
{
	char path[PATH_MAX], *p;
	struct stat st;

	if (snprintf(path, sizeof(path), "%s", dir) >= (int)sizeof(path))
		return err_set(err, ERR_LIMIT, "path too long: %s", dir);
	for (p = path + 1; ; p++) {
		if (*p != '/' && *p != '\0')
			continue;
		char had = *p;

		*p = '\0';
		if (mkdir(path, mode) == -1 && errno != EEXIST)
			return err_errno(err, "cannot create directory %s",
			    path);
		if (had == '\0')
			break;
		*p = had;
	}
	if (stat(dir, &st) == -1)
		return err_errno(err, "cannot stat %s", dir);
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ERR_SYSTEM, "%s is not a directory", dir);
	return 0;
}

bool
file_is_same(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
	    x.st_ino == y.st_ino;
}

const char *
file_inside(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	while (n > 1 && dir[n - 1] == '/')
		n--;
	return strncmp(dir, path, n) == 0 && path[n] == '/' && path[n + 1] ?
	    path + n + 1 : NULL;
}

char *
file_join(const char *dir, const char *name)
{
	char *out;

	if (asprintf(&out, "%s/%s", dir, name) == -1)
		return NULL;
	return out;
}
