/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracker.c - reads what the trackers point to and rewrites them.
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

#include "common/file.h"
#include "common/json.h"
#include "checkpoint/report.h"
#include "checkpoint/tracker.h"

#define TRACKER_MAX	65536	/* bytes; a larger file is no tracker */
#define TRAIN_STATE	"latest_train_state.pt"

/* A kind of text, by the name of its file. */
struct row {
	const char	*file;
	/* the name of the checkpoint it points to; "" for none, -1 not a tracker */
	int		(*read)(const char *dir, const struct buf *text, char *name,
			    size_t size);
	/* its new text; -1 when this checkpoint cannot be said in it */
	int		(*write)(const struct buf *old, const char *name,
			    int64_t step, struct buf *text);
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
json_read(const char *dir, const struct buf *text, char *name, size_t size)
{
	const char *slash, *file;
	cJSON *json;
	int rc = 0;

	(void)dir;
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
json_write(const struct buf *old, const char *name, int64_t step,
    struct buf *text)
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
	if (json_add_text(json, "file", name) == 0 &&
	    json_add_int(json, "step", step) == 0 &&
	    (line = json_line(json)) != NULL)
		rc = buf_puts(text, line);
	free(line);
	cJSON_Delete(json);
	return rc;
}

/* The folder that a number stands for; Megatron's own when there is none. */
static void
number_name(const char *dir, int64_t n, char *name, size_t size)
{
	static const char *const shapes[] = { "iter_%07" PRId64,
	    "global_step_%" PRId64, "checkpoint-%" PRId64, "%" PRId64 };
	size_t i;

	for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(name, size, shapes[i], n);
#pragma GCC diagnostic pop
		if (exists(dir, name))
			return;
	}
	snprintf(name, size, "iter_%07" PRId64, n);
}

/* A decimal number, or "release" for the folder of that name. */
static int
number_read(const char *dir, const struct buf *text, char *name, size_t size)
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
	number_name(dir, n, name, size);
	return 0;
}

static int
number_write(const struct buf *old, const char *name, int64_t step,
    struct buf *text)
{
	int64_t n = name_folder_step(name);

	(void)old;
	(void)step;
	if (n < 0)
		return -1;
	return buf_printf(text, "%" PRId64, n);
}

static int
iteration_write(const struct buf *old, const char *name, int64_t step,
    struct buf *text)
{
	char megatron[48], verl[48];
	int64_t n = name_folder_step(name);

	snprintf(megatron, sizeof(megatron), "iter_%07" PRId64, n);
	snprintf(verl, sizeof(verl), "global_step_%" PRId64, n);
	if (strcmp(megatron, name) != 0 && strcmp(verl, name) != 0)
		return -1;
	return number_write(old, name, step, text);
}

static int
tag_read(const char *dir, const struct buf *text, char *name, size_t size)
{
	(void)dir;
	return trimmed(text, name, size);
}

static int
tag_write(const struct buf *old, const char *name, int64_t step,
    struct buf *text)
{
	(void)old;
	(void)step;
	return buf_puts(text, name);
}

static int
universal_write(const struct buf *old, const char *name, int64_t step,
    struct buf *text)
{
	return name_ends_with(name, "_universal") ?
	    tag_write(old, name, step, text) : -1;
}

static const struct row rows[] = {
	{ "latest.json", json_read, json_write },
	{ "latest_checkpointed_iteration.txt", number_read, iteration_write },
	{ "dlrover_latest.txt", number_read, number_write },
	{ "latest", tag_read, tag_write },
	{ "latest_universal", tag_read, universal_write },
	{ NULL, NULL, NULL }
};

static const struct row *
find_row(const char *file)
{
	size_t i;

	for (i = 0; rows[i].file != NULL; i++)
		if (strcmp(rows[i].file, file) == 0)
			return &rows[i];
	return NULL;
}

/* The name without its extension, as a length. */
static size_t
stem_length(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot != NULL && dot != name ? (size_t)(dot - name) : strlen(name);
}

static bool
says_last(const char *name)
{
	return strncasecmp(name, "last", 4) == 0 ||
	    strncasecmp(name, "latest", 6) == 0 ||
	    strncasecmp(name, "checkpoint_last", 15) == 0;
}

