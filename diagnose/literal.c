/* SPDX-License-Identifier: Apache-2.0 */
/*
 * literal.c - required literals of a PCRE2 pattern.
 *
 * Reads the pattern once, recursively, and knows of each part either all the
 * strings it can match ("exact", while they are few) or a set of strings one
 * of which any match contains ("best").  In a sequence exact parts multiply:
 * `lm loss: (nan|inf)` needs "lm loss: nan" or "lm loss: inf".  The idea is
 * that of R. Cox, "Regular Expression Matching with a Trigram Index" (2012).
 * What it does not know (recursion, conditions, \Q, (?x)) it refuses, so that
 * a literal is never wrong.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/literal.h"
#include "diagnose/literal_set.h"

#define DEPTH_MAX	40

/* What is known of a part.  exact: all it can match; best: required.  repeated: what
 * is exact may stand there more than once. */
struct part {
	struct set	*exact;
	struct set	*best;
	bool		 repeated;
};

struct parser {
	const char	*p;
	const struct scan_sample *sample;
	bool		 fold;
	bool		 ever_fold;
	int		 depth;
	const char	*why;		/* set when it gives up */
};

static struct part parse_alternatives(struct parser *);

static struct set *
better(const struct parser *ps, struct set *a, struct set *b)
{
	return set_better(a, b, ps->sample, ps->ever_fold);
}

static struct part
give_up(struct parser *ps, const char *why)
{
	if (ps->why == NULL)
		ps->why = why;
	return (struct part){ .exact = NULL };
}

static void
part_free(struct part p)
{
	set_free(p.exact);
	set_free(p.best);
}

static struct part
part_char(struct parser *ps, char c)
{
	if (c == '\0')
		return (struct part){ .exact = NULL };
	if (ps->fold)
		c = (char)tolower((unsigned char)c);
	return (struct part){ .exact = set_of(&c, 1) };
}

