/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_orbax.c - Orbax (JAX): STEP/ with _CHECKPOINT_METADATA and one folder an item.
 * Source: orbax/checkpoint/_src/metadata/checkpoint.py.
 *
 * Only its markers are judged; its arrays (OCDBT, zarr) are not read.  On POSIX a
 * finished checkpoint has been renamed from STEP.orbax-checkpoint-tmp*.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "checkpoint/folder.h"
#include "checkpoint/grid.h"

#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE

static bool
recognise(const struct item *it)
{
	return it->is_dir && (names_has(&it->names, "_CHECKPOINT_METADATA") ||
	    names_has(&it->names, "orbax.checkpoint") ||
	    folder_has(it, "default/_METADATA") ||
	    folder_has(it, "state/_METADATA") ||
	    folder_has(it, "default/checkpoint") ||
	    folder_has(it, "state/checkpoint") ||
	    names_has(&it->names, "manifest.ocdbt"));
}

/* The root of an OCDBT tree, whatever it holds.  Source of the magic number:
 * tensorstore/kvstore/ocdbt/format. */
static void
check_manifest(const struct item *it, const char *name, struct parts *parts,
    struct report *r)
{
	static const uint8_t magic[4] = { 0x0c, 0xdb, 0x3a, 0x2a };
	struct report seen;
	struct item file;
	struct part *p = parts_add(parts, it->path, name);

	if (p == NULL) {
		parts->failed = true;
		return;
	}
	p->any_content = true;
	report_init(&seen);
	if (item_look(&file, p->path, &seen) == -1)
		report_merge(r, &seen, name);
	else if (file.is_dir || file.head_len < sizeof(magic))
		report_say(r, INCOMPLETE, "%s is empty", name);
	else if (memcmp(file.head, magic, sizeof(magic)) != 0)
		report_say(r, HOLDFAST_CHECKPOINT_CORRUPT,
		    "%s does not begin as a manifest", name);
	item_fini(&file);
	report_fini(&seen);
}

/* Processes write trees of their own, numbered from 0 on. */
static void
check_processes(const struct item *it, const char *item,
    const struct names *inside, struct parts *parts, struct report *r)
{
	static const struct grid grid = { .pattern = "ocdbt.process_#" };
	unsigned at[GRID_DIMS];
	char *name;
	size_t i;

	grid_check(inside, &grid, r);
	for (i = 0; i < inside->n; i++) {
		if (!grid_match(inside->list[i], grid.pattern, at))
			continue;
		if (asprintf(&name, "%s/%s/manifest.ocdbt", item,
		    inside->list[i]) == -1) {
			parts->failed = true;
			return;
		}
		if (folder_has(it, name))
			check_manifest(it, name, parts, r);
		else
			report_say(r, INCOMPLETE, "%s is missing", name);
		free(name);
	}
}

/* One item that holds arrays. */
static void
check_item(const struct item *it, const char *item, struct parts *parts,
    struct report *r)
{
	struct names inside = {0};
	char *name;

	folder_names(it, item, &inside, r);
	if (names_has(&inside, "_METADATA") &&
	    (name = file_join(item, "_METADATA")) != NULL) {
		cJSON_Delete(folder_json(it, name, r));
		free(name);
	}
	if (names_has(&inside, "manifest.ocdbt") &&
	    (name = file_join(item, "manifest.ocdbt")) != NULL) {
		check_manifest(it, name, parts, r);
		free(name);
	} else if (names_has(&inside, "d") ||
	    names_has(&inside, "ocdbt.process_0")) {
		report_say(r, INCOMPLETE, "%s/manifest.ocdbt is missing", item);
	}
	/* what the tree looks like; older versions had "checkpoint" */
	if ((names_has(&inside, "manifest.ocdbt") ||
	    names_has(&inside, "ocdbt.process_0")) &&
	    !names_has(&inside, "_METADATA") &&
	    !names_has(&inside, "checkpoint"))
		report_say(r, INCOMPLETE, "%s/_METADATA is missing", item);
	check_processes(it, item, &inside, parts, r);
	names_fini(&inside);
}

static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	static const char mark[] = "_CHECKPOINT_METADATA";
	cJSON *json;
	struct part *p;
	size_t i;

	if (names_has(&it->names, mark)) {
		json = folder_json(it, mark, r);
		if (json != NULL && !cJSON_IsNumber(
		    cJSON_GetObjectItemCaseSensitive(json,
		    "commit_timestamp_nsecs")))
			report_say(r, INCOMPLETE, "%s tells no commit: the save "
			    "did not finish", mark);
		cJSON_Delete(json);
		if ((p = parts_add(parts, it->path, mark)) == NULL)
			parts->failed = true;
		else
			p->any_content = true;
	} else if (!names_has(&it->names, "manifest.ocdbt")) {
		report_note(r, "no %s: of an old version", mark);
	}
	for (i = 0; i < it->names.n; i++)
		if (folder_is_dir(it->path, it->names.list[i]) &&
		    !name_is_temporary(it->names.list[i]))
			check_item(it, it->names.list[i], parts, r);
	report_note(r, "markers only: the arrays of this format are not read");
}

const struct format format_orbax = {
	.name = "orbax",
	.recognise = recognise,
	.complete = complete,
	.marked = true
};
