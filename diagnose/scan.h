/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.h - finds many literals in a buffer of bytes.
 *
 * One pass over the raw bytes, no splitting into lines; reports every
 * occurrence of every literal in order of the position of its rarest four
 * bytes, so occurrences in one line come together but not sorted by start.
 */
#ifndef HOLDFAST_DIAGNOSE_SCAN_H
#define HOLDFAST_DIAGNOSE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* Shorter literals cannot be searched. */
#define SCAN_LITERAL_MIN	4
#define SCAN_LITERAL_MAX	64

struct scan_literal {
	const char	*text;	/* bytes, without NUL inside; lower case if fold */
	bool		 fold;	/* ASCII letters of the buffer match in any case */
};

struct scanner;

/* Returns false to end the scan. */
typedef bool	(*scan_hit_fn)(uint32_t literal, size_t start, void *arg);

/* literals are borrowed for the life of the scanner. */
int	scan_new(const struct scan_literal *literals, size_t count,
	    struct scanner **out, struct err *err);
void	scan_free(struct scanner *);
void	scan_run(const struct scanner *, const char *data, size_t len,
	    scan_hit_fn, void *arg);

#endif
