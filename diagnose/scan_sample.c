/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan_sample.c - counts what healthy logs are made of.
 *
 * Reads a sample text; says how often four bytes are to be expected in it: what
 * was counted, plus what the pairs they consist of let expect (a first-order
 * Markov estimate), since a small sample does not show all that is common.
 * Digits are counted as the average digit: a log has all numbers.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/scan_plan.h"

#define SLOTS		(1u << 16)	/* of distinct fragments */
#define NOWHERE		1e9

struct scan_sample {
	uint32_t	 bytes[2][256];		/* as written, in lower case */
	uint32_t	 pairs[2][256 * 256];
	struct scan_gram slots[2][SLOTS];
	size_t		 used[2];
};

static struct scan_gram *
slot_of(struct scan_sample *s, int fold, uint32_t value)
{
	uint32_t h = (value * 0x9e3779b1u) >> 16;
	struct scan_gram *g = &s->slots[fold][h % SLOTS];

	while (g->count > 0 && g->value != value)
		g = &s->slots[fold][++h % SLOTS];
	return g;
}

static void
count_text(struct scan_sample *s, int fold, const unsigned char *p, size_t len)
{
	struct scan_gram *g;
	uint32_t value;
	size_t i;

	for (i = 0; i < len; i++) {
		s->bytes[fold][p[i]]++;
		if (i + 1 < len)
			s->pairs[fold][p[i] << 8 | p[i + 1]]++;
		if (i + SCAN_FRAGMENT > len)
			continue;
		memcpy(&value, p + i, sizeof(value));
		g = slot_of(s, fold, value);
		if (g->count == 0 && s->used[fold]++ > SLOTS / 2)
			continue;
		g->value = value;
		g->count++;
	}
}

/* Replaces each digit by another one, the same ones each time. */
static void
stir_digits(unsigned char *p, size_t len)
{
	uint32_t seed = 0x2545f491;
	size_t i;

	for (i = 0; i < len; i++) {
		if (!isdigit(p[i]))
			continue;
		seed = seed * 1664525u + 1013904223u;
		p[i] = (unsigned char)('0' + (seed >> 16) % 10);
	}
}

#define ROUNDS	3	/* of stirred digits */

int
scan_sample_new(const char *text, size_t len, struct scan_sample **out,
    struct err *err)
{
	struct scan_sample *s = calloc(1, sizeof(*s));
	unsigned char *copy = malloc(len + 1);
	size_t i;
	int round;

	if (s == NULL || copy == NULL) {
		free(s);
		free(copy);
		return err_memory(err);
	}
	memcpy(copy, text, len);
	for (round = 0; round < ROUNDS; round++) {
		stir_digits(copy, len);
		count_text(s, 0, copy, len);
	}
	for (i = 0; i < len; i++)
		copy[i] = (unsigned char)tolower(copy[i]);
	for (round = 0; round < ROUNDS; round++) {
		stir_digits(copy, len);
		count_text(s, 1, copy, len);
	}
	free(copy);
	*out = s;
	return 0;
}

void
scan_sample_free(struct scan_sample *s)
{
	free(s);
}

/* Lower case in all four bytes at once: the top bit of a byte in `upper` is set where
 * it is one of A to Z. */
uint32_t
scan_fragment_value(const char *fragment, bool any_case)
{
	uint32_t v = scan_read_fragment(fragment), low = v & 0x7f7f7f7fu, upper;

	if (!any_case)
		return v;
	upper = (low + 0x3f3f3f3fu) & ~(low + 0x25252525u) & ~v & 0x80808080u;
	return v | upper >> 2;
}

double
scan_sample_expect(const struct scan_sample *s, const char *fragment, bool fold)
{
	uint32_t value = scan_fragment_value(fragment, fold);
	unsigned char c[SCAN_FRAGMENT];
	double guess;
	int k;

	memcpy(c, &value, sizeof(c));
	guess = s->pairs[fold][c[0] << 8 | c[1]];
	for (k = 1; k < SCAN_FRAGMENT - 1 && guess > 0; k++)
		guess *= (double)s->pairs[fold][c[k] << 8 | c[k + 1]] /
		    (s->bytes[fold][c[k]] > 0 ? s->bytes[fold][c[k]] : 1);
	return (slot_of((struct scan_sample *)(uintptr_t)s, fold, value)->count +
	    guess) / ROUNDS;
}

double
scan_sample_cost(const struct scan_sample *s, const char *text, size_t len,
    bool fold)
{
	double least = NOWHERE, cost;
	size_t i;

	for (i = 0; i + SCAN_FRAGMENT <= len; i++) {
		cost = scan_sample_expect(s, text + i, fold);
		if (cost < least)
			least = cost;
	}
	return least;
}

static int
by_count(const void *a, const void *b)
{
	const struct scan_gram *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->value < y->value ? -1 : x->value > y->value;
}

/* The least count that no more than `most` have; larger counts are alike. */
static uint32_t
count_floor(const struct scan_sample *s, size_t most)
{
	size_t with[256] = {0}, i, n = 0;
	uint32_t c;

	for (i = 0; i < SLOTS; i++) {
		c = s->slots[0][i].count;
		with[c < 255 ? c : 255]++;
	}
	for (c = 255; c > 1 && n + with[c] <= most; c--)
		n += with[c];
	return c;
}

size_t
scan_sample_grams(const struct scan_sample *s, size_t most,
    struct scan_gram **out, struct err *err)
{
	struct scan_gram *list = calloc(s->used[0] + 1, sizeof(*list));
	uint32_t floor = count_floor(s, most);
	size_t i, n = 0;

	if (list == NULL) {
		err_memory(err);
		return 0;
	}
	for (i = 0; i < SLOTS && n < s->used[0]; i++)
		if (s->slots[0][i].count >= floor)
			list[n++] = s->slots[0][i];
	qsort(list, n, sizeof(*list), by_count);
	*out = list;
	return n < most ? n : most;
}
