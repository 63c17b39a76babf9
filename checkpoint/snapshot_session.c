/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_session.c - which area a rank may fill, and when one is written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "checkpoint/holdfast-checkpoint.h"
#include "checkpoint/snapshot_area.h"
#include "checkpoint/snapshot_session.h"

struct work {
	struct session		*session;
	unsigned		 area;
	enum area_state		 then;		/* of an area that grew */
	uint64_t		 bytes;
	struct snapshot_place	 place;
	struct sink_limit	*limit;
	enum snapshot_outcome	 outcome;
	int			 rc;
	struct err		 err;
};

static void grant(struct session *);

static void
tell(struct session *s, struct snapshot_message *m, int pass_fd)
{
	/* One that does not read what it asked for gets nothing any more. */
	if (s->fd != -1 && snapshot_send(s->fd, m, pass_fd) == -1)
		session_hang_up(s);
}

static void
tell_area(struct session *s, unsigned i, bool begun)
{
	struct area *a = &s->areas[i];
	struct snapshot_message m = { .type = SNAPSHOT_AREA, .area = i,
	    .bytes = a->bytes, .begun = begun };

	tell(s, &m, a->sent ? -1 : a->fd);
	a->sent = true;
}

static void
tell_failed(struct session *s, int code, const char *why)
{
	struct snapshot_message m = { .type = SNAPSHOT_FAIL, .code = code };

	snprintf(m.text, sizeof(m.text), "%s", why);
	tell(s, &m, -1);
}

static void
tell_done(struct session *s, unsigned area, uint64_t sequence, int code,
    const char *why)
{
	struct snapshot_message m = { .type = SNAPSHOT_DONE, .area = area,
	    .sequence = sequence, .code = code };

	snprintf(m.text, sizeof(m.text), "%s", why != NULL ? why : "");
	tell(s, &m, -1);
}

static void
do_grow(void *arg)
{
	struct work *w = arg;

	w->rc = snapshot_area_grow(w->session->areas[w->area].fd, w->bytes, &w->err);
}

static void
grown(void *arg)
{
	struct work *w = arg;
	struct session *s = w->session;
	struct area *a = &s->areas[w->area];

	s->jobs--;
	a->state = w->then;
	if (w->rc == 0)
		a->bytes = w->bytes;
	if (s->fd == -1) {
		a->state = AREA_FREE;
	} else if (w->then == AREA_FILLING) {
		if (w->rc == 0)
			tell_area(s, w->area, true);
		else
			tell_failed(s, HOLDFAST_CHECKPOINT_NO_MEMORY,
			    w->err.text);
	} else {
		if (w->rc == 0)
			tell_area(s, w->area, false);
		else if (s->begin_waits) {
			s->begin_waits = false;
			tell_failed(s, HOLDFAST_CHECKPOINT_NO_MEMORY,
			    w->err.text);
		}
		grant(s);
	}
	free(w);
	server_settle(s->server);
}

static int
grow(struct session *s, unsigned i, uint64_t bytes, enum area_state then)
{
	struct area *a = &s->areas[i];
	struct work *w = calloc(1, sizeof(*w));
	struct err err = {0};

	if (w == NULL)
		return -1;
	*w = (struct work){ .session = s, .area = i, .bytes = bytes, .then = then };
	if ((a->fd != -1 || (a->fd = snapshot_area_new(&err)) != -1) &&
	    snapshot_jobs_start(s->server->jobs, do_grow, grown, w, &err) == 0) {
		a->state = AREA_GROWING;
		s->jobs++;
		return 0;
	}
	free(w);
	tell_failed(s, HOLDFAST_CHECKPOINT_NO_MEMORY, err.text);
	return -1;
}

/* The largest free area; otherwise one that waits to be written gives way. */
static int
pick(struct session *s)
{
	int i, best = -1;

	for (i = 0; i < SNAPSHOT_AREAS; i++)
		if (s->areas[i].state == AREA_FREE && (best == -1 ||
		    s->areas[i].bytes > s->areas[best].bytes))
			best = i;
	for (i = 0; i < SNAPSHOT_AREAS && best == -1; i++)
		if (s->areas[i].state == AREA_PENDING) {
			s->areas[i].state = AREA_FREE;
			tell_done(s, (unsigned)i, s->areas[i].commit.sequence,
			    HOLDFAST_CHECKPOINT_REPLACED,
			    "a newer snapshot took its place");
			best = i;
		}
	return best;
}

