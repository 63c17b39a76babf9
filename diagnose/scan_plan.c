/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan_plan.c - chooses by which four of its bytes a literal is searched.
 *
 * A weighted set cover: as few fragments as possible that are rare in healthy
 * logs and of which each literal contains one.  Greedy, the fragment with the
 * most literals for its cost first; since a fragment's worth can only fall
 * while others are chosen, the worth of all but the top of the heap is left to
 * be corrected when they get there.
 */
#include <stdlib.h>
#include <string.h>

#include "diagnose/scan_plan.h"

/* What a fragment costs, in occurrences in the sample: being one more of them, and
 * at each of its occurrences being found and compared with each of its literals. */
#define COST_FRAGMENT	2.0
#define COST_COMPARE	0.1

/* Literal `literal` contains the candidate at `offset`. */
struct place {
	uint32_t	candidate;
	uint32_t	literal;
	uint8_t		offset;
};

struct candidate {
	uint32_t	value;
	bool		any_case;
	bool		chosen;
	double		cost;
	double		worth;
	uint32_t	first;		/* of its places */
	uint32_t	count;
};

struct cover {
	struct scan_literal *literals;
	size_t		 count;
	const struct scan_sample *sample;
	struct candidate *list;
	size_t		 listed;
	uint32_t	*slots;		/* hash of value and case -> candidate + 1 */
	size_t		 slot_count;
	struct place	*places;	/* by candidate, after sort_places() */
	size_t		 place_count;
	uint32_t	*heap;
	size_t		 heap_count;
	struct scan_fragment *chosen;
	size_t		 chosen_count;
	uint32_t	*fragment;	/* of a literal, in chosen */
};

/* The slot of a candidate, or the empty one where it belongs. */
static uint32_t *
slot_of(struct cover *c, uint32_t value, bool any_case)
{
	size_t h = ((value ^ (any_case ? 0x5bd1e995u : 0)) * 0x9e3779b1u) >> 8;

	for (;; h++) {
		uint32_t *s = &c->slots[h & (c->slot_count - 1)];

		if (*s == 0 || (c->list[*s - 1].value == value &&
		    c->list[*s - 1].any_case == any_case))
			return s;
	}
}

static void
add_place(struct cover *c, uint32_t *slot, uint32_t value, bool any_case,
    size_t literal, size_t offset)
{
	struct candidate *p;

	if (*slot == 0) {
		p = &c->list[c->listed++];
		*p = (struct candidate){ .value = value, .any_case = any_case };
		*slot = (uint32_t)c->listed;
	}
	c->list[*slot - 1].count++;
	c->places[c->place_count++] = (struct place){ *slot - 1,
	    (uint32_t)literal, (uint8_t)offset };
}

/* Of a planned literal its fragment alone matters. */
static void
list_planned(struct cover *c, size_t literal)
{
	const struct scan_literal *l = &c->literals[literal];
	uint32_t v = scan_fragment_value(l->text + l->offset, l->any_case);

	add_place(c, slot_of(c, v, l->any_case), v, l->any_case, literal,
	    l->offset);
}

/* Adds the fragments of a literal whose case does not matter, or those of another
 * one: in any case where one is there already, and as written. */
static void
list_literal(struct cover *c, size_t literal)
{
	const struct scan_literal *l = &c->literals[literal];
	uint32_t *slot, v;
	size_t k;

	for (k = 0; k + SCAN_FRAGMENT <= l->len; k++) {
		v = scan_fragment_value(l->text + k, true);
		slot = slot_of(c, v, true);
		if (l->fold || *slot != 0)
			add_place(c, slot, v, true, literal, k);
		if (l->fold)
			continue;
		v = scan_fragment_value(l->text + k, false);
		add_place(c, slot_of(c, v, false), v, false, literal, k);
	}
}

/* First the literals whose case does not matter: the fragments they need may
 * cover others too. */
static void
list_places(struct cover *c)
{
	size_t i;
	int pass;

	for (i = 0; i < c->count; i++)
		if (c->literals[i].planned)
			list_planned(c, i);
	for (pass = 0; pass < 2; pass++)
		for (i = 0; i < c->count; i++)
			if (!c->literals[i].planned &&
			    c->literals[i].fold == (pass == 0))
				list_literal(c, i);
}

static int
sort_places(struct cover *c, struct err *err)
{
	struct place *sorted = calloc(c->place_count + 1, sizeof(*sorted));
	uint32_t at = 0, *next;
	size_t i;

	next = calloc(c->listed + 1, sizeof(*next));
	if (sorted == NULL || next == NULL) {
		free(sorted);
		free(next);
		return err_memory(err);
	}
	for (i = 0; i < c->listed; i++) {
		c->list[i].first = next[i] = at;
		at += c->list[i].count;
	}
	for (i = 0; i < c->place_count; i++)
		sorted[next[c->places[i].candidate]++] = c->places[i];
	free(next);
	free(c->places);
	c->places = sorted;
	return 0;
}

static double
worth(const struct cover *c, const struct candidate *p)
{
	uint32_t i, n = 0, last = UINT32_MAX;

	for (i = p->first; i < p->first + p->count; i++) {
		const struct place *at = &c->places[i];

		if (c->literals[at->literal].planned || at->literal == last)
			continue;
		last = at->literal;
		n++;
	}
	return n / (COST_FRAGMENT + p->cost * (1 + COST_COMPARE * n));
}

