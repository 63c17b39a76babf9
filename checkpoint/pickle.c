/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pickle.c - the opcodes behind pickle_read(): one loop, no recursion, no name ever
 * looked up.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/input.h"
#include "checkpoint/pickle_vm.h"

/* A decimal line as a number, for protocol 0. */
static int
line_int(struct vm *vm, int64_t *out, bool *big)
{
	char text[32], *end;
	const char *line;
	size_t len;

	*big = false;
	if ((line = vm_take_line(vm, &len)) == NULL)
		return -1;
	if (len > 0 && line[len - 1] == 'L')
		len--;
	if (len == 0)
		return vm_fail(vm, PICKLE_MALFORMED, "not a number");
	if (len >= sizeof(text)) {
		*big = true;
		return 0;
	}
	memcpy(text, line, len);
	text[len] = '\0';
	errno = 0;
	*out = strtoll(text, &end, 10);
	*big = errno == ERANGE;
	if (*end != '\0')
		return vm_fail(vm, PICKLE_MALFORMED, "not a number");
	return 0;
}

static int
push_line_int(struct vm *vm, bool long_form)
{
	const uint8_t *at = vm->p;
	int64_t i = 0;
	bool big;

	if (line_int(vm, &i, &big) == -1)
		return -1;
	/* I00 and I01 are False and True. */
	if (!long_form && vm->p - at == 3 && at[0] == '0' && i <= 1)
		return vm_push(vm, vm_value_int(PICKLE_BOOL, i));
	return vm_push(vm, vm_value_int(big ? PICKLE_BIG : PICKLE_INT, i));
}

static int
push_line_float(struct vm *vm)
{
	struct pickle_value v = { .kind = PICKLE_FLOAT };
	const char *line;
	char text[64];
	size_t len;

	if ((line = vm_take_line(vm, &len)) == NULL)
		return -1;
	if (len == 0 || len >= sizeof(text))
		return vm_fail(vm, PICKLE_MALFORMED, "not a number");
	memcpy(text, line, len);
	text[len] = '\0';
	v.f = strtod(text, NULL);
	return vm_push(vm, v);
}

static int
push_binfloat(struct vm *vm)
{
	struct pickle_value v = { .kind = PICKLE_FLOAT };
	const uint8_t *p = vm_take(vm, 8);
	uint64_t bits = 0;
	int i;

	if (p == NULL)
		return -1;
	for (i = 0; i < 8; i++)
		bits = bits << 8 | p[i];
	memcpy(&v.f, &bits, sizeof(v.f));
	return vm_push(vm, v);
}

/* Little-endian two's complement of `width` bytes of length. */
static int
push_long(struct vm *vm, int width)
{
	const uint8_t *p = vm_take(vm, (uint64_t)width);
	uint64_t len, bits = 0, i;

	if (p == NULL)
		return -1;
	len = width == 1 ? *p : get32(p);
	if ((p = vm_take(vm, len)) == NULL)
		return -1;
	if (len > 8)
		return vm_push(vm, vm_value_int(PICKLE_BIG, 0));
	for (i = 0; i < len; i++)
		bits |= (uint64_t)p[i] << (8 * i);
	if (len > 0 && len < 8 && p[len - 1] & 0x80)
		bits |= ~0ull << (8 * len);
	return vm_push(vm, vm_value_int(PICKLE_INT, (int64_t)bits));
}

static int
push_global(struct vm *vm, struct pickle_value module, struct pickle_value name)
{
	struct pickle_value pair[2] = { module, name };

	if (module.kind != PICKLE_TEXT || name.kind != PICKLE_TEXT)
		return vm_fail(vm, PICKLE_MALFORMED, "a global without a name");
	return vm_push_node(vm, PICKLE_GLOBAL, pair, 2);
}

static int
line_value(struct vm *vm, struct pickle_value *v)
{
	size_t len;

	v->kind = PICKLE_TEXT;
	if ((v->s = vm_take_line(vm, &len)) == NULL)
		return -1;
	if (len > UINT32_MAX)
		return vm_fail(vm, PICKLE_LIMIT, "text of more than 4 GiB");
	v->len = (uint32_t)len;
	return 0;
}

static int
push_object(struct vm *vm, struct pickle_value callable,
    struct pickle_value args)
{
	struct pickle_node *node = vm_arena(vm, sizeof(*node));

