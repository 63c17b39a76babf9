/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_client.c - the functions of holdfast-checkpoint.h for snapshots.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/clock.h"
#include "checkpoint/snapshot_client.h"
#include "checkpoint/snapshot_copy.h"

#define ANSWER_MS	30000	/* the server has memory to find meanwhile */
#define LOST_MS		10000	/* a new server comes sooner, or not at all */
#define FIRST_BYTES	((uint64_t)16 << 20)

static int fail(int code, char *error, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static int
fail(int code, char *error, size_t size, const char *fmt, ...)
{
	va_list ap;

	if (error != NULL && size > 0) {
		va_start(ap, fmt);
		vsnprintf(error, size, fmt, ap);
		va_end(ap);
	}
	return code;
}

static int
fail_process(char *error, size_t size)
{
	return fail(HOLDFAST_CHECKPOINT_INVALID, error, size,
	    "no connection of this process");
}

/* Locks, unless this is a forked child, which has no thread that would answer. */
static int
enter(struct holdfast_checkpoint_client *c, char *error, size_t size)
{
	if (c == NULL || c->owner != getpid())
		return fail_process(error, size);
	pthread_mutex_lock(&c->calls);
	pthread_mutex_lock(&c->mutex);
	return 0;
}

static int
leave(struct holdfast_checkpoint_client *c, int code)
{
	pthread_mutex_unlock(&c->mutex);
	pthread_mutex_unlock(&c->calls);
	return code;
}

static int
fail_lost(char *error, size_t size)
{
	return fail(HOLDFAST_CHECKPOINT_LOST, error, size,
	    "the process that writes snapshots is gone");
}

static void
release(struct holdfast_checkpoint_client *c)
{
	unsigned i;

	if (c->fd != -1)
		close(c->fd);
	if (c->wake_fd != -1)
		close(c->wake_fd);
	for (i = 0; i < SNAPSHOT_AREAS; i++) {
		if (c->areas[i].map != NULL)
			munmap(c->areas[i].map, c->areas[i].mapped);
		if (c->areas[i].fd != -1)
			close(c->areas[i].fd);
	}
	pthread_mutex_destroy(&c->calls);
	pthread_mutex_destroy(&c->mutex);
	pthread_cond_destroy(&c->changed);
	buf_fini(&c->table);
	free(c->path);
	free(c);
}

static struct holdfast_checkpoint_client *
allocate(const char *path)
{
	const char *attempt = getenv("HOLDFAST_ATTEMPT");
	struct holdfast_checkpoint_client *c = calloc(1, sizeof(*c));
	pthread_condattr_t attr;
	unsigned i;

	if (c == NULL)
		return NULL;
	pthread_mutex_init(&c->calls, NULL);
	pthread_mutex_init(&c->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->changed, &attr);
	pthread_condattr_destroy(&attr);
	c->owner = getpid();
	c->attempt = attempt != NULL ? (uint32_t)strtoul(attempt, NULL, 10) : 0;
	c->threads = snapshot_copy_threads();
	c->filling = c->fd = -1;
	for (i = 0; i < SNAPSHOT_AREAS; i++)
		c->areas[i].fd = -1;
	c->wake_fd = eventfd(0, EFD_CLOEXEC);
	if ((c->path = strdup(path)) != NULL && c->wake_fd != -1)
		return c;
	release(c);
	return NULL;
}

int
holdfast_checkpoint_open(const char *path,
    struct holdfast_checkpoint_client **out, char *error, size_t size)
{
	char text[SNAPSHOT_TEXT_MAX];
	sigset_t all, old;
	struct holdfast_checkpoint_client *c;
	int code;

	*out = NULL;
	if (path == NULL && ((path = getenv(SNAPSHOT_SOCKET_ENV)) == NULL ||
	    *path == '\0'))
		return fail(HOLDFAST_CHECKPOINT_NO_SERVER, error, size,
		    "nobody takes snapshots: " SNAPSHOT_SOCKET_ENV " is not set");
	if ((c = allocate(path)) == NULL)
		return fail(HOLDFAST_CHECKPOINT_NO_MEMORY, error, size,
		    "out of memory or of descriptors");
	code = snapshot_link_connect(path, &c->fd, text, sizeof(text));
	if (code != 0) {
		release(c);
		return fail(code, error, size, "%s", text);
	}
	/* The trainer's signals are the trainer's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	code = pthread_create(&c->thread, NULL, snapshot_link_run, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (code != 0) {
		release(c);
		return fail(HOLDFAST_CHECKPOINT_NO_MEMORY, error, size,
		    "cannot start a thread: %s", strerror(code));
	}
	*out = c;
	return HOLDFAST_CHECKPOINT_OK;
}

void
holdfast_checkpoint_close(struct holdfast_checkpoint_client *c)
{
	uint64_t one = 1;

	if (c == NULL || c->owner != getpid())
		return;
	pthread_mutex_lock(&c->mutex);
	c->closing = true;
	pthread_mutex_unlock(&c->mutex);
	if (write(c->wake_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
		pthread_join(c->thread, NULL);
	release(c);
}

int
holdfast_checkpoint_reserve(struct holdfast_checkpoint_client *c,
    uint64_t bytes, char *error, size_t size)
{
	struct snapshot_message m = { .type = SNAPSHOT_RESERVE };
	int code;

	if (bytes > SNAPSHOT_BYTES_MAX - (SNAPSHOT_TABLE_MAX >> 4))
		return fail(HOLDFAST_CHECKPOINT_INVALID, error, size,
		    "no snapshot is so large");
	if ((code = enter(c, error, size)) != 0)
		return code;
	/* Some for the table, and for gaps between tensors. */
	m.bytes = bytes + bytes / 64 + (1 << 20);
	c->expected = m.bytes;
	if (c->fd == -1 || snapshot_send(c->fd, &m, -1) == -1)
		code = fail_lost(error, size);
	return leave(c, code);
}

static void
deadline_after(struct timespec *at, int64_t ms)
{
	int64_t ns = clock_mono_ns(&clock_system) + ms * NS_PER_MS;

	at->tv_sec = ns / NS_PER_S;
	at->tv_nsec = ns % NS_PER_S;
}

/* Sends a request and waits for its answer: an area that may be filled, and is
 * mapped. */
static int
ask(struct holdfast_checkpoint_client *c, struct snapshot_message *m,
    char *error, size_t size)
{
	struct timespec end;
	int code = 0;

	if (c->fd == -1)
		return fail_lost(error, size);
	c->asking = true;
	c->answered = false;
	deadline_after(&end, ANSWER_MS);
	if (snapshot_send(c->fd, m, -1) == -1)
		code = fail_lost(error, size);
	while (code == 0 && !c->answered)
		if (pthread_cond_timedwait(&c->changed, &c->mutex, &end) != 0 &&
		    !c->answered)
			code = fail(HOLDFAST_CHECKPOINT_TIMEOUT, error, size,
			    "the process that writes snapshots does not answer");
	c->asking = false;
	if (code == 0 && c->answer.type == SNAPSHOT_FAIL)
		code = fail(c->answer.code < 0 ? c->answer.code :
		    HOLDFAST_CHECKPOINT_FAILED, error, size, "%s", c->answer.text);
	else if (code == 0 && snapshot_link_map(&c->areas[c->answer.area]) == -1)
		code = fail(HOLDFAST_CHECKPOINT_NO_MEMORY, error, size,
		    "cannot map shared memory: %s", strerror(errno));
	return code;
}

int
holdfast_checkpoint_begin(struct holdfast_checkpoint_client *c, int64_t step,
    int rank, int world,
    char separator, char *error, size_t size)
{
	int code;

	if (step < 0 || step > SNAPSHOT_STEP_MAX || world < 1 ||
	    world > SNAPSHOT_WORLD_MAX || rank < 0 || rank >= world ||
	    (signed char)separator < 0)
		return fail(HOLDFAST_CHECKPOINT_INVALID, error, size,
		    "step, rank, world size or separator out of range");
	if ((code = enter(c, error, size)) != 0)
		return code;
	if (c->filling != -1)
		return leave(c, fail(HOLDFAST_CHECKPOINT_INVALID, error, size,
		    "a snapshot was begun already"));
	c->begin = (struct snapshot_message){ .type = SNAPSHOT_BEGIN,
	    .step = step, .rank = (uint32_t)rank, .world = (uint32_t)world,
	    .attempt = c->attempt, .separator = (unsigned char)separator,
	    .bytes = c->expected > 0 ? c->expected : FIRST_BYTES };
	if ((code = ask(c, &c->begin, error, size)) == 0) {
		c->filling = (int)c->answer.area;
		c->areas[c->filling].state = CLIENT_FILLING;
		c->used = 0;
		c->entries = 0;
		buf_clear(&c->table);
	}
	return leave(c, code);
}

/* Room for so many bytes behind those that are used; *at is where they begin.  `more'
 * when others are likely to follow. */
static int
take_room(struct holdfast_checkpoint_client *c, uint64_t bytes, bool more,
    uint64_t *at, char *error, size_t size)
{
	struct client_area *a = &c->areas[c->filling];
	struct snapshot_message m = { .type = SNAPSHOT_GROW,
	    .area = (uint32_t)c->filling };
	uint64_t need;
	int code = 0;

	*at = (c->used + SNAPSHOT_ALIGN - 1) / SNAPSHOT_ALIGN * SNAPSHOT_ALIGN;
	if (bytes > SNAPSHOT_BYTES_MAX - *at)
		return fail(HOLDFAST_CHECKPOINT_INVALID, error, size,
		    "the snapshot is too large");
	need = *at + bytes;
	if (need > a->mapped) {
		m.bytes = more && need < a->bytes + a->bytes / 2 ?
		    a->bytes + a->bytes / 2 : need;
		code = ask(c, &m, error, size);
		if (code == HOLDFAST_CHECKPOINT_NO_MEMORY && m.bytes > need) {
			m.bytes = need;
			code = ask(c, &m, error, size);
		}
	}
	if (code == 0 && need > a->mapped)
		code = fail_lost(error, size);
	if (code != 0)
		return code;
	c->used = need;
	/* By the copy that follows. */
	if (a->populated < need)
		a->populated = need;
	if (a->touched < need)
		a->touched = need;
	return 0;
}

static int
add(struct holdfast_checkpoint_client *c, struct torch_entry *e,
    const char *name, char *error, size_t size)
{
	struct err err = {0};
	uint64_t at = 0;
	int code;

	if (name == NULL || (e->bytes > 0 && e->data == NULL))
		return fail(HOLDFAST_CHECKPOINT_INVALID, error, size,
		    "no name or no data given");
	e->name = name;
	e->name_len = strlen(name);
	if (torch_entry_check(e, &err) == -1)
		return fail(HOLDFAST_CHECKPOINT_INVALID, error, size, "%s",
		    err.text);
	if ((code = enter(c, error, size)) != 0)
		return code;
	if (c->filling == -1)
		code = fail(HOLDFAST_CHECKPOINT_INVALID, error, size,
		    "no snapshot was begun");
	else if (c->entries == TORCH_WRITE_ENTRIES_MAX ||
	    c->table.len > SNAPSHOT_TABLE_MAX / 2)
		code = fail(HOLDFAST_CHECKPOINT_INVALID, error, size,
		    "too many entries");
	else if (e->bytes > 0)
		code = take_room(c, e->bytes, true, &at, error, size);
	if (code == 0 && snapshot_table_add(&c->table, e, at) == -1)
		code = fail(HOLDFAST_CHECKPOINT_NO_MEMORY, error, size,
		    "out of memory");
	if (code == 0) {
		c->entries++;
		if (e->bytes > 0)
			snapshot_copy(c->areas[c->filling].map + at, e->data,
			    e->bytes, c->threads);
	}
	return leave(c, code);
}

int
holdfast_checkpoint_snapshot(struct holdfast_checkpoint_client *c,
    const char *name, int dtype, int ndim,
    const int64_t *shape, const void *data, uint64_t bytes, char *error, size_t size)
{
	struct torch_entry e = { .kind = TORCH_TENSOR, .dtype = (unsigned)dtype,
	    .ndim = (unsigned)ndim, .data = data, .bytes = bytes };
	uint64_t lengths[TORCH_WRITE_DIMS_MAX];
	int i;

	if (ndim < 0 || ndim > TORCH_WRITE_DIMS_MAX || (ndim > 0 && shape == NULL))
		return fail(HOLDFAST_CHECKPOINT_INVALID, error, size,
		    "a shape has 0 to %d lengths", TORCH_WRITE_DIMS_MAX);
	for (i = 0; i < ndim; i++) {
		if (shape[i] < 0)
			return fail(HOLDFAST_CHECKPOINT_INVALID, error, size,
			    "a length of the shape is negative");
		lengths[i] = (uint64_t)shape[i];
	}
	e.shape = lengths;
	return add(c, &e, name, error, size);
}

int
holdfast_checkpoint_set_int(struct holdfast_checkpoint_client *c,
    const char *name, int64_t value,
    char *error, size_t size)
{
	struct torch_entry e = { .kind = TORCH_INT, .integer = value };

	return add(c, &e, name, error, size);
}

int
holdfast_checkpoint_set_float(struct holdfast_checkpoint_client *c,
    const char *name, double value,
    char *error, size_t size)
{
	struct torch_entry e = { .kind = TORCH_FLOAT, .real = value };

	return add(c, &e, name, error, size);
}

int
holdfast_checkpoint_set_bool(struct holdfast_checkpoint_client *c,
    const char *name, int value, char *error,
    size_t size)
{
	struct torch_entry e = { .kind = TORCH_BOOL, .integer = value != 0 };

	return add(c, &e, name, error, size);
}

int
holdfast_checkpoint_set_none(struct holdfast_checkpoint_client *c,
    const char *name, char *error, size_t size)
{
	struct torch_entry e = { .kind = TORCH_NONE };

	return add(c, &e, name, error, size);
}

int
holdfast_checkpoint_set_text(struct holdfast_checkpoint_client *c,
    const char *name, const char *text,
    char *error, size_t size)
{
	struct torch_entry e = { .kind = TORCH_TEXT, .data = text != NULL ? text : "",
	    .bytes = text != NULL ? strlen(text) : 0 };

	return add(c, &e, name, error, size);
}

int
holdfast_checkpoint_set_bytes(struct holdfast_checkpoint_client *c,
    const char *name, const void *data,
    uint64_t bytes, char *error, size_t size)
{
	struct torch_entry e = { .kind = TORCH_BYTES, .data = data,
	    .bytes = bytes };

	return add(c, &e, name, error, size);
}

/* What the server would refuse is refused here, while the trainer can hear it. */
static int
check_names(struct holdfast_checkpoint_client *c, char *error, size_t size)
{
	struct client_area *a = &c->areas[c->filling];
	struct torch_entry *entries = NULL;
	struct buf pickle = {0};
	struct err err = {0};
	int rc;

	rc = snapshot_table_read(c->table.data, c->table.len, c->entries, a->map,
	    a->mapped, &entries, &err);
	if (rc == 0)
		rc = torch_pickle(&pickle, entries, c->entries,
		    (char)c->begin.separator, &err);
	free(entries);
	buf_fini(&pickle);
	return rc == 0 ? 0 : fail(HOLDFAST_CHECKPOINT_INVALID, error, size, "%s",
	    err.text);
}

int
holdfast_checkpoint_commit(struct holdfast_checkpoint_client *c, char *error, size_t size)
{
	struct client_area *a;
	uint64_t at;
	int code;

	if ((code = enter(c, error, size)) != 0)
		return code;
	if (c->filling == -1)
		return leave(c, fail(HOLDFAST_CHECKPOINT_INVALID, error, size,
		    "no snapshot was begun"));
	if ((code = check_names(c, error, size)) != 0 ||
	    (code = take_room(c, c->table.len, false, &at, error, size))
	    != 0)
		return leave(c, code);
	if (c->fd == -1)
		return leave(c, fail_lost(error, size));
	a = &c->areas[c->filling];
	if (c->table.len > 0)
		memcpy(a->map + at, c->table.data, c->table.len);
	a->commit = c->begin;
	a->commit.type = SNAPSHOT_COMMIT;
	a->commit.area = (uint32_t)c->filling;
	a->commit.sequence = ++c->sequence;
	a->commit.entries = c->entries;
	a->commit.table_offset = at;
	a->commit.table_bytes = c->table.len;
	a->state = CLIENT_COMMITTED;
	c->filling = -1;
	c->pending = true;
	if (c->expected < c->used)
		c->expected = c->used;
	/* One that is gone now has it from the area when it comes back. */
	(void)snapshot_send(c->fd, &a->commit, -1);
	return leave(c, 0);
}

int
holdfast_checkpoint_abort(struct holdfast_checkpoint_client *c, char *error, size_t size)
{
	struct snapshot_message m = { .type = SNAPSHOT_ABORT };
	int code;

	if ((code = enter(c, error, size)) != 0)
		return code;
	if (c->filling != -1) {
		m.area = (uint32_t)c->filling;
		c->areas[c->filling].state = CLIENT_IDLE;
		c->filling = -1;
		if (c->fd != -1)
			(void)snapshot_send(c->fd, &m, -1);
	}
	return leave(c, 0);
}

int
holdfast_checkpoint_wait(struct holdfast_checkpoint_client *c,
    int64_t timeout_ms, char *error, size_t size)
{
	int64_t now, end;
	struct timespec next;
	int code = 0;

	if (c == NULL || c->owner != getpid())
		return fail_process(error, size);
	/* Other threads may begin the next one meanwhile. */
	pthread_mutex_lock(&c->mutex);
	now = clock_mono_ns(&clock_system);
	end = timeout_ms < 0 || timeout_ms > INT64_MAX / 2 / NS_PER_MS - now /
	    NS_PER_MS ? INT64_MAX : now + timeout_ms * NS_PER_MS;
	if (c->sequence == 0)
		code = fail(HOLDFAST_CHECKPOINT_INVALID, error, size,
		    "no snapshot was committed");
	while (code == 0 && c->pending) {
		now = clock_mono_ns(&clock_system);
		if (c->fd == -1 && now - c->lost_ns > LOST_MS * NS_PER_MS)
			code = fail_lost(error, size);
		else if (now >= end)
			code = fail(HOLDFAST_CHECKPOINT_TIMEOUT, error, size,
			    "not durable yet");
		else {
			deadline_after(&next, end - now < NS_PER_S ?
			    (end - now) / NS_PER_MS + 1 : 1000);
			pthread_cond_timedwait(&c->changed, &c->mutex, &next);
		}
	}
	if (code == 0 && c->code != 0)
		code = fail(c->code, error, size, "%s", c->text);
	pthread_mutex_unlock(&c->mutex);
	return code;
}
