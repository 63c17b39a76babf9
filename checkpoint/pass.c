/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass.c - the one loop that reads tensor data.
 */
#include <isa-l.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "checkpoint/format.h"
#include "checkpoint/pass.h"

/* Bytes that all look at before any goes on: they stay in the first cache. */
#define STEP		16384u

/* What one unit holds of a range. */
struct piece {
	struct pass_range	*range;
	uint64_t		 at, end;	/* in the file */
	uint32_t		 crc;
	bool			 hit;
};

struct pass {
	struct input		*in;
	const struct check	*check;
	struct pass_digests	*digests;	/* NULL: none */
	struct piece		*pieces;
	size_t			*first;		/* piece of each unit, and the end */
	size_t			 n_units;
	uint64_t		 size;		/* of the file */
	atomic_size_t		 next;		/* unit */
	atomic_bool		 failed;
	_Atomic uint64_t	 bytes;
	/* under the lock of the crew, if there is one: */
	struct report		 error;		/* of the first unit that failed */
	size_t			 error_unit;
	struct pass		*link;
	size_t			 helpers;
};

/* What one thread needs. */
struct hand {
	struct pass	*pass;
	uint8_t		*block;
	struct hasher	*chunk, *whole;	/* NULL: not wanted */
	struct report	*r;
	uint64_t	 size;		/* of the block, with the rest of a value */
	uint64_t	 at;		/* of the block in the file */
};

int
pass_add(struct pass_ranges *ranges, const struct pass_range *range)
{
	struct pass_range *list;
	size_t cap;

	if (ranges->n == ranges->cap) {
		cap = ranges->cap ? ranges->cap * 2 : 64;
		list = reallocarray(ranges->list, cap, sizeof(*list));
		if (list == NULL)
			return -1;
		ranges->list = list;
		ranges->cap = cap;
	}
	ranges->list[ranges->n++] = *range;
	return 0;
}

void
pass_ranges_fini(struct pass_ranges *ranges)
{
	free(ranges->list);
	memset(ranges, 0, sizeof(*ranges));
}

/* The values of a piece that begin in the bytes [from, to) of the file. */
static bool
scan_values(const struct hand *h, const struct piece *p, uint64_t from,
    uint64_t to)
{
	uint64_t size = scan_elem_size(p->range->elem);
	uint64_t start = p->range->offset, end = start + p->range->length;
	uint64_t lo = start + (from - start + size - 1) / size * size;
	uint64_t hi = start + (to - start + size - 1) / size * size;

	if (hi > end)
		hi = end;
	if (hi > h->at + h->size)
		hi = h->at + h->size;
	return lo < hi && scan_any(p->range->elem, h->block + (lo - h->at),
	    (size_t)(hi - lo));
}

/* One step of a block; the first piece that reaches beyond it is returned. */
static size_t
look_at(struct hand *h, uint64_t at, uint64_t end, size_t i, size_t last)
{
	const uint8_t *data = h->block + (at - h->at);

	if (h->chunk != NULL)
		hasher_add(h->chunk, data, (size_t)(end - at));
	if (h->whole != NULL)
		hasher_add(h->whole, data, (size_t)(end - at));
	for (; i < last && h->pass->pieces[i].at < end; i++) {
		struct piece *p = &h->pass->pieces[i];
		uint64_t from = p->at > at ? p->at : at;
		uint64_t to = p->end < end ? p->end : end;

		if (from < to && p->range->want_crc)
			p->crc = crc32_gzip_refl(p->crc, h->block + (from - h->at),
			    to - from);
		if (from < to && p->range->elem != SCAN_NONE && !p->hit)
			p->hit = scan_values(h, p, from, to);
		if (p->end > end)
			break;
	}
	return i;
}

static void
end_chunk(struct hand *h, uint64_t end)
{
	struct pass_digests *d = h->pass->digests;

	if (h->chunk == NULL ||
	    (end % d->chunk_size != 0 && end != h->pass->size))
		return;
	d->chunks[(end - 1) / d->chunk_size] = hasher_end(h->chunk);
	hasher_reset(h->chunk);
}

