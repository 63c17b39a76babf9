/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_copy.c - block by block, past the page cache where the file system lets it:
 * what was just written is not read again, and a cache full of it would push out the
 * trainer's data.
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

#include "common/clock.h"
#include "common/file.h"
#include "checkpoint/names.h"
#include "checkpoint/stage_copy.h"

#define ALIGNMENT	4096u		/* of buffers and sizes for O_DIRECT */
#define NAP_NS		(50 * NS_PER_MS)
#define BURST_NS	(100 * NS_PER_MS)	/* that may be made up for */

struct copy_fds {
	int	from, to;
	bool	direct;
};

int
stage_copy_init(struct stage_copy *c, uint64_t bytes_per_s,
    const atomic_bool *cancel, struct err *err)
{
	void *block = NULL;

	memset(c, 0, sizeof(*c));
	c->bytes_per_s = bytes_per_s;
	c->cancel = cancel;
	c->started_ns = clock_mono_ns(&clock_system);
	c->state = XXH3_createState();
	if (c->state == NULL || posix_memalign(&block, ALIGNMENT, STAGE_BLOCK) != 0)
		return err_memory(err);
	c->block = block;
	return 0;
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
	free(c->block);
	XXH3_freeState(c->state);
	memset(c, 0, sizeof(*c));
}

static bool
is_cancelled(const struct stage_copy *c)
{
	return c->cancel != NULL && atomic_load(c->cancel);
}

/* Waits until the bytes since the start of the limit are due.  After a pause the
 * limit starts anew: time without work is not saved up. */
static int
keep_limit(struct stage_copy *c, struct err *err)
{
	int64_t due, now = clock_mono_ns(&clock_system);
	struct timespec nap = { 0, 0 };

	if (is_cancelled(c))
		return err_set(err, ERR_BUSY, "told to end");
	if (c->bytes_per_s == 0)
		return 0;
	for (;;) {
		due = c->started_ns + (int64_t)((double)(c->bytes -
		    c->started_bytes) * (double)NS_PER_S / (double)c->bytes_per_s);
		if (due < now - BURST_NS) {
			c->started_ns = now;
			c->started_bytes = c->bytes;
		}
		if (due <= now)
			return 0;
		nap.tv_nsec = due - now < NAP_NS ? due - now : NAP_NS;
		nanosleep(&nap, NULL);
		if (is_cancelled(c))
			return err_set(err, ERR_BUSY, "told to end");
		now = clock_mono_ns(&clock_system);
	}
}

/* A block, shorter only at the end of the file. */
static ssize_t
read_block(int fd, uint8_t *block)
{
	size_t done = 0;
	ssize_t n;

	while (done < STAGE_BLOCK) {
		n = read(fd, block + done, STAGE_BLOCK - done);
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
write_block(struct copy_fds *f, const uint8_t *block, size_t len)
{
	size_t done = 0;
	ssize_t n;

	/* The end of a file need not fill a sector. */
	if (f->direct && len % ALIGNMENT != 0) {
		if (fcntl(f->to, F_SETFL, 0) == -1)
			return -1;
		f->direct = false;
	}
	while (done < len) {
		n = write(f->to, block + done, len - done);
		if (n == -1 && errno == EINTR)
			continue;
		/* Some file systems take O_DIRECT at open and refuse it here. */
		if (n == -1 && errno == EINVAL && f->direct) {
			f->direct = false;
			if (fcntl(f->to, F_SETFL, 0) == -1)
				return -1;
			continue;
		}
		if (n == -1)
			return -1;
		if (f->direct && (size_t)n < len - done &&
		    (size_t)n % ALIGNMENT != 0) {
			f->direct = false;
			if (fcntl(f->to, F_SETFL, 0) == -1)
				return -1;
		}
		done += (size_t)n;
	}
	return 0;
}

static int
copy_data(struct stage_copy *c, struct copy_fds *f, const char *from,
    const char *to, uint64_t *size, struct err *err)
{
	ssize_t n;

	*size = 0;
	XXH3_128bits_reset(c->state);
	do {
		if (keep_limit(c, err) == -1)
			return -1;
		if ((n = read_block(f->from, c->block)) == -1)
			return err_errno(err, "cannot read %s", from);
		if (n > 0 && write_block(f, c->block, (size_t)n) == -1)
			return err_errno(err, "cannot write %s", to);
		XXH3_128bits_update(c->state, c->block, (size_t)n);
		*size += (uint64_t)n;
		c->bytes += (uint64_t)n;
	} while (n == (ssize_t)STAGE_BLOCK);
	return 0;
}

static int
open_new(const char *path, mode_t mode, bool *direct, struct err *err)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
	int fd = open(path, flags | O_DIRECT, mode);

	*direct = fd != -1;
	/* tmpfs and some network file systems; the file may be there already. */
	if (fd == -1 && errno == EINVAL) {
		unlink(path);
		fd = open(path, flags, mode);
	}
	return fd != -1 ? fd : err_errno(err, "cannot create %s", path);
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

static int
copy_file(struct stage_copy *c, const char *from, const char *to,
    const char *name, struct err *err)
{
	struct copy_fds f = { -1, -1, false };
	struct stat before, after;
	struct timespec times[2];
	uint64_t size;
	int rc = -1;

	f.from = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (f.from == -1)
		return err_errno(err, "cannot open %s", from);
	if (fstat(f.from, &before) == -1) {
		err_errno(err, "cannot stat %s", from);
		goto out;
	}
	if (!S_ISREG(before.st_mode)) {
		err_set(err, ERR_FORMAT, "%s is no regular file", from);
		goto out;
	}
	if ((f.to = open_new(to, before.st_mode & 0777, &f.direct, err)) == -1)
		goto out;
	if (copy_data(c, &f, from, to, &size, err) == -1)
		goto out;
	times[0] = before.st_atim;
	times[1] = before.st_mtim;
	if (futimens(f.to, times) == -1 || fsync(f.to) == -1) {
		err_errno(err, "cannot write %s", to);
		goto out;
	}
	posix_fadvise(f.to, 0, 0, POSIX_FADV_DONTNEED);
	if (stat(from, &after) == -1 || !same_file(&before, &after) ||
	    size != (uint64_t)before.st_size) {
		err_set(err, ERR_BUSY, "%s changed while it was copied", from);
		goto out;
	}
	rc = add_file(c, name, &before, err);
out:
	close(f.from);
	/* Write-back errors of network file systems appear at close. */
	if (f.to != -1 && close(f.to) == -1 && rc == 0)
		rc = err_errno(err, "cannot write %s", to);
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
