/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pickle_vm.c - what the opcodes of a pickle are made of: bounded stack, memo and
 * nodes out of one arena.
 */
#include <stdlib.h>
#include <string.h>

#include "checkpoint/input.h"
#include "checkpoint/pickle_vm.h"

#define BLOCK_SIZE	(64u << 10)

struct pickle_block {
	struct pickle_block	*next;
	size_t			 used, size;
	/* the bytes follow, aligned to 16 */
};

int
vm_fail(struct vm *vm, enum pickle_result rc, const char *what)
{
	vm->rc = rc;
	err_set(vm->err, rc == PICKLE_LIMIT ? ERR_LIMIT : ERR_FORMAT,
	    "%s at byte %zu", what, (size_t)(vm->p - vm->data));
	return -1;
}

static int
charge(struct vm *vm, size_t bytes)
{
	if (bytes > PICKLE_MEMORY_MAX - vm->out->memory)
		return vm_fail(vm, PICKLE_LIMIT, "pickle too large to look into");
	vm->out->memory += bytes;
	return 0;
}

void *
vm_arena(struct vm *vm, size_t bytes)
{
	struct pickle_block *b = vm->out->blocks;
	const size_t head = (sizeof(*b) + 15) & ~(size_t)15;
	size_t size;
	void *p;

	bytes = (bytes + 15) & ~(size_t)15;
	if (b == NULL || bytes > b->size - b->used) {
		size = bytes > BLOCK_SIZE ? bytes : BLOCK_SIZE;
		if (charge(vm, size + head) == -1)
			return NULL;
		if ((b = malloc(head + size)) == NULL) {
			vm_fail(vm, PICKLE_LIMIT, "out of memory");
			return NULL;
		}
		b->used = 0;
		b->size = size;
		b->next = vm->out->blocks;
		vm->out->blocks = b;
	}
	p = (char *)b + head + b->used;
	b->used += bytes;
	memset(p, 0, bytes);
	return p;
}

/* Makes room for one more value in a malloc'd array. */
int
vm_grow(struct vm *vm, struct pickle_value **array, size_t *cap, size_t need)
{
	size_t want = *cap ? *cap * 2 : 64;
	void *p;

	if (need <= *cap)
		return 0;
	if (want < need)
		want = need;
	if (want > PICKLE_MEMORY_MAX / sizeof(**array))
		return vm_fail(vm, PICKLE_LIMIT, "pickle too large to look into");
	if (charge(vm, (want - *cap) * sizeof(**array)) == -1)
		return -1;
	if ((p = realloc(*array, want * sizeof(**array))) == NULL)
		return vm_fail(vm, PICKLE_LIMIT, "out of memory");
	*array = p;
	*cap = want;
	return 0;
}

int
vm_push(struct vm *vm, struct pickle_value v)
{
	if (vm_grow(vm, &vm->stack, &vm->cap, vm->n + 1) == -1)
		return -1;
	vm->stack[vm->n++] = v;
	return 0;
}

int
vm_pop(struct vm *vm, struct pickle_value *v)
{
	if (vm->n == 0 || vm->stack[vm->n - 1].kind == PICKLE_MARK)
		return vm_fail(vm, PICKLE_MALFORMED, "nothing on the stack");
	*v = vm->stack[--vm->n];
	return 0;
}

/* The n bytes at the reading point. */
const uint8_t *
vm_take(struct vm *vm, uint64_t n)
{
	const uint8_t *p = vm->p;

	if (n > (uint64_t)(vm->end - vm->p)) {
		vm_fail(vm, PICKLE_TRUNCATED, "the pickle ends early");
		return NULL;
	}
	vm->p += n;
	return p;
}

/* The line at the reading point without its newline. */
const char *
vm_take_line(struct vm *vm, size_t *len)
{
	const uint8_t *p = vm->p, *nl;

	nl = memchr(p, '\n', (size_t)(vm->end - p));
	if (nl == NULL) {
		vm_fail(vm, PICKLE_TRUNCATED, "the pickle ends early");
		return NULL;
	}
	*len = (size_t)(nl - p);
	vm->p = nl + 1;
	return (const char *)p;
}

