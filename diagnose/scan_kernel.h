/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan_kernel.h - what scan.c and its kernels share.
 *
 * A kernel looks at each position of a buffer and writes down those where some
 * fragment may stand: the masks let it pass, and so does a bitmap of hashed
 * fragments, small enough for the first-level cache.  It may name too many, never
 * too few.
 */
#ifndef HOLDFAST_DIAGNOSE_SCAN_KERNEL_H
#define HOLDFAST_DIAGNOSE_SCAN_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "diagnose/scan.h"

#define SCAN_FRAGMENT	4
#define SCAN_BATCH	1024
#define SCAN_HASH_BITS	16
#define SCAN_ANY_CASE	0x20202020u	/* ASCII letters differ in this bit */

/* A set bit says: a fragment of this bucket may have such a byte here. */
struct scan_masks {
	/* By the lower 7 bits of a byte, by its lower and by its upper half. */
	uint8_t	exact[SCAN_GROUPS_EXACT][SCAN_FRAGMENT][128];
	uint8_t	low[SCAN_GROUPS_NIBBLE][SCAN_FRAGMENT][16];
	uint8_t	high[SCAN_GROUPS_NIBBLE][SCAN_FRAGMENT][16];
	/* By the hash of four bytes in lower case. */
	uint64_t hashed[(1u << SCAN_HASH_BITS) / 64];
};

static inline uint32_t
scan_read_fragment(const char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Of four bytes | SCAN_ANY_CASE. */
static inline uint32_t
scan_hash(uint32_t fragment)
{
	return (fragment * 0x9e3779b1u) >> (32 - SCAN_HASH_BITS);
}

static inline bool
scan_is_hashed(const struct scan_masks *m, const char *p)
{
	uint32_t h = scan_hash(scan_read_fragment(p) | SCAN_ANY_CASE);

	return m->hashed[h / 64] >> (h % 64) & 1;
}

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
