/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_torch_zip.c - torch.save since PyTorch 1.6: a ZIP archive with data.pkl
 * and one record of raw bytes a storage.
 *
 * Valid means: the archive is sound (zip.h), data.pkl can be read and every
 * storage it names is there with exactly its size, every tensor lies inside its
 * storage, every record has its CRC32 (torch.load checks none), and no
 * floating-point tensor holds NaN or infinity.  An archive in which all CRCs are 0
 * was saved without them; that is no damage.
 */
#include <inttypes.h>
#include <isa-l.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/peek.h"
#include "checkpoint/tensors.h"
#include "checkpoint/torch.h"
#include "checkpoint/zip.h"

#define CORRUPT		HOLDFAST_CHECKPOINT_CORRUPT
#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE
#define UNVERIFIED	HOLDFAST_CHECKPOINT_UNVERIFIED

#define PICKLE_BYTES_MAX	(64u << 20)	/* of data.pkl */

struct archive {
	struct zip		 zip;
	struct report		*r;
	const struct check	*check;
	const struct zip_entry	*data_pkl;
	size_t			 prefix_len;	/* "archive/" */
	struct buf		 bytes;		/* of data.pkl */
	struct pickle		 pickle;
	struct torch_model	 model;
	bool			 interpreted;	/* model is filled */
	bool			 big_endian;
	bool			*hit;		/* a storage: not all is finite */
	const struct zip_entry	**planned;	/* records of the pass, in order */
	size_t			 n_planned;
};

/* Without data.pkl: of torch.save all the same, by its storages. */
static bool
lost_data_pkl(const struct archive *a)
{
	static const char first[] = "/data/0";
	const size_t len = sizeof(first) - 1;
	size_t i;

	for (i = 0; i < a->zip.n; i++)
		if (a->zip.entries[i].name_len > len &&
		    memcmp(a->zip.entries[i].name + a->zip.entries[i].name_len -
		    len, first, len) == 0)
			return true;
	return false;
}

/* The record "PREFIX/data.pkl" with one slash; there must be exactly one. */
static int
find_data_pkl(struct archive *a)
{
	static const char name[] = "/data.pkl";
	const size_t len = sizeof(name) - 1;
	size_t i;

	for (i = 0; i < a->zip.n; i++) {
		const struct zip_entry *e = &a->zip.entries[i];

		if (e->name_len < len || memcmp(e->name + e->name_len - len, name,
		    len) != 0 ||
		    memchr(e->name, '/', e->name_len - len) != NULL)
			continue;
		if (a->data_pkl != NULL) {
			report_say(a->r, CORRUPT, "two data.pkl records");
			return -1;
		}
		a->data_pkl = e;
	}
	if (a->data_pkl == NULL) {
		if (lost_data_pkl(a))
			report_say(a->r, INCOMPLETE, "data.pkl is missing");
		report_say(a->r, UNVERIFIED,
		    "a zip archive without data.pkl: not from torch.save");
		return -1;
	}
	a->prefix_len = a->data_pkl->name_len - len + 1;
	return 0;
}

/* The record PREFIX + name + key; NULL when there is none. */
static struct zip_entry *
find_record(const struct archive *a, const char *name, const char *key,
    size_t key_len)
{
	struct zip_entry *e;
	struct buf path = {0};

	if (buf_append(&path, a->data_pkl->name, a->prefix_len) == -1 ||
	    buf_puts(&path, name) == -1 ||
	    buf_append(&path, key, key_len) == -1) {
		buf_fini(&path);
		return NULL;
	}
	e = zip_find(&a->zip, path.data, path.len);
	buf_fini(&path);
	return e;
}

static int
read_byteorder(struct archive *a)
{
	struct zip_entry *e = find_record(a, "byteorder", "", 0);
	struct buf text = {0};
	int rc = -1;

	if (e == NULL)
		return 0;
	if (zip_load(&a->zip, e, 64, &text, a->r) == -1)
		goto out;
	if (text.len == 3 && memcmp(text.data, "big", 3) == 0) {
		a->big_endian = true;
		report_note(a->r, "big-endian: not searched for NaN");
	} else if (text.len != 6 || memcmp(text.data, "little", 6) != 0) {
		report_say(a->r, CORRUPT, "%.*s is neither little nor big",
		    ZIP_NAME(e));
		goto out;
	}
	rc = 0;
out:
	buf_fini(&text);
	return rc;
}