static int
read_unit(struct hand *h, size_t unit)
{
	struct pass *pass = h->pass;
	uint64_t at = unit * PASS_UNIT, end, stop, step, read_to;
	uint64_t unit_end = pass->size - at < PASS_UNIT ? pass->size :
	    at + PASS_UNIT;
	size_t i = pass->first[unit], last = pass->first[unit + 1];

	while (at < unit_end) {
		if (pass->digests == NULL) {
			if (i == last)
				break;
			if (pass->pieces[i].at > at)
				at = pass->pieces[i].at;
		}
		end = unit_end - at < INPUT_BLOCK ? unit_end : at + INPUT_BLOCK;
		read_to = pass->size - end < 8 ? pass->size : end + 8;
		h->at = at;
		h->size = read_to - at;
		if (input_read(pass->in, at, h->block, (size_t)h->size, h->r)
		    == -1)
			return -1;
		for (; at < end; at = step) {
			step = end - at < STEP ? end : at + STEP;
			if (h->chunk != NULL) {
				stop = (at / pass->digests->chunk_size + 1) *
				    pass->digests->chunk_size;
				step = step < stop ? step : stop;
			}
			i = look_at(h, at, step, i, last);
			end_chunk(h, step);
		}
		atomic_fetch_add(&pass->bytes, end - h->at);
		if (pass->check->progress != NULL)
			pass->check->progress(pass->check->progress_arg,
			    end - h->at);
	}
	return 0;
}

static void
keep_error(struct pass *pass, const struct report *r, size_t unit)
{
	struct crew *crew = pass->check->crew;

	if (crew != NULL)
		pthread_mutex_lock(&crew->lock);
	if (!atomic_exchange(&pass->failed, true) || unit < pass->error_unit) {
		report_fini(&pass->error);
		report_init(&pass->error);
		report_merge(&pass->error, r, NULL);
		pass->error_unit = unit;
	}
	if (crew != NULL)
		pthread_mutex_unlock(&crew->lock);
}

/* Takes units until none is left. */
static void
take_units(struct pass *pass, uint8_t *block)
{
	const struct pass_digests *d = pass->digests;
	struct report r;
	struct hand h = { .pass = pass, .block = block, .r = &r };
	size_t unit = pass->n_units;
	bool ok;

	report_init(&r);
	if (d != NULL && d->chunk_size != 0)
		h.chunk = hasher_new();
	if (d != NULL && d->want_whole)
		h.whole = hasher_new();
	ok = (d == NULL || d->chunk_size == 0 || h.chunk != NULL) &&
	    (d == NULL || !d->want_whole || h.whole != NULL);
	if (!ok)
		report_say(&r, HOLDFAST_CHECKPOINT_UNVERIFIED, "out of memory");
	while (ok && !atomic_load(&pass->failed) &&
	    (unit = atomic_fetch_add(&pass->next, 1)) < pass->n_units)
		ok = read_unit(&h, unit) == 0;
	if (!ok)
		keep_error(pass, &r, unit);
	else if (h.whole != NULL)
		pass->digests->whole = hasher_end(h.whole);
	hasher_free(h.chunk);
	hasher_free(h.whole);
	report_fini(&r);
}

void
crew_init(struct crew *c)
{
	memset(c, 0, sizeof(*c));
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
}

void
crew_fini(struct crew *c)
{
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
}

static struct pass *
find_work(struct crew *c)
{
	struct pass *p;

	for (p = c->first; p != NULL; p = p->link)
		if (!atomic_load(&p->failed) &&
		    atomic_load(&p->next) < p->n_units)
			return p;
	return NULL;
}

void
crew_help(struct crew *c)
{
	uint8_t *block = NULL;
	struct pass *p;

	pthread_mutex_lock(&c->lock);
	if (--c->working == 0)
		pthread_cond_broadcast(&c->changed);
	while (c->working > 0) {
		if ((p = find_work(c)) == NULL) {
			pthread_cond_wait(&c->changed, &c->lock);
			continue;
		}
		if (block == NULL && (block = malloc(PASS_BLOCK)) == NULL)
			break;
		p->helpers++;
		pthread_mutex_unlock(&c->lock);
		take_units(p, block);
		pthread_mutex_lock(&c->lock);
		p->helpers--;
		pthread_cond_broadcast(&c->changed);
	}
	pthread_mutex_unlock(&c->lock);
	free(block);
}

