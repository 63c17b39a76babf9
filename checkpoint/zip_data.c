/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zip_data.c - the bytes of records: loads small ones, inflates repacked ones.
 */
#include <inttypes.h>
#include <isa-l.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "checkpoint/zip.h"

#define CORRUPT		HOLDFAST_CHECKPOINT_CORRUPT
#define UNVERIFIED	HOLDFAST_CHECKPOINT_UNVERIFIED

struct inflater {
	z_stream	 z;
	uint8_t		*in, *out;
	uint64_t	 taken, given;	/* bytes of input read, of output made */
};

/* Fills out as far as the record goes; 1 at its end, 0 when out is full, -1. */
static int
inflate_block(const struct zip *zip, const struct zip_entry *e,
    struct inflater *f, struct report *r)
{
	size_t n;
	int rc;

	f->z.next_out = f->out;
	f->z.avail_out = INPUT_BLOCK;
	while (f->z.avail_out > 0) {
		if (f->z.avail_in == 0 && f->taken < e->csize) {
			n = e->csize - f->taken < INPUT_BLOCK ?
			    (size_t)(e->csize - f->taken) : INPUT_BLOCK;
			if (input_read(zip->in, zip->base + e->data + f->taken,
			    f->in, n, r) == -1)
				return -1;
			f->taken += n;
			f->z.next_in = f->in;
			f->z.avail_in = (uInt)n;
		}
		rc = inflate(&f->z, Z_NO_FLUSH);
		if (rc == Z_STREAM_END)
			return 1;
		if (rc != Z_OK)
			break;
	}
	if (f->z.avail_out == 0)
		return 0;
	report_say(r, CORRUPT, "%.*s: its deflated bytes are damaged",
	    ZIP_NAME(e));
	return -1;
}

static int
stream_deflated(const struct zip *zip, const struct zip_entry *e,
    uint8_t *block, void (*sink)(void *, const uint8_t *, size_t), void *arg,
    struct report *r)
{
	struct inflater f;
	size_t made;
	int rc = -1, step = -1;

	memset(&f, 0, sizeof(f));
	f.out = block;
	if ((f.in = malloc(INPUT_BLOCK)) == NULL ||
	    inflateInit2(&f.z, -15) != Z_OK) {
		report_say(r, UNVERIFIED, "out of memory");
		goto out;
	}
	do {
		step = inflate_block(zip, e, &f, r);
		if (step == -1)
			break;
		made = INPUT_BLOCK - f.z.avail_out;
		if (made > e->usize - f.given) {
			step = -1;
			break;
		}
		f.given += made;
		sink(arg, f.out, made);
	} while (step == 0);
	inflateEnd(&f.z);
	if (step == 1 && f.given == e->usize && f.taken == e->csize &&
	    f.z.avail_in == 0)
		rc = 0;
	else
		report_say(r, CORRUPT, "%.*s: does not inflate to %" PRIu64
		    " bytes", ZIP_NAME(e), e->usize);
out:
	free(f.in);
	return rc;
}

int
zip_stream(const struct zip *z, const struct zip_entry *e, uint8_t *block,
    void (*sink)(void *, const uint8_t *, size_t), void *arg, struct report *r)
{
	uint64_t at;
	size_t n;

	if (e->method == ZIP_DEFLATED)
		return stream_deflated(z, e, block, sink, arg, r);
	for (at = 0; at < e->usize; at += n) {
		n = e->usize - at < INPUT_BLOCK ? (size_t)(e->usize - at) :
		    INPUT_BLOCK;
		if (input_read(z->in, z->base + e->data + at, block, n, r) == -1)
			return -1;
		sink(arg, block, n);
	}
	return 0;
}

static void
append(void *arg, const uint8_t *data, size_t len)
{
	/* the room was reserved by zip_load() */
	(void)buf_append(arg, data, len);
}

int
zip_load(const struct zip *z, const struct zip_entry *e, size_t max,
    struct buf *out, struct report *r)
{
	size_t had = out->len;
	uint8_t *block = NULL;
	uint32_t crc;
	int rc;

	if (e->usize > max) {
		report_say(r, UNVERIFIED, "%.*s: %" PRIu64 " bytes are above the "
		    "limit of %zu", ZIP_NAME(e), e->usize, max);
		return -1;
	}
	if (buf_reserve(out, (size_t)e->usize + 1) == -1) {
		report_say(r, UNVERIFIED, "out of memory");
		return -1;
	}
	if (e->method == ZIP_DEFLATED) {
		if ((block = malloc(INPUT_BLOCK)) == NULL) {
			report_say(r, UNVERIFIED, "out of memory");
			return -1;
		}
		rc = stream_deflated(z, e, block, append, out, r);
		free(block);
		if (rc == -1)
			return -1;
	} else {
		if (input_read(z->in, z->base + e->data, out->data + had,
		    (size_t)e->usize, r) == -1)
			return -1;
		out->len = had + (size_t)e->usize;
		out->data[out->len] = '\0';
	}
	if (z->no_crc)
		return 0;
	crc = crc32_gzip_refl(0, (const uint8_t *)out->data + had,
	    out->len - had);
	if (crc != e->crc) {
		report_say(r, CORRUPT, "%.*s: CRC32 is %08x, should be %08x",
		    ZIP_NAME(e), crc, e->crc);
		return -1;
	}
	return 0;
}
