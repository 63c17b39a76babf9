/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_copy.c - block by block, past the page cache: what was just written is not read
 * again, and a cache full of it would push out the trainer's data.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "checkpoint/names.h"
#include "checkpoint/stage_copy.h"

int
stage_copy_init(struct stage_copy *c, uint64_t bytes_per_s,
    const atomic_bool *cancel, struct err *err)
{
	memset(c, 0, sizeof(*c));
	c->limit = (struct sink_limit)SINK_LIMIT_INIT;
	c->limit.bytes_per_s = bytes_per_s;
	c->limit.cancel = cancel;
	c->state = XXH3_createState();
	return c->state != NULL ? 0 : err_memory(err);
}

void
stage_copy_clear(struct stage_copy *c)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		free(c->files[i].name);
	c->n = 0;
}

void
stage_copy_fini(struct stage_copy *c)
{
	stage_copy_clear(c);
	free(c->files);
	XXH3_freeState(c->state);
	memset(c, 0, sizeof(*c));
}

/* Fewer than `len` bytes only at the end of the file. */
static ssize_t
read_full(int fd, uint8_t *to, size_t len)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = read(fd, to + done, len - done);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return -1;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static int
copy_data(struct stage_copy *c, int fd, const char *from, struct sink *to,
    struct err *err)
{
	size_t room;
	void *block;
	ssize_t n;

	XXH3_128bits_reset(c->state);
	do {
		block = sink_room(to, &room);
		if ((n = read_full(fd, block, room)) == -1)
			return err_errno(err, "cannot read %s", from);
		XXH3_128bits_update(c->state, block, (size_t)n);
		if (sink_filled(to, (size_t)n, err) == -1)
			return -1;
	} while ((size_t)n == room);
	return sink_flush(to, err);
}

/* Takes over the bytes, the name and the digest of the copied file. */
static int
add_file(struct stage_copy *c, const char *name, const struct stat *st,
    struct err *err)
{
	struct stage_file *list;
	size_t cap;

	if (c->n == STAGE_FILES_MAX)
		return err_set(err, ERR_LIMIT, "more than %d files",
		    STAGE_FILES_MAX);
	if (c->n == c->cap) {
		cap = c->cap ? c->cap * 2 : 16;
		list = reallocarray(c->files, cap, sizeof(*list));
		if (list == NULL)
			return err_memory(err);
		c->files = list;
		c->cap = cap;
	}
	list = &c->files[c->n];
	*list = (struct stage_file){ .name = strdup(name),
	    .size = (uint64_t)st->st_size, .mtime_ns = file_mtime_ns(st),
	    .dev = st->st_dev, .ino = st->st_ino,
	    .digest = XXH3_128bits_digest(c->state) };
	if (list->name == NULL)
		return err_memory(err);
	c->n++;
	return 0;
}

static bool
same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	    a->st_size == b->st_size && file_mtime_ns(a) == file_mtime_ns(b);
}

/* The time goes with the bytes: by it a copy is known again. */
static int
copy_open(struct stage_copy *c, int fd, const struct stat *st, const char *from,
    const char *to, struct err *err)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };
	struct stat after;
	struct sink sink;

	if (sink_open(&sink, to, st->st_mode & 0777, &c->limit, err) == -1)
		return -1;
	if (copy_data(c, fd, from, &sink, err) == -1)
		goto fail;
	if (futimens(sink.fd, times) == -1) {
		err_errno(err, "cannot write %s", to);
		goto fail;
	}
	if (sink_close(&sink, err) == -1)
		goto fail;
	if (stat(from, &after) == 0 && same_file(st, &after) &&
	    sink.offset == (uint64_t)st->st_size)
		return 0;
	err_set(err, ERR_BUSY, "%s changed while it was copied", from);
fail:
	sink_abandon(&sink);
	return -1;
}

static int
copy_file(struct stage_copy *c, const char *from, const char *to,
    const char *name, struct err *err)
{
	struct stat st;
	int fd, rc = -1;

	fd = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd == -1)
		return err_errno(err, "cannot open %s", from);
	if (fstat(fd, &st) == -1)
		err_errno(err, "cannot stat %s", from);
	else if (!S_ISREG(st.st_mode))
		err_set(err, ERR_FORMAT, "%s is no regular file", from);
	else if (copy_open(c, fd, &st, from, to, err) == 0)
		rc = add_file(c, name, &st, err);
	close(fd);
	return rc;
}

