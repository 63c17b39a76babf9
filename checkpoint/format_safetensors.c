/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_safetensors.c - u64 length, JSON header, data; the rules of
 * safetensors/src/tensor.rs: entries sorted by offset are contiguous from 0, each
 * is exactly shape times dtype long, and the file ends with the last one.
 *
 * No checksum exists: silent damage inside the data cannot be found here.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "checkpoint/format.h"
#include "checkpoint/hf_index.h"
#include "checkpoint/tensors.h"

#define CORRUPT		HOLDFAST_CHECKPOINT_CORRUPT
#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE
#define UNVERIFIED	HOLDFAST_CHECKPOINT_UNVERIFIED

#define HEADER_MAX	100000000u	/* the reference reader's own limit */
#define HEADER_READ_MAX	(32u << 20)	/* what is parsed here */
#define RANK_MAX	64

struct tensor {
	const char	*name;		/* borrowed from the JSON */
	uint64_t	 begin, end;
	enum scan_elem	 elem;
};

struct safetensors {
	struct input		*in;
	const struct check	*check;
	struct report		*r;
	uint64_t		 data_at;	/* of the data in the file */
	cJSON			*header;
	struct tensor		*tensors;
	size_t			 n;
};

static const struct {
	const char	*name;
	unsigned	 bits;
	enum scan_elem	 elem;
} dtypes[] = {
	{ "F64", 64, SCAN_F64 }, { "F32", 32, SCAN_F32 },
	{ "F16", 16, SCAN_F16 }, { "BF16", 16, SCAN_BF16 },
	{ "F8_E4M3", 8, SCAN_F8_E4M3 }, { "F8_E5M2", 8, SCAN_F8_E5M2 },
	{ "F8_E4M3FNUZ", 8, SCAN_F8_FNUZ }, { "F8_E5M2FNUZ", 8, SCAN_F8_FNUZ },
	{ "F8_E8M0", 8, SCAN_F8_E8M0 }, { "C64", 64, SCAN_F32 },
	{ "BOOL", 8, SCAN_NONE }, { "U8", 8, SCAN_NONE },
	{ "I8", 8, SCAN_NONE }, { "I16", 16, SCAN_NONE },
	{ "U16", 16, SCAN_NONE }, { "I32", 32, SCAN_NONE },
	{ "U32", 32, SCAN_NONE }, { "I64", 64, SCAN_NONE },
	{ "U64", 64, SCAN_NONE }, { "F6_E2M3", 6, SCAN_NONE },
	{ "F6_E3M2", 6, SCAN_NONE }, { "F4", 4, SCAN_NONE },
	{ NULL, 0, SCAN_NONE }
};

/* A JSON number that is a whole one from 0 to 2^53. */
static bool
whole(const cJSON *v, uint64_t *out)
{
	if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0) ||
	    v->valuedouble > 9007199254740992.0)
		return false;
	*out = (uint64_t)v->valuedouble;
	return (double)*out == v->valuedouble;
}

/* Bits of shape times dtype; false when the shape is none. */
static bool
shape_bits(const cJSON *shape, unsigned bits, uint64_t *out)
{
	const cJSON *v;
	uint64_t total = bits, dim;
	int rank = 0;

	if (!cJSON_IsArray(shape))
		return false;
	cJSON_ArrayForEach(v, shape) {
		if (rank++ >= RANK_MAX || !whole(v, &dim) ||
		    __builtin_mul_overflow(total, dim, &total))
			return false;
	}
	*out = total;
	return true;
}

