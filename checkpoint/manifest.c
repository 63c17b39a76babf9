/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest.c - the manifest's text: what is taken from it, and where it is.
 *
 * The text ends in a digest of all before it, so damage to the manifest is never
 * taken for damage to the checkpoint.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/buf.h"
#include "common/file.h"
#include "common/json.h"
#include "common/text.h"
#include "checkpoint/manifest.h"
#include "checkpoint/manifest_text.h"
#include "checkpoint/trouble.h"

char *
manifest_path(const char *checkpoint, bool is_dir)
{
	const char *slash = strrchr(checkpoint, '/');
	struct buf path = {0};
	int rc;

	if (is_dir)
		return file_join(checkpoint, MANIFEST_NAME);
	rc = slash == NULL ? 0 : buf_append(&path, checkpoint,
	    (size_t)(slash + 1 - checkpoint));
	if (rc == -1 || buf_printf(&path, ".%s%s", slash ? slash + 1 : checkpoint,
	    MANIFEST_NAME) == -1) {
		buf_fini(&path);
		return NULL;
	}
	return buf_steal(&path);
}

bool
manifest_is_name(const char *name)
{
	/* what follows is the ending of a temporary file */
	return name[0] == '.' && strstr(name, MANIFEST_NAME) != NULL;
}

bool
manifest_is_safe(const char *path)
{
	const char *p = path, *end;

	if (*path == '\0' || strlen(path) >= 4096)
		return false;
	for (;; p = end + 1) {
		end = strchrnul(p, '/');
		if (end == p || (end - p == 1 && p[0] == '.') ||
		    (end - p == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		if (*end == '\0')
			return true;
	}
}

void
manifest_file_fini(struct manifest_file *f)
{
	free(f->path);
	free(f->chunks);
}

void
manifest_fini(struct manifest *m)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		manifest_file_fini(&m->files[i]);
	free(m->files);
	free(m->format);
	free(m->created);
	memset(m, 0, sizeof(*m));
}

struct manifest_file *
manifest_add(struct manifest *m, const char *path)
{
	struct manifest_file *list;
	size_t cap;

	if (m->n == m->cap) {
		cap = m->cap ? m->cap * 2 : 16;
		list = reallocarray(m->files, cap, sizeof(*list));
		if (list == NULL)
			return NULL;
		m->files = list;
		m->cap = cap;
	}
	list = &m->files[m->n];
	memset(list, 0, sizeof(*list));
	if ((list->path = strdup(path)) == NULL)
		return NULL;
	m->n++;
	return list;
}

static int
by_path(const void *a, const void *b)
{
	const struct manifest_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

const struct manifest_file *
manifest_find(const struct manifest *m, const char *path)
{
	struct manifest_file key = { .path = (char *)(uintptr_t)path };

	return m->n == 0 ? NULL :
	    bsearch(&key, m->files, m->n, sizeof(key), by_path);
}

/* A member that is a whole number of decimal digits as text: a double would lose
 * nanoseconds and inodes. */
static bool
read_digits(const cJSON *v, const char *key, int64_t *out)
{
	const char *text = json_str(v, key, NULL);

	return text != NULL && text_parse_int(text, INT64_MIN, INT64_MAX, out) == 0;
}

static int
read_chunks(const cJSON *v, struct manifest_file *f)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(v, "chunks"), *item;
	int64_t size = json_int(v, "chunk_size", 0);
	size_t n = 0;

	if (size == 0 && list == NULL)
		return 0;
	if (size < 512 || size > (int64_t)PASS_UNIT || (size & (size - 1)) != 0 ||
	    !cJSON_IsArray(list))
		return -1;
	f->chunk_size = (uint32_t)size;
	f->n_chunks = (size_t)((f->size + f->chunk_size - 1) / f->chunk_size);
	/* the list is in memory already: it limits what is allocated */
	if ((size_t)cJSON_GetArraySize(list) != f->n_chunks)
		return -1;
	f->chunks = calloc(f->n_chunks + 1, sizeof(*f->chunks));
	if (f->chunks == NULL)
		return -1;
	cJSON_ArrayForEach(item, list)
		if (!cJSON_IsString(item) ||
		    !digest_parse(item->valuestring, &f->chunks[n++]))
			return -1;
	return 0;
}

static int
read_entry(struct manifest *m, const cJSON *v, struct err *err)
{
	const char *path = json_str(v, "path", NULL);
	const char *digest = json_str(v, "xxh128", NULL);
	int64_t size = json_int(v, "size", -1), ino = 0;
	struct manifest_file *f;

	if (m->n == MANIFEST_FILES_MAX)
		return err_set(err, ERR_LIMIT, "more than %d files",
		    MANIFEST_FILES_MAX);
	if (path == NULL || !manifest_is_safe(path))
		return err_set(err, ERR_FORMAT, "the path %.200s leads outside",
		    path ? path : "(none)");
	if (size < 0 || (uint64_t)size > MANIFEST_SIZE_MAX)
		return err_set(err, ERR_FORMAT, "%.200s: impossible size", path);
	if ((f = manifest_add(m, path)) == NULL)
		return err_memory(err);
	f->size = (uint64_t)size;
	if (digest == NULL || !digest_parse(digest, &f->whole) ||
	    !read_digits(v, "mtime_ns", &f->mtime_ns) ||
	    !read_digits(v, "ino", &ino) || read_chunks(v, f) == -1)
		return err_set(err, ERR_FORMAT, "%.200s: not understood", path);
	f->ino = (uint64_t)ino;
	return 0;
}

static int
read_files(struct manifest *m, const cJSON *json, struct err *err)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, "files"), *v;
	size_t i;

	if (!cJSON_IsArray(list))
		return err_set(err, ERR_FORMAT, "lists no files");
	cJSON_ArrayForEach(v, list)
		if (read_entry(m, v, err) == -1)
			return -1;
	if (m->n > 0)
		qsort(m->files, m->n, sizeof(*m->files), by_path);
	for (i = 1; i < m->n; i++)
		if (strcmp(m->files[i - 1].path, m->files[i].path) == 0)
			return err_set(err, ERR_FORMAT, "%.200s is listed twice",
			    m->files[i].path);
	return 0;
}