	if (node == NULL || (node->object = vm_arena(vm, sizeof(*node->object)))
	    == NULL)
		return -1;
	node->object->callable = callable;
	node->object->args = args;
	return vm_push(vm, vm_value_node(PICKLE_OBJECT, node));
}

/* REDUCE, NEWOBJ (n = 2) and NEWOBJ_EX (n = 3, keyword arguments on top). */
static int
op_call(struct vm *vm, int n)
{
	struct pickle_value kw, args, callable;

	if ((n == 3 && vm_pop(vm, &kw) == -1) || vm_pop(vm, &args) == -1 ||
	    vm_pop(vm, &callable) == -1)
		return -1;
	return push_object(vm, callable, args);
}

/* INST: two lines and the marked values; OBJ: class and values behind a mark. */
static int
op_instance(struct vm *vm, bool from_lines)
{
	struct pickle_value module = {0}, name = {0}, args, callable;
	size_t at;

	if (from_lines) {
		if (line_value(vm, &module) == -1 || line_value(vm, &name) == -1 ||
		    vm_collect(vm, PICKLE_TUPLE) == -1 || vm_pop(vm, &args) == -1 ||
		    push_global(vm, module, name) == -1 ||
		    vm_pop(vm, &callable) == -1)
			return -1;
		return push_object(vm, callable, args);
	}
	if (vm_find_mark(vm, &at) == -1)
		return -1;
	if (at >= vm->n)
		return vm_fail(vm, PICKLE_MALFORMED, "an object without a class");
	callable = vm->stack[at];
	args = vm_value_node(PICKLE_TUPLE,
	    vm_node_new(vm, vm->stack + at + 1, vm->n - at - 1));
	if (args.node == NULL)
		return -1;
	vm->n = at - 1;
	return push_object(vm, callable, args);
}

static int
op_build(struct vm *vm)
{
	struct pickle_value state, *top;

	if (vm_pop(vm, &state) == -1)
		return -1;
	if (vm->n == 0)
		return vm_fail(vm, PICKLE_MALFORMED, "nothing on the stack");
	top = &vm->stack[vm->n - 1];
	if (top->kind < PICKLE_TUPLE || top->kind == PICKLE_MARK)
		return vm_fail(vm, PICKLE_MALFORMED, "a state for a plain value");
	if (top->node->object == NULL &&
	    (top->node->object = vm_arena(vm, sizeof(*top->node->object))) == NULL)
		return -1;
	top->node->object->state = state;
	return 0;
}

static int
op_persid(struct vm *vm, struct pickle_value id)
{
	struct pickle_value v;

	v = vm_value_node(PICKLE_PERSID, vm_node_new(vm, &id, 1));
	if (v.node == NULL || vm_grow(vm, &vm->out->persids,
	    &vm->out->cap_persids, vm->out->n_persids + 1) == -1)
		return -1;
	vm->out->persids[vm->out->n_persids++] = v;
	return vm_push(vm, v);
}

static int
op_pop(struct vm *vm, bool to_mark)
{
	size_t at;

	if (to_mark) {
		if (vm_find_mark(vm, &at) == -1)
			return -1;
		vm->n = at - 1;
		return 0;
	}
	if (vm->n == 0)
		return vm_fail(vm, PICKLE_MALFORMED, "nothing on the stack");
	vm->n--;
	return 0;
}

/* Text of protocol 0 without its quotes; escapes are kept as they stand. */
static struct pickle_value
unquoted(struct pickle_value v)
{
	if (v.len >= 2 && (v.s[0] == '\'' || v.s[0] == '"') &&
	    v.s[v.len - 1] == v.s[0]) {
		v.s++;
		v.len -= 2;
	}
	return v;
}

