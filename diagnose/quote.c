/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quote.c - what of a foreign line a person gets to see.
 *
 * Reads bytes of logs; emits UTF-8 that is harmless on a terminal, in the room
 * there is, with the part that tells most.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "common/text.h"
#include "diagnose/line.h"
#include "diagnose/quote.h"

#define GAP		" ... "
#define GAP_COLUMNS	5
#define AROUND		12	/* columns kept at each side of the span */
#define PART_MIN	8	/* a shorter part says nothing */

/* One character of valid UTF-8: its bytes and its code point. */
static size_t
next_char(const char *text, size_t len, uint32_t *code)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4, i;

	if (n > len)
		n = len;
	*code = n == 1 ? p[0] : p[0] & (0x7fu >> n);
	for (i = 1; i < n; i++)
		*code = *code << 6 | (p[i] & 0x3f);
	return n;
}

/* C0 and C1 controls, DEL, marks of direction, spaces without width, line and
 * paragraph separators. */
static bool
is_unwanted(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c ||
	    (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	    (c >= 0x2060 && c <= 0x2069) || c == 0xfeff ||
	    (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

static int
append_wanted(const char *text, size_t len, struct buf *out)
{
	size_t i, n;
	uint32_t c;

	if (buf_reserve(out, len) == -1)
		return -1;
	for (i = 0; i < len; i += n) {
		n = next_char(text + i, len - i, &c);
		if (c == '\t' ? buf_puts(out, " ") == -1 :
		    !is_unwanted(c) && buf_append(out, text + i, n) == -1)
			return -1;
	}
	return 0;
}

static int
append_part(const char *data, size_t len, struct buf *out)
{
	struct buf utf8 = {0};
	char *plain = malloc(len + 1);
	int rc = -1;

	if (plain != NULL && text_utf8_clean(plain,
	    line_strip_ansi(data, len, plain), &utf8) == 0)
		rc = append_wanted(utf8.data, utf8.len, out);
	free(plain);
	buf_fini(&utf8);
	return rc;
}

int
quote_clean(const char *data, size_t len, struct quote_span *span,
    struct buf *out)
{
	size_t from = span != NULL && span->from <= len ? span->from : 0;
	size_t to = span != NULL && span->to <= len ? span->to : from;
	size_t begin = out->len, at, end;

	if (append_part(data, from, out) == -1)
		return -1;
	at = out->len;
	if (append_part(data + from, to - from, out) == -1)
		return -1;
	end = out->len;
	if (append_part(data + to, len - to, out) == -1)
		return -1;
	while (out->len > begin && out->data[out->len - 1] == ' ')
		out->data[--out->len] = '\0';
	for (from = begin; from < out->len && out->data[from] == ' '; from++)
		;
	memmove(out->data + begin, out->data + from, out->len - from + 1);
	out->len -= from - begin;
	if (span == NULL)
		return 0;
	span->from = at > from ? at - from : 0;
	span->to = end > from ? end - from : 0;
	if (span->to > out->len - begin)
		span->to = out->len - begin;
	if (span->from > span->to)
		span->from = span->to;
	return 0;
}

static size_t
width(uint32_t c)
{
	int n = c < 0x7f ? 1 : wcwidth((wchar_t)c);

	return n < 0 ? 1 : (size_t)n;
}

size_t
quote_columns(const char *text, size_t len)
{
	size_t i, columns = 0;
	uint32_t c;

	for (i = 0; i < len; ) {
		i += next_char(text + i, len - i, &c);
		columns += width(c);
	}
	return columns;
}

/* Bytes of the longest beginning that has at most so many columns. */
static size_t
head(const char *text, size_t len, size_t columns)
{
	size_t i, n, used = 0;
	uint32_t c;

	for (i = 0; i < len; i += n) {
		n = next_char(text + i, len - i, &c);
		if (used + width(c) > columns)
			break;
		used += width(c);
	}
	return i;
}

/* ... and where the longest end begins that has. */
static size_t
tail(const char *text, size_t len, size_t columns)
{
	size_t all = quote_columns(text, len), at;

	if (all <= columns)
		return 0;
	at = head(text, len, all - columns);
	/* A wide character may stick out. */
	while (at < len && quote_columns(text + at, len - at) > columns) {
		uint32_t c;

		at += next_char(text + at, len - at, &c);
	}
	return at;
}

size_t
quote_row(const char *text, size_t len, size_t columns)
{
	size_t most = head(text, len, columns > 0 ? columns : 1), at;
	uint32_t c;

	if (most == len)
		return len;
	if (most == 0)
		return next_char(text, len, &c);	/* wider than the row */
	for (at = most; at > 0 && text[at] != ' '; at--)
		;
	for (; at > 0 && text[at - 1] == ' '; at--)
		;
	return at > 0 ? at : most;
}

/* Ends a part at a word where that costs little. */
static size_t
back_to_blank(const char *text, size_t to, size_t least)
{
	size_t at;

	for (at = to; at > least && to - at < AROUND; at--)
		if (text[at - 1] == ' ')
			return at - 1;
	return to;
}

static size_t
on_to_blank(const char *text, size_t from, size_t most)
{
	size_t at;

	for (at = from; at < most && at - from < AROUND; at++)
		if (text[at] == ' ')
			return at + 1;
	return from;
}

/* Without a part that must stay, or with one that is too long itself: the
 * beginning and the end. */
static int
cut_middle(const char *text, size_t len, size_t columns, struct buf *out)
{
	size_t room = columns > GAP_COLUMNS ? columns - GAP_COLUMNS : 0, a, b;

	a = back_to_blank(text, head(text, len, room / 2), 0);
	b = on_to_blank(text, tail(text, len, room - room / 2), len);
	return buf_append(out, text, a) == -1 || buf_puts(out, GAP) == -1 ||
	    buf_append(out, text + b, len - b) == -1 ? -1 : 0;
}

static size_t
least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* The ends that stay besides [s->from, s->to): *a is where the first one ends, *b
 * where the last one begins.  Messages say why at their end and who at their
 * beginning; why comes first. */
static void
share(const char *text, size_t len, const struct quote_span *s, size_t room,
    size_t *a, size_t *b)
{
	size_t before = quote_columns(text, s->from);
	size_t after = quote_columns(text + s->to, len - s->to);
	size_t last = least(after, room * 2 / 3);
	size_t first = least(before, room - last);

	last = least(after, room - first);
	*a = head(text, s->from, first);
	*b = s->to + tail(text + s->to, len - s->to, last);
	if (*a < s->from)
		*a = first < PART_MIN ? 0 : back_to_blank(text, *a, 0);
	if (*b > s->to)
		*b = last < PART_MIN ? len : on_to_blank(text, *b, len);
}

static int
put_gap(const char *text, size_t from, size_t to, size_t len, struct buf *out)
{
	if (quote_columns(text + from, to - from) <= GAP_COLUMNS)
		return buf_append(out, text + from, to - from);
	return buf_puts(out, from == 0 ? &GAP[1] : to == len ? " ..." : GAP);
}

int
quote_cut(const char *text, size_t len, const struct quote_span *span,
    size_t columns, struct buf *out)
{
	struct quote_span s;
	size_t room, side, a, b;

	if (quote_columns(text, len) <= columns)
		return buf_append(out, text, len);
	if (span == NULL || span->from >= span->to || span->to > len ||
	    columns < 2 * GAP_COLUMNS + PART_MIN)
		return cut_middle(text, len, columns, out);
	s = *span;
	while (s.to > s.from && text[s.to - 1] == ' ')
		s.to--;
	while (s.from < s.to && text[s.from] == ' ')
		s.from++;
	room = columns - 2 * GAP_COLUMNS;
	if (quote_columns(text + s.from, s.to - s.from) > room)
		return cut_middle(text + s.from, s.to - s.from, columns, out);
	room -= quote_columns(text + s.from, s.to - s.from);
	side = least(room / 2, AROUND);
	a = s.from - tail(text, s.from, side);
	if (a < s.from)
		a = s.from - on_to_blank(text, s.from - a, s.from);
	b = s.to + head(text + s.to, len - s.to, side);
	b = (b < len ? back_to_blank(text, b, s.to) : b) - s.to;
	room -= quote_columns(text + s.from - a, a) +
	    quote_columns(text + s.to, b);
	s.from -= a;
	s.to += b;
	share(text, len, &s, room, &a, &b);
	if (buf_append(out, text, a) == -1 ||
	    put_gap(text, a, s.from, len, out) == -1 ||
	    buf_append(out, text + s.from, s.to - s.from) == -1 ||
	    put_gap(text, s.to, b, len, out) == -1)
		return -1;
	return buf_append(out, text + b, len - b);
}
