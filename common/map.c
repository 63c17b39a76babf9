/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.c - mapped files, and the handler of SIGBUS that knows them.
 *
 * The handler finds the mapping of an address in a table of slots.  It takes no
 * lock: slots are never freed, and the mapping of the thread that faults cannot
 * be closed meanwhile.  Slots of other mappings may change under it, hence the
 * second look at the start.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/map.h"

#define CHUNK		256u	/* slots allocated at once */
#define CHUNKS_MAX	1024u
#define NO_SLOT		UINT32_MAX
#define SEQUENTIAL_MIN	((size_t)1 << 20)
/* What one access may map: 64 KiB around it (do_fault_around() in mm/memory.c), and
 * as measured on Linux 6.18 more, where the file lies in large folios: a PMD at most. */
#define AROUND		((uintptr_t)2 << 20)
#define MAPS_DEFAULT	65530	/* DEFAULT_MAX_MAP_COUNT, include/linux/mm.h */

struct slot {
	_Atomic uintptr_t start;	/* 0 free */
	_Atomic size_t	 len;		/* of the pages that hold the file */
	_Atomic bool	 hurt;
	uint32_t	 next;		/* free one */
};

static const char nothing[MAP_TAIL];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot *_Atomic chunks[CHUNKS_MAX];
static _Atomic uint32_t used;		/* slots ever taken */
static uint32_t first_free = NO_SLOT;
static long maps, maps_max;		/* areas of memory, as the kernel counts */
static size_t page;
static struct sigaction previous;

static struct slot *
slot_at(uint32_t i)
{
	struct slot *c = atomic_load(&chunks[i / CHUNK]);

	return &c[i % CHUNK];
}

/* Zero pages from the address to the end of its mapping.  When the kernel cannot
 * split it any more, all of it becomes zero: that takes no further area. */
static bool
fill_hole(uintptr_t at)
{
	uint32_t i, n = atomic_load(&used);

	for (i = 0; i < n; i++) {
		struct slot *s = slot_at(i);
		uintptr_t start = atomic_load(&s->start);
		size_t len = atomic_load(&s->len);
		uintptr_t from = at & ~(uintptr_t)(page - 1);
		int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;

		if (start == 0 || at < start || at - start >= len ||
		    atomic_load(&s->start) != start)
			continue;
		atomic_store(&s->hurt, true);
		return mmap((void *)from, start + len - from, PROT_READ, flags,
		    -1, 0) != MAP_FAILED || mmap((void *)start, len, PROT_READ,
		    flags, -1, 0) != MAP_FAILED;
	}
	return false;
}

static void
pass_on(int sig, siginfo_t *info, void *context)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };

	if (previous.sa_flags & SA_SIGINFO) {
		previous.sa_sigaction(sig, info, context);
	} else if (previous.sa_handler != SIG_DFL &&
	    previous.sa_handler != SIG_IGN) {
		previous.sa_handler(sig);
	} else if (info->si_code > 0 || previous.sa_handler == SIG_DFL) {
		/* An access that failed is tried again and ends the process, as
		 * it would have; one sent with kill(2) must be sent again. */
		sigaction(sig, &dfl, NULL);
		if (info->si_code <= 0)
			raise(sig);
	}
}

static void
on_bus(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	if (info->si_code <= 0 || !fill_hole((uintptr_t)info->si_addr))
		pass_on(sig, info, context);
	errno = saved;
}

static void
install(void)
{
	struct sigaction sa = { .sa_sigaction = on_bus,
	    .sa_flags = SA_SIGINFO | SA_ONSTACK };
	FILE *f;

	page = (size_t)sysconf(_SC_PAGESIZE);
	maps_max = MAPS_DEFAULT;
	if ((f = fopen("/proc/sys/vm/max_map_count", "re")) != NULL) {
		if (fscanf(f, "%ld", &maps_max) != 1 || maps_max < 0)
			maps_max = MAPS_DEFAULT;
		fclose(f);
	}
	maps_max -= maps_max / 4;
	sigemptyset(&sa.sa_mask);
	/* Known before the handler can run. */
	sigaction(SIGBUS, NULL, &previous);
	sigaction(SIGBUS, &sa, NULL);
}

