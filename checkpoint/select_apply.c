/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select_apply.c - does what select.c planned, and undoes it.
 *
 * SAVEDIR.aside/NNNN/ holds, for each change, what stood there before: NAME, and of
 * trackers the new value as NAME.new, so that a later change by a trainer is noticed.
 * select.json, written and synced before anything in the save directory changes, lists
 * the changes; each can be undone whether or not it was done.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/text.h"
#include "checkpoint/beside.h"
#include "checkpoint/select.h"
#include "checkpoint/select_undo.h"
#include "checkpoint/stage_copy.h"

#define ENTRIES_MAX	9999

static const char *const kinds[] = {
	[SELECT_TRACKER] = "tracker", [SELECT_COPY] = "copy",
	[SELECT_LINK] = "link", [SELECT_MOVE] = "move"
};

char *
select_kept(const char *entry, const char *name, const char *suffix)
{
	char *path, *p;

	if (asprintf(&path, "%s/%s%s", entry, name, suffix) == -1)
		return NULL;
	for (p = path + strlen(entry) + 1; *p != '\0'; p++)
		if (*p == '/')
			*p = '%';
	return path;
}

/* The inode number as text: it says later which of two is where. */
static void
tell_ino(const char *path, char text[24])
{
	struct stat st;

	text[0] = '\0';
	if (path != NULL && lstat(path, &st) == 0)
		snprintf(text, 24, "%llu", (unsigned long long)st.st_ino);
}

/* Adds a change to the journal; names that JSON cannot hold could not be undone. */
static int
add_json(cJSON *array, const struct select_plan *p,
    const struct select_change *c, struct err *err)
{
	cJSON *json = cJSON_CreateObject();
	char *path = file_join(p->dir, c->name), ino[24], new_ino[24];
	char *new = select_kept(p->entry, c->name, ".new");
	struct buf clean = {0};
	int rc = -1;

	if (json == NULL || path == NULL ||
	    !cJSON_AddItemToArray(array, json)) {
		cJSON_Delete(json);
		err_memory(err);
		goto out;
	}
	if (text_utf8_clean(c->name, strlen(c->name), &clean) == -1 ||
	    strcmp(clean.data != NULL ? clean.data : "", c->name) != 0) {
		err_set(err, ERR_FORMAT, "%s: its name is not UTF-8, so this could "
		    "not be undone: rename it first", path);
		goto out;
	}
	tell_ino(path, ino);
	tell_ino(new, new_ino);
	if (json_add_text(json, "kind", kinds[c->kind]) == -1 ||
	    json_add_text(json, "name", c->name) == -1 ||
	    json_add_text(json, "from", c->from) == -1 ||
	    json_add_text(json, "to", c->to) == -1 ||
	    json_add_text(json, "ino", ino) == -1 ||
	    json_add_text(json, "new_ino", new_ino) == -1)
		err_memory(err);
	else
		rc = 0;
out:
	buf_fini(&clean);
	free(path);
	free(new);
	return rc;
}

static int
write_journal(const struct select_plan *p, struct err *err)
{
	cJSON *json = cJSON_CreateObject(), *array;
	char now[CLOCK_TEXT_MAX], *line = NULL, *path = NULL;
	size_t i;
	int rc = -1;

	clock_format(clock_wall_ns(&clock_system), now);
	if (json == NULL ||
	    json_add_text(json, "schema", SELECT_SCHEMA) == -1 ||
	    json_add_text(json, "time", now) == -1 ||
	    json_add_text(json, "name", p->name) == -1 ||
	    json_add_int(json, "step", p->step) == -1 ||
	    (array = cJSON_AddArrayToObject(json, "changes")) == NULL) {
		err_memory(err);
		goto out;
	}
	for (i = 0; i < p->n; i++)
		if (add_json(array, p, &p->list[i], err) == -1)
			goto out;
	if ((line = json_line(json)) == NULL ||
	    (path = file_join(p->entry, SELECT_JOURNAL)) == NULL)
		err_memory(err);
	else
		rc = file_write_atomic(path, line, strlen(line), 0644, err);
out:
	free(line);
	free(path);
	cJSON_Delete(json);
	return rc;
}

static int
write_value(const struct select_plan *p, const struct select_change *c,
    const char *suffix, const struct buf *text, bool is_link, struct err *err)
{
	char *path = select_kept(p->entry, c->name, suffix);
	const char *data = text->data != NULL ? text->data : "";
	int rc;

	if (path == NULL)
		return err_memory(err);
	if (!is_link)
		rc = file_write_atomic(path, data, text->len, c->tracker.mode,
		    err);
	else if ((rc = symlink(data, path)) == -1)
		err_errno(err, "cannot create %s", path);
	free(path);
	return rc;
}

static int
copy_source(const struct select_plan *p, const struct select_change *c,
    struct err *err)
{
	char *path = select_kept(p->entry, c->name, ".new");
	struct stage_copy copy;
	int rc = -1;

	if (path == NULL)
		return err_memory(err);
	if (stage_copy_init(&copy, 0, NULL, err) == 0)
		rc = stage_copy_run(&copy, c->source, path, err);
	stage_copy_fini(&copy);
	free(path);
	return rc;
}