/* Reads data.pkl; what cannot be interpreted leaves the archive's own checks. */
static int
read_pickle(struct archive *a)
{
	struct err err = {0};
	enum pickle_result rc;

	if (a->data_pkl->usize > PICKLE_BYTES_MAX) {
		report_say(a->r, UNVERIFIED, "data.pkl of %" PRIu64
		    " bytes is too large to look into", a->data_pkl->usize);
		return 0;
	}
	if (zip_load(&a->zip, a->data_pkl, PICKLE_BYTES_MAX, &a->bytes, a->r)
	    == -1)
		return -1;
	rc = pickle_read(&a->pickle, a->bytes.data, a->bytes.len, &err);
	if (rc == PICKLE_TRUNCATED || rc == PICKLE_MALFORMED) {
		report_say(a->r, CORRUPT, "data.pkl: %s", err.text);
		return -1;
	}
	if (rc != PICKLE_OK) {
		report_say(a->r, UNVERIFIED, "data.pkl: %s", err.text);
		return 0;
	}
	if (a->pickle.used != a->bytes.len) {
		report_say(a->r, CORRUPT, "data.pkl: bytes behind its end");
		return -1;
	}
	if (torch_collect(&a->model, &a->pickle, a->r) == -1)
		return report_is_bad(a->r) ? -1 : 0;
	if (a->r->step == REPORT_UNKNOWN)
		a->r->step = a->model.step;
	a->interpreted = true;
	return 0;
}

/* Every storage of the pickle must be a record of exactly its size. */
static void
check_storages(struct archive *a)
{
	size_t i;

	for (i = 0; i < a->model.n_storages; i++) {
		const struct torch_storage *s = &a->model.storages[i];
		const struct zip_entry *e = find_record(a, "data/", s->key,
		    s->key_len);

		if (e == NULL)
			report_say(a->r, INCOMPLETE, "record data/%.*s is missing",
			    (int)s->key_len, s->key);
		else if (s->elem_size == 0)
			report_note(a->r, "storage %.*s is of a type not known",
			    (int)s->key_len, s->key);
		else if (e->usize != s->bytes)
			report_say(a->r, CORRUPT, "%.*s: %" PRIu64
			    " bytes, its tensors need %" PRIu64, ZIP_NAME(e),
			    e->usize, s->bytes);
	}
}

/* The storage a record holds, or NULL. */
static struct torch_storage *
storage_of(const struct archive *a, const struct zip_entry *e)
{
	size_t skip = a->prefix_len + 5;

	if (!a->interpreted || e->name_len <= skip ||
	    memcmp(e->name, a->data_pkl->name, a->prefix_len) != 0 ||
	    memcmp(e->name + a->prefix_len, "data/", 5) != 0)
		return NULL;
	return torch_find(&a->model, e->name + skip, e->name_len - skip);
}

struct record_pass {
	struct archive	*a;
	uint32_t	 crc;
	enum scan_elem	 elem;
	bool		 want_crc, hit;
};

static void
record_sink(void *arg, const uint8_t *data, size_t len)
{
	/* Halves of L1-sized pieces: the CRC's loads are still there for the scan. */
	const size_t piece = 16384;
	struct record_pass *p = arg;
	const struct check *check = p->a->check;
	size_t at, n;

	for (at = 0; at < len; at += n) {
		n = len - at < piece ? len - at : piece;
		if (p->want_crc)
			p->crc = crc32_gzip_refl(p->crc, data + at, n);
		if (p->elem != SCAN_NONE && !p->hit)
			p->hit = scan_any(p->elem, data + at, n);
	}
	p->a->r->bytes_read += len;
	if (check->progress != NULL)
		check->progress(check->progress_arg, len);
}

