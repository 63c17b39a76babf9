/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_fairseq.c - fairseq and metaseq in shards: NAME-shardS.pt, or
 * NAME-model_part-P.pt and NAME-model_part-P-shardS.pt, side by side in the save
 * directory.  Unsharded ones are torch.save files and no matter of this.  Source:
 * fairseq/checkpoint_utils.py, get_maybe_sharded_checkpoint_filename().
 *
 * The checkpoint is known by its first file.  How many shards there are is told by
 * the largest, and by the checkpoint before it.
 */
#include <stdlib.h>
#include <string.h>

#include "checkpoint/folder.h"
#include "checkpoint/grid.h"

static const char *const ends[] = { "-model_part-#-shard#.pt", "-shard#.pt",
    "-model_part-#.pt", NULL };

/* Where the shard's part of the name begins, 0 when it has none; *end is the
 * pattern that it follows. */
static size_t
stem_length(const char *name, const char **end)
{
	unsigned at[GRID_DIMS];
	const char *p;
	size_t i;

	for (i = 0; ends[i] != NULL; i++)
		for (p = name; (p = strchr(p, '-')) != NULL; p++)
			if (p != name && grid_match(p, ends[i], at)) {
				*end = ends[i];
				return (size_t)(p - name);
			}
	return 0;
}

static bool
recognise(const struct item *it)
{
	const char *end;

	return it->is_regular && stem_length(it->name, &end) > 0;
}

static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	size_t len, i, dir_len = (size_t)(it->name - it->path);
	struct names all = {0}, own = {0};
	struct grid grid = {0};
	const char *end;
	char *dir;

	len = stem_length(it->name, &end);
	dir = dir_len > 0 ? strndup(it->path, dir_len) : strdup(".");
	if (dir == NULL || names_read(&all, dir) == -1) {
		report_say(r, HOLDFAST_CHECKPOINT_UNREADABLE,
		    "cannot read the directory");
		goto out;
	}
	for (i = 0; i < all.n; i++) {
		unsigned at[GRID_DIMS];

		if (strncmp(all.list[i], it->name, len) != 0 ||
		    !grid_match(all.list[i] + len, end, at))
			continue;
		if (names_add(&own, all.list[i] + len) == -1) {
			parts->failed = true;
			goto out;
		}
		if (parts_add(parts, dir, all.list[i]) == NULL)
			parts->failed = true;
	}
	grid.pattern = end;
	grid_check(&own, &grid, r);
out:
	names_fini(&all);
	names_fini(&own);
	free(dir);
}

/* One name a checkpoint, that of its first shard. */
static int
enumerate(const char *dir, const struct names *in, struct names *out)
{
	size_t i, len, last_len = 0;
	const char *end, *last_end = NULL, *last = NULL;
	bool any = false;

	(void)dir;
	for (i = 0; i < in->n; i++)
		any = any || stem_length(in->list[i], &end) > 0;
	for (i = 0; any && i < in->n; i++) {
		len = stem_length(in->list[i], &end);
		if (len > 0 && len == last_len && end == last_end &&
		    strncmp(in->list[i], last, len) == 0)
			continue;
		if (len > 0) {
			last = in->list[i];
			last_len = len;
			last_end = end;
		}
		if (names_add(out, in->list[i]) == -1)
			return -1;
	}
	return 0;
}

const struct format format_fairseq = {
	.name = "fairseq",
	.recognise = recognise,
	.complete = complete,
	.enumerate = enumerate,
	.same_step = true,
	.same_files = true,
	.file_set = true
};
