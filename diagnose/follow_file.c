/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow_file.c - follows a path through the files it names one after the other.
 *
 * A file that is renamed away stays open, so that the verdict at the end reads all
 * of it.  What is cut off (copy and truncate) is gone: of that, only the lines of
 * findings are kept, at their line numbers.  Standard input is spooled.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diagnose/feed_file.h"
#include "diagnose/feed_path.h"
#include "diagnose/follow_file.h"

#define BLOCK		((size_t)64 << 10)
#define KEPT_MAX	((size_t)4 << 20)
#define KEPT_LINE_MAX	4096u

int
follow_file_init(struct follow_file *f, const char *path,
    struct rule_set *set, const struct live_calls *calls, struct feed *feed,
    struct err *err)
{
	*f = (struct follow_file){ .path = path, .set = set, .calls = *calls,
	    .fd = -1 };
	feed_spool_init(&f->spool, feed);
	if (strcmp(path, "-") == 0)
		f->fd = STDIN_FILENO;
	return live_new(set, &f->calls, &f->live, err);
}

bool
follow_file_is_input(const struct follow_file *f)
{
	return strcmp(f->path, "-") == 0;
}

static void
drop_piece(struct follow_file *f, size_t i)
{
	close(f->pieces[i]);
	buf_fini(&f->piece_kept[i]);
}

void
follow_file_fini(struct follow_file *f)
{
	size_t i;

	if (f->fd != -1 && !follow_file_is_input(f))
		close(f->fd);
	for (i = 0; i < f->piece_count; i++)
		drop_piece(f, i);
	live_free(f->live);
	buf_fini(&f->kept);
	buf_fini(&f->lost);
	feed_spool_fini(&f->spool);
	f->fd = -1;
	f->live = NULL;
	f->piece_count = 0;
}

/* Lines and offsets start again. */
static void
restart(struct follow_file *f)
{
	struct live *fresh;

	live_flush(f->live);
	if (live_new(f->set, &f->calls, &fresh, NULL) == 0) {
		live_free(f->live);
		f->live = fresh;
	}
	f->offset = 0;
	f->tail_len = 0;
	f->cut = false;
}

static void
forget_kept(struct follow_file *f)
{
	buf_fini(&f->kept);
	f->kept_line = 0;
}

/* What held these lines cannot be read again. */
static void
keep_lost(struct follow_file *f, const struct buf *kept)
{
	if (f->lost.len + kept->len <= KEPT_MAX)
		buf_append(&f->lost, kept->data ? kept->data : "", kept->len);
}

/* The file stays open for the verdict; the oldest one gives way. */
static void
set_aside(struct follow_file *f)
{
	if (f->piece_count == FOLLOW_PIECES) {
		keep_lost(f, &f->piece_kept[0]);
		drop_piece(f, 0);
		f->piece_count--;
		f->dropped_pieces++;
		memmove(f->pieces, f->pieces + 1,
		    f->piece_count * sizeof(f->pieces[0]));
		memmove(f->piece_kept, f->piece_kept + 1,
		    f->piece_count * sizeof(f->piece_kept[0]));
	}
	restart(f);
	f->piece_kept[f->piece_count] = f->kept;
	f->pieces[f->piece_count++] = f->fd;
	f->fd = -1;
	f->kept = (struct buf){0};
	f->kept_line = 0;
}

static bool
open_path(struct follow_file *f)
{
	struct stat st;
	int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd == -1)
		return false;
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode)) {
		close(fd);
		return false;
	}
	f->fd = fd;
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	f->at_end = false;
	return true;
}

static void
note_cut(struct follow_file *f)
{
	f->cut_bytes += f->offset;
	keep_lost(f, &f->kept);
	forget_kept(f);
	restart(f);
	f->at_end = false;
}

bool
follow_file_check(struct follow_file *f)
{
	struct stat now, st;

	if (follow_file_is_input(f))
		return false;
	if (f->fd == -1)
		return open_path(f);
	if (f->cut || (fstat(f->fd, &st) == 0 &&
	    (uint64_t)st.st_size < f->offset)) {
		note_cut(f);
		return true;
	}
	if (stat(f->path, &now) == -1 || !S_ISREG(now.st_mode) ||
	    (now.st_dev == f->dev && now.st_ino == f->ino))
		return false;
	set_aside(f);
	return open_path(f);
}

/* Reads on, and a little of what was read before: when that has changed, the file
 * was cut and has grown again.  Returns what is new, which begins at *at. */
static ssize_t
read_on(struct follow_file *f, char block[BLOCK], char **at)
{
	size_t again = f->tail_len;
	ssize_t n;

	*at = block;
	if (follow_file_is_input(f))
		return read(f->fd, block, BLOCK);
	n = pread(f->fd, block, BLOCK, (off_t)(f->offset - again));
	if (n == -1 || again == 0)
		return n;
	if ((size_t)n < again || memcmp(block, f->tail, again) != 0) {
		f->cut = true;
		return 0;
	}
	*at = block + again;
	return n - (ssize_t)again;
}