struct pickle_value
vm_value_node(enum pickle_kind kind, struct pickle_node *node)
{
	struct pickle_value v = { .kind = kind };

	v.node = node;
	return v;
}

struct pickle_value
vm_value_int(enum pickle_kind kind, int64_t i)
{
	struct pickle_value v = { .kind = kind };

	v.i = i;
	return v;
}

static int
push_text(struct vm *vm, enum pickle_kind kind, const void *s, uint64_t len)
{
	struct pickle_value v = { .kind = kind, .len = (uint32_t)len };

	if (s == NULL)
		return -1;
	if (len > UINT32_MAX)
		return vm_fail(vm, PICKLE_LIMIT, "text of more than 4 GiB");
	v.s = s;
	return vm_push(vm, v);
}

/* Length field of `width` bytes, then that many bytes as text or bytes. */
int
vm_push_counted(struct vm *vm, enum pickle_kind kind, int width)
{
	const uint8_t *p = vm_take(vm, (uint64_t)width);
	uint64_t len;

	if (p == NULL)
		return -1;
	len = width == 1 ? *p : width == 4 ? get32(p) : get64(p);
	return push_text(vm, kind, vm_take(vm, len), len);
}

/* A new node with n items copied from the stack at `from`. */
struct pickle_node *
vm_node_new(struct vm *vm, const struct pickle_value *from, size_t n)
{
	struct pickle_node *node = vm_arena(vm, sizeof(*node));

	if (node == NULL)
		return NULL;
	if (n > 0) {
		node->items = vm_arena(vm, n * sizeof(*node->items));
		if (node->items == NULL)
			return NULL;
		memcpy(node->items, from, n * sizeof(*from));
	}
	node->n = node->cap = (uint32_t)n;
	return node;
}

int
vm_push_node(struct vm *vm, enum pickle_kind kind,
    const struct pickle_value *from, size_t n)
{
	struct pickle_node *node = vm_node_new(vm, from, n);

	return node == NULL ? -1 : vm_push(vm, vm_value_node(kind, node));
}

/* Index behind the topmost mark. */
int
vm_find_mark(struct vm *vm, size_t *at)
{
	size_t i = vm->n;

	while (i > 0)
		if (vm->stack[--i].kind == PICKLE_MARK) {
			*at = i + 1;
			return 0;
		}
	return vm_fail(vm, PICKLE_MALFORMED, "no mark on the stack");
}

/* Replaces everything from the mark on by one node. */
int
vm_collect(struct vm *vm, enum pickle_kind kind)
{
	struct pickle_node *node;
	size_t at;

	if (vm_find_mark(vm, &at) == -1)
		return -1;
	if (kind == PICKLE_DICT && (vm->n - at) % 2 != 0)
		return vm_fail(vm, PICKLE_MALFORMED, "a key without a value");
	if ((node = vm_node_new(vm, vm->stack + at, vm->n - at)) == NULL)
		return -1;
	vm->n = at - 1;
	return vm_push(vm, vm_value_node(kind, node));
}

/* Replaces the n topmost values by a tuple. */
int
vm_collect_tuple(struct vm *vm, size_t n)
{
	struct pickle_node *node;
	size_t i;

	if (n > vm->n)
		return vm_fail(vm, PICKLE_MALFORMED, "nothing on the stack");
	for (i = vm->n - n; i < vm->n; i++)
		if (vm->stack[i].kind == PICKLE_MARK)
			return vm_fail(vm, PICKLE_MALFORMED, "nothing on the stack");
	if ((node = vm_node_new(vm, vm->stack + vm->n - n, n)) == NULL)
		return -1;
	vm->n -= n;
	return vm_push(vm, vm_value_node(PICKLE_TUPLE, node));
}

static bool
is_number(const struct pickle_value *v)
{
	return v->kind <= PICKLE_FLOAT;
}

