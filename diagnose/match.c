/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match.c - PCRE2 in non-UTF mode with JIT when there is one.
 *
 * Many rules begin with a guard, "no quote before the text": `^[^"]*?TEXT`, or
 * `^(?!...)[^"]*?TEXT`.  Matched as written it walks the line byte by byte.  It
 * says the same as: TEXT is somewhere, no byte of the class stands before its
 * first place, and the lookahead holds at the start of the line.  That is how it
 * is done here: only TEXT is searched for, with all of PCRE2's shortcuts.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/match.h"

/* pcre2api(3): counts of internal match() calls; a healthy rule needs a few
 * hundred on a line of 16 KiB. */
#define MATCH_LIMIT_STEPS	200000
#define MATCH_LIMIT_DEPTH	2000
#define MATCH_LIMIT_HEAP_KIB	4096

#define COMPILE_FLAGS	(PCRE2_NEVER_UTF | PCRE2_NEVER_BACKSLASH_C)

struct match {
	pcre2_code		*code;
	pcre2_match_data	*data;
	pcre2_match_context	*context;
	const char		*text;
	/* The guard: bytes that must not stand before the match, and a
	 * lookahead at the start; none when barred_count is 0. */
	char			 barred[16];
	size_t			 barred_count;
	pcre2_code		*ahead;
	bool			 free;		/* see match_is_free() */
};

/* The end of a group that begins at p, behind its closing parenthesis; NULL when
 * there is none. */
static const char *
group_end(const char *p)
{
	int depth = 0;
	bool class = false;

	for (; *p != '\0'; p++) {
		if (*p == '\\' && p[1] != '\0')
			p++;
		else if (class)
			class = *p != ']';
		else if (*p == '[')
			class = true;
		else if (*p == '(')
			depth++;
		else if (*p == ')' && --depth == 0)
			return p + 1;
	}
	return NULL;
}

/* True when p is a sequence: no | outside of its groups and classes. */
static bool
is_sequence(const char *p)
{
	while (*p != '\0') {
		if (*p == '|' || *p == ')')
			return false;
		if (*p == '\\' && p[1] != '\0') {
			p += 2;
		} else if (*p == '(') {
			if ((p = group_end(p)) == NULL)
				return false;
		} else if (*p == '[') {
			p += 1 + (p[1] == '^');
			for (p += *p == ']'; *p != ']'; p++)
				if (*p == '\0' || (*p == '\\' && *++p == '\0'))
					return false;
			p++;
		} else {
			p++;
		}
	}
	return true;
}

/* Takes a guard off the front of a pattern; what is no plain one stays.  The
 * class may hold no escape, range or "]". */
static const char *
take_guard(struct match *m, const char *pattern, char *ahead, size_t size)
{
	const char *p = pattern, *end;
	size_t n;

	ahead[0] = '\0';
	if (*p++ != '^' || strstr(pattern, "\\K") != NULL)
		return pattern;
	if (strncmp(p, "(?!", 3) == 0) {
		if ((end = group_end(p)) == NULL ||
		    (size_t)(end - pattern) >= size)
			return pattern;
		memcpy(ahead, pattern, (size_t)(end - pattern));
		ahead[end - pattern] = '\0';
		p = end;
	}
	if (strncmp(p, "[^", 2) != 0)
		return pattern;
	n = strcspn(p + 2, "]\\-[");
	if (n == 0 || n > sizeof(m->barred) || strncmp(p + 2 + n, "]*?", 3) != 0 ||
	    !is_sequence(p + 2 + n + 3))
		return pattern;
	memcpy(m->barred, p + 2, n);
	m->barred_count = n;
	return p + 2 + n + 3;
}

static bool
is_free(const char *p)
{
	for (; *p != '\0'; p++) {
		if (*p == '\\') {
			p++;
			if (*p == '\0' || strchr("AGKQE", *p) != NULL)
				return false;
		} else if (*p == '[' && p[1] == '^') {
			p++;
		} else if (*p == '^' || strncmp(p, "(?<=", 4) == 0 ||
		    strncmp(p, "(?<!", 4) == 0) {
			return false;
		}
	}
	return true;
}

static pcre2_code *
compile(const char *pattern, size_t skipped, struct err *err)
{
	PCRE2_UCHAR why[120];
	PCRE2_SIZE at;
	pcre2_code *p;
	int code;

	p = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
	    COMPILE_FLAGS, &code, &at, NULL);
	if (p == NULL) {
		pcre2_get_error_message(code, why, sizeof(why));
		err_set(err, ERR_FORMAT, "%s at offset %zu", why, at + skipped);
		return NULL;
	}
	/* Without JIT it is slower, not wrong. */
	(void)pcre2_jit_compile(p, PCRE2_JIT_COMPLETE);
	return p;
}

