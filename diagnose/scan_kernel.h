/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan_kernel.h - what scan.c and its kernels share.
 *
 * A kernel looks at each position of a buffer and writes down those where some
 * fragment may stand.  It may name too many, never too few.
 */
#ifndef HOLDFAST_DIAGNOSE_SCAN_KERNEL_H
#define HOLDFAST_DIAGNOSE_SCAN_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "diagnose/scan.h"

#define SCAN_FRAGMENT	4
#define SCAN_BATCH	1024

/* A set bit says: a fragment of this bucket may have such a byte here. */
struct scan_masks {
	/* By the lower 7 bits of a byte, by its lower and by its upper half. */
	uint8_t	exact[SCAN_GROUPS_EXACT][SCAN_FRAGMENT][128];
	uint8_t	low[SCAN_GROUPS_NIBBLE][SCAN_FRAGMENT][16];
	uint8_t	high[SCAN_GROUPS_NIBBLE][SCAN_FRAGMENT][16];
};

struct scan_found {
	size_t	newlines;		/* counted so far */
	size_t	count;
	size_t	at[SCAN_BATCH + 64];
};

/* Looks at positions from `from` on; stops behind the data, or when SCAN_BATCH
 * positions are found.  Returns the first position it did not look at; fewer
 * than 128 bytes may be left over. */
typedef size_t	(*scan_kernel_fn)(const struct scan_masks *, const char *data,
	    size_t from, size_t len, struct scan_found *);

/* NULL when the processor (or the compiler) does not have it. */
scan_kernel_fn scan_kernel_avx2(void);
scan_kernel_fn scan_kernel_vbmi(void);

#endif
