/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan_x86.c - the kernels for AVX2 and AVX-512 VBMI.
 *
 * Both keep one bit per bucket of fragments and AND what four tables say of four
 * bytes in a row.  With AVX2 a table has 16 entries (pshufb), so each byte is
 * looked up in two halves: the scheme is "Teddy" of Hyperscan (Wang et al.,
 * NSDI 2019) with more buckets.  With VBMI a table has 128 entries (vpermi2b),
 * so a byte is looked up whole, which lets far fewer healthy positions pass;
 * bytes above 127 are taken for those 128 below.
 */
#include "diagnose/scan_kernel.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define TARGET_AVX2	__attribute__((target("avx2,bmi,popcnt")))
#define TARGET_VBMI	__attribute__((target("avx512f,avx512bw,avx512vl," \
			    "avx512vbmi,bmi,popcnt")))

struct nibbles {
	__m256i	low[SCAN_FRAGMENT], high[SCAN_FRAGMENT];
};

TARGET_AVX2 static inline void
load_nibbles(const struct scan_masks *m, int group, struct nibbles *out)
{
	int k;

	for (k = 0; k < SCAN_FRAGMENT; k++) {
		out->low[k] = _mm256_broadcastsi128_si256(
		    _mm_loadu_si128((const __m128i *)m->low[group][k]));
		out->high[k] = _mm256_broadcastsi128_si256(
		    _mm_loadu_si128((const __m128i *)m->high[group][k]));
	}
}

TARGET_AVX2 static size_t
run_avx2(const struct scan_masks *m, const char *data, size_t from,
    size_t len, struct scan_found *f)
{
	const __m256i nibble = _mm256_set1_epi8(15);
	const __m256i newline = _mm256_set1_epi8('\n');
	const __m256i zero = _mm256_setzero_si256();
	struct nibbles t[SCAN_GROUPS_NIBBLE];
	size_t at = from, count = f->count, lines = 0;
	int g, k;

	for (g = 0; g < SCAN_GROUPS_NIBBLE; g++)
		load_nibbles(m, g, &t[g]);
	for (; at + 32 + SCAN_FRAGMENT <= len && count < SCAN_BATCH; at += 32) {
		__m256i lo[SCAN_FRAGMENT], hi[SCAN_FRAGMENT], v, r = zero, b;
		uint32_t bits;

#pragma GCC unroll 4
		for (k = 0; k < SCAN_FRAGMENT; k++) {
			v = _mm256_loadu_si256((const __m256i *)(data + at + k));
			if (k == 0)
				lines += (size_t)__builtin_popcount((uint32_t)
				    _mm256_movemask_epi8(
				    _mm256_cmpeq_epi8(v, newline)));
			lo[k] = _mm256_and_si256(v, nibble);
			hi[k] = _mm256_and_si256(_mm256_srli_epi16(v, 4), nibble);
		}
#pragma GCC unroll 4
		for (g = 0; g < SCAN_GROUPS_NIBBLE; g++) {
			b = _mm256_set1_epi8(-1);
#pragma GCC unroll 4
			for (k = 0; k < SCAN_FRAGMENT; k++)
				b = _mm256_and_si256(b, _mm256_and_si256(
				    _mm256_shuffle_epi8(t[g].low[k], lo[k]),
				    _mm256_shuffle_epi8(t[g].high[k], hi[k])));
			r = _mm256_or_si256(r, b);
		}
		if (_mm256_testz_si256(r, r))
			continue;
		bits = ~(uint32_t)_mm256_movemask_epi8(
		    _mm256_cmpeq_epi8(r, zero));
		for (; bits != 0; bits &= bits - 1) {
			f->at[count] = at + (size_t)__builtin_ctz(bits);
			count += scan_is_hashed(m, data + f->at[count]);
		}
	}
	f->count = count;
	f->newlines += lines;
	return at;
}

TARGET_VBMI static size_t
run_vbmi(const struct scan_masks *m, const char *data, size_t from,
    size_t len, struct scan_found *f)
{
	const __m512i newline = _mm512_set1_epi8('\n');
	__m512i lo[SCAN_GROUPS_EXACT][SCAN_FRAGMENT];
	__m512i hi[SCAN_GROUPS_EXACT][SCAN_FRAGMENT];
	size_t at = from, count = f->count, lines = 0;
	int g, k;

	for (g = 0; g < SCAN_GROUPS_EXACT; g++)
		for (k = 0; k < SCAN_FRAGMENT; k++) {
			lo[g][k] = _mm512_loadu_si512(m->exact[g][k]);
			hi[g][k] = _mm512_loadu_si512(m->exact[g][k] + 64);
		}
	for (; at + 64 + SCAN_FRAGMENT <= len && count < SCAN_BATCH; at += 64) {
		__m512i v[SCAN_FRAGMENT], b[SCAN_FRAGMENT], r;
		uint64_t bits;

#pragma GCC unroll 4
		for (k = 0; k < SCAN_FRAGMENT; k++)
			v[k] = _mm512_loadu_si512(data + at + k);
		lines += (size_t)__builtin_popcountll(
		    _mm512_cmpeq_epi8_mask(v[0], newline));
		r = _mm512_setzero_si512();
#pragma GCC unroll 4
		for (g = 0; g < SCAN_GROUPS_EXACT; g++) {
#pragma GCC unroll 4
			for (k = 0; k < SCAN_FRAGMENT; k++)
				b[k] = _mm512_permutex2var_epi8(lo[g][k], v[k],
				    hi[g][k]);
			b[0] = _mm512_and_si512(b[0], b[1]);
			b[0] = _mm512_ternarylogic_epi64(b[0], b[2], b[3], 0x80);
			r = _mm512_or_si512(r, b[0]);
		}
		bits = _mm512_test_epi8_mask(r, r);
		for (; bits != 0; bits &= bits - 1) {
			f->at[count] = at + (size_t)__builtin_ctzll(bits);
			count += scan_is_hashed(m, data + f->at[count]);
		}
	}
	f->count = count;
	f->newlines += lines;
	return at;
}

scan_kernel_fn
scan_kernel_avx2(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx2") ? run_avx2 : NULL;
}

scan_kernel_fn
scan_kernel_vbmi(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx512vbmi") &&
	    __builtin_cpu_supports("avx512bw") ? run_vbmi : NULL;
}

#else

scan_kernel_fn
scan_kernel_avx2(void)
{
	return NULL;
}

scan_kernel_fn
scan_kernel_vbmi(void)
{
	return NULL;
}

#endif
