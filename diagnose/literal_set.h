/* SPDX-License-Identifier: Apache-2.0 */
/* literal_set.h - small sets of strings, for literal.c alone. */
#ifndef HOLDFAST_DIAGNOSE_LITERAL_SET_H
#define HOLDFAST_DIAGNOSE_LITERAL_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "diagnose/literal.h"
#include "diagnose/scan.h"

#define SET_MAX		128	/* strings of one set */
#define TEXT_MAX	SCAN_LITERAL_MAX

struct set {
	size_t	 count;
	double	 quality;	/* NAN: not known yet */
	size_t	 cap;
	uint8_t	 len[SET_MAX];
	char	 (*text)[TEXT_MAX];	/* `few`, or allocated */
	char	 few[2][TEXT_MAX];	/* most sets have one string */
};

/* All that make a set return NULL when memory is short or it does not fit. */
struct set *set_new(void);
void	set_free(struct set *);
struct set *set_of(const char *text, size_t len);
/* False when it does not fit. */
bool	set_add(struct set *, const char *text, size_t len);
/* Higher is better: rare in healthy logs, long, few; negative: of no use.  NULL
 * is fine, also for the sample. */
double	set_quality(struct set *, const struct scan_sample *, bool fold);
/* Keeps the better of two, frees the other. */
struct set *set_better(struct set *, struct set *, const struct scan_sample *,
	    bool fold);
/* Every string of a followed by every string of b. */
struct set *set_product(const struct set *a, const struct set *b);
/* Adds a to s, which is freed when that fails. */
struct set *set_union(struct set *s, const struct set *a);
int	set_export(const struct set *, struct literal_set *out,
	    struct err *err);

#endif