/* Offers the pass to the crew, does what it can, waits for the helpers. */
static void
run_units(struct pass *pass)
{
	struct crew *crew = pass->check->crew;
	struct pass **p;
	bool alone = crew == NULL || pass->n_units < 2 ||
	    (pass->digests != NULL && pass->digests->want_whole);

	if (!alone) {
		pthread_mutex_lock(&crew->lock);
		pass->link = crew->first;
		crew->first = pass;
		pthread_cond_broadcast(&crew->changed);
		pthread_mutex_unlock(&crew->lock);
	}
	take_units(pass, pass->check->block);
	if (alone)
		return;
	pthread_mutex_lock(&crew->lock);
	for (p = &crew->first; *p != pass; p = &(*p)->link)
		;
	*p = pass->link;
	while (pass->helpers > 0)
		pthread_cond_wait(&crew->changed, &crew->lock);
	pthread_mutex_unlock(&crew->lock);
}

/* Cuts the ranges at the units' ends. */
static int
cut(struct pass *pass, struct pass_ranges *ranges)
{
	size_t n = 0, i, unit = 0;
	uint64_t at, end, limit;

	for (i = 0; i < ranges->n; i++)
		if (ranges->list[i].length > 0)
			n += (size_t)((ranges->list[i].offset +
			    ranges->list[i].length - 1) / PASS_UNIT -
			    ranges->list[i].offset / PASS_UNIT) + 1;
	pass->pieces = calloc(n + 1, sizeof(*pass->pieces));
	pass->first = calloc(pass->n_units + 2, sizeof(*pass->first));
	if (pass->pieces == NULL || pass->first == NULL)
		return -1;
	for (i = n = 0; i < ranges->n; i++) {
		struct pass_range *range = &ranges->list[i];

		end = range->offset + range->length;
		for (at = range->offset; at < end; at = limit) {
			while (unit < at / PASS_UNIT)
				pass->first[++unit] = n;
			limit = (at / PASS_UNIT + 1) * PASS_UNIT;
			limit = limit < end ? limit : end;
			pass->pieces[n++] = (struct piece){ .range = range,
			    .at = at, .end = limit };
		}
	}
	while (unit < pass->n_units)
		pass->first[++unit] = n;
	return 0;
}

/* The pieces of each range follow one another. */
static void
combine(const struct pass *pass)
{
	size_t i;

	for (i = 0; i < pass->first[pass->n_units]; i++) {
		const struct piece *p = &pass->pieces[i];

		p->range->hit |= p->hit;
		p->range->crc = p->at == p->range->offset ? p->crc :
		    (uint32_t)crc32_combine(p->range->crc, p->crc,
		    (z_off_t)(p->end - p->at));
	}
}

static int
begin(struct pass *pass, struct pass_ranges *ranges)
{
	struct pass_digests *d = pass->digests;

	pass->n_units = (size_t)((pass->size + PASS_UNIT - 1) / PASS_UNIT);
	if (d != NULL && d->chunk_size != 0) {
		free(d->chunks);
		d->n_chunks = (size_t)((pass->size + d->chunk_size - 1) /
		    d->chunk_size);
		d->chunks = calloc(d->n_chunks + 1, sizeof(*d->chunks));
	}
	if ((d != NULL && d->chunk_size != 0 && d->chunks == NULL) ||
	    cut(pass, ranges) == -1) {
		report_say(&pass->error, HOLDFAST_CHECKPOINT_UNVERIFIED,
		    "out of memory");
		return -1;
	}
	return 0;
}

int
pass_run(struct input *in, struct pass_ranges *ranges, const struct check *check,
    struct report *r)
{
	struct pass pass = { .in = in, .check = check, .size = in->size };
	int rc = -1;

	if (check->digests != NULL && !check->digests->done)
		pass.digests = check->digests;
	report_init(&pass.error);
	if (begin(&pass, ranges) == -1)
		goto out;
	run_units(&pass);
	r->bytes_read += atomic_load(&pass.bytes);
	if (atomic_load(&pass.failed))
		goto out;
	combine(&pass);
	if (pass.digests != NULL)
		pass.digests->done = true;
	rc = 0;
out:
	report_merge(r, &pass.error, NULL);
	report_fini(&pass.error);
	free(pass.pieces);
	free(pass.first);
	return rc;
}
