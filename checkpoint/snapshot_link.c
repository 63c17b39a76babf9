/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_link.c - the connection of a rank: what the server says, and a new one
 * when it is gone.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "checkpoint/snapshot_area.h"
#include "checkpoint/snapshot_client.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE	23	/* Linux 5.14 */
#endif
#define STEP		((uint64_t)16 << 20)	/* made ready between messages */
#define AGAIN_MS	200
#define SEND_S		10

int
snapshot_link_connect(const char *path, int *out, char *text, size_t size)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct timeval limit = { SEND_S, 0 };
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int fd;

	if (strlen(path) >= sizeof(sun.sun_path)) {
		snprintf(text, size, "path of a socket too long: %s", path);
		return HOLDFAST_CHECKPOINT_INVALID;
	}
	memcpy(sun.sun_path, path, strlen(path));
	if ((fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) == -1) {
		snprintf(text, size, "cannot make a socket: %s", strerror(errno));
		return HOLDFAST_CHECKPOINT_NO_SERVER;
	}
	if (connect(fd, (const struct sockaddr *)(const void *)&sun, sizeof(sun))
	    == -1) {
		snprintf(text, size, "nobody takes snapshots at %s: %s", path,
		    strerror(errno));
	} else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == -1 ||
	    (peer.uid != geteuid() && peer.uid != 0)) {
		snprintf(text, size, "%s belongs to another user", path);
	} else {
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
		*out = fd;
		return HOLDFAST_CHECKPOINT_OK;
	}
	close(fd);
	return HOLDFAST_CHECKPOINT_NO_SERVER;
}

int
snapshot_link_map(struct client_area *a)
{
	uint8_t *map;

	if (a->mapped >= a->bytes)
		return 0;
	map = a->map == NULL ? mmap(NULL, a->bytes, PROT_READ | PROT_WRITE,
	    MAP_SHARED, a->fd, 0) :
	    mremap(a->map, a->mapped, a->bytes, MREMAP_MAYMOVE);
	if (map == MAP_FAILED)
		return -1;
	/* A data loader that is forked has no business in it. */
	madvise(map, a->bytes, MADV_DONTFORK);
	if (map != a->map)
		a->populated = a->touched = 0;
	a->map = map;
	a->mapped = a->bytes;
	return 0;
}

static void
close_area(struct client_area *a)
{
	if (a->map != NULL)
		munmap(a->map, a->mapped);
	if (a->fd != -1)
		close(a->fd);
	*a = (struct client_area){ .fd = -1 };
}

/* A step of an idle area that `done' counts in; false when there is none. */
static bool
take_step(struct client_area *a, uint64_t *done, uint8_t **from, uint64_t *len)
{
	if (a->state != CLIENT_IDLE || *done >= a->mapped)
		return false;
	*from = a->map + *done;
	*len = a->mapped - *done < STEP ? a->mapped - *done : STEP;
	*done += *len;
	return true;
}

/*
 * Does a step of what makes areas ready, unless the rank wants something: first all
 * pages are mapped, then a byte of each is read.  Where a hypervisor shadows page
 * tables, the first access to a page that is mapped leaves the virtual machine (some
 * 8 us), and it has to look at each again when others are mapped in between.
 *
 * Nobody else touches an idle area before this thread has read that it was granted.
 * False when there is nothing to do.
 */
static bool
make_ready(struct holdfast_checkpoint_client *c)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), len = 0, at;
	bool idle, populate = false, touch = false;
	uint8_t *from = NULL;
	unsigned i;

	pthread_mutex_lock(&c->mutex);
	idle = !c->asking && c->filling == -1;
	for (i = 0; i < SNAPSHOT_AREAS && idle && !populate; i++)
		populate = take_step(&c->areas[i], &c->areas[i].populated, &from,
		    &len);
	for (i = 0; i < SNAPSHOT_AREAS && idle && !populate && !touch; i++)
		touch = take_step(&c->areas[i], &c->areas[i].touched, &from, &len);
	pthread_mutex_unlock(&c->mutex);
	if (populate)
		madvise(from, len, MADV_POPULATE_WRITE);
	for (at = 0; at < len && touch; at += page)
		(void)*(const volatile uint8_t *)(from + at);
	return populate || touch;
}

static void
take_answer(struct holdfast_checkpoint_client *c, const struct snapshot_message *m)
{
	if (!c->asking || c->answered)
		return;
	c->answer = *m;
	c->answered = true;
	pthread_cond_broadcast(&c->changed);
}

