/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml.h - YAML as a tree whose nodes know their line, read with libyaml.
 *
 * Anchors and tags are refused: configuration and rules need neither, and an
 * alias makes a small file expand without bound.
 */
#ifndef HOLDFAST_COMMON_YAML_H
#define HOLDFAST_COMMON_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

enum yaml_kind { YAML_SCALAR, YAML_LIST, YAML_MAP };

struct yaml {
	enum yaml_kind	 kind;
	int		 line;		/* 1-based */
	int		 column;	/* 1-based */
	bool		 quoted;	/* scalars: it stood in quotes */
	char		*text;		/* scalars: NUL-terminated value */
	size_t		 count;		/* items of a list, pairs of a map */
	struct yaml	**keys;		/* maps: scalars */
	struct yaml	**items;	/* lists: items; maps: values */
};

/* Reads one document.  `name` stands in error texts ("name:line:column: why").
 * The caller frees *out with yaml_free().  An empty document gives an empty
 * map. */
int	yaml_read(const char *name, const char *data, size_t len,
	    struct yaml **out, struct err *err);
int	yaml_read_file(const char *path, struct yaml **out, struct err *err);
/* libyaml exports, and calls, a yaml_free() of its own: a second function of
 * that name in the program would be called in its place. */
#define yaml_free	yaml_free_tree
void	yaml_free(struct yaml *);

/* The value of a key of a map, NULL when absent.  Borrowed. */
const struct yaml *yaml_get(const struct yaml *map, const char *key);
/* The text of a scalar member, or def.  Borrowed. */
const char *yaml_text(const struct yaml *map, const char *key,
	    const char *def);

/* Fails on the first key of a map that is not in `known` (NULL-terminated),
 * naming its place and the nearest right one. */
int	yaml_check_keys(const char *name, const struct yaml *map,
	    const char *const *known, struct err *err);

#endif