static void
grant(struct session *s)
{
	int i;

	if (!s->begin_waits || s->fd == -1 || (i = pick(s)) == -1)
		return;
	if (s->areas[i].fd == -1 || s->areas[i].bytes < s->begin.bytes) {
		if (grow(s, (unsigned)i, s->begin.bytes, AREA_FREE) == -1)
			s->begin_waits = false;
		return;
	}
	s->begin_waits = false;
	s->areas[i].state = AREA_FILLING;
	tell_area(s, (unsigned)i, true);
}

static void
prepare(struct session *s, uint64_t bytes)
{
	unsigned i;

	for (i = 0; i < SNAPSHOT_AREAS; i++)
		if (s->areas[i].state == AREA_FREE && s->areas[i].bytes < bytes)
			(void)grow(s, i, bytes, AREA_FREE);
}

static void
report(struct session *s, const struct snapshot_place *p, int64_t commit_ns,
    enum snapshot_outcome outcome, const char *why)
{
	struct snapshot_server *server = s->server;
	struct snapshot_done d = { .step = p->step, .bytes = p->bytes,
	    .ms = (clock_mono_ns(&clock_system) - commit_ns) / NS_PER_MS };

	if (outcome == SNAPSHOT_LOST)
		d.why = why;
	else
		d.path = p->path;
	if (outcome == SNAPSHOT_LOST || outcome == SNAPSHOT_DURABLE)
		server->ops.done(server->arg, &d);
}

static int
code_of(enum snapshot_outcome o)
{
	return o == SNAPSHOT_LOST ? HOLDFAST_CHECKPOINT_FAILED :
	    o == SNAPSHOT_PAST ? HOLDFAST_CHECKPOINT_REPLACED :
	    HOLDFAST_CHECKPOINT_OK;
}

/* Others wait for the same step: it is complete for them too. */
static void
look_again_all(struct snapshot_server *server)
{
	struct session *s;

	for (s = server->sessions; s != NULL; s = s->next)
		session_look_again(s);
}

static void
do_write(void *arg)
{
	struct work *w = arg;
	struct area *a = &w->session->areas[w->area];

	w->outcome = snapshot_write(&w->place, &a->commit, a->fd, a->bytes, w->limit,
	    &w->err);
}

static void
written(void *arg)
{
	struct work *w = arg;
	struct session *s = w->session;
	struct area *a = &s->areas[w->area];

	s->jobs--;
	a->state = AREA_FREE;
	if (w->place.step > s->written)
		s->written = w->place.step;
	if (w->outcome == SNAPSHOT_WAITING) {
		/* An older step that was waited for is past by now. */
		if (s->waits)
			tell_done(s, w->area, s->sequence,
			    HOLDFAST_CHECKPOINT_FAILED, s->place.failing_ns > 0 ?
			    "the storage failed until a later step was saved" :
			    "other ranks did not save this step");
		snapshot_place_fini(&s->place);
		s->waits = true;
		s->place = w->place;
		s->sequence = a->commit.sequence;
		s->commit_ns = a->commit_ns;
		loop_timer_set(s->server->again, 500);
	} else {
		report(s, &w->place, a->commit_ns, w->outcome, w->err.text);
		tell_done(s, w->area, a->commit.sequence, code_of(w->outcome),
		    w->err.text);
		snapshot_place_fini(&w->place);
		if (w->outcome == SNAPSHOT_DURABLE && s->world > 1)
			look_again_all(s->server);
	}
	free(w);
	grant(s);
	session_start_writing(s->server);
	server_settle(s->server);
}

static void
do_join(void *arg)
{
	struct work *w = arg;

	w->outcome = snapshot_join(&w->place, &w->err);
}

