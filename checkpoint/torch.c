/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch.c - from pickle nodes to storages, named tensors and the step.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/torch.h"

#define CORRUPT		HOLDFAST_CHECKPOINT_CORRUPT
#define UNVERIFIED	HOLDFAST_CHECKPOINT_UNVERIFIED

struct elem_type {
	const char	*name;		/* of the storage class or the dtype */
	enum scan_elem	 elem;
	uint32_t	 size;
};

/* torch.<Name>Storage and torch.<dtype> */
static const struct elem_type elem_types[] = {
	{ "DoubleStorage", SCAN_F64, 8 },	{ "float64", SCAN_F64, 8 },
	{ "FloatStorage", SCAN_F32, 4 },	{ "float32", SCAN_F32, 4 },
	{ "HalfStorage", SCAN_F16, 2 },		{ "float16", SCAN_F16, 2 },
	{ "BFloat16Storage", SCAN_BF16, 2 },	{ "bfloat16", SCAN_BF16, 2 },
	{ "LongStorage", SCAN_NONE, 8 },	{ "int64", SCAN_NONE, 8 },
	{ "IntStorage", SCAN_NONE, 4 },		{ "int32", SCAN_NONE, 4 },
	{ "ShortStorage", SCAN_NONE, 2 },	{ "int16", SCAN_NONE, 2 },
	{ "CharStorage", SCAN_NONE, 1 },	{ "int8", SCAN_NONE, 1 },
	{ "ByteStorage", SCAN_NONE, 1 },	{ "uint8", SCAN_NONE, 1 },
	{ "BoolStorage", SCAN_NONE, 1 },	{ "bool", SCAN_NONE, 1 },
	/* complex: two floats a value */
	{ "ComplexFloatStorage", SCAN_F32, 8 },	{ "complex64", SCAN_F32, 8 },
	{ "ComplexDoubleStorage", SCAN_F64, 16 }, { "complex128", SCAN_F64, 16 },
	{ "complex32", SCAN_F16, 4 },
	{ "QInt8Storage", SCAN_NONE, 1 },	{ "qint8", SCAN_NONE, 1 },
	{ "QUInt8Storage", SCAN_NONE, 1 },	{ "quint8", SCAN_NONE, 1 },
	{ "QInt32Storage", SCAN_NONE, 4 },	{ "qint32", SCAN_NONE, 4 },
	{ "QUInt4x2Storage", SCAN_NONE, 1 },	{ "quint4x2", SCAN_NONE, 1 },
	{ "QUInt2x4Storage", SCAN_NONE, 1 },	{ "quint2x4", SCAN_NONE, 1 },
	{ "float8_e4m3fn", SCAN_F8_E4M3, 1 },
	{ "float8_e5m2", SCAN_F8_E5M2, 1 },
	{ "float8_e4m3fnuz", SCAN_F8_FNUZ, 1 },
	{ "float8_e5m2fnuz", SCAN_F8_FNUZ, 1 },
	{ "float8_e8m0fnu", SCAN_F8_E8M0, 1 },
	{ "uint16", SCAN_NONE, 2 },		{ "uint32", SCAN_NONE, 4 },
	{ "uint64", SCAN_NONE, 8 },
	{ NULL, SCAN_NONE, 0 }
};

static const struct elem_type *
find_elem(const struct pickle_value *name)
{
	size_t i;

	for (i = 0; elem_types[i].name != NULL; i++)
		if (pickle_text_is(name, elem_types[i].name))
			return &elem_types[i];
	return NULL;
}

/* FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv */
static size_t
hash(const char *key, size_t len)
{
	uint64_t h = 14695981039346656037ull;

	while (len-- > 0)
		h = (h ^ (uint8_t)*key++) * 1099511628211ull;
	return (size_t)h;
}

/* The slot of a key: holds its index + 1, or 0 where it would go. */
static size_t *
slot_of(const struct torch_model *m, const char *key, size_t len)
{
	size_t i = hash(key, len) & (m->index_size - 1), at;

	while ((at = m->index[i]) != 0) {
		const struct torch_storage *s = &m->storages[at - 1];

		if (s->key_len == len && memcmp(s->key, key, len) == 0)
			break;
		i = (i + 1) & (m->index_size - 1);
	}
	return &m->index[i];
}

