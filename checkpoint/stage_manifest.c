/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_manifest.c - what was hashed on the way need not be read again.
 */
#include <stdlib.h>
#include <unistd.h>

#include "checkpoint/manifest.h"
#include "checkpoint/stage_manifest.h"

void
stage_manifest(const struct stage_copy *copy, const struct checkpoint *c,
    const char *place)
{
	struct manifest_file *known = calloc(copy->n + 1, sizeof(*known));
	const struct stage_file *f;
	size_t i;

	for (i = 0; known != NULL && i < copy->n; i++) {
		f = &copy->files[i];
		known[i] = (struct manifest_file){ .path = f->name,
		    .size = f->size, .mtime_ns = f->mtime_ns,
		    .whole = { f->digest.high64, f->digest.low64 } };
	}
	(void)manifest_write(c, place, known, known != NULL ? copy->n : 0, NULL);
	free(known);
}

void
stage_manifest_drop(const struct checkpoint *c)
{
	char *path = c->is_dir ? NULL : manifest_path(c->path, false);

	if (path != NULL)
		(void)unlink(path);
	free(path);
}
