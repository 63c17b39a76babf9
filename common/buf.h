/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.h - a growing byte buffer.
 *
 * A zeroed struct is an empty buffer.  `data` is NUL-terminated behind `len`
 * whenever it is not NULL, so text can be used as a string.
 */
#ifndef HOLDFAST_COMMON_BUF_H
#define HOLDFAST_COMMON_BUF_H

#include <stdarg.h>
#include <stddef.h>

struct buf {
	char	*data;
	size_t	 len;
	size_t	 cap;
};

/* All return 0, or -1 when memory is short (the buffer keeps what it had). */
int	buf_reserve(struct buf *, size_t more);
int	buf_append(struct buf *, const void *data, size_t len);
int	buf_puts(struct buf *, const char *text);
int	buf_printf(struct buf *, const char *fmt, ...)
	    __attribute__((format(printf, 2, 3)));
int	buf_vprintf(struct buf *, const char *fmt, va_list ap)
	    __attribute__((format(printf, 2, 0)));

/* Drops the first n bytes. */
void	buf_consume(struct buf *, size_t n);
/* Empties it, keeps the memory. */
void	buf_clear(struct buf *);
/* Hands the bytes to the caller, who frees them; the buffer is empty then.
 * Never NULL unless memory is short. */
char	*buf_steal(struct buf *);
void	buf_fini(struct buf *);

#endif