struct torch_storage *
torch_find(const struct torch_model *m, const char *key, size_t len)
{
	size_t at;

	if (m->index_size == 0 || (at = *slot_of(m, key, len)) == 0)
		return NULL;
	return &m->storages[at - 1];
}

/* ('storage', torch.FloatStorage, key, location, numel[, view]) */
static bool
parse_persid(const struct pickle_value *v, struct torch_storage *s)
{
	const struct pickle_value *id, *type, *name;
	const struct elem_type *elem;

	memset(s, 0, sizeof(*s));
	id = &v->node->items[0];
	if (id->kind != PICKLE_TUPLE || id->node->n < 5 ||
	    !pickle_text_is(&id->node->items[0], "storage") ||
	    id->node->items[2].kind != PICKLE_TEXT ||
	    id->node->items[4].kind != PICKLE_INT || id->node->items[4].i < 0)
		return false;
	s->key = id->node->items[2].s;
	s->key_len = id->node->items[2].len;
	s->numel = (uint64_t)id->node->items[4].i;
	type = &id->node->items[1];
	if (type->kind != PICKLE_GLOBAL)
		return true;
	name = &type->node->items[1];
	if (pickle_text_is(name, "UntypedStorage") ||
	    pickle_text_is(name, "_UntypedStorage")) {
		s->untyped = true;
		s->elem_size = 1;
	} else if ((elem = find_elem(name)) != NULL) {
		s->elem = elem->elem;
		s->elem_size = elem->size;
	}
	return true;
}

static int
add_storage(struct torch_model *m, const struct pickle_value *v,
    struct report *r)
{
	const struct pickle_value *id = &v->node->items[0];
	struct torch_storage s, *had;
	size_t *slot;

	/* the source text of a class, of the legacy format: ('module', class, ...) */
	if (id->kind == PICKLE_TUPLE && id->node->n > 0 &&
	    pickle_text_is(&id->node->items[0], "module"))
		return 0;
	if (!parse_persid(v, &s)) {
		report_say(r, UNVERIFIED,
		    "data.pkl: a persistent id that is no storage");
		return -1;
	}
	if (s.elem_size != 0 &&
	    __builtin_mul_overflow(s.numel, s.elem_size, &s.bytes)) {
		report_say(r, CORRUPT, "data.pkl: storage %.*s is impossibly large",
		    (int)s.key_len, s.key);
		return -1;
	}
	slot = slot_of(m, s.key, s.key_len);
	if (*slot == 0) {
		m->storages[m->n_storages++] = s;
		*slot = m->n_storages;
		return 0;
	}
	had = &m->storages[*slot - 1];
	if (had->bytes != s.bytes && had->elem_size && s.elem_size) {
		report_say(r, CORRUPT, "data.pkl: storage %.*s has two sizes",
		    (int)s.key_len, s.key);
		return -1;
	}
	return 0;
}

static int
collect_storages(struct torch_model *m, const struct pickle *p,
    struct report *r)
{
	size_t i;

	m->index_size = 64;
	while (m->index_size < 2 * p->n_persids)
		m->index_size *= 2;
	m->index = calloc(m->index_size, sizeof(*m->index));
	m->storages = calloc(p->n_persids + 1, sizeof(*m->storages));
	if (m->index == NULL || m->storages == NULL) {
		report_say(r, UNVERIFIED, "out of memory");
		return -1;
	}
	for (i = 0; i < p->n_persids; i++)
		if (add_storage(m, &p->persids[i], r) == -1)
			return -1;
	return 0;
}

struct walk {
	struct torch_model	*m;
	struct report		*r;
	char			 path[1024];
	size_t			 len;
	bool			 failed;
};

static void
path_push(struct walk *w, const char *part, size_t len)
{
	size_t room = sizeof(w->path) - 1 - w->len;
	int n;

	n = snprintf(w->path + w->len, room + 1, "%s%.*s", w->len ? "/" : "",
	    (int)(len < 512 ? len : 512), part);
	if (n > 0)
		w->len += (size_t)n < room ? (size_t)n : room;
}

static void
path_push_value(struct walk *w, const struct pickle_value *key)
{
	char text[24];

	if (key->kind == PICKLE_TEXT) {
		path_push(w, key->s, key->len);
		return;
	}
	snprintf(text, sizeof(text), "%" PRId64,
	    key->kind == PICKLE_INT ? key->i : 0);
	path_push(w, key->kind == PICKLE_INT ? text : "?",
	    key->kind == PICKLE_INT ? strlen(text) : 1);
}