static void
joined(void *arg)
{
	struct work *w = arg;
	struct session *s = w->session;
	/* A newer step may have taken the place of the one that was looked at. */
	bool same = s->waits && s->place.ino == w->place.ino &&
	    s->place.step == w->place.step;

	s->jobs--;
	s->looking = false;
	if (same && w->outcome == SNAPSHOT_WAITING) {
		s->place.synced = w->place.synced;
		s->place.moved = w->place.moved;
		s->place.failing_ns = w->place.failing_ns;
	} else if (same) {
		s->waits = false;
		report(s, &w->place, s->commit_ns, w->outcome, w->err.text);
		tell_done(s, SNAPSHOT_AREAS, s->sequence, code_of(w->outcome),
		    w->err.text);
	}
	snapshot_place_fini(&w->place);
	free(w);
	server_settle(s->server);
}

void
session_answer_flush(struct session *s)
{
	s->flush_ns = 0;
	tell_done(s, SNAPSHOT_AREAS, 0, HOLDFAST_CHECKPOINT_OK, NULL);
}

void
session_look_again(struct session *s)
{
	struct work *w;

	if (!s->waits || s->looking || (w = calloc(1, sizeof(*w))) == NULL)
		return;
	w->session = s;
	w->place = s->place;
	w->place.path = NULL;
	if (snapshot_jobs_start(s->server->jobs, do_join, joined, w, NULL) == -1) {
		free(w);
		return;
	}
	s->looking = true;
	s->jobs++;
}

static const struct area *
area_in(const struct session *s, enum area_state state)
{
	unsigned i;

	for (i = 0; i < SNAPSHOT_AREAS; i++)
		if (s->areas[i].state == state)
			return &s->areas[i];
	return NULL;
}

/* Has `peer` committed this step, so that writing it is not in vain? */
static bool
is_in_step(const struct session *peer, int64_t step)
{
	const struct area *w = area_in(peer, AREA_WRITING);
	const struct area *p = area_in(peer, AREA_PENDING);

	if (peer->written >= step)
		return true;
	return w != NULL ? w->commit.step == step :
	    p != NULL && p->commit.step == step;
}

static bool
may_write(const struct session *s, const struct area *a)
{
	const struct session *peer;

	if (area_in(s, AREA_WRITING) != NULL)
		return false;
	/* At the end nobody commits any more. */
	if (a->commit.world == 1 || s->server->ending)
		return true;
	for (peer = s->server->sessions; peer != NULL; peer = peer->next)
		if (peer != s && peer->fd != -1 &&
		    peer->world == a->commit.world &&
		    peer->attempt == a->commit.attempt &&
		    !is_in_step(peer, a->commit.step))
			return false;
	return true;
}

static void
start_writing(struct session *s, unsigned i)
{
	struct snapshot_server *server = s->server;
	struct area *a = &s->areas[i];
	struct work *w = calloc(1, sizeof(*w));
	struct err err = {0};

	if (w == NULL)
		return;
	*w = (struct work){ .session = s, .area = i, .limit = &server->limit,
	    .place = { .dir = server->ops.target_dir(server->arg),
	    .step = a->commit.step, .rank = a->commit.rank,
	    .world = a->commit.world, .attempt = a->commit.attempt,
	    .writer = server->writers++ } };
	a->state = AREA_WRITING;
	s->jobs++;
	if (snapshot_jobs_start(server->jobs, do_write, written, w, &err) == 0)
		return;
	s->jobs--;
	a->state = AREA_FREE;
	tell_done(s, i, a->commit.sequence, HOLDFAST_CHECKPOINT_FAILED, err.text);
	free(w);
}

void
session_start_writing(struct snapshot_server *server)
{
	struct session *s;
	unsigned i;

	for (s = server->sessions; s != NULL; s = s->next)
		for (i = 0; i < SNAPSHOT_AREAS; i++)
			if (s->areas[i].state == AREA_PENDING &&
			    may_write(s, &s->areas[i]))
				start_writing(s, i);
}

