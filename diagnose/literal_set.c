/* SPDX-License-Identifier: Apache-2.0 */
/*
 * literal_set.c - sets of strings for literal.c: union, product, quality.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/literal_set.h"

#define REDUNDANT_MAX	32

struct set *
set_new(void)
{
	struct set *s = malloc(sizeof(*s));

	if (s != NULL) {
		s->count = 0;
		s->cap = sizeof(s->few) / sizeof(s->few[0]);
		s->text = s->few;
		s->quality = NAN;
	}
	return s;
}

void
set_free(struct set *s)
{
	if (s == NULL)
		return;
	if (s->text != s->few)
		free(s->text);
	free(s);
}

static bool
set_grow(struct set *s)
{
	size_t cap = 4 * s->cap;
	void *p = realloc(s->text != s->few ? s->text : NULL,
	    cap * sizeof(*s->text));

	if (p == NULL)
		return false;
	if (s->text == s->few)
		memcpy(p, s->few, sizeof(s->few));
	s->text = p;
	s->cap = cap;
	return true;
}

struct set *
set_of(const char *text, size_t len)
{
	struct set *s = set_new();

	if (s != NULL && !set_add(s, text, len)) {
		set_free(s);
		s = NULL;
	}
	return s;
}

bool
set_add(struct set *s, const char *text, size_t len)
{
	size_t i;

	for (i = 0; i < s->count; i++)
		if (s->len[i] == len && memcmp(s->text[i], text, len) == 0)
			return true;
	if (s->count == SET_MAX || len > TEXT_MAX ||
	    (s->count == s->cap && !set_grow(s)))
		return false;
	s->len[s->count] = (uint8_t)len;
	if (len > 0)
		memcpy(s->text[s->count], text, len);
	s->count++;
	s->quality = NAN;
	return true;
}

static size_t
set_shortest(const struct set *s)
{
	size_t i, least = SIZE_MAX;

	for (i = 0; s != NULL && i < s->count; i++)
		if (s->len[i] < least)
			least = s->len[i];
	return s == NULL || s->count == 0 ? 0 : least;
}

/* Higher is better.  A literal that stands once in the sample costs more than any
 * length can gain. */
#define COMMON_COST	1000
#define COUNT_COST	10
#define BEST		1e6

double
set_quality(struct set *s, const struct scan_sample *sample, bool fold)
{
	size_t least = set_shortest(s), i;
	double cost = 0, one;

	if (least < SCAN_LITERAL_MIN)
		return -1;
	if (!isnan(s->quality))
		return s->quality;
	for (i = 0; sample != NULL && i < s->count && cost < BEST; i++) {
		one = COMMON_COST * scan_sample_cost(sample, s->text[i], s->len[i],
		    fold);
		cost += one < BEST ? one : BEST;
	}
	cost -= (double)(least > 24 ? 24 : least) * 16 - COUNT_COST * (double)s->count;
	s->quality = BEST / (1 + (cost < -400 ? 0 : cost + 400));
	return s->quality;
}

/* Keeps the better of two required sets, frees the other. */
struct set *
set_better(struct set *a, struct set *b, const struct scan_sample *sample,
    bool fold)
{
	if (a == NULL || (b != NULL && set_quality(b, sample, fold) >
	    set_quality(a, sample, fold))) {
		set_free(a);
		return b;
	}
	set_free(b);
	return a;
}

struct set *
set_product(const struct set *a, const struct set *b)
{
	char text[2 * TEXT_MAX];
	struct set *s;
	size_t i, k;

	if (a->count * b->count > SET_MAX || (s = set_new()) == NULL)
		return NULL;
	for (i = 0; i < a->count; i++) {
		for (k = 0; k < b->count; k++) {
			memcpy(text, a->text[i], a->len[i]);
			memcpy(text + a->len[i], b->text[k], b->len[k]);
			if (!set_add(s, text, (size_t)a->len[i] + b->len[k])) {
				set_free(s);
				return NULL;
			}
		}
	}
	return s;
}

/* Drops a from an alternation's set into s; NULL when it does not fit. */
struct set *
set_union(struct set *s, const struct set *a)
{
	size_t i;

	if (s == NULL || a == NULL)
		goto fail;
	for (i = 0; i < a->count; i++)
		if (!set_add(s, a->text[i], a->len[i]))
			goto fail;
	return s;
fail:
	set_free(s);
	return NULL;
}

/* A literal that contains another one of the set is not needed. */
static bool
is_redundant(const struct set *s, size_t i)
{
	size_t k;

	/* Not worth it for what a product of classes makes. */
	for (k = 0; s->count <= REDUNDANT_MAX && k < s->count; k++)
		if (k != i && s->len[k] < s->len[i] &&
		    memmem(s->text[i], s->len[i], s->text[k], s->len[k]))
			return true;
	return false;
}

int
set_export(const struct set *s, struct literal_set *out, struct err *err)
{
	size_t i;

	out->texts = calloc(s->count, sizeof(*out->texts));
	if (out->texts == NULL)
		return err_memory(err);
	for (i = 0; i < s->count; i++) {
		if (is_redundant(s, i))
			continue;
		out->texts[out->count] = strndup(s->text[i], s->len[i]);
		if (out->texts[out->count] == NULL)
			return err_memory(err);
		if (out->fold)
			for (char *c = out->texts[out->count]; *c; c++)
				*c = (char)tolower((unsigned char)*c);
		out->count++;
	}
	return 0;
}
