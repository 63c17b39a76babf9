/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_torch_legacy.c - torch.save before PyTorch 1.6, and
 * _use_new_zipfile_serialization=False since.
 *
 * Five pickles (magic number, protocol 1001, system, object, list of storage
 * keys), then for each key an i64 count and the raw bytes; the file must end
 * there.  No checksum.  Source: torch/serialization.py, _legacy_save().
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/peek.h"
#include "checkpoint/tensors.h"
#include "checkpoint/torch.h"

#define CORRUPT		HOLDFAST_CHECKPOINT_CORRUPT
#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE
#define UNVERIFIED	HOLDFAST_CHECKPOINT_UNVERIFIED

#define HEAD_FIRST	(1u << 20)	/* bytes read for the pickles at first */
#define HEAD_MAX	(64u << 20)

/* The magic number 0x1950a86a20f9469cfc6c as a pickle: behind PROTO and its number,
 * and FRAME with a length of 8 bytes from protocol 4 on. */
static const uint8_t magic[13] = { 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20,
    0x6a, 0xa8, 0x50, 0x19, 0x2e };
static const uint8_t frame[9] = { 0x95, sizeof(magic) };

#define MAGIC_MIN	(2 + sizeof(magic))

struct legacy {
	struct input		*in;
	const struct check	*check;
	struct report		*r;
	uint8_t			*head;
	size_t			 head_len;
	struct pickle		 object, keys;
	struct torch_model	 model;
	uint64_t		*at;		/* data of each storage; 0: not met */
	struct pass_ranges	 ranges;	/* of the storages, in order of place */
	size_t			*range_of;	/* each storage's, and one more */
};

/* The bytes of the magic number's pickle, 0 when the head is none.  A head that ends
 * inside it counts, from its fourth byte on. */
static size_t
magic_length(const uint8_t *head, size_t len)
{
	uint8_t want[2 + sizeof(frame) + sizeof(magic)] = { 0x80 };
	size_t n = 2;

	if (len < 4 || head[1] < 2 || head[1] > 5)
		return 0;
	want[1] = head[1];
	if (head[1] >= 4) {
		memcpy(want + n, frame, sizeof(frame));
		n += sizeof(frame);
	}
	memcpy(want + n, magic, sizeof(magic));
	n += sizeof(magic);
	return memcmp(head, want, len < n ? len : n) == 0 ? n : 0;
}

/* Reads the five pickles from the head; the offset behind them in *end. */
static enum pickle_result
read_pickles(struct legacy *l, size_t *end, struct err *err)
{
	struct pickle small;
	enum pickle_result rc;
	size_t at = magic_length(l->head, l->head_len);
	int i;

	if (at > l->head_len)
		return PICKLE_TRUNCATED;

	for (i = 0; i < 2; i++) {	/* protocol, system */
		rc = pickle_read(&small, l->head + at, l->head_len - at, err);
		at += small.used;
		pickle_free(&small);
		if (rc != PICKLE_OK)
			return rc;
	}
	rc = pickle_read(&l->object, l->head + at, l->head_len - at, err);
	at += l->object.used;
	if (rc != PICKLE_OK)
		return rc;
	rc = pickle_read(&l->keys, l->head + at, l->head_len - at, err);
	*end = at + l->keys.used;
	return rc;
}

/* The pickles have no length in front of them: read more until they fit. */
static int
read_head(struct legacy *l, size_t *end)
{
	struct err err = {0};
	enum pickle_result rc;
	size_t want = HEAD_FIRST;

	for (;; want *= 4) {
		if (want > l->in->size)
			want = (size_t)l->in->size;
		free(l->head);
		l->head_len = want;
		if ((l->head = malloc(want)) == NULL) {
			report_say(l->r, UNVERIFIED, "out of memory");
			return -1;
		}
		if (input_read(l->in, 0, l->head, want, l->r) == -1)
			return -1;
		rc = read_pickles(l, end, &err);
		if (rc == PICKLE_OK)
			return 0;
		pickle_free(&l->object);
		pickle_free(&l->keys);
		if (rc != PICKLE_TRUNCATED || want == l->in->size ||
		    want >= HEAD_MAX)
			break;
	}
	if (rc == PICKLE_TRUNCATED && want == l->in->size)
		report_say(l->r, INCOMPLETE, "cut off inside its pickles");
	else if (rc == PICKLE_MALFORMED)
		report_say(l->r, CORRUPT, "pickle: %s", err.text);
	else
		report_say(l->r, UNVERIFIED, "pickle: %s", err.text);
	return -1;
}

