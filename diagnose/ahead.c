/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.c - a ring of windows between threads that scan and the one that reads.
 *
 * Each thread takes the next window of the next stream and the slot in the ring
 * that is its own by number, so results are read in order.  The ring bounds what
 * is scanned ahead, and the memory.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/ahead.h"

/* Small enough for a second-level cache, large enough for the hand-over. */
#define WINDOW		((size_t)256 << 10)
#define THREADS_MAX	8
#define SLOTS(threads)	(4 * (threads) + 1)
#define WORTH_BYTES	((size_t)4 << 20)
#define KEEP_HITS	((size_t)64 << 10)	/* memory a slot keeps, in hits */

enum slot_state { SLOT_FREE, SLOT_BUSY, SLOT_DONE };

struct slot {
	enum slot_state	 state;
	uint32_t	 stream;
	size_t		 from, to;
	size_t		 newlines;
	struct ahead_hit *hits;
	size_t		 count, cap;
	bool		 failed;
};

struct ahead {
	const struct scanner *scanner;
	const struct scanner *tail;	/* for the end of a stream */
	const struct feed *feed;
	uint32_t	 last;
	/* The next window to be scanned. */
	uint32_t	 stream;
	size_t		 offset;
	uint64_t	 taken;		/* windows so far */
	uint64_t	 read;		/* ... by the reader */
	bool		 reading;	/* slot of window `read` is in use */
	bool		 stop;
	struct slot	*slots;
	size_t		 slot_count;
	pthread_mutex_t	 lock;
	pthread_cond_t	 freed;		/* a slot, for the threads */
	pthread_cond_t	 done;		/* a window, for the reader */
	pthread_t	 threads[THREADS_MAX];
	unsigned	 thread_count;
};

unsigned
ahead_threads(const struct feed *f)
{
	size_t bytes = 0, i;
	cpu_set_t set;
	int n;

	for (i = 0; i < f->count && bytes < WORTH_BYTES; i++)
		bytes += f->streams[i].len;
	if (bytes < WORTH_BYTES ||
	    sched_getaffinity(0, sizeof(set), &set) == -1)
		return 0;
	n = CPU_COUNT(&set);
	return n < 2 ? 0 : n < THREADS_MAX ? (unsigned)n : THREADS_MAX;
}

/* Fills a slot with the next window to scan; false when there is none.  With the
 * lock held, where there are threads. */
static bool
take_window(struct ahead *a, struct slot *w)
{
	const struct stream *s;
	const char *end;
	size_t left;

	for (; a->stream < a->last; a->stream++, a->offset = 0) {
		s = &a->feed->streams[a->stream];
		if (s->kind != STREAM_EXITS && a->offset < s->len)
			break;
	}
	if (a->stream >= a->last)
		return false;
	left = s->len - a->offset;
	w->stream = a->stream;
	w->from = a->offset;
	w->to = s->len;
	if (left > WINDOW) {
		/* Not within a literal: a log of progress bars has no other end. */
		end = memrchr(s->data + a->offset, '\n', WINDOW);
		if (end == NULL)
			end = memrchr(s->data + a->offset, '\r', WINDOW);
		w->to = end ? (size_t)(end + 1 - s->data) : a->offset + WINDOW;
	}
	a->offset = w->to;
	a->taken++;
	return true;
}

static bool
on_hit(uint32_t literal, size_t start, void *arg)
{
	struct slot *w = arg;
	struct ahead_hit *p;
	size_t cap;

	if (w->count == w->cap) {
		cap = w->cap ? 2 * w->cap : 256;
		if ((p = realloc(w->hits, cap * sizeof(*p))) == NULL) {
			w->failed = true;
			return false;
		}
		w->hits = p;
		w->cap = cap;
	}
	w->hits[w->count++] = (struct ahead_hit){ literal, (uint32_t)start };
	return true;
}

static void
scan_window(struct ahead *a, struct slot *w)
{
	const struct stream *s = &a->feed->streams[w->stream];
	bool tail = s->len - w->to < RULE_TAIL_BYTES;

	if (w->cap > KEEP_HITS) {
		free(w->hits);
		w->hits = NULL;
		w->cap = 0;
	}
	w->count = 0;
	w->failed = false;
	w->newlines = scan_run(tail ? a->tail : a->scanner, s->data + w->from,
	    w->to - w->from, on_hit, w);
}

