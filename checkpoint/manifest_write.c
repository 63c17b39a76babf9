/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_write.c - lists and hashes the files of a checkpoint, and writes its
 * manifest.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/text.h"
#include "checkpoint/manifest.h"
#include "checkpoint/manifest_text.h"
#include "checkpoint/proof.h"

#define SEAL_HEAD	",\"seal\":\""
#define SEAL_LEN	(sizeof(SEAL_HEAD) - 1 + DIGEST_TEXT_MAX - 1 + 3)
#define CHUNKS_MIN	16	/* chunks of smaller files, to say where damage is */
#define CHUNK_MIN	512u

static int
digest_text(const char *text, size_t len, char out[DIGEST_TEXT_MAX])
{
	struct hasher *h = hasher_new();

	if (h == NULL)
		return -1;
	hasher_add(h, text, len);
	digest_format(hasher_end(h), out);
	hasher_free(h);
	return 0;
}

int
manifest_unseal(const char *text, size_t len, struct err *err)
{
	char want[DIGEST_TEXT_MAX];
	const char *seal = text + (len < SEAL_LEN ? 0 : len - SEAL_LEN);

	if (len < SEAL_LEN || memcmp(seal, SEAL_HEAD, sizeof(SEAL_HEAD) - 1) != 0)
		return err_set(err, ERR_FORMAT, "cut off or damaged");
	if (digest_text(text, len - SEAL_LEN, want) == -1)
		return err_memory(err);
	if (memcmp(seal + sizeof(SEAL_HEAD) - 1, want, DIGEST_TEXT_MAX - 1) != 0 ||
	    memcmp(text + len - 3, "\"}\n", 3) != 0)
		return err_set(err, ERR_FORMAT, "damaged");
	return 0;
}

int
manifest_seal(struct buf *text)
{
	char digest[DIGEST_TEXT_MAX];

	if (digest_text(text->data, text->len, digest) == -1)
		return -1;
	return buf_printf(text, "%s%s\"}\n", SEAL_HEAD, digest);
}

/* Adds the regular files below dir/below.  Links are left out; one that leads out of
 * the checkpoint to a file would leave its bytes without proof. */
static int
list_below(const char *dir, const char *below, int depth, struct names *out,
    struct err *err)
{
	char *folder = below ? file_join(dir, below) : strdup(dir);
	char *path = NULL, *full = NULL;
	struct names in = {0};
	struct stat st;
	int rc = -1;
	size_t i;

	if (folder == NULL) {
		err_memory(err);
		goto out;
	}
	if (depth == MANIFEST_DEPTH_MAX || names_read(&in, folder) == -1) {
		if (depth == MANIFEST_DEPTH_MAX)
			err_set(err, ERR_LIMIT, "%s is too deep", folder);
		else
			err_errno(err, "cannot read %s", folder);
		goto out;
	}
	for (i = 0; i < in.n; i++) {
		free(path);
		free(full);
		path = below ? file_join(below, in.list[i]) : strdup(in.list[i]);
		full = path ? file_join(dir, path) : NULL;
		if (full == NULL) {
			err_memory(err);
			goto out;
		}
		if (lstat(full, &st) == -1) {
			if (errno == ENOENT)
				continue;
			err_errno(err, "cannot stat %s", full);
			goto out;
		}
		if (manifest_is_name(in.list[i]) ||
		    strncmp(in.list[i], ".nfs", 4) == 0 || S_ISLNK(st.st_mode))
			continue;
		if (S_ISDIR(st.st_mode)) {
			if (list_below(dir, path, depth + 1, out, err) == -1)
				goto out;
		} else if (S_ISREG(st.st_mode)) {
			if (out->n == MANIFEST_FILES_MAX) {
				err_set(err, ERR_LIMIT, "%s: more than %d files",
				    dir, MANIFEST_FILES_MAX);
				goto out;
			}
			if (names_add(out, path) == -1) {
				err_memory(err);
				goto out;
			}
		}
	}
	rc = 0;
out:
	free(path);
	free(full);
	free(folder);
	names_fini(&in);
	return rc;
}

int
manifest_list(const char *checkpoint, bool is_dir, struct names *out,
    struct err *err)
{
	const char *slash = strrchr(checkpoint, '/');

	if (!is_dir)
		return names_add(out, slash ? slash + 1 : checkpoint) == -1 ?
		    err_memory(err) : 0;
	if (list_below(checkpoint, NULL, 0, out, err) == -1)
		return -1;
	names_sort(out);
	return 0;
}

bool
manifest_stands(const struct manifest *m, const char *checkpoint, bool is_dir)
{
	struct names names = {0};
	bool stands = m->full && m->n > 0;
	struct stat st;
	char *path;
	size_t i;

	if (!stands || manifest_list(checkpoint, is_dir, &names, NULL) == -1 ||
	    names.n != m->n)
		stands = false;
	for (i = 0; stands && i < names.n; i++) {
		const struct manifest_file *f = manifest_find(m, names.list[i]);

		path = is_dir ? file_join(checkpoint, names.list[i]) :
		    strdup(checkpoint);
		stands = f != NULL && path != NULL && stat(path, &st) == 0 &&
		    (uint64_t)st.st_size == f->size && st.st_ino == f->ino &&
		    file_mtime_ns(&st) == f->mtime_ns;
		free(path);
	}
	names_fini(&names);
	return stands;
}