static int
copy_text(char **to, const char *from, struct err *err)
{
	if (from != NULL && (*to = strdup(from)) == NULL)
		return err_memory(err);
	return 0;
}

int
manifest_parse(struct manifest *m, const char *text, size_t len, struct err *err)
{
	const cJSON *verify;
	cJSON *json = NULL;
	int rc = -1;

	memset(m, 0, sizeof(*m));
	m->step = REPORT_UNKNOWN;
	if (manifest_unseal(text, len, err) == -1 ||
	    json_parse(text, len, &json, err) == -1)
		goto out;
	if (strcmp(json_str(json, "schema", ""), MANIFEST_SCHEMA) != 0) {
		err_set(err, ERR_FORMAT, "of another schema than %s",
		    MANIFEST_SCHEMA);
		goto out;
	}
	verify = cJSON_GetObjectItemCaseSensitive(json, "verify");
	m->full = strcmp(json_str(verify, "level", ""), "full") == 0 &&
	    strcmp(json_str(verify, "state", ""), "valid") == 0;
	m->step = json_int(json, "step", REPORT_UNKNOWN);
	if (copy_text(&m->format, json_str(json, "format", NULL), err) == -1 ||
	    copy_text(&m->created, json_str(json, "created", "?"), err) == -1 ||
	    read_files(m, json, err) == -1)
		goto out;
	rc = 0;
out:
	cJSON_Delete(json);
	return rc;
}

enum manifest_found
manifest_read(struct manifest *m, const char *checkpoint, bool is_dir,
    struct err *err)
{
	char *path = manifest_path(checkpoint, is_dir);
	enum manifest_found found = MANIFEST_UNUSABLE;
	struct err unasked = {0};
	struct buf text = {0};
	struct stat st;

	memset(m, 0, sizeof(*m));
	m->step = REPORT_UNKNOWN;
	err = err != NULL ? err : &unasked;
	err->errnum = 0;
	if (path == NULL) {
		err_memory(err);
	} else if (lstat(path, &st) == -1) {
		if (errno == ENOENT)
			found = MANIFEST_ABSENT;
		else
			err_errno(err, "cannot stat it");
	} else if (!S_ISREG(st.st_mode)) {
		err_set(err, ERR_FORMAT, "no regular file");
	} else if (st.st_size > MANIFEST_BYTES_MAX) {
		err_set(err, ERR_LIMIT, "larger than %u bytes",
		    MANIFEST_BYTES_MAX);
	} else if (file_read(path, MANIFEST_BYTES_MAX, &text, err) == 0 &&
	    manifest_parse(m, text.data ? text.data : "", text.len, err) == 0) {
		found = MANIFEST_FOUND;
	}
	errno = err->errnum;
	if (path != NULL && found == MANIFEST_UNUSABLE)
		trouble_note(path);
	buf_fini(&text);
	free(path);
	return found;
}
