/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_nemo.c - NeMo 2: NAME/weights/ with a distributed checkpoint, NAME/context/,
 * and the marker NAME-unfinished beside NAME while it is written or deleted.  Source:
 * nemo/lightning/pytorch/callbacks/model_checkpoint.py.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "checkpoint/folder.h"
#include "checkpoint/trouble.h"

#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE

static bool
recognise(const struct item *it)
{
	return it->is_dir && (names_has(&it->names, "weights") ?
	    names_has(&it->names, "context") ||
	    folder_has(it, "weights/.metadata") :
	    folder_has(it, "context/io.json") &&
	    name_folder_step(it->name) != REPORT_UNKNOWN);
}

static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	struct stat st;
	char *marker;

	if (asprintf(&marker, "%s-unfinished", it->path) == -1) {
		parts->failed = true;
		return;
	}
	if (lstat(marker, &st) == 0)
		report_say(r, INCOMPLETE,
		    "marked as unfinished by %s-unfinished", it->name);
	else
		trouble_note(marker);
	free(marker);
	if (!names_has(&it->names, "weights"))
		report_say(r, INCOMPLETE, "weights is missing");
	else if (!folder_is_dir(it->path, "weights"))
		report_say(r, INCOMPLETE, "weights is no folder");
	folder_add_files(it, NULL, parts, r);
	if (parts->n == 0 && !report_is_bad(r))
		report_say(r, INCOMPLETE, "holds no weights");
	if (folder_has(it, "context/io.json"))
		cJSON_Delete(folder_json(it, "context/io.json", r));
	else if (!names_has(&it->names, "context"))
		report_note(r, "no context/: resuming needs the recipe");
}

const struct format format_nemo = {
	.name = "nemo",
	.recognise = recognise,
	.complete = complete,
	.marked = true
};
