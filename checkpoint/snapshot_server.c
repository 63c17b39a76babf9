/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_server.c - the socket, and the life of sessions.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "checkpoint/snapshot_session.h"

#define SESSIONS_MAX	1024
#define AGAIN_MS	500
#define ROUND_MAX	64	/* messages of one rank before others have their turn */

static bool
has_peer(const struct session *s)
{
	const struct session *peer;

	for (peer = s->server->sessions; peer != NULL; peer = peer->next)
		if (peer != s && (peer->fd != -1 || !session_is_idle(peer)) &&
		    peer->world == s->world && peer->attempt == s->attempt)
			return true;
	return false;
}

static void
answer_flushes(struct snapshot_server *server)
{
	int64_t now = clock_mono_ns(&clock_system);
	struct session *s;

	for (s = server->sessions; s != NULL; s = s->next)
		if (s->flush_ns != 0 &&
		    now - s->flush_ns >= SESSION_FLUSH_MS * NS_PER_MS)
			session_answer_flush(s);
}

void
server_settle(struct snapshot_server *server)
{
	struct session **at = &server->sessions, *s;
	bool idle = true;

	while ((s = *at) != NULL) {
		idle = idle && session_is_idle(s);
		/* Nobody is left who could complete what it waits for. */
		if (s->fd == -1 && s->jobs == 0 && session_is_idle(s) &&
		    (!s->waits || !has_peer(s))) {
			*at = s->next;
			server->n_sessions--;
			session_free(s);
			continue;
		}
		at = &s->next;
	}
	if (idle)
		answer_flushes(server);
	if (idle && server->ending && server->ops.idle != NULL)
		server->ops.idle(server->arg);
}

static void
on_message(int fd, uint32_t events, void *arg)
{
	struct session *s = arg;
	struct snapshot_server *server = s->server;
	struct snapshot_message m;
	int passed, rc, i;

	(void)events;
	for (i = 0; i < ROUND_MAX && s->fd != -1; i++) {
		rc = snapshot_receive(fd, &m, &passed);
		if (rc == -1 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (rc != 1 || !session_message(s, &m, passed)) {
			session_hang_up(s);
			/* Others need not wait for this rank any more. */
			session_start_writing(server);
			server_settle(server);
			return;
		}
	}
	if (s->fd == -1)
		server_settle(server);
}

static void
on_connection(int fd, uint32_t events, void *arg)
{
	struct snapshot_server *server = arg;
	struct session *s;
	struct ucred peer;
	socklen_t len = sizeof(peer);
	unsigned i;
	int client;

	(void)events;
	client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (client == -1)
		return;
	if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &len) == -1 ||
	    peer.uid != geteuid() || server->n_sessions >= SESSIONS_MAX ||
	    (s = calloc(1, sizeof(*s))) == NULL) {
		close(client);
		return;
	}
	s->server = server;
	s->fd = client;
	s->written = -1;
	for (i = 0; i < SNAPSHOT_AREAS; i++)
		s->areas[i].fd = -1;
	if (loop_watch_fd(server->loop, client, EPOLLIN, on_message, s, &s->watch,
	    NULL) == -1) {
		session_free(s);
		return;
	}
	s->next = server->sessions;
	server->sessions = s;
	server->n_sessions++;
}

static void
on_again(void *arg)
{
	struct snapshot_server *server = arg;
	struct session *s;
	bool some = false;

	for (s = server->sessions; s != NULL; s = s->next) {
		session_look_again(s);
		some = some || s->waits;
	}
	if (some)
		loop_timer_set(server->again, AGAIN_MS);
	server_settle(server);
}

/* What a socket that nobody serves has left goes; one that is served stays. */
static int
bind_socket(int fd, const struct sockaddr_un *sun, struct err *err)
{
	const struct sockaddr *addr = (const struct sockaddr *)(const void *)sun;
	int probe, rc;

	if (bind(fd, addr, sizeof(*sun)) == 0)
		return 0;
	if (errno != EADDRINUSE)
		return err_errno(err, "cannot listen at %s", sun->sun_path);
	probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	rc = probe == -1 ? 0 : connect(probe, addr, sizeof(*sun));
	if (probe != -1) {
		if (rc == -1 && errno != ECONNREFUSED)
			rc = 0;
		close(probe);
	}
	if (rc == 0)
		return err_set(err, ERR_BUSY, "%s is in use", sun->sun_path);
	if (unlink(sun->sun_path) == -1 || bind(fd, addr, sizeof(*sun)) == -1)
		return err_errno(err, "cannot listen at %s", sun->sun_path);
	return 0;
}

static int
listen_at(const char *path, struct err *err)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(sun.sun_path))
		return err_set(err, ERR_LIMIT, "path of a socket too long: %s", path);
	memcpy(sun.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return err_errno(err, "cannot make a socket");
	if (bind_socket(fd, &sun, err) == 0) {
		if (chmod(path, 0600) == 0 && listen(fd, 128) == 0)
			return fd;
		err_errno(err, "cannot listen at %s", path);
	}
	close(fd);
	return -1;
}

static void
do_clear(void *arg)
{
	struct snapshot_server *server = arg;

	snapshot_clear_left(server->ops.target_dir(server->arg));
}

static void
cleared(void *arg)
{
	struct snapshot_server *server = arg;
	struct err err = {0};

	if (atomic_load(&server->cancel))
		return;
	/* Before that nobody could be heard, and nothing new be taken for old. */
	(void)loop_watch_fd(server->loop, server->listen_fd, EPOLLIN, on_connection,
	    server, &server->watch, &err);
}

int
snapshot_server_new(struct loop *loop, const char *socket_path,
    const struct snapshot_server_ops *ops, void *arg,
    struct snapshot_server **out, struct err *err)
{
	struct snapshot_server *server = calloc(1, sizeof(*server));

	if (server == NULL)
		return err_memory(err);
	server->loop = loop;
	server->ops = *ops;
	server->arg = arg;
	server->listen_fd = -1;
	pthread_mutex_init(&server->limit.mutex, NULL);
	server->limit.bytes_per_s = ops->bytes_per_s;
	server->limit.cancel = &server->cancel;
	if ((server->path = strdup(socket_path)) == NULL) {
		err_memory(err);
	} else if (snapshot_jobs_new(loop, &server->jobs, err) == 0 &&
	    loop_timer_new(loop, on_again, server, &server->again, err) == 0 &&
	    (server->listen_fd = listen_at(socket_path, err)) != -1 &&
	    snapshot_jobs_start(server->jobs, do_clear, cleared, server, err) == 0) {
		*out = server;
		return 0;
	}
	snapshot_server_free(server, 0);
	return -1;
}

void
snapshot_server_end(struct snapshot_server *server)
{
	server->ending = true;
	session_start_writing(server);
	server_settle(server);
}

void
snapshot_server_free(struct snapshot_server *server, int64_t wait_ms)
{
	struct session *s;

	if (server == NULL)
		return;
	atomic_store(&server->cancel, true);
	server->ops.idle = NULL;
	server->ending = true;
	loop_unwatch(server->watch);
	if (server->listen_fd != -1) {
		unlink(server->path);
		close(server->listen_fd);
	}
	for (s = server->sessions; s != NULL; s = s->next)
		session_hang_up(s);
	if (!snapshot_jobs_free(server->jobs, wait_ms))
		return;
	loop_timer_free(server->again);
	while ((s = server->sessions) != NULL) {
		server->sessions = s->next;
		session_free(s);
	}
	pthread_mutex_destroy(&server->limit.mutex);
	free(server->path);
	free(server);
}
