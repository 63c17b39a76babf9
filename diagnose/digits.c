/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digits.c - reads a pattern for places where digits make a difference: a digit
 * as text, a class with some digits but not all, a reference to a group.
 */
#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "diagnose/digits.h"

/* Behind the backslash of an escape: its end, or NULL when digits matter. */
static const char *
skip_escape(const char *p)
{
	/* \x30 to \x39 are digits; other forms of \x are not looked at. */
	if (*p == 'x')
		return isxdigit((unsigned char)p[1]) && p[1] != '3' &&
		    isxdigit((unsigned char)p[2]) ? p + 3 : NULL;
	/* \1, \g and \k refer to a group, \o and \c name a character. */
	if (*p == '\0' || isdigit((unsigned char)*p) ||
	    strchr("ogkcpPQEX", *p) != NULL)
		return NULL;
	return p + 1;
}

/* One end of a range, or a single member; -1 for a set of its own. */
static int
member(const char **p)
{
	int c = (unsigned char)*(*p)++;

	if (c != '\\')
		return c;
	c = (unsigned char)**p;
	*p = skip_escape(*p);
	return isalnum(c) ? -1 : c;
}

/* Behind "[": its end, or NULL when the class has some digits but not all. */
static const char *
skip_class(const char *p)
{
	unsigned digits = 0;
	bool first = true;
	int lo, hi, c;

	if (*p == '^')
		p++;
	for (; *p != '\0' && (*p != ']' || first); first = false) {
		if (p[0] == '[' && p[1] == ':') {
			/* [:digit:], [:alnum:] ...: all digits or none. */
			if ((p = strstr(p, ":]")) == NULL)
				return NULL;
			p += 2;
			continue;
		}
		if (p[0] == '\\' && skip_escape(p + 1) == NULL)
			return NULL;
		lo = hi = member(&p);
		if (lo >= 0 && p[0] == '-' && p[1] != ']' && p[1] != '\0') {
			p++;
			hi = member(&p);
			if (hi < lo)
				return NULL;
		}
		for (c = '0'; c <= '9' && lo >= 0; c++)
			if (c >= lo && c <= hi)
				digits |= 1u << (c - '0');
	}
	if (*p != ']' || (digits != 0 && digits != 0x3ff))
		return NULL;
	return p + 1;
}

/* Behind "(": the text of the group. */
static const char *
skip_group_head(const char *p)
{
	char end = '>';

	if (p[0] != '?')
		return *p == '*' ? NULL : p;
	p++;
	if (*p == 'P')
		p++;
	if (*p == '<' && (p[1] == '=' || p[1] == '!'))
		return p + 2;
	if (*p == '<' || *p == '\'') {
		if (*p == '\'')
			end = '\'';
		if ((p = strchr(p + 1, end)) == NULL)
			return NULL;
		return p + 1;
	}
	/* (?1), (?(1)...), (?R) refer; flags and lookaheads do not. */
	return isdigit((unsigned char)*p) || strchr("(R&+-C", *p) != NULL ?
	    NULL : p;
}

/* "{2,5}": its end; NULL when it is text. */
static const char *
skip_count(const char *p)
{
	size_t n = strspn(p, "0123456789,");

	return n > 0 && p[n] == '}' ? p + n + 1 : NULL;
}

bool
digits_are_alike(const char *p)
{
	const char *end;

	while (p != NULL && *p != '\0') {
		char c = *p++;

		if (isdigit((unsigned char)c))
			return false;
		if (c == '\\')
			p = skip_escape(p);
		else if (c == '[')
			p = skip_class(p);
		else if (c == '(')
			p = skip_group_head(p);
		else if (c == '{' && (end = skip_count(p)) != NULL)
			p = end;
	}
	return p != NULL;
}
