/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_gz.c - gzip by ISA-L, which is several times as fast as zlib.
 */
#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/unpack.h"

struct gz {
	const struct stream	*in;
	struct feed_spool	*out;
	size_t			 at;	/* in the input */
	struct inflate_state	 state;
	uint8_t			 block[UNPACK_OUT];
};

/* One member from its header on; leaves `at` behind its trailer. */
static int
read_member(struct gz *z, struct err *err)
{
	struct inflate_state *s = &z->state;
	size_t given, got;
	int rc;

	isal_inflate_init(s);
	s->crc_flag = ISAL_GZIP;
	for (;;) {
		given = z->in->len - z->at;
		given = given < UNPACK_IN ? given : UNPACK_IN;
		s->next_in = (uint8_t *)(uintptr_t)(z->in->data + z->at);
		s->avail_in = (uint32_t)given;
		s->next_out = z->block;
		s->avail_out = UNPACK_OUT;
		rc = isal_inflate(s);
		given -= s->avail_in;
		z->at += given;
		got = UNPACK_OUT - s->avail_out;
		if (feed_spool_write(z->out, z->block, got, err) == -1)
			return -1;
		if (rc < 0)
			return err_set(err, ERR_FORMAT, rc ==
			    ISAL_INCORRECT_CHECKSUM ? "wrong checksum" :
			    "damaged");
		unpack_release(z->in, z->at);
		if (s->block_state == ISAL_BLOCK_FINISH)
			break;
		if (given == 0 && got == 0)
			return z->at == z->in->len ? unpack_truncated(err) :
			    err_set(err, ERR_FORMAT, "damaged");
	}
	/* Whole bytes it took from the input, but did not need. */
	z->at -= (size_t)s->read_in_length / 8;
	return 0;
}

static bool
is_padding(const char *data, size_t len)
{
	while (len > 0 && *data == '\0')
		data++, len--;
	return len == 0;
}

int
unpack_gz(const struct stream *in, struct feed_spool *out, struct err *err)
{
	struct gz *z = calloc(1, sizeof(*z));
	int rc;

	if (z == NULL)
		return err_memory(err);
	z->in = in;
	z->out = out;
	do
		rc = read_member(z, err);
	while (rc == 0 && in->len - z->at > 2 &&
	    memcmp(in->data + z->at, "\x1f\x8b\x08", 3) == 0);
	if (rc == 0 && !is_padding(in->data + z->at, in->len - z->at))
		rc = unpack_trailing(err);
	free(z);
	return rc;
}
