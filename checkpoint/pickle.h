/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pickle.h - reads a Python pickle (protocols 0 to 5) into plain nodes.
 *
 * No code is ever resolved: a GLOBAL stays a pair of names, a call stays a node
 * that holds the callable and its arguments.  Source of the opcodes: Lib/pickle.py
 * and Lib/pickletools.py of CPython.
 *
 * Text and bytes point into the buffer that was read, which must outlive the
 * pickle.  Graphs may be cyclic and nested to any depth: walkers need a limit and
 * the `seen` mark of the nodes.
 */
#ifndef HOLDFAST_CHECKPOINT_PICKLE_H
#define HOLDFAST_CHECKPOINT_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* Limits on what is taken from outside. */
#define PICKLE_MEMORY_MAX	(48u << 20)	/* bytes of nodes, stack and memo */
#define PICKLE_OPCODES_MAX	(64u << 20)
/* Plain numbers in a list are dropped from this count on. */
#define PICKLE_LIST_NUMBERS_MAX	4096

enum pickle_kind {
	PICKLE_NONE,
	PICKLE_BOOL,
	PICKLE_INT,
	PICKLE_BIG,	/* an integer of more than 64 bits */
	PICKLE_FLOAT,
	PICKLE_BYTES,
	PICKLE_TEXT,
	PICKLE_GLOBAL,	/* node->items: module, name */
	PICKLE_TUPLE,
	PICKLE_LIST,
	PICKLE_SET,
	PICKLE_DICT,	/* node->items: key, value, key, value ... */
	PICKLE_OBJECT,	/* node->object and items given to it later */
	PICKLE_PERSID,	/* node->items: the id */
	PICKLE_MARK	/* on the stack only */
};

struct pickle_node;

struct pickle_value {
	enum pickle_kind	kind;
	uint32_t		len;		/* TEXT, BYTES */
	union {
		int64_t		 i;		/* INT, BOOL */
		double		 f;
		const char	*s;		/* TEXT, BYTES; not terminated */
		struct pickle_node *node;	/* GLOBAL and all below it */
	};
};

struct pickle_object {
	struct pickle_value	callable, args, state;
};

struct pickle_node {
	uint32_t		 n, cap;
	struct pickle_value	*items;
	struct pickle_object	*object;	/* OBJECT; else NULL */
	bool			 pairs;		/* OBJECT: items are key, value */
	bool			 seen;		/* for walkers */
};

enum pickle_result {
	PICKLE_OK,
	PICKLE_TRUNCATED,	/* the bytes end before the STOP */
	PICKLE_MALFORMED,
	PICKLE_UNSUPPORTED,	/* an opcode that needs something from outside */
	PICKLE_LIMIT		/* too large to look into */
};

struct pickle {
	struct pickle_value	 root;
	size_t			 used;		/* bytes up to and with the STOP */
	struct pickle_value	*persids;	/* all persistent ids, in order */
	size_t			 n_persids, cap_persids;
	/* the rest is the machine's own */
	struct pickle_block	*blocks;
	size_t			 memory;
};

/* Reads one pickle from the start of data.  Call pickle_free() whatever the
 * result is.  err (may be NULL) says what is wrong. */
enum pickle_result pickle_read(struct pickle *, const void *data, size_t len,
	    struct err *err);
void	pickle_free(struct pickle *);

/* The value of a text key in a DICT, or in an OBJECT that holds pairs (such as an
 * OrderedDict); NULL when absent. */
const struct pickle_value *pickle_get(const struct pickle_value *,
	    const char *key);
/* The attribute of an OBJECT whose state is a dict, or a pair of dicts (slots). */
const struct pickle_value *pickle_attr(const struct pickle_value *,
	    const char *name);
/* True for the GLOBAL module.name. */
bool	pickle_is_global(const struct pickle_value *, const char *module,
	    const char *name);
bool	pickle_text_is(const struct pickle_value *, const char *text);

#endif
