/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch_write.c - the archive around the pickle and the tensors.
 *
 * Records are stored; sizes and checksums follow each in a data descriptor, so that
 * memory is read once.  Signatures and fields: APPNOTE.TXT 6.3 (PKWARE); which of them
 * torch fills: caffe2/serialize/inline_container.cc and miniz.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/torch_write.h"

#define ALIGNMENT	64u
#define PREFIX		"archive/"
#define NAME_LEN_MAX	40u
#define FLAG_UTF8	0x0800u
#define FLAG_DESCRIPTOR	0x0008u

struct record {
	char		name[NAME_LEN_MAX];
	uint64_t	size, offset;
	uint32_t	crc;
};

struct archive {
	struct sink	 sink;
	struct record	*records;
	size_t		 n;
	uint64_t	 zip64_from;
};

/* A header that is put together before it is written. */
struct head {
	uint8_t	bytes[256];
	size_t	len;
};

static void
put(struct head *h, uint64_t v, size_t bytes)
{
	while (bytes-- > 0) {
		h->bytes[h->len++] = (uint8_t)v;
		v >>= 8;
	}
}

static void
put_text(struct head *h, const char *text)
{
	memcpy(h->bytes + h->len, text, strlen(text));
	h->len += strlen(text);
}

static unsigned
flags_of(const struct record *r)
{
	return FLAG_UTF8 | (r->size > 0 ? FLAG_DESCRIPTOR : 0);
}

static bool
is_large(const struct archive *a, const struct record *r)
{
	return r->size >= a->zip64_from || r->offset >= a->zip64_from;
}

static int
write_local(struct archive *a, const struct record *r, struct err *err)
{
	size_t extra64 = is_large(a, r) ? 20 : 0, pad;
	struct head h = { .len = 0 };

	pad = (size_t)((r->offset + 30 + strlen(r->name) + extra64 + 4) %
	    ALIGNMENT);
	pad = (ALIGNMENT - pad) % ALIGNMENT;
	put(&h, 0x04034b50, 4);
	put(&h, 0, 2);				/* version needed */
	put(&h, flags_of(r), 2);
	put(&h, 0, 2);				/* stored */
	put(&h, 0, 4);				/* time, date */
	put(&h, 0, 4);				/* CRC, sizes: behind the data */
	put(&h, 0, 4);
	put(&h, 0, 4);
	put(&h, strlen(r->name), 2);
	put(&h, extra64 + 4 + pad, 2);
	put_text(&h, r->name);
	if (extra64 > 0) {
		put(&h, 1, 2);
		put(&h, 16, 2);
		put(&h, r->size, 8);
		put(&h, r->size, 8);
	}
	put_text(&h, "FB");
	put(&h, pad, 2);
	memset(h.bytes + h.len, 'Z', pad);
	h.len += pad;
	return sink_put(&a->sink, h.bytes, h.len, NULL, err);
}

static int
write_record(struct archive *a, const char *name, const void *data,
    uint64_t size, struct err *err)
{
	struct record *r = &a->records[a->n++];
	struct head h = { .len = 0 };
	size_t width;

	*r = (struct record){ .size = size, .offset = a->sink.offset };
	snprintf(r->name, sizeof(r->name), PREFIX "%s", name);
	if (write_local(a, r, err) == -1 ||
	    sink_put(&a->sink, data, size, &r->crc, err) == -1)
		return -1;
	if (size == 0)
		return 0;
	width = is_large(a, r) ? 8 : 4;
	put(&h, 0x08074b50, 4);
	put(&h, r->crc, 4);
	put(&h, size, width);
	put(&h, size, width);
	return sink_put(&a->sink, h.bytes, h.len, NULL, err);
}

