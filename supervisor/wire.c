/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.c - frames over a stream socket in the loop, with bounded queues.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/clock.h"
#include "common/json.h"
#include "supervisor/wire.h"

struct wire {
	int			 fd;
	struct loop_watch	*watch;
	struct buf		 in, out;
	wire_message_fn		 on_message;
	wire_close_fn		 on_close;
	void			*arg;
	bool			 closed;	/* on_close was called */
	bool			 busy;		/* inside a callback */
	bool			 freed;		/* by that callback */
	bool			 writable_wanted;
};

static void
wire_release(struct wire *w)
{
	buf_fini(&w->in);
	buf_fini(&w->out);
	free(w);
}

void
wire_free(struct wire *w)
{
	if (w == NULL || w->freed)
		return;
	loop_unwatch(w->watch);
	w->watch = NULL;
	if (w->fd != -1)
		close(w->fd);
	w->fd = -1;
	if (w->busy)
		w->freed = true;
	else
		wire_release(w);
}

/* Leaves a callback section; true when the wire still exists. */
static bool
wire_leave(struct wire *w)
{
	w->busy = false;
	if (!w->freed)
		return true;
	wire_release(w);
	return false;
}

static bool
wire_close(struct wire *w, const struct err *why)
{
	if (w->closed)
		return true;
	w->closed = true;
	loop_unwatch(w->watch);
	w->watch = NULL;
	w->busy = true;
	w->on_close(why, w->arg);
	return wire_leave(w);
}

static int
deliver(struct wire *w, const char *data, size_t len, struct err *err)
{
	const char *type;
	cJSON *m = NULL;
	int rc = -1;

	if (json_parse(data, len, &m, err) == -1)
		return -1;
	type = json_str(m, "type", NULL);
	if (json_int(m, "v", 0) != WIRE_VERSION)
		err_set(err, ERR_FORMAT, "wire version is not %d", WIRE_VERSION);
	else if (type == NULL)
		err_set(err, ERR_FORMAT, "message without type");
	else
		rc = 0;
	if (rc == 0) {
		w->busy = true;
		w->on_message(type, m, w->arg);
	}
	cJSON_Delete(m);
	return rc;
}

/* Takes whole frames off the input; false when the wire is gone or closed. */
static bool
take_frames(struct wire *w)
{
	struct err err = {0};
	uint32_t len;

	while (w->in.len >= sizeof(len)) {
		memcpy(&len, w->in.data, sizeof(len));
		len = ntohl(len);
		if (len == 0 || len > WIRE_FRAME_MAX) {
			err_set(&err, ERR_LIMIT, "frame of %u bytes", len);
			wire_close(w, &err);
			return false;
		}
		if (w->in.len < sizeof(len) + len)
			break;
		if (deliver(w, w->in.data + sizeof(len), len, &err) == -1) {
			wire_close(w, &err);
			return false;
		}
		if (!wire_leave(w))
			return false;
		buf_consume(&w->in, sizeof(len) + len);
	}
	return true;
}

static void
read_some(struct wire *w)
{
	struct err err = {0};
	ssize_t n;

	if (buf_reserve(&w->in, 65536) == -1) {
		err_memory(&err);
		wire_close(w, &err);
		return;
	}
	n = read(w->fd, w->in.data + w->in.len, 65536);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		if (n == -1)
			err_errno(&err, "cannot read from the peer");
		else
			err_set(&err, ERR_NONE, "the peer closed");
		wire_close(w, &err);
		return;
	}
	w->in.len += (size_t)n;
	w->in.data[w->in.len] = '\0';
	take_frames(w);
}

static void
want_writable(struct wire *w, bool want)
{
	if (w->watch == NULL || want == w->writable_wanted)
		return;
	w->writable_wanted = want;
	loop_watch_events(w->watch, EPOLLIN | (want ? EPOLLOUT : 0), NULL);
}

/* A dead peer is noticed by the read side; errors are left to it. */
static void
write_some(struct wire *w)
{
	ssize_t n;

	while (w->out.len > 0) {
		n = send(w->fd, w->out.data, w->out.len, MSG_NOSIGNAL);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1) {
			if (errno != EAGAIN)
				buf_clear(&w->out);
			break;
		}
		buf_consume(&w->out, (size_t)n);
	}
	want_writable(w, w->out.len > 0);
}

static void
on_ready(int fd, uint32_t events, void *arg)
{
	struct wire *w = arg;

	(void)fd;
	if (events & EPOLLOUT)
		write_some(w);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		read_some(w);
}

