/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracker.c - reads what the trackers point to and rewrites those that point to
 * nothing.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/file.h"
#include "common/json.h"
#include "checkpoint/report.h"
#include "checkpoint/tracker.h"

#define TRACKER_MAX	65536	/* bytes; a larger file is no tracker */

struct target {
	const char	*name;
	int64_t		 step;
};

struct tracker {
	const char	*file;
	/* the name of the checkpoint it points to; "" for none, -1 not a tracker */
	int		(*read)(const struct buf *text, char *name, size_t size);
	/* its new text; -1 when this target cannot be said in it */
	int		(*write)(const struct buf *old, const struct target *,
			    struct buf *text);
};

static bool
exists(const char *dir, const char *name)
{
	char *path = file_join(dir, name);
	struct stat st;
	bool is;

	is = path != NULL && lstat(path, &st) == 0;
	free(path);
	return is;
}

/* The text without the white space around it. */
static int
trimmed(const struct buf *text, char *out, size_t size)
{
	const char *p = text->data != NULL ? text->data : "";
	size_t n = text->len;

	while (n > 0 && (isspace((unsigned char)*p) || *p == '\0')) {
		p++;
		n--;
	}
	while (n > 0 && (isspace((unsigned char)p[n - 1]) || p[n - 1] == '\0'))
		n--;
	if (n >= size || memchr(p, '/', n) != NULL || memchr(p, '\0', n) != NULL)
		return -1;
	memcpy(out, p, n);
	out[n] = '\0';
	return 0;
}

static int
json_read(const struct buf *text, char *name, size_t size)
{
	const char *slash, *file;
	cJSON *json;
	int rc = 0;

	name[0] = '\0';
	if (text->data == NULL ||
	    json_parse(text->data, text->len, &json, NULL) == -1)
		return 0;
	file = json_str(json, "file", NULL);
	if (file == NULL) {
		rc = -1;
	} else {
		slash = strrchr(file, '/');
		if (snprintf(name, size, "%s", slash ? slash + 1 : file) >=
		    (int)size)
			rc = -1;
	}
	cJSON_Delete(json);
	return rc;
}

static int
json_write(const struct buf *old, const struct target *t, struct buf *text)
{
	cJSON *json = NULL;
	char *line = NULL;
	int rc = -1;

	if (old->data == NULL || json_parse(old->data, old->len, &json, NULL)
	    == -1 || !cJSON_IsObject(json)) {
		cJSON_Delete(json);
		json = cJSON_CreateObject();
	}
	cJSON_DeleteItemFromObjectCaseSensitive(json, "file");
	cJSON_DeleteItemFromObjectCaseSensitive(json, "step");
	if (json_add_text(json, "file", t->name) == 0 &&
	    json_add_int(json, "step", t->step) == 0 &&
	    (line = json_line(json)) != NULL)
		rc = buf_puts(text, line);
	free(line);
	cJSON_Delete(json);
	return rc;
}

/* Megatron: a decimal number, or "release" for the folder of that name. */
static int
iteration_read(const struct buf *text, char *name, size_t size)
{
	char word[32];
	int64_t n = 0;
	char *end;

	name[0] = '\0';
	if (trimmed(text, word, sizeof(word)) == -1)
		return -1;
	if (word[0] == '\0')
		return 0;
	if (strcmp(word, "release") == 0)
		return snprintf(name, size, "release") < 0 ? -1 : 0;
	errno = 0;
	n = strtoll(word, &end, 10);
	if (*end != '\0' || errno != 0 || n < 0)
		return 0;
	snprintf(name, size, "iter_%07" PRId64, n);
	return 0;
}

static int
iteration_write(const struct buf *old, const struct target *t, struct buf *text)
{
	char want[48];

	(void)old;
	snprintf(want, sizeof(want), "iter_%07" PRId64, t->step);
	if (t->step < 0 || strcmp(want, t->name) != 0)
		return -1;
	return buf_printf(text, "%" PRId64, t->step);
}

static int
tag_read(const struct buf *text, char *name, size_t size)
{
	return trimmed(text, name, size);
}

static int
tag_write(const struct buf *old, const struct target *t, struct buf *text)
{
	(void)old;
	return buf_puts(text, t->name);
}

