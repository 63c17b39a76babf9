/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_folder.c - a folder named by its step that holds checkpoint files and has
 * no layout of its own (step_100/model.pt, step_100/optim.pt).
 *
 * It has no marker: whole means that each file is, and that no file of the last
 * whole one is absent (latest.c compares them).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/file.h"
#include "checkpoint/format.h"

#define DEPTH_MAX	4	/* of folders inside a checkpoint folder */

static bool
is_folder(const char *dir, const char *name)
{
	char *path = file_join(dir, name);
	struct stat st;
	bool is;

	if (path == NULL)
		return false;
	is = lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
	free(path);
	return is;
}

/* Adds the checkpoint files below dir; their names relative to the folder. */
static void
add_files(const char *root, const char *below, const struct names *names,
    int depth, struct parts *parts)
{
	struct names inside;
	char *path, *full;
	size_t i;

	for (i = 0; i < names->n; i++) {
		path = below != NULL ? file_join(below, names->list[i]) :
		    strdup(names->list[i]);
		full = path != NULL ? file_join(root, path) : NULL;
		if (full == NULL || name_is_temporary(names->list[i])) {
			free(path);
			free(full);
			continue;
		}
		memset(&inside, 0, sizeof(inside));
		if (is_folder(root, path)) {
			if (depth < DEPTH_MAX && names_read(&inside, full) == 0)
				add_files(root, path, &inside, depth + 1, parts);
			names_fini(&inside);
		} else if (name_is_checkpoint_file(names->list[i]) &&
		    (parts == NULL || parts_add(parts, root, path) == NULL)) {
			/* out of memory: fewer parts, said by the caller */
		}
		free(path);
		free(full);
	}
}

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
		if (is_folder(it->path, name)) {
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
	return files > 0;
}

static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	add_files(it->path, NULL, &it->names, 0, parts);
	if (parts->n == 0)
		report_say(r, HOLDFAST_CHECKPOINT_INCOMPLETE,
		    "holds no checkpoint file");
	report_note(r, "no completeness marker in this layout");
}

const struct format format_folder = {
	.name = "folder",
	.recognise = recognise,
	.complete = complete
};
