/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err.c - fills struct err.  Decides nothing, reads errno, emits text.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/err.h"

/* Names of files and keys come from outside, the text goes to a terminal. */
static void
err_clean(struct err *err)
{
	char *p;

	for (p = err->text; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
}

static void err_fill(struct err *, enum err_code, int, const char *, va_list)
    __attribute__((format(printf, 4, 0)));

static void
err_fill(struct err *err, enum err_code code, int errnum, const char *fmt,
    va_list ap)
{
	size_t n;

	err->code = code;
	err->errnum = errnum;
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	err_clean(err);
	if (errnum == 0)
		return;
	n = strlen(err->text);
	snprintf(err->text + n, sizeof(err->text) - n, ": %s", strerror(errnum));
}

int
err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	if (err == NULL)
		return -1;
	va_start(ap, fmt);
	err_fill(err, code, 0, fmt, ap);
	va_end(ap);
	return -1;
}

int
err_errno(struct err *err, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	if (err == NULL)
		return -1;
	va_start(ap, fmt);
	err_fill(err, ERR_SYSTEM, saved, fmt, ap);
	va_end(ap);
	errno = saved;
	return -1;
}

int
err_prefix(struct err *err, const char *fmt, ...)
{
	char tail[sizeof(err->text)];
	size_t n;
	va_list ap;

	if (err == NULL)
		return -1;
	memcpy(tail, err->text, sizeof(tail));
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	err_clean(err);
	n = strlen(err->text);
	snprintf(err->text + n, sizeof(err->text) - n, ": %s", tail);
	return -1;
}

int
err_memory(struct err *err)
{
	return err_set(err, ERR_MEMORY, "out of memory");
}
