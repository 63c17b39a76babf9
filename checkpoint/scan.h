/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.h - finds NaN and infinity in raw tensor bytes (little-endian).
 *
 * A value is not finite when all bits of its exponent are ones.  fp8 follows
 * arXiv 2209.05433: e4m3fn has no infinity and NaN 0x7f/0xff, e5m2 is as IEEE;
 * the FNUZ forms have the one NaN 0x80; E8M0 (OCP MX) has NaN 0xff.
 */
#ifndef HOLDFAST_CHECKPOINT_SCAN_H
#define HOLDFAST_CHECKPOINT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum scan_elem {
	SCAN_NONE,		/* integers, bytes: nothing to look for */
	SCAN_F64,
	SCAN_F32,
	SCAN_BF16,
	SCAN_F16,
	SCAN_F8_E4M3,
	SCAN_F8_E5M2,
	SCAN_F8_FNUZ,
	SCAN_F8_E8M0
};

/* Bytes of one value; 1 for SCAN_NONE. */
size_t	scan_elem_size(enum scan_elem);

/* True when any of the values is not finite.  A tail shorter than one value is
 * not looked at. */
bool	scan_any(enum scan_elem, const void *data, size_t bytes);

struct scan_counts {
	uint64_t	nan;
	uint64_t	plus_inf;
	uint64_t	minus_inf;
	uint64_t	other_nonzero;	/* finite and not zero */
};

/* Adds the counts of these values; slow, for what scan_any() found. */
void	scan_count(enum scan_elem, const void *data, size_t bytes,
	    struct scan_counts *);

#endif