uint32_t
manifest_chunk_size(uint64_t size)
{
	uint32_t chunk = CHUNK_MIN;

	while (chunk < PASS_UNIT && size / chunk >= CHUNKS_MIN)
		chunk *= 2;
	return chunk;
}

static int
hash_file(struct input *in, struct manifest_file *f, uint8_t *block,
    struct report *r)
{
	struct pass_digests d = { .chunk_size = manifest_chunk_size(in->size),
	    .want_whole = true };
	struct check check = { .block = block, .digests = &d };
	struct pass_ranges none = {0};
	int rc = pass_run(in, &none, &check, r);

	f->whole = d.whole;
	f->chunk_size = d.chunk_size;
	f->chunks = d.chunks;
	f->n_chunks = d.n_chunks;
	return rc;
}

static const struct manifest_file *
find_known(const struct manifest_file *known, size_t n, bool is_dir,
    const struct manifest_file *f)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (known[i].size == f->size && known[i].mtime_ns == f->mtime_ns &&
		    (strcmp(known[i].path, f->path) == 0 ||
		    (!is_dir && *known[i].path == '\0')))
			return &known[i];
	return NULL;
}

static bool
may_have_one(const struct checkpoint *c)
{
	return (c->report.state == HOLDFAST_CHECKPOINT_VALID &&
	    c->report.contents_read) || (c->is_dir && c->format == NULL &&
	    c->report.state == HOLDFAST_CHECKPOINT_UNVERIFIED);
}

/* What the check found when it read the file; 1, 0 when it did not keep that, -1
 * when memory is short. */
static int
take_kept(const struct checkpoint *c, struct manifest_file *f)
{
	const struct part *p;
	size_t i;

	for (i = 0; i < c->parts.n; i++) {
		p = &c->parts.list[i];
		if (!p->kept.done || p->kept_size != f->size ||
		    p->kept_mtime_ns != f->mtime_ns ||
		    strcmp(proof_path(c, p), f->path) != 0)
			continue;
		f->whole = p->kept.whole;
		if (p->kept.n_chunks == 0)
			return 1;
		f->chunks = malloc(p->kept.n_chunks * sizeof(*f->chunks));
		if (f->chunks == NULL)
			return -1;
		memcpy(f->chunks, p->kept.chunks,
		    p->kept.n_chunks * sizeof(*f->chunks));
		f->n_chunks = p->kept.n_chunks;
		f->chunk_size = p->kept.chunk_size;
		return 1;
	}
	return 0;
}

bool
manifest_is_due(const struct checkpoint *c)
{
	size_t i;

	if (!may_have_one(c) || (c->format != NULL && c->format->file_set))
		return false;
	for (i = 0; i < c->parts.n; i++)
		if (c->parts.list[i].kept.done)
			return true;
	return false;
}

struct writer {
	const struct checkpoint		*c;
	const char			*at;
	const struct manifest_file	*known;
	size_t				 n_known;
	uint8_t				*block;
	struct manifest			 m;
};

static int
add_file(struct writer *w, const char *name, struct err *err)
{
	char *path = w->c->is_dir ? file_join(w->at, name) : strdup(w->at);
	struct manifest_file *f = manifest_add(&w->m, name);
	const struct manifest_file *k;
	struct input in = { .fd = -1 };
	struct report r;
	int rc = -1, kept;

	report_init(&r);
	if (path == NULL || f == NULL) {
		err_memory(err);
		goto out;
	}
	if (input_open(&in, path, &r) == -1)
		goto out;
	f->size = in.size;
	f->mtime_ns = file_mtime_ns(&in.st);
	f->ino = in.st.st_ino;
	if (w->at == w->c->path && w->c->mtime_ns != REPORT_UNKNOWN &&
	    w->c->format != NULL && name_is_checkpoint_file(name) &&
	    f->mtime_ns > w->c->mtime_ns) {
		err_set(err, ERR_BUSY, "%s changed since it was checked", path);
		goto out;
	}
	k = find_known(w->known, w->n_known, w->c->is_dir, f);
	if (k != NULL) {
		f->whole = k->whole;
	} else if ((kept = take_kept(w->c, f)) == -1) {
		err_memory(err);
		goto out;
	} else if (kept == 0 && hash_file(&in, f, w->block, &r) == -1) {
		goto out;
	}
	/* a save nobody synced could lose its end to a power cut later */
	if (fsync(in.fd) == -1 && errno != EINVAL && errno != EROFS) {
		err_errno(err, "cannot sync %s", path);
		goto out;
	}
	input_check_unchanged(&in, &r);
	rc = r.reason == NULL ? 0 : -1;
out:
	if (r.reason != NULL)
		err_set(err, ERR_BUSY, "%s: %s", path, r.reason);
	input_close(&in);
	report_fini(&r);
	free(path);
	return rc;
}

