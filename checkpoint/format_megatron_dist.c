/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_megatron_dist.c - Megatron-LM's torch_dist: iter_NNNNNNN/ with a distributed
 * checkpoint, common.pt, and metadata.json written last.  Source:
 * megatron/core/dist_checkpointing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "checkpoint/folder.h"
#include "checkpoint/trouble.h"

static bool
is_dcp(const struct item *it)
{
	return names_has(&it->names, ".metadata") ||
	    folder_find(it, "__", ".distcp");
}

/* Newer versions write no common.pt: before metadata.json nothing but the other
 * iterations tells it from torch_dcp, which has none. */
static bool
has_neighbour(const struct item *it)
{
	char *path = file_join(it->path, "..");
	struct names names = {0};
	bool found = false;
	char *name;
	size_t i;

	if (strncmp(it->name, "iter_", 5) == 0 && path != NULL &&
	    names_read(&names, path) == 0)
		for (i = 0; i < names.n && !found; i++) {
			if (strncmp(names.list[i], "iter_", 5) != 0 ||
			    asprintf(&name, "%s/%s/metadata.json", path,
			    names.list[i]) == -1)
				continue;
			if (!(found = access(name, F_OK) == 0))
				trouble_note(name);
			free(name);
		}
	names_fini(&names);
	free(path);
	return found;
}

static bool
recognise(const struct item *it)
{
	return it->is_dir && is_dcp(it) &&
	    (names_has(&it->names, "metadata.json") ||
	    names_has(&it->names, "common.pt") || has_neighbour(it));
}

static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	cJSON *json;

	dcp_complete(it, NULL, parts, r);
	json = folder_json(it, "metadata.json", r);
	if (json != NULL && json_str(json, "sharded_backend", NULL) == NULL)
		report_say(r, HOLDFAST_CHECKPOINT_CORRUPT,
		    "metadata.json names no sharded_backend");
	cJSON_Delete(json);
	if (folder_is_dir(it->path, "common.pt"))
		report_say(r, HOLDFAST_CHECKPOINT_INCOMPLETE,
		    "common.pt is a folder, not a file");
	else if (names_has(&it->names, "common.pt"))
		folder_add(it, "common.pt", parts);
}

const struct format format_megatron_dist = {
	.name = "megatron_dist",
	.recognise = recognise,
	.complete = complete,
	.same_step = true,
	.same_files = true,
	.named_step = true,
	.inside = true
};
