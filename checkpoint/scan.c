/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - the loops are written for the compiler's vectoriser: whole values of
 * one width, one OR per value, no branch.
 */
#include <string.h>

#include "checkpoint/scan.h"

/* A second body for AVX2 where the machine has it; chosen at run time. */
#if defined(__x86_64__) && defined(__GNUC__)
#define SCAN_HAVE_AVX2	1
#endif
#if defined(__GNUC__) && !defined(__clang__)
#define SCAN_FAST	__attribute__((optimize("O3")))
#else
#define SCAN_FAST
#endif

#define SCAN_BODY(name, type, test)					\
static inline __attribute__((always_inline)) bool			\
name##_body(const uint8_t *p, size_t n)					\
{									\
	type bad = 0, x;						\
	size_t i;							\
									\
	for (i = 0; i < n; i++) {					\
		memcpy(&x, p + i * sizeof(x), sizeof(x));		\
		bad |= (type)(test);					\
	}								\
	return bad != 0;						\
}									\
static SCAN_FAST bool							\
name##_any(const uint8_t *p, size_t n)					\
{									\
	return name##_body(p, n);					\
}

#ifdef SCAN_HAVE_AVX2
#define SCAN_LOOP(name, type, test)					\
SCAN_BODY(name, type, test)						\
static SCAN_FAST __attribute__((target("avx2"))) bool			\
name##_avx2(const uint8_t *p, size_t n)					\
{									\
	return name##_body(p, n);					\
}
#define SCAN_CALL(name, p, n)						\
	(__builtin_cpu_supports("avx2") ? name##_avx2(p, n) : name##_any(p, n))
#else
#define SCAN_LOOP(name, type, test)	SCAN_BODY(name, type, test)
#define SCAN_CALL(name, p, n)		name##_any(p, n)
#endif

#define ONES64	0x7ff0000000000000ull

SCAN_LOOP(f64, uint64_t, (x & ONES64) == ONES64)
SCAN_LOOP(f32, uint32_t, (x & 0x7f800000u) == 0x7f800000u)
SCAN_LOOP(bf16, uint16_t, (x & 0x7f80u) == 0x7f80u)
SCAN_LOOP(f16, uint16_t, (x & 0x7c00u) == 0x7c00u)
SCAN_LOOP(e4m3, uint8_t, (x & 0x7fu) == 0x7fu)
SCAN_LOOP(e5m2, uint8_t, (x & 0x7cu) == 0x7cu)
SCAN_LOOP(fnuz, uint8_t, x == 0x80u)
SCAN_LOOP(e8m0, uint8_t, x == 0xffu)

size_t
scan_elem_size(enum scan_elem elem)
{
	switch (elem) {
	case SCAN_F64:
		return 8;
	case SCAN_F32:
		return 4;
	case SCAN_BF16:
	case SCAN_F16:
		return 2;
	default:
		return 1;
	}
}

bool
scan_any(enum scan_elem elem, const void *data, size_t bytes)
{
	const uint8_t *p = data;
	size_t n = bytes / scan_elem_size(elem);

	switch (elem) {
	case SCAN_F64:
		return SCAN_CALL(f64, p, n);
	case SCAN_F32:
		return SCAN_CALL(f32, p, n);
	case SCAN_BF16:
		return SCAN_CALL(bf16, p, n);
	case SCAN_F16:
		return SCAN_CALL(f16, p, n);
	case SCAN_F8_E4M3:
		return SCAN_CALL(e4m3, p, n);
	case SCAN_F8_E5M2:
		return SCAN_CALL(e5m2, p, n);
	case SCAN_F8_FNUZ:
		return SCAN_CALL(fnuz, p, n);
	case SCAN_F8_E8M0:
		return SCAN_CALL(e8m0, p, n);
	case SCAN_NONE:
		break;
	}
	return false;
}

/* One value as sign, "exponent all ones" and mantissa of its own width. */
static void
count_ieee(uint64_t x, uint64_t ones, uint64_t mantissa, uint64_t sign,
    struct scan_counts *c)
{
	if ((x & ones) == ones) {
		if (x & mantissa)
			c->nan++;
		else if (x & sign)
			c->minus_inf++;
		else
			c->plus_inf++;
	} else if (x & (ones | mantissa)) {
		c->other_nonzero++;
	}
}

static void
count_f8(enum scan_elem elem, uint8_t x, struct scan_counts *c)
{
	bool nan = elem == SCAN_F8_E4M3 ? (x & 0x7f) == 0x7f :
	    elem == SCAN_F8_FNUZ ? x == 0x80 : x == 0xff;

	if (nan)
		c->nan++;
	else if (x & 0x7f)
		c->other_nonzero++;
}

void
scan_count(enum scan_elem elem, const void *data, size_t bytes,
    struct scan_counts *c)
{
	const uint8_t *p = data;
	size_t i, size = scan_elem_size(elem), n = bytes / size;
	uint64_t x;

	for (i = 0; i < n && elem != SCAN_NONE; i++) {
		x = 0;
		/* little-endian values; big-endian hosts are not built for */
		memcpy(&x, p + i * size, size);
		switch (elem) {
		case SCAN_F64:
			count_ieee(x, ONES64, 0xfffffffffffffull, 1ull << 63, c);
			break;
		case SCAN_F32:
			count_ieee(x, 0x7f800000u, 0x7fffffu, 1u << 31, c);
			break;
		case SCAN_BF16:
			count_ieee(x, 0x7f80u, 0x7fu, 0x8000u, c);
			break;
		case SCAN_F16:
			count_ieee(x, 0x7c00u, 0x3ffu, 0x8000u, c);
			break;
		case SCAN_F8_E5M2:
			count_ieee(x, 0x7cu, 0x3u, 0x80u, c);
			break;
		default:
			count_f8(elem, (uint8_t)x, c);
			break;
		}
	}
}
