/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_dcp.c - torch.distributed.checkpoint: .metadata and __RANK_I.distcp files,
 * as torchtitan and others save them.
 *
 * .metadata is written last, by rename.  It tells which bytes of which file hold
 * each item; those extents must tile every file exactly, which finds missing and cut
 * files.  Each item is a torch.save archive of its own.  Source:
 * torch/distributed/checkpoint/{metadata,filesystem}.py.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/buf.h"
#include "common/file.h"
#include "checkpoint/folder.h"
#include "checkpoint/pickle.h"
#include "checkpoint/trouble.h"

#define CORRUPT		HOLDFAST_CHECKPOINT_CORRUPT
#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE
#define UNVERIFIED	HOLDFAST_CHECKPOINT_UNVERIFIED

#define METADATA_MAX	(64u << 20)

/* One item: where it lies. */
struct place {
	const struct pickle_value	*file, *item;
	uint64_t			 offset, length;
	bool				 tensor;
};

/* Everything .metadata tells, while it is read. */
struct metadata {
	const struct item	*it;
	const char		*below;
	struct parts		*parts;
	struct report		*r;
	struct place		*places;
	size_t			 n;
	bool			 transformed;	/* by compression or the like */
};

static int
compare_text(const struct pickle_value *a, const struct pickle_value *b)
{
	uint32_t n = a->len < b->len ? a->len : b->len;
	int c = memcmp(a->s, b->s, n);

	return c != 0 ? c : a->len < b->len ? -1 : a->len > b->len;
}

static int
by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int c = compare_text(x->file, y->file);

	if (c != 0)
		return c;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->length < y->length ? -1 : x->length > y->length;
}

static int
by_item(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return compare_text(x->item, y->item);
}

static bool
same_file(const struct place *a, const struct place *b)
{
	return a->file->len == b->file->len &&
	    memcmp(a->file->s, b->file->s, a->file->len) == 0;
}

/* A relative path that stays inside. */
static bool
is_safe(const struct pickle_value *file)
{
	return file->len > 0 && file->len < 4096 && file->s[0] != '/' &&
	    memchr(file->s, '\0', file->len) == NULL &&
	    memmem(file->s, file->len, "..", 2) == NULL;
}

static int
read_place(const struct pickle_value *info, struct place *p)
{
	const struct pickle_value *offset = pickle_attr(info, "offset");
	const struct pickle_value *length = pickle_attr(info, "length");

	p->file = pickle_attr(info, "relative_path");
	if (p->file == NULL || p->file->kind != PICKLE_TEXT ||
	    !is_safe(p->file) || offset == NULL || length == NULL ||
	    offset->kind != PICKLE_INT || length->kind != PICKLE_INT ||
	    offset->i < 0 || length->i < 0)
		return -1;
	p->offset = (uint64_t)offset->i;
	p->length = (uint64_t)length->i;
	return 0;
}

/* The n places of one file tile its bytes. */
static void
add_file(const struct item *it, const char *below, const struct place *places,
    size_t n, struct parts *parts, struct report *r)
{
	char *name = NULL;
	struct part *part;
	struct stat st;
	uint64_t at = 0;
	size_t i;

	if (asprintf(&name, "%s%s%.*s", below ? below : "", below ? "/" : "",
	    (int)places->file->len, places->file->s) == -1) {
		parts->failed = true;
		return;
	}
	if ((part = parts_add(parts, it->path, name)) == NULL ||
	    (part->extents = calloc(n, sizeof(*part->extents))) == NULL) {
		parts->failed = true;
		goto out;
	}
	for (i = 0; i < n; i++) {
		if (places[i].offset != at)
			report_say(r, CORRUPT, "%s: the items in .metadata do not "
			    "tile it", name);
		part->extents[part->n_extents].offset = places[i].offset;
		part->extents[part->n_extents].tensor = places[i].tensor;
		part->extents[part->n_extents++].length = places[i].length;
		if (__builtin_add_overflow(places[i].offset, places[i].length,
		    &at))
			report_say(r, CORRUPT, "%s: impossible size", name);
	}
	/* errors other than absence are said when it is read */
	if (stat(part->path, &st) == -1) {
		trouble_note(part->path);
		if (errno == ENOENT)
			report_say(r, INCOMPLETE, "%s is missing", name);
	} else if ((uint64_t)st.st_size < at) {
		report_say(r, INCOMPLETE, "%s has %" PRIu64 " bytes of %" PRIu64,
		    name, (uint64_t)st.st_size, at);
	} else if ((uint64_t)st.st_size > at) {
		report_say(r, CORRUPT, "%s has %" PRIu64 " bytes more than "
		    ".metadata knows", name, (uint64_t)st.st_size - at);
	}
out:
	free(name);
}

