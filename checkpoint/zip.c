/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zip.c - finds the end record, reads the central directory and proves that the
 * records tile the archive.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/zip.h"

#define SIG_LOCAL	0x04034b50u
#define SIG_CENTRAL	0x02014b50u
#define SIG_DESCRIPTOR	0x08074b50u
#define SIG_END		0x06054b50u
#define SIG_END64	0x06064b50u
#define SIG_LOCATOR64	0x07064b50u

#define LOCAL_SIZE	30
#define CENTRAL_SIZE	46
#define END_SIZE	22
#define END64_SIZE	56
#define LOCATOR64_SIZE	20
#define COMMENT_MAX	65535

#define FLAG_ENCRYPTED	0x0001
#define FLAG_DESCRIPTOR	0x0008

#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE
#define CORRUPT		HOLDFAST_CHECKPOINT_CORRUPT
#define UNVERIFIED	HOLDFAST_CHECKPOINT_UNVERIFIED

/* What the end records say. */
struct end {
	uint64_t	at;		/* of the first end record */
	uint64_t	directory_at, directory_size, n;
};

static int
zip_read(const struct zip *z, uint64_t at, void *out, size_t len,
    struct report *r)
{
	if (at > z->size || len > z->size - at) {
		report_say(r, CORRUPT, "a record points behind the archive's end");
		return -1;
	}
	return input_read(z->in, z->base + at, out, len, r);
}

static bool
all_zero(const uint8_t *p, size_t n)
{
	while (n > 0 && *p == 0) {
		p++;
		n--;
	}
	return n == 0;
}

/* The zip64 end record in front of an end record at `at`, if there is one. */
static int
read_end64(const struct zip *z, uint64_t at, struct end *end, struct report *r)
{
	uint8_t loc[LOCATOR64_SIZE], rec[END64_SIZE];
	uint64_t at64;

	if (at < LOCATOR64_SIZE)
		return 0;
	if (zip_read(z, at - LOCATOR64_SIZE, loc, sizeof(loc), r) == -1)
		return -1;
	if (get32(loc) != SIG_LOCATOR64)
		return 0;
	at64 = get64(loc + 8);
	if (get32(loc + 4) != 0 || get32(loc + 16) > 1 ||
	    at64 > at - LOCATOR64_SIZE ||
	    at - LOCATOR64_SIZE - at64 < END64_SIZE) {
		report_say(r, CORRUPT, "the zip64 locator points outside the archive");
		return -1;
	}
	if (zip_read(z, at64, rec, sizeof(rec), r) == -1)
		return -1;
	if (get32(rec) != SIG_END64 ||
	    get64(rec + 4) != at - LOCATOR64_SIZE - at64 - 12 ||
	    get32(rec + 16) != 0 || get32(rec + 20) != 0 ||
	    get64(rec + 24) != get64(rec + 32)) {
		report_say(r, CORRUPT, "the zip64 end record is damaged");
		return -1;
	}
	/* 32-bit fields that are not "see zip64" must say the same. */
	if ((end->n != 0xffff && end->n != get64(rec + 32)) ||
	    (end->directory_size != UINT32_MAX &&
	    end->directory_size != get64(rec + 40)) ||
	    (end->directory_at != UINT32_MAX &&
	    end->directory_at != get64(rec + 48))) {
		report_say(r, CORRUPT, "the two end records disagree");
		return -1;
	}
	end->at = at64;
	end->n = get64(rec + 32);
	end->directory_size = get64(rec + 40);
	end->directory_at = get64(rec + 48);
	return 0;
}

