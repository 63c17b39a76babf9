/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - multi-literal search by fragments of four bytes.
 *
 * Decides nothing about lines or rules: it reads raw bytes and reports where a
 * literal stands.  A kernel (scan_x86.c, or the scalar one here) names positions
 * where a fragment may stand; those where one does are compared with its literals.
 */
#include <stdlib.h>
#include <string.h>

#include "diagnose/scan_kernel.h"

#define SLOTS		8192u	/* at least twice the fragments */

struct entry {
	uint64_t	word;		/* the first 8 bytes, 0 behind the literal */
	uint32_t	literal;
	uint8_t		offset;		/* of the fragment */
	uint8_t		len;
	bool		fold;
};

/* A fragment and its literals; most of its occurrences are told from them by the
 * bytes around it. */
struct fragment {
	uint32_t	value;		/* | ANY_CASE */
	uint32_t	first, count;	/* of its entries */
	const struct scan_literal *masked;	/* whose masks were added last */
	uint8_t		before[32];	/* a bit for each byte that may stand there */
	uint8_t		after[32];
};

struct scanner {
	const struct scan_literal *literals;
	scan_kernel_fn	 kernel;
	enum scan_level	 level;
	struct entry	*entries;
	struct fragment	*fragments;
	size_t		 fragment_count;
	uint16_t	 slots[SLOTS];	/* hash of a fragment -> its number + 1 */
	struct scan_masks masks;
};

/* The bits of the first bytes of a word as it lies in memory. */
static uint64_t
first_bytes(uint8_t count)
{
	if (count >= 8)
		return UINT64_MAX;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return ~(UINT64_MAX >> 8 * count);
#else
	return ~(UINT64_MAX << 8 * count);
#endif
}

static bool
is_letter(char c)
{
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'z';
}

/* The exit for short buffers, ends of buffers and other processors. */
static size_t
run_scalar(const struct scan_masks *m, const char *data, size_t from, size_t len,
    struct scan_found *f)
{
	size_t at = from, count = f->count, lines = 0;

	for (; at + SCAN_FRAGMENT <= len && count < SCAN_BATCH; at++) {
		f->at[count] = at;
		count += scan_is_hashed(m, data + at);
		lines += data[at] == '\n';
	}
	if (at + SCAN_FRAGMENT > len && count < SCAN_BATCH)
		for (; at < len; at++)
			lines += data[at] == '\n';
	f->count = count;
	f->newlines += lines;
	return at;
}

static void
add_mask(struct scan_masks *m, int k, unsigned char c,
    const struct scan_literal *l)
{
	int group = l->nibble / 8;
	uint8_t bit = (uint8_t)(1 << l->nibble % 8);

	m->exact[l->exact / 8][k][c & 127] |= (uint8_t)(1 << l->exact % 8);
	m->low[group][k][c & 15] |= bit;
	m->high[group][k][c >> 4] |= bit;
}

static void
add_masks(struct scan_masks *m, const struct scan_literal *l)
{
	int k;

	for (k = 0; k < SCAN_FRAGMENT; k++) {
		char c = l->text[l->offset + k];

		add_mask(m, k, (unsigned char)c, l);
		if (l->any_case && is_letter(c))
			add_mask(m, k, (unsigned char)(c ^ 0x20), l);
	}
}

static void
fill_entry(struct entry *e, const struct scan_literal *l, uint32_t literal)
{
	*e = (struct entry){ .literal = literal, .offset = l->offset,
	    .len = l->len, .fold = l->fold };
	memcpy(&e->word, l->text, l->len < 8 ? l->len : 8);
}

static void
allow(uint8_t *set, const struct scan_literal *l, size_t at)
{
	unsigned char c;

	if (at >= l->len) {		/* also before the first byte */
		memset(set, 0xff, 32);
		return;
	}
	c = (unsigned char)l->text[at];
	set[c / 8] |= (uint8_t)(1 << c % 8);
	if (l->fold && is_letter((char)c)) {
		c ^= 0x20;
		set[c / 8] |= (uint8_t)(1 << c % 8);
	}
}

