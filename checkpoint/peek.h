/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peek.h - the object in a torch.save file, for folder formats that learn from it
 * which files must be there.
 */
#ifndef HOLDFAST_CHECKPOINT_PEEK_H
#define HOLDFAST_CHECKPOINT_PEEK_H

#include "common/buf.h"
#include "checkpoint/format.h"
#include "checkpoint/pickle.h"

struct peek {
	struct buf	bytes;		/* what the pickle points into */
	struct pickle	pickle;
};

/* Reads the object of dir/name, zip or legacy.  Returns 0, or -1 without a word:
 * the check of that file says what is wrong.  peek_fini() in both cases. */
int	peek_open(struct peek *, const char *dir, const char *name);
void	peek_fini(struct peek *);

/* The number under a key of the object, or def. */
int64_t	peek_int(const struct peek *, const char *key, int64_t def);

/* the two formats behind peek_open() */
int	torch_zip_peek(struct input *, struct peek *);
int	torch_legacy_peek(struct input *, struct peek *);

#endif
