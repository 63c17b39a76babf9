/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest_avx512.c - XXH3-128 with AVX-512, where the compiler builds for x86-64; called
 * only where the processor has it.
 */
#include "checkpoint/digest.h"

#ifdef __x86_64__
#include <immintrin.h>
#define XXH_VECTOR	XXH_AVX512
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f")
#endif
#define DIGEST_BODY	digest_avx512
#include "checkpoint/digest_body.h"
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
const struct digest_body digest_avx512 = { 0 };
#endif
