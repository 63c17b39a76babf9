/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pickle_vm.h - the stack, memo and nodes of the machine that reads a pickle; only
 * for pickle.c and pickle_vm.c.
 *
 * Functions return 0, or -1 (NULL) with vm->rc and vm->err set.
 */
#ifndef HOLDFAST_CHECKPOINT_PICKLE_VM_H
#define HOLDFAST_CHECKPOINT_PICKLE_VM_H

#include "checkpoint/pickle.h"

struct vm {
	struct pickle		*out;
	const uint8_t		*data, *p, *end;
	struct pickle_value	*stack;
	size_t			 n, cap;
	struct pickle_value	*memo;
	size_t			 n_memo, cap_memo;
	struct err		*err;
	enum pickle_result	 rc;
};

/* Sets the result and "what at byte N"; returns -1. */
int	vm_fail(struct vm *, enum pickle_result, const char *what);
/* Zeroed memory that lives as long as the pickle. */
void	*vm_arena(struct vm *, size_t bytes);
/* Makes room for `need` values in a malloc'd array. */
int	vm_grow(struct vm *, struct pickle_value **array, size_t *cap,
	    size_t need);

int	vm_push(struct vm *, struct pickle_value);
int	vm_pop(struct vm *, struct pickle_value *);
/* The n bytes at the reading point, which moves behind them. */
const uint8_t *vm_take(struct vm *, uint64_t n);
/* The line at the reading point without its newline. */
const char *vm_take_line(struct vm *, size_t *len);

struct pickle_value vm_value_node(enum pickle_kind, struct pickle_node *);
struct pickle_value vm_value_int(enum pickle_kind, int64_t);
/* A new node with copies of n items. */
struct pickle_node *vm_node_new(struct vm *, const struct pickle_value *from,
	    size_t n);
int	vm_push_node(struct vm *, enum pickle_kind,
	    const struct pickle_value *from, size_t n);
/* A length field of `width` bytes, then that many bytes as text or bytes. */
int	vm_push_counted(struct vm *, enum pickle_kind, int width);

/* The index behind the topmost mark. */
int	vm_find_mark(struct vm *, size_t *at);
/* Replaces everything from the mark on, or the n topmost values, by one node. */
int	vm_collect(struct vm *, enum pickle_kind);
int	vm_collect_tuple(struct vm *, size_t n);
/* Adds everything from the mark on, or the n topmost values, to the container
 * below. */
int	vm_extend_marked(struct vm *, bool pairs);
int	vm_extend_top(struct vm *, size_t n, bool pairs);
int	vm_memo_put(struct vm *, uint64_t index);
int	vm_memo_get(struct vm *, uint64_t index);

#endif