static bool
allows(const uint8_t *set, char c)
{
	return set[(unsigned char)c / 8] >> (unsigned char)c % 8 & 1;
}

/* The fragment of that value; NULL when there is none. */
static struct fragment *
find_fragment(const struct scanner *s, uint32_t value, uint32_t h, size_t *slot)
{
	size_t i = h % SLOTS;

	for (; s->slots[i] != 0; i = (i + 1) % SLOTS)
		if (s->fragments[s->slots[i] - 1].value == value)
			return &s->fragments[s->slots[i] - 1];
	if (slot != NULL)
		*slot = i;
	return NULL;
}

static bool
same_masks(const struct scan_literal *a, const struct scan_literal *b)
{
	return a->exact == b->exact && a->nibble == b->nibble &&
	    a->any_case == b->any_case && memcmp(a->text + a->offset,
	    b->text + b->offset, SCAN_FRAGMENT) == 0;
}

static int
add_fragment(struct scanner *s, const struct scan_literal *l, struct err *err)
{
	uint32_t value = scan_read_fragment(l->text + l->offset) |
	    SCAN_ANY_CASE;
	uint32_t h = scan_hash(value);
	struct fragment *f;
	size_t slot;

	f = find_fragment(s, value, h, &slot);
	if (f == NULL) {
		if (s->fragment_count >= SLOTS / 2)
			return err_set(err, ERR_LIMIT, "too many literals");
		f = &s->fragments[s->fragment_count++];
		f->value = value;
		s->slots[slot] = (uint16_t)s->fragment_count;
		s->masks.hashed[h / 64] |= 1ull << (h % 64);
	}
	f->count++;
	allow(f->before, l, l->offset - 1u);
	allow(f->after, l, l->offset + (size_t)SCAN_FRAGMENT);
	if (f->masked == NULL || !same_masks(f->masked, l)) {
		add_masks(&s->masks, l);
		f->masked = l;
	}
	return 0;
}

static int
check_plan(const struct scan_literal *l, struct err *err)
{
	if (l->len < SCAN_LITERAL_MIN || l->len > SCAN_LITERAL_MAX)
		return err_set(err, ERR_LIMIT,
		    "literal '%.80s' is not %d to %d bytes long", l->text,
		    SCAN_LITERAL_MIN, SCAN_LITERAL_MAX);
	if (!l->planned || l->offset + SCAN_FRAGMENT > l->len ||
	    l->exact >= SCAN_BUCKETS_EXACT || l->nibble >= SCAN_BUCKETS_NIBBLE ||
	    (l->fold && !l->any_case))
		return err_set(err, ERR_FORMAT, "literal '%.80s' has no plan",
		    l->text);
	return 0;
}

static void
choose_level(struct scanner *s)
{
	s->level = scan_level_best();
	s->kernel = s->level == SCAN_VBMI ? scan_kernel_vbmi() :
	    s->level == SCAN_AVX2 ? scan_kernel_avx2() : NULL;
}

int
scan_new(const struct scan_literal *literals, size_t count,
    struct scanner **out, struct err *err)
{
	struct scanner *s = calloc(1, sizeof(*s));
	struct fragment *f;
	uint32_t at = 0;
	size_t i;

