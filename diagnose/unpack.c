/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.c - the table of compressed formats.
 *
 * A name says nothing: x.log.gz may be plain text, and standard input has none.
 */
#include <string.h>

#include "diagnose/unpack.h"

/* RFC 1952; RFC 8878 with its skippable frames (16 numbers, the usual first one);
 * the .xz file format 1.2.1; bzip2, lz4 and compress by their magic(5); journals by
 * systemd's journal-def.h. */
static const struct unpack_format formats[] = {
	{ "gzip", "\x1f\x8b\x08", 3, unpack_gz },
	{ "zstd", "\x28\xb5\x2f\xfd", 4, unpack_zstd },
	{ "zstd", "\x50\x2a\x4d\x18", 4, unpack_zstd },
	{ "xz", "\xfd" "7zXZ\0", 6, unpack_xz },
	{ "bzip2", "BZh91AY&SY", 10, NULL, "unpack it" },
	{ "lz4", "\x04\x22\x4d\x18", 4, NULL, "unpack it" },
	{ "zip", "PK\x03\x04", 4, NULL, "unpack it" },
	{ "compress", "\x1f\x9d\x90", 3, NULL, "unpack it" },
	{ "a journal file", "LPKSHHRH", 8, NULL, "print it with journalctl(1)" }
};

const struct unpack_format *
unpack_recognise(const struct stream *s)
{
	size_t i;

	for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (s->len >= formats[i].magic_len && memcmp(s->data,
		    formats[i].magic, formats[i].magic_len) == 0)
			return &formats[i];
	return NULL;
}

int
unpack_truncated(struct err *err)
{
	return err_set(err, ERR_FORMAT, "truncated");
}

int
unpack_trailing(struct err *err)
{
	return err_set(err, ERR_FORMAT, "bytes of another kind at the end");
}

void
unpack_release(const struct stream *s, size_t at)
{
	stream_release(s, at > UNPACK_IN ? at - UNPACK_IN : 0, at);
}
