/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_xz.c - xz by liblzma.
 */
#include <lzma.h>
#include <stdlib.h>

#include "diagnose/unpack.h"

static const char *
why(lzma_ret code)
{
	switch (code) {
	case LZMA_MEMLIMIT_ERROR:
		return "needs more than 128 MiB to be unpacked";
	case LZMA_OPTIONS_ERROR:
		return "uses an option that is not known";
	case LZMA_BUF_ERROR:
		return "truncated";
	default:
		return "damaged";
	}
}

static int
decode(lzma_stream *z, const struct stream *in, struct feed_spool *out,
    uint8_t *block, struct err *err)
{
	lzma_ret rc;
	size_t at = 0;

	do {
		size_t left = in->len - at;

		z->next_in = (const uint8_t *)in->data + at;
		z->avail_in = left < UNPACK_IN ? left : UNPACK_IN;
		z->next_out = block;
		z->avail_out = UNPACK_OUT;
		rc = lzma_code(z, left <= UNPACK_IN ? LZMA_FINISH : LZMA_RUN);
		if (feed_spool_write(out, block, UNPACK_OUT - z->avail_out,
		    err) == -1)
			return -1;
		at = (size_t)(z->next_in - (const uint8_t *)in->data);
		unpack_release(in, at);
	} while (rc == LZMA_OK);
	if (rc == LZMA_MEM_ERROR)
		return err_memory(err);
	return rc == LZMA_STREAM_END ? 0 :
	    err_set(err, ERR_FORMAT, "%s", why(rc));
}

int
unpack_xz(const struct stream *in, struct feed_spool *out, struct err *err)
{
	lzma_stream z = LZMA_STREAM_INIT;
	uint8_t *block = malloc(UNPACK_OUT);
	int rc;

	if (block == NULL || lzma_stream_decoder(&z, UNPACK_MEMORY,
	    LZMA_CONCATENATED) != LZMA_OK)
		rc = err_memory(err);
	else
		rc = decode(&z, in, out, block, err);
	lzma_end(&z);
	free(block);
	return rc;
}
