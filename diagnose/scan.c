/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - multi-literal search by rare four-byte fragments.
 *
 * Decides nothing about lines or rules: it reads raw bytes and reports where a
 * literal stands.  Each literal is represented by the four of its bytes that
 * are rarest in healthy logs.  A 64 Kbit bitmap of hashed fragments, small
 * enough for the first-level cache, is asked at each position; only where it
 * says yes the literals of that fragment are compared.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/scan.h"

#define FRAGMENT	4
#define HASH_BITS	16
#define HASH_SIZE	(1u << HASH_BITS)

struct entry {
	uint32_t	fragment;	/* as read from the buffer */
	uint32_t	literal;
	uint8_t		offset;		/* of the fragment in the literal */
	uint8_t		len;
	bool		fold;
};

struct scanner {
	const struct scan_literal *literals;
	uint64_t	 bits[HASH_SIZE / 64];
	uint16_t	 first[HASH_SIZE / 16 + 1];	/* by the upper hash bits */
	struct entry	*entries;
	size_t		 count, cap;
};

static uint32_t
read_fragment(const char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t
hash(uint32_t v)
{
	return (v * 0x9e3779b1u) >> (32 - HASH_BITS);
}

/* How common a byte is in healthy training logs, roughly: small is rare. */
static unsigned
byte_cost(unsigned char c)
{
	static const unsigned char letters[26] = {
		/* a b c d e f g h i j k l m n o p q r s t u v w x y z */
		8, 6, 6, 6, 8, 6, 6, 6, 8, 6, 6, 8, 6, 8, 8, 6, 6, 8, 8, 8, 6, 6, 6,
		6, 6, 6
	};

	if (c >= 'a' && c <= 'z')
		return letters[c - 'a'];
	if (c >= 'A' && c <= 'Z')
		return 3;
	if (c >= '0' && c <= '9')
		return 9;
	switch (c) {
	case ' ':
		return 12;
	case '.': case ':': case ',': case '=': case '-': case '_': case '/':
	case '[': case ']': case '(': case ')': case '|':
		return 6;
	default:
		return 2;
	}
}

static size_t
best_offset(const char *text, size_t len, bool fold)
{
	size_t i, k, best = 0;
	unsigned cost, least = ~0u;

	for (i = 0; i + FRAGMENT <= len; i++) {
		for (cost = 0, k = 0; k < FRAGMENT; k++) {
			unsigned c = byte_cost((unsigned char)text[i + k]);

			/* An any-case fragment is up to 16 fragments. */
			cost += c * c;
			if (fold && isalpha((unsigned char)text[i + k]))
				cost += 20;
		}
		if (cost < least) {
			least = cost;
			best = i;
		}
	}
	return best;
}

static int
add_entry(struct scanner *s, struct entry e, struct err *err)
{
	struct entry *p;

	if (s->count == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 256;
		p = realloc(s->entries, s->cap * sizeof(*p));
		if (p == NULL)
			return err_memory(err);
		s->entries = p;
	}
	s->entries[s->count++] = e;
	return 0;
}

/* One entry, or one per spelling of the fragment's letters. */
static int
add_literal(struct scanner *s, uint32_t index, struct err *err)
{
	const struct scan_literal *l = &s->literals[index];
	struct entry e = { .literal = index, .fold = l->fold };
	size_t len = strlen(l->text);
	unsigned spelling, k;
	char f[FRAGMENT];

	if (len < SCAN_LITERAL_MIN || len > SCAN_LITERAL_MAX)
		return err_set(err, ERR_LIMIT,
		    "literal '%.80s' is not %d to %d bytes long", l->text,
		    SCAN_LITERAL_MIN, SCAN_LITERAL_MAX);
	e.len = (uint8_t)len;
	e.offset = (uint8_t)best_offset(l->text, len, l->fold);
	for (spelling = 0; spelling < 1u << FRAGMENT; spelling++) {
		for (k = 0; k < FRAGMENT; k++) {
			f[k] = l->text[e.offset + k];
			if (!(spelling >> k & 1))
				continue;
			if (!l->fold || !islower((unsigned char)f[k]))
				break;
			f[k] = (char)toupper((unsigned char)f[k]);
		}
		if (k < FRAGMENT)
			continue;
		e.fragment = read_fragment(f);
		if (add_entry(s, e, err) == -1)
			return -1;
	}
	return 0;
}

static int
compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	uint32_t hx = hash(x->fragment), hy = hash(y->fragment);

	if (hx != hy)
		return hx < hy ? -1 : 1;
	return x->literal < y->literal ? -1 : x->literal > y->literal;
}

int
scan_new(const struct scan_literal *literals, size_t count,
    struct scanner **out, struct err *err)
{
	struct scanner *s = calloc(1, sizeof(*s));
	size_t i, b;

	if (s == NULL)
		return err_memory(err);
	s->literals = literals;
	for (i = 0; i < count; i++)
		if (add_literal(s, (uint32_t)i, err) == -1)
			goto fail;
	if (s->count > UINT16_MAX) {
		err_set(err, ERR_LIMIT, "too many literals");
		goto fail;
	}
	if (s->count > 0)
		qsort(s->entries, s->count, sizeof(*s->entries), compare);
	for (i = 0, b = 0; b <= HASH_SIZE / 16; b++) {
		while (i < s->count &&
		    hash(s->entries[i].fragment) / 16 < b)
			i++;
		s->first[b] = (uint16_t)i;
	}
	for (i = 0; i < s->count; i++) {
		uint32_t h = hash(s->entries[i].fragment);

		s->bits[h / 64] |= 1ull << (h % 64);
	}
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
	free(s);
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
report(const struct scanner *s, const char *data, size_t len, size_t pos,
    uint32_t h, scan_hit_fn hit, void *arg)
{
	uint32_t v = read_fragment(data + pos);
	size_t i;

	for (i = s->first[h / 16]; i < s->first[h / 16 + 1]; i++) {
		const struct entry *e = &s->entries[i];
		const char *text = s->literals[e->literal].text;
		size_t start = pos - e->offset;

		if (e->fragment != v || pos < e->offset || len - start < e->len)
			continue;
		if (e->fold ? !equal_fold(data + start, text, e->len) :
		    memcmp(data + start, text, e->len) != 0)
			continue;
		if (!hit(e->literal, start, arg))
			return false;
	}
	return true;
}

void
scan_run(const struct scanner *s, const char *data, size_t len,
    scan_hit_fn hit, void *arg)
{
	size_t pos;
	uint32_t h;

	if (s->count == 0 || len < FRAGMENT)
		return;
	for (pos = 0; pos + FRAGMENT <= len; pos++) {
		h = hash(read_fragment(data + pos));
		if (!(s->bits[h / 64] >> (h % 64) & 1))
			continue;
		if (!report(s, data, len, pos, h, hit, arg))
			return;
	}
}
