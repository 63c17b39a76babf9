/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_text.c - tells text from other bytes, and UTF-16 from both.
 *
 * A hole of NULs is no sign of binary data: a crash of the node leaves one at
 * the end of a log, rotation by copy and truncate one at the beginning.
 */
#include <string.h>

#include "diagnose/feed_text.h"

#define SAMPLE		1024u
#define SAMPLE_MIN	16u	/* too few bytes to judge by */
#define CHUNK		8192u	/* UTF-16 converted at once, even */
#define RELEASE		((size_t)4 << 20)

enum feed_encoding
feed_text_encoding(const struct stream *s, size_t *mark)
{
	size_t i, n = s->len < SAMPLE ? s->len / 2 : SAMPLE / 2;
	size_t even = 0, odd = 0;

	*mark = 3;
	if (s->len >= 3 && memcmp(s->data, "\xef\xbb\xbf", 3) == 0)
		return FEED_BYTES;
	*mark = 2;
	/* UTF-32 has the mark of UTF-16 and a NUL behind it. */
	if (s->len >= 2 && memcmp(s->data, "\xff\xfe", 2) == 0 &&
	    (s->len < 4 || memcmp(s->data + 2, "\0", 2) != 0))
		return FEED_UTF16_LE;
	if (s->len >= 2 && memcmp(s->data, "\xfe\xff", 2) == 0)
		return FEED_UTF16_BE;
	*mark = 0;
	for (i = 0; i < n; i++) {
		even += s->data[2 * i] == '\0';
		odd += s->data[2 * i + 1] == '\0';
	}
	if (s->len < SAMPLE_MIN)
		return FEED_BYTES;
	if (even * 20 <= n && odd * 10 >= n * 9)
		return FEED_UTF16_LE;
	return odd * 20 <= n && even * 10 >= n * 9 ? FEED_UTF16_BE : FEED_BYTES;
}

static unsigned
unit_at(const char *p, enum feed_encoding e)
{
	unsigned a = (unsigned char)p[0], b = (unsigned char)p[1];

	return e == FEED_UTF16_LE ? a | b << 8 : a << 8 | b;
}

static size_t
put_utf8(char *out, unsigned c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

int
feed_text_convert(const struct stream *s, size_t from, enum feed_encoding e,
    struct feed_spool *spool, struct err *err)
{
	char out[CHUNK / 2 * 3 + 4];
	size_t n = 0, at = from;
	unsigned c, low;

	while (at < s->len) {
		c = 0xfffd;
		if (s->len - at >= 2)
			c = unit_at(s->data + at, e);
		at += 2;
		if (c >= 0xd800 && c < 0xdc00 && at < s->len - 1) {
			low = unit_at(s->data + at, e);
			if (low >= 0xdc00 && low < 0xe000) {
				c = 0x10000 + ((c - 0xd800) << 10) +
				    (low - 0xdc00);
				at += 2;
			}
		}
		if (c >= 0xd800 && c < 0xe000)
			c = 0xfffd;
		n += put_utf8(out + n, c);
		if (n > sizeof(out) - 4 || at >= s->len) {
			if (feed_spool_write(spool, out, n, err) == -1)
				return -1;
			n = 0;
			if (at > from + RELEASE) {
				stream_release(s, from, at);
				from = at;
			}
		}
	}
	return 0;
}

/* Bytes that no terminal or logger writes; one in twenty is too many.  Random
 * bytes have one in ten. */
static bool
is_binary(const char *p, size_t len)
{
	size_t i, odd = 0;

	for (i = 0; i < len; i++) {
		unsigned char c = (unsigned char)p[i];

		odd += c == 0x7f || (c < ' ' && strchr("\a\b\t\n\v\f\r\033",
		    c) == NULL) || c == '\0';
	}
	return odd * 20 > len;
}

bool
feed_text_is_binary(const struct stream *s)
{
	size_t n = s->len < 4 * SAMPLE ? s->len : 4 * SAMPLE;

	return n >= SAMPLE_MIN && is_binary(s->data, n) &&
	    is_binary(s->data + s->len - n, n);
}