static int
write_central(struct archive *a, const struct record *r, struct err *err)
{
	bool size64 = r->size >= a->zip64_from;
	bool offset64 = r->offset >= a->zip64_from;
	size_t extra = (size64 ? 16 : 0) + (offset64 ? 8 : 0);
	struct head h = { .len = 0 };

	put(&h, 0x02014b50, 4);
	put(&h, 0, 4);				/* versions */
	put(&h, flags_of(r), 2);
	put(&h, 0, 2);
	put(&h, 0, 4);
	put(&h, r->crc, 4);
	put(&h, size64 ? UINT32_MAX : r->size, 4);
	put(&h, size64 ? UINT32_MAX : r->size, 4);
	put(&h, strlen(r->name), 2);
	put(&h, extra > 0 ? extra + 4 : 0, 2);
	put(&h, 0, 2);				/* comment */
	put(&h, 0, 8);				/* disk, attributes */
	put(&h, offset64 ? UINT32_MAX : r->offset, 4);
	put_text(&h, r->name);
	if (extra > 0) {
		put(&h, 1, 2);
		put(&h, extra, 2);
	}
	if (size64) {
		put(&h, r->size, 8);
		put(&h, r->size, 8);
	}
	if (offset64)
		put(&h, r->offset, 8);
	return sink_put(&a->sink, h.bytes, h.len, NULL, err);
}

/* Both ends, as torch writes them whatever the size is. */
static int
write_end(struct archive *a, uint64_t start, struct err *err)
{
	uint64_t end = a->sink.offset;
	struct head h = { .len = 0 };

	put(&h, 0x06064b50, 4);
	put(&h, 44, 8);
	put(&h, 0, 4);				/* versions */
	put(&h, 0, 8);				/* disks */
	put(&h, a->n, 8);
	put(&h, a->n, 8);
	put(&h, end - start, 8);
	put(&h, start, 8);
	put(&h, 0x07064b50, 4);
	put(&h, 0, 4);
	put(&h, end, 8);
	put(&h, 1, 4);				/* disks in all */
	put(&h, 0x06054b50, 4);
	put(&h, 0, 4);
	put(&h, a->n < UINT16_MAX ? a->n : UINT16_MAX, 2);
	put(&h, a->n < UINT16_MAX ? a->n : UINT16_MAX, 2);
	put(&h, end - start < a->zip64_from ? end - start : UINT32_MAX, 4);
	put(&h, start < a->zip64_from ? start : UINT32_MAX, 4);
	put(&h, 0, 2);
	return sink_put(&a->sink, h.bytes, h.len, NULL, err);
}

static int
write_archive(struct archive *a, const struct buf *pickle,
    const struct torch_entry *entries, size_t n, struct err *err)
{
	char name[NAME_LEN_MAX];
	size_t i, record = 0;
	uint64_t start;

	if (write_record(a, "data.pkl", pickle->data, pickle->len, err) == -1 ||
	    write_record(a, "byteorder", "little", 6, err) == -1)
		return -1;
	for (i = 0; i < n; i++) {
		if (entries[i].kind != TORCH_TENSOR)
			continue;
		snprintf(name, sizeof(name), "data/%zu", record++);
		if (write_record(a, name, entries[i].data, entries[i].bytes, err)
		    == -1)
			return -1;
	}
	if (write_record(a, "version", "3\n", 2, err) == -1)
		return -1;
	start = a->sink.offset;
	for (i = 0; i < a->n; i++)
		if (write_central(a, &a->records[i], err) == -1)
			return -1;
	return write_end(a, start, err);
}

int
torch_write(const char *path, const struct torch_entry *entries, size_t n,
    const struct torch_write_options *o, uint64_t *size, struct err *err)
{
	struct archive a = { .zip64_from = o->zip64_from };
	struct buf pickle = {0};
	int rc = -1;

	if (a.zip64_from == 0 || a.zip64_from > UINT32_MAX)
		a.zip64_from = UINT32_MAX;
	if (torch_pickle(&pickle, entries, n, o->separator, err) == -1)
		goto out;
	if ((a.records = calloc(n + 3, sizeof(*a.records))) == NULL) {
		err_memory(err);
		goto out;
	}
	if (sink_open(&a.sink, path, 0666, o->limit, err) == -1)
		goto out;
	if (write_archive(&a, &pickle, entries, n, err) == 0 &&
	    sink_close(&a.sink, err) == 0)
		rc = 0;
	else
		sink_abandon(&a.sink);
	if (size != NULL)
		*size = a.sink.offset;
out:
	free(a.records);
	buf_fini(&pickle);
	return rc;
}