bool
tracker_is_copy(const char *name)
{
	return strcmp(name, TRAIN_STATE) == 0 || (says_last(name) &&
	    name_step(name) == REPORT_UNKNOWN);
}

/* Links that say "the last one"; others mean that very checkpoint. */
static bool
is_link_name(const char *name)
{
	size_t n = stem_length(name);

	return says_last(name) || (n > 5 && (strncasecmp(name + n - 5, "-last", 5)
	    == 0 || strncasecmp(name + n - 5, "_last", 5) == 0));
}

/* The neighbour that a link leads to; -1 when it leads elsewhere. */
static int
neighbour(const char *dir, const char *to, char *name, size_t size)
{
	const char *slash = strrchr(to, '/');
	char *real = NULL, *there = NULL;
	char path[PATH_MAX];
	int rc = -1, n;

	if (slash == NULL)
		return snprintf(name, size, "%s", to) < (int)size ? 0 : -1;
	n = to[0] == '/' ? snprintf(path, sizeof(path), "%.*s",
	    (int)(slash - to) + 1, to) : snprintf(path, sizeof(path), "%s/%.*s",
	    dir, (int)(slash - to), to);
	if (n < (int)sizeof(path) && (real = realpath(dir, NULL)) != NULL &&
	    (there = realpath(path, NULL)) != NULL && strcmp(real, there) == 0 &&
	    snprintf(name, size, "%s", slash + 1) < (int)size)
		rc = 0;
	free(real);
	free(there);
	return rc;
}

/* Fills in what dir/file is; false when it is no tracker. */
static bool
look(struct tracker *t, const char *dir, const char *file, char *name,
    struct err *err)
{
	const struct row *row = find_row(file);
	char *path = file_join(dir, file), to[PATH_MAX];
	struct stat st;
	bool is = false;
	ssize_t n;

	name[0] = '\0';
	if (path == NULL || lstat(path, &st) == -1)
		goto out;
	t->mode = st.st_mode & 0777;
	if (S_ISLNK(st.st_mode)) {
		t->kind = TRACKER_LINK;
		n = is_link_name(file) ? readlink(path, to, sizeof(to) - 1) : 0;
		if (n <= 0)
			goto out;
		to[n] = '\0';
		is = neighbour(dir, to, name, NAME_MAX + 1) == 0 &&
		    buf_puts(&t->text, to) == 0;
	} else if (S_ISREG(st.st_mode) && row != NULL) {
		t->kind = TRACKER_TEXT;
		is = file_read(path, TRACKER_MAX, &t->text, err) == 0 &&
		    row->read(dir, &t->text, name, NAME_MAX + 1) == 0;
	} else if (tracker_is_copy(file)) {
		t->kind = TRACKER_COPY;
		is = S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) &&
		    name_is_checkpoint_file(file));
	}
out:
	free(path);
	return is;
}

static int
add(struct trackers *ts, const char *dir, const char *file, struct err *err)
{
	struct tracker t = {0}, *list;
	char name[NAME_MAX + 1];
	struct err why = {0};
	size_t cap;

	if (!look(&t, dir, file, name, &why)) {
		buf_fini(&t.text);
		if (why.code == ERR_NONE)
			return 0;
		if (err != NULL)
			*err = why;
		return -1;
	}
	if (ts->n == ts->cap) {
		cap = ts->cap ? ts->cap * 2 : 8;
		if ((list = reallocarray(ts->list, cap, sizeof(*list))) == NULL) {
			buf_fini(&t.text);
			return err_memory(err);
		}
		ts->list = list;
		ts->cap = cap;
	}
	t.file = strdup(file);
	t.target = strdup(name);
	if (t.file == NULL || t.target == NULL) {
		free(t.file);
		free(t.target);
		buf_fini(&t.text);
		return err_memory(err);
	}
	ts->list[ts->n++] = t;
	return 0;
}

