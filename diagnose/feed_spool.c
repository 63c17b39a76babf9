/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_spool.c - a file without a name, for bytes that cannot be mapped where
 * they come from.
 *
 * Decides how much that may be: a few kilobytes may unpack to terabytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "diagnose/feed_spool.h"

#define HEAP_ONE_MAX	((size_t)1 << 20)
#define LEN_MAX		((uint64_t)64 << 30)

static const char *
temp_dir(void)
{
	const char *dir = getenv("TMPDIR");

	return dir != NULL && *dir != '\0' ? dir : "/tmp";
}

void
feed_spool_init(struct feed_spool *s, const struct feed *f)
{
	size_t left = f->heap < FEED_HEAP_MAX ? FEED_HEAP_MAX - f->heap : 0;

	*s = (struct feed_spool){ .fd = -1, .len_max = LEN_MAX,
	    .heap_max = left < HEAP_ONE_MAX ? left : HEAP_ONE_MAX };
}

static int
write_all(int fd, const char *data, size_t len, struct err *err)
{
	ssize_t n;

	while (len > 0) {
		n = write(fd, data, len);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return err_errno(err, "cannot keep it in %s",
			    temp_dir());
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Moves to a file.  A quarter of the free space stays free. */
static int
open_file(struct feed_spool *s, struct err *err)
{
	struct statvfs fs;
	char path[4096];
	uint64_t left;

	if (snprintf(path, sizeof(path), "%s/holdfast.XXXXXX", temp_dir()) >=
	    (int)sizeof(path))
		return err_set(err, ERR_USAGE, "TMPDIR is too long");
	if ((s->fd = mkostemp(path, O_CLOEXEC)) == -1)
		return err_errno(err, "cannot keep it in %s", temp_dir());
	unlink(path);
	if (fstatvfs(s->fd, &fs) == 0) {
		left = (uint64_t)fs.f_bavail * fs.f_frsize / 4 * 3;
		if (left < s->len_max)
			s->len_max = left;
	}
	if (write_all(s->fd, s->heap.data, s->heap.len, err) == -1)
		return -1;
	buf_fini(&s->heap);
	return 0;
}

int
feed_spool_write(struct feed_spool *s, const void *data, size_t len,
    struct err *err)
{
	if (len == 0)
		return 0;
	if (s->fd == -1 && s->heap.len + len <= s->heap_max) {
		if (buf_append(&s->heap, data, len) == -1)
			return err_memory(err);
		s->len += len;
		return 0;
	}
	if (s->fd == -1 && open_file(s, err) == -1)
		return -1;
	if (s->len + len > s->len_max)
		return err_set(err, ERR_LIMIT, "more than %llu MiB, which is what "
		    "%s can take", (unsigned long long)(s->len_max >> 20),
		    temp_dir());
	if (write_all(s->fd, data, len, err) == -1)
		return -1;
	s->len += len;
	return 0;
}

int
feed_spool_finish(struct feed_spool *s, struct feed *f, struct stream *stream,
    struct err *err)
{
	static const char tail[MAP_TAIL];
	size_t len = s->heap.len;

	if (s->fd != -1)
		return feed_set_file(f, stream, s->fd, (size_t)s->len, err);
	if (buf_append(&s->heap, tail, sizeof(tail)) == -1)
		return err_memory(err);
	feed_set_heap(f, stream, buf_steal(&s->heap), len);
	return 0;
}

void
feed_spool_fini(struct feed_spool *s)
{
	buf_fini(&s->heap);
	if (s->fd != -1)
		close(s->fd);
	s->fd = -1;
}