/* CRC32 and the search for non-finite values in one pass over a deflated record. */
static int
inflate_record(struct archive *a, const struct zip_entry *e)
{
	struct torch_storage *s = storage_of(a, e);
	struct record_pass p = { .a = a, .want_crc = !a->zip.no_crc };

	if (s != NULL && !a->big_endian)
		p.elem = s->elem;
	if (zip_stream(&a->zip, e, a->check->block, record_sink, &p, a->r) == -1)
		return -1;
	if (p.want_crc && p.crc != e->crc) {
		report_say(a->r, CORRUPT, "%.*s: CRC32 is %08x, should be %08x",
		    ZIP_NAME(e), p.crc, e->crc);
		return -1;
	}
	if (p.hit)
		a->hit[s - a->model.storages] = true;
	return 0;
}

/* Counts within the bytes [from, to) of a record. */
struct count_pass {
	uint64_t		 at, from, to;
	enum scan_elem		 elem;
	struct scan_counts	*counts;
};

static void
count_sink(void *arg, const uint8_t *data, size_t len)
{
	struct count_pass *p = arg;
	uint64_t lo = p->at > p->from ? p->at : p->from;
	uint64_t hi = p->at + len < p->to ? p->at + len : p->to;

	if (lo < hi)
		scan_count(p->elem, data + (lo - p->at), (size_t)(hi - lo),
		    p->counts);
	p->at += len;
}

static void
count_range(struct archive *a, const struct zip_entry *e, enum scan_elem elem,
    uint64_t from, uint64_t to, struct scan_counts *counts)
{
	struct count_pass p = { .from = from, .to = to, .elem = elem,
	    .counts = counts };
	struct zip_entry piece = *e;

	memset(counts, 0, sizeof(*counts));
	if (e->method == ZIP_STORED) {
		/* only the bytes asked for are read */
		piece.data += from;
		piece.usize = piece.csize = to - from;
		p.from = 0;
		p.to = to - from;
	}
	(void)zip_stream(&a->zip, &piece, a->check->block, count_sink, &p, a->r);
}

/* Names the tensors on storages that were hit.  Values no tensor covers (the
 * padding of a flat buffer) do not count. */
static void
name_tensors(struct archive *a)
{
	struct tensors found = {0};
	struct scan_counts counts;
	size_t i;

	for (i = 0; i < a->model.n_tensors; i++) {
		const struct torch_tensor *t = &a->model.tensors[i];
		const struct torch_storage *s = &a->model.storages[t->storage];
		const struct zip_entry *e;

		if (!a->hit[t->storage] || t->count == 0 ||
		    t->elem == SCAN_NONE)
			continue;
		e = find_record(a, "data/", s->key, s->key_len);
		if (e == NULL)
			continue;
		count_range(a, e, t->elem, t->first * t->elem_size,
		    (t->first + t->count) * t->elem_size, &counts);
		tensors_add(&found, t->name, t->count, &counts);
	}
	tensors_report(&found, a->r);
}

/* Adds a range for each stored record; data.pkl was read already. */
static int
plan(struct archive *a, struct pass_ranges *ranges)
{
	size_t i;

	a->planned = calloc(a->zip.n + 1, sizeof(*a->planned));
	if (a->planned == NULL)
		return -1;
	for (i = 0; i < a->zip.n; i++) {
		const struct zip_entry *e = &a->zip.entries[i];
		const struct torch_storage *s = storage_of(a, e);
		struct pass_range range = { .offset = a->zip.base + e->data,
		    .length = e->usize, .want_crc = !a->zip.no_crc };

		if (e == a->data_pkl || e->method != ZIP_STORED)
			continue;
		if (s != NULL && !a->big_endian)
			range.elem = s->elem;
		if (pass_add(ranges, &range) == -1)
			return -1;
		a->planned[a->n_planned++] = e;
	}
	return 0;
}

/* What the pass found, at its ranges from the first of this archive on. */
static int
conclude(struct archive *a, const struct pass_range *found)
{
	const struct torch_storage *s;
	size_t i;

	for (i = 0; i < a->n_planned; i++) {
		const struct zip_entry *e = a->planned[i];

		if (found[i].want_crc && found[i].crc != e->crc) {
			report_say(a->r, CORRUPT,
			    "%.*s: CRC32 is %08x, should be %08x", ZIP_NAME(e),
			    found[i].crc, e->crc);
			return -1;
		}
		if (found[i].hit && (s = storage_of(a, e)) != NULL)
			a->hit[s - a->model.storages] = true;
	}
	return 0;
}

