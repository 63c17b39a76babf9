/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_copy.c - splits large copies; past the caches, in which the copy would
 * only push out what the trainer needs next.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "checkpoint/snapshot_copy.h"

#define SPLIT_FROM	((size_t)8 << 20)	/* starting a thread takes 20 us */
#define PIECE		((size_t)1 << 20)
#define STREAM_FROM	((size_t)256 << 10)
#define THREADS		4u
#define LINE		64u

struct copy {
	uint8_t		*to;
	const uint8_t	*from;
	size_t		 len;
	atomic_size_t	 next;		/* where the next piece begins */
};

unsigned
snapshot_copy_threads(void)
{
	cpu_set_t set;
	int n;

	if (sched_getaffinity(0, sizeof(set), &set) == -1)
		return 1;
	n = CPU_COUNT(&set);
	return n < 1 ? 1 : (unsigned)n < THREADS ? (unsigned)n : THREADS;
}

#ifdef __SSE2__
/* Stores that do not read the line that they overwrite. */
static void
copy_stream(uint8_t *to, const uint8_t *from, size_t len)
{
	size_t head = -(uintptr_t)to % LINE, i;
	const __m128i *f;
	__m128i *t;

	memcpy(to, from, head);
	f = (const __m128i *)(const void *)(from + head);
	t = (__m128i *)(void *)(to + head);
	for (i = 0; i < (len - head) / LINE; i++, f += 4, t += 4) {
		__m128i a = _mm_loadu_si128(f), b = _mm_loadu_si128(f + 1);
		__m128i c = _mm_loadu_si128(f + 2), d = _mm_loadu_si128(f + 3);

		_mm_stream_si128(t, a);
		_mm_stream_si128(t + 1, b);
		_mm_stream_si128(t + 2, c);
		_mm_stream_si128(t + 3, d);
	}
	head += i * LINE;
	memcpy(to + head, from + head, len - head);
	_mm_sfence();
}
#endif

static void
copy_piece(uint8_t *to, const uint8_t *from, size_t len)
{
#ifdef __SSE2__
	if (len >= STREAM_FROM) {
		copy_stream(to, from, len);
		return;
	}
#endif
	if (len > 0)
		memcpy(to, from, len);
}

/* Takes pieces until none is left: one that finds its processor busy holds nobody up
 * for longer than a piece. */
static void *
run(void *arg)
{
	struct copy *c = arg;
	size_t at;

	while ((at = atomic_fetch_add(&c->next, PIECE)) < c->len)
		copy_piece(c->to + at, c->from + at,
		    c->len - at < PIECE ? c->len - at : PIECE);
	return NULL;
}

void
snapshot_copy(void *to, const void *from, size_t len, unsigned threads)
{
	struct copy c = { .to = to, .from = from, .len = len };
	pthread_t others[SNAPSHOT_COPY_THREADS_MAX - 1];
	sigset_t all, old;
	unsigned n = 0;

	if (len < SPLIT_FROM || threads < 2) {
		copy_piece(to, from, len);
		return;
	}
	/* The trainer's signals are the trainer's.  Where no thread can be had, the
	 * caller copies the more. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (n + 1 < threads && n + 1 < SNAPSHOT_COPY_THREADS_MAX &&
	    pthread_create(&others[n], NULL, run, &c) == 0)
		n++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	run(&c);
	while (n > 0)
		pthread_join(others[--n], NULL);
}
