/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.h - one regular file, read by pread alone.
 *
 * Not mmap: a file that shrinks or a disk that fails then gives a return value
 * (end of file, EIO, ESTALE) instead of SIGBUS, which a library must not catch
 * and which hides errno.  It is also the faster way: 512 KiB blocks stay in the
 * L2 cache between the copy and the digest, and no page faults are taken.
 */
#ifndef HOLDFAST_CHECKPOINT_INPUT_H
#define HOLDFAST_CHECKPOINT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/buf.h"
#include "checkpoint/report.h"

#define INPUT_BLOCK	(512u << 10)	/* bytes of one pread of tensor data */

struct input {
	int		 fd;
	const char	*path;		/* borrowed */
	uint64_t	 size;
	struct stat	 st;		/* when it was opened */
};

/* Opens path without ever waiting: FIFOs, devices, sockets and directories are
 * refused unopened.  Returns 0, or -1 with the reason said. */
int	input_open(struct input *, const char *path, struct report *);
void	input_close(struct input *);

/* Reads exactly len bytes; 0, or -1 with the reason said (unreadable with the
 * text of errno; incomplete when the file has become shorter). */
int	input_read(struct input *, uint64_t offset, void *out, size_t len,
	    struct report *);

/* Drops the file's pages from the cache, so that the next read asks the
 * storage again. */
void	input_forget(const struct input *);

/* Says "incomplete" when size, mtime or inode are not what they were. */
void	input_check_unchanged(const struct input *, struct report *);

static inline uint16_t
get16(const void *data)
{
	const uint8_t *p = data;

	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t
get32(const void *data)
{
	const uint8_t *p = data;

	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	    (uint32_t)p[3] << 24;
}

static inline uint64_t
get64(const void *data)
{
	const uint8_t *p = data;

	return get32(p) | (uint64_t)get32(p + 4) << 32;
}

#endif