static void
read_contents(struct archive *a)
{
	struct pass_ranges ranges = {0};
	size_t i;

	a->hit = calloc(a->model.n_storages + 1, sizeof(*a->hit));
	if (a->hit == NULL || plan(a, &ranges) == -1) {
		report_say(a->r, UNVERIFIED, "out of memory");
		goto out;
	}
	if (pass_run(a->zip.in, &ranges, a->check, a->r) == -1 ||
	    conclude(a, ranges.list) == -1)
		goto out;
	for (i = 0; i < a->zip.n; i++)
		if (&a->zip.entries[i] != a->data_pkl &&
		    a->zip.entries[i].method != ZIP_STORED &&
		    inflate_record(a, &a->zip.entries[i]) == -1)
			goto out;
	a->r->contents_read = true;
	name_tensors(a);
out:
	pass_ranges_fini(&ranges);
}

/* All but the contents; 0 when they may be read. */
static int
archive_open(struct archive *a, struct input *in, uint64_t base, uint64_t size)
{
	if (zip_open(&a->zip, in, base, size, a->r) == -1 ||
	    find_data_pkl(a) == -1)
		return -1;
	a->r->checksum = a->zip.no_crc ? REPORT_CHECKSUM_NONE :
	    REPORT_CHECKSUM_CRC32;
	if (a->zip.no_crc)
		report_note(a->r, "saved without checksums");
	if (read_byteorder(a) == -1 || read_pickle(a) == -1)
		return -1;
	if (a->interpreted)
		check_storages(a);
	return report_is_bad(a->r) ? -1 : 0;
}

static void
archive_close(struct archive *a)
{
	free(a->hit);
	free(a->planned);
	torch_free(&a->model);
	pickle_free(&a->pickle);
	buf_fini(&a->bytes);
	zip_close(&a->zip);
}

static void
check_archive(struct input *in, uint64_t base, uint64_t size,
    const struct check *check, struct report *r)
{
	struct archive a = { .r = r, .check = check };

	if (archive_open(&a, in, base, size) == 0 && !check->structure_only)
		read_contents(&a);
	archive_close(&a);
}

/* What becomes of an extent's ranges; the CRCs the pass is to find lie beside. */
struct extent_plan {
	size_t		 first;		/* range */
	bool		 inflate;	/* has deflated records */
};

struct extents_plan {
	struct pass_ranges	 ranges;
	uint32_t		*crcs;		/* of each range */
	size_t			 cap;
	struct extent_plan	*list;		/* one an extent, and the end */
	size_t			 archives, others;
};

/* Notes what the pass is to find in one archive, and lets go of the archive: there
 * may be a hundred thousand of them. */
static int
plan_extent(struct extents_plan *p, size_t i, struct archive *a)
{
	size_t first = p->ranges.n, k, cap;
	uint32_t *crcs;

	if (plan(a, &p->ranges) == -1)
		return -1;
	if (p->ranges.n > p->cap) {
		cap = p->ranges.n * 2;
		if ((crcs = reallocarray(p->crcs, cap, sizeof(*crcs))) == NULL)
			return -1;
		p->crcs = crcs;
		p->cap = cap;
	}
	for (k = 0; k < a->n_planned; k++)
		p->crcs[first + k] = a->planned[k]->crc;
	for (k = 0; k < a->zip.n; k++)
		if (a->zip.entries[k].method != ZIP_STORED)
			p->list[i].inflate = true;
	return 0;
}

static bool
extent_is_fine(const struct extents_plan *p, size_t i)
{
	size_t k;

	for (k = p->list[i].first; k < p->list[i + 1].first; k++)
		if (p->ranges.list[k].hit || (p->ranges.list[k].want_crc &&
		    p->ranges.list[k].crc != p->crcs[k]))
			return false;
	return !p->list[i].inflate;
}

