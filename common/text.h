/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - small text work shared by all: nearest word, durations, sizes,
 * clean UTF-8.
 */
#ifndef HOLDFAST_COMMON_TEXT_H
#define HOLDFAST_COMMON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

/* Edit distance (insert, delete, change, swap of neighbours), capped at 64
 * characters a word. */
size_t	text_distance(const char *a, const char *b);

/* Keeps the candidate nearest to a misspelt word; start with a zeroed one.
 * The result is NULL when nothing is near enough to be worth a suggestion. */
struct text_nearest {
	const char	*best;
	size_t		 distance;
};
void	text_nearest_try(struct text_nearest *, const char *word,
	    const char *candidate);

/* "90", "90s", "5m", "24h", "2d", "500ms" -> milliseconds.  -1 when malformed or
 * out of range. */
int	text_parse_duration(const char *text, int64_t *out_ms);
/* "4096", "64K", "16M", "2G", "1T" (powers of 1024, optional B or iB) -> bytes. */
int	text_parse_size(const char *text, int64_t *out_bytes);
/* A whole decimal number between least and most. */
int	text_parse_int(const char *text, int64_t least, int64_t most,
	    int64_t *out);

/* "4 min 10 s", "2 h 3 min", "850 ms" */
#define TEXT_SPAN_MAX	32
void	text_format_span(int64_t ms, char out[TEXT_SPAN_MAX]);
/* "18,250" */
void	text_format_count(int64_t n, char out[TEXT_SPAN_MAX]);

/* Appends the bytes with everything that is not UTF-8, and NUL, replaced by
 * U+FFFD.  0, or -1 when memory is short. */
int	text_utf8_clean(const char *data, size_t len, struct buf *out);

/* True for [A-Za-z0-9._-]{1,64} without a leading dot: names of runs, nodes. */
bool	text_is_name(const char *text);

#endif
