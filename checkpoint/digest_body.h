/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest_body.h - the whole of XXH3-128 for one kind of vectors.  The including file
 * sets XXH_VECTOR, DIGEST_BODY (the name) and the target of the compiler before.
 */
#ifndef HOLDFAST_CHECKPOINT_DIGEST_BODY_H
#define HOLDFAST_CHECKPOINT_DIGEST_BODY_H

#define XXH_INLINE_ALL
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

static void
body_reset(void *state)
{
	(void)XXH3_128bits_reset(state);
}

static void
body_add(void *state, const void *data, size_t len)
{
	(void)XXH3_128bits_update(state, data, len);
}

static struct digest
body_end(const void *state)
{
	XXH128_hash_t h = XXH3_128bits_digest(state);

	return (struct digest){ h.high64, h.low64 };
}

const struct digest_body DIGEST_BODY = { body_reset, body_add, body_end };

#endif
