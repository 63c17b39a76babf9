/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_tree.c - finds the logs of a directory.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/file.h"
#include "diagnose/feed_file.h"
#include "diagnose/feed_name.h"
#include "diagnose/feed_tree.h"

#define DEPTH_MAX	16
#define STREAMS_MAX	200000

static int add_tree(struct feed *, const char *, const char *, int,
    struct err *);

/* One entry of a directory; what cannot be read is noted, not fatal. */
static int
add_entry(struct feed *f, const char *dir, const char *rel, const char *name,
    int depth, struct err *err)
{
	char *path = file_join(dir, name);
	char *sub = *rel ? file_join(rel, name) : strdup(name);
	struct err why = {0};
	struct stat st;
	int rc = 0;

	if (path == NULL || sub == NULL) {
		rc = err_memory(err);
	} else if (stat(path, &st) == -1) {
		feed_add_missing(f, sub, strerror(errno));
	} else if (S_ISDIR(st.st_mode)) {
		rc = add_tree(f, path, sub, depth + 1, err);
	} else if (S_ISREG(st.st_mode) && feed_name_is_log(name)) {
		if (f->count >= STREAMS_MAX)
			feed_add_missing(f, sub, "too many files");
		else if (feed_file_add(f, path, sub, &why) == -1)
			feed_add_missing(f, sub, why.text);
	}
	free(path);
	free(sub);
	return rc;
}

static int
add_tree(struct feed *f, const char *dir, const char *rel, int depth,
    struct err *err)
{
	struct dirent **names;
	int i, n, rc = 0;

	if (depth > DEPTH_MAX)
		return 0;
	if ((n = scandir(dir, &names, NULL, alphasort)) == -1) {
		if (depth == 0)
			return err_errno(err, "cannot read");
		feed_add_missing(f, rel, strerror(errno));
		return 0;
	}
	for (i = 0; i < n; i++) {
		if (rc == 0 && names[i]->d_name[0] != '.')
			rc = add_entry(f, dir, rel, names[i]->d_name, depth, err);
		free(names[i]);
	}
	free(names);
	return rc;
}

/* A run directory stands for its newest attempt. */
static char *
newest_attempt(const char *dir)
{
	char *attempts = file_join(dir, "attempts"), *path = NULL;
	struct dirent **names;
	int i, n;

	n = attempts ? scandir(attempts, &names, NULL, alphasort) : -1;
	for (i = n - 1; i >= 0; i--) {
		if (path == NULL && isdigit((unsigned char)names[i]->d_name[0]))
			path = file_join(attempts, names[i]->d_name);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	free(attempts);
	return path;
}

int
feed_tree_add(struct feed *f, const char *dir, struct err *err)
{
	char *attempt = newest_attempt(dir);
	size_t before = f->count + f->missing_count;
	int rc;

	rc = add_tree(f, attempt ? attempt : dir,
	    attempt ? attempt + strlen(dir) + 1 : "", 0, err);
	free(attempt);
	if (rc == 0 && f->count + f->missing_count == before)
		rc = err_set(err, ERR_USAGE, "no log in it");
	return rc;
}
