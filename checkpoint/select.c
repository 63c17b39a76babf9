/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select.c - what has to change in a save directory so that a given checkpoint is its
 * newest one for every way in which trainers look for it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/file.h"
#include "checkpoint/select.h"

#define VALID		HOLDFAST_CHECKPOINT_VALID
#define COMPARED_MAX	((size_t)64 << 20)	/* bytes; larger copies are made anew */

/* What a plan is made from. */
struct view {
	const char			*dir;
	const struct checkpoints	*cs;
	const bool			*member;
};

const char *
select_name(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	if (strncmp(path, dir, n) != 0)
		return path;
	while (path[n] == '/')
		n++;
	return path + n;
}

/* The step that the last component tells, whatever the files say. */
static int64_t
step_of_name(const struct checkpoint *c)
{
	const char *slash = strrchr(c->path, '/');
	const char *name = slash != NULL ? slash + 1 : c->path;

	return c->is_dir ? name_folder_step(name) : name_step(name);
}

size_t
select_members(const struct checkpoints *cs, const char *dir, int64_t step,
    bool *member)
{
	size_t i, n = 0;
	int pass;

	for (pass = 0; pass < 2 && n == 0; pass++)
		for (i = 0; i < cs->n; i++) {
			const struct checkpoint *c = &cs->list[i];
			int64_t s = pass == 0 ? checkpoint_step(c) :
			    step_of_name(c);

			member[i] = s == step &&
			    !tracker_is_copy(select_name(dir, c->path));
			n += member[i];
		}
	return n;
}

struct select_change *
select_add(struct select_plan *p, enum select_kind kind, const char *name)
{
	struct select_change *list;
	size_t cap;

	if (p->n == p->cap) {
		cap = p->cap ? p->cap * 2 : 8;
		list = reallocarray(p->list, cap, sizeof(*list));
		if (list == NULL)
			return NULL;
		p->list = list;
		p->cap = cap;
	}
	list = &p->list[p->n];
	memset(list, 0, sizeof(*list));
	list->kind = kind;
	if ((list->name = strdup(name)) == NULL)
		return NULL;
	p->n++;
	return list;
}

void
select_fini(struct select_plan *p)
{
	size_t i;

	for (i = 0; i < p->n; i++) {
		struct select_change *c = &p->list[i];

		free(c->name);
		free(c->from);
		free(c->to);
		free(c->source);
		free(c->tracker.file);
		free(c->tracker.target);
		buf_fini(&c->tracker.text);
		buf_fini(&c->text);
	}
	free(p->list);
	free(p->dir);
	free(p->name);
	free(p->entry);
	names_fini(&p->left);
	memset(p, 0, sizeof(*p));
}

static int
leave(struct select_plan *p, const char *name, const char *why)
{
	char *line;
	int rc = -1;

	if (asprintf(&line, "%s: %s", name, why) != -1) {
		rc = names_add(&p->left, line);
		free(line);
	}
	return rc;
}

static size_t
common_tail(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b), i = 0;

	while (i < n && i < m && a[n - 1 - i] == b[m - 1 - i])
		i++;
	return i;
}

/* The member that a tracker shall give: of several (ranks, shards, universal ones)
 * the one whose name ends most like what it gave before.  NULL: none can be said in
 * it.  text gets the new value. */
static const char *
pick(const struct view *v, const struct tracker *t, struct buf *text)
{
	const char *like = t->target[0] != '\0' ? t->target : t->file;
	const char *best = NULL, *name;
	size_t i, n, most = 0;

	for (i = 0; i < v->cs->n; i++) {
		if (!v->member[i])
			continue;
		name = select_name(v->dir, v->cs->list[i].path);
		buf_clear(text);
		if (t->kind != TRACKER_COPY && tracker_text(t, name,
		    checkpoint_step(&v->cs->list[i]), text) == -1)
			continue;
		n = common_tail(name, like);
		if (best == NULL || n > most) {
			best = name;
			most = n;
		}
	}
	buf_clear(text);
	for (i = 0; best != NULL && t->kind != TRACKER_COPY && i < v->cs->n; i++)
		if (select_name(v->dir, v->cs->list[i].path) == best)
			(void)tracker_text(t, best,
			    checkpoint_step(&v->cs->list[i]), text);
	return best;
}

static const struct checkpoint *
find(const struct view *v, const char *name)
{
	size_t i;

	for (i = 0; i < v->cs->n; i++)
		if (strcmp(select_name(v->dir, v->cs->list[i].path), name) == 0)
			return &v->cs->list[i];
	return NULL;
}

