/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select_undo.c - puts back what the last select changed: first it looks whether all of
 * that can be, then it goes through the changes from the last to the first.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/json.h"
#include "checkpoint/beside.h"
#include "checkpoint/select.h"
#include "checkpoint/select_undo.h"
#include "checkpoint/stage_copy.h"

#define JOURNAL_MAX	(16u << 20)	/* bytes */
#define VALUE_MAX	65536		/* bytes of a tracker */

/* One change, with the paths that belong to it. */
struct step_back {
	const struct select_change	*change;
	char				*path, *kept, *new;
	const char			*ino;	/* of what stood at path before */
	const char			*new_ino;	/* of the copy put there */
};

int
select_last(const char *aside)
{
	struct names names = {0};
	int last = 0, n;
	size_t i, j;

	(void)names_read(&names, aside);
	for (i = 0; i < names.n; i++) {
		for (j = 0; isdigit((unsigned char)names.list[i][j]); j++)
			;
		if (j == 0 || j > 8 || names.list[i][j] != '\0')
			continue;
		n = atoi(names.list[i]);
		if (n > last)
			last = n;
	}
	names_fini(&names);
	return last;
}

/* The bytes of a file or where a link leads; -1 with errno when there is none. */
static int
read_value(const char *path, struct buf *text, bool *is_link)
{
	char to[PATH_MAX];
	ssize_t n = readlink(path, to, sizeof(to) - 1);
	struct err err = {0};

	*is_link = n > 0;
	if (n > 0) {
		to[n] = '\0';
		return buf_puts(text, to);
	}
	if (file_read(path, VALUE_MAX, text, &err) == 0)
		return 0;
	errno = err.errnum != 0 ? err.errnum : EIO;
	return -1;
}

/* Both are absent, or they are the same. */
static bool
same_value(const char *a, const char *b)
{
	struct buf x = {0}, y = {0};
	bool x_link, y_link, same;
	int x_there, y_there;

	x_there = read_value(a, &x, &x_link);
	y_there = read_value(b, &y, &y_link);
	same = x_there == y_there && (x_there == -1 || (x_link == y_link &&
	    x.len == y.len && (x.len == 0 || memcmp(x.data, y.data, x.len)
	    == 0)));
	buf_fini(&x);
	buf_fini(&y);
	return same;
}

static bool
is_there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static bool
has_ino(const char *path, const char *ino)
{
	struct stat st;
	char text[24];

	if (lstat(path, &st) == -1)
		return false;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)st.st_ino);
	return strcmp(text, ino) == 0;
}

/* Nothing is in the way of this step. */
static int
check(const struct step_back *s, bool force, struct err *err)
{
	switch (s->change->kind) {
	case SELECT_TRACKER:
	case SELECT_LINK:
		if (force || same_value(s->path, s->new) ||
		    same_value(s->path, s->kept))
			return 0;
		return err_set(err, ERR_BUSY, "%s was changed since: a trainer has "
		    "gone on from there (--force overwrites it)", s->path);
	case SELECT_COPY:
		if (has_ino(s->path, s->ino) || has_ino(s->path, s->new_ino))
			return 0;
		return err_set(err, ERR_BUSY, "%s was written since: a trainer has "
		    "gone on; move it away first", s->path);
	case SELECT_MOVE:
		if (is_there(s->path) && is_there(s->kept))
			return err_set(err, ERR_BUSY, "%s exists again: a trainer "
			    "has gone on; move one of the two away (the other is "
			    "%s)", s->path, s->kept);
		if (!is_there(s->path) && !is_there(s->kept))
			return err_set(err, ERR_SYSTEM, "%s is gone: put it back, "
			    "or take its change out of select.json", s->kept);
		return 0;
	}
	return 0;
}

static int
back_tracker(const struct step_back *s, const char *dir, struct err *err)
{
	struct tracker t = { .kind = TRACKER_TEXT,
	    .file = s->change->name, .mode = 0644 };
	struct buf text = {0};
	struct stat st;
	bool is_link;
	int rc = -1;

	if (!is_there(s->kept)) {	/* there was none before */
		if (unlink(s->path) == 0 || errno == ENOENT)
			rc = file_sync_parent(s->path, err);
		else
			err_errno(err, "cannot remove %s", s->path);
		return rc;
	}
	if (read_value(s->kept, &text, &is_link) == -1) {
		err_errno(err, "cannot read %s", s->kept);
	} else if (same_value(s->kept, s->path)) {
		rc = 0;
	} else {
		if (lstat(s->kept, &st) == 0)
			t.mode = st.st_mode & 0777;
		if (is_link)
			t.kind = TRACKER_LINK;
		rc = tracker_write(dir, &t, &text, err);
	}
	buf_fini(&text);
	return rc;
}

