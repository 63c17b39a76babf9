/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.c - the streams that are diagnosed together, and what is missing.
 *
 * Small files are read, larger ones mapped (common/map.h): a large log needs no
 * memory of this process, and thousands of files no descriptors.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diagnose/feed.h"
#include "diagnose/feed_file.h"
#include "diagnose/feed_path.h"
#include "diagnose/feed_seen.h"
#include "diagnose/feed_set.h"
#include "diagnose/feed_spool.h"
#include "diagnose/feed_tree.h"

#define MISSING_MAX	1000	/* files listed; more are counted */

int
feed_add_missing(struct feed *f, const char *name, const char *why)
{
	size_t cap = f->missing_cap ? f->missing_cap * 2 : 8;
	char **p, *text;

	if (f->missing_count == MISSING_MAX) {
		f->missing_more++;
		return 0;
	}
	if (f->missing_count == f->missing_cap) {
		if ((p = realloc(f->missing, cap * sizeof(*p))) == NULL)
			return -1;
		f->missing = p;
		f->missing_cap = cap;
	}
	if (asprintf(&text, "%s: %s", name, why) == -1)
		return -1;
	f->missing[f->missing_count++] = text;
	return 0;
}

char **
feed_list_missing(const struct feed *f, size_t *count)
{
	char **list = calloc(f->missing_count + f->count + 2, sizeof(*list));
	size_t i, n = 0;

	*count = 0;
	if (list == NULL)
		return NULL;
	for (i = 0; i < f->missing_count; i++)
		if ((list[n++] = strdup(f->missing[i])) == NULL)
			goto fail;
	for (i = 0; i < f->count; i++)
		if (map_is_hurt(&f->streams[i].map) && asprintf(&list[n++],
		    "%s: cut short or unreadable while it was read",
		    f->streams[i].name) == -1)
			goto fail;
	if (f->missing_more > 0 && asprintf(&list[n++], "%zu more files",
	    f->missing_more) == -1)
		goto fail;
	*count = n;
	return list;
fail:
	/* The entry that failed holds nothing. */
	while (--n > 0)
		free(list[n - 1]);
	free(list);
	return NULL;
}

struct stream *
feed_add_stream(struct feed *f, const char *name, struct err *err)
{
	struct stream *s;

	if (f->count == f->cap) {
		size_t cap = f->cap ? f->cap * 2 : 16;

		s = realloc(f->streams, cap * sizeof(*s));
		if (s == NULL) {
			err_memory(err);
			return NULL;
		}
		f->streams = s;
		f->cap = cap;
	}
	s = &f->streams[f->count];
	*s = (struct stream){ .rank = -1, .local_rank = -1, .data = "" };
	if ((s->name = strdup(name)) == NULL) {
		err_memory(err);
		return NULL;
	}
	s->borrowed = true;
	f->count++;
	return s;
}

static void
drop_bytes(struct feed *f, struct stream *s)
{
	if (s->mapped) {
		map_close(&s->map);
	} else if (!s->borrowed) {
		f->heap -= s->len;
		free((void *)(uintptr_t)s->data);
	}
}

void
feed_drop_stream(struct feed *f)
{
	struct stream *s = &f->streams[--f->count];

	drop_bytes(f, s);
	free(s->marks);
	free(s->name);
	free(s->node);
}

void
feed_set_heap(struct feed *f, struct stream *s, char *data, size_t len)
{
	drop_bytes(f, s);
	s->data = data;
	s->len = len;
	s->mapped = s->borrowed = false;
	f->heap += len;
}

void
feed_skip(struct feed *f, struct stream *s, size_t n)
{
	s->len -= n;
	if (s->mapped || s->borrowed) {
		s->data += n;
		return;
	}
	memmove((char *)(uintptr_t)s->data, s->data + n, s->len + MAP_TAIL);
	f->heap -= n;
}

/* Reads what there is of the first size bytes; a failure in the middle keeps what
 * came before it. */
static int
read_all(struct feed *f, struct stream *s, int fd, off_t offset, size_t size,
    struct err *err)
{
	char *data = size < SIZE_MAX / 2 ? malloc(size + MAP_TAIL) : NULL, *p;
	size_t done = 0;
	ssize_t n = 1;

	if (data == NULL)
		return err_memory(err);
	while (done < size && n != 0) {
		n = pread(fd, data + done, size - done,
		    offset + (off_t)done);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && done == 0) {
			err_errno(err, "cannot read");
			free(data);
			return -1;
		}
		if (n == -1) {
			feed_add_missing(f, s->name, strerror(errno));
			break;
		}
		done += (size_t)n;
	}
	if (done < size && (p = realloc(data, done + MAP_TAIL)) != NULL)
		data = p;
	memset(data + done, 0, MAP_TAIL);
	feed_set_heap(f, s, data, done);
	return 0;
}

int
feed_set_file(struct feed *f, struct stream *s, int fd, off_t offset,
    size_t len, struct err *err)
{
	struct err why = {0};
	struct map m;

	if (len <= FEED_READ_MAX && f->heap + len <= FEED_HEAP_MAX)
		return read_all(f, s, fd, offset, len, err);
	if (map_open(&m, fd, offset, len, &why) == 0) {
		drop_bytes(f, s);
		s->map = m;
		s->data = m.data;
		s->len = len;
		s->mapped = true;
		s->borrowed = false;
		return 0;
	}
	/* Too many of them; and some file systems cannot map. */
	if (why.code == ERR_LIMIT || why.errnum == ENOMEM ||
	    why.errnum == ENODEV)
		return read_all(f, s, fd, offset, len, err);
	*err = why;
	return -1;
}

