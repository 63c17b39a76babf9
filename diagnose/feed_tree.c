/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_tree.c - finds the logs of a directory.
 *
 * Where a job was tried several times, only the newest attempt that wrote
 * something is read: Holdfast's attempts/NNNN, torchrun's attempt_N.
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
#include "diagnose/feed_seen.h"
#include "diagnose/feed_tree.h"

#define DEPTH_MAX	16
#define STREAMS_MAX	200000

static int add_tree(struct feed *, const char *, const char *, int,
    struct err *);

static int
compare(const struct dirent **a, const struct dirent **b)
{
	return feed_name_compare((*a)->d_name, (*b)->d_name);
}

static int
list(const char *dir, struct dirent ***names)
{
	return scandir(dir, names, NULL, compare);
}

static void
list_free(struct dirent **names, int n)
{
	while (n > 0)
		free(names[--n]);
	free(names);
}

/* The folder "attempt_3", or in a folder of attempts "0003". */
static bool
is_attempt(const char *dir, const char *name)
{
	const char *number = name;
	struct stat st;
	char *path;
	bool is;

	if (strcmp(feed_name_base(dir), "attempts") != 0) {
		if (strncmp(name, "attempt_", 8) != 0)
			return false;
		number += 8;
	}
	if (*number == '\0' || strspn(number, "0123456789") != strlen(number) ||
	    (path = file_join(dir, name)) == NULL)
		return false;
	is = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	free(path);
	return is;
}

/* Some log in it is not empty.  Folders are looked into once, as links may lead to
 * any of them again and again. */
static bool
has_content(const char *dir, int depth, struct feed *looked)
{
	struct dirent **names;
	bool found = false;
	struct stat st;
	char *path;
	int i, n;

	if (depth > DEPTH_MAX || (n = list(dir, &names)) == -1)
		return false;
	for (i = 0; i < n && !found; i++) {
		const char *name = names[i]->d_name;

		if (name[0] == '.' || (path = file_join(dir, name)) == NULL)
			continue;
		if (stat(path, &st) == 0)
			found = S_ISDIR(st.st_mode) ?
			    !feed_seen(looked, &st) &&
			    has_content(path, depth + 1, looked) :
			    S_ISREG(st.st_mode) && st.st_size > 0 &&
			    feed_name_is_log(name);
		free(path);
	}
	list_free(names, n);
	return found;
}

/* Index of the attempt to read, the last one when all are empty; -1: none. */
static int
newest_attempt(const char *dir, struct dirent **names, int n)
{
	struct feed looked = {0};
	bool found = false;
	int i, last = -1;
	char *path;

	for (i = n - 1; i >= 0 && !found; i--) {
		if (!is_attempt(dir, names[i]->d_name))
			continue;
		path = file_join(dir, names[i]->d_name);
		found = path != NULL && has_content(path, 0, &looked);
		free(path);
		if (found || last == -1)
			last = i;
	}
	feed_seen_free(&looked);
	return last;
}

static bool
same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* True for a link in `dir` to this folder or one above it, out of the tree. */
static bool
leads_up(const char *link, const struct stat *target, const char *dir)
{
	struct stat at, last = {0};
	char *path = NULL, *up;
	bool found = false;

	if (lstat(link, &at) == 0 && S_ISLNK(at.st_mode))
		path = strdup(dir);
	while (path != NULL && !found && stat(path, &at) == 0 &&
	    !same_file(&at, &last)) {
		found = same_file(&at, target);
		last = at;
		up = file_join(path, "..");
		free(path);
		path = up;
	}
	free(path);
	return found;
}

/* One file or folder; what cannot be read is noted, not fatal. */
static int
add_entry(struct feed *f, const char *dir, const char *path, const char *name,
    int depth, struct err *err)
{
	struct err why = {0};
	struct stat st;

	if (stat(path, &st) == -1)
		feed_add_missing(f, name, strerror(errno));
	else if (S_ISDIR(st.st_mode))
		return leads_up(path, &st, dir) || feed_seen(f, &st) ? 0 :
		    add_tree(f, path, name, depth + 1, err);
	else if (S_ISREG(st.st_mode) &&
	    feed_name_is_log(feed_name_base(name)) && !feed_seen(f, &st)) {
		if (f->count >= STREAMS_MAX)
			feed_add_missing(f, name, "too many files");
		else if (feed_file_add(f, path, name, true, &why) == -1)
			feed_add_missing(f, name, why.text);
	}
	return 0;
}

static int
add_tree(struct feed *f, const char *dir, const char *rel, int depth,
    struct err *err)
{
	struct dirent **names;
	int i, n, newest, rc = 0;
	char *path, *sub;

	if (depth > DEPTH_MAX) {
		feed_add_missing(f, rel, "too deep");
		return 0;
	}
	if ((n = list(dir, &names)) == -1) {
		if (depth == 0)
			return err_errno(err, "cannot read");
		feed_add_missing(f, rel, strerror(errno));
		return 0;
	}
	newest = newest_attempt(dir, names, n);
	for (i = 0; i < n && rc == 0; i++) {
		const char *name = names[i]->d_name;

		if (name[0] == '.' || (i != newest && is_attempt(dir, name)))
			continue;
		path = file_join(dir, name);
		sub = *rel ? file_join(rel, name) : strdup(name);
		rc = path == NULL || sub == NULL ? err_memory(err) :
		    add_entry(f, dir, path, sub, depth, err);
		free(path);
		free(sub);
	}
	list_free(names, n);
	return rc;
}

/* A run's folder of attempts; what else the run keeps quotes logs.  NULL when there
 * is none. */
static char *
attempts_of(const char *dir)
{
	char *path = file_join(dir, "attempts");
	struct dirent **names;
	int i, n = path ? list(path, &names) : -1;
	bool found = false;

	for (i = 0; i < n; i++)
		found = found || is_attempt(path, names[i]->d_name);
	if (n >= 0)
		list_free(names, n);
	if (!found) {
		free(path);
		path = NULL;
	}
	return path;
}

/* The output of Holdfast's agent on NODE is NODE.log, beside NODE.exits. */
static void
name_nodes(struct feed *f, size_t from)
{
	size_t i, k, n;

	for (i = from; i < f->count; i++) {
		const struct stream *e = &f->streams[i];

		if (e->kind != STREAM_EXITS)
			continue;
		n = strlen(e->name) - strlen(".exits");
		/* In order of names little can stand between them. */
		for (k = i + 1; k < f->count && k < i + 4; k++) {
			struct stream *s = &f->streams[k];

			if (s->node == NULL && e->node != NULL &&
			    strncmp(s->name, e->name, n) == 0 &&
			    strcmp(s->name + n, ".log") == 0)
				s->node = strdup(e->node);
		}
	}
}

int
feed_tree_add(struct feed *f, const char *dir, struct err *err)
{
	size_t streams = f->count, before = f->count + f->missing_count;
	size_t n = strlen(dir);
	char *root, *attempts;
	int rc;

	while (n > 1 && dir[n - 1] == '/')
		n--;
	if ((root = strndup(dir, n)) == NULL)
		return err_memory(err);
	attempts = attempts_of(root);
	rc = add_tree(f, attempts ? attempts : root,
	    attempts ? "attempts" : "", 0, err);
	free(root);
	free(attempts);
	name_nodes(f, streams);
	if (rc == 0 && f->count + f->missing_count == before)
		rc = err_set(err, ERR_USAGE, "no log in it");
	return rc;
}