static int
parse_tensor(struct safetensors *s, const cJSON *v, struct tensor *t)
{
	const char *dtype = json_str(v, "dtype", NULL);
	const cJSON *offsets;
	uint64_t bits;
	size_t i;

	t->name = v->string;
	offsets = cJSON_GetObjectItemCaseSensitive(v, "data_offsets");
	if (!cJSON_IsObject(v) || dtype == NULL ||
	    cJSON_GetArraySize(offsets) != 2 ||
	    !whole(cJSON_GetArrayItem(offsets, 0), &t->begin) ||
	    !whole(cJSON_GetArrayItem(offsets, 1), &t->end) ||
	    t->end < t->begin) {
		report_say(s->r, CORRUPT, "header: bad entry %.*s",
		    REPORT_NAME_MAX, t->name);
		return -1;
	}
	for (i = 0; dtypes[i].name != NULL; i++)
		if (strcmp(dtypes[i].name, dtype) == 0)
			break;
	if (dtypes[i].name == NULL) {
		report_say(s->r, UNVERIFIED, "%.*s: dtype %.16s is not known",
		    REPORT_NAME_MAX, t->name, dtype);
		return 0;
	}
	t->elem = dtypes[i].elem;
	if (!shape_bits(cJSON_GetObjectItemCaseSensitive(v, "shape"),
	    dtypes[i].bits, &bits) || bits % 8 != 0 ||
	    bits / 8 != t->end - t->begin) {
		report_say(s->r, CORRUPT, "%.*s: its shape does not fit its %"
		    PRIu64 " bytes", REPORT_NAME_MAX, t->name, t->end - t->begin);
		return -1;
	}
	return 0;
}