static bool
take_commit(struct session *s, const struct snapshot_message *m)
{
	struct area *a = &s->areas[m->area];

	if (a->state != AREA_FILLING || m->table_bytes > SNAPSHOT_TABLE_MAX ||
	    m->table_offset % 8 != 0 || m->table_offset > a->bytes ||
	    m->table_bytes > a->bytes - m->table_offset || a->bytes == 0)
		return false;
	a->commit = *m;
	a->commit_ns = clock_mono_ns(&clock_system);
	a->state = AREA_PENDING;
	s->world = m->world;
	s->attempt = m->attempt;
	session_start_writing(s->server);
	/* The next one should find its memory ready. */
	prepare(s, m->table_offset + m->table_bytes);
	return true;
}

static bool
take_begin(struct session *s, const struct snapshot_message *m)
{
	unsigned i;

	if (s->begin_waits)
		return false;
	if (s->server->ending) {
		tell_failed(s, HOLDFAST_CHECKPOINT_NO_SERVER,
		    "no more snapshots are taken: the run ends");
		return true;
	}
	for (i = 0; i < SNAPSHOT_AREAS; i++)
		if (s->areas[i].state == AREA_FILLING)
			s->areas[i].state = AREA_FREE;
	s->begin_waits = true;
	s->begin = *m;
	s->world = m->world;
	s->attempt = m->attempt;
	grant(s);
	return true;
}

static bool
take_area(struct session *s, const struct snapshot_message *m, int passed)
{
	struct area *a = &s->areas[m->area];

	if (a->fd != -1 || a->state != AREA_FREE ||
	    snapshot_area_check(passed, &a->bytes, NULL) == -1) {
		close(passed);
		return false;
	}
	a->fd = passed;
	a->sent = true;
	a->state = AREA_FILLING;
	return true;
}

bool
session_message(struct session *s, const struct snapshot_message *m, int passed)
{
	bool adopts = m->type == SNAPSHOT_ADOPT && passed != -1;

	if (passed != -1 && (!adopts || m->area >= SNAPSHOT_AREAS)) {
		close(passed);
		return false;
	}
	if (m->area >= SNAPSHOT_AREAS || m->bytes > SNAPSHOT_BYTES_MAX)
		return false;
	if ((m->type == SNAPSHOT_BEGIN || m->type == SNAPSHOT_COMMIT) &&
	    (m->world < 1 || m->world > SNAPSHOT_WORLD_MAX ||
	    m->rank >= m->world || m->separator > 127 || m->step < 0 ||
	    m->step > SNAPSHOT_STEP_MAX))
		return false;
	switch (m->type) {
	case SNAPSHOT_RESERVE:
		prepare(s, m->bytes);
		return true;
	case SNAPSHOT_BEGIN:
		return take_begin(s, m);
	case SNAPSHOT_GROW:
		if (s->areas[m->area].state != AREA_FILLING ||
		    m->bytes < s->areas[m->area].bytes)
			return false;
		(void)grow(s, m->area, m->bytes, AREA_FILLING);
		return true;
	case SNAPSHOT_COMMIT:
		return take_commit(s, m);
	case SNAPSHOT_ABORT:
		if (s->areas[m->area].state == AREA_FILLING)
			s->areas[m->area].state = AREA_FREE;
		return true;
	case SNAPSHOT_ADOPT:
		return adopts && take_area(s, m, passed);
	case SNAPSHOT_FLUSH:
		s->flush_ns = clock_mono_ns(&clock_system);
		loop_timer_set(s->server->again, SESSION_FLUSH_MS + 1);
		return true;
	default:
		return false;
	}
}

bool
session_is_idle(const struct session *s)
{
	return area_in(s, AREA_PENDING) == NULL && area_in(s, AREA_WRITING) == NULL;
}

void
session_hang_up(struct session *s)
{
	unsigned i;

	if (s->fd == -1)
		return;
	loop_unwatch(s->watch);
	s->watch = NULL;
	close(s->fd);
	s->fd = -1;
	s->begin_waits = false;
	for (i = 0; i < SNAPSHOT_AREAS; i++)
		if (s->areas[i].state == AREA_FILLING)
			s->areas[i].state = AREA_FREE;
}

void
session_free(struct session *s)
{
	unsigned i;

	session_hang_up(s);
	for (i = 0; i < SNAPSHOT_AREAS; i++)
		if (s->areas[i].fd != -1)
			close(s->areas[i].fd);
	snapshot_place_fini(&s->place);
	free(s);
}
