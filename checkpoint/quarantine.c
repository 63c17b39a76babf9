/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quarantine.c - one rename into the folder beside the save directory, with the
 * reason written first, so that nothing stands there unexplained.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "checkpoint/beside.h"
#include "checkpoint/quarantine.h"

#define REASON_MAX	(1u << 20)	/* bytes of a reason file */
#define SAME_NAME_MAX	10000		/* checkpoints of one name */

char *
quarantine_dir(const char *save_dir, struct err *err)
{
	return beside_path(save_dir, "", QUARANTINE_SUFFIX, err);
}

/* A name in dir that is free, with its reason file's. */
static int
free_name(const char *dir, const char *name, char *to, char *reason,
    struct err *err)
{
	struct stat st;
	int i, n;

	for (i = 1; i < SAME_NAME_MAX; i++) {
		if (i == 1)
			n = snprintf(to, PATH_MAX, "%s/%s", dir, name);
		else
			n = snprintf(to, PATH_MAX, "%s/%s.%d", dir, name, i);
		if (n >= PATH_MAX || snprintf(reason, PATH_MAX, "%s.json", to) >=
		    PATH_MAX)
			return err_set(err, ERR_LIMIT, "path too long: %s", dir);
		if (lstat(to, &st) == -1 && errno == ENOENT &&
		    lstat(reason, &st) == -1 && errno == ENOENT)
			return 0;
	}
	return err_set(err, ERR_LIMIT, "too many checkpoints named %s in %s",
	    name, dir);
}

static int
write_reason(const char *path, const struct checkpoint *c,
    const char *original, struct err *err)
{
	char now[CLOCK_TEXT_MAX];
	cJSON *json = cJSON_CreateObject();
	char *line = NULL;
	int rc;

	clock_format(clock_wall_ns(&clock_system), now);
	if (json == NULL ||
	    json_add_text(json, "schema", QUARANTINE_SCHEMA) == -1 ||
	    json_add_text(json, "time", now) == -1 ||
	    json_add_text(json, "original", original) == -1 ||
	    json_add_int(json, "step", checkpoint_step(c)) == -1 ||
	    json_add_text(json, "format", checkpoint_format_name(c)) == -1 ||
	    json_add_text(json, "state",
	    holdfast_checkpoint_state_name(c->report.state)) == -1 ||
	    json_add_text(json, "reason", c->report.reason) == -1 ||
	    (line = json_line(json)) == NULL)
		rc = err_memory(err);
	else
		rc = file_write_atomic(path, line, strlen(line), 0644, err);
	free(line);
	cJSON_Delete(json);
	return rc;
}

/* It is still what was checked; a trainer may have written another one there. */
static int
check_unchanged(const struct checkpoint *c, struct err *err)
{
	struct checkpoint now;
	int rc = 0;

	if (checkpoint_look(&now, c->path) == -1)
		rc = err_memory(err);
	else if (now.mtime_ns != c->mtime_ns || now.size_bytes != c->size_bytes ||
	    now.parts.n != c->parts.n)
		rc = err_set(err, ERR_BUSY, "%s changed since it was checked: is a "
		    "job writing it? Nothing was moved; try again", c->path);
	checkpoint_fini(&now);
	return rc;
}

int
quarantine_move(const char *save_dir, const struct checkpoint *c,
    char **moved_to, struct err *err)
{
	char to[PATH_MAX], reason[PATH_MAX], original[PATH_MAX];
	char *dir = NULL, *parent = NULL;
	const char *name;
	int rc = -1;

	*moved_to = NULL;
	if ((parent = beside_split(c->path, &name, err)) == NULL ||
	    (dir = quarantine_dir(save_dir, err)) == NULL)
		goto out;
	if (snprintf(original, sizeof(original), "%s/%s", parent, name) >=
	    (int)sizeof(original)) {
		err_set(err, ERR_LIMIT, "path too long: %s", c->path);
		goto out;
	}
	if (check_unchanged(c, err) == -1 ||
	    beside_make(save_dir, dir, err) == -1)
		goto out;
	if (free_name(dir, name, to, reason, err) == -1)
		goto drop;
	if ((rc = write_reason(reason, c, original, err)) == -1)
		beside_advise(err);
	else
		rc = beside_move(original, to, err);
	if (rc == -1) {
		unlink(reason);
		goto drop;
	}
	if ((*moved_to = strdup(to)) == NULL)
		rc = err_memory(err);
	else
		rc = beside_follow(original, to, err);
	goto out;
drop:
	(void)rmdir(dir);	/* unless others are in it */
out:
	free(parent);
	free(dir);
	return rc;
}

