/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template.c - a small table of lines and what they came to.
 *
 * A line's key is its text; where all rules that may match it treat digits alike
 * (digits.h), each digit counts as 0.  The whole key is compared, so nothing is
 * taken for something else.  Lines whose rules depend on earlier lines
 * (`after:`) are not kept, and a prefix learnt meanwhile makes all of it void.
 */
#include <stdlib.h>
#include <string.h>

#include "diagnose/collector.h"

#define ENTRIES		256
#define TEXT_MAX	480

struct template {
	uint64_t	 hash;
	uint16_t	 len;		/* 0 empty */
	bool		 folded;
	uint64_t	 prefixes;	/* learnt when it was made */
	struct outcome	 outcome;
};

/* Texts lie apart: most lines of a healthy log find an empty entry, and memory that
 * nobody touched is not there. */
struct templates {
	struct template	 list[ENTRIES];
	char		 texts[ENTRIES][TEXT_MAX];
	bool		 folded;	/* of the key in `text` */
	uint64_t	 hash;
	size_t		 loud;		/* hits of the line before quiet ones */
	char		 text[TEXT_MAX + 16];
};

struct templates *
templates_new(void)
{
	return calloc(1, sizeof(struct templates));
}

void
templates_free(struct templates *t)
{
	free(t);
}

/* In steps of a fixed size, which compilers turn into vector code. */
static void
fold_digits(const char *in, size_t len, char *out)
{
	size_t i, k;

	for (i = 0; i + 16 <= len; i += 16)
		for (k = 0; k < 16; k++) {
			unsigned char c = (unsigned char)in[i + k];

			out[i + k] = (unsigned char)(c - '0') < 10 ? '0' : (char)c;
		}
	for (; i < len; i++)
		out[i] = in[i] >= '0' && in[i] <= '9' ? '0' : in[i];
}

static uint64_t
hash_text(const char *text, size_t len)
{
	uint64_t h = len * 0x9e3779b97f4a7c15ull, w;
	size_t i;

	for (i = 0; i + 8 <= len; i += 8) {
		memcpy(&w, text + i, 8);
		h = (h ^ w) * 0xbf58476d1ce4e5b9ull;
		h ^= h >> 29;
	}
	for (w = 0; i < len; i++)
		w = w << 8 | (unsigned char)text[i];
	h = (h ^ w) * 0x94d049bb133111ebull;
	return h ^ h >> 32;
}

/* Whether the hits from one on depend on their own line only; *alike stays when
 * they all treat digits alike. */
static bool
lone_line(const struct collector *c, size_t from, bool *alike)
{
	size_t i;

	for (i = from; i < c->hit_count; i++) {
		const struct rule_def *d = &c->set->rules[c->hits[i].rule].def;

		if (d->after != NULL)
			return false;
		*alike &= d->blind;
	}
	return true;
}

static bool
make_key(struct collector *c, const char *data, size_t len)
{
	struct templates *t = c->templates;
	bool alike = true;

	t->loud = c->hit_count;
	if (len == 0 || len > TEXT_MAX || !lone_line(c, 0, &alike))
		return false;
	t->folded = alike;
	if (alike)
		fold_digits(data, len, t->text);
	else
		memcpy(t->text, data, len);
	t->hash = hash_text(t->text, len);
	return true;
}

struct quiet_check {
	const struct rule_set *set;
	bool		 alike;
};

static bool
on_quiet(uint32_t literal, size_t start, void *arg)
{
	struct quiet_check *q = arg;
	uint32_t rule = q->set->literal_rule[rule_set_quiet_base(q->set) +
	    literal];

	(void)start;
	q->alike = q->set->rules[rule].def.blind;
	return q->alike;
}

/* A quiet rule that tells digits apart may know this very line. */
static bool
quiet_may_differ(struct rule_set *set, const char *data, size_t len)
{
	const struct scanner *s = rule_set_scanner(set, SCANNER_QUIET);
	struct quiet_check q = { set, true };

	if (s != NULL)
		(void)scan_run(s, data, len, on_quiet, &q);
	return !q.alike;
}

bool
templates_find(struct collector *c, const char *data, size_t len,
    struct outcome *out)
{
	struct templates *t = c->templates;
	const struct template *p;
	size_t i;

	if (!make_key(c, data, len)) {
		t->hash = 0;
		return false;
	}
	i = t->hash % ENTRIES;
	p = &t->list[i];
	if (p->len != len || p->hash != t->hash || p->folded != t->folded ||
	    p->prefixes != c->prefixes ||
	    memcmp(t->texts[i], t->text, len) != 0)
		return false;
	if (p->outcome.rule != NULL && t->folded &&
	    quiet_may_differ(c->set, data, len))
		return false;
	*out = p->outcome;
	return true;
}

void
templates_add(struct collector *c, size_t len, const struct outcome *outcome)
{
	struct templates *t = c->templates;
	bool alike = true;
	struct template *p;
	size_t i;

	if (t->hash == 0 || outcome->mark_count > OUTCOME_MARKS ||
	    c->gave_up || !lone_line(c, t->loud, &alike) ||
	    (t->folded && !alike))
		return;
	i = t->hash % ENTRIES;
	p = &t->list[i];
	p->hash = t->hash;
	p->len = (uint16_t)len;
	p->folded = t->folded;
	p->prefixes = c->prefixes;
	p->outcome = *outcome;
	memcpy(t->texts[i], t->text, len);
}
