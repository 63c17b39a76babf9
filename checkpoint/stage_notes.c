/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_notes.c - reads trackers as they are and writes them elsewhere: staging need
 * not know whose they are, only what they name.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/names.h"
#include "checkpoint/stage_notes.h"

static int
read_link(const char *path, struct buf *text, struct err *err)
{
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	if (n == -1)
		return errno == ENOENT ? 0 : err_errno(err, "cannot read %s", path);
	/* "last.ckpt -> step200.ckpt"; other links lead out of the directory, or to
	 * all of it. */
	if (n == 0 || target[0] == '.' || memchr(target, '/', (size_t)n) != NULL)
		return 0;
	return buf_append(text, target, (size_t)n) == 0 ? 1 : err_memory(err);
}

/* 1; 0 for what is no note, or may still be written (*young, which may be NULL); -1 when
 * nobody knows what it is. */
static int
read_note(const char *path, int64_t since_ns, struct note *n, bool *young,
    struct err *err)
{
	struct stat st;

	if (lstat(path, &st) == -1)
		return errno == ENOENT ? 0 : err_errno(err, "cannot stat %s", path);
	if (file_mtime_ns(&st) > since_ns) {
		if (young != NULL && !S_ISDIR(st.st_mode) &&
		    !name_is_checkpoint_file(path))
			*young = true;
		return 0;
	}
	n->mode = st.st_mode & 0777;
	n->is_link = S_ISLNK(st.st_mode);
	if (n->is_link)
		return read_link(path, &n->text, err);
	if (!S_ISREG(st.st_mode) || st.st_size == 0 ||
	    st.st_size > (off_t)NOTE_MAX || name_is_checkpoint_file(path))
		return 0;
	if (file_read(path, NOTE_MAX, &n->text, err) == 0)
		return n->text.len > 0;
	return err->errnum == ENOENT ? 0 : -1;
}

/* The first one tells for all. */
static int
set_unread(struct notes *notes, const char *name, const struct err *why)
{
	if (notes->unread != NULL)
		return 0;
	notes->why = *why;
	return (notes->unread = strdup(name)) != NULL ? 0 : -1;
}

static int
add(struct notes *notes, const char *dir, const char *name, int64_t since_ns)
{
	struct note n = {0}, *list;
	char *path = file_join(dir, name);
	struct err why = {0};
	size_t cap;
	int rc = -1;

	if (path == NULL)
		return -1;
	if ((rc = read_note(path, since_ns, &n, &notes->young, &why)) != 1) {
		rc = rc == -1 ? set_unread(notes, name, &why) : 0;
		goto out;
	}
	rc = -1;
	if (notes->n == notes->cap) {
		cap = notes->cap ? notes->cap * 2 : 8;
		if ((list = reallocarray(notes->list, cap, sizeof(*list))) == NULL)
			goto out;
		notes->list = list;
		notes->cap = cap;
	}
	if ((n.name = strdup(name)) == NULL)
		goto out;
	notes->list[notes->n++] = n;
	n.text = (struct buf){0};
	rc = 0;
out:
	buf_fini(&n.text);
	free(path);
	return rc;
}

int
notes_read(struct notes *notes, const char *dir, int64_t since_ns,
    struct err *err)
{
	struct names names = {0};
	size_t i;
	int rc = 0;

	*notes = (struct notes){0};
	if (names_read(&names, dir) == -1)
		rc = err_errno(err, "cannot read %s", dir);
	for (i = 0; rc == 0 && i < names.n; i++)
		if (!name_is_temporary(names.list[i]) &&
		    add(notes, dir, names.list[i], since_ns) == -1)
			rc = err_memory(err);
	names_fini(&names);
	return rc;
}

void
notes_fini(struct notes *notes)
{
	size_t i;

	for (i = 0; i < notes->n; i++) {
		free(notes->list[i].name);
		buf_fini(&notes->list[i].text);
	}
	free(notes->list);
	free(notes->unread);
	*notes = (struct notes){0};
}