int
match_new(const char *pattern, struct match **out, struct err *err)
{
	struct match *m = calloc(1, sizeof(*m));
	const char *rest;
	char ahead[200];

	if (m == NULL)
		return err_memory(err);
	rest = take_guard(m, pattern, ahead, sizeof(ahead));
	m->free = is_free(rest);
	m->code = compile(rest, (size_t)(rest - pattern), err);
	if (m->code == NULL || (m->barred_count > 0 && ahead[0] != '\0' &&
	    (m->ahead = compile(ahead, 0, err)) == NULL)) {
		match_free(m);
		return -1;
	}
	m->data = pcre2_match_data_create_from_pattern(m->code, NULL);
	m->context = pcre2_match_context_create(NULL);
	if (m->data == NULL || m->context == NULL) {
		match_free(m);
		return err_memory(err);
	}
	pcre2_set_match_limit(m->context, MATCH_LIMIT_STEPS);
	pcre2_set_depth_limit(m->context, MATCH_LIMIT_DEPTH);
	pcre2_set_heap_limit(m->context, MATCH_LIMIT_HEAP_KIB);
	*out = m;
	return 0;
}

void
match_free(struct match *m)
{
	if (m == NULL)
		return;
	pcre2_match_context_free(m->context);
	pcre2_match_data_free(m->data);
	pcre2_code_free(m->code);
	pcre2_code_free(m->ahead);
	free(m);
}

/* The first place of the text has the shortest part before it: when that part
 * has a barred byte, so has that of every later place.  A line never holds a
 * newline, which the class would match. */
static enum match_result
check_guard(struct match *m, const char *text, size_t len)
{
	size_t i, before = match_start(m);
	pcre2_match_data *data;
	int rc;

	for (i = 0; i < m->barred_count; i++)
		if (memchr(text, m->barred[i], before) != NULL)
			return MATCH_NO;
	if (m->ahead == NULL)
		return MATCH_YES;
	if ((data = pcre2_match_data_create(1, NULL)) == NULL)
		return MATCH_LIMIT;
	rc = pcre2_match(m->ahead, (PCRE2_SPTR)text, len, 0, 0, data, m->context);
	pcre2_match_data_free(data);
	return rc >= 0 ? MATCH_YES : rc == PCRE2_ERROR_NOMATCH ? MATCH_NO :
	    MATCH_LIMIT;
}

enum match_result
match_probe(struct match *m, const char *text, size_t len)
{
	int rc;

	if (len > MATCH_LINE_MAX)
		len = MATCH_LINE_MAX;
	rc = pcre2_match(m->code, (PCRE2_SPTR)text, len, 0, 0, m->data,
	    m->context);
	return rc >= 0 ? MATCH_YES : rc == PCRE2_ERROR_NOMATCH ? MATCH_NO :
	    MATCH_LIMIT;
}

enum match_result
match_run(struct match *m, const char *text, size_t len)
{
	enum match_result got = match_probe(m, text, len);

	if (len > MATCH_LINE_MAX)
		len = MATCH_LINE_MAX;
	m->text = text;
	return got == MATCH_YES && m->barred_count > 0 ?
	    check_guard(m, text, len) : got;
}

enum match_result
match_run_line(struct match *m, const char **text, size_t *len,
    const char *whole, size_t whole_len)
{
	enum match_result got = match_run(m, *text, *len);

	if (got != MATCH_NO || *len == whole_len)
		return got;
	*text = whole;
	*len = whole_len;
	return match_run(m, whole, whole_len);
}

bool
match_is_free(const struct match *m)
{
	return m->free;
}

size_t
match_start(const struct match *m)
{
	return pcre2_get_ovector_pointer(m->data)[0];
}

size_t
match_end(const struct match *m)
{
	return pcre2_get_ovector_pointer(m->data)[1];
}

const char *
match_group(const struct match *m, const char *name, size_t *len)
{
	const PCRE2_SIZE *v = pcre2_get_ovector_pointer(m->data);
	int n = pcre2_substring_number_from_name(m->code, (PCRE2_SPTR)name);
	uint32_t count = pcre2_get_ovector_count(m->data);

	if (n <= 0 || (uint32_t)n >= count || v[2 * n] == PCRE2_UNSET)
		return NULL;
	*len = v[2 * n + 1] - v[2 * n];
	return m->text + v[2 * n];
}
