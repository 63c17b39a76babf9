/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h - file output by a thread, so that a hung file system stops neither
 * the loop nor the ranks.
 *
 * Bytes are queued up to a bound; what does not fit, or what the file system
 * refuses, is counted, and the count is written into the file as a line once
 * there is room.  One
 * thread serves all files of a writer in order.
 */
#ifndef HOLDFAST_COMMON_WRITER_H
#define HOLDFAST_COMMON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/loop.h"

struct writer;
struct writer_file;

/* Called from the loop when a job is durable (errnum 0) or failed. */
typedef void	(*writer_done_fn)(int errnum, void *arg);

/* queue_max bounds the bytes waiting in all files together. */
int	writer_new(struct loop *, size_t queue_max, struct writer **out,
	    struct err *err);
/* Waits at most wait_ms for the queue to empty; a thread that hangs in the
 * kernel is left behind.  True when all was written. */
bool	writer_free(struct writer *, int64_t wait_ms);

/* The file is opened by the thread: O_APPEND, created with mode 0600, missing
 * folders with 0700. */
int	writer_open(struct writer *, const char *path,
	    struct writer_file **out, struct err *err);
/* The same for a descriptor that is open already; it stays the caller's. */
int	writer_adopt(struct writer *, int fd, struct writer_file **out,
	    struct err *err);
/* Queues the closing of it; the handle is invalid afterwards. */
void	writer_close(struct writer_file *);

/* Queues bytes; returns how many were taken (all or none).  With done the
 * file is synced and done called. */
size_t	writer_append(struct writer_file *, const void *data, size_t len,
	    writer_done_fn done, void *arg);
/* Queues the atomic replacement of a file (file_write_atomic). */
int	writer_replace(struct writer *, const char *path, const void *data,
	    size_t len, writer_done_fn done, void *arg);

/* Queues setting the times of a file to now. */
int	writer_touch(struct writer *, const char *path, writer_done_fn done,
	    void *arg);

/* Bytes that wait now, and bytes dropped in all. */
size_t	writer_waiting(const struct writer *);
uint64_t writer_dropped(const struct writer *);

#endif