/* A link to a neighbour keeps its meaning in the copy; others do not. */
static int
copy_link(const char *from, const char *to, struct err *err)
{
	char target[PATH_MAX];
	ssize_t n = readlink(from, target, sizeof(target) - 1);

	if (n == -1)
		return err_errno(err, "cannot read %s", from);
	target[n] = '\0';
	if (target[0] == '/' || strstr(target, "..") != NULL)
		return err_set(err, ERR_FORMAT, "%s is a link that leads outside",
		    from);
	if (symlink(target, to) == -1)
		return err_errno(err, "cannot create %s", to);
	return 0;
}

static int copy_any(struct stage_copy *, const char *, const char *,
    const char *, int, struct err *);

static int
copy_dir(struct stage_copy *c, const char *from, const char *to,
    const char *name, int depth, struct err *err)
{
	struct names names = {0};
	char *below[3];
	size_t i;
	int rc;

	if (depth == STAGE_DEPTH_MAX)
		return err_set(err, ERR_LIMIT, "%s is too deep", from);
	if (mkdir(to, 0777) == -1)
		return err_errno(err, "cannot create %s", to);
	if (names_read(&names, from) == -1) {
		names_fini(&names);
		return err_errno(err, "cannot read %s", from);
	}
	for (i = 0, rc = 0; rc == 0 && i < names.n; i++) {
		below[0] = file_join(from, names.list[i]);
		below[1] = file_join(to, names.list[i]);
		below[2] = *name == '\0' ? strdup(names.list[i]) :
		    file_join(name, names.list[i]);
		if (below[0] == NULL || below[1] == NULL || below[2] == NULL)
			rc = err_memory(err);
		else
			rc = copy_any(c, below[0], below[1], below[2], depth + 1,
			    err);
		free(below[0]);
		free(below[1]);
		free(below[2]);
	}
	names_fini(&names);
	return rc == 0 ? file_sync_dir(to, err) : -1;
}

static int
copy_any(struct stage_copy *c, const char *from, const char *to,
    const char *name, int depth, struct err *err)
{
	struct stat st;

	if (lstat(from, &st) == -1)
		return err_errno(err, "cannot stat %s", from);
	if (S_ISDIR(st.st_mode))
		return copy_dir(c, from, to, name, depth, err);
	if (S_ISLNK(st.st_mode))
		return copy_link(from, to, err);
	return copy_file(c, from, to, name, err);
}

/* Files that were copied early may have changed while later ones were. */
static int
check_unchanged(const struct stage_copy *c, const char *from, struct err *err)
{
	const struct stage_file *f;
	struct stat st;
	char *path;
	bool same;
	size_t i;

	for (i = 0; i < c->n; i++) {
		f = &c->files[i];
		path = *f->name == '\0' ? strdup(from) : file_join(from, f->name);
		if (path == NULL)
			return err_memory(err);
		same = stat(path, &st) == 0 && st.st_dev == f->dev &&
		    st.st_ino == f->ino && (uint64_t)st.st_size == f->size &&
		    file_mtime_ns(&st) == f->mtime_ns;
		if (!same)
			err_set(err, ERR_BUSY, "%s changed while it was copied",
			    path);
		free(path);
		if (!same)
			return -1;
	}
	return 0;
}

int
stage_copy_run(struct stage_copy *c, const char *from, const char *to,
    struct err *err)
{
	stage_copy_clear(c);
	if (copy_any(c, from, to, "", 0, err) == -1)
		return -1;
	return check_unchanged(c, from, err);
}

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path) == -1 && errno != ENOENT ? -1 : 0;
}

int
stage_remove(const char *path, struct err *err)
{
	struct stat st;

	if (lstat(path, &st) == -1)
		return errno == ENOENT ? 0 : err_errno(err, "cannot stat %s", path);
	if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) == -1)
		return err_errno(err, "cannot remove %s", path);
	return 0;
}

int
stage_remove_inside(const char *dir, const char *prefix, struct err *err)
{
	struct names names = {0};
	char *path;
	size_t i;
	int rc = 0;

	if (names_read(&names, dir) == -1)
		rc = errno == ENOENT ? 0 : err_errno(err, "cannot read %s", dir);
	for (i = 0; rc == 0 && i < names.n; i++) {
		if (strncmp(names.list[i], prefix, strlen(prefix)) != 0)
			continue;
		if ((path = file_join(dir, names.list[i])) == NULL)
			rc = err_memory(err);
		else
			rc = stage_remove(path, err);
		free(path);
	}
	names_fini(&names);
	return rc;
}
