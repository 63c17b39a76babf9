/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c - nearest word, durations, sizes, clean UTF-8.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

#define WORD_MAX	64

static size_t
least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Optimal string alignment distance, three rows. */
size_t
text_distance(const char *a, const char *b)
{
	size_t row[3][WORD_MAX + 1], la = least(strlen(a), WORD_MAX);
	size_t lb = least(strlen(b), WORD_MAX), i, j;

	for (j = 0; j <= lb; j++)
		row[0][j] = j;
	for (i = 1; i <= la; i++) {
		size_t *cur = row[i % 3], *one = row[(i + 2) % 3];
		size_t *two = row[(i + 1) % 3];

		cur[0] = i;
		for (j = 1; j <= lb; j++) {
			cur[j] = least(least(one[j], cur[j - 1]) + 1,
			    one[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				cur[j] = least(cur[j], two[j - 2] + 1);
		}
	}
	return row[la % 3][lb];
}

void
text_nearest_try(struct text_nearest *n, const char *word,
    const char *candidate)
{
	size_t d = text_distance(word, candidate);
	size_t limit = strlen(word) / 3 + 1;

	/* A longer word that begins as typed is what was meant more often
	 * than not: "check" for "checkpoint-dir". */
	if (strlen(word) >= 3 && strncmp(word, candidate, strlen(word)) == 0)
		d = 1;
	if (d > limit || (n->best != NULL && d >= n->distance))
		return;
	n->best = candidate;
	n->distance = d;
}

struct unit {
	const char	*name;
	int64_t		 factor;
};

static int
parse_with_units(const char *text, const struct unit *units, int64_t *out)
{
	const struct unit *u;
	char *end;
	long long n;

	errno = 0;
	if (!isdigit((unsigned char)*text))
		return -1;
	n = strtoll(text, &end, 10);
	if (errno != 0)
		return -1;
	for (u = units; u->name != NULL; u++) {
		if (strcmp(end, u->name) != 0)
			continue;
		if (n > INT64_MAX / 2 / u->factor)
			return -1;
		*out = n * u->factor;
		return 0;
	}
	return -1;
}

int
text_parse_duration(const char *text, int64_t *out_ms)
{
	static const struct unit units[] = {
		{ "", 1000 }, { "ms", 1 }, { "s", 1000 }, { "m", 60000 },
		{ "min", 60000 }, { "h", 3600000 }, { "d", 86400000 },
		{ NULL, 0 }
	};

	return parse_with_units(text, units, out_ms);
}

int
text_parse_size(const char *text, int64_t *out_bytes)
{
	static const struct unit units[] = {
		{ "", 1 }, { "B", 1 }, { "K", 1LL << 10 }, { "KB", 1LL << 10 },
		{ "KiB", 1LL << 10 }, { "M", 1LL << 20 }, { "MB", 1LL << 20 },
		{ "MiB", 1LL << 20 }, { "G", 1LL << 30 }, { "GB", 1LL << 30 },
		{ "GiB", 1LL << 30 }, { "T", 1LL << 40 }, { "TB", 1LL << 40 },
		{ "TiB", 1LL << 40 }, { NULL, 0 }
	};

	return parse_with_units(text, units, out_bytes);
}

int
text_parse_int(const char *text, int64_t min, int64_t max, int64_t *out)
{
	long long n;
	char *end;

	if (!isdigit((unsigned char)*text) && *text != '-')
		return -1;
	errno = 0;
	n = strtoll(text, &end, 10);
	if (errno != 0 || *end != '\0' || end == text || n < min || n > max)
		return -1;
	*out = n;
	return 0;
}

void
text_format_span(int64_t ms, char out[TEXT_SPAN_MAX])
{
	long long s = ms / 1000;

	if (ms < 1000)
		snprintf(out, TEXT_SPAN_MAX, "%lld ms", (long long)ms);
	else if (s < 60)
		snprintf(out, TEXT_SPAN_MAX, "%lld s", s);
	else if (s < 3600)
		snprintf(out, TEXT_SPAN_MAX, "%lld min %lld s", s / 60, s % 60);
	else if (s < 172800)
		snprintf(out, TEXT_SPAN_MAX, "%lld h %lld min", s / 3600,
		    s % 3600 / 60);
	else
		snprintf(out, TEXT_SPAN_MAX, "%lld d %lld h", s / 86400,
		    s % 86400 / 3600);
}

void
text_format_count(int64_t n, char out[TEXT_SPAN_MAX])
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%lld", (long long)n);
	int i, o = 0;

	for (i = 0; i < len; i++) {
		out[o++] = digits[i];
		if (digits[i] != '-' && i + 1 < len && (len - i - 1) % 3 == 0)
			out[o++] = ',';
	}
	out[o] = '\0';
}

/* Length of the UTF-8 sequence at p (RFC 3629), 0 when it is none. */
static size_t
utf8_sequence(const unsigned char *p, size_t left)
{
	unsigned char c = p[0], lo = 0x80, hi = 0xbf;
	size_t n, i;

	if (c >= 0x01 && c <= 0x7f)
		return 1;
	if (c >= 0xc2 && c <= 0xdf) {
		n = 2;
	} else if (c >= 0xe0 && c <= 0xef) {
		n = 3;
		if (c == 0xe0)
			lo = 0xa0;
		if (c == 0xed)
			hi = 0x9f;
	} else if (c >= 0xf0 && c <= 0xf4) {
		n = 4;
		if (c == 0xf0)
			lo = 0x90;
		if (c == 0xf4)
			hi = 0x8f;
	} else {
		return 0;
	}
	if (left < n || p[1] < lo || p[1] > hi)
		return 0;
	for (i = 2; i < n; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return n;
}

int
text_utf8_clean(const char *data, size_t len, struct buf *out)
{
	const unsigned char *p = (const unsigned char *)data;
	size_t i = 0, start = 0, n;

	if (buf_reserve(out, len) == -1)
		return -1;
	while (i < len) {
		if ((n = utf8_sequence(p + i, len - i)) > 0) {
			i += n;
			continue;
		}
		if (buf_append(out, data + start, i - start) == -1 ||
		    buf_append(out, "\xef\xbf\xbd", 3) == -1)
			return -1;
		start = ++i;
	}
	return buf_append(out, data + start, len - start);
}

bool
text_is_name(const char *text)
{
	size_t n = strlen(text);

	if (n == 0 || n > 64 || text[0] == '.')
		return false;
	return strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "abcdefghijklmnopqrstuvwxyz0123456789._-") == n;
}
