/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.c - collects bytes in an aligned block and writes that as a whole.
 *
 * The checksum is taken of the block, not of the caller's memory: what another
 * process changes there meanwhile cannot make the two differ.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <isa-l.h>

#include "common/clock.h"
#include "checkpoint/sink.h"

#define ALIGNMENT	4096u		/* of buffers and sizes for O_DIRECT */
#define NAP_NS		(50 * NS_PER_MS)

int
sink_open(struct sink *s, const char *path, mode_t mode,
    struct sink_limit *limit, struct err *err)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
	void *block = NULL;

	memset(s, 0, sizeof(*s));
	s->fd = -1;
	s->path = path;
	s->limit = limit;
	if (posix_memalign(&block, ALIGNMENT, SINK_BLOCK) != 0)
		return err_memory(err);
	s->block = block;
	s->fd = open(path, flags | O_DIRECT, mode);
	s->direct = s->fd != -1;
	/* tmpfs and some network file systems; the file may be there already. */
	if (s->fd == -1 && errno == EINVAL) {
		unlink(path);
		s->fd = open(path, flags, mode);
	}
	if (s->fd != -1)
		return 0;
	free(s->block);
	s->block = NULL;
	return err_errno(err, "cannot create %s", path);
}

static bool
is_cancelled(const struct sink_limit *l)
{
	return l->cancel != NULL && atomic_load(l->cancel);
}

/* Waits for the turn of the next `len` bytes.  Time without work is not saved up. */
static int
keep_limit(struct sink *s, size_t len, struct err *err)
{
	struct sink_limit *l = s->limit;
	struct timespec nap = { 0, 0 };
	int64_t now, due;

	if (l == NULL)
		return 0;
	if (is_cancelled(l))
		return err_set(err, ERR_BUSY, "told to end");
	if (l->bytes_per_s == 0)
		return 0;
	now = clock_mono_ns(&clock_system);
	pthread_mutex_lock(&l->mutex);
	due = l->due_ns > now ? l->due_ns : now;
	l->due_ns = due + (int64_t)((double)len * (double)NS_PER_S /
	    (double)l->bytes_per_s);
	pthread_mutex_unlock(&l->mutex);
	for (; now < due; now = clock_mono_ns(&clock_system)) {
		nap.tv_nsec = due - now < NAP_NS ? due - now : NAP_NS;
		nanosleep(&nap, NULL);
		if (is_cancelled(l))
			return err_set(err, ERR_BUSY, "told to end");
	}
	return 0;
}

static int
go_indirect(struct sink *s)
{
	s->direct = false;
	return fcntl(s->fd, F_SETFL, 0);
}

static int
write_block(struct sink *s, struct err *err)
{
	size_t done = 0;
	ssize_t n;

	if (keep_limit(s, s->fill, err) == -1)
		return -1;
	/* The end of a file need not fill a sector. */
	if (s->direct && s->fill % ALIGNMENT != 0 && go_indirect(s) == -1)
		return err_errno(err, "cannot write %s", s->path);
	while (done < s->fill) {
		n = write(s->fd, s->block + done, s->fill - done);
		if (n == -1 && errno == EINTR)
			continue;
		/* Some file systems take O_DIRECT at open and refuse it here. */
		if (s->direct && ((n == -1 && errno == EINVAL) ||
		    (n > 0 && (size_t)n % ALIGNMENT != 0)) &&
		    go_indirect(s) == 0) {
			done += n > 0 ? (size_t)n : 0;
			continue;
		}
		if (n == -1)
			return err_errno(err, "cannot write %s", s->path);
		done += (size_t)n;
	}
	s->fill = 0;
	return 0;
}

void *
sink_room(const struct sink *s, size_t *room)
{
	*room = SINK_BLOCK - s->fill;
	return s->block + s->fill;
}

int
sink_filled(struct sink *s, size_t len, struct err *err)
{
	s->fill += len;
	s->offset += len;
	return s->fill == SINK_BLOCK ? write_block(s, err) : 0;
}

int
sink_put(struct sink *s, const void *data, size_t len, uint32_t *crc,
    struct err *err)
{
	const uint8_t *from = data;
	size_t n, room;
	void *to;

	for (; len > 0; from += n, len -= n) {
		to = sink_room(s, &room);
		n = room < len ? room : len;
		memcpy(to, from, n);
		if (crc != NULL)
			*crc = crc32_gzip_refl(*crc, to, n);
		if (sink_filled(s, n, err) == -1)
			return -1;
	}
	return 0;
}

int
sink_flush(struct sink *s, struct err *err)
{
	return s->fill > 0 ? write_block(s, err) : 0;
}

int
sink_close(struct sink *s, struct err *err)
{
	int rc = sink_flush(s, err);

	if (rc == 0 && fsync(s->fd) == -1)
		rc = err_errno(err, "cannot write %s", s->path);
	posix_fadvise(s->fd, 0, 0, POSIX_FADV_DONTNEED);
	/* Write-back errors of network file systems appear at close. */
	if (close(s->fd) == -1 && rc == 0)
		rc = err_errno(err, "cannot write %s", s->path);
	s->fd = -1;
	free(s->block);
	s->block = NULL;
	return rc;
}

void
sink_abandon(struct sink *s)
{
	if (s->fd != -1)
		close(s->fd);
	s->fd = -1;
	free(s->block);
	s->block = NULL;
	unlink(s->path);
}