	if (s == NULL)
		return err_memory(err);
	s->literals = literals;
	s->entries = calloc(count + 1, sizeof(*s->entries));
	s->fragments = calloc(count + 1, sizeof(*s->fragments));
	if (s->entries == NULL || s->fragments == NULL) {
		err_memory(err);
		goto fail;
	}
	for (i = 0; i < count; i++)
		if (check_plan(&literals[i], err) == -1 ||
		    add_fragment(s, &literals[i], err) == -1)
			goto fail;
	/* Counted now; the entries of each lie in one piece. */
	for (i = 0; i < s->fragment_count; i++) {
		at += s->fragments[i].count;
		s->fragments[i].first = at;
	}
	for (i = count; i-- > 0;) {
		uint32_t v = scan_read_fragment(literals[i].text +
		    literals[i].offset) | SCAN_ANY_CASE;

		f = find_fragment(s, v, scan_hash(v), NULL);
		fill_entry(&s->entries[--f->first], &literals[i], (uint32_t)i);
	}
	choose_level(s);
	*out = s;
	return 0;
fail:
	scan_free(s);
	return -1;
}

void
scan_free(struct scanner *s)
{
	if (s == NULL)
		return;
	free(s->entries);
	free(s->fragments);
	free(s);
}

static const char *const level_names[] = { "scalar", "avx2", "vbmi" };

const char *
scan_level_name(enum scan_level level)
{
	return level_names[level];
}

enum scan_level
scan_level_best(void)
{
	enum scan_level best = scan_kernel_vbmi() != NULL ? SCAN_VBMI :
	    scan_kernel_avx2() != NULL ? SCAN_AVX2 : SCAN_SCALAR, l;
	const char *asked = getenv("HOLDFAST_SCAN");

	for (l = SCAN_SCALAR; asked != NULL && l < best; l++)
		if (strcmp(asked, level_names[l]) == 0)
			return l == SCAN_AVX2 && scan_kernel_avx2() == NULL ?
			    SCAN_SCALAR : l;
	return best;
}

enum scan_level
scan_level(const struct scanner *s)
{
	return s->level;
}

static bool
equal_fold(const char *text, const char *literal, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		char c = text[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c | 0x20);
		if (c != literal[i])
			return false;
	}
	return true;
}

static bool
stands(const struct scanner *s, const struct entry *e, const char *data,
    size_t len, size_t start)
{
	const struct scan_literal *l = &s->literals[e->literal];
	uint64_t word;

	if (len - start < e->len)
		return false;
	if (len - start >= 8 && !e->fold) {
		memcpy(&word, data + start, sizeof(word));
		if (((word ^ e->word) & first_bytes(e->len)) != 0)
			return false;
		if (e->len <= 8)
			return true;
	}
	return e->fold ? equal_fold(data + start, l->text, e->len) :
	    memcmp(data + start, l->text, e->len) == 0;
}

static bool
report(const struct scanner *s, const char *data, size_t len, size_t at,
    scan_hit_fn hit, void *arg)
{
	uint32_t v = scan_read_fragment(data + at) | SCAN_ANY_CASE, i;
	const struct fragment *f = find_fragment(s, v, scan_hash(v), NULL);

	if (f == NULL)
		return true;
	if ((at > 0 && !allows(f->before, data[at - 1])) ||
	    (at + SCAN_FRAGMENT < len &&
	    !allows(f->after, data[at + SCAN_FRAGMENT])))
		return true;
	for (i = f->first; i < f->first + f->count; i++) {
		const struct entry *e = &s->entries[i];

		if (at >= e->offset && stands(s, e, data, len, at - e->offset) &&
		    !hit(e->literal, at - e->offset, arg))
			return false;
	}
	return true;
}

size_t
scan_run(const struct scanner *s, const char *data, size_t len,
    scan_hit_fn hit, void *arg)
{
	struct scan_found f;
	size_t at = 0, i;

	f.newlines = 0;
	while (at < len) {
		f.count = 0;
		if (s->kernel != NULL)
			at = s->kernel(&s->masks, data, at, len, &f);
		if (f.count < SCAN_BATCH && len - at < 128)
			at = run_scalar(&s->masks, data, at, len, &f);
		else if (s->kernel == NULL)
			at = run_scalar(&s->masks, data, at, len, &f);
		for (i = 0; i < f.count; i++)
			if (!report(s, data, len, f.at[i], hit, arg))
				return f.newlines;
	}
	return f.newlines;
}