/* The old one is at `kept', or still at `new' when it was killed between exchange and
 * rename. */
static int
back_copy(const struct step_back *s, struct err *err)
{
	const char *old = has_ino(s->kept, s->ino) ? s->kept :
	    has_ino(s->new, s->ino) ? s->new : NULL;

	if (old == NULL || has_ino(s->path, s->ino))
		return 0;	/* was not done, or is undone */
	if (renameat2(AT_FDCWD, old, AT_FDCWD, s->path, RENAME_EXCHANGE) == 0)
		return file_sync_parent(s->path, err);
	if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP &&
	    errno != ENOENT)
		return err_errno(err, "cannot exchange %s and %s", old, s->path);
	/* a folder cannot be renamed onto one that is not empty */
	if (rename(old, s->path) == -1 && (rename(s->path, s->new) == -1 ||
	    rename(old, s->path) == -1))
		return err_errno(err, "cannot rename %s to %s", old, s->path);
	return file_sync_parent(s->path, err);
}

static int
back(const struct step_back *s, const char *dir, struct err *err)
{
	switch (s->change->kind) {
	case SELECT_TRACKER:
		return back_tracker(s, dir, err);
	case SELECT_COPY:
		return back_copy(s, err);
	case SELECT_LINK:
		return same_value(s->path, s->new) ? back_tracker(s, dir, err) : 0;
	case SELECT_MOVE:
		/* a marker "unfinished" is there before what it speaks of */
		if (beside_follow(s->kept, s->path, err) == -1)
			return -1;
		return is_there(s->kept) ? beside_move(s->kept, s->path, err) : 0;
	}
	return 0;
}

static int
set_paths(struct step_back *s, const struct select_plan *p,
    const struct select_change *c, const cJSON *json, struct err *err)
{
	s->change = c;
	s->ino = json_str(json, "ino", "");
	s->new_ino = json_str(json, "new_ino", "");
	s->path = file_join(p->dir, c->name);
	s->kept = select_kept(p->entry, c->name, "");
	s->new = select_kept(p->entry, c->name, ".new");
	return s->path == NULL || s->kept == NULL || s->new == NULL ?
	    err_memory(err) : 0;
}

/* Old and new values and our own copies; what was moved is back already. */
static int
drop(const struct step_back *s, struct err *err)
{
	bool copy = s->change->kind == SELECT_COPY;

	if (s->change->kind == SELECT_MOVE)
		return 0;
	/* of copies only what we made */
	if ((!copy || has_ino(s->kept, s->new_ino)) &&
	    stage_remove(s->kept, err) == -1)
		return -1;
	return !copy || has_ino(s->new, s->new_ino) ?
	    stage_remove(s->new, err) : 0;
}

/* A name from the journal that stays inside its directory. */
static bool
is_inside(const char *name)
{
	const char *p;

	if (name[0] == '\0' || name[0] == '/')
		return false;
	for (p = name; p != NULL; p = strchr(p, '/')) {
		p += *p == '/';
		if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0'))
			return false;
	}
	return true;
}

static int
add_change(struct select_plan *p, const cJSON *item, struct err *err)
{
	static const struct {
		const char		*name;
		enum select_kind	 kind;
	} rows[] = { { "tracker", SELECT_TRACKER }, { "copy", SELECT_COPY },
	    { "link", SELECT_LINK }, { "move", SELECT_MOVE } };
	const char *kind = json_str(item, "kind", ""), *to;
	const char *name = json_str(item, "name", "");
	struct select_change *c;
	size_t i;

	for (i = 0; i < 4 && strcmp(rows[i].name, kind) != 0; i++)
		;
	if (i == 4 || !is_inside(name))
		return err_set(err, ERR_FORMAT, "%s/%s: not a change: %s %s",
		    p->entry, SELECT_JOURNAL, kind, name);
	if ((c = select_add(p, rows[i].kind, name)) == NULL)
		return err_memory(err);
	/* backwards: what it gave is what it will give */
	if ((to = json_str(item, "from", NULL)) != NULL)
		c->to = strdup(to);
	if ((to = json_str(item, "to", NULL)) != NULL)
		c->from = strdup(to);
	return 0;
}

