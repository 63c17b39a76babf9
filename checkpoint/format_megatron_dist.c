/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_megatron_dist.c - Megatron-LM's torch_dist: iter_NNNNNNN/ with a distributed
 * checkpoint, common.pt, and metadata.json written last.  Source:
 * megatron/core/dist_checkpointing.
 */
#include <string.h>

#include "checkpoint/folder.h"

static bool
is_dcp(const struct item *it)
{
	return names_has(&it->names, ".metadata") ||
	    folder_find(it, "__", ".distcp");
}

static bool
recognise(const struct item *it)
{
	return it->is_dir && is_dcp(it) &&
	    (names_has(&it->names, "metadata.json") ||
	    names_has(&it->names, "common.pt"));
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
	if (names_has(&it->names, "common.pt") &&
	    parts_add(parts, it->path, "common.pt") == NULL)
		parts->failed = true;
}

const struct format format_megatron_dist = {
	.name = "megatron_dist",
	.recognise = recognise,
	.complete = complete
};
