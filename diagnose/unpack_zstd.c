/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_zstd.c - zstd, frame by frame.
 */
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "diagnose/unpack.h"

#define WINDOW_LOG	27	/* UNPACK_MEMORY */

static const char *
why(size_t code)
{
	switch (ZSTD_getErrorCode(code)) {
	case ZSTD_error_frameParameter_windowTooLarge:
		return "needs more than 128 MiB to be unpacked";
	case ZSTD_error_checksum_wrong:
		return "wrong checksum";
	case ZSTD_error_dictionary_wrong:
		return "needs a dictionary";
	default:
		return "damaged";
	}
}

static int
decode(ZSTD_DCtx *z, const struct stream *stream, struct feed_spool *spool,
    char *block, struct err *err)
{
	ZSTD_inBuffer in = { stream->data, 0, 0 };
	ZSTD_outBuffer out;
	size_t rc = 0, before;

	while (in.pos < stream->len || rc != 0) {
		before = in.pos;
		in.size = stream->len - in.pos < UNPACK_IN ? stream->len :
		    in.pos + UNPACK_IN;
		out = (ZSTD_outBuffer){ block, UNPACK_OUT, 0 };
		rc = ZSTD_decompressStream(z, &out, &in);
		if (feed_spool_write(spool, block, out.pos, err) == -1)
			return -1;
		if (ZSTD_isError(rc) && ZSTD_getErrorCode(rc) ==
		    ZSTD_error_prefix_unknown && spool->len > 0)
			return unpack_trailing(err);
		if (ZSTD_isError(rc))
			return err_set(err, ERR_FORMAT, "%s", why(rc));
		if (in.pos == before && out.pos == 0)
			return unpack_truncated(err);
		unpack_release(stream, in.pos);
	}
	return 0;
}

int
unpack_zstd(const struct stream *in, struct feed_spool *out, struct err *err)
{
	ZSTD_DCtx *z = ZSTD_createDCtx();
	char *block = malloc(UNPACK_OUT);
	int rc;

	if (z == NULL || block == NULL || ZSTD_isError(ZSTD_DCtx_setParameter(z,
	    ZSTD_d_windowLogMax, WINDOW_LOG)))
		rc = err_memory(err);
	else
		rc = decode(z, in, out, block, err);
	ZSTD_freeDCtx(z);
	free(block);
	return rc;
}