/* The word as a whole: step 20 is not in "200". */
static bool
has_word(const struct buf *text, const char *word)
{
	size_t n = strlen(word);
	const char *p = text->data, *end, *at;

	if (p == NULL || n == 0)
		return false;
	end = p + text->len;
	for (; (at = memmem(p, (size_t)(end - p), word, n)) != NULL; p = at + 1) {
		bool before = at > text->data && isdigit((unsigned char)at[-1]) &&
		    isdigit((unsigned char)*word);
		bool behind = at + n < end && isdigit((unsigned char)at[n]);

		if (!before && !behind)
			return true;
	}
	return false;
}

bool
notes_mention(const struct note *n, const char *name, int64_t step)
{
	const char *slash = strrchr(name, '/');
	char number[24];

	if (has_word(&n->text, slash != NULL ? slash + 1 : name))
		return true;
	if (step < 0)
		return false;
	snprintf(number, sizeof(number), "%" PRId64, step);
	return has_word(&n->text, number);
}

static bool
is_written(const char *path, const struct note *n)
{
	struct note old = {0};
	struct err why = {0};
	bool same;

	same = read_note(path, INT64_MAX, &old, NULL, &why) == 1 &&
	    old.is_link == n->is_link &&
	    old.text.len == n->text.len &&
	    memcmp(old.text.data, n->text.data, n->text.len) == 0;
	buf_fini(&old.text);
	return same;
}

bool
notes_stand(const struct note *n, const char *dir)
{
	char *path = file_join(dir, n->name);
	bool stands = path != NULL && is_written(path, n);

	free(path);
	return stands;
}

bool
notes_are_due(const struct note *n, const char *dir)
{
	struct checkpoints cs = {0};
	bool due = false;
	size_t i;

	if (notes_stand(n, dir))
		return false;
	if (checkpoints_list(&cs, dir, NULL) == 0)
		for (i = 0; !due && i < cs.n; i++)
			due = notes_mention(n, file_inside(dir, cs.list[i].path),
			    checkpoint_step(&cs.list[i]));
	checkpoints_fini(&cs);
	return due;
}

static int
write_link(const char *path, const char *target, struct err *err)
{
	char temp[PATH_MAX];

	if (snprintf(temp, sizeof(temp), "%s.tmp", path) >= (int)sizeof(temp))
		return err_set(err, ERR_LIMIT, "path too long: %s", path);
	if (unlink(temp) == -1 && errno != ENOENT)
		return err_errno(err, "cannot remove %s", temp);
	if (symlink(target, temp) == -1)
		return err_errno(err, "cannot create %s", temp);
	if (rename(temp, path) == -1) {
		err_errno(err, "cannot rename %s to %s", temp, path);
		unlink(temp);
		return -1;
	}
	return file_sync_parent(path, err);
}

/* 1, 0; -1 when nobody knows. */
static int
leads_somewhere(const struct note *n, const char *dir, struct err *err)
{
	char *path = file_join(dir, n->text.data);
	struct stat st;
	int rc = 1;

	if (path == NULL)
		return err_memory(err);
	if (stat(path, &st) == -1)
		rc = errno == ENOENT || errno == ELOOP ? 0 :
		    err_errno(err, "cannot stat %s", path);
	free(path);
	return rc;
}

int
notes_write(const struct note *n, const char *dir, struct err *err)
{
	char *path;
	int rc = 0;

	if (n->is_link && (rc = leads_somewhere(n, dir, err)) != 1)
		return rc;
	rc = 0;
	if ((path = file_join(dir, n->name)) == NULL)
		return err_memory(err);
	if (!is_written(path, n))
		rc = n->is_link ? write_link(path, n->text.data, err) :
		    file_write_atomic(path, n->text.data, n->text.len, n->mode,
		    err);
	free(path);
	return rc;
}