/* The product of the numbers in a torch.Size; false when it is none. */
static bool
size_product(const struct pickle_value *v, uint64_t *out)
{
	const struct pickle_node *node;
	uint64_t total = 1;
	uint32_t i;

	if (v != NULL && v->kind == PICKLE_OBJECT && v->node->object != NULL &&
	    v->node->object->args.kind == PICKLE_TUPLE &&
	    v->node->object->args.node->n == 1)
		v = &v->node->object->args.node->items[0];
	if (v == NULL || v->kind != PICKLE_TUPLE)
		return false;
	node = v->node;
	for (i = 0; i < node->n; i++)
		if (node->items[i].kind != PICKLE_INT || node->items[i].i < 0 ||
		    __builtin_mul_overflow(total, (uint64_t)node->items[i].i,
		    &total))
			return false;
	*out = total;
	return true;
}

/* The places of one item, marked as a tensor's if it is one; their number. */
static size_t
find_places(struct metadata *m, const struct pickle_value *item, bool tensor)
{
	size_t lo = 0, hi = m->n, mid, n = 0;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (compare_text(m->places[mid].item, item) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < m->n && compare_text(m->places[lo].item, item) == 0; lo++) {
		m->places[lo].tensor = tensor && !m->transformed;
		n++;
	}
	return n;
}

/* One item of state_dict_metadata: its pieces cover it, and all were written. */
static void
check_item(struct metadata *m, const struct pickle_value *item,
    const struct pickle_value *v)
{
	const struct pickle_value *chunks = pickle_attr(v, "chunks");
	uint64_t whole, piece, sum = 0;
	size_t have;
	uint32_t i;

	if (item->kind != PICKLE_TEXT)
		return;
	have = find_places(m, item, chunks != NULL);
	if (have == 0)
		report_say(m->r, INCOMPLETE, ".metadata: no file holds %.*s",
		    (int)(item->len < REPORT_NAME_MAX ? item->len :
		    REPORT_NAME_MAX), item->s);
	if (chunks == NULL || chunks->kind != PICKLE_LIST ||
	    !size_product(pickle_attr(v, "size"), &whole))
		return;
	for (i = 0; i < chunks->node->n; i++)
		if (!size_product(pickle_attr(&chunks->node->items[i], "sizes"),
		    &piece) || __builtin_add_overflow(sum, piece, &sum))
			return;
	if (have < chunks->node->n || sum < whole)
		report_say(m->r, INCOMPLETE, ".metadata: %zu of %u pieces of %.*s",
		    have, chunks->node->n, (int)(item->len < REPORT_NAME_MAX ?
		    item->len : REPORT_NAME_MAX), item->s);
}

static int
read_places(struct metadata *m, const struct pickle_node *data)
{
	const struct pickle_value *v;
	size_t i;

	m->places = calloc(data->n / 2 + 1, sizeof(*m->places));
	if (m->places == NULL) {
		m->parts->failed = true;
		return -1;
	}
	for (i = 0; i + 1 < data->n; i += 2) {
		struct place *p = &m->places[m->n];

		p->item = pickle_attr(&data->items[i], "fqn");
		if (p->item == NULL || p->item->kind != PICKLE_TEXT ||
		    read_place(&data->items[i + 1], p) == -1) {
			report_say(m->r, UNVERIFIED,
			    ".metadata: an item that is not understood");
			return -1;
		}
		v = pickle_attr(&data->items[i + 1], "transform_descriptors");
		m->transformed |= v != NULL && v->kind != PICKLE_NONE;
		m->n++;
	}
	if (m->n == 0)
		report_say(m->r, UNVERIFIED, ".metadata tells no items");
	return 0;
}