/* Looks back from the end of the archive for its end record. */
static int
find_end(const struct zip *z, struct end *end, struct report *r)
{
	size_t want = END_SIZE + COMMENT_MAX, i;
	uint8_t *tail, *p = NULL;
	uint64_t tail_at, behind = 0;
	int rc = -1;

	if (want > z->size)
		want = (size_t)z->size;
	tail_at = z->size - want;
	if (want < END_SIZE) {
		report_say(r, INCOMPLETE, "only %zu bytes of a torch.save archive",
		    want);
		return -1;
	}
	if ((tail = malloc(want)) == NULL) {
		report_say(r, UNVERIFIED, "out of memory");
		return -1;
	}
	if (zip_read(z, tail_at, tail, want, r) == -1)
		goto out;
	for (i = want - END_SIZE + 1; i-- > 0; )
		if (get32(tail + i) == SIG_END) {
			p = tail + i;
			break;
		}
	if (p == NULL) {
		report_say(r, INCOMPLETE, "%s", want > 4096 &&
		    all_zero(tail + want - 4096, 4096) ?
		    "no end of central directory: the tail is zeroes" :
		    "no end of central directory: cut off");
		goto out;
	}
	end->at = tail_at + i;
	behind = z->size - end->at - END_SIZE;
	if (get16(p + 20) != behind) {
		report_say(r, get16(p + 20) < behind ? CORRUPT : INCOMPLETE,
		    "%" PRIu64 " bytes behind the end of the archive",
		    behind - (get16(p + 20) < behind ? get16(p + 20) : 0));
		goto out;
	}
	end->n = get16(p + 10);
	end->directory_size = get32(p + 12);
	end->directory_at = get32(p + 16);
	if (get16(p + 4) != 0 || get16(p + 6) != 0 ||
	    get16(p + 8) != get16(p + 10)) {
		report_say(r, CORRUPT, "the end record is damaged");
		goto out;
	}
	rc = read_end64(z, end->at, end, r);
out:
	free(tail);
	return rc;
}

/* Finds extra field `id`; its length in *len. */
static const uint8_t *
find_extra(const uint8_t *p, size_t n, uint16_t id, size_t *len)
{
	while (n >= 4) {
		size_t size = get16(p + 2);

		if (size > n - 4)
			return NULL;
		if (get16(p) == id) {
			*len = size;
			return p + 4;
		}
		p += 4 + size;
		n -= 4 + size;
	}
	return NULL;
}

/* Fills 64-bit fields that stand as FFFFFFFF from the zip64 extra field, in
 * which only those are present, in this order. */
static int
widen(uint64_t *const fields[], size_t n, const uint8_t *extra, size_t len)
{
	const uint8_t *p;
	size_t have, i;

	if ((p = find_extra(extra, len, 1, &have)) == NULL)
		have = 0;
	for (i = 0; i < n; i++) {
		if (*fields[i] != UINT32_MAX)
			continue;
		if (p == NULL)
			continue;	/* exactly 4 GiB - 1 */
		if (have < 8)
			return -1;
		*fields[i] = get64(p);
		p += 8;
		have -= 8;
	}
	return 0;
}

static bool
name_climbs(const char *name, size_t len)
{
	size_t i, start = 0;

	if (len == 0 || name[0] == '/' || memchr(name, '\0', len) != NULL)
		return true;
	for (i = 0; i <= len; i++) {
		if (i < len && name[i] != '/')
			continue;
		if (i - start == 2 && memcmp(name + start, "..", 2) == 0)
			return true;
		start = i + 1;
	}
	return false;
}

/* One central directory entry at p with `left` bytes; its length, 0 if bad. */
static size_t
parse_central(const struct zip *z, const uint8_t *p, size_t left,
    struct zip_entry *e, struct report *r)
{
	uint64_t *fields[] = { &e->usize, &e->csize, &e->header };
	size_t name_len, extra_len, total;

	if (left < CENTRAL_SIZE || get32(p) != SIG_CENTRAL)
		goto damaged;
	name_len = get16(p + 28);
	extra_len = get16(p + 30);
	total = CENTRAL_SIZE + name_len + extra_len + get16(p + 32);
	if (total > left)
		goto damaged;
	e->flags = get16(p + 8);
	e->method = get16(p + 10);
	e->crc = get32(p + 16);
	e->csize = get32(p + 20);
	e->usize = get32(p + 24);
	e->header = get32(p + 42);
	e->name = (const char *)p + CENTRAL_SIZE;
	e->name_len = (uint16_t)name_len;
	if (widen(fields, 3, p + CENTRAL_SIZE + name_len, extra_len) == -1)
		goto damaged;
	if (name_climbs(e->name, name_len)) {
		report_say(r, CORRUPT, "bad record name '%.*s'", ZIP_NAME(e));
		return 0;
	}
	if (e->method == ZIP_STORED && e->csize != e->usize) {
		report_say(r, CORRUPT, "%.*s: %" PRIu64 " bytes stored, %" PRIu64
		    " announced", ZIP_NAME(e), e->csize, e->usize);
		return 0;
	}
	if (e->header > z->directory_at || e->csize > z->directory_at -
	    e->header) {
		report_say(r, CORRUPT, "%.*s lies outside the archive",
		    ZIP_NAME(e));
		return 0;
	}
	return total;
damaged:
	report_say(r, CORRUPT, "the central directory is damaged");
	return 0;
}

static int
by_position(const void *a, const void *b)
{
	const struct zip_entry *x = a, *y = b;

	return x->header < y->header ? -1 : x->header > y->header;
}