int
wire_new(struct loop *loop, int fd, wire_message_fn on_message,
    wire_close_fn on_close, void *arg, struct wire **out, struct err *err)
{
	struct wire *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return err_memory(err);
	w->fd = fd;
	w->on_message = on_message;
	w->on_close = on_close;
	w->arg = arg;
	if (fcntl(fd, F_SETFL, O_NONBLOCK) == -1) {
		err_errno(err, "cannot set up a socket");
		free(w);
		return -1;
	}
	if (loop_watch_fd(loop, fd, EPOLLIN, on_ready, w, &w->watch,
	    err) == -1) {
		free(w);
		return -1;
	}
	*out = w;
	return 0;
}

cJSON *
wire_message(const char *type)
{
	cJSON *m = cJSON_CreateObject();

	if (m == NULL)
		return NULL;
	if (json_add_int(m, "v", WIRE_VERSION) == -1 ||
	    json_add_text(m, "type", type) == -1) {
		cJSON_Delete(m);
		return NULL;
	}
	return m;
}

static int
wire_queue(struct wire *w, cJSON *message, size_t room)
{
	char *text = cJSON_PrintUnformatted(message);
	size_t len = text ? strlen(text) : 0;
	uint32_t net = htonl((uint32_t)len);
	int rc = -1;

	cJSON_Delete(message);
	if (text == NULL || len > WIRE_FRAME_MAX || w->fd == -1 || w->closed)
		goto out;
	if (w->out.len + len > room) {
		/* A peer that does not read loses the connection, which the
		 * read side notices; it loses no message in silence. */
		if (room == WIRE_QUEUE_MAX)
			shutdown(w->fd, SHUT_RDWR);
		goto out;
	}
	if (buf_reserve(&w->out, sizeof(net) + len) == -1)
		goto out;
	buf_append(&w->out, &net, sizeof(net));
	buf_append(&w->out, text, len);
	write_some(w);
	rc = 0;
out:
	free(text);
	return rc;
}

int
wire_send(struct wire *w, cJSON *message)
{
	if (w == NULL) {
		cJSON_Delete(message);
		return -1;
	}
	return wire_queue(w, message, WIRE_QUEUE_MAX);
}

bool
wire_send_lossy(struct wire *w, cJSON *message, size_t room)
{
	if (w == NULL) {
		cJSON_Delete(message);
		return false;
	}
	return wire_queue(w, message, room) == 0;
}

size_t
wire_waiting(const struct wire *w)
{
	return w ? w->out.len : 0;
}

void
wire_flush(struct wire *w, int64_t wait_ms)
{
	int64_t end = clock_mono_ns(&clock_system) + wait_ms * NS_PER_MS, left;
	struct pollfd pfd;

	if (w == NULL)
		return;
	for (;;) {
		write_some(w);
		left = (end - clock_mono_ns(&clock_system)) / NS_PER_MS;
		if (w->out.len == 0 || left <= 0)
			return;
		pfd = (struct pollfd){ w->fd, POLLOUT, 0 };
		if (poll(&pfd, 1, (int)left) == -1 && errno != EINTR)
			return;
	}
}

uid_t
wire_peer_uid(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == -1)
		return (uid_t)-1;
	return cred.uid;
}

pid_t
wire_peer_pid(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == -1)
		return 0;
	return cred.pid;
}

static int
unix_socket(const char *path, struct sockaddr_un *addr, struct err *err)
{
	int fd;

	*addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(addr->sun_path))
		return err_set(err, ERR_LIMIT, "socket path too long: %s", path);
	memcpy(addr->sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return err_errno(err, "cannot make a socket");
	return fd;
}

int
wire_listen(const char *path, struct err *err)
{
	struct sockaddr_un addr;
	int fd;

	if ((fd = unix_socket(path, &addr, err)) == -1)
		return -1;
	unlink(path);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == -1 ||
	    fcntl(fd, F_SETFL, O_NONBLOCK) == -1 || listen(fd, 16) == -1) {
		err_errno(err, "cannot listen on %s", path);
		close(fd);
		return -1;
	}
	return fd;
}

int
wire_connect(const char *path, struct err *err)
{
	struct sockaddr_un addr;
	int fd;

	if ((fd = unix_socket(path, &addr, err)) == -1)
		return -1;
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == -1) {
		err_errno(err, "cannot connect to %s", path);
		close(fd);
		return -1;
	}
	if (wire_peer_uid(fd) != geteuid()) {
		err_set(err, ERR_SYSTEM, "%s belongs to another user", path);
		close(fd);
		return -1;
	}
	return fd;
}

int
wire_accept(int listen_fd)
{
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd != -1 && wire_peer_uid(fd) != geteuid()) {
		close(fd);
		return -1;
	}
	return fd;
}