static void
sift_down(struct cover *c, size_t i)
{
	size_t k;

	for (; (k = 2 * i + 1) < c->heap_count; i = k) {
		uint32_t t = c->heap[i];

		if (k + 1 < c->heap_count && c->list[c->heap[k + 1]].worth >
		    c->list[c->heap[k]].worth)
			k++;
		if (c->list[t].worth >= c->list[c->heap[k]].worth)
			return;
		c->heap[i] = c->heap[k];
		c->heap[k] = t;
	}
}

static void
build_heap(struct cover *c)
{
	size_t i;

	for (i = 0; i < c->listed; i++) {
		struct candidate *p = &c->list[i];

		p->cost = scan_sample_expect(c->sample, (const char *)&p->value,
		    p->any_case);
		p->worth = worth(c, p);
		c->heap[i] = (uint32_t)i;
	}
	c->heap_count = c->listed;
	for (i = c->heap_count / 2; i-- > 0;)
		sift_down(c, i);
}

/* The candidate that is worth most now; NULL when none is worth anything. */
static struct candidate *
take_best(struct cover *c)
{
	struct candidate *p;
	double now;

	while (c->heap_count > 0) {
		p = &c->list[c->heap[0]];
		now = worth(c, p);
		if (now < p->worth) {
			p->worth = now;
			sift_down(c, 0);
			continue;
		}
		if (now <= 0)
			return NULL;
		return p;
	}
	return NULL;
}

/* All literals that are left and contain the candidate are searched by it. */
static void
choose(struct cover *c, struct candidate *p, const struct scan_literal *plan)
{
	struct scan_fragment *f = &c->chosen[c->chosen_count];
	uint32_t i;

	memcpy(f->text, &p->value, SCAN_FRAGMENT);
	f->any_case = p->any_case;
	f->fixed = plan != NULL;
	f->exact = plan != NULL ? plan->exact : 0;
	f->nibble = plan != NULL ? plan->nibble : 0;
	for (i = p->first; i < p->first + p->count; i++) {
		struct scan_literal *l = &c->literals[c->places[i].literal];

		if (l->planned)
			continue;
		l->planned = true;
		l->any_case = p->any_case;
		l->offset = c->places[i].offset;
		c->fragment[c->places[i].literal] = (uint32_t)c->chosen_count;
	}
	c->chosen_count++;
	p->chosen = true;
}

/* What the planned literals are searched by costs nothing more. */
static void
choose_planned(struct cover *c)
{
	size_t i;

	for (i = 0; i < c->count; i++) {
		const struct scan_literal *l = &c->literals[i];
		uint32_t slot;

		if (!l->planned || c->fragment[i] != UINT32_MAX)
			continue;
		slot = *slot_of(c, scan_fragment_value(l->text + l->offset, l->any_case),
		    l->any_case);
		if (slot != 0 && !c->list[slot - 1].chosen)
			choose(c, &c->list[slot - 1], l);
	}
}

static int
cover_init(struct cover *c, struct err *err)
{
	size_t i, n = 1;

	for (i = 0; i < c->count; i++) {
		const struct scan_literal *l = &c->literals[i];

		if (l->len < SCAN_LITERAL_MIN || l->len > SCAN_LITERAL_MAX)
			return err_set(err, ERR_LIMIT,
			    "literal '%.80s' is not %d to %d bytes long", l->text,
			    SCAN_LITERAL_MIN, SCAN_LITERAL_MAX);
		n += l->planned ? 1 : (l->fold ? 1 : 2) *
		    (l->len - SCAN_FRAGMENT + 1u);
	}
	for (c->slot_count = 64; c->slot_count < 2 * n;)
		c->slot_count *= 2;
	c->list = calloc(n, sizeof(*c->list));
	c->slots = calloc(c->slot_count, sizeof(*c->slots));
	c->places = calloc(n, sizeof(*c->places));
	c->heap = calloc(n, sizeof(*c->heap));
	c->chosen = calloc(c->count + 1, sizeof(*c->chosen));
	c->fragment = malloc((c->count + 1) * sizeof(*c->fragment));
	if (c->list == NULL || c->slots == NULL || c->places == NULL ||
	    c->heap == NULL || c->chosen == NULL || c->fragment == NULL)
		return err_memory(err);
	memset(c->fragment, 0xff, (c->count + 1) * sizeof(*c->fragment));
	return 0;
}

static void
cover_fini(struct cover *c)
{
	free(c->list);
	free(c->slots);
	free(c->places);
	free(c->heap);
	free(c->chosen);
	free(c->fragment);
}

static void
write_buckets(struct cover *c)
{
	size_t i;

	for (i = 0; i < c->count; i++) {
		const struct scan_fragment *f;

		if (c->fragment[i] == UINT32_MAX)
			continue;
		f = &c->chosen[c->fragment[i]];
		c->literals[i].exact = f->exact;
		c->literals[i].nibble = f->nibble;
	}
}

int
scan_plan(struct scan_literal *literals, size_t count,
    const struct scan_sample *sample, int passes, struct err *err)
{
	struct cover c = { .literals = literals, .count = count,
	    .sample = sample };
	struct candidate *p;
	size_t i, planned = 0;
	int rc = -1;

	for (i = 0; i < count; i++)
		planned += literals[i].planned;
	if (planned == count)
		return 0;
	if (cover_init(&c, err) == -1)
		goto out;
	list_places(&c);
	if (sort_places(&c, err) == -1)
		goto out;
	if (planned > 0)
		choose_planned(&c);
	build_heap(&c);
	while ((p = take_best(&c)) != NULL)
		choose(&c, p, NULL);
	if (scan_bucket_assign(c.chosen, c.chosen_count, sample, passes,
	    err) == -1)
		goto out;
	write_buckets(&c);
	rc = 0;
out:
	cover_fini(&c);
	return rc;
}
