/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - messages between run parent, supervisor, agent and reaper.
 *
 * A frame is a u32 length in network order (1 to WIRE_FRAME_MAX) and that many
 * bytes of one JSON object with at least "v" (WIRE_VERSION) and "type".  The
 * length is checked before anything is read, the type before anything is used.
 */
#ifndef HOLDFAST_SUPERVISOR_WIRE_H
#define HOLDFAST_SUPERVISOR_WIRE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/loop.h"

#define WIRE_VERSION	1
#define WIRE_FRAME_MAX	65536
#define WIRE_QUEUE_MAX	(8u << 20)

struct wire;

/* type is the message's "type"; the object is borrowed for the call. */
typedef void	(*wire_message_fn)(const char *type, const cJSON *message,
		    void *arg);
/* The peer closed, broke the format (err says how) or the queue overflowed.
 * The wire must be freed, here or later. */
typedef void	(*wire_close_fn)(const struct err *why, void *arg);

/* Takes fd (closed by wire_free()) and makes it non-blocking. */
int	wire_new(struct loop *, int fd, wire_message_fn, wire_close_fn,
	    void *arg, struct wire **out, struct err *err);
void	wire_free(struct wire *);

/* A message to be filled and sent: {"v":1,"type":type}; NULL when memory is short. */
cJSON	*wire_message(const char *type);
/* Queues the message and frees it.  0, or -1 when it is too long, memory is
 * short or the queue is full. */
int	wire_send(struct wire *, cJSON *message);
/* As wire_send(), but only when less than `room` bytes wait: for what may be
 * lost (tee).  True when it was queued. */
bool	wire_send_lossy(struct wire *, cJSON *message, size_t room);
/* Bytes not yet taken by the kernel. */
size_t	wire_waiting(const struct wire *);
/* Writes what waits, for at most wait_ms, without the loop: for the last words
 * of a process. */
void	wire_flush(struct wire *, int64_t wait_ms);

/* Uid of the peer of a Unix socket, (uid_t)-1 when unknown. */
uid_t	wire_peer_uid(int fd);
/* Its pid, 0 when unknown. */
pid_t	wire_peer_pid(int fd);
/* Listening and connected Unix stream sockets; path < 108 bytes.  A stale
 * socket file is replaced.  -1 with err. */
int	wire_listen(const char *path, struct err *err);
int	wire_connect(const char *path, struct err *err);
/* The next connection of a listening socket, if it comes from this user: before a
 * byte is read.  -1 when there is none. */
int	wire_accept(int listen_fd);

#endif
