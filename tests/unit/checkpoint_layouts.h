/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_layouts.h - a small sound checkpoint in each layout, for tests that do the
 * same to all of them.
 */
#ifndef HOLDFAST_TESTS_CHECKPOINT_LAYOUTS_H
#define HOLDFAST_TESTS_CHECKPOINT_LAYOUTS_H

#include <stdbool.h>

struct layout_row {
	const char	*name;
	const char	*shape;		/* of its path in the save directory */
	void		(*make)(const char *path, long step);
};

extern const struct layout_row layout_rows[];
extern const int n_layout_rows;

/* save_dir/PATH of that step in a static buffer, valid until two more are asked for;
 * what is above it is made. */
const char *layout_path(const struct layout_row *, const char *save_dir,
	    long step);
/* Makes it; the path as above. */
const char *layout_make(const struct layout_row *, const char *save_dir,
	    long step);

#endif