/* First and count of the elements that offset, sizes and strides reach; false
 * when they make no sense. */
static bool
view_span(const struct pickle_value *offset, const struct pickle_value *size,
    const struct pickle_value *stride, uint64_t *first, uint64_t *count)
{
	uint64_t last = 0, reach;
	uint32_t i;
	bool empty = false;

	if (offset->kind != PICKLE_INT || offset->i < 0 ||
	    size->kind != PICKLE_TUPLE || stride->kind != PICKLE_TUPLE ||
	    size->node->n != stride->node->n)
		return false;
	for (i = 0; i < size->node->n; i++) {
		const struct pickle_value *n = &size->node->items[i];
		const struct pickle_value *s = &stride->node->items[i];

		if (n->kind != PICKLE_INT || s->kind != PICKLE_INT || n->i < 0 ||
		    s->i < 0)
			return false;
		if (n->i == 0) {
			empty = true;
			continue;
		}
		if (__builtin_mul_overflow((uint64_t)n->i - 1, (uint64_t)s->i,
		    &reach) || __builtin_add_overflow(last, reach, &last) ||
		    last > INT64_MAX)
			return false;
	}
	*first = (uint64_t)offset->i;
	*count = empty ? 0 : last + 1;
	return true;
}

static struct torch_tensor *
new_tensor(struct walk *w)
{
	struct torch_model *m = w->m;
	struct torch_tensor *t;
	size_t cap;

	if (m->n_tensors == m->cap_tensors) {
		cap = m->cap_tensors ? m->cap_tensors * 2 : 64;
		t = reallocarray(m->tensors, cap, sizeof(*t));
		if (t == NULL)
			goto fail;
		m->tensors = t;
		m->cap_tensors = cap;
	}
	t = &m->tensors[m->n_tensors];
	memset(t, 0, sizeof(*t));
	if ((t->name = strdup(w->len ? w->path : "(tensor)")) == NULL)
		goto fail;
	m->n_tensors++;
	return t;
fail:
	report_say(w->r, UNVERIFIED, "out of memory");
	w->failed = true;
	return NULL;
}

/* _rebuild_tensor*(storage, offset, size, stride, ...[, dtype at 6]) */
static void
add_tensor(struct walk *w, const struct pickle_node *args, bool typed_by_arg)
{
	struct torch_storage *s;
	const struct elem_type *elem = NULL;
	const struct pickle_value *id;
	struct torch_tensor *t;
	uint64_t first, count, bytes;

	if (args->n < 4 || args->items[0].kind != PICKLE_PERSID)
		return;
	id = &args->items[0].node->items[0];
	s = torch_find(w->m, id->node->items[2].s, id->node->items[2].len);
	if (s == NULL || (t = new_tensor(w)) == NULL)
		return;
	t->storage = (size_t)(s - w->m->storages);
	t->elem = s->elem;
	t->elem_size = s->elem_size;
	if (typed_by_arg && args->n > 6 && args->items[6].kind == PICKLE_GLOBAL)
		elem = find_elem(&args->items[6].node->items[1]);
	if (elem != NULL) {
		t->elem = elem->elem;
		t->elem_size = elem->size;
		if (s->untyped && s->elem == SCAN_NONE)
			s->elem = elem->elem;
	}
	if (!view_span(&args->items[1], &args->items[2], &args->items[3], &first,
	    &count)) {
		report_say(w->r, CORRUPT, "tensor %s: bad offset, size or stride",
		    t->name);
		return;
	}
	t->first = first;
	t->count = count;
	if (count == 0 || t->elem_size == 0)
		return;
	if (__builtin_add_overflow(first, count, &bytes) ||
	    __builtin_mul_overflow(bytes, t->elem_size, &bytes) ||
	    bytes > s->bytes) {
		report_say(w->r, CORRUPT, "tensor %s reaches behind the end of its "
		    "storage %.*s", t->name, (int)s->key_len, s->key);
		t->count = 0;
	}
}

static void walk_value(struct walk *, const struct pickle_value *, int depth);

