/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_copy.c - splits large copies; past the caches, in which the copy would
 * only push out what the trainer needs next.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "checkpoint/snapshot_copy.h"

#define SPLIT_FROM	((size_t)8 << 20)	/* starting a thread takes 20 us */
#define STREAM_FROM	((size_t)256 << 10)
#define THREADS		4u
#define LINE		64u

struct piece {
	uint8_t		*to;
	const uint8_t	*from;
	size_t		 len;
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
copy_piece(const struct piece *p)
{
#ifdef __SSE2__
	if (p->len >= STREAM_FROM) {
		copy_stream(p->to, p->from, p->len);
		return;
	}
#endif
	if (p->len > 0)
		memcpy(p->to, p->from, p->len);
}

static void *
run(void *arg)
{
	copy_piece(arg);
	return NULL;
}

void
snapshot_copy(void *to, const void *from, size_t len, unsigned threads)
{
	struct piece pieces[SNAPSHOT_COPY_THREADS_MAX];
	pthread_t ids[SNAPSHOT_COPY_THREADS_MAX];
	size_t share, at = 0;
	sigset_t all, old;
	unsigned i, n = threads;

	if (len < SPLIT_FROM || n < 1)
		n = 1;
	if (n > SNAPSHOT_COPY_THREADS_MAX)
		n = SNAPSHOT_COPY_THREADS_MAX;
	share = (len / n + 4095) / 4096 * 4096;
	for (i = 0; i < n; i++, at += pieces[i - 1].len)
		pieces[i] = (struct piece){ (uint8_t *)to + at,
		    (const uint8_t *)from + at,
		    i == n - 1 || len - at < share ? len - at : share };
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (i = 1; i < n; i++)
		if (pthread_create(&ids[i], NULL, run, &pieces[i]) != 0)
			break;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	copy_piece(&pieces[0]);
	/* Where no thread could be had. */
	for (n = i; i < threads && i < SNAPSHOT_COPY_THREADS_MAX &&
	    len >= SPLIT_FROM; i++)
		copy_piece(&pieces[i]);
	while (--n > 0)
		pthread_join(ids[n], NULL);
}
