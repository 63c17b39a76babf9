/* SPDX-License-Identifier: Apache-2.0 */
/*
 * literal.h - which literals a regular expression cannot match without.
 */
#ifndef HOLDFAST_DIAGNOSE_LITERAL_H
#define HOLDFAST_DIAGNOSE_LITERAL_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "diagnose/scan.h"

/* Strings one of which stands in every match; list of count strings. */
struct literal_set {
	char	**texts;
	size_t	  count;
	bool	  fold;		/* lower case; the text may have any case */
};

/* Reads a PCRE2 pattern; of several sets it takes the one that is rarest in the
 * sample, which may be NULL.  ERR_FORMAT when it has no literal of at least
 * SCAN_LITERAL_MIN bytes on each of its branches, or is too unusual to tell. */
int	literal_extract(const char *pattern, const struct scan_sample *,
	    struct literal_set *out, struct err *err);
void	literal_fini(struct literal_set *);

#endif