static int
node_add(struct vm *vm, struct pickle_node *node, struct pickle_value v)
{
	struct pickle_value *items;
	size_t cap;

	if (node->n == node->cap) {
		cap = node->cap ? (size_t)node->cap * 2 : 4;
		if (cap > UINT32_MAX)
			return vm_fail(vm, PICKLE_LIMIT, "too many items");
		if ((items = vm_arena(vm, cap * sizeof(*items))) == NULL)
			return -1;
		if (node->n > 0)
			memcpy(items, node->items, node->n * sizeof(*items));
		node->items = items;
		node->cap = (uint32_t)cap;
	}
	node->items[node->n++] = v;
	return 0;
}

/* Adds the values from `from` to the container below `below`. */
static int
extend(struct vm *vm, size_t below, size_t from, bool pairs)
{
	const struct pickle_value *c;
	size_t i;

	if (below == 0)
		return vm_fail(vm, PICKLE_MALFORMED, "nothing to add to");
	c = &vm->stack[below - 1];
	if (c->kind != PICKLE_OBJECT &&
	    c->kind != (pairs ? PICKLE_DICT : PICKLE_LIST) &&
	    !(c->kind == PICKLE_SET && !pairs))
		return vm_fail(vm, PICKLE_MALFORMED, "nothing to add to");
	if (pairs && (vm->n - from) % 2 != 0)
		return vm_fail(vm, PICKLE_MALFORMED, "a key without a value");
	if (c->kind == PICKLE_OBJECT) {
		if (c->node->n > 0 && c->node->pairs != pairs)
			return vm_fail(vm, PICKLE_UNSUPPORTED, "a mixed container");
		c->node->pairs = pairs;
	}
	for (i = from; i < vm->n; i++) {
		if (!pairs && is_number(&vm->stack[i]) &&
		    c->node->n >= PICKLE_LIST_NUMBERS_MAX)
			continue;
		if (node_add(vm, c->node, vm->stack[i]) == -1)
			return -1;
	}
	return 0;
}

int
vm_extend_marked(struct vm *vm, bool pairs)
{
	size_t at;

	if (vm_find_mark(vm, &at) == -1 || extend(vm, at - 1, at, pairs) == -1)
		return -1;
	vm->n = at - 1;
	return 0;
}

int
vm_extend_top(struct vm *vm, size_t n, bool pairs)
{
	if (vm->n < n + 1)
		return vm_fail(vm, PICKLE_MALFORMED, "nothing on the stack");
	if (extend(vm, vm->n - n, vm->n - n, pairs) == -1)
		return -1;
	vm->n -= n;
	return 0;
}

int
vm_memo_put(struct vm *vm, uint64_t index)
{
	if (vm->n == 0 || vm->stack[vm->n - 1].kind == PICKLE_MARK)
		return vm_fail(vm, PICKLE_MALFORMED, "nothing to memoize");
	/* Writers number the memo from 0 without holes. */
	if (index > vm->n_memo + 65536)
		return vm_fail(vm, PICKLE_LIMIT, "memo index too large");
	if (vm_grow(vm, &vm->memo, &vm->cap_memo, (size_t)index + 1) == -1)
		return -1;
	while (vm->n_memo <= index)
		vm->memo[vm->n_memo++].kind = PICKLE_MARK;
	vm->memo[index] = vm->stack[vm->n - 1];
	return 0;
}

int
vm_memo_get(struct vm *vm, uint64_t index)
{
	if (index >= vm->n_memo || vm->memo[index].kind == PICKLE_MARK)
		return vm_fail(vm, PICKLE_MALFORMED, "memo index never stored");
	return vm_push(vm, vm->memo[index]);
}

void
pickle_free(struct pickle *p)
{
	struct pickle_block *b;

	while ((b = p->blocks) != NULL) {
		p->blocks = b->next;
		free(b);
	}
	free(p->persids);
	memset(p, 0, sizeof(*p));
}
