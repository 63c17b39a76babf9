/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan_bucket.c - puts fragments into buckets.
 *
 * A bucket lets four bytes pass when each of them is allowed at its place by some
 * fragment of the bucket; the more unlike the fragments of one bucket, the more
 * combinations pass that are none of them.  Reads the sample's commonest four
 * bytes, counts how many of them a bucket would let pass, and places each
 * fragment where that grows least; then moves fragments while it helps.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/scan_plan.h"

/* The commonest four bytes that are looked at: with time to improve, without. */
#define GRAMS_FULL	6000
#define GRAMS_FAST	512
#define BUCKETS_MAX	(SCAN_BUCKETS_EXACT > SCAN_BUCKETS_NIBBLE ? \
			SCAN_BUCKETS_EXACT : SCAN_BUCKETS_NIBBLE)

/* What a bucket allows: whole bytes, or halves of them. */
struct bucket {
	uint8_t		byte[SCAN_FRAGMENT][256];
	uint16_t	low[SCAN_FRAGMENT], high[SCAN_FRAGMENT];
	uint64_t	passes;
};

struct sorter {
	struct scan_fragment *list;
	size_t		 count;
	const struct scan_gram *grams;
	size_t		 gram_count;
	bool		 halves;
	int		 bucket_count;
	struct bucket	 buckets[BUCKETS_MAX];
};

static uint8_t *
bucket_of(const struct sorter *s, struct scan_fragment *f)
{
	return s->halves ? &f->nibble : &f->exact;
}

static void
allow(struct bucket *b, int k, unsigned char c)
{
	b->byte[k][c & 127] = 1;
	b->low[k] |= (uint16_t)(1 << (c & 15));
	b->high[k] |= (uint16_t)(1 << (c >> 4));
}

static void
bucket_add(struct bucket *b, const struct scan_fragment *f)
{
	int k;

	for (k = 0; k < SCAN_FRAGMENT; k++) {
		unsigned char c = (unsigned char)f->text[k];

		allow(b, k, c);
		if (f->any_case && isalpha(c))
			allow(b, k, c ^ 0x20);
	}
}

static bool
allows(const struct sorter *s, const struct bucket *b, int k, unsigned char c)
{
	return s->halves ? (b->low[k] >> (c & 15) & 1) &&
	    (b->high[k] >> (c >> 4) & 1) : b->byte[k][c & 127];
}

static uint64_t
count_passes(const struct sorter *s, const struct bucket *b)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < s->gram_count; i++) {
		const unsigned char *g =
		    (const unsigned char *)&s->grams[i].value;

		if (allows(s, b, 0, g[0]) && allows(s, b, 1, g[1]) &&
		    allows(s, b, 2, g[2]) && allows(s, b, 3, g[3]))
			sum += s->grams[i].count;
	}
	return sum;
}

static uint64_t
passes_with(const struct sorter *s, int bucket, const struct scan_fragment *f)
{
	struct bucket b = s->buckets[bucket];

	bucket_add(&b, f);
	return count_passes(s, &b);
}

/* A bucket without one of its fragments. */
static void
bucket_without(const struct sorter *s, int bucket, size_t without,
    struct bucket *out)
{
	size_t i;

	memset(out, 0, sizeof(*out));
	for (i = 0; i < s->count; i++)
		if (i != without && *bucket_of(s, &s->list[i]) == bucket)
			bucket_add(out, &s->list[i]);
	out->passes = count_passes(s, out);
}

static void
put(struct sorter *s, size_t i, int bucket, uint64_t passes)
{
	*bucket_of(s, &s->list[i]) = (uint8_t)bucket;
	bucket_add(&s->buckets[bucket], &s->list[i]);
	s->buckets[bucket].passes = passes;
}

/* The bucket whose passing positions grow least, except one. */
static int
best_bucket(const struct sorter *s, size_t i, int except, uint64_t *passes)
{
	uint64_t least = UINT64_MAX, with;
	int k, best = 0;

	*passes = 0;
	for (k = 0; k < s->bucket_count; k++) {
		if (k == except)
			continue;
		with = passes_with(s, k, &s->list[i]);
		if (with - s->buckets[k].passes < least) {
			least = with - s->buckets[k].passes;
			*passes = with;
			best = k;
		}
	}
	return best;
}

static bool
improve(struct sorter *s)
{
	struct bucket without;
	bool moved = false;
	uint64_t with;
	size_t i;
	int from, to;

	for (i = 0; i < s->count; i++) {
		if (s->list[i].fixed)
			continue;
		from = *bucket_of(s, &s->list[i]);
		bucket_without(s, from, i, &without);
		to = best_bucket(s, i, from, &with);
		if (s->buckets[from].passes - without.passes <=
		    with - s->buckets[to].passes)
			continue;
		s->buckets[from] = without;
		put(s, i, to, with);
		moved = true;
	}
	return moved;
}

static void
assign(struct sorter *s, int passes)
{
	uint64_t with = 0;
	size_t i;
	int k;

	for (i = 0; i < s->count; i++)
		if (s->list[i].fixed)
			bucket_add(&s->buckets[*bucket_of(s, &s->list[i])],
			    &s->list[i]);
	for (k = 0; k < s->bucket_count; k++)
		s->buckets[k].passes = count_passes(s, &s->buckets[k]);
	for (i = 0; i < s->count; i++)
		if (!s->list[i].fixed) {
			k = best_bucket(s, i, -1, &with);
			put(s, i, k, with);
		}
	while (passes-- > 0 && improve(s))
		;
}

int
scan_bucket_assign(struct scan_fragment *list, size_t count,
    const struct scan_sample *sample, int passes, struct err *err)
{
	struct sorter *s = calloc(1, sizeof(*s));
	struct scan_gram *grams = NULL;

	if (s == NULL)
		return err_memory(err);
	s->list = list;
	s->count = count;
	s->gram_count = scan_sample_grams(sample,
	    passes > 0 ? GRAMS_FULL : GRAMS_FAST, &grams, err);
	s->grams = grams;
	if (grams == NULL) {
		free(s);
		return -1;
	}
	s->bucket_count = SCAN_BUCKETS_EXACT;
	assign(s, passes);
	memset(s->buckets, 0, sizeof(s->buckets));
	s->halves = true;
	s->bucket_count = SCAN_BUCKETS_NIBBLE;
	assign(s, passes);
	free(grams);
	free(s);
	return 0;
}