static int
by_begin(const void *a, const void *b)
{
	const struct tensor *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

static int
by_name(const void *a, const void *b)
{
	const struct tensor *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static bool
is_text_map(const cJSON *map)
{
	const cJSON *v;

	if (!cJSON_IsObject(map))
		return false;
	cJSON_ArrayForEach(v, map)
		if (!cJSON_IsString(v))
			return false;
	return true;
}

static int
parse_tensors(struct safetensors *s)
{
	const cJSON *v;
	size_t i;

	s->tensors = calloc((size_t)cJSON_GetArraySize(s->header) + 1,
	    sizeof(*s->tensors));
	if (s->tensors == NULL) {
		report_say(s->r, UNVERIFIED, "out of memory");
		return -1;
	}
	cJSON_ArrayForEach(v, s->header) {
		if (strcmp(v->string, "__metadata__") == 0) {
			if (!is_text_map(v)) {
				report_say(s->r, CORRUPT, "header: __metadata__ "
				    "holds more than text");
				return -1;
			}
			continue;
		}
		if (parse_tensor(s, v, &s->tensors[s->n]) == -1)
			return -1;
		s->n++;
	}
	qsort(s->tensors, s->n, sizeof(*s->tensors), by_name);
	for (i = 1; i < s->n; i++)
		if (by_name(&s->tensors[i - 1], &s->tensors[i]) == 0) {
			report_say(s->r, CORRUPT, "header: two entries %.*s",
			    REPORT_NAME_MAX, s->tensors[i].name);
			return -1;
		}
	qsort(s->tensors, s->n, sizeof(*s->tensors), by_begin);
	return 0;
}

/* Contiguous from 0 to the end of the file. */
static int
check_tiling(struct safetensors *s)
{
	uint64_t at = 0, have = s->in->size - s->data_at;
	size_t i;

	for (i = 0; i < s->n; i++) {
		if (s->tensors[i].begin != at) {
			report_say(s->r, CORRUPT, "%.*s starts at %" PRIu64
			    ", the one before ends at %" PRIu64, REPORT_NAME_MAX,
			    s->tensors[i].name, s->tensors[i].begin, at);
			return -1;
		}
		at = s->tensors[i].end;
	}
	if (at > have) {
		report_say(s->r, INCOMPLETE, "cut off: %" PRIu64
		    " bytes of data, its tensors need %" PRIu64, have, at);
		return -1;
	}
	if (at < have) {
		report_say(s->r, CORRUPT, "%" PRIu64 " bytes behind its end",
		    have - at);
		return -1;
	}
	return 0;
}

static int
read_header(struct safetensors *s)
{
	struct err err = {0};
	uint8_t len[8];
	uint64_t n;
	char *text;
	int rc = -1;

	if (s->in->size < 8) {
		report_say(s->r, INCOMPLETE, "only %" PRIu64 " bytes",
		    s->in->size);
		return -1;
	}
	if (input_read(s->in, 0, len, 8, s->r) == -1)
		return -1;
	n = get64(len);
	if (n == 0 || n > HEADER_MAX) {
		report_say(s->r, CORRUPT, "header of %" PRIu64 " bytes", n);
		return -1;
	}
	if (n > s->in->size - 8) {
		report_say(s->r, INCOMPLETE, "cut off inside its header");
		return -1;
	}
	if (n > HEADER_READ_MAX) {
		report_say(s->r, UNVERIFIED, "header of %" PRIu64
		    " bytes is too large to look into", n);
		return -1;
	}
	if ((text = malloc((size_t)n + 1)) == NULL) {
		report_say(s->r, UNVERIFIED, "out of memory");
		return -1;
	}
	text[n] = '\0';
	s->data_at = 8 + n;
	if (input_read(s->in, 8, text, (size_t)n, s->r) == -1)
		goto out;
	if (text[0] != '{' || memchr(text, '\0', (size_t)n) != NULL ||
	    json_parse(text, (size_t)n, &s->header, &err) == -1 ||
	    !cJSON_IsObject(s->header)) {
		report_say(s->r, CORRUPT, "header: %s",
		    err.code ? err.text : "not a JSON object");
		goto out;
	}
	rc = 0;
out:
	free(text);
	return rc;
}

/* How many of a tensor's values are not finite. */
static int
count_values(struct safetensors *s, const struct tensor *t,
    struct tensors *found)
{
	struct scan_counts counts = {0};
	uint64_t at, size = t->end - t->begin;
	size_t n;

	for (at = 0; at < size; at += n) {
		n = size - at < INPUT_BLOCK ? (size_t)(size - at) : INPUT_BLOCK;
		if (input_read(s->in, s->data_at + t->begin + at,
		    s->check->block, n, s->r) == -1)
			return -1;
		scan_count(t->elem, s->check->block, n, &counts);
	}
	tensors_add(found, t->name, size / scan_elem_size(t->elem), &counts);
	return 0;
}

int
safetensors_names(const char *path, struct names *names)
{
	struct safetensors s = {0};
	struct report quiet;
	struct input in;
	const cJSON *v;
	int rc = -1;

	report_init(&quiet);
	s.in = &in;
	s.r = &quiet;
	if (input_open(&in, path, &quiet) == -1)
		goto out;
	if (read_header(&s) == 0) {
		rc = 0;
		cJSON_ArrayForEach(v, s.header)
			if (strcmp(v->string, "__metadata__") != 0 &&
			    names_add(names, v->string) == -1)
				rc = -1;
		names_sort(names);
	}
	input_close(&in);
	cJSON_Delete(s.header);
out:
	report_fini(&quiet);
	return rc;
}

static void
read_tensors(struct safetensors *s)
{
	struct pass_ranges ranges = {0};
	struct tensors found = {0};
	size_t i;

	for (i = 0; i < s->n; i++) {
		const struct tensor *t = &s->tensors[i];
		struct pass_range range = { .offset = s->data_at + t->begin,
		    .length = t->end - t->begin, .elem = t->elem };

		if (pass_add(&ranges, &range) == -1) {
			report_say(s->r, UNVERIFIED, "out of memory");
			goto out;
		}
	}
	if (pass_run(s->in, &ranges, s->check, s->r) == -1)
		goto out;
	s->r->contents_read = true;
	for (i = 0; i < s->n; i++)
		if (ranges.list[i].hit &&
		    count_values(s, &s->tensors[i], &found) == -1)
			goto out;
	tensors_report(&found, s->r);
out:
	pass_ranges_fini(&ranges);
}

static void
check_file(struct input *in, const struct check *check, struct report *r)
{
	struct safetensors s = { .in = in, .check = check, .r = r };

	r->checksum = REPORT_CHECKSUM_NONE;
	report_note(r, "no checksum in this format");
	if (read_header(&s) == 0 && parse_tensors(&s) == 0 &&
	    check_tiling(&s) == 0 && !check->structure_only)
		read_tensors(&s);
	free(s.tensors);
	cJSON_Delete(s.header);
}

static bool
recognise(const struct item *it)
{
	uint64_t n;

	if (!it->is_regular || it->head_len < 9 || it->head[8] != '{')
		return false;
	n = get64(it->head);
	return n >= 2 && n <= HEADER_MAX;
}

const struct format format_safetensors = {
	.name = "safetensors",
	.recognise = recognise,
	.check = check_file
};