/* Files of ranks that .metadata does not know: of a larger world before. */
static void
note_strays(const struct metadata *m)
{
	struct names names = {0};
	size_t i, j;

	if (m->below == NULL)
		names = m->it->names;
	else
		folder_names(m->it, m->below, &names, m->r);
	for (i = 0; i < names.n; i++) {
		size_t len = strlen(names.list[i]);

		if (!name_ends_with(names.list[i], ".distcp"))
			continue;
		for (j = 0; j < m->n; j++)
			if (m->places[j].file->len == len &&
			    memcmp(m->places[j].file->s, names.list[i], len) == 0)
				break;
		if (j == m->n)
			report_note(m->r, "%s belongs to another save",
			    names.list[i]);
	}
	if (m->below != NULL)
		names_fini(&names);
}

static void
read_root(struct metadata *m, const struct pickle_value *root)
{
	const struct pickle_value *data = pickle_attr(root, "storage_data");
	const struct pickle_value *items = pickle_attr(root,
	    "state_dict_metadata");
	size_t i, end;

	if (data == NULL || data->kind != PICKLE_DICT) {
		report_say(m->r, UNVERIFIED, ".metadata does not tell its files");
		return;
	}
	if (read_places(m, data->node) == -1)
		goto out;
	qsort(m->places, m->n, sizeof(*m->places), by_item);
	for (i = 0; items != NULL && items->kind == PICKLE_DICT &&
	    i + 1 < items->node->n; i += 2)
		check_item(m, &items->node->items[i], &items->node->items[i + 1]);
	qsort(m->places, m->n, sizeof(*m->places), by_place);
	for (i = 0; i < m->n; i = end) {
		for (end = i + 1; end < m->n && same_file(&m->places[i],
		    &m->places[end]); end++)
			;
		add_file(m->it, m->below, m->places + i, end - i, m->parts, m->r);
	}
	note_strays(m);
out:
	free(m->places);
}

void
dcp_complete(const struct item *it, const char *below, struct parts *parts,
    struct report *r)
{
	struct metadata m = { .it = it, .below = below, .parts = parts,
	    .r = r };
	enum pickle_result rc;
	struct buf bytes = {0};
	struct err err = {0};
	struct pickle p;
	char *path = NULL;

	memset(&p, 0, sizeof(p));
	if (asprintf(&path, "%s%s%s/.metadata", it->path, below ? "/" : "",
	    below ? below : "") == -1) {
		path = NULL;
		parts->failed = true;
		goto out;
	}
	if (file_read(path, METADATA_MAX, &bytes, &err) == -1) {
		errno = err.errnum;
		trouble_note(path);
		report_say(r, err.errnum == ENOENT || err.code == ERR_FORMAT ?
		    INCOMPLETE : err.errnum == 0 ? UNVERIFIED :
		    HOLDFAST_CHECKPOINT_UNREADABLE, err.errnum == ENOENT ?
		    "no .metadata: the save did not finish" : ".metadata: %s",
		    err.text);
		goto out;
	}
	rc = pickle_read(&p, bytes.data != NULL ? bytes.data : "", bytes.len,
	    &err);
	if (rc == PICKLE_TRUNCATED)
		report_say(r, INCOMPLETE, ".metadata is cut off");
	else if (rc == PICKLE_MALFORMED || (rc == PICKLE_OK &&
	    p.used != bytes.len))
		report_say(r, CORRUPT, ".metadata: %s", rc == PICKLE_OK ?
		    "bytes behind its end" : err.text);
	else if (rc != PICKLE_OK)
		report_say(r, UNVERIFIED, ".metadata: %s", err.text);
	else
		read_root(&m, &p.root);
out:
	pickle_free(&p);
	buf_fini(&bytes);
	free(path);
}

static bool
recognise(const struct item *it)
{
	return it->is_dir && (names_has(&it->names, ".metadata") ||
	    folder_find(it, "__", ".distcp"));
}

static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	dcp_complete(it, NULL, parts, r);
}

const struct format format_dcp = {
	.name = "dcp",
	.recognise = recognise,
	.complete = complete,
	.inside = true,
	.marked = true
};