/* Fills the plan from the newest entry that has a journal. */
static int
read_entry(struct select_plan *p, const char *aside, cJSON **json,
    struct err *err)
{
	struct buf text = {0};
	struct err why = {0};
	const cJSON *item;
	char name[16], *path;
	int i, rc = -1;

	for (i = select_last(aside); i > 0; i--) {
		snprintf(name, sizeof(name), "%04d", i);
		free(p->entry);
		if ((p->entry = file_join(aside, name)) == NULL ||
		    (path = file_join(p->entry, SELECT_JOURNAL)) == NULL)
			return err_memory(err);
		rc = file_read(path, JOURNAL_MAX, &text, &why);
		free(path);
		if (rc == 0 || why.errnum != ENOENT)
			break;
	}
	if (rc == -1 && why.errnum != ENOENT && why.code != ERR_NONE)
		return err_set(err, why.code, "%s", why.text);
	if (rc == -1)
		return err_set(err, ERR_USAGE, "nothing to undo: no select was done "
		    "in %s", p->dir);
	rc = json_parse(text.data != NULL ? text.data : "", text.len, json, err);
	buf_fini(&text);
	if (rc == -1)
		return err_prefix(err, "%s/%s", p->entry, SELECT_JOURNAL);
	if (strcmp(json_str(*json, "schema", ""), SELECT_SCHEMA) != 0)
		return err_set(err, ERR_FORMAT, "%s/%s is no journal of a select",
		    p->entry, SELECT_JOURNAL);
	p->step = json_int(*json, "step", REPORT_UNKNOWN);
	p->name = strdup(json_str(*json, "name", ""));
	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(*json,
	    "changes")) {
		if (add_change(p, item, err) == -1)
			return -1;
	}
	return p->name == NULL ? err_memory(err) : 0;
}

static int
finish(const struct select_plan *p, const struct step_back *steps,
    const char *aside, struct err *err)
{
	char *journal = file_join(p->entry, SELECT_JOURNAL);
	size_t i;
	int rc;

	if (journal == NULL)
		return err_memory(err);
	if ((rc = unlink(journal)) == -1)
		err_errno(err, "cannot remove %s", journal);
	free(journal);
	for (i = 0; rc == 0 && i < p->n; i++)
		rc = drop(&steps[i], err);
	(void)rmdir(p->entry);
	(void)rmdir(aside);
	return rc;
}

int
select_undo(struct select_plan *p, const char *dir, bool force, struct err *err)
{
	struct step_back *steps = NULL;
	char *aside = NULL;
	cJSON *json = NULL;
	const cJSON *changes;
	size_t i;
	int rc = -1;

	memset(p, 0, sizeof(*p));
	if ((p->dir = realpath(dir, NULL)) == NULL)
		return err_errno(err, "cannot resolve %s", dir);
	if ((aside = beside_path(dir, "", SELECT_SUFFIX, err)) == NULL ||
	    read_entry(p, aside, &json, err) == -1)
		goto out;
	changes = cJSON_GetObjectItemCaseSensitive(json, "changes");
	if ((steps = calloc(p->n + 1, sizeof(*steps))) == NULL) {
		err_memory(err);
		goto out;
	}
	for (i = 0; i < p->n; i++)
		if (set_paths(&steps[i], p, &p->list[i],
		    cJSON_GetArrayItem(changes, (int)i), err) == -1 ||
		    check(&steps[i], force, err) == -1)
			goto out;
	for (i = p->n; i-- > 0; )
		if (back(&steps[i], p->dir, err) == -1)
			goto out;
	rc = finish(p, steps, aside, err);
out:
	for (i = 0; steps != NULL && i < p->n; i++) {
		free(steps[i].path);
		free(steps[i].kept);
		free(steps[i].new);
	}
	free(steps);
	free(aside);
	cJSON_Delete(json);
	return rc;
}
