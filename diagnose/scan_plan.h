/* SPDX-License-Identifier: Apache-2.0 */
/* scan_plan.h - what scan_sample.c and scan_plan.c share. */
#ifndef HOLDFAST_DIAGNOSE_SCAN_PLAN_H
#define HOLDFAST_DIAGNOSE_SCAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diagnose/scan_kernel.h"

/* Four bytes, as read from memory, and how often they stand in the sample. */
struct scan_gram {
	uint32_t	value;
	uint32_t	count;
};

/* A fragment's bytes as a number; any_case: in lower case. */
uint32_t scan_fragment_value(const char *fragment, bool any_case);
/* How often a fragment is to be expected in the sample; fold: in any case. */
double	scan_sample_expect(const struct scan_sample *, const char *fragment,
	    bool fold);
/* The `most` commonest ones, for the caller to free; 0 without memory. */
size_t	scan_sample_grams(const struct scan_sample *, size_t most,
	    struct scan_gram **out, struct err *err);

/* A fragment that was chosen, and its buckets. */
struct scan_fragment {
	char	text[SCAN_FRAGMENT];
	bool	any_case;
	bool	fixed;		/* its buckets stay */
	uint8_t	exact;
	uint8_t	nibble;
};

/* scan_bucket.c: puts fragments into buckets so that few healthy positions pass. */
int	scan_bucket_assign(struct scan_fragment *, size_t count,
	    const struct scan_sample *, int passes, struct err *err);

#endif
