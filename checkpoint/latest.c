/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latest.c - the checkpoints of a save directory in order, and the newest valid
 * one of them.
 *
 * Order: by the step in the names when all have one (what a cut-off file holds
 * cannot be read), otherwise by the step the files tell; by time without one.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/expect.h"
#include "checkpoint/trouble.h"

#define UNVERIFIED	HOLDFAST_CHECKPOINT_UNVERIFIED
#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE
#define VALID		HOLDFAST_CHECKPOINT_VALID

/* "last.ckpt -> step200.ckpt": another name of a neighbour. */
static bool
is_alias(const char *dir, const char *path)
{
	char *real, *real_dir, *slash;
	struct stat st;
	bool alias = false;

	if (lstat(path, &st) == -1 || !S_ISLNK(st.st_mode))
		return false;
	real = realpath(path, NULL);
	real_dir = realpath(dir, NULL);
	if (real != NULL && real_dir != NULL &&
	    (slash = strrchr(real, '/')) != NULL) {
		*slash = '\0';
		alias = strcmp(slash == real ? "/" : real, real_dir) == 0;
	}
	free(real);
	free(real_dir);
	return alias;
}

static struct checkpoint *
new_checkpoint(struct checkpoints *cs)
{
	struct checkpoint *list;
	size_t cap;

	if (cs->n == cs->cap) {
		cap = cs->cap ? cs->cap * 2 : 16;
		list = reallocarray(cs->list, cap, sizeof(*list));
		if (list == NULL)
			return NULL;
		cs->list = list;
		cs->cap = cap;
	}
	return &cs->list[cs->n];
}

/* Neither a checkpoint nor something that claims to be one. */
static bool
is_unrelated(const struct checkpoint *c, const char *name)
{
	/* of all that is pickled, what a word such as step or checkpoint makes one */
	if (name_is_pickle(name))
		return c->format != &format_pickle ||
		    name_folder_step(name) == REPORT_UNKNOWN;
	if (c->format != NULL)
		return false;
	if (c->is_dir)
		return c->report.state != HOLDFAST_CHECKPOINT_UNREADABLE ||
		    c->name_step == REPORT_UNKNOWN;
	return !name_is_checkpoint_file(name);
}

/* Adds dir/name unless it is none; -1 when memory is short. */
static int
add(struct checkpoints *cs, const char *dir, const char *name)
{
	struct checkpoint *c;
	char *path;
	int rc = -1;

	if (name_is_temporary(name))
		return 0;
	if ((path = file_join(dir, name)) == NULL)
		return -1;
	if (is_alias(dir, path)) {
		free(path);
		return 0;
	}
	if ((c = new_checkpoint(cs)) != NULL &&
	    checkpoint_look(c, path) == 0) {
		rc = 0;
		if (is_unrelated(c, name))
			checkpoint_fini(c);
		else
			cs->n++;
	}
	free(path);
	return rc;
}

static int
compare(const struct checkpoint *a, const struct checkpoint *b, bool by_name)
{
	int64_t x = by_name ? a->name_step : checkpoint_step(a);
	int64_t y = by_name ? b->name_step : checkpoint_step(b);

	/* REPORT_UNKNOWN is the least, so those come last */
	if (x != y)
		return x > y ? -1 : 1;
	/* global_step20 before global_step20_universal */
	if (x == REPORT_UNKNOWN && a->mtime_ns != b->mtime_ns)
		return a->mtime_ns > b->mtime_ns ? -1 : 1;
	return strcmp(a->path, b->path);
}

static int
compare_by_name(const void *a, const void *b)
{
	return compare(a, b, true);
}

static int
compare_by_step(const void *a, const void *b)
{
	return compare(a, b, false);
}

static void
sort(struct checkpoints *cs)
{
	bool by_name = true;
	size_t i;

	for (i = 0; i < cs->n; i++)
		if (cs->list[i].name_step == REPORT_UNKNOWN)
			by_name = false;
	if (cs->n > 0)
		qsort(cs->list, cs->n, sizeof(*cs->list), by_name ?
		    compare_by_name : compare_by_step);
}

/* Pickles beside checkpoints of another format are something that belongs to them. */
static void
drop_pickles(struct checkpoints *cs)
{
	size_t i, n = 0;

	for (i = 0; i < cs->n; i++)
		n += name_is_pickle(cs->list[i].path);
	if (n == cs->n)
		return;
	for (i = n = 0; i < cs->n; i++)
		if (name_is_pickle(cs->list[i].path))
			checkpoint_fini(&cs->list[i]);
		else
			cs->list[n++] = cs->list[i];
	cs->n = n;
}

/* `kind': of this kind of name only (NULL: all). */
static int
list(struct checkpoints *cs, const char *dir, const char *kind, struct err *err)
{
	struct names names = {0};
	char *its;
	struct stat st;
	size_t i;
	int rc = -1;

	memset(cs, 0, sizeof(*cs));
	if (stat(dir, &st) == -1)
		return err_errno(err, "cannot read %s", dir);
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ERR_USAGE, "%s is not a directory", dir);
	if (names_read(&names, dir) == -1) {
		err_errno(err, "cannot read %s", dir);
		goto out;
	}
	trouble_begin();
	if (formats_enumerate(dir, &names) == -1) {
		err_memory(err);
		goto out;
	}
	if (trouble_error(err) == -1)
		goto out;
	for (i = 0; i < names.n; i++) {
		bool fits = true;

		if (kind != NULL) {
			its = name_kind(names.list[i]);
			fits = its != NULL && strcmp(its, kind) == 0;
			free(its);
		}
		if (fits && add(cs, dir, names.list[i]) == -1) {
			err_memory(err);
			goto out;
		}
	}
	drop_pickles(cs);
	sort(cs);
	rc = 0;