static int
put_digits(cJSON *v, const char *key, int64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, n);
	return json_add_text(v, key, text);
}

static int
put_file(cJSON *list, const struct manifest_file *f)
{
	cJSON *v = cJSON_CreateObject(), *chunks;
	char text[DIGEST_TEXT_MAX];
	size_t i;

	if (v == NULL || !cJSON_AddItemToArray(list, v)) {
		cJSON_Delete(v);
		return -1;
	}
	digest_format(f->whole, text);
	if (json_add_text(v, "path", f->path) == -1 ||
	    json_add_int(v, "size", (int64_t)f->size) == -1 ||
	    put_digits(v, "mtime_ns", f->mtime_ns) == -1 ||
	    put_digits(v, "ino", (int64_t)f->ino) == -1 ||
	    json_add_text(v, "xxh128", text) == -1)
		return -1;
	if (f->chunk_size == 0)
		return 0;
	if (json_add_int(v, "chunk_size", f->chunk_size) == -1 ||
	    (chunks = cJSON_AddArrayToObject(v, "chunks")) == NULL)
		return -1;
	for (i = 0; i < f->n_chunks; i++) {
		digest_format(f->chunks[i], text);
		if (json_add_item(chunks, text) == -1)
			return -1;
	}
	return 0;
}

/* The object without its '}', then the seal. */
static int
put_text(const struct writer *w, struct buf *out)
{
	const struct checkpoint *c = w->c;
	char now[CLOCK_TEXT_MAX];
	cJSON *json = cJSON_CreateObject(), *verify, *files;
	char *line = NULL;
	size_t i;
	int rc = -1;

	clock_format(clock_wall_ns(&clock_system), now);
	if (json == NULL ||
	    json_add_text(json, "schema", MANIFEST_SCHEMA) == -1 ||
	    json_add_text(json, "format", checkpoint_format_name(c)) == -1 ||
	    json_add_int(json, "step", checkpoint_step(c)) == -1 ||
	    json_add_text(json, "created", now) == -1 ||
	    (verify = cJSON_AddObjectToObject(json, "verify")) == NULL ||
	    json_add_text(verify, "level", c->report.contents_read ? "full" :
	    "none") == -1 ||
	    json_add_text(verify, "state",
	    holdfast_checkpoint_state_name(c->report.state)) == -1 ||
	    (files = cJSON_AddArrayToObject(json, "files")) == NULL)
		goto out;
	for (i = 0; i < w->m.n; i++)
		if (put_file(files, &w->m.files[i]) == -1)
			goto out;
	if ((line = json_line(json)) == NULL || buf_puts(out, line) == -1)
		goto out;
	out->len -= 2;		/* "}\n" */
	rc = manifest_seal(out);
out:
	free(line);
	cJSON_Delete(json);
	return rc;
}

static int
check_names(const struct names *names, struct err *err)
{
	struct buf clean = {0};
	bool same = true;
	size_t i;

	for (i = 0; same && i < names->n; i++) {
		buf_clear(&clean);
		if (text_utf8_clean(names->list[i], strlen(names->list[i]),
		    &clean) == -1) {
			buf_fini(&clean);
			return err_memory(err);
		}
		same = clean.data != NULL &&
		    strcmp(clean.data, names->list[i]) == 0;
		if (!same)
			err_set(err, ERR_FORMAT, "%s: a name that is not UTF-8",
			    names->list[i]);
	}
	buf_fini(&clean);
	return same ? 0 : -1;
}

int
manifest_write(const struct checkpoint *c, const char *at,
    const struct manifest_file *known, size_t n_known, struct err *err)
{
	struct writer w = { .c = c, .at = at ? at : c->path, .known = known,
	    .n_known = n_known };
	struct names names = {0};
	struct buf text = {0};
	char *path = NULL;
	size_t i;
	int rc = -1;

	if (c->format != NULL && c->format->file_set)
		return err_set(err, ERR_FORMAT, "%s: one of a set of files, which "
		    "has no manifest", c->path);
	if (!may_have_one(c))
		return err_set(err, ERR_FORMAT, "%s: not found valid by a full "
		    "check", c->path);
	if (manifest_list(w.at, c->is_dir, &names, err) == -1 ||
	    check_names(&names, err) == -1)
		goto out;
	if ((w.block = malloc(PASS_BLOCK)) == NULL) {
		err_memory(err);
		goto out;
	}
	for (i = 0; i < names.n; i++)
		if (add_file(&w, names.list[i], err) == -1)
			goto out;
	path = manifest_path(w.at, c->is_dir);
	if (path == NULL || put_text(&w, &text) == -1)
		err_memory(err);
	else if (text.len > MANIFEST_BYTES_MAX)
		err_set(err, ERR_LIMIT, "%s would be larger than %u bytes", path,
		    MANIFEST_BYTES_MAX);
	else
		rc = file_write_atomic(path, text.data, text.len, 0644, err);
out:
	names_fini(&names);
	manifest_fini(&w.m);
	buf_fini(&text);
	free(w.block);
	free(path);
	return rc;
}
