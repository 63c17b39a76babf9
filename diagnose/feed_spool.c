/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_spool.c - a file without a name, for bytes that cannot be mapped where
 * they come from.
 *
 * Decides how much that may be: a few kilobytes may unpack to terabytes; and what of
 * it stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "diagnose/feed_spool.h"

#define HEAP_ONE_MAX	((size_t)1 << 20)
#define LEN_MAX		((uint64_t)64 << 30)

#define DROP_READ	65536u

struct feed_store {
	int		fd;
	uint64_t	end;	/* at a page, where the next stream may begin */
	uint64_t	used;	/* bytes in the file, without its holes */
	uint64_t	max;
};

static const char *
temp_dir(void)
{
	const char *dir = getenv("TMPDIR");

	return dir != NULL && *dir != '\0' ? dir : "/tmp";
}

void
feed_spool_init(struct feed_spool *s, struct feed *f)
{
	size_t left = f->heap < FEED_HEAP_MAX ? FEED_HEAP_MAX - f->heap : 0;

	*s = (struct feed_spool){ .feed = f,
	    .heap_max = left < HEAP_ONE_MAX ? left : HEAP_ONE_MAX };
}

static int
open_temp(struct err *err)
{
	char path[4096];
	int fd;

	if (snprintf(path, sizeof(path), "%s/holdfast.XXXXXX", temp_dir()) >=
	    (int)sizeof(path))
		return err_set(err, ERR_USAGE, "TMPDIR is too long");
	if ((fd = mkostemp(path, O_CLOEXEC)) == -1)
		return err_errno(err, "cannot keep it in %s", temp_dir());
	unlink(path);
	return fd;
}

/* The file of a feed.  A quarter of the free space stays free. */
static struct feed_store *
store_of(struct feed *f, struct err *err)
{
	struct feed_store *t = f->store;
	struct statvfs fs;

	if (t != NULL)
		return t;
	if ((t = calloc(1, sizeof(*t))) == NULL) {
		err_memory(err);
		return NULL;
	}
	if ((t->fd = open_temp(err)) == -1) {
		free(t);
		return NULL;
	}
	t->max = UINT64_MAX;
	if (fstatvfs(t->fd, &fs) == 0)
		t->max = (uint64_t)fs.f_bavail * fs.f_frsize / 4 * 3;
	if (f->spool_max > 0 && f->spool_max < t->max)
		t->max = f->spool_max;
	return f->store = t;
}

/* -1 when the range cannot be read. */
static int64_t
count_lines(int fd, uint64_t from, uint64_t to)
{
	const char *p, *end;
	char block[DROP_READ];
	int64_t lines = 0;
	ssize_t n;

	for (; from < to; from += (uint64_t)n) {
		n = pread(fd, block, to - from < sizeof(block) ?
		    (size_t)(to - from) : sizeof(block), (off_t)from);
		if (n <= 0)
			return -1;
		end = block + n;
		for (p = block; (p = memchr(p, '\n', (size_t)(end - p))) != NULL;
		    p++)
			lines++;
	}
	return lines;
}

/* Gives the first half of the spool back to the file system. */
static bool
drop_beginning(struct feed_spool *s)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t n = s->len / 2 / page * page;
	struct feed_store *t = s->feed->store;
	int64_t lines;

	if (s->keep_all || n == 0 ||
	    (lines = count_lines(t->fd, s->start, s->start + n)) == -1 ||
	    fallocate(t->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
	    (off_t)s->start, (off_t)n) == -1)
		return false;
	t->used -= n;
	s->start += n;
	s->len -= n;
	s->dropped += n;
	s->dropped_lines += (uint64_t)lines;
	return true;
}

static int
write_file(struct feed_spool *s, const char *data, size_t len, struct err *err)
{
	struct feed_store *t = s->feed->store;
	uint64_t at;
	ssize_t n;

	while (s->len + len > LEN_MAX || t->used + len > t->max) {
		if (drop_beginning(s))
			continue;
		return err_set(err, ERR_LIMIT, "more than %llu MiB, which is what "
		    "%s can take", (unsigned long long)(s->len >> 20),
		    temp_dir());
	}
	at = s->start + s->len;
	while (len > 0) {
		n = pwrite(t->fd, data, len, (off_t)at);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return err_errno(err, "cannot keep it in %s",
			    temp_dir());
		data += n;
		len -= (size_t)n;
		at += (uint64_t)n;
		t->used += (uint64_t)n;
	}
	s->len = at - s->start;
	if (s->feed->spooled != NULL)
		s->feed->spooled(s->dropped + s->len, s->feed->spooled_arg);
	return 0;
}

int
feed_spool_write(struct feed_spool *s, const void *data, size_t len,
    struct err *err)
{
	struct feed_store *t;

	if (len == 0)
		return 0;
	if (s->in_file)
		return write_file(s, data, len, err);
	if (s->heap.len + len <= s->heap_max) {
		if (buf_append(&s->heap, data, len) == -1)
			return err_memory(err);
		s->len += len;
		return 0;
	}
	if ((t = store_of(s->feed, err)) == NULL)
		return -1;
	s->start = t->end;
	s->len = 0;
	if (write_file(s, s->heap.data, s->heap.len, err) == -1) {
		s->len = s->heap.len;
		return -1;
	}
	s->in_file = true;
	buf_fini(&s->heap);
	return write_file(s, data, len, err);
}

int
feed_spool_finish(struct feed_spool *s, struct stream *stream, struct err *err)
{
	static const char tail[MAP_TAIL];
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct feed_store *t = s->feed->store;
	size_t len = s->heap.len;

	if (!s->in_file) {
		if (buf_append(&s->heap, tail, sizeof(tail)) == -1)
			return err_memory(err);
		feed_set_heap(s->feed, stream, buf_steal(&s->heap), len);
		return 0;
	}
	if (feed_set_file(s->feed, stream, t->fd, (off_t)s->start,
	    (size_t)s->len, err) == -1)
		return -1;
	t->end = (s->start + s->len + page - 1) / page * page;
	stream->lines_before += s->dropped_lines;
	return 0;
}

void
feed_spool_fini(struct feed_spool *s)
{
	buf_fini(&s->heap);
}

void
feed_spool_close(struct feed *f)
{
	if (f->store != NULL)
		close(f->store->fd);
	free(f->store);
	f->store = NULL;
}