/* With the lock held. */
static uint32_t
take_slot(void)
{
	uint32_t i = first_free;
	struct slot *c;

	if (i != NO_SLOT) {
		first_free = slot_at(i)->next;
		return i;
	}
	i = atomic_load(&used);
	if (i == CHUNK * CHUNKS_MAX)
		return NO_SLOT;
	if (i % CHUNK == 0) {
		if ((c = calloc(CHUNK, sizeof(*c))) == NULL)
			return NO_SLOT;
		atomic_store(&chunks[i / CHUNK], c);
	}
	atomic_store(&used, i + 1);
	return i;
}

static void
give_slot(uint32_t i)
{
	struct slot *s = slot_at(i);

	atomic_store(&s->start, 0);
	atomic_store(&s->len, 0);
	s->next = first_free;
	first_free = i;
}

/* What stands in the address space: the pages of the file, and a further one
 * when the last of them has too few bytes behind the end. */
static size_t
span_of(size_t len, size_t *file_span)
{
	*file_span = (len + page - 1) / page * page;
	return *file_span - len < MAP_TAIL ? *file_span + page : *file_span;
}

static void *
map_pages(int fd, off_t offset, size_t span, size_t file_span)
{
	char *p, *q;

	if (span == file_span)
		return mmap(NULL, span, PROT_READ, MAP_PRIVATE, fd, offset);
	p = mmap(NULL, span, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS |
	    MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return p;
	q = mmap(p, file_span, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, offset);
	if (q == MAP_FAILED) {
		int saved = errno;

		munmap(p, span);
		errno = saved;
	}
	return q;
}

int
map_open(struct map *m, int fd, off_t offset, size_t len, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	size_t span, file_span;
	struct slot *s;
	int areas;
	void *p;

	*m = (struct map){ .data = nothing, .slot = NO_SLOT };
	if (len == 0)
		return 0;
	pthread_once(&once, install);
	if (len > SIZE_MAX / 4)
		return err_set(err, ERR_LIMIT, "too large to be mapped");
	span = span_of(len, &file_span);
	areas = span == file_span ? 1 : 2;
	pthread_mutex_lock(&lock);
	if (maps + areas <= maps_max)
		m->slot = take_slot();
	if (m->slot != NO_SLOT)
		maps += areas;
	pthread_mutex_unlock(&lock);
	if (m->slot == NO_SLOT)
		return err_set(err, ERR_LIMIT, "too many mappings");
	if ((p = map_pages(fd, offset, span, file_span)) == MAP_FAILED) {
		err_errno(err, "cannot map");
		pthread_mutex_lock(&lock);
		give_slot(m->slot);
		maps -= areas;
		pthread_mutex_unlock(&lock);
		*m = (struct map){ .data = nothing, .slot = NO_SLOT };
		return -1;
	}
	s = slot_at(m->slot);
	atomic_store(&s->hurt, false);
	atomic_store(&s->len, file_span);
	atomic_store(&s->start, (uintptr_t)p);
	if (len >= SEQUENTIAL_MIN)
		(void)madvise(p, file_span, MADV_SEQUENTIAL);
	m->data = p;
	m->len = len;
	return 0;
}

void
map_close(struct map *m)
{
	size_t span, file_span;

	if (m == NULL || m->len == 0)
		return;
	span = span_of(m->len, &file_span);
	pthread_mutex_lock(&lock);
	give_slot(m->slot);
	maps -= span == file_span ? 1 : 2;
	pthread_mutex_unlock(&lock);
	munmap((void *)(uintptr_t)m->data, span);
	*m = (struct map){ .data = nothing, .slot = NO_SLOT };
}

bool
map_is_hurt(const struct map *m)
{
	return m->len > 0 && atomic_load(&slot_at(m->slot)->hurt);
}

void
map_release(const struct map *m, size_t from, size_t to)
{
	uintptr_t start = (uintptr_t)m->data, end, p, q;

	if (m->len == 0 || from >= m->len)
		return;
	end = start + (m->len + page - 1) / page * page;
	p = from > AROUND ? (start + from - AROUND) / page * page : start;
	q = to < m->len && m->len - to > AROUND ?
	    (start + to + AROUND) / page * page : end;
	(void)madvise((void *)p, q - p, MADV_DONTNEED);
}
