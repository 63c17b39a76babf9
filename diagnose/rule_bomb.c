/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rule_bomb.c - finds patterns that backtrack without end.
 *
 * Writes, from the pattern, the text it wants to see, and for each part that may
 * repeat a line with that part many times and a wrong end: (a+)+b gets "aaaa...!".
 * What makes PCRE2 reach its limit on such a line will do so on some log.  Reads
 * the syntax of pcre2pattern(3) as far as a text can be made from it; what it does
 * not know stands for nothing.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/rule_bomb.h"

/* Enough for what grows with the square of the length; on longer lines PCRE2 may
 * give up on a harmless (ab)+ for its stack alone. */
#define LINE_LEN	2048
#define DEPTH_MAX	60	/* of groups */
#define COPIES_MAX	8	/* of x{9,} in the text itself */
#define MANY		16	/* x{0,16} counts as without end */

struct bomb {
	const char	*p;		/* what is left of the pattern */
	struct buf	 out;		/* what it wants to see so far */
	struct match	*match;
	struct buf	*text;
	bool		 exploded;
	int		 depth;
};

static void write_branches(struct bomb *);

/* The line: what leads to the part, the part until it is full, a wrong end. */
static void
light(struct bomb *b, size_t from)
{
	static const char tail[] = "\001 ~!";
	size_t len = b->out.len - from;
	const char *part = b->out.data + from;

	if (len == 0 || b->exploded)
		return;
	buf_clear(b->text);
	if (buf_append(b->text, b->out.data, from) == -1)
		return;
	while (b->text->len + len < LINE_LEN)
		if (buf_append(b->text, part, len) == -1)
			return;
	len = b->text->len;
	/* All characters once: PCRE2 gives up early on a line that lacks one the
	 * pattern ends with. */
	if (buf_append(b->text, tail, sizeof(tail) - 1) == -1)
		return;
	for (char c = 0x20; c < 0x7f; c++)
		if (buf_append(b->text, &c, 1) == -1)
			return;
	b->exploded = match_run(b->match, b->text->data, b->text->len) ==
	    MATCH_LIMIT;
	b->text->len = len;
}

/* A character of a class, which is itself a pattern. */
static void
write_class(struct bomb *b, const char *class, size_t len)
{
	static const char likely[] = "a0 x._-/:=";
	struct match *m = NULL;
	char *pattern = strndup(class, len);
	int i;

	if (pattern == NULL || match_new(pattern, &m, NULL) == -1)
		goto out;
	for (i = 0; i < (int)sizeof(likely) - 1 + 255; i++) {
		char c = i < (int)sizeof(likely) - 1 ? likely[i] :
		    (char)(i - (int)sizeof(likely) + 2);

		if (match_run(m, &c, 1) == MATCH_YES) {
			buf_append(&b->out, &c, 1);
			break;
		}
	}
out:
	match_free(m);
	free(pattern);
}

static void
read_class(struct bomb *b)
{
	const char *from = b->p++;

	b->p += *b->p == '^';
	b->p += *b->p == ']';
	while (*b->p != '\0' && *b->p != ']') {
		if (*b->p == '\\' && b->p[1] != '\0')
			b->p++;
		else if (b->p[0] == '[' && b->p[1] == ':' &&
		    strstr(b->p, ":]") != NULL)
			b->p = strstr(b->p, ":]") + 1;
		b->p++;
	}
	b->p += *b->p == ']';
	write_class(b, from, (size_t)(b->p - from));
}

static void
read_escape(struct bomb *b)
{
	char c = b->p[1], *end;
	long code;

	b->p += c == '\0' ? 1 : 2;
	if (c == 'x' && isxdigit((unsigned char)*b->p)) {
		char hex[3] = { b->p[0], isxdigit((unsigned char)b->p[1]) ?
		    b->p[1] : '\0', '\0' };

		code = strtol(hex, &end, 16);
		b->p += end - hex;
		c = (char)code;
		buf_append(&b->out, &c, 1);
	} else if (strchr("wSDNX", c) != NULL && c != '\0') {
		buf_puts(&b->out, "a");
	} else if (c == 'd') {
		buf_puts(&b->out, "0");
	} else if (c == 's' || c == 'h' || c == 'W') {
		buf_puts(&b->out, " ");
	} else if (c == 't') {
		buf_puts(&b->out, "\t");
	} else if (!isalnum((unsigned char)c) && c != '\0') {
		buf_append(&b->out, &c, 1);
	}
}

