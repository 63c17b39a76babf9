/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_nodes.c - agreement by what lies in the shared directory: no node has to reach
 * another one.
 *
 * One of them publishes at a time, by a lock where the file system has locks; a rename
 * of what is gone already changes nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "checkpoint/names.h"
#include "checkpoint/stage_nodes.h"
#include "checkpoint/stage_publish.h"

#define NODE_PREFIX	".node-"	/* NODE.json: it has brought its part */
#define PART_PREFIX	".part-"	/* NODE: what it is copying */
#define LOCK_NAME	".publish.lock"
#define FORGOTTEN_NS	(24 * 3600 * NS_PER_S)

typedef int (*file_fn)(const char *path, const struct stat *, void *arg,
	    struct err *err);

/* Tells each file below a path, not following links. */
static int
each_file(const char *path, int depth, file_fn fn, void *arg, struct err *err)
{
	struct names names = {0};
	struct stat st;
	char *below;
	size_t i;
	int rc = 0;

	if (lstat(path, &st) == -1)
		return errno == ENOENT ? 0 : err_errno(err, "cannot stat %s", path);
	if (!S_ISDIR(st.st_mode))
		return S_ISREG(st.st_mode) ? fn(path, &st, arg, err) : 0;
	if (depth == STAGE_DEPTH_MAX)
		return err_set(err, ERR_LIMIT, "%s is too deep", path);
	if (names_read(&names, path) == -1)
		rc = err_errno(err, "cannot read %s", path);
	for (i = 0; rc == 0 && i < names.n; i++) {
		if ((below = file_join(path, names.list[i])) == NULL)
			rc = err_memory(err);
		else
			rc = each_file(below, depth + 1, fn, arg, err);
		free(below);
	}
	names_fini(&names);
	return rc;
}

static int
measure_file(const char *path, const struct stat *st, void *arg, struct err *err)
{
	struct checkpoint *c = arg;
	int64_t mtime = file_mtime_ns(st);

	(void)path;
	(void)err;
	if (mtime > c->mtime_ns)
		c->mtime_ns = mtime;
	c->size_bytes += st->st_size;
	return 0;
}

