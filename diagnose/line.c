/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.c - cuts lines, and pieces between carriage returns, out of a buffer.
 */
#include <string.h>

#include "diagnose/line.h"

#define BACK_MAX	65536	/* a longer line is cut there */

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
