/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch_pickle.c - from a list of named tensors and values to nested dicts, pickled.
 *
 * Opcodes: Lib/pickle.py of CPython, protocol 2.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/holdfast-checkpoint.h"
#include "checkpoint/torch_write.h"

/* Slots of the pickle's memo: what occurs with every tensor is spelt out once. */
enum {
	MEMO_REBUILD_V2, MEMO_REBUILD_V3, MEMO_ORDERED, MEMO_STORAGE, MEMO_CPU,
	MEMO_ENCODE, MEMO_LATIN1, MEMO_UNTYPED, MEMO_CLASS,
	MEMO_DTYPE = MEMO_CLASS + 32, MEMO_COUNT = MEMO_DTYPE + 32
};

/* A storage class of its own, or an untyped storage and a dtype: torch/storage.py
 * (_dtype_to_storage_type_map, _new_dtypes). */
static const struct {
	unsigned char	 size;
	const char	*storage;	/* NULL: untyped */
	const char	*dtype;
} dtypes[] = {
	[HOLDFAST_CHECKPOINT_F64] = { 8, "DoubleStorage", NULL },
	[HOLDFAST_CHECKPOINT_F32] = { 4, "FloatStorage", NULL },
	[HOLDFAST_CHECKPOINT_F16] = { 2, "HalfStorage", NULL },
	[HOLDFAST_CHECKPOINT_BF16] = { 2, "BFloat16Storage", NULL },
	[HOLDFAST_CHECKPOINT_I64] = { 8, "LongStorage", NULL },
	[HOLDFAST_CHECKPOINT_I32] = { 4, "IntStorage", NULL },
	[HOLDFAST_CHECKPOINT_I16] = { 2, "ShortStorage", NULL },
	[HOLDFAST_CHECKPOINT_I8] = { 1, "CharStorage", NULL },
	[HOLDFAST_CHECKPOINT_U8] = { 1, "ByteStorage", NULL },
	[HOLDFAST_CHECKPOINT_BOOL] = { 1, "BoolStorage", NULL },
	[HOLDFAST_CHECKPOINT_C64] = { 8, "ComplexFloatStorage", NULL },
	[HOLDFAST_CHECKPOINT_C128] = { 16, "ComplexDoubleStorage", NULL },
	[HOLDFAST_CHECKPOINT_U16] = { 2, NULL, "uint16" },
	[HOLDFAST_CHECKPOINT_U32] = { 4, NULL, "uint32" },
	[HOLDFAST_CHECKPOINT_U64] = { 8, NULL, "uint64" },
	[HOLDFAST_CHECKPOINT_F8_E4M3FN] = { 1, NULL, "float8_e4m3fn" },
	[HOLDFAST_CHECKPOINT_F8_E5M2] = { 1, NULL, "float8_e5m2" },
	[HOLDFAST_CHECKPOINT_F8_E4M3FNUZ] = { 1, NULL, "float8_e4m3fnuz" },
	[HOLDFAST_CHECKPOINT_F8_E5M2FNUZ] = { 1, NULL, "float8_e5m2fnuz" },
	[HOLDFAST_CHECKPOINT_F8_E8M0FNU] = { 1, NULL, "float8_e8m0fnu" }
};

#define NONE	SIZE_MAX

struct node {
	const char	*key;
	size_t		 len;
	size_t		 parent, first, last, next;	/* NONE */
	size_t		 entry;				/* NONE: a dict */
	size_t		 record;
};

struct tree {
	struct node	*nodes;		/* [0] is the root */
	size_t		 n, cap;
	size_t		*index;		/* hash table; 0 is free */
	size_t		 index_size;	/* a power of two */
};

struct out {
	struct buf			*b;
	const struct torch_entry	*entries;
	const struct tree		*tree;
	bool				 known[MEMO_COUNT];
	bool				 failed;
};

size_t
torch_dtype_size(unsigned dtype)
{
	return dtype < sizeof(dtypes) / sizeof(dtypes[0]) ? dtypes[dtype].size : 0;
}

