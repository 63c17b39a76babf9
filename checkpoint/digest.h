/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest.h - XXH3-128 of bytes as they stream by, at the speed of the widest vectors
 * that the processor has.
 *
 * Distributions build libxxhash for SSE2; its header is compiled here once more for
 * AVX2 and for AVX-512, and one of them is chosen at run time.  The digest is that of
 * `xxhsum -H2'.  Source: xxhash.h 0.8.1.
 */
#ifndef HOLDFAST_CHECKPOINT_DIGEST_H
#define HOLDFAST_CHECKPOINT_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIGEST_TEXT_MAX	33	/* 32 hexadecimal digits and NUL */

struct digest {
	uint64_t	high, low;
};

struct hasher;

/* NULL when memory is short; hasher_free() accepts NULL.  A new one is reset. */
struct hasher *hasher_new(void);
void	hasher_free(struct hasher *);
void	hasher_reset(struct hasher *);
void	hasher_add(struct hasher *, const void *data, size_t len);
struct digest hasher_end(const struct hasher *);

/* "xxhsum -H2" prints it so. */
void	digest_format(struct digest, char out[DIGEST_TEXT_MAX]);
/* False when the text is not exactly 32 digits, small letters only. */
bool	digest_parse(const char *text, struct digest *out);

static inline bool
digest_equal(struct digest a, struct digest b)
{
	return a.high == b.high && a.low == b.low;
}

/* The bodies that digest.c chooses from: digest_avx2.c, digest_avx512.c. */
struct digest_body {
	void		(*reset)(void *state);
	void		(*add)(void *state, const void *data, size_t len);
	struct digest	(*end)(const void *state);
};
extern const struct digest_body digest_plain, digest_avx2, digest_avx512;

#endif
