/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_orbax.c - Orbax (JAX): STEP/ with _CHECKPOINT_METADATA and one folder an item.
 * Source: orbax/checkpoint/_src/metadata/checkpoint.py.
 *
 * Only its markers are judged; its arrays (OCDBT, zarr) are not read.  On POSIX a
 * finished checkpoint has been renamed from STEP.orbax-checkpoint-tmp*.
 */
#include <string.h>

#include "checkpoint/folder.h"

static bool
recognise(const struct item *it)
{
	return it->is_dir && names_has(&it->names, "_CHECKPOINT_METADATA");
}

static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	cJSON *json = folder_json(it, "_CHECKPOINT_METADATA", r);
	struct part *p;

	if (json != NULL && !cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(
	    json, "commit_timestamp_nsecs")))
		report_say(r, HOLDFAST_CHECKPOINT_INCOMPLETE,
		    "_CHECKPOINT_METADATA tells no commit: the save did not finish");
	cJSON_Delete(json);
	if ((p = parts_add(parts, it->path, "_CHECKPOINT_METADATA")) == NULL)
		parts->failed = true;
	else
		p->any_content = true;
	report_note(r, "markers only: the arrays of this format are not read");
}

const struct format format_orbax = {
	.name = "orbax",
	.recognise = recognise,
	.complete = complete
};