static int
name_compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int c = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return c != 0 ? c : a_len < b_len ? -1 : a_len > b_len;
}

static int
by_name(const void *a, const void *b)
{
	const struct zip_entry *x = *(struct zip_entry *const *)a;
	const struct zip_entry *y = *(struct zip_entry *const *)b;

	return name_compare(x->name, x->name_len, y->name, y->name_len);
}

static int
read_directory(struct zip *z, const struct end *end, struct report *r)
{
	size_t at = 0, used, i;

	if (end->directory_at > end->at ||
	    end->directory_size != end->at - end->directory_at) {
		report_say(r, CORRUPT, "the central directory does not end where "
		    "the end record starts");
		return -1;
	}
	if (end->n > end->directory_size / CENTRAL_SIZE) {
		report_say(r, CORRUPT, "%" PRIu64 " records do not fit into the "
		    "central directory", end->n);
		return -1;
	}
	if (end->directory_size > ZIP_DIRECTORY_MAX) {
		report_say(r, UNVERIFIED, "central directory of %" PRIu64
		    " bytes is above the limit", end->directory_size);
		return -1;
	}
	z->n = (size_t)end->n;
	z->directory_at = end->directory_at;
	z->directory_size = end->directory_size;
	z->directory = malloc((size_t)end->directory_size + 1);
	z->entries = calloc(z->n + 1, sizeof(*z->entries));
	z->by_name = calloc(z->n + 1, sizeof(struct zip_entry *));
	if (z->directory == NULL || z->entries == NULL || z->by_name == NULL) {
		report_say(r, UNVERIFIED, "out of memory");
		return -1;
	}
	if (zip_read(z, end->directory_at, z->directory,
	    (size_t)end->directory_size, r) == -1)
		return -1;
	for (i = 0; i < z->n; i++) {
		used = parse_central(z, z->directory + at,
		    (size_t)end->directory_size - at, &z->entries[i], r);
		if (used == 0)
			return -1;
		at += used;
	}
	if (at != end->directory_size) {
		report_say(r, CORRUPT, "the central directory is damaged");
		return -1;
	}
	return 0;
}

static int
index_names(struct zip *z, struct report *r)
{
	size_t i;

	qsort(z->entries, z->n, sizeof(*z->entries), by_position);
	z->no_crc = z->n > 0;
	for (i = 0; i < z->n; i++) {
		z->by_name[i] = &z->entries[i];
		if (z->entries[i].crc != 0)
			z->no_crc = false;
	}
	qsort(z->by_name, z->n, sizeof(*z->by_name), by_name);
	for (i = 1; i < z->n; i++)
		if (by_name(&z->by_name[i - 1], &z->by_name[i]) == 0) {
			report_say(r, CORRUPT, "two records are named %.*s",
			    ZIP_NAME(z->by_name[i]));
			return -1;
		}
	return 0;
}

/* The bytes between the data of a record and the next record. */
static int
check_descriptor(const struct zip *z, const struct zip_entry *e, uint64_t next,
    struct report *r)
{
	uint64_t at = e->data + e->csize, gap;
	uint8_t d[24], *p = d;
	bool wide;

	if (at > next)
		goto overlap;
	gap = next - at;
	if (!(e->flags & FLAG_DESCRIPTOR)) {
		if (gap == 0)
			return 0;
		goto overlap;
	}
	/* with or without signature, with 32-bit or 64-bit sizes */
	if (gap != 12 && gap != 16 && gap != 20 && gap != 24)
		goto overlap;
	if (zip_read(z, at, d, (size_t)gap, r) == -1)
		return -1;
	wide = gap >= 20;
	if (gap == 16 || gap == 24) {
		if (get32(p) != SIG_DESCRIPTOR)
			goto damaged;
		p += 4;
	}
	if (get32(p) != e->crc ||
	    (wide ? get64(p + 4) : get32(p + 4)) != e->csize ||
	    (wide ? get64(p + 12) : get32(p + 8)) != e->usize)
		goto damaged;
	return 0;
overlap:
	report_say(r, CORRUPT, "%.*s (%" PRIu64 " bytes) does not end where the "
	    "next record starts", ZIP_NAME(e), e->csize);
	return -1;
damaged:
	report_say(r, CORRUPT, "%.*s: its descriptor and the central directory "
	    "disagree", ZIP_NAME(e));
	return -1;
}

/* Sizes and CRC of a local header: zero when a descriptor follows, otherwise
 * those of the central directory. */