int
trackers_read(struct trackers *ts, const char *dir, struct err *err)
{
	struct names names = {0};
	size_t i;
	int rc = 0;

	memset(ts, 0, sizeof(*ts));
	if (names_read(&names, dir) == -1)
		rc = err_errno(err, "cannot read %s", dir);
	for (i = 0; i < names.n; i++)
		if (!name_is_temporary(names.list[i]) &&
		    add(ts, dir, names.list[i], err) == -1)
			rc = -1;
	names_fini(&names);
	return rc;
}

void
trackers_fini(struct trackers *ts)
{
	size_t i;

	for (i = 0; i < ts->n; i++) {
		free(ts->list[i].file);
		free(ts->list[i].target);
		buf_fini(&ts->list[i].text);
	}
	free(ts->list);
	memset(ts, 0, sizeof(*ts));
}

int
tracker_text(const struct tracker *t, const char *name, int64_t step,
    struct buf *text)
{
	const struct row *row;

	if (t->kind == TRACKER_LINK)
		return buf_puts(text, name);
	if (t->kind != TRACKER_TEXT || (row = find_row(t->file)) == NULL)
		return -1;
	return row->write(&t->text, name, step, text);
}

static int
write_link(const char *dir, const char *link, const char *to, struct err *err)
{
	char temp[PATH_MAX], path[PATH_MAX];

	if (snprintf(temp, sizeof(temp), "%s/.%s.%ld", dir, link,
	    (long)getpid()) >= (int)sizeof(temp) ||
	    snprintf(path, sizeof(path), "%s/%s", dir, link) >=
	    (int)sizeof(path))
		return err_set(err, ERR_LIMIT, "path too long: %s", dir);
	(void)unlink(temp);	/* of one that was killed and had our number */
	if (symlink(to, temp) == -1 || rename(temp, path) == -1) {
		err_errno(err, "cannot replace the link %s", path);
		unlink(temp);
		return -1;
	}
	return file_sync_dir(dir, err);
}

int
tracker_write(const char *dir, const struct tracker *t, const struct buf *text,
    struct err *err)
{
	const char *data = text->data != NULL ? text->data : "";
	char *path;
	int rc;

	if (t->kind == TRACKER_LINK)
		return write_link(dir, t->file, data, err);
	if ((path = file_join(dir, t->file)) == NULL)
		return err_memory(err);
	rc = file_write_atomic(path, data, text->len, t->mode, err);
	free(path);
	return rc;
}

char *
tracker_source(const struct tracker *t, const char *dir, const char *name)
{
	char *path;

	if (strcmp(t->file, TRAIN_STATE) != 0)
		return file_join(dir, name);
	if (asprintf(&path, "%s/%s/train_state.pt", dir, name) == -1)
		return NULL;
	return path;
}

/* Keeps the old value beside the checkpoints that were moved. */
static int
keep_old(const char *keep_dir, const struct tracker *t, struct err *err)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s.%lld", keep_dir, t->file,
	    (long long)time(NULL)) >= (int)sizeof(path))
		return err_set(err, ERR_LIMIT, "path too long: %s", keep_dir);
	return file_write_atomic(path, t->text.data != NULL ? t->text.data : "",
	    t->text.len, 0644, err);
}

static int
repair(const struct tracker *t, const char *dir, const char *name, int64_t step,
    const char *keep_dir, struct names *changed, struct err *err)
{
	struct buf text = {0};
	int rc = 0;

	if (t->kind == TRACKER_COPY ||
	    (t->target[0] != '\0' && exists(dir, t->target)) ||
	    tracker_text(t, name, step, &text) == -1)
		goto out;
	rc = -1;
	if (keep_old(keep_dir, t, err) == 0 &&
	    tracker_write(dir, t, &text, err) == 0)
		rc = changed != NULL ? names_add(changed, t->file) : 0;
out:
	buf_fini(&text);
	return rc;
}

int
tracker_repair(const char *dir, const char *name, int64_t step,
    const char *keep_dir, struct names *changed, struct err *err)
{
	struct trackers ts;
	size_t i;
	int rc;

	rc = trackers_read(&ts, dir, err);
	for (i = 0; i < ts.n; i++)
		if (repair(&ts.list[i], dir, name, step, keep_dir, changed, err)
		    == -1)
			rc = -1;
	trackers_fini(&ts);
	return rc;
}