static int
read_reason(const char *path, cJSON **json, struct err *err)
{
	struct buf text = {0};
	int rc = -1;

	*json = NULL;
	if (file_read(path, REASON_MAX, &text, err) == 0 &&
	    json_parse(text.data != NULL ? text.data : "", text.len, json, err)
	    == 0) {
		rc = 0;
		if (strcmp(json_str(*json, "schema", ""), QUARANTINE_SCHEMA)
		    != 0) {
			cJSON_Delete(*json);
			*json = NULL;
			rc = err_set(err, ERR_FORMAT,
			    "%s is no reason file of a quarantine", path);
		}
	}
	buf_fini(&text);
	return rc;
}

int
quarantine_undo(const char *path, char **moved_to, struct err *err)
{
	char reason[PATH_MAX], from[PATH_MAX];
	const char *name, *original;
	char *dir;
	cJSON *json = NULL;
	struct stat st;
	int rc = -1;

	*moved_to = NULL;
	if ((dir = beside_split(path, &name, err)) == NULL)
		return -1;
	if (!name_ends_with(dir, QUARANTINE_SUFFIX)) {
		err_set(err, ERR_USAGE, "%s is not in a quarantine (*%s)", path,
		    QUARANTINE_SUFFIX);
		goto out;
	}
	if (snprintf(from, sizeof(from), "%s/%s", dir, name) >=
	    (int)sizeof(from) || snprintf(reason, sizeof(reason), "%s/%s.json",
	    dir, name) >= (int)sizeof(reason)) {
		err_set(err, ERR_LIMIT, "path too long: %s", path);
		goto out;
	}
	if (read_reason(reason, &json, err) == -1)
		goto out;
	original = json_str(json, "original", "");
	/* U+FFFD stands for bytes that JSON cannot hold */
	if (original[0] != '/' || strstr(original, "\xef\xbf\xbd") != NULL) {
		err_set(err, ERR_FORMAT, "%s does not say where it was: move it by "
		    "hand", reason);
		goto out;
	}
	if (lstat(original, &st) == 0) {
		err_set(err, ERR_BUSY, "%s exists again: move it away first",
		    original);
		goto out;
	}
	/* The marker that says "unfinished" is there before what it speaks of. */
	if (beside_follow(from, original, err) == -1 ||
	    beside_move(from, original, err) == -1)
		goto out;
	unlink(reason);
	if ((*moved_to = strdup(original)) == NULL)
		err_memory(err);
	else
		rc = 0;
out:
	cJSON_Delete(json);
	free(dir);
	return rc;
}

int
quarantine_list(const char *save_dir,
    void (*each)(void *, const char *, const char *), void *arg,
    struct err *err)
{
	struct names names = {0};
	char *dir, *path, *line;
	struct stat st;
	cJSON *json;
	size_t i, len;
	int rc = 0;

	if ((dir = name_ends_with(save_dir, QUARANTINE_SUFFIX) ?
	    strdup(save_dir) : quarantine_dir(save_dir, err)) == NULL)
		return -1;
	if (names_read(&names, dir) == -1) {
		if (errno != ENOENT)
			rc = err_errno(err, "cannot read %s", dir);
		goto out;
	}
	for (i = 0; i < names.n; i++) {
		if (!name_ends_with(names.list[i], ".json") ||
		    (path = file_join(dir, names.list[i])) == NULL)
			continue;
		len = strlen(path) - 5;
		if (read_reason(path, &json, NULL) == 0) {
			path[len] = '\0';
			if (lstat(path, &st) == 0 &&
			    json_add_text(json, "path", path) == 0 &&
			    (line = json_line(json)) != NULL) {
				each(arg, path, line);
				free(line);
			}
			cJSON_Delete(json);
		}
		free(path);
	}
out:
	names_fini(&names);
	free(dir);
	return rc;
}