static const struct tracker trackers[] = {
	{ "latest.json", json_read, json_write },
	{ "latest_checkpointed_iteration.txt", iteration_read, iteration_write },
	{ "latest", tag_read, tag_write },
	{ NULL, NULL, NULL }
};

/* Keeps the old value beside the checkpoints that were moved. */
static int
keep_old(const char *keep_dir, const char *file, const void *text, size_t len,
    struct err *err)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s.%lld", keep_dir, file,
	    (long long)time(NULL)) >= (int)sizeof(path))
		return err_set(err, ERR_LIMIT, "path too long: %s", keep_dir);
	return file_write_atomic(path, text, len, 0644, err);
}

static int
repair_file(const struct tracker *t, const char *dir,
    const struct target *target, const char *keep_dir, struct names *changed,
    struct err *err)
{
	struct buf old = {0}, text = {0};
	char name[NAME_MAX + 1];
	struct stat st;
	char *path;
	int rc = 0;

	if ((path = file_join(dir, t->file)) == NULL)
		return err_memory(err);
	if (lstat(path, &st) == -1 || !S_ISREG(st.st_mode))
		goto out;
	rc = -1;
	if (file_read(path, TRACKER_MAX, &old, err) == -1)
		goto out;
	rc = 0;
	if (t->read(&old, name, sizeof(name)) == -1 ||
	    (name[0] != '\0' && exists(dir, name)) ||
	    t->write(&old, target, &text) == -1)
		goto out;
	rc = -1;
	if (keep_old(keep_dir, t->file, old.data != NULL ? old.data : "",
	    old.len, err) == -1 ||
	    file_write_atomic(path, text.data, text.len, st.st_mode & 0777, err)
	    == -1)
		goto out;
	rc = changed != NULL ? names_add(changed, t->file) : 0;
out:
	buf_fini(&old);
	buf_fini(&text);
	free(path);
	return rc;
}

/* A link of dir to a neighbour that is gone, such as last.ckpt, is replaced by one
 * to the target. */
static int
repair_link(const char *dir, const char *link, const struct target *target,
    const char *keep_dir, struct names *changed, struct err *err)
{
	char old[PATH_MAX], temp[PATH_MAX];
	char *path;
	struct stat st;
	ssize_t n;
	int rc = 0;

	if ((path = file_join(dir, link)) == NULL)
		return err_memory(err);
	n = readlink(path, old, sizeof(old) - 1);
	if (n <= 0 || stat(path, &st) == 0 || errno != ENOENT)
		goto out;
	old[n] = '\0';
	if (strchr(old, '/') != NULL)
		goto out;	/* leads elsewhere: not ours to judge */
	rc = -1;
	if (snprintf(temp, sizeof(temp), "%s/.%s.%ld", dir, link,
	    (long)getpid()) >= (int)sizeof(temp)) {
		err_set(err, ERR_LIMIT, "path too long: %s", dir);
		goto out;
	}
	if (keep_old(keep_dir, link, old, (size_t)n, err) == -1)
		goto out;
	if (symlink(target->name, temp) == -1 || rename(temp, path) == -1) {
		err_errno(err, "cannot replace the link %s", path);
		unlink(temp);
		goto out;
	}
	rc = file_sync_dir(dir, err);
	if (rc == 0 && changed != NULL)
		rc = names_add(changed, link);
out:
	free(path);
	return rc;
}

int
tracker_repair(const char *dir, const char *name, int64_t step,
    const char *keep_dir, struct names *changed, struct err *err)
{
	struct target target = { name, step };
	struct names names = {0};
	size_t i;
	int rc = 0;

	for (i = 0; trackers[i].file != NULL; i++)
		if (repair_file(&trackers[i], dir, &target, keep_dir, changed,
		    err) == -1)
			rc = -1;
	if (names_read(&names, dir) == -1)
		rc = err_errno(err, "cannot read %s", dir);
	/* only links that say "the last one"; others mean that very checkpoint */
	for (i = 0; i < names.n; i++)
		if ((strncasecmp(names.list[i], "last", 4) == 0 ||
		    strncasecmp(names.list[i], "latest", 6) == 0) &&
		    repair_link(dir, names.list[i], &target, keep_dir, changed,
		    err) == -1)
			rc = -1;
	names_fini(&names);
	return rc;
}