static void
remember_tail(struct follow_file *f, const char *data, size_t len)
{
	size_t keep = len < sizeof(f->tail) ? sizeof(f->tail) - len : 0;

	if (keep > f->tail_len)
		keep = f->tail_len;
	if (len > sizeof(f->tail)) {
		data += len - sizeof(f->tail);
		len = sizeof(f->tail);
	}
	memmove(f->tail, f->tail + f->tail_len - keep, keep);
	memcpy(f->tail + keep, data, len);
	f->tail_len = keep + len;
}

size_t
follow_file_read(struct follow_file *f, size_t most)
{
	char block[BLOCK], *at;
	size_t done = 0;
	ssize_t n;

	while (f->fd != -1 && !f->ended && done < most) {
		n = read_on(f, block, &at);
		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0) {
			f->ended = follow_file_is_input(f) && (n == 0 || errno != EAGAIN);
			break;
		}
		live_feed(f->live, at, (size_t)n);
		remember_tail(f, at, (size_t)n);
		f->offset += (size_t)n;
		done += (size_t)n;
		if (!follow_file_is_input(f))
			continue;
		/* A pipe that has no more would block. */
		if (feed_spool_write(&f->spool, block, (size_t)n, NULL) == -1)
			f->cut_bytes += (size_t)n;
		return done;
	}
	f->at_end = done < most;
	if (f->ended)
		live_flush(f->live);
	return done;
}

void
follow_file_keep(struct follow_file *f, const struct live_match *m)
{
	static const char newlines[256] = { [0 ... 255] = '\n' };
	size_t n, len = m->len < KEPT_LINE_MAX ? m->len : KEPT_LINE_MAX;
	uint64_t pad = m->line - 1 - f->kept_line;

	if (follow_file_is_input(f) || m->line <= f->kept_line ||
	    f->kept.len + pad + len + 1 > KEPT_MAX)
		return;
	for (; pad > 0; pad -= n) {
		n = pad < sizeof(newlines) ? pad : sizeof(newlines);
		if (buf_append(&f->kept, newlines, n) == -1)
			return;
		f->kept_line += n;
	}
	if (buf_append(&f->kept, m->text, len) == 0 &&
	    buf_append(&f->kept, "\n", 1) == 0)
		f->kept_line++;
}

void
follow_file_forget(struct follow_file *f)
{
	size_t i;

	forget_kept(f);
	buf_fini(&f->lost);
	for (i = 0; i < f->piece_count; i++)
		drop_piece(f, i);
	f->piece_count = 0;
	f->dropped_pieces = f->cut_bytes = 0;
}

/* The path's name tells what the log is of, the suffix which of its files. */
static int
feed_open(struct feed *feed, int fd, const char *name, const char *suffix,
    struct err *err)
{
	struct err why = {0};
	struct stream *s;
	char path[32], *full;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (feed_file_add(feed, path, name, false, &why) == -1)
		return feed_add_missing(feed, name, why.text) == -1 ?
		    err_memory(err) : 0;
	s = &feed->streams[feed->count - 1];
	if (asprintf(&full, "%s%s", name, suffix) == -1)
		return err_memory(err);
	free(s->name);
	s->name = full;
	return 0;
}

static int
feed_lost(struct follow_file *f, struct feed *feed, struct err *err)
{
	char *name = NULL, why[96];
	int rc = 0;

	if (f->dropped_pieces > 0) {
		snprintf(why, sizeof(why), "%" PRIu64 " older files of this name "
		    "are gone", f->dropped_pieces);
		rc = feed_add_missing(feed, f->path, why);
	}
	if (rc == 0 && f->cut_bytes > 0) {
		snprintf(why, sizeof(why), "%" PRIu64 " bytes were cut off while "
		    "it was followed", f->cut_bytes);
		rc = feed_add_missing(feed, f->path, why);
	}
	if (rc == -1)
		return err_memory(err);
	if (f->lost.len == 0)
		return 0;
	if (asprintf(&name, "%s (cut off)", f->path) == -1)
		return err_memory(err);
	rc = feed_add_memory(feed, name, f->lost.data, f->lost.len, err);
	free(name);
	return rc;
}

static int
feed_input(struct follow_file *f, struct feed *feed, struct err *err)
{
	struct stream *s = feed_add_stream(feed, f->path, err);

	if (s == NULL)
		return -1;
	feed_path_describe(s);
	if (feed_spool_finish(&f->spool, s, err) == -1) {
		feed_drop_stream(feed);
		return -1;
	}
	if (f->cut_bytes > 0 && feed_add_missing(feed, f->path,
	    "not all of it could be kept") == -1)
		return err_memory(err);
	return 0;
}

int
follow_file_feed(struct follow_file *f, struct feed *feed, struct err *err)
{
	size_t i;

	if (follow_file_is_input(f))
		return feed_input(f, feed, err);
	for (i = 0; i < f->piece_count; i++)
		if (feed_open(feed, f->pieces[i], f->path, " (rotated)",
		    err) == -1)
			return -1;
	if (feed_lost(f, feed, err) == -1)
		return -1;
	if (f->fd != -1)
		return feed_open(feed, f->fd, f->path, "", err);
	if (f->piece_count == 0 && feed_add_missing(feed, f->path,
	    "did not appear") == -1)
		return err_memory(err);
	return 0;
}