/* All that can fail for want of room, before anything changes. */
static int
prepare(const struct select_plan *p, struct err *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; rc == 0 && i < p->n; i++) {
		const struct select_change *c = &p->list[i];
		bool is_link = c->kind == SELECT_LINK ||
		    c->tracker.kind == TRACKER_LINK;

		if (c->kind == SELECT_COPY)
			rc = copy_source(p, c, err);
		else if (c->kind != SELECT_MOVE)
			rc = write_value(p, c, ".new", &c->text, is_link, err);
		if (rc == 0 && c->kind == SELECT_TRACKER && c->from != NULL)
			rc = write_value(p, c, "", &c->tracker.text, is_link, err);
	}
	return rc == 0 ? write_journal(p, err) : -1;
}

/* NFS and others cannot exchange two names: there the old one is linked, and only a
 * folder is away for a moment. */
static int
exchange_slowly(const char *new, const char *path, const char *kept,
    struct err *err)
{
	if (link(path, kept) == -1 && rename(path, kept) == -1)
		return err_errno(err, "cannot move %s to %s", path, kept);
	if (rename(new, path) == -1) {
		err_errno(err, "cannot rename %s to %s", new, path);
		(void)rename(kept, path);
		return -1;
	}
	return 0;
}

static int
apply_copy(const char *path, const char *kept, const char *new, struct err *err)
{
	if (renameat2(AT_FDCWD, new, AT_FDCWD, path, RENAME_EXCHANGE) == -1) {
		if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP)
			return err_errno(err, "cannot exchange %s and %s", new,
			    path);
		if (exchange_slowly(new, path, kept, err) == -1)
			return -1;
	} else if (rename(new, kept) == -1) {
		return err_errno(err, "cannot rename %s", new);
	}
	return file_sync_parent(path, err);
}

static int
apply(const struct select_plan *p, const struct select_change *c,
    struct err *err)
{
	char *path = file_join(p->dir, c->name);
	char *kept = select_kept(p->entry, c->name, "");
	char *new = select_kept(p->entry, c->name, ".new");
	int rc = -1;

	if (path == NULL || kept == NULL || new == NULL) {
		err_memory(err);
		goto out;
	}
	switch (c->kind) {
	case SELECT_TRACKER:
		rc = tracker_write(p->dir, &c->tracker, &c->text, err);
		break;
	case SELECT_COPY:
		rc = apply_copy(path, kept, new, err);
		break;
	case SELECT_LINK:
		if ((rc = symlink(c->text.data, path)) == -1)
			err_errno(err, "cannot create %s", path);
		else
			rc = file_sync_parent(path, err);
		break;
	case SELECT_MOVE:
		if ((rc = beside_move(path, kept, err)) == 0)
			rc = beside_follow(path, kept, err);
		break;
	}
out:
	free(path);
	free(kept);
	free(new);
	return rc;
}

/* The next free entry of dir.aside. */
static int
make_entry(struct select_plan *p, struct err *err)
{
	char *aside = beside_path(p->dir, "", SELECT_SUFFIX, err), name[16];
	int rc = -1, i;

	if (aside == NULL)
		return -1;
	if (beside_make(p->dir, aside, err) == -1)
		goto out;
	for (i = select_last(aside) + 1; i <= ENTRIES_MAX; i++) {
		snprintf(name, sizeof(name), "%04d", i);
		free(p->entry);
		if ((p->entry = file_join(aside, name)) == NULL) {
			err_memory(err);
			goto out;
		}
		if (mkdir(p->entry, 0777) == 0) {
			rc = file_sync_parent(p->entry, err);
			goto out;
		}
		if (errno != EEXIST) {
			err_errno(err, "cannot create %s", p->entry);
			beside_advise(err);
			goto out;
		}
	}
	err_set(err, ERR_LIMIT, "%s is full: remove what is no longer needed",
	    aside);
out:
	free(aside);
	return rc;
}

/* Before the journal is written there is nothing of the user's in the entry. */
static void
drop_entry(struct select_plan *p)
{
	char *slash;

	if (p->entry == NULL)
		return;
	(void)stage_remove(p->entry, NULL);
	if ((slash = strrchr(p->entry, '/')) != NULL) {
		*slash = '\0';
		(void)rmdir(p->entry);	/* unless others are in it */
	}
	free(p->entry);
	p->entry = NULL;
}

int
select_apply(struct select_plan *p, struct err *err)
{
	struct select_plan undone;
	struct err why = {0}, bad = {0};
	size_t i;
	int rc;

	if (p->n == 0)
		return 0;
	rc = make_entry(p, err);
	if (rc == 0 && (rc = prepare(p, err)) == -1)
		beside_advise(err);
	if (rc == -1) {
		drop_entry(p);
		return err_prefix(err, "nothing was changed");
	}
	for (i = 0; i < p->n; i++)
		if (apply(p, &p->list[i], &why) == -1)
			break;
	if (i == p->n)
		return 0;
	rc = select_undo(&undone, p->dir, true, &bad);
	select_fini(&undone);
	if (rc == 0)
		return err_set(err, ERR_SYSTEM, "all was undone again: %s",
		    why.text);
	return err_set(err, ERR_SYSTEM, "%.200s; and it could not be undone: %.200s: "
	    "run select --undo when that is mended", why.text, bad.text);
}
