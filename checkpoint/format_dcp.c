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

#define CORRUPT		HOLDFAST_CHECKPOINT_CORRUPT
#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE
#define UNVERIFIED	HOLDFAST_CHECKPOINT_UNVERIFIED

#define METADATA_MAX	(64u << 20)

/* One item: where it lies. */
struct place {
	const struct pickle_value	*file;
	uint64_t			 offset, length;
};

static int
by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	uint32_t n = x->file->len < y->file->len ? x->file->len : y->file->len;
	int c = memcmp(x->file->s, y->file->s, n);

	if (c == 0 && x->file->len != y->file->len)
		return x->file->len < y->file->len ? -1 : 1;
	if (c != 0)
		return c;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->length < y->length ? -1 : x->length > y->length;
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
		part->extents[part->n_extents++].length = places[i].length;
		if (__builtin_add_overflow(places[i].offset, places[i].length,
		    &at))
			report_say(r, CORRUPT, "%s: impossible size", name);
	}
	/* errors other than absence are said when it is read */
	if (stat(part->path, &st) == -1) {
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

static void
read_storage_data(const struct item *it, const char *below,
    const struct pickle_value *data, struct parts *parts, struct report *r)
{
	struct place *places;
	size_t n = 0, i, end;

	if (data == NULL || data->kind != PICKLE_DICT) {
		report_say(r, UNVERIFIED, ".metadata does not tell its files");
		return;
	}
	places = calloc(data->node->n / 2 + 1, sizeof(*places));
	if (places == NULL) {
		parts->failed = true;
		return;
	}
	for (i = 0; i + 1 < data->node->n; i += 2) {
		if (read_place(&data->node->items[i + 1], &places[n]) == -1) {
			report_say(r, UNVERIFIED,
			    ".metadata: an item that is not understood");
			goto out;
		}
		n++;
	}
	qsort(places, n, sizeof(*places), by_place);
	for (i = 0; i < n; i = end) {
		for (end = i + 1; end < n && same_file(&places[i],
		    &places[end]); end++)
			;
		add_file(it, below, places + i, end - i, parts, r);
	}
	if (n == 0)
		report_say(r, UNVERIFIED, ".metadata tells no items");
out:
	free(places);
}

void
dcp_complete(const struct item *it, const char *below, struct parts *parts,
    struct report *r)
{
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
		report_say(r, err.errnum == ENOENT ? INCOMPLETE :
		    err.errnum == 0 ? UNVERIFIED :
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
		read_storage_data(it, below, pickle_attr(&p.root,
		    "storage_data"), parts, r);
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
	.complete = complete
};
