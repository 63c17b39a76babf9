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
#include "checkpoint/trouble.h"

#define DEPTH_MAX	4	/* of folders inside a checkpoint folder */
#define JSON_MAX	(64u << 20)	/* bytes; trainer_state.json grows with the run */

bool
folder_is_dir(const char *dir, const char *name)
{
	char *path = file_join(dir, name);
	struct stat st;
	bool is = false;

	if (path == NULL)
		return false;
	if (lstat(path, &st) == 0)
		is = S_ISDIR(st.st_mode);
	else
		trouble_note(path);
	free(path);
	return is;
}

/* A folder inside that is a checkpoint of its own: adds what that one must hold.
 * Returns false when it is none. */
static bool
add_nested(const struct item *it, const char *name, struct parts *parts,
    struct report *r)
{
	const struct format *format = NULL;
	struct report inner;
	struct item sub;
	char *path, *full;
	size_t i, had = parts->n;

	if ((path = file_join(it->path, name)) == NULL) {
		parts->failed = true;
		return true;
	}
	report_init(&inner);
	if (item_look(&sub, path, &inner) == 0 && sub.is_dir &&
	    it->depth < DEPTH_MAX)
		format = format_find_inside(&sub);
	sub.depth = it->depth + 1;
	if (format != NULL)
		format->complete(&sub, parts, &inner);
	for (i = had; i < parts->n; i++) {
		full = file_join(name, parts->list[i].name);
		if (full == NULL)
			parts->failed = true;
		else {
			free(parts->list[i].name);
			parts->list[i].name = full;
		}
	}
	if (format != NULL)
		report_merge(r, &inner, name);
	item_fini(&sub);
	report_fini(&inner);
	free(path);
	return format != NULL;
}

static void add_files(const struct item *, const char *below,
    const struct names *, int depth, struct parts *, struct report *);

static void
add_folder(const struct item *it, const char *name, int depth,
    struct parts *parts, struct report *r)
{
	struct names inside = {0};
	char *full;

	if (add_nested(it, name, parts, r))
		return;
	if ((full = file_join(it->path, name)) == NULL) {
		parts->failed = true;
		return;
	}
	if (name_is_checkpoint_file(name))
		report_say(r, HOLDFAST_CHECKPOINT_INCOMPLETE,
		    "%s is a folder, not a file", name);
	else if (depth >= DEPTH_MAX)
		report_say(r, HOLDFAST_CHECKPOINT_UNVERIFIED,
		    "%s: too deep to look into", name);
	else if (names_read(&inside, full) == -1)
		report_say(r, HOLDFAST_CHECKPOINT_UNREADABLE,
		    "cannot read %s: %s", name, strerror(errno));
	else
		add_files(it, name, &inside, depth + 1, parts, r);
	names_fini(&inside);
	free(full);
}

/* Adds the checkpoint files below the folder; their names relative to it. */
static void
add_files(const struct item *it, const char *below, const struct names *names,
    int depth, struct parts *parts, struct report *r)
{
	char *path;
	size_t i;

	for (i = 0; i < names->n; i++) {
		if (name_is_temporary(names->list[i]))
			continue;
		path = below != NULL ? file_join(below, names->list[i]) :
		    strdup(names->list[i]);
		if (path == NULL)
			parts->failed = true;
		else if (folder_is_dir(it->path, path))
			add_folder(it, path, depth, parts, r);
		else if (name_is_checkpoint_file(names->list[i]) &&
		    parts_add(parts, it->path, path) == NULL)
			parts->failed = true;
		free(path);
	}
}

void
folder_add_files(const struct item *it, const char *below, struct parts *parts,
    struct report *r)
{
	if (below == NULL)
		add_files(it, NULL, &it->names, 0, parts, r);
	else
		add_folder(it, below, 0, parts, r);
}

void
folder_add(const struct item *it, const char *name, struct parts *parts)
{
	if (parts_add(parts, it->path, name) == NULL)
		parts->failed = true;
}

void
folder_names(const struct item *it, const char *below, struct names *names,
    struct report *r)
{
	char *path = file_join(it->path, below);

	if (path == NULL || names_read(names, path) == -1)
		report_say(r, HOLDFAST_CHECKPOINT_UNREADABLE,
		    "cannot read %s: %s", below, strerror(errno));
	free(path);
}

bool
folder_has(const struct item *it, const char *name)
{
	char *path = file_join(it->path, name);
	struct stat st;
	bool has = path != NULL && lstat(path, &st) == 0;

	if (path != NULL && !has)
		trouble_note(path);
	free(path);
	return has;
}

/* Python writes numbers that JSON has no words for, such as the loss that was NaN, in
 * trainer_state.json: each becomes a 0 as wide. */
static int
parse_json(struct buf *buf, cJSON **out, struct err *err)
{
	static const char *const words[] = { "NaN", "Infinity", "-Infinity" };
	char *text = buf->data;
	bool quoted = false;
	size_t i, w, n, len = buf->len;

	for (i = 0; i < len; i++) {
		if (quoted && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			quoted = !quoted;
		for (w = 0; !quoted && w < 3; w++) {
			n = strlen(words[w]);
			if (len - i >= n && memcmp(text + i, words[w], n) == 0) {
				memset(text + i, ' ', n);
				text[i] = '0';
			}
		}
	}
	return json_parse(text, len, out, err);
}

/* A socket gives ENXIO as well. */
static bool
is_trouble(const char *path, int errnum)
{
	struct stat st;

	if (errnum == ENXIO && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
		return false;
	errno = errnum;
	trouble_note(path);
	return trouble_is(errnum);
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
		report_say(r, !is_trouble(path, err.errnum) ?
		    HOLDFAST_CHECKPOINT_INCOMPLETE :
		    HOLDFAST_CHECKPOINT_UNREADABLE, "%s: %s", name,
		    err.errnum ? strerror(err.errnum) : err.text);
	else if (text.len == 0)
		report_say(r, HOLDFAST_CHECKPOINT_INCOMPLETE, "%s is empty", name);
	else if (parse_json(&text, &json, &err) == -1)
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
		    !name_is_temporary(it->names.list[i]) &&
		    name_ends_with(it->names.list[i], suffix))
			return true;
	return false;
}

int
folder_enumerate(const char *dir, const char *folder,
    bool (*fits)(const char *name), const struct names *in, struct names *out)
{
	struct names inside = {0};
	char *path, *name;
	size_t i;
	int rc = 0;

	if (!names_has(in, folder) || !folder_is_dir(dir, folder))
		return 0;
	if ((path = file_join(dir, folder)) == NULL)
		return -1;
	(void)names_read(&inside, path);
	free(path);
	for (i = 0; i < inside.n && rc == 0; i++) {
		if (fits != NULL && !fits(inside.list[i]))
			continue;
		name = file_join(folder, inside.list[i]);
		rc = name != NULL ? names_add(out, name) : -1;
		free(name);
	}
	for (i = 0; i < in->n && rc == 0 && out->n > 0; i++)
		if (strcmp(in->list[i], folder) != 0)
			rc = names_add(out, in->list[i]);
	names_fini(&inside);
	return rc;
}
