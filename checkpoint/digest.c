/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest.c - chooses the body of the hash by what the processor has, and writes
 * digests as text.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/digest.h"

#define DIGEST_BODY	digest_plain
#include "checkpoint/digest_body.h"

struct hasher {
	XXH3_state_t			 state;
	const struct digest_body	*body;
};

static const struct digest_body *
choose(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx512f"))
		return &digest_avx512;
	if (__builtin_cpu_supports("avx2"))
		return &digest_avx2;
#endif
	return &digest_plain;
}

struct hasher *
hasher_new(void)
{
	void *p = NULL;
	struct hasher *h;

	/* the state wants 64, as XXH3_createState() does it */
	if (posix_memalign(&p, 64, sizeof(*h)) != 0)
		return NULL;
	h = p;
	h->body = choose();
	XXH3_INITSTATE(&h->state);
	hasher_reset(h);
	return h;
}

void
hasher_free(struct hasher *h)
{
	free(h);
}

void
hasher_reset(struct hasher *h)
{
	h->body->reset(&h->state);
}

void
hasher_add(struct hasher *h, const void *data, size_t len)
{
	h->body->add(&h->state, data, len);
}

struct digest
hasher_end(const struct hasher *h)
{
	return h->body->end(&h->state);
}

void
digest_format(struct digest d, char out[DIGEST_TEXT_MAX])
{
	snprintf(out, DIGEST_TEXT_MAX, "%016" PRIx64 "%016" PRIx64, d.high, d.low);
}

bool
digest_parse(const char *text, struct digest *out)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t half[2] = {0};
	const char *at;
	size_t i;

	if (strlen(text) != DIGEST_TEXT_MAX - 1)
		return false;
	for (i = 0; text[i] != '\0'; i++) {
		if ((at = strchr(digits, text[i])) == NULL)
			return false;
		half[i / 16] = half[i / 16] << 4 | (uint64_t)(at - digits);
	}
	*out = (struct digest){ half[0], half[1] };
	return true;
}