/* Opcodes of protocol 0 and 1 that read lines. */
static int
step_lines(struct vm *vm, uint8_t op)
{
	struct pickle_value a = {0}, b = {0};
	int64_t i = 0;
	bool big;

	switch (op) {
	case 'I':
		return push_line_int(vm, false);
	case 'L':
		return push_line_int(vm, true);
	case 'F':
		return push_line_float(vm);
	case 'S':
		return line_value(vm, &a) == -1 ? -1 : vm_push(vm, unquoted(a));
	case 'V':
		/* escapes are kept as they stand */
		return line_value(vm, &a) == -1 ? -1 : vm_push(vm, a);
	case 'P':
		return line_value(vm, &a) == -1 ? -1 : op_persid(vm, a);
	case 'c':
		if (line_value(vm, &a) == -1 || line_value(vm, &b) == -1)
			return -1;
		return push_global(vm, a, b);
	case 'i':
		return op_instance(vm, true);
	case 'p': case 'g':
		if (line_int(vm, &i, &big) == -1)
			return -1;
		if (big || i < 0)
			return vm_fail(vm, PICKLE_MALFORMED, "bad memo index");
		return op == 'p' ? vm_memo_put(vm, (uint64_t)i) :
		    vm_memo_get(vm, (uint64_t)i);
	}
	vm->p--;
	return vm_fail(vm, PICKLE_MALFORMED, "unknown opcode");
}

static int
step_values(struct vm *vm, uint8_t op)
{
	const uint8_t *p;

	switch (op) {
	case 'N':
		return vm_push(vm, vm_value_int(PICKLE_NONE, 0));
	case 0x88: case 0x89:
		return vm_push(vm, vm_value_int(PICKLE_BOOL, op == 0x88));
	case 'K':
		return (p = vm_take(vm, 1)) == NULL ? -1 :
		    vm_push(vm, vm_value_int(PICKLE_INT, *p));
	case 'M':
		return (p = vm_take(vm, 2)) == NULL ? -1 :
		    vm_push(vm, vm_value_int(PICKLE_INT, get16(p)));
	case 'J':
		return (p = vm_take(vm, 4)) == NULL ? -1 :
		    vm_push(vm, vm_value_int(PICKLE_INT, (int32_t)get32(p)));
	case 0x8a:
		return push_long(vm, 1);
	case 0x8b:
		return push_long(vm, 4);
	case 'G':
		return push_binfloat(vm);
	case 'X':
		return vm_push_counted(vm, PICKLE_TEXT, 4);
	case 0x8c:
		return vm_push_counted(vm, PICKLE_TEXT, 1);
	case 0x8d:
		return vm_push_counted(vm, PICKLE_TEXT, 8);
	case 'U':
		return vm_push_counted(vm, PICKLE_TEXT, 1);
	case 'T':
		return vm_push_counted(vm, PICKLE_TEXT, 4);
	case 'C':
		return vm_push_counted(vm, PICKLE_BYTES, 1);
	case 'B':
		return vm_push_counted(vm, PICKLE_BYTES, 4);
	case 0x8e: case 0x96:
		return vm_push_counted(vm, PICKLE_BYTES, 8);
	}
	return step_lines(vm, op);
}

static int
step_memo(struct vm *vm, uint8_t op)
{
	const uint8_t *p;

	switch (op) {
	case 'q':
		return (p = vm_take(vm, 1)) == NULL ? -1 : vm_memo_put(vm, *p);
	case 'r':
		return (p = vm_take(vm, 4)) == NULL ? -1 : vm_memo_put(vm, get32(p));
	case 0x94:
		return vm_memo_put(vm, vm->n_memo);
	case 'h':
		return (p = vm_take(vm, 1)) == NULL ? -1 : vm_memo_get(vm, *p);
	case 'j':
		return (p = vm_take(vm, 4)) == NULL ? -1 : vm_memo_get(vm, get32(p));
	}
	return step_values(vm, op);
}

