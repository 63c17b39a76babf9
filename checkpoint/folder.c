/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.c - what the folder formats share: looking into folders, adding parts,
 * reading a small JSON file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/buf.h"
#include "common/file.h"
#include "checkpoint/folder.h"

#define DEPTH_MAX	4	/* of folders inside a checkpoint folder */
#define JSON_MAX	(64u << 20)	/* bytes; trainer_state.json grows with the run */

bool
folder_is_dir(const char *dir, const char *name)
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
		if (folder_is_dir(root, path)) {
			if (depth < DEPTH_MAX && names_read(&inside, full) == 0)
				add_files(root, path, &inside, depth + 1, parts);
			names_fini(&inside);
		} else if (name_is_checkpoint_file(names->list[i]) &&
		    parts_add(parts, root, path) == NULL) {
			parts->failed = true;
		}
		free(path);
		free(full);
	}
}

void
folder_add_files(const struct item *it, const char *below, struct parts *parts)
{
	struct names names = {0};
	char *path;

	if (below == NULL) {
		add_files(it->path, NULL, &it->names, 0, parts);
		return;
	}
	if ((path = file_join(it->path, below)) == NULL ||
	    names_read(&names, path) == -1)
		parts->failed = parts->failed || path == NULL;
	else
		add_files(it->path, below, &names, 1, parts);
	names_fini(&names);
	free(path);
}

bool
folder_has(const struct item *it, const char *name)
{
	char *path = file_join(it->path, name);
	struct stat st;
	bool has = path != NULL && stat(path, &st) == 0;

	free(path);
	return has;
}

cJSON *
folder_json(const struct item *it, const char *name, struct report *r)
{
	char *path = file_join(it->path, name);
	struct err err = {0};
	struct buf text = {0};
	cJSON *json = NULL;

	if (path == NULL)
		return NULL;
	if (file_read(path, JSON_MAX, &text, &err) == -1)
		report_say(r, err.errnum == 0 || err.errnum == ENOENT ?
		    HOLDFAST_CHECKPOINT_INCOMPLETE :
		    HOLDFAST_CHECKPOINT_UNREADABLE, "%s: %s", name,
		    err.errnum ? strerror(err.errnum) : err.text);
	else if (text.len == 0)
		report_say(r, HOLDFAST_CHECKPOINT_INCOMPLETE, "%s is empty", name);
	else if (json_parse(text.data, text.len, &json, &err) == -1)
		report_say(r, HOLDFAST_CHECKPOINT_INCOMPLETE, "%s: %s", name,
		    err.text);
	buf_fini(&text);
	free(path);
	return json;
}

bool
folder_find(const struct item *it, const char *prefix, const char *suffix)
{
	size_t i;

	for (i = 0; i < it->names.n; i++)
		if (strncmp(it->names.list[i], prefix, strlen(prefix)) == 0 &&
		    name_ends_with(it->names.list[i], suffix))
			return true;
	return false;
}