static void
walk_items(struct walk *w, const struct pickle_node *node, bool pairs,
    bool named, int depth)
{
	size_t i, had = w->len, at = 0;
	char text[24];

	for (i = 0; i + (pairs ? 1 : 0) < node->n; i += pairs ? 2 : 1, at++) {
		const struct pickle_value *v = &node->items[i + (pairs ? 1 : 0)];

		if (v->kind < PICKLE_TUPLE || v->kind > PICKLE_OBJECT)
			continue;
		if (pairs) {
			path_push_value(w, &node->items[i]);
		} else if (named) {
			snprintf(text, sizeof(text), "%zu", at);
			path_push(w, text, strlen(text));
		}
		walk_value(w, v, depth + 1);
		w->len = had;
		w->path[had] = '\0';
	}
}

static bool
is_rebuild(const struct pickle_value *callable, bool *typed_by_arg)
{
	const struct pickle_value *name;

	if (callable->kind != PICKLE_GLOBAL ||
	    !pickle_text_is(&callable->node->items[0], "torch._utils"))
		return false;
	name = &callable->node->items[1];
	*typed_by_arg = pickle_text_is(name, "_rebuild_tensor_v3");
	return *typed_by_arg || pickle_text_is(name, "_rebuild_tensor_v2") ||
	    pickle_text_is(name, "_rebuild_tensor") ||
	    /* storage, offset, size, stride, quantizer, ... */
	    pickle_text_is(name, "_rebuild_qtensor");
}

static void
walk_value(struct walk *w, const struct pickle_value *v, int depth)
{
	const struct pickle_object *o;
	bool typed_by_arg;

	if (v->kind < PICKLE_TUPLE || v->kind > PICKLE_OBJECT || w->failed ||
	    depth > TORCH_DEPTH_MAX || v->node->seen)
		return;
	v->node->seen = true;
	o = v->node->object;
	if (o != NULL && v->kind == PICKLE_OBJECT) {
		if (o->args.kind == PICKLE_TUPLE &&
		    is_rebuild(&o->callable, &typed_by_arg)) {
			add_tensor(w, o->args.node, typed_by_arg);
			return;
		}
		/* what an argument holds has the name of the object */
		if (o->args.kind == PICKLE_TUPLE)
			walk_items(w, o->args.node, false, false, depth);
	}
	if (o != NULL)
		walk_value(w, &o->state, depth + 1);
	walk_items(w, v->node, v->kind == PICKLE_DICT ||
	    (v->kind == PICKLE_OBJECT && v->node->pairs), true, depth);
}

int64_t
torch_step(const struct pickle_value *root)
{
	static const char *const keys[] = { "step", "global_step", "iteration",
	    "iter", "global_steps", "iter_num", NULL };
	const struct pickle_value *v;
	size_t i;

	for (i = 0; keys[i] != NULL; i++) {
		v = pickle_get(root, keys[i]);
		if (v != NULL && v->kind == PICKLE_INT && v->i >= 0 &&
		    v->i < (int64_t)1 << 53)
			return v->i;
	}
	/* fairseq */
	v = pickle_get(root, "optimizer_history");
	if (v != NULL && v->kind == PICKLE_LIST && v->node->n > 0) {
		v = pickle_get(&v->node->items[v->node->n - 1], "num_updates");
		if (v != NULL && v->kind == PICKLE_INT && v->i >= 0)
			return v->i;
	}
	return REPORT_UNKNOWN;
}

int
torch_collect(struct torch_model *m, const struct pickle *p, struct report *r)
{
	struct walk w = { .m = m, .r = r };

	memset(m, 0, sizeof(*m));
	m->step = torch_step(&p->root);
	if (collect_storages(m, p, r) == -1)
		return -1;
	walk_value(&w, &p->root, 0);
	return w.failed ? -1 : 0;
}

void
torch_free(struct torch_model *m)
{
	size_t i;

	for (i = 0; i < m->n_tensors; i++)
		free(m->tensors[i].name);
	free(m->tensors);
	free(m->storages);
	free(m->index);
	memset(m, 0, sizeof(*m));
}

bool
torch_inf_is_meant(const char *name)
{
	static const char *const words[] = { "mask", "alibi", "amax", "best",
	    "min_val", "max_val", NULL };
	const char *last = strrchr(name, '/');
	size_t i;

	for (i = 0; words[i] != NULL; i++)
		if (strcasestr(last ? last : name, words[i]) != NULL)
			return true;
	return false;
}