static int
step(struct vm *vm, uint8_t op)
{
	struct pickle_value a, b;

	switch (op) {
	case '(':
		return vm_push(vm, vm_value_int(PICKLE_MARK, 0));
	case ')':
		return vm_push_node(vm, PICKLE_TUPLE, NULL, 0);
	case ']':
		return vm_push_node(vm, PICKLE_LIST, NULL, 0);
	case '}':
		return vm_push_node(vm, PICKLE_DICT, NULL, 0);
	case 0x8f:
		return vm_push_node(vm, PICKLE_SET, NULL, 0);
	case 't':
		return vm_collect(vm, PICKLE_TUPLE);
	case 'l':
		return vm_collect(vm, PICKLE_LIST);
	case 'd':
		return vm_collect(vm, PICKLE_DICT);
	case 0x91:
		return vm_collect(vm, PICKLE_SET);
	case 0x85: case 0x86: case 0x87:
		return vm_collect_tuple(vm, (size_t)op - 0x84);
	case 'a':
		return vm_extend_top(vm, 1, false);
	case 's':
		return vm_extend_top(vm, 2, true);
	case 'e': case 0x90:
		return vm_extend_marked(vm, false);
	case 'u':
		return vm_extend_marked(vm, true);
	case 'R': case 0x81:
		return op_call(vm, 2);
	case 0x92:
		return op_call(vm, 3);
	case 'o':
		return op_instance(vm, false);
	case 'b':
		return op_build(vm);
	case 0x93:
		if (vm_pop(vm, &b) == -1 || vm_pop(vm, &a) == -1)
			return -1;
		return push_global(vm, a, b);
	case 'Q':
		return vm_pop(vm, &a) == -1 ? -1 : op_persid(vm, a);
	case '0':
		return op_pop(vm, false);
	case '1':
		return op_pop(vm, true);
	case '2':
		return vm_pop(vm, &a) == -1 || vm_push(vm, a) == -1 ? -1 : vm_push(vm, a);
	case 0x95:
		return vm_take(vm, 8) == NULL ? -1 : 0;
	case 0x82: case 0x83: case 0x84: case 0x97: case 0x98:
		return vm_fail(vm, PICKLE_UNSUPPORTED,
		    "extension codes and outside buffers are not supported");
	}
	return step_memo(vm, op);
}

static int
run(struct vm *vm)
{
	const uint8_t *p;
	uint64_t count;

	for (count = 0; ; count++) {
		if (count > PICKLE_OPCODES_MAX)
			return vm_fail(vm, PICKLE_LIMIT, "too many opcodes");
		if ((p = vm_take(vm, 1)) == NULL)
			return -1;
		if (*p == '.')
			return vm_pop(vm, &vm->out->root);
		if (*p == 0x80) {
			if ((p = vm_take(vm, 1)) == NULL)
				return -1;
			if (*p > 5)
				return vm_fail(vm, PICKLE_UNSUPPORTED,
				    "a pickle protocol above 5");
			continue;
		}
		if (step(vm, *p) == -1)
			return -1;
	}
}

enum pickle_result
pickle_read(struct pickle *out, const void *data, size_t len, struct err *err)
{
	struct vm vm = { .out = out, .data = data, .p = data, .err = err };

	memset(out, 0, sizeof(*out));
	vm.end = vm.p + len;
	(void)run(&vm);
	out->used = (size_t)(vm.p - vm.data);
	free(vm.stack);
	free(vm.memo);
	return vm.rc;
}

bool
pickle_text_is(const struct pickle_value *v, const char *text)
{
	return v != NULL && v->kind == PICKLE_TEXT && v->len == strlen(text) &&
	    memcmp(v->s, text, v->len) == 0;
}

bool
pickle_is_global(const struct pickle_value *v, const char *module,
    const char *name)
{
	return v != NULL && v->kind == PICKLE_GLOBAL &&
	    pickle_text_is(&v->node->items[0], module) &&
	    pickle_text_is(&v->node->items[1], name);
}

const struct pickle_value *
pickle_get(const struct pickle_value *v, const char *key)
{
	const struct pickle_node *node;
	size_t i;

	if (v == NULL || (v->kind != PICKLE_DICT && v->kind != PICKLE_OBJECT))
		return NULL;
	node = v->node;
	if (v->kind == PICKLE_OBJECT && !node->pairs)
		return NULL;
	/* the last one wins, as in Python */
	for (i = node->n; i >= 2; i -= 2)
		if (pickle_text_is(&node->items[i - 2], key))
			return &node->items[i - 1];
	return NULL;
}

const struct pickle_value *
pickle_attr(const struct pickle_value *v, const char *name)
{
	const struct pickle_value *state, *found = NULL;
	uint32_t i;

	if (v == NULL || v->kind != PICKLE_OBJECT || v->node->object == NULL)
		return NULL;
	state = &v->node->object->state;
	if (state->kind == PICKLE_TUPLE)
		for (i = 0; i < state->node->n && found == NULL; i++)
			found = pickle_get(&state->node->items[i], name);
	else
		found = pickle_get(state, name);
	return found;
}