/* "(?:", "(?<name>", "(?i)" and the like are left behind.  True when the group
 * only looks ahead or back. */
static bool
read_group_head(struct bomb *b)
{
	bool looks = false;

	b->p++;
	if (*b->p == '*') {
		while (*b->p != '\0' && *b->p != ')')
			b->p++;
		return false;
	}
	if (*b->p != '?')
		return false;
	b->p++;
	if (*b->p == '=' || *b->p == '!' ||
	    (*b->p == '<' && (b->p[1] == '=' || b->p[1] == '!'))) {
		looks = true;
		b->p += *b->p == '<' ? 2 : 1;
	} else if (*b->p == '<' || *b->p == 'P' || *b->p == '\'') {
		char close = *b->p == '\'' ? '\'' : '>';

		for (b->p++; *b->p != '\0' && *b->p != close; b->p++)
			;
		b->p += *b->p != '\0';
	} else if (*b->p == '#') {
		while (*b->p != '\0' && *b->p != ')')
			b->p++;
	} else {
		while (isalpha((unsigned char)*b->p) || *b->p == '-' ||
		    *b->p == '^')
			b->p++;
		b->p += *b->p == ':' || *b->p == '>' || *b->p == '|';
	}
	return looks;
}

static void
read_atom(struct bomb *b)
{
	size_t from = b->out.len;
	bool looks;

	switch (*b->p) {
	case '(':
		looks = read_group_head(b);
		if (++b->depth < DEPTH_MAX)
			write_branches(b);
		b->depth--;
		b->p += *b->p == ')';
		if (looks)
			b->out.len = from;
		break;
	case '[':
		read_class(b);
		break;
	case '\\':
		read_escape(b);
		break;
	case '^':
	case '$':
		b->p++;
		break;
	case '.':
		buf_puts(&b->out, "a");
		b->p++;
		break;
	default:
		buf_append(&b->out, b->p++, 1);
	}
}

/* A quantifier; least and most, -1 for no end.  False when there is none. */
static bool
read_quantifier(struct bomb *b, long *least, long *most)
{
	char *end;

	*least = *b->p == '+';
	*most = *b->p == '?' ? 1 : -1;
	if (*b->p != '\0' && strchr("*+?", *b->p) != NULL) {
		b->p++;
		return true;
	}
	if (*b->p != '{' || !isdigit((unsigned char)b->p[1]))
		return false;
	*least = *most = strtol(b->p + 1, &end, 10);
	if (*end == ',')
		*most = end[1] == '}' ? -1 : strtol(end + 1, &end, 10);
	b->p = strchr(b->p, '}') ? strchr(b->p, '}') + 1 : end;
	return true;
}

static void
read_item(struct bomb *b)
{
	size_t from = b->out.len, len;
	long least, most, i;

	read_atom(b);
	while (read_quantifier(b, &least, &most)) {
		len = b->out.len - from;
		if (*b->p == '+')		/* gives nothing back */
			b->p++;
		else if (most == -1 || most >= MANY)
			light(b, from);
		b->p += *b->p == '?';
		for (i = 1; i < least && i < COPIES_MAX; i++)
			if (buf_reserve(&b->out, len) == 0)
				buf_append(&b->out, b->out.data + from, len);
	}
}

/* Each branch is tried, the first one is what the text goes on with. */
static void
write_branches(struct bomb *b)
{
	size_t from = b->out.len, n;
	char *first = NULL;

	for (;;) {
		while (*b->p != '\0' && *b->p != '|' && *b->p != ')' &&
		    !b->exploded)
			read_item(b);
		if (first == NULL && b->out.len > from)
			first = strndup(b->out.data + from, b->out.len - from);
		if (*b->p != '|' || b->exploded)
			break;
		b->p++;
		b->out.len = from;
	}
	n = first ? strlen(first) : 0;
	b->out.len = from;
	if (first != NULL)
		buf_append(&b->out, first, n);
	free(first);
}

bool
rule_bomb_explodes(struct match *m, const char *pattern, struct buf *text)
{
	struct bomb b = { .p = pattern, .match = m, .text = text };

	/* A stray ")" does not compile, so this ends at the end. */
	if (buf_reserve(&b.out, 1) == 0)
		write_branches(&b);
	/* The whole of it, again and again. */
	if (!b.exploded)
		light(&b, 0);
	buf_fini(&b.out);
	return b.exploded;
}