static struct part
part_empty(void)
{
	return (struct part){ .exact = set_of("", 0) };
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Behind a backslash, outside a class. */
static struct part
parse_escape(struct parser *ps)
{
	char c = *ps->p++;
	int hi, lo;

	switch (c) {
	case '\0':
		ps->p--;
		return give_up(ps, "ends in a backslash");
	case 'n':
		return part_char(ps, '\n');
	case 't':
		return part_char(ps, '\t');
	case 'r':
		return part_char(ps, '\r');
	case 'e':
		return part_char(ps, '\033');
	case 'x':
		hi = hex_digit(ps->p[0]);
		lo = hi < 0 ? -1 : hex_digit(ps->p[1]);
		if (lo < 0)
			return give_up(ps, "only \\xHH is understood");
		ps->p += 2;
		return part_char(ps, (char)(hi << 4 | lo));
	case 'b': case 'B': case 'A': case 'Z': case 'z': case 'G':
		return part_empty();
	case 'K':
		return part_empty();
	case 'd': case 'D': case 's': case 'S': case 'w': case 'W':
	case 'h': case 'H': case 'v': case 'V': case 'N': case 'R': case 'X':
		return (struct part){ .exact = NULL };
	default:
		if (isdigit((unsigned char)c)) {
			while (isdigit((unsigned char)*ps->p))
				ps->p++;
			return (struct part){ .exact = NULL };
		}
		if (isalpha((unsigned char)c))
			return give_up(ps, "has an escape that is not understood");
		return part_char(ps, c);
	}
}

/* One member of a class; -1 for a set such as \d. */
static int
class_member(struct parser *ps)
{
	char c = *ps->p++;
	int hi, lo;

	if (c != '\\')
		return (unsigned char)c;
	c = *ps->p;
	if (c == '\0')
		return -1;
	ps->p++;
	switch (c) {
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case 'r':
		return '\r';
	case 'x':
		hi = hex_digit(ps->p[0]);
		lo = hi < 0 ? -1 : hex_digit(ps->p[1]);
		if (lo < 0) {
			give_up(ps, "only \\xHH is understood");
			return -1;
		}
		ps->p += 2;
		return hi << 4 | lo;
	default:
		if (c == 'Q' || c == 'E')
			give_up(ps, "has \\Q or \\E");
		return isalnum((unsigned char)c) ? -1 : (unsigned char)c;
	}
}

/* Behind "[": a class is exact while it is small. */
static struct part
parse_class(struct parser *ps)
{
	struct set *s = set_new();
	bool first = true, wide = false;
	int lo, hi, c;
	char ch;

	if (*ps->p == '^') {
		wide = true;
		ps->p++;
	}
	for (; *ps->p != '\0' && (*ps->p != ']' || first); first = false) {
		if (ps->p[0] == '[' && ps->p[1] == ':') {
			const char *end = strstr(ps->p, ":]");

			if (end == NULL)
				break;
			ps->p = end + 2;
			wide = true;
			continue;
		}
		lo = hi = class_member(ps);
		if (lo >= 0 && ps->p[0] == '-' && ps->p[1] != ']' &&
		    ps->p[1] != '\0') {
			ps->p++;
			hi = class_member(ps);
		}
		if (lo < 0 || hi < lo || hi - lo > 8)
			wide = true;
		for (c = lo; !wide && s != NULL && c <= hi; c++) {
			ch = (char)(ps->fold ? tolower(c) : c);
			if (c == 0 || !set_add(s, &ch, 1) || s->count > 10)
				wide = true;
		}
	}
	if (*ps->p != ']') {
		set_free(s);
		return give_up(ps, "has a class without an end");
	}
	ps->p++;
	if (wide || s == NULL || s->count == 0) {
		set_free(s);
		s = NULL;
	}
	return (struct part){ .exact = s };
}

/* Skips a group whose text says nothing about required literals. */
static struct part
skip_group(struct parser *ps)
{
	bool fold = ps->fold;
	struct part p = parse_alternatives(ps);

	part_free(p);
	ps->fold = fold;
	if (*ps->p != ')')
		return give_up(ps, "has a group without an end");
	ps->p++;
	return part_empty();
}

/* Inline flags: "i)" to the end of the group, "i:...)" for a group.  True when
 * a group follows. */
static bool
parse_flags(struct parser *ps)
{
	bool on = true;

	for (;; ps->p++) {
		switch (*ps->p) {
		case '-':
			on = false;
			break;
		case 'i':
			ps->fold = on;
			if (on)
				ps->ever_fold = true;
			break;
		case 'm': case 's': case 'J': case 'U':
			break;
		case ')':
			return false;
		case ':':
			return true;
		default:
			give_up(ps, "has a flag that is not understood");
			return false;
		}
	}
}

/* Behind "(?": moves to the text of the group; *skip for what is no text. */
static bool
parse_group_kind(struct parser *ps, bool *skip)
{
	char end = '>';

	*skip = false;
	switch (*ps->p) {
	case ':': case '|': case '>':
		ps->p++;
		return true;
	case '=': case '!':
		ps->p++;
		*skip = true;
		return true;
	case 'P':
		if (ps->p[1] != '<')
			break;
		ps->p++;
		/* FALLTHROUGH */
	case '<':
		if (ps->p[1] == '=' || ps->p[1] == '!') {
			ps->p += 2;
			*skip = true;
			return true;
		}
		/* FALLTHROUGH */
	case '\'':
		if (*ps->p == '\'')
			end = '\'';
		for (ps->p++; *ps->p != end; ps->p++)
			if (*ps->p == '\0')
				return false;
		ps->p++;
		return true;
	default:
		break;
	}
	return false;
}

/* Behind "(". */
static struct part
parse_group(struct parser *ps)
{
	bool fold = ps->fold, skip = false;
	struct part p;

	if (*ps->p == '*')
		return give_up(ps, "has a verb");
	if (*ps->p == '?') {
		ps->p++;
		if (*ps->p == '#') {
			ps->p += strcspn(ps->p, ")");
			ps->p += *ps->p == ')';
			return part_empty();
		}
		if (strchr("imsJU-", *ps->p) != NULL && *ps->p != '\0') {
			if (!parse_flags(ps)) {
				if (*ps->p == ')')
					ps->p++;
				return part_empty();
			}
			ps->p++;
		} else if (!parse_group_kind(ps, &skip)) {
			return give_up(ps, "has a group that is not understood");
		}
	}
	if (skip)
		return skip_group(ps);
	p = parse_alternatives(ps);
	ps->fold = fold;
	if (*ps->p != ')') {
		part_free(p);
		return give_up(ps, "has a group without an end");
	}
	ps->p++;
	return p;
}

static struct part
parse_atom(struct parser *ps)
{
	char c = *ps->p++;

	switch (c) {
	case '(':
		return parse_group(ps);
	case '[':
		return parse_class(ps);
	case '\\':
		return parse_escape(ps);
	case '.':
		return (struct part){ .exact = NULL };
	case '^':
	case '$':
		return part_empty();
	case '*':
	case '+':
	case '?':
		return give_up(ps, "repeats nothing");
	default:
		return part_char(ps, c);
	}
}

/* "{m}", "{m,}", "{m,n}": true and moves on; a brace that is text: false. */
static bool
parse_braces(struct parser *ps, long *least, long *most)
{
	const char *p = ps->p + 1;
	char *end;

	/* PCRE2 10.43 gave "{,n}" and blanks a meaning they did not have. */
	if (*p == ',' || *p == ' ') {
		give_up(ps, "has a brace that is not understood");
		return false;
	}
	if (!isdigit((unsigned char)*p))
		return false;
	*least = *most = strtol(p, &end, 10);
	if (*end == ',') {
		p = end + 1;
		*most = -1;
		end = (char *)p;
		if (isdigit((unsigned char)*p))
			*most = strtol(p, &end, 10);
	}
	if (*end != '}') {
		give_up(ps, "has a brace that is not understood");
		return false;
	}
	ps->p = end + 1;
	return true;
}

static struct part
parse_repeat(struct parser *ps)
{
	struct part p = parse_atom(ps);
	long least = 1, most = 1;

	switch (*ps->p) {
	case '*':
		least = 0;
		most = -1;
		ps->p++;
		break;
	case '+':
		most = -1;
		ps->p++;
		break;
	case '?':
		least = 0;
		ps->p++;
		break;
	case '{':
		if (!parse_braces(ps, &least, &most))
			return p;
		break;
	default:
		return p;
	}
	if (*ps->p == '?' || *ps->p == '+')
		ps->p++;
	if (least == 1 && most == 1)
		return p;
	if (least == 0 && most == 1 && p.exact != NULL) {
		set_free(p.best);
		p.best = NULL;
		if (!set_add(p.exact, "", 0)) {
			set_free(p.exact);
			p.exact = NULL;
		}
		return p;
	}
	if (least == 0) {
		part_free(p);
		return (struct part){ .exact = NULL };
	}
	/* At least once: the first one stands behind what is before it, and the
	 * last one before what follows. */
	p.repeated = true;
	return p;
}

/* Adds a part behind what is known of a sequence so far. */
static void
sequence_add(const struct parser *ps, struct part *seq, struct set **run,
    struct part p)
{
	struct set *more = NULL;

	if (p.exact != NULL && *run != NULL) {
		more = set_product(*run, p.exact);
		if (more != NULL) {
			set_free(*run);
			*run = more;
			if (!p.repeated) {
				part_free(p);
				return;
			}
		}
		/* Too many, or repeated: keep what is there, begin anew with this
		 * part. */
		seq->best = better(ps, seq->best, *run);
		*run = p.exact;
		set_free(seq->exact);
		seq->exact = NULL;
		set_free(p.best);
		return;
	}
	/* An inexact part: prefix x its required strings would need them to be
	 * at its beginning, which is not known. */
	seq->best = better(ps, seq->best, *run);
	seq->best = better(ps, seq->best, p.best);
	set_free(p.exact);
	set_free(seq->exact);
	seq->exact = NULL;
	*run = set_of("", 0);
}

static struct part
parse_sequence(struct parser *ps)
{
	struct part seq = { .exact = set_of("", 0) };
	struct set *run = set_of("", 0);

	while (*ps->p != '\0' && *ps->p != '|' && *ps->p != ')' &&
	    ps->why == NULL)
		sequence_add(ps, &seq, &run, parse_repeat(ps));
	if (seq.exact != NULL) {
		set_free(seq.exact);
		seq.exact = run;
	} else {
		seq.best = better(ps, seq.best, run);
	}
	return seq;
}

/* What an alternative requires: its best set, or all it can match. */
static struct set *
part_required(const struct parser *ps, const struct part *p)
{
	if (p->best != NULL && set_quality(p->best, ps->sample, ps->ever_fold) >
	    set_quality(p->exact, ps->sample, ps->ever_fold))
		return p->best;
	return p->exact != NULL ? p->exact : p->best;
}

static struct part
parse_alternatives(struct parser *ps)
{
	struct part all = { .exact = set_new(), .best = set_new() }, p;
	bool fold = ps->fold, one = true;

	if (++ps->depth > DEPTH_MAX)
		give_up(ps, "is nested too deeply");
	for (;;) {
		ps->fold = fold;
		p = parse_sequence(ps);
		if (one && *ps->p != '|') {
			part_free(all);
			ps->depth--;
			return p;
		}
		one = false;
		all.best = set_union(all.best, part_required(ps, &p));
		all.exact = set_union(all.exact, p.exact);
		part_free(p);
		if (*ps->p != '|' || ps->why != NULL)
			break;
		ps->p++;
	}
	ps->depth--;
	return all;
}

int
literal_extract(const char *pattern, const struct scan_sample *sample,
    struct literal_set *out, struct err *err)
{
	struct parser ps = { .p = pattern, .sample = sample };
	struct part p = parse_alternatives(&ps);
	struct set *s = part_required(&ps, &p);
	int rc = -1;

	memset(out, 0, sizeof(*out));
	out->fold = ps.ever_fold;
	if (ps.why == NULL && *ps.p != '\0')
		ps.why = "has a ) too many";
	if (ps.why != NULL)
		err_set(err, ERR_FORMAT, "the pattern %s", ps.why);
	else if (set_quality(s, NULL, false) < 0)
		err_set(err, ERR_FORMAT, "no literal of %d bytes or more is in "
		    "every match", SCAN_LITERAL_MIN);
	else
		rc = set_export(s, out, err);
	part_free(p);
	if (rc == -1)
		literal_fini(out);
	return rc;
}

void
literal_fini(struct literal_set *l)
{
	size_t i;

	for (i = 0; i < l->count; i++)
		free(l->texts[i]);
	free(l->texts);
	memset(l, 0, sizeof(*l));
}