static void *
run_thread(void *arg)
{
	struct ahead *a = arg;
	struct slot *w;

	pthread_mutex_lock(&a->lock);
	while (!a->stop) {
		w = &a->slots[a->taken % a->slot_count];
		if (w->state != SLOT_FREE) {
			pthread_cond_wait(&a->freed, &a->lock);
			continue;
		}
		if (!take_window(a, w)) {
			/* The reader may wait for one more. */
			pthread_cond_signal(&a->done);
			break;
		}
		w->state = SLOT_BUSY;
		pthread_mutex_unlock(&a->lock);
		scan_window(a, w);
		pthread_mutex_lock(&a->lock);
		w->state = SLOT_DONE;
		pthread_cond_signal(&a->done);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

/* Signals are for the thread that reads.  Fewer threads than asked for are fine,
 * none as well. */
static void
start_threads(struct ahead *a, unsigned threads)
{
	sigset_t all, old;

	sigfillset(&all);
	sigdelset(&all, SIGBUS);	/* of a file that shrinks */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (a->thread_count < threads && pthread_create(
	    &a->threads[a->thread_count], NULL, run_thread, a) == 0)
		a->thread_count++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

int
ahead_new(const struct scanner *scanner, const struct scanner *tail,
    const struct feed *feed, uint32_t first, uint32_t last, unsigned threads,
    struct ahead **out, struct err *err)
{
	struct ahead *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return err_memory(err);
	if (threads > THREADS_MAX)
		threads = THREADS_MAX;
	a->scanner = scanner;
	a->tail = tail;
	a->feed = feed;
	a->stream = first;
	a->last = last;
	a->slot_count = SLOTS(threads);
	a->slots = calloc(a->slot_count, sizeof(*a->slots));
	if (a->slots == NULL) {
		free(a);
		return err_memory(err);
	}
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->freed, NULL);
	pthread_cond_init(&a->done, NULL);
	start_threads(a, threads);
	*out = a;
	return 0;
}

void
ahead_free(struct ahead *a)
{
	size_t i;

	if (a == NULL)
		return;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_broadcast(&a->freed);
	pthread_mutex_unlock(&a->lock);
	while (a->thread_count > 0)
		pthread_join(a->threads[--a->thread_count], NULL);
	pthread_cond_destroy(&a->done);
	pthread_cond_destroy(&a->freed);
	pthread_mutex_destroy(&a->lock);
	for (i = 0; i < a->slot_count; i++)
		free(a->slots[i].hits);
	free(a->slots);
	free(a);
}

/* The window to be read next, or NULL behind the last one.  With the lock held. */
static struct slot *
wait_window(struct ahead *a)
{
	struct slot *w = &a->slots[a->read % a->slot_count];

	while (w->state == SLOT_BUSY ||
	    (w->state == SLOT_FREE && a->stream < a->last))
		pthread_cond_wait(&a->done, &a->lock);
	return w->state == SLOT_DONE ? w : NULL;
}

static void
drop_window(struct ahead *a)
{
	a->slots[a->read % a->slot_count].state = SLOT_FREE;
	a->read++;
	a->reading = false;
	pthread_cond_broadcast(&a->freed);
}

static struct slot *
next_scanned(struct ahead *a, uint32_t stream)
{
	struct slot *w;

	pthread_mutex_lock(&a->lock);
	if (a->reading)
		drop_window(a);
	while ((w = wait_window(a)) != NULL && w->stream < stream)
		drop_window(a);
	if (w != NULL && w->stream == stream)
		a->reading = true;
	else
		w = NULL;
	pthread_mutex_unlock(&a->lock);
	return w;
}

static struct slot *
next_here(struct ahead *a, uint32_t stream)
{
	struct slot *w = &a->slots[0];

	if (a->stream < stream) {
		a->stream = stream;
		a->offset = 0;
	}
	a->last = stream + 1;		/* no window of a later stream */
	if (!take_window(a, w))
		return NULL;
	scan_window(a, w);
	return w;
}

bool
ahead_next(struct ahead *a, uint32_t stream, struct ahead_window *out)
{
	struct slot *w = a->thread_count > 0 ? next_scanned(a, stream) :
	    next_here(a, stream);

	if (w == NULL)
		return false;
	*out = (struct ahead_window){ .from = w->from, .to = w->to,
	    .newlines = w->newlines, .hits = w->hits, .count = w->count,
	    .failed = w->failed };
	return true;
}
