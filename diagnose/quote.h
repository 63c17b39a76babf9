/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quote.h - foreign text made fit to be shown: cleaned, measured, cut, wrapped.
 *
 * Columns are those of a terminal, by wcwidth(3) of the locale in force; what it
 * does not know counts as one.
 */
#ifndef HOLDFAST_DIAGNOSE_QUOTE_H
#define HOLDFAST_DIAGNOSE_QUOTE_H

#include <stddef.h>

#include "common/buf.h"

/* What part of a text tells what it is about; an empty one: no part. */
struct quote_span {
	size_t	from;
	size_t	to;
};

/* Appends a line of a log as UTF-8 with nothing in it that a terminal obeys:
 * escape sequences and controls, marks that turn the direction of writing or have
 * no width.  Blanks at both ends are left out.  The span (NULL is fine) is moved
 * with its bytes and counts from the end of the buffer as it was.  0, or -1 when
 * memory is short. */
int	quote_clean(const char *data, size_t len, struct quote_span *,
	    struct buf *out);

/* Columns of valid UTF-8. */
size_t	quote_columns(const char *text, size_t len);

/* Bytes of the first row when text is wrapped at `columns`: up to a blank, or to
 * the last column when a word is longer than that.  0 for an empty text only. */
size_t	quote_row(const char *text, size_t len, size_t columns);

/* Appends clean text cut down to `columns`: the span stays, then as much as fits
 * of the end, of the beginning, and around the span; " ... " stands for the
 * rest. */
int	quote_cut(const char *text, size_t len, const struct quote_span *,
	    size_t columns, struct buf *out);

#endif
