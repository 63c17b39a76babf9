/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.c - growing byte buffer, doubled on demand, always NUL-terminated.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"

int
buf_reserve(struct buf *b, size_t more)
{
	size_t want, cap;
	char *p;

	if (more > SIZE_MAX / 2 - b->len - 1)
		return -1;
	want = b->len + more + 1;
	if (want <= b->cap)
		return 0;
	cap = b->cap ? b->cap : 64;
	while (cap < want)
		cap *= 2;
	if ((p = realloc(b->data, cap)) == NULL)
		return -1;
	b->data = p;
	b->cap = cap;
	b->data[b->len] = '\0';
	return 0;
}

int
buf_append(struct buf *b, const void *data, size_t len)
{
	if (buf_reserve(b, len) == -1)
		return -1;
	if (len > 0)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
	return 0;
}

int
buf_puts(struct buf *b, const char *text)
{
	return buf_append(b, text, strlen(text));
}

int
buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0 || buf_reserve(b, (size_t)n) == -1)
		return -1;
	vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	b->len += (size_t)n;
	return 0;
}

int
buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = buf_vprintf(b, fmt, ap);
	va_end(ap);
	return rc;
}

void
buf_consume(struct buf *b, size_t n)
{
	if (n == 0)
		return;
	if (n >= b->len) {
		buf_clear(b);
		return;
	}
	memmove(b->data, b->data + n, b->len - n + 1);
	b->len -= n;
}

void
buf_clear(struct buf *b)
{
	b->len = 0;
	if (b->data != NULL)
		b->data[0] = '\0';
}

char *
buf_steal(struct buf *b)
{
	char *p;

	if (b->data == NULL && buf_reserve(b, 0) == -1)
		return NULL;
	p = b->data;
	*b = (struct buf){0};
	return p;
}

void
buf_fini(struct buf *b)
{
	free(b->data);
	*b = (struct buf){0};
}
