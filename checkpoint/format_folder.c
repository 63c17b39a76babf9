/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_folder.c - a folder named by its step that holds checkpoint files and has
 * no layout of its own (step_100/model.pt, step_100/optim.pt).
 *
 * It has no marker: whole means that each file is, and that no file of the last
 * whole one is absent (latest.c compares them).
 */
#include <string.h>

#include "checkpoint/folder.h"

static bool
recognise(const struct item *it)
{
	int64_t step, other = REPORT_UNKNOWN;
	size_t i, files = 0;

	if (!it->is_dir || name_folder_step(it->name) == REPORT_UNKNOWN)
		return false;
	for (i = 0; i < it->names.n; i++) {
		const char *name = it->names.list[i];

		if (name_is_temporary(name))
			continue;
		if (folder_is_dir(it->path, name)) {
			if (name_folder_step(name) != REPORT_UNKNOWN)
				return false;
			continue;
		}
		if (!name_is_checkpoint_file(name))
			continue;
		files++;
		step = name_folder_step(name);
		/* files of several steps: a save directory */
		if (step != REPORT_UNKNOWN && other != REPORT_UNKNOWN &&
		    step != other)
			return false;
		other = step != REPORT_UNKNOWN ? step : other;
	}
	/* an empty one was begun: trainers that go by name would take it */
	return files > 0 || it->names.n == 0;
}

static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	folder_add_files(it, NULL, parts, r);
	if (parts->n == 0)
		report_say(r, HOLDFAST_CHECKPOINT_INCOMPLETE,
		    "holds no checkpoint file");
	report_note(r, "no completeness marker in this layout");
}

const struct format format_folder = {
	.name = "folder",
	.recognise = recognise,
	.complete = complete,
	.same_files = true
};