int
feed_add(struct feed *f, const char *path, struct err *err)
{
	struct err why = {0};
	struct stat st;
	int rc;

	if (strcmp(path, "-") == 0)
		rc = feed_file_add(f, path, path, false, &why);
	else if (stat(path, &st) == -1)
		rc = err_errno(&why, "cannot open");
	else if ((S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)) &&
	    feed_seen(f, &st))
		return 0;
	else if (S_ISDIR(st.st_mode))
		rc = feed_tree_add(f, path, &why);
	else
		rc = feed_file_add(f, path, path, false, &why);
	if (rc == -1 && why.code != ERR_MEMORY &&
	    feed_add_missing(f, path, why.text) == 0)
		return 0;
	return rc == -1 ? err_memory(err) : 0;
}

int
feed_settle(struct feed *f, struct err *err)
{
	if (f->count > 0)
		return feed_set_compare(f, err);
	if (f->missing_count == 0)
		return err_set(err, ERR_USAGE, "nothing to read");
	if (f->missing_count == 1)
		return err_set(err, ERR_USAGE, "no log that can be read: %s",
		    f->missing[0]);
	return err_set(err, ERR_USAGE, "no log that can be read: %s, and %zu more",
	    f->missing[0], f->missing_count - 1);
}

int
feed_add_memory(struct feed *f, const char *name, const char *data, size_t len,
    struct err *err)
{
	struct stream *s = feed_add_stream(f, name, err);

	if (s == NULL)
		return -1;
	feed_path_describe(s);
	s->data = data;
	s->len = len;
	return 0;
}

void
feed_fini(struct feed *f)
{
	size_t i;

	while (f->count > 0)
		feed_drop_stream(f);
	for (i = 0; i < f->missing_count; i++)
		free(f->missing[i]);
	feed_seen_free(f);
	feed_spool_close(f);
	free(f->streams);
	free(f->missing);
	memset(f, 0, sizeof(*f));
}

/* Newlines of a range.  Eight bytes at once: 0x80 of each byte of `hit` says that
 * the byte is one; sums of a byte's lane stay below 256. */
static uint64_t
count_newlines(const char *data, size_t len)
{
	const uint64_t ones = 0x0101010101010101u;
	const uint64_t low = 0x7f * ones;
	uint64_t n = 0, word, hit, lanes;
	size_t i = 0, end;

	while (len - i >= 8) {
		end = len - i > 255 * 8 ? i + 255 * 8 : len / 8 * 8;
		end = i + (end - i) / 8 * 8;
		for (lanes = 0; i < end; i += 8) {
			memcpy(&word, data + i, 8);
			word ^= '\n' * ones;
			hit = ~(((word & low) + low) | word | low);
			lanes += hit >> 7;
		}
		lanes = (lanes & 0x00ff00ff00ff00ffu) +
		    (lanes >> 8 & 0x00ff00ff00ff00ffu);
		n += lanes * 0x0001000100010001u >> 48;
	}
	for (; i < len; i++)
		n += data[i] == '\n';
	return n;
}

int
stream_mark(struct stream *s, size_t offset, uint64_t lines, struct err *err)
{
	size_t cap = s->mark_cap ? 2 * s->mark_cap : 4;
	struct line_mark *p;

	if (s->renumbered || (s->mark_count > 0 &&
	    s->marks[s->mark_count - 1].offset >= offset))
		return 0;
	if (s->mark_count == s->mark_cap) {
		if ((p = realloc(s->marks, cap * sizeof(*p))) == NULL)
			return err_memory(err);
		s->marks = p;
		s->mark_cap = cap;
	}
	s->marks[s->mark_count++] = (struct line_mark){ offset, lines };
	return 0;
}

uint64_t
stream_line(const struct stream *s, size_t offset)
{
	struct line_mark from = { 0, 0 };
	size_t lo = 0, hi = s->mark_count, mid;
	uint64_t n;

	/* Its text was decoded out of one line. */
	if (s->kind == STREAM_ERROR)
		return 1;
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (s->marks[mid].offset <= offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo > 0)
		from = s->marks[lo - 1];
	n = count_newlines(s->data + from.offset, offset - from.offset);
	stream_release(s, from.offset, offset);
	return (s->renumbered ? 0 : s->lines_before) + from.lines + n + 1;
}

uint64_t
stream_lines(const struct stream *s)
{
	uint64_t n;

	if (s->len == 0)
		return 0;
	/* A newline as the last byte ends the last line. */
	if (s->kind != STREAM_ERROR && s->mark_count > 0 &&
	    s->marks[s->mark_count - 1].offset == s->len)
		n = (s->renumbered ? 0 : s->lines_before) +
		    s->marks[s->mark_count - 1].lines +
		    (s->data[s->len - 1] != '\n');
	else
		n = stream_line(s, s->len - 1);
	stream_release(s, s->len - 1, s->len);
	return n;
}

void
stream_release(const struct stream *s, size_t from, size_t to)
{
	size_t skipped;

	if (!s->mapped)
		return;
	skipped = (size_t)(s->data - s->map.data);
	map_release(&s->map, from > 0 ? from + skipped : 0, to + skipped);
}
