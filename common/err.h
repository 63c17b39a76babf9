/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err.h - the one way a failure travels up.
 *
 * Functions return 0 or -1 and take `struct err *` as their last parameter,
 * which may be NULL.  The text is one line for a person: what was tried, on
 * which path, and why it did not work; "?" stands for control characters.
 * Outcomes a caller must expect (no checkpoint, node bad, no rule matched) are
 * results, not errors.
 */
#ifndef HOLDFAST_COMMON_ERR_H
#define HOLDFAST_COMMON_ERR_H

enum err_code {
	ERR_NONE = 0,
	ERR_USAGE,	/* the command line or configuration is wrong */
	ERR_FORMAT,	/* bytes from outside do not follow their format */
	ERR_LIMIT,	/* a size, depth or count from outside is too large */
	ERR_BUSY,	/* someone else holds it */
	ERR_TIMEOUT,	/* a deadline passed */
	ERR_SYSTEM,	/* the kernel said no; errnum says why */
	ERR_MEMORY
};

struct err {
	enum err_code	code;
	int		errnum;		/* errno of ERR_SYSTEM, otherwise 0 */
	char		text[512];
};

/* Fills *err (if not NULL) and returns -1, so that callers can return it. */
int	err_set(struct err *err, enum err_code code, const char *fmt, ...)
	    __attribute__((format(printf, 3, 4)));

/* As err_set() with ERR_SYSTEM; appends ": " and the text of errno.  Keeps errno. */
int	err_errno(struct err *err, const char *fmt, ...)
	    __attribute__((format(printf, 2, 3)));

/* Puts "context: " in front of the text of a failure on its way up; returns -1. */
int	err_prefix(struct err *err, const char *fmt, ...)
	    __attribute__((format(printf, 2, 3)));

/* For failed allocations; returns -1. */
int	err_memory(struct err *err);

#endif
