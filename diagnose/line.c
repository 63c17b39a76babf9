/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.c - cuts lines, and pieces between carriage returns, out of a buffer.
 */
#include <ctype.h>
#include <string.h>

#include "diagnose/line.h"

#define BACK_MAX	65536	/* a longer line is cut there */

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

size_t
line_strip_ansi(const char *data, size_t len, char *out)
{
	size_t i, n = 0;

	for (i = 0; i < len; i++) {
		if (data[i] != '\033') {
			out[n++] = data[i];
			continue;
		}
		/* ECMA-48: CSI parameters end in a byte 0x40..0x7e; OSC in BEL. */
		if (i + 1 < len && data[i + 1] == '[') {
			for (i += 2; i < len && (data[i] < 0x40 ||
			    data[i] > 0x7e); i++)
				;
		} else if (i + 1 < len && data[i + 1] == ']') {
			for (i += 2; i < len && data[i] != '\a'; i++)
				;
		} else {
			i++;
		}
	}
	return n;
}

bool
line_piece(const char *data, size_t len, size_t at, size_t back,
    struct piece *out)
{
	size_t from = at > back ? at - back : 0, n = at - from;
	const char *nl, *cr, *end;

	nl = memrchr(data + from, '\n', n);
	if (nl != NULL) {
		n -= (size_t)(nl + 1 - (data + from));
		from = (size_t)(nl + 1 - data);
	}
	cr = memrchr(data + from, '\r', n);
	if (cr != NULL)
		from = (size_t)(cr + 1 - data);
	else if (nl == NULL && from > 0 && data[from - 1] != '\n' &&
	    data[from - 1] != '\r')
		return false;
	out->start = from;
	end = memchr(data + at, '\n', len - at);
	out->end = end ? (size_t)(end - data) : len;
	cr = memchr(data + at, '\r', out->end - at);
	if (cr != NULL)
		out->end = (size_t)(cr - data);
	return true;
}

bool
line_piece_before(const char *data, size_t start, struct piece *out)
{
	const char *nl, *cr;
	size_t end = start, from;

	if (start == 0)
		return false;
	end--;
	/* "\r\n" is one end. */
	if (end > 0 && data[end] == '\n' && data[end - 1] == '\r')
		end--;
	from = end > BACK_MAX ? end - BACK_MAX : 0;
	nl = memrchr(data + from, '\n', end - from);
	out->start = nl ? (size_t)(nl + 1 - data) : from;
	cr = memrchr(data + out->start, '\r', end - out->start);
	if (cr != NULL)
		out->start = (size_t)(cr + 1 - data);
	out->end = end;
	return true;
}