/* A second copy that already holds the selected step may stay; where no step is told,
 * one of the same bytes. */
static bool
copy_stands(const struct select_plan *p, const struct view *v, const char *file,
    const char *path, const char *source)
{
	const struct checkpoint *c = find(v, file);
	struct buf a = {0}, b = {0};
	bool same;

	if (c != NULL && c->report.state != VALID)
		return false;
	if (c != NULL && c->report.step != REPORT_UNKNOWN)
		return c->report.step == p->step;
	same = file_read(path, COMPARED_MAX, &a, NULL) == 0 &&
	    file_read(source, COMPARED_MAX, &b, NULL) == 0 && a.len == b.len &&
	    (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
	buf_fini(&a);
	buf_fini(&b);
	return same;
}

static int
plan_copy(struct select_plan *p, const struct view *v, const struct tracker *t)
{
	struct select_change *c;
	struct stat here, there;
	struct buf none = {0};
	const char *name = pick(v, t, &none);
	char *path, *source = NULL;
	int rc = -1;

	if ((path = file_join(v->dir, t->file)) == NULL || name == NULL ||
	    (source = tracker_source(t, v->dir, name)) == NULL)
		goto out;
	rc = 0;
	/* a folder of such a name is one only when it holds a checkpoint */
	if (lstat(path, &here) == -1 || (S_ISDIR(here.st_mode) &&
	    find(v, t->file) == NULL) ||
	    copy_stands(p, v, t->file, path, source))
		goto out;
	if (stat(source, &there) == -1 ||
	    S_ISDIR(here.st_mode) != S_ISDIR(there.st_mode)) {
		rc = leave(p, t->file, "there is nothing to copy it from");
		goto out;
	}
	rc = -1;
	if ((c = select_add(p, SELECT_COPY, t->file)) == NULL)
		goto out;
	c->source = source;
	source = NULL;
	c->to = strdup(name);
	c->tracker.file = strdup(t->file);
	rc = c->to == NULL || c->tracker.file == NULL ? -1 : 0;
out:
	free(path);
	free(source);
	return rc;
}

/* What a tracker that stays as it is gives must stay, too. */
static int
plan_tracker(struct select_plan *p, const struct view *v, struct tracker *t,
    struct names *pinned)
{
	struct select_change *c;
	struct buf text = {0};
	const char *name;
	int rc = 0;

	if (t->kind == TRACKER_COPY)
		return plan_copy(p, v, t);
	name = pick(v, t, &text);
	if (name == NULL && find(v, t->target) != NULL) {
		rc = names_add(pinned, t->target);
		if (rc == 0)
			rc = leave(p, t->file, "its newer one has no "
			    "counterpart of the selected step");
	} else if (name != NULL && strcmp(name, t->target) != 0) {
		if ((c = select_add(p, SELECT_TRACKER, t->file)) == NULL) {
			buf_fini(&text);
			return -1;
		}
		c->text = text;
		text = (struct buf){0};
		c->from = strdup(t->target);
		c->to = strdup(name);
		c->tracker = *t;
		memset(t, 0, sizeof(*t));
		rc = c->from == NULL || c->to == NULL ? -1 : 0;
	}
	buf_fini(&text);
	return rc;
}

static bool
says_last(const char *name)
{
	return name_ends_with(name, "-last");
}

/* NeMo resumes from what is called *-last, a folder or a link to one: the newest by
 * time.  Source: nemo/lightning/resume.py, _find_trainer_ckpt_path(). */
static int
plan_last_link(struct select_plan *p, const struct view *v,
    const struct names *trackers)
{
	const struct checkpoint *c = find(v, p->name);
	struct select_change *change;
	char *link;
	size_t i;
	bool any = false;
	int rc = -1;

	for (i = 0; i < trackers->n; i++)
		if (says_last(trackers->list[i]))
			return 0;
	for (i = 0; i < v->cs->n; i++)
		any = any || says_last(v->cs->list[i].path);
	if (!any || c == NULL || c->format != &format_nemo || says_last(p->name))
		return 0;
	if (asprintf(&link, "%s-last", p->name) == -1)
		return -1;
	if ((change = select_add(p, SELECT_LINK, link)) != NULL &&
	    (change->to = strdup(p->name)) != NULL)
		rc = buf_puts(&change->text, p->name);
	free(link);
	return rc;
}

/* Without its tracker Megatron and DeepSpeed start from nothing, with a warning at
 * best. */
static int
plan_missing(struct select_plan *p, const struct view *v,
    const struct names *trackers)
{
	const struct checkpoint *c = find(v, p->name);
	struct select_change *change;
	struct tracker t = { .kind = TRACKER_TEXT, .mode = 0644 };
	const char *format = checkpoint_format_name(c), *file;

	if (format == NULL)
		return 0;
	if (strncmp(format, "megatron", 8) == 0)
		file = "latest_checkpointed_iteration.txt";
	else if (strcmp(format, "deepspeed") == 0)
		file = "latest";
	else
		return 0;
	if (names_has(trackers, file))
		return 0;
	if ((change = select_add(p, SELECT_TRACKER, file)) == NULL)
		return -1;
	change->tracker = t;
	change->tracker.file = strdup(file);
	change->to = strdup(p->name);
	if (change->tracker.file == NULL || change->to == NULL)
		return -1;
	return tracker_text(&change->tracker, p->name, p->step, &change->text);
}

/* By what both files tell, otherwise by both names. */
static bool
is_newer(const struct checkpoint *a, const struct checkpoint *b)
{
	if (a->report.step != REPORT_UNKNOWN && b->report.step != REPORT_UNKNOWN)
		return a->report.step > b->report.step;
	return a->name_step != REPORT_UNKNOWN && b->name_step != REPORT_UNKNOWN &&
	    a->name_step > b->name_step;
}

static int
plan_move(struct select_plan *p, const struct view *v,
    const struct checkpoint *c, const struct names *pinned)
{
	const char *name = select_name(v->dir, c->path);
	size_t i;

	if (tracker_is_copy(name))
		return 0;
	for (i = 0; i < pinned->n; i++)
		if (strcmp(pinned->list[i], name) == 0)
			return 0;
	/* "best.pt": no trainer takes it by itself */
	if (step_of_name(c) == REPORT_UNKNOWN)
		return leave(p, name, "is newer, but its name has no step");
	return select_add(p, SELECT_MOVE, name) == NULL ? -1 : 0;
}

/* cs is in order from the newest on. */
static int
plan_moves(struct select_plan *p, const struct view *v,
    const struct checkpoint *target, const struct names *pinned)
{
	const struct checkpoints *cs = v->cs;
	size_t i;

	for (i = cs->n; i-- > 0; )
		if (!v->member[i] && is_newer(&cs->list[i], target) &&
		    cs->list[i].report.state != VALID &&
		    plan_move(p, v, &cs->list[i], pinned) == -1)
			return -1;
	for (i = 0; i < cs->n; i++)
		if (!v->member[i] && is_newer(&cs->list[i], target) &&
		    cs->list[i].report.state == VALID &&
		    plan_move(p, v, &cs->list[i], pinned) == -1)
			return -1;
	return 0;
}

/* Only --force selects what is marked as unfinished. */
static int
plan_marker(struct select_plan *p, const struct view *v)
{
	char *marker, *path = NULL;
	struct stat st;
	int rc = -1;

	if (asprintf(&marker, "%s-unfinished", p->name) == -1)
		return -1;
	if ((path = file_join(v->dir, marker)) != NULL)
		rc = lstat(path, &st) == 0 && select_add(p, SELECT_MOVE, marker)
		    == NULL ? -1 : 0;
	free(marker);
	free(path);
	return rc;
}

int
select_plan(struct select_plan *p, const char *dir, const struct checkpoints *cs,
    const bool *member, struct err *err)
{
	struct view v = { dir, cs, member };
	struct names pinned = {0}, files = {0};
	struct trackers ts = {0};
	size_t i, first = 0;
	int rc = -1;

	memset(p, 0, sizeof(*p));
	while (first < cs->n && !member[first])
		first++;
	if ((p->dir = realpath(dir, NULL)) == NULL)
		return err_errno(err, "cannot resolve %s", dir);
	if (trackers_read(&ts, dir, err) == -1)
		goto out;
	p->step = checkpoint_step(&cs->list[first]);
	if ((p->name = strdup(select_name(dir, cs->list[first].path))) == NULL)
		goto memory;
	for (i = 0; i < ts.n; i++)
		if (names_add(&files, ts.list[i].file) == -1 ||
		    plan_tracker(p, &v, &ts.list[i], &pinned) == -1)
			goto memory;
	names_sort(&files);
	if (plan_missing(p, &v, &files) == -1 ||
	    plan_last_link(p, &v, &files) == -1 ||
	    plan_moves(p, &v, &cs->list[first], &pinned) == -1 ||
	    plan_marker(p, &v) == -1)
		goto memory;
	rc = 0;
	goto out;
memory:
	err_memory(err);
out:
	trackers_fini(&ts);
	names_fini(&pinned);
	names_fini(&files);
	return rc;
}