/* Structure of one archive; its ranges are planned unless that is all.  Tensors that
 * are no archives are fine where none is: other serialisers and transforms exist. */
static void
open_extent(struct input *in, const struct extent *e, const struct check *check,
    struct report *r, struct extents_plan *p, size_t i)
{
	static const uint8_t zeroes[16];
	struct archive a = { .r = r, .check = check };
	uint8_t head[16];

	if (e->offset > in->size || e->length > in->size - e->offset) {
		report_say(r, INCOMPLETE, "the file ends inside an item");
		return;
	}
	if (e->length < sizeof(head) ||
	    input_read(in, e->offset, head, sizeof(head), r) == -1)
		return;
	if (memcmp(head, "PK\3\4", 4) != 0) {
		if (memcmp(head, zeroes, sizeof(head)) == 0)
			report_say(r, CORRUPT, "the item at byte %" PRIu64
			    " begins with zeroes", e->offset);
		else if (e->tensor)
			p->others++;
		return;
	}
	p->archives++;
	if (archive_open(&a, in, e->offset, e->length) == 0 &&
	    !check->structure_only && plan_extent(p, i, &a) == -1)
		report_say(r, UNVERIFIED, "out of memory");
	archive_close(&a);
}

void
torch_zip_check_extents(struct input *in, const struct extent *list, size_t n,
    const struct check *check, struct report *r)
{
	struct check alone = *check;
	struct extents_plan p = {0};
	size_t i;

	if ((p.list = calloc(n + 1, sizeof(*p.list))) == NULL) {
		report_say(r, UNVERIFIED, "out of memory");
		return;
	}
	/* they tiled the file when it was looked at */
	if (n > 0 && in->size > list[n - 1].offset + list[n - 1].length)
		report_say(r, INCOMPLETE, "the file became longer meanwhile");
	for (i = 0; i < n && !report_is_bad(r); i++) {
		p.list[i].first = p.ranges.n;
		open_extent(in, &list[i], check, r, &p, i);
		p.list[i + 1].first = p.ranges.n;
	}
	if (p.others > 0 && p.archives > 0)
		report_say(r, CORRUPT, "%zu of its items are no archives",
		    p.others);
	else if (p.others > 0)
		report_say(r, UNVERIFIED, "holds items of a kind that is not known");
	if (report_is_bad(r) || check->structure_only || p.archives == 0 ||
	    pass_run(in, &p.ranges, check, r) == -1)
		goto out;
	r->contents_read = true;
	/* which record or tensor it is, its archive tells once more */
	alone.digests = NULL;
	for (i = 0; i < n && !report_is_bad(r); i++)
		if (!extent_is_fine(&p, i))
			check_archive(in, list[i].offset, list[i].length, &alone,
			    r);
out:
	pass_ranges_fini(&p.ranges);
	free(p.crcs);
	free(p.list);
}

int
torch_zip_peek(struct input *in, struct peek *peek)
{
	struct report quiet;
	struct archive a = { .r = &quiet };
	int rc = -1;

	report_init(&quiet);
	if (zip_open(&a.zip, in, 0, in->size, &quiet) == 0 &&
	    find_data_pkl(&a) == 0 &&
	    zip_load(&a.zip, a.data_pkl, PICKLE_BYTES_MAX, &peek->bytes, &quiet)
	    == 0 && pickle_read(&peek->pickle, peek->bytes.data,
	    peek->bytes.len, NULL) == PICKLE_OK)
		rc = 0;
	zip_close(&a.zip);
	report_fini(&quiet);
	return rc;
}

static void
check_file(struct input *in, const struct check *check, struct report *r)
{
	check_archive(in, 0, in->size, check, r);
}

static bool
recognise(const struct item *it)
{
	/* local header of the first record; data.pkl is looked for later.  A
	 * .distcp file is many archives, of which .metadata tells the places. */
	return it->is_regular && !name_ends_with(it->name, ".distcp") &&
	    it->head_len >= 4 &&
	    memcmp(it->head, "PK\3\4", 4) == 0;
}

const struct format format_torch_zip = {
	.name = "torch_zip",
	.recognise = recognise,
	.check = check_file
};