/* RFC 3629, and what Python takes: no surrogates. */
static bool
is_utf8(const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + len;
	unsigned c, more, least, i;

	while (p < end) {
		c = *p++;
		if (c < 0x80)
			continue;
		if (c < 0xc2 || c > 0xf4)
			return false;
		more = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
		least = more == 1 ? 0x80 : more == 2 ? 0x800 : 0x10000;
		if ((size_t)(end - p) < more)
			return false;
		c &= 0x3fu >> more;
		for (i = 0; i < more; i++, p++) {
			if ((*p & 0xc0) != 0x80)
				return false;
			c = c << 6 | (*p & 0x3f);
		}
		if (c < least || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
			return false;
	}
	return true;
}

static int
check_tensor(const struct torch_entry *e, struct err *err)
{
	uint64_t bytes = torch_dtype_size(e->dtype), span = 1;
	bool empty = false;
	unsigned i;

	if (bytes == 0)
		return err_set(err, ERR_FORMAT, "%.*s: %u is no dtype",
		    (int)e->name_len, e->name, e->dtype);
	if (e->ndim > TORCH_WRITE_DIMS_MAX)
		return err_set(err, ERR_LIMIT, "%.*s: %u dimensions (%d at most)",
		    (int)e->name_len, e->name, e->ndim, TORCH_WRITE_DIMS_MAX);
	for (i = 0; i < e->ndim; i++) {
		empty = empty || e->shape[i] == 0;
		if (e->shape[i] > 0 &&
		    (__builtin_mul_overflow(span, e->shape[i], &span) ||
		    span > INT64_MAX / 16))
			return err_set(err, ERR_LIMIT, "%.*s: the shape is too "
			    "large", (int)e->name_len, e->name);
	}
	bytes = empty ? 0 : bytes * span;
	return e->bytes == bytes ? 0 : err_set(err, ERR_FORMAT, "%.*s: %llu bytes "
	    "given, the shape takes %llu", (int)e->name_len, e->name,
	    (unsigned long long)e->bytes, (unsigned long long)bytes);
}

int
torch_entry_check(const struct torch_entry *e, struct err *err)
{
	if (e->name_len > TORCH_WRITE_NAME_MAX)
		return err_set(err, ERR_LIMIT, "a name of %zu bytes (%d at most)",
		    e->name_len, TORCH_WRITE_NAME_MAX);
	if (!is_utf8(e->name, e->name_len))
		return err_set(err, ERR_FORMAT, "a name is not UTF-8: %.*s",
		    (int)e->name_len, e->name);
	switch (e->kind) {
	case TORCH_TENSOR:
		return check_tensor(e, err);
	case TORCH_TEXT:
	case TORCH_BYTES:
		if (e->bytes > INT32_MAX / 2)
			return err_set(err, ERR_LIMIT, "%.*s: more than 1 GiB of "
			    "text or bytes", (int)e->name_len, e->name);
		if (e->kind == TORCH_TEXT && !is_utf8(e->data, e->bytes))
			return err_set(err, ERR_FORMAT, "%.*s: the text is not "
			    "UTF-8", (int)e->name_len, e->name);
		return 0;
	case TORCH_INT:
	case TORCH_FLOAT:
	case TORCH_BOOL:
	case TORCH_NONE:
		return 0;
	}
	return err_set(err, ERR_FORMAT, "%.*s: a value of unknown kind",
	    (int)e->name_len, e->name);
}

/* FNV-1a, 64 bits. */
static size_t
hash(size_t parent, const char *key, size_t len)
{
	uint64_t h = 14695981039346656037u ^ parent;

	while (len-- > 0)
		h = (h ^ (unsigned char)*key++) * 1099511628211u;
	return (size_t)(h ^ h >> 32);
}

/* The slot of a key: that of its node, or a free one. */
static size_t *
find(const struct tree *t, size_t parent, const char *key, size_t len)
{
	size_t at = hash(parent, key, len);
	const struct node *n;

	for (;; at++) {
		at &= t->index_size - 1;
		if (t->index[at] == 0)
			return &t->index[at];
		n = &t->nodes[t->index[at]];
		if (n->parent == parent && n->len == len &&
		    memcmp(n->key, key, len) == 0)
			return &t->index[at];
	}
}

static int
grow_index(struct tree *t)
{
	size_t i, size = t->index_size ? t->index_size * 2 : 256;
	size_t *index = calloc(size, sizeof(*index));

	if (index == NULL)
		return -1;
	free(t->index);
	t->index = index;
	t->index_size = size;
	for (i = 1; i < t->n; i++)
		*find(t, t->nodes[i].parent, t->nodes[i].key, t->nodes[i].len) = i;
	return 0;
}

/* A new node as the last child of parent; its index, or NONE when memory is short. */
static size_t
add_node(struct tree *t, size_t parent, const char *key, size_t len)
{
	struct node *nodes;
	size_t cap, i = t->n;

	if (t->n == t->cap) {
		cap = t->cap ? t->cap * 2 : 128;
		if ((nodes = reallocarray(t->nodes, cap, sizeof(*nodes))) == NULL)
			return NONE;
		t->nodes = nodes;
		t->cap = cap;
	}
	if (t->n * 2 >= t->index_size && grow_index(t) == -1)
		return NONE;
	t->nodes[i] = (struct node){ key, len, parent, NONE, NONE, NONE, NONE, 0 };
	t->n++;
	if (parent == NONE)
		return i;
	*find(t, parent, key, len) = i;
	if (t->nodes[parent].first == NONE)
		t->nodes[parent].first = i;
	else
		t->nodes[t->nodes[parent].last].next = i;
	t->nodes[parent].last = i;
	return i;
}

static int
add_entry(struct tree *t, const struct torch_entry *e, size_t entry,
    size_t record, char separator, struct err *err)
{
	const char *key = e->name, *end = e->name + e->name_len, *stop;
	size_t at = 0, next;
	int depth;

	for (depth = 0;; depth++, key = stop + 1) {
		stop = separator == '\0' ? NULL :
		    memchr(key, separator, (size_t)(end - key));
		next = *find(t, at, key, (size_t)((stop ? stop : end) - key));
		if (next != 0 && (stop == NULL || t->nodes[next].entry != NONE))
			return err_set(err, ERR_FORMAT, "two entries take the "
			    "place of %.*s", (int)((stop ? stop : end) - e->name),
			    e->name);
		if (next == 0)
			next = add_node(t, at, key,
			    (size_t)((stop ? stop : end) - key));
		if (next == NONE)
			return err_memory(err);
		if (stop == NULL)
			break;
		if (depth == TORCH_WRITE_DEPTH_MAX)
			return err_set(err, ERR_LIMIT, "%.*s: more than %d dicts "
			    "inside each other", (int)e->name_len, e->name,
			    TORCH_WRITE_DEPTH_MAX);
		at = next;
	}
	t->nodes[next].entry = entry;
	t->nodes[next].record = record;
	return 0;
}

static void
put(struct out *o, const void *data, size_t len)
{
	if (buf_append(o->b, data, len) == -1)
		o->failed = true;
}

static void
put_op(struct out *o, char op)
{
	put(o, &op, 1);
}

static void
put_le(struct out *o, uint64_t v, size_t bytes)
{
	uint8_t le[8];
	size_t i;

	for (i = 0; i < bytes; i++)
		le[i] = (uint8_t)(v >> (8 * i));
	put(o, le, bytes);
}

static void
put_text(struct out *o, const char *text, size_t len)
{
	put_op(o, 'X');
	put_le(o, len, 4);
	put(o, text, len);
}

static void
put_int(struct out *o, int64_t v)
{
	if (v >= 0 && v < 256) {
		put_op(o, 'K');
		put_le(o, (uint64_t)v, 1);
	} else if (v >= INT32_MIN && v <= INT32_MAX) {
		put_op(o, 'J');
		put_le(o, (uint64_t)v, 4);
	} else {
		put(o, "\x8a\x08", 2);		/* LONG1 */
		put_le(o, (uint64_t)v, 8);
	}
}

/* A float is big-endian here, alone of all. */
static void
put_real(struct out *o, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	put_op(o, 'G');
	put_le(o, __builtin_bswap64(bits), 8);
}

/* True when the memo has it; then it was fetched from there. */
static bool
recall(struct out *o, unsigned slot)
{
	if (o->known[slot]) {
		put_op(o, 'h');
		put_le(o, slot, 1);
	}
	return o->known[slot];
}

static void
remember(struct out *o, unsigned slot)
{
	o->known[slot] = true;
	put_op(o, 'q');
	put_le(o, slot, 1);
}

static void
put_global(struct out *o, unsigned slot, const char *module, const char *name)
{
	if (recall(o, slot))
		return;
	put_op(o, 'c');
	put(o, module, strlen(module));
	put_op(o, '\n');
	put(o, name, strlen(name));
	put_op(o, '\n');
	remember(o, slot);
}

static void
put_word(struct out *o, unsigned slot, const char *word)
{
	if (recall(o, slot))
		return;
	put_text(o, word, strlen(word));
	remember(o, slot);
}

static void
put_storage(struct out *o, const struct torch_entry *e, size_t record)
{
	const char *class = dtypes[e->dtype].storage;
	char key[24];
	int n = snprintf(key, sizeof(key), "%zu", record);

	put_op(o, '(');
	put_word(o, MEMO_STORAGE, "storage");
	if (class != NULL)
		put_global(o, MEMO_CLASS + e->dtype, "torch", class);
	else
		put_global(o, MEMO_UNTYPED, "torch.storage", "UntypedStorage");
	put_text(o, key, (size_t)n);
	put_word(o, MEMO_CPU, "cpu");
	/* of an untyped one the bytes are the elements */
	put_int(o, (int64_t)(class != NULL ? e->bytes / dtypes[e->dtype].size :
	    e->bytes));
	put(o, "tQ", 2);
}

static void
put_tensor(struct out *o, const struct torch_entry *e, size_t record)
{
	uint64_t stride[TORCH_WRITE_DIMS_MAX], next = 1;
	bool typed = dtypes[e->dtype].storage != NULL;
	unsigned i;

	for (i = e->ndim; i-- > 0; next *= e->shape[i] > 0 ? e->shape[i] : 1)
		stride[i] = next;
	put_global(o, typed ? MEMO_REBUILD_V2 : MEMO_REBUILD_V3, "torch._utils",
	    typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
	put_op(o, '(');
	put_storage(o, e, record);
	put_int(o, 0);				/* offset */
	put_op(o, '(');
	for (i = 0; i < e->ndim; i++)
		put_int(o, (int64_t)e->shape[i]);
	put(o, "t(", 2);
	for (i = 0; i < e->ndim; i++)
		put_int(o, (int64_t)stride[i]);
	put(o, "t\x89", 2);			/* requires_grad: False */
	put_global(o, MEMO_ORDERED, "collections", "OrderedDict");
	put(o, ")R", 2);			/* hooks: none */
	if (!typed)
		put_global(o, MEMO_DTYPE + e->dtype, "torch",
		    dtypes[e->dtype].dtype);
	put(o, "tR", 2);
}

/* As Python pickles bytes under protocol 2: text of the code points below 256, to be
 * encoded. */
static void
put_bytes(struct out *o, const uint8_t *data, size_t len)
{
	size_t i, high = 0;
	char two[2];

	for (i = 0; i < len; i++)
		high += data[i] >> 7;
	put_global(o, MEMO_ENCODE, "_codecs", "encode");
	put_op(o, 'X');
	put_le(o, len + high, 4);
	for (i = 0; i < len; i++) {
		two[0] = (char)(data[i] >> 7 ? 0xc0 | data[i] >> 6 : data[i]);
		two[1] = (char)(0x80 | (data[i] & 0x3f));
		put(o, two, 1u + (data[i] >> 7));
	}
	put_word(o, MEMO_LATIN1, "latin1");
	put(o, "\x86R", 2);			/* TUPLE2, REDUCE */
}

static void
put_entry(struct out *o, const struct torch_entry *e, size_t record)
{
	switch (e->kind) {
	case TORCH_TENSOR:
		put_tensor(o, e, record);
		break;
	case TORCH_INT:
		put_int(o, e->integer);
		break;
	case TORCH_FLOAT:
		put_real(o, e->real);
		break;
	case TORCH_BOOL:
		put_op(o, e->integer ? '\x88' : '\x89');
		break;
	case TORCH_NONE:
		put_op(o, 'N');
		break;
	case TORCH_TEXT:
		put_text(o, e->data, e->bytes);
		break;
	case TORCH_BYTES:
		put_bytes(o, e->data, e->bytes);
		break;
	}
}

/* As deep as names have separators, which is bounded. */
static void
put_dict(struct out *o, size_t dict)
{
	const struct node *n;
	size_t i;

	put(o, "}(", 2);
	for (i = o->tree->nodes[dict].first; i != NONE; i = n->next) {
		n = &o->tree->nodes[i];
		put_text(o, n->key, n->len);
		if (n->entry == NONE)
			put_dict(o, i);
		else
			put_entry(o, &o->entries[n->entry], n->record);
	}
	put_op(o, 'u');
}

int
torch_pickle(struct buf *b, const struct torch_entry *entries, size_t n,
    char separator, struct err *err)
{
	struct tree t = {0};
	struct out o = { .b = b, .entries = entries, .tree = &t };
	size_t i, record = 0;
	int rc = -1;

	if (add_node(&t, NONE, "", 0) == NONE) {
		err_memory(err);
		goto out;
	}
	for (i = 0; i < n; i++) {
		if (torch_entry_check(&entries[i], err) == -1 ||
		    add_entry(&t, &entries[i], i, record, separator, err) == -1)
			goto out;
		record += entries[i].kind == TORCH_TENSOR;
	}
	put(&o, "\x80\x02", 2);
	put_dict(&o, 0);
	put_op(&o, '.');
	rc = o.failed ? err_memory(err) : 0;
out:
	free(t.nodes);
	free(t.index);
	return rc;
}