/* One storage at *at: count, then raw bytes. */
static int
check_storage(struct legacy *l, const struct pickle_value *key, uint64_t *at)
{
	const struct torch_storage *s;
	struct pass_range range;
	uint8_t count[8];
	size_t index;

	s = key->kind != PICKLE_TEXT ? NULL :
	    torch_find(&l->model, key->s, key->len);
	if (s == NULL || s->elem_size == 0) {
		report_say(l->r, UNVERIFIED, "a storage of a type not known");
		return -1;
	}
	index = (size_t)(s - l->model.storages);
	if (l->in->size - *at < 8)
		goto cut;
	if (input_read(l->in, *at, count, 8, l->r) == -1)
		return -1;
	if (get64(count) != s->numel) {
		report_say(l->r, CORRUPT, "storage %.*s: %" PRIu64
		    " values, its tensors need %" PRIu64, (int)s->key_len, s->key,
		    get64(count), s->numel);
		return -1;
	}
	*at += 8;
	if (s->bytes > l->in->size - *at)
		goto cut;
	l->at[index] = *at;
	range = (struct pass_range){ .offset = *at, .length = s->bytes,
	    .elem = s->elem };
	if (pass_add(&l->ranges, &range) == -1) {
		report_say(l->r, UNVERIFIED, "out of memory");
		return -1;
	}
	l->range_of[index] = l->ranges.n;
	*at += s->bytes;
	return 0;
cut:
	report_say(l->r, INCOMPLETE, "cut off inside storage %.*s",
	    (int)s->key_len, s->key);
	return -1;
}

static int
check_storages(struct legacy *l, uint64_t at)
{
	const struct pickle_node *keys = l->keys.root.node;
	size_t i;

	if (l->keys.root.kind != PICKLE_LIST ||
	    keys->n != l->model.n_storages) {
		report_say(l->r, CORRUPT, "its list of storages does not fit its "
		    "tensors");
		return -1;
	}
	for (i = 0; i < keys->n; i++)
		if (check_storage(l, &keys->items[i], &at) == -1)
			return -1;
	if (at != l->in->size) {
		report_say(l->r, CORRUPT, "%" PRIu64 " bytes behind its end",
		    l->in->size - at);
		return -1;
	}
	return 0;
}

static void
name_tensors(struct legacy *l)
{
	struct tensors found = {0};
	size_t i, n;

	for (i = 0; i < l->model.n_tensors; i++) {
		const struct torch_tensor *t = &l->model.tensors[i];
		struct scan_counts counts = {0};
		size_t range = l->range_of[t->storage];
		uint64_t at, end;

		if (range == 0 || !l->ranges.list[range - 1].hit ||
		    t->elem == SCAN_NONE)
			continue;
		at = l->at[t->storage] + t->first * t->elem_size;
		end = at + t->count * t->elem_size;
		for (; at < end; at += n) {
			n = end - at < INPUT_BLOCK ? (size_t)(end - at) :
			    INPUT_BLOCK;
			if (input_read(l->in, at, l->check->block, n, l->r) == -1)
				return;
			scan_count(t->elem, l->check->block, n, &counts);
		}
		tensors_add(&found, t->name, t->count, &counts);
	}
	tensors_report(&found, l->r);
}

int
torch_legacy_peek(struct input *in, struct peek *peek)
{
	struct report quiet;
	struct legacy l = { .in = in, .r = &quiet };
	size_t end;
	int rc = -1;

	report_init(&quiet);
	if (in->size >= MAGIC_MIN && read_head(&l, &end) == 0) {
		/* the buffer goes to the caller with what points into it */
		peek->bytes.data = (char *)l.head;
		peek->bytes.len = peek->bytes.cap = l.head_len;
		peek->pickle = l.object;
		l.head = NULL;
		memset(&l.object, 0, sizeof(l.object));
		rc = 0;
	}
	pickle_free(&l.object);
	pickle_free(&l.keys);
	free(l.head);
	report_fini(&quiet);
	return rc;
}

static void
check_file(struct input *in, const struct check *check, struct report *r)
{
	struct legacy l = { .in = in, .check = check, .r = r };
	size_t end = 0;

	r->checksum = REPORT_CHECKSUM_NONE;
	report_note(r, "no checksum in this format");
	if (in->size < MAGIC_MIN) {
		report_say(r, INCOMPLETE, "cut off inside its first bytes");
		return;
	}
	if (read_head(&l, &end) == -1 ||
	    torch_collect(&l.model, &l.object, r) == -1)
		goto out;
	if (r->step == REPORT_UNKNOWN)
		r->step = l.model.step;
	l.at = calloc(l.model.n_storages + 1, sizeof(*l.at));
	l.range_of = calloc(l.model.n_storages + 1, sizeof(*l.range_of));
	if (l.at == NULL || l.range_of == NULL) {
		report_say(r, UNVERIFIED, "out of memory");
		goto out;
	}
	if (check_storages(&l, end) == 0 && !check->structure_only &&
	    pass_run(in, &l.ranges, check, r) == 0) {
		r->contents_read = true;
		name_tensors(&l);
	}
out:
	free(l.at);
	free(l.range_of);
	pass_ranges_fini(&l.ranges);
	torch_free(&l.model);
	pickle_free(&l.object);
	pickle_free(&l.keys);
	free(l.head);
}

static bool
recognise(const struct item *it)
{
	/* a shorter file that starts like this is one that was cut off */
	return it->is_regular && magic_length(it->head, it->head_len) > 0;
}

const struct format format_torch_legacy = {
	.name = "torch_legacy",
	.recognise = recognise,
	.check = check_file
};