out:
	names_fini(&names);
	return rc;
}

int
checkpoints_list(struct checkpoints *cs, const char *dir, struct err *err)
{
	return list(cs, dir, NULL, err);
}

static int
find(struct checkpoints *cs, const char *dir, const char *kind, int threads,
    struct err *err)
{
	struct checkpoint_options opts = { .structure_only = true,
	    .threads = threads };

	if (list(cs, dir, kind, err) == -1 ||
	    checkpoint_check(cs->list, cs->n, &opts, NULL, NULL, err) == -1)
		return -1;
	sort(cs);
	return expect_same_files(cs) == -1 ? err_memory(err) : 0;
}

int
checkpoints_find(struct checkpoints *cs, const char *dir, int threads,
    struct err *err)
{
	return find(cs, dir, NULL, threads, err);
}

int
checkpoints_find_like(struct checkpoints *cs, const char *path, int threads,
    struct err *err)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash == NULL ? strdup(".") :
	    strndup(path, slash == path ? 1 : (size_t)(slash - path));
	char *kind = name_kind(path);
	int rc = dir == NULL || kind == NULL ? err_memory(err) :
	    find(cs, dir, kind, threads, err);

	free(kind);
	free(dir);
	return rc;
}

/* qsort() need not keep the order of equals. */
static void
put_first(struct checkpoints *cs, const char *dir)
{
	struct checkpoint swap;
	size_t i;

	for (i = 1; i < cs->n; i++) {
		struct checkpoint *a = &cs->list[i - 1], *b = &cs->list[i];

		if (checkpoint_step(a) != checkpoint_step(b) ||
		    file_inside(dir, a->path) != NULL ||
		    file_inside(dir, b->path) == NULL)
			continue;
		swap = *a;
		*a = *b;
		*b = swap;
	}
}

int
checkpoints_find_both(struct checkpoints *cs, const char *first,
    const char *dir, int threads, struct err *err)
{
	struct checkpoints staged = {0};
	struct stat st;

	if (checkpoints_find(cs, dir, threads, err) == -1)
		return -1;
	if (stat(first, &st) == -1 && errno == ENOENT)
		return 0;
	if (checkpoints_find(&staged, first, threads, err) == -1) {
		checkpoints_fini(&staged);
		return -1;
	}
	if (checkpoints_move(cs, &staged, err) == -1)
		return -1;
	sort(cs);
	put_first(cs, first);
	return 0;
}

void
checkpoints_fini(struct checkpoints *cs)
{
	size_t i;

	for (i = 0; i < cs->n; i++)
		checkpoint_fini(&cs->list[i]);
	free(cs->list);
	memset(cs, 0, sizeof(*cs));
}

int
checkpoints_move(struct checkpoints *to, struct checkpoints *from,
    struct err *err)
{
	struct checkpoint *list;

	list = reallocarray(to->list, to->n + from->n + 1, sizeof(*list));
	if (list == NULL) {
		checkpoints_fini(from);
		return err_memory(err);
	}
	if (from->n > 0)
		memcpy(list + to->n, from->list, from->n * sizeof(*list));
	to->list = list;
	to->n += from->n;
	to->cap = to->n;
	free(from->list);
	memset(from, 0, sizeof(*from));
	return 0;
}

/* What rules a checkpoint out before its contents are read. */
static void
apply_limits(struct checkpoint *c, const struct latest_options *o)
{
	int64_t step = checkpoint_step(c);
	bool early = o->quiet_ms > 0 && checkpoint_needs_quiet(c) &&
	    c->mtime_ns != REPORT_UNKNOWN &&
	    o->now_ns - c->mtime_ns < o->quiet_ms * 1000000;

	c->held = early;
	if (report_is_bad(&c->report))
		return;
	if (o->before_step != REPORT_UNKNOWN && step == REPORT_UNKNOWN)
		report_say(&c->report, UNVERIFIED,
		    "its step is not known, one before %" PRId64 " is asked for",
		    o->before_step);
	else if (o->before_step != REPORT_UNKNOWN && step >= o->before_step)
		report_say(&c->report, UNVERIFIED, "step %" PRId64
		    " is not before %" PRId64, step, o->before_step);
	if (early)
		report_say(&c->report, INCOMPLETE, "may still be written: changed "
		    "%" PRId64 " s ago", (o->now_ns - c->mtime_ns) / 1000000000);
}

int
checkpoints_latest(struct checkpoints *cs, const struct latest_options *o,
    long *chosen, struct err *err)
{
	struct checkpoint_options opts = { .structure_only = o->structure_only,
	    .trust_manifest = !o->full, .keep_digests = o->keep_digests,
	    .threads = o->threads };
	size_t i;

	*chosen = -1;
	for (i = 0; i < cs->n; i++)
		apply_limits(&cs->list[i], o);
	if (expect_same_files(cs) == -1)
		return err_memory(err);
	for (i = 0; i < cs->n; i++) {
		struct checkpoint *c = &cs->list[i];

		if (c->report.state != VALID)
			continue;
		if (!opts.structure_only && checkpoint_check(c, 1, &opts, NULL,
		    NULL, err) == -1)
			return -1;
		if (c->report.state == VALID) {
			*chosen = (long)i;
			return 0;
		}
	}
	return 0;
}
