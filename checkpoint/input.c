/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.c - opens and reads files that may be anything and may fail at any time.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/input.h"
#include "checkpoint/trouble.h"

static const char *
kind_of(mode_t mode)
{
	return S_ISDIR(mode) ? "a directory" : S_ISFIFO(mode) ? "a FIFO" :
	    S_ISSOCK(mode) ? "a socket" : S_ISCHR(mode) ? "a character device" :
	    S_ISBLK(mode) ? "a block device" : "no file";
}

static void
say_no_stat(const char *path, struct report *r)
{
	char target[PATH_MAX];
	int errnum = errno;
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	if (errnum == ENOENT && n >= 0) {
		target[n] = '\0';
		report_say(r, HOLDFAST_CHECKPOINT_INCOMPLETE,
		    "symbolic link to %s, which does not exist", target);
		return;
	}
	errno = errnum;
	trouble_note(path);
	report_say(r, HOLDFAST_CHECKPOINT_UNREADABLE, "cannot stat: %s",
	    strerror(errnum));
}

int
input_open(struct input *in, const char *path, struct report *r)
{
	struct stat st;

	memset(in, 0, sizeof(*in));
	in->fd = -1;
	in->path = path;
	if (stat(path, &st) == -1) {
		say_no_stat(path, r);
		return -1;
	}
	if (!S_ISREG(st.st_mode)) {
		report_say(r, HOLDFAST_CHECKPOINT_UNVERIFIED,
		    "is %s, not a file", kind_of(st.st_mode));
		return -1;
	}
	/* Another kind of file may have taken its place since. */
	do
		in->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	while (in->fd == -1 && errno == EINTR);
	if (in->fd == -1 || fstat(in->fd, &in->st) == -1) {
		trouble_note(path);
		report_say(r, HOLDFAST_CHECKPOINT_UNREADABLE, "cannot open: %s",
		    strerror(errno));
		input_close(in);
		return -1;
	}
	if (!S_ISREG(in->st.st_mode)) {
		report_say(r, HOLDFAST_CHECKPOINT_UNVERIFIED,
		    "is %s, not a file", kind_of(in->st.st_mode));
		input_close(in);
		return -1;
	}
	in->size = (uint64_t)in->st.st_size;
	return 0;
}

void
input_close(struct input *in)
{
	if (in->fd != -1)
		close(in->fd);
	in->fd = -1;
}

int
input_read(struct input *in, uint64_t offset, void *out, size_t len,
    struct report *r)
{
	uint8_t *p = out;
	ssize_t n;

	if (offset > INT64_MAX || len > INT64_MAX - offset) {
		report_say(r, HOLDFAST_CHECKPOINT_CORRUPT,
		    "offset %" PRIu64 " is beyond any file", offset);
		return -1;
	}
	while (len > 0) {
		n = pread(in->fd, p, len, (off_t)offset);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1) {
			trouble_note(in->path);
			report_say(r, HOLDFAST_CHECKPOINT_UNREADABLE,
			    "cannot read at byte %" PRIu64 ": %s", offset,
			    strerror(errno));
			return -1;
		}
		if (n == 0) {
			report_say(r, HOLDFAST_CHECKPOINT_INCOMPLETE,
			    "the file became shorter while it was read (ends at "
			    "byte %" PRIu64 ")", offset);
			return -1;
		}
		p += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

void
input_forget(const struct input *in)
{
	(void)posix_fadvise(in->fd, 0, 0, POSIX_FADV_DONTNEED);
}

static bool
same_time_and_size(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size &&
	    a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	    a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

void
input_check_unchanged(const struct input *in, struct report *r)
{
	struct stat st, named;

	if (fstat(in->fd, &st) == -1 || stat(in->path, &named) == -1) {
		trouble_note(in->path);
		report_say(r, HOLDFAST_CHECKPOINT_UNREADABLE,
		    "gone while it was read: %s", strerror(errno));
		return;
	}
	if (!same_time_and_size(&st, &in->st) ||
	    !same_time_and_size(&named, &in->st) ||
	    named.st_ino != in->st.st_ino || named.st_dev != in->st.st_dev)
		report_say(r, HOLDFAST_CHECKPOINT_INCOMPLETE,
		    "was being written while it was read");
}
