/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h - lines that mention a failure without being one. */
#ifndef HOLDFAST_DIAGNOSE_GUARD_H
#define HOLDFAST_DIAGNOSE_GUARD_H

#include <stddef.h>

#include "diagnose/line.h"

enum guard {
	GUARD_NONE,		/* it says it itself */
	GUARD_SOURCE,		/* source code, a comment, a manual page */
	GUARD_DATA,		/* a field of the data set: "prompt: ..." */
	GUARD_GUESS,		/* "might be caused by ..." */
	GUARD_QUOTE		/* in quotation marks */
};

/* What a match that begins at text[start] is; the text is the line's or the
 * whole line with its prefixes. */
enum guard guard_check(const struct line *, const char *text, size_t len,
	    size_t start);

#endif