static bool
local_agrees(const struct zip_entry *e, const uint8_t *h, const uint8_t *extra,
    size_t extra_len)
{
	uint64_t usize = get32(h + 22), csize = get32(h + 18);
	uint64_t *fields[] = { &usize, &csize };

	if (get16(h + 6) != e->flags || get16(h + 8) != e->method)
		return false;
	if (widen(fields, 2, extra, extra_len) == -1)
		return false;
	if (e->flags & FLAG_DESCRIPTOR)
		return (get32(h + 14) == 0 || get32(h + 14) == e->crc) &&
		    (csize == 0 || csize == e->csize) &&
		    (usize == 0 || usize == e->usize);
	return get32(h + 14) == e->crc && csize == e->csize &&
	    usize == e->usize;
}

static int
check_local(const struct zip *z, struct zip_entry *e, uint8_t *window,
    size_t window_size, struct report *r)
{
	size_t have = window_size, name_len, extra_len;
	uint64_t left = z->directory_at - e->header;
	uint8_t *h = window, *big = NULL;
	int rc = -1;

	if (have > left)
		have = (size_t)left;
	if (have < LOCAL_SIZE || zip_read(z, e->header, h, have, r) == -1)
		goto damaged;
	if (get32(h) != SIG_LOCAL)
		goto damaged;
	name_len = get16(h + 26);
	extra_len = get16(h + 28);
	if (LOCAL_SIZE + name_len + extra_len > left)
		goto damaged;
	if (LOCAL_SIZE + name_len + extra_len > have) {
		have = LOCAL_SIZE + name_len + extra_len;
		if ((big = malloc(have)) == NULL) {
			report_say(r, UNVERIFIED, "out of memory");
			return -1;
		}
		h = big;
		if (zip_read(z, e->header, h, have, r) == -1)
			goto damaged;
	}
	if (name_len != e->name_len ||
	    memcmp(h + LOCAL_SIZE, e->name, name_len) != 0 ||
	    !local_agrees(e, h, h + LOCAL_SIZE + name_len, extra_len))
		goto damaged;
	e->data = e->header + LOCAL_SIZE + name_len + extra_len;
	rc = 0;
damaged:
	if (rc == -1)
		report_say(r, CORRUPT, "%.*s: its local header is damaged or "
		    "belongs to another file", ZIP_NAME(e));
	free(big);
	return rc;
}

/* Local headers, data and descriptors must follow one another without a gap. */
static int
check_tiling(struct zip *z, struct report *r)
{
	uint8_t window[512];
	uint64_t next;
	size_t i;

	for (i = 0; i < z->n; i++) {
		struct zip_entry *e = &z->entries[i];

		next = i + 1 < z->n ? e[1].header : z->directory_at;
		if (i == 0 && e->header != 0) {
			report_say(r, CORRUPT, "%" PRIu64 " bytes in front of the "
			    "first record", e->header);
			return -1;
		}
		if (check_local(z, e, window, sizeof(window), r) == -1 ||
		    check_descriptor(z, e, next, r) == -1)
			return -1;
	}
	if (z->n == 0) {
		report_say(r, INCOMPLETE, "an archive without records");
		return -1;
	}
	return 0;
}

int
zip_open(struct zip *z, struct input *in, uint64_t base, uint64_t size,
    struct report *r)
{
	struct end end = {0};
	size_t i;

	memset(z, 0, sizeof(*z));
	z->in = in;
	z->base = base;
	z->size = size;
	if (find_end(z, &end, r) == -1 || read_directory(z, &end, r) == -1 ||
	    index_names(z, r) == -1 || check_tiling(z, r) == -1)
		return -1;
	for (i = 0; i < z->n; i++) {
		const struct zip_entry *e = &z->entries[i];

		if (e->flags & FLAG_ENCRYPTED ||
		    (e->method != ZIP_STORED && e->method != ZIP_DEFLATED)) {
			report_say(r, UNVERIFIED, "%.*s: encryption or "
			    "compression method %u is not supported",
			    ZIP_NAME(e), e->method);
			return -1;
		}
	}
	return 0;
}

void
zip_close(struct zip *z)
{
	free(z->directory);
	free(z->entries);
	free(z->by_name);
	memset(z, 0, sizeof(*z));
}

struct zip_entry *
zip_find(const struct zip *z, const char *name, size_t len)
{
	size_t lo = 0, hi = z->n, mid;
	int c;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		c = name_compare(name, len, z->by_name[mid]->name,
		    z->by_name[mid]->name_len);
		if (c == 0)
			return z->by_name[mid];
		if (c < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}