static int
newest_first(const void *a, const void *b)
{
	const struct checkpoint *x = a, *y = b;

	if (x->name_step != y->name_step)
		return x->name_step > y->name_step ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* Adds dir/name when it can be a part: a folder with files, or a checkpoint file. */
static int
add_part(struct checkpoints *cs, const char *dir, const char *name,
    struct err *err)
{
	char *path = file_join(dir, name);
	struct checkpoints one = {0};
	struct checkpoint *c = calloc(1, sizeof(*c));
	int rc = -1;

	if (path == NULL || c == NULL || checkpoint_look(c, path) == -1) {
		free(c);
		err_memory(err);
		goto out;
	}
	one.list = c;
	one.n = 1;
	c->mtime_ns = INT64_MIN;
	c->size_bytes = 0;
	if (each_file(path, 0, measure_file, c, err) == -1)
		goto out;
	if (c->mtime_ns == INT64_MIN ||
	    (!c->is_dir && !name_is_checkpoint_file(name)))
		rc = 0;
	else
		rc = checkpoints_move(cs, &one, err);
out:
	checkpoints_fini(&one);
	free(path);
	return rc;
}

int
nodes_list(struct checkpoints *cs, const char *from, struct err *err)
{
	struct names names = {0};
	size_t i;
	int rc = 0;

	*cs = (struct checkpoints){0};
	if (names_read(&names, from) == -1)
		rc = err_errno(err, "cannot read %s", from);
	for (i = 0; rc == 0 && i < names.n; i++)
		if (!name_is_temporary(names.list[i]))
			rc = add_part(cs, from, names.list[i], err);
	names_fini(&names);
	if (cs->n > 0)
		qsort(cs->list, cs->n, sizeof(*cs->list), newest_first);
	return rc;
}

static int
check_file(const char *path, const struct stat *st, void *arg, struct err *err)
{
	struct checkpoint_options opts = { .threads = 1 };
	struct checkpoint *whole = arg, c;
	const char *name = strrchr(path, '/');
	int rc;

	(void)st;
	/* Parts of a distributed checkpoint are checked with its metadata. */
	if (!name_is_checkpoint_file(path) || name_ends_with(path, ".distcp"))
		return 0;
	if (checkpoint_look(&c, path) == -1)
		rc = err_memory(err);
	else if ((rc = checkpoint_check(&c, 1, &opts, NULL, NULL, err)) == 0 &&
	    report_is_bad(&c.report))
		report_say(&whole->report, c.report.state, "%s: %s",
		    name != NULL ? name + 1 : path,
		    c.report.reason ? c.report.reason : "bad");
	checkpoint_fini(&c);
	return rc;
}

int
nodes_check_part(struct checkpoint *c, struct err *err)
{
	report_fini(&c->report);
	report_init(&c->report);
	return each_file(c->path, 0, check_file, c, err);
}

/* Moves what was copied file by file into the shared folder. */
static int
merge(const char *part, const char *work, int depth, struct err *err)
{
	struct names names = {0};
	char *a, *b;
	struct stat st;
	size_t i;
	int rc = 0;

	if (depth == STAGE_DEPTH_MAX)
		return err_set(err, ERR_LIMIT, "%s is too deep", part);
	if (mkdir(work, 0777) == -1 && errno != EEXIST)
		return err_errno(err, "cannot create %s", work);
	if (names_read(&names, part) == -1)
		rc = err_errno(err, "cannot read %s", part);
	for (i = 0; rc == 0 && i < names.n; i++) {
		a = file_join(part, names.list[i]);
		b = file_join(work, names.list[i]);
		if (a == NULL || b == NULL)
			rc = err_memory(err);
		else if (lstat(a, &st) == -1)
			rc = err_errno(err, "cannot stat %s", a);
		else if (S_ISDIR(st.st_mode))
			rc = merge(a, b, depth + 1, err);
		else if (rename(a, b) == -1)
			rc = err_errno(err, "cannot rename %s to %s", a, b);
		free(a);
		free(b);
	}
	names_fini(&names);
	return rc == 0 ? file_sync_dir(work, err) : -1;
}

static int
leave_note(const struct stage_copy *copy, const char *work, const char *node,
    struct err *err)
{
	char path[PATH_MAX], *line = NULL;
	cJSON *json = cJSON_CreateObject();
	int rc = -1;

	if (json == NULL || json_add_text(json, "node", node) == -1 ||
	    json_add_int(json, "files", (int64_t)copy->n) == -1 ||
	    (line = json_line(json)) == NULL)
		err_memory(err);
	else if (snprintf(path, sizeof(path), "%s/" NODE_PREFIX "%s.json", work,
	    node) >= (int)sizeof(path))
		err_set(err, ERR_LIMIT, "path too long: %s", work);
	else
		rc = file_write_atomic(path, line, strlen(line), 0644, err);
	free(line);
	cJSON_Delete(json);
	return rc;
}

int
nodes_bring(struct stage_copy *copy, const struct checkpoint *c,
    const char *work, const char *node, struct err *err)
{
	char part[PATH_MAX];
	int rc;

	if (snprintf(part, sizeof(part), "%s/" PART_PREFIX "%s", work, node) >=
	    (int)sizeof(part))
		return err_set(err, ERR_LIMIT, "path too long: %s", work);
	if (file_mkdirs(work, 0777, err) == -1 || stage_remove(part, err) == -1)
		return -1;
	if ((rc = stage_copy_run(copy, c->path, part, err)) == 0 &&
	    (rc = merge(part, work, 0, err)) == 0)
		rc = leave_note(copy, work, node, err);
	if (stage_remove(part, rc == 0 ? err : NULL) == -1)
		rc = -1;
	return rc;
}

/* Nodes that have brought their part; -1 with errno when nobody knows. */
static int
count_nodes(const char *work, bool *busy)
{
	struct names names = {0};
	size_t i;
	int n = 0;

	*busy = false;
	if (names_read(&names, work) == -1) {
		names_fini(&names);
		return -1;
	}
	for (i = 0; i < names.n; i++) {
		n += strncmp(names.list[i], NODE_PREFIX,
		    strlen(NODE_PREFIX)) == 0;
		*busy |= strncmp(names.list[i], PART_PREFIX,
		    strlen(PART_PREFIX)) == 0;
	}
	names_fini(&names);
	return n;
}

/* 1 when the format calls it whole, or cannot know and all nodes were here. */
static int
is_whole(const char *work, const struct stage_options *o, struct err *err)
{
	struct checkpoint_options opts = { .structure_only = true, .threads = 1 };
	struct checkpoint c;
	bool busy;
	int n = count_nodes(work, &busy), rc = -1;

	if (n == -1)
		return errno == ENOENT ? 0 : err_errno(err, "cannot read %s", work);
	if (n == 0 || busy)
		return 0;
	if (checkpoint_look(&c, work) == -1)
		err_memory(err);
	else if (checkpoint_check(&c, 1, &opts, NULL, NULL, err) == 0)
		rc = c.format != NULL && !report_is_bad(&c.report) &&
		    (!c.format->same_files || n >= (int)o->nodes);
	checkpoint_fini(&c);
	return rc;
}

static int
publish(const char *work, const char *place, const struct stage_options *o,
    struct err *err)
{
	int rc = is_whole(work, o, err);

	if (rc != 1)
		return rc;
	/* Without locks another node may have been faster. */
	if (publish_move(work, place, err) == -1)
		return err->errnum == ENOENT ? 0 : -1;
	/* The notes are for the nodes alone: only there they do harm when they go and
	 * the rest does not come. */
	(void)stage_remove_inside(place, NODE_PREFIX, NULL);
	return 1;
}

int
nodes_publish(const char *work, const char *place,
    const struct stage_options *o, struct err *err)
{
	char lock[PATH_MAX];
	int fd, rc;

	snprintf(lock, sizeof(lock), "%.4000s/" STAGE_INCOMING "/" LOCK_NAME,
	    o->to);
	fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd == -1)
		return err_errno(err, "cannot open %s", lock);
	if (flock(fd, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK)
		rc = 0;
	else
		rc = publish(work, place, o, err);
	close(fd);
	return rc;
}

static int
newest_file(const char *path, const struct stat *st, void *arg, struct err *err)
{
	int64_t *newest = arg, mtime = file_mtime_ns(st);

	(void)path;
	(void)err;
	*newest = mtime > *newest ? mtime : *newest;
	return 0;
}

int
nodes_clear(const char *incoming, const char *node, struct err *err)
{
	int64_t now = clock_wall_ns(&clock_system), newest;
	struct names names = {0};
	char part[PATH_MAX], *path;
	size_t i;
	int rc = 0;

	if (names_read(&names, incoming) == -1)
		rc = err_errno(err, "cannot read %s", incoming);
	for (i = 0; rc == 0 && i < names.n; i++) {
		if (names.list[i][0] == '.')
			continue;
		if ((path = file_join(incoming, names.list[i])) == NULL) {
			rc = err_memory(err);
			break;
		}
		snprintf(part, sizeof(part), "%.4000s/" PART_PREFIX "%s", path,
		    node);
		newest = 0;
		rc = stage_remove(part, err);
		if (rc == 0)
			rc = each_file(path, 0, newest_file, &newest, err);
		if (rc == 0 && newest > 0 && now - newest > FORGOTTEN_NS)
			rc = stage_remove(path, err);
		free(path);
	}
	names_fini(&names);
	return rc;
}
