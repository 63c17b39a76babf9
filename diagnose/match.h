/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match.h - one PCRE2 program: bytes, JIT, with limits so that no pattern and
 * no line can hang the engine.
 */
#ifndef HOLDFAST_DIAGNOSE_MATCH_H
#define HOLDFAST_DIAGNOSE_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

struct match;

/* At most this much of a line is looked at. */
#define MATCH_LINE_MAX	16384

enum match_result {
	MATCH_NO,
	MATCH_YES,
	MATCH_LIMIT	/* gave up: too much backtracking */
};

/* Compiles; ERR_FORMAT names the offset in the pattern. */
int	match_new(const char *pattern, struct match **out, struct err *err);
void	match_free(struct match *);
enum match_result match_run(struct match *, const char *text, size_t len);
/* What a rule means by a line: *text, which stands behind the prefixes, and where
 * that does not match the whole line, since a pattern with ^ means the text and
 * one that names a prefix needs the line.  *text and *len become what was tried
 * last. */
enum match_result match_run_line(struct match *, const char **text,
	    size_t *len, const char *whole, size_t whole_len);

/* True when the pattern, its guard left aside, can match a text only if it also
 * matches every longer text that ends with it: it does not refer to where the
 * text begins.  (Words may: what stands before is never a part of one.) */
bool	match_is_free(const struct match *);
/* As match_run() without the guard: NO is sure, YES is not. */
enum match_result match_probe(struct match *, const char *text, size_t len);

/* After MATCH_YES: where the match began and ended, and a named group (NULL when the
 * group is absent or did not take part).  Valid until the next match_run(). */
size_t	match_start(const struct match *);
size_t	match_end(const struct match *);
const char *match_group(const struct match *, const char *name, size_t *len);

#endif
