/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.c - cuts lines, and pieces between carriage returns, out of a buffer.
 */
#include <ctype.h>
#include <string.h>

#include "diagnose/line.h"

#define FAR_MAX		((size_t)65536)	/* a longer line is cut there */
#define BLOCK		((size_t)512)

bool
line_styles_learn(struct line_styles *st, const struct line *l)
{
	static const char mark[] = "Traceback (most recent call last)";
	size_t n = l->len < LINE_STYLE_LEN + sizeof(mark) ? l->len :
	    LINE_STYLE_LEN + sizeof(mark);
	const char *at = memmem(l->text, n, mark, sizeof(mark) - 1);
	size_t len = at ? (size_t)(at - l->text) : 0, i;

	if (len < 2 || len > LINE_STYLE_LEN || st->count == LINE_STYLES_MAX)
		return false;
	/* A word before it is text ("Original Traceback"), and so is a quote. */
	for (i = len; i > 0 && l->text[i - 1] == ' '; i--)
		;
	if (i == 0 || strchr(":|]>-)", l->text[i - 1]) == NULL ||
	    l->text[i - 1] == '\0' || memchr(l->text, '"', len) != NULL ||
	    memchr(l->text, '\'', len) != NULL)
		return false;
	for (i = 0; i < st->count; i++)
		if (st->list[i].len == len &&
		    memcmp(st->list[i].text, l->text, len) == 0)
			return false;
	st->list[st->count].len = len;
	memcpy(st->list[st->count++].text, l->text, len);
	return true;
}

/* Bytes of text that have the shape of a style; 0 when it has another one. */
static size_t
style_length(const char *style, size_t len, const char *text, size_t n)
{
	size_t i = 0, k = 0;

	while (i < len) {
		if (!isdigit((unsigned char)style[i])) {
			if (k == n || text[k++] != style[i++])
				return 0;
			continue;
		}
		if (k == n || !isdigit((unsigned char)text[k]))
			return 0;
		while (i < len && isdigit((unsigned char)style[i]))
			i++;
		while (k < n && isdigit((unsigned char)text[k]))
			k++;
	}
	return k;
}

void
line_styles_apply(const struct line_styles *st, struct line *l)
{
	size_t i, n;

	for (i = 0; i < st->count; i++) {
		n = style_length(st->list[i].text, st->list[i].len, l->text,
		    l->len);
		if (n == 0)
			continue;
		l->text += n;
		l->len -= n;
		return;
	}
}

/* Behind an escape sequence (ECMA-48), from its second byte on.  A string, such as
 * the title of a window, ends in ESC \\ or BEL; what has no end is the rest of a
 * line that another process went on with. */
static size_t
skip_escape(const char *data, size_t len, size_t i)
{
	size_t end;

	if (i == len || data[i] == '\033')
		return i;
	if (data[i] == '[') {
		for (i++; i < len && (data[i] < 0x40 || data[i] > 0x7e); i++)
			if (data[i] == '\033')
				return i;
	} else if (data[i] != '\0' && strchr("]PX^_", data[i]) != NULL) {
		for (end = i + 1; end < len && data[end] != '\a' &&
		    data[end] != '\033'; end++)
			;
		if (end < len && data[end] == '\a')
			i = end;
		else if (len - end >= 2 && data[end + 1] == '\\')
			i = end + 1;
	} else {
		while (i < len && data[i] >= 0x20 && data[i] < 0x30)
			i++;
	}
	return i < len ? i + 1 : i;
}

size_t
line_strip_ansi(const char *data, size_t len, char *out)
{
	size_t i = 0, n = 0;

	while (i < len)
		if (data[i] == '\033')
			i = skip_escape(data, len, i + 1);
		else
			out[n++] = data[i++];
	return n;
}

/* Line ends and carriage returns are looked for together, block by block: a log of
 * progress bars may have no line end at all. */
size_t
line_end(const char *data, size_t len, size_t at)
{
	size_t to = len - at > FAR_MAX ? at + FAR_MAX : len, n;
	const char *nl, *cr;

	for (; at < to; at += n) {
		n = to - at < BLOCK ? to - at : BLOCK;
		if ((nl = memchr(data + at, '\n', n)) != NULL)
			n = (size_t)(nl - (data + at));
		if ((cr = memchr(data + at, '\r', n)) != NULL)
			return (size_t)(cr - data);
		if (nl != NULL)
			return at + n;
	}
	return to;
}

/* Behind the last end in a range; its beginning when there is none. */
static size_t
behind_end(const char *data, size_t from, size_t at)
{
	const char *nl, *cr, *end;
	size_t n;

	for (; at > from; at -= n) {
		n = at - from < BLOCK ? at - from : BLOCK;
		nl = memrchr(data + at - n, '\n', n);
		end = nl != NULL ? nl + 1 : data + at - n;
		cr = memrchr(end, '\r', (size_t)(data + at - end));
		if (nl != NULL || cr != NULL)
			return (size_t)((cr != NULL ? cr : nl) + 1 - data);
	}
	return from;
}

bool
line_piece(const char *data, size_t len, size_t at, size_t back,
    struct piece *out)
{
	size_t from = at > back ? at - back : 0;

	out->start = behind_end(data, from, at);
	if (out->start > 0 && data[out->start - 1] != '\n' &&
	    data[out->start - 1] != '\r')
		return false;
	out->end = line_end(data, len, at);
	return true;
}

bool
line_piece_before(const char *data, size_t start, struct piece *out)
{
	size_t end = start;

	if (start == 0)
		return false;
	end--;
	/* "\r\n" is one end. */
	if (end > 0 && data[end] == '\n' && data[end - 1] == '\r')
		end--;
	out->start = behind_end(data, end > FAR_MAX ? end - FAR_MAX : 0, end);
	out->end = end;
	return true;
}