/* False when the server breaks the rules. */
static bool
take_area(struct holdfast_checkpoint_client *c, const struct snapshot_message *m,
    int passed)
{
	struct client_area *a = &c->areas[m->area];
	uint64_t bytes;

	if (passed != -1) {
		close_area(a);
		a->fd = passed;
	}
	/* It cannot shrink, so what is mapped can be written. */
	if (a->fd == -1 || snapshot_area_check(a->fd, &bytes, NULL) == -1 ||
	    bytes < m->bytes)
		return false;
	a->bytes = m->bytes;
	if (m->begun)
		take_answer(c, m);
	else if (a->state == CLIENT_IDLE)
		(void)snapshot_link_map(a);
	return true;
}

static void
take_done(struct holdfast_checkpoint_client *c, const struct snapshot_message *m)
{
	unsigned i;

	for (i = 0; i < SNAPSHOT_AREAS; i++)
		if (c->areas[i].state == CLIENT_COMMITTED &&
		    c->areas[i].commit.sequence == m->sequence)
			c->areas[i].state = CLIENT_IDLE;
	if (m->sequence != c->sequence || !c->pending)
		return;
	c->pending = false;
	c->code = m->code;
	snprintf(c->text, sizeof(c->text), "%s", m->text);
	pthread_cond_broadcast(&c->changed);
}

static bool
take_message(struct holdfast_checkpoint_client *c,
    const struct snapshot_message *m, int passed)
{
	if (passed != -1 && (m->type != SNAPSHOT_AREA ||
	    m->area >= SNAPSHOT_AREAS)) {
		close(passed);
		return false;
	}
	switch (m->type) {
	case SNAPSHOT_AREA:
		return m->area < SNAPSHOT_AREAS && take_area(c, m, passed);
	case SNAPSHOT_FAIL:
		take_answer(c, m);
		return true;
	case SNAPSHOT_DONE:
		take_done(c, m);
		return true;
	default:
		return false;
	}
}

static void
lose(struct holdfast_checkpoint_client *c)
{
	struct snapshot_message m = { .type = SNAPSHOT_FAIL,
	    .code = HOLDFAST_CHECKPOINT_LOST,
	    .text = "the process that writes snapshots is gone" };

	close(c->fd);
	c->fd = -1;
	c->lost_ns = clock_mono_ns(&clock_system);
	take_answer(c, &m);
	pthread_cond_broadcast(&c->changed);
}

/* The new server gets the memory of the old one, and what is committed in it.  First
 * all of the memory: for what it misses it would make some. */
static bool
hand_over(struct holdfast_checkpoint_client *c)
{
	struct snapshot_message m;
	unsigned i;

	for (i = 0; i < SNAPSHOT_AREAS; i++) {
		m = (struct snapshot_message){ .type = SNAPSHOT_ADOPT, .area = i };
		if (c->areas[i].fd != -1 &&
		    snapshot_send(c->fd, &m, c->areas[i].fd) == -1)
			return false;
	}
	for (i = 0; i < SNAPSHOT_AREAS; i++) {
		m = (struct snapshot_message){ .type = SNAPSHOT_ABORT, .area = i };
		if (c->areas[i].state == CLIENT_COMMITTED)
			m = c->areas[i].commit;
		if (c->areas[i].fd != -1 && c->areas[i].state != CLIENT_FILLING &&
		    snapshot_send(c->fd, &m, -1) == -1)
			return false;
	}
	return true;
}

static void
try_again(struct holdfast_checkpoint_client *c)
{
	struct pollfd p = { .fd = c->wake_fd, .events = POLLIN };
	char text[SNAPSHOT_TEXT_MAX];
	int fd;

	if (poll(&p, 1, AGAIN_MS) > 0 ||
	    snapshot_link_connect(c->path, &fd, text, sizeof(text)) != 0)
		return;
	pthread_mutex_lock(&c->mutex);
	c->fd = fd;
	if (!hand_over(c))
		lose(c);
	pthread_mutex_unlock(&c->mutex);
}

/* One message, or the end of the connection. */
static void
listen_once(struct holdfast_checkpoint_client *c)
{
	struct pollfd p[2] = { { .fd = c->wake_fd, .events = POLLIN },
	    { .fd = c->fd, .events = POLLIN } };
	struct snapshot_message m;
	int passed, rc;

	rc = poll(p, 2, make_ready(c) ? 0 : -1);
	if (rc < 1 || p[0].revents != 0)
		return;
	/* Only this thread reads, and only it changes fd. */
	rc = snapshot_receive(c->fd, &m, &passed);
	pthread_mutex_lock(&c->mutex);
	if (rc != 1 || !take_message(c, &m, passed))
		lose(c);
	pthread_mutex_unlock(&c->mutex);
}

void *
snapshot_link_run(void *arg)
{
	struct holdfast_checkpoint_client *c = arg;
	bool closing;

	do {
		if (c->fd == -1)
			try_again(c);
		else
			listen_once(c);
		pthread_mutex_lock(&c->mutex);
		closing = c->closing;
		pthread_mutex_unlock(&c->mutex);
	} while (!closing);
	return NULL;
}
