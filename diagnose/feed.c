/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.c - opens logs.
 *
 * Decides which files of a directory are logs, and what their path says about
 * rank and node: Holdfast's attempts/NNNN/{rank00017.log, NODE.log, NODE.exits,
 * NODE.kmsg}, torchrun's attempt_N/LOCALRANK/{stdout.log,stderr.log,error.json},
 * and names with "rank" and a number.  Small files are read, large ones mapped:
 * a small file that is truncated meanwhile cannot hurt then.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/json.h"
#include "diagnose/feed.h"

#define READ_MAX	(32u << 20)	/* larger files are mapped */
#define PADDING		64	/* PCRE2's JIT reads aligned blocks past the end */
#define DEPTH_MAX	16
#define STREAMS_MAX	200000

static int
add_missing(struct feed *f, const char *path, const char *why)
{
	char **p, *text;

	if (f->missing_count == f->missing_cap) {
		f->missing_cap = f->missing_cap ? f->missing_cap * 2 : 8;
		p = realloc(f->missing, f->missing_cap * sizeof(*p));
		if (p == NULL)
			return -1;
		f->missing = p;
	}
	if (asprintf(&text, "%s: %s", path, why) == -1)
		return -1;
	f->missing[f->missing_count++] = text;
	return 0;
}

static struct stream *
add_stream(struct feed *f, const char *name, struct err *err)
{
	struct stream *s;

	if (f->count == f->cap) {
		f->cap = f->cap ? f->cap * 2 : 16;
		s = realloc(f->streams, f->cap * sizeof(*s));
		if (s == NULL) {
			err_memory(err);
			return NULL;
		}
		f->streams = s;
	}
	s = &f->streams[f->count];
	*s = (struct stream){ .rank = -1 };
	if ((s->name = strdup(name)) == NULL) {
		err_memory(err);
		return NULL;
	}
	f->count++;
	return s;
}

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool
ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);

	return n >= k && strcmp(text + n - k, end) == 0;
}

/* The number behind "rank" with at most one of _ - . = between. */
static int
rank_in(const char *name)
{
	const char *p = name;

	while ((p = strcasestr(p, "rank")) != NULL) {
		p += 4;
		if (*p != '\0' && strchr("_-.=", *p) != NULL)
			p++;
		if (isdigit((unsigned char)*p) && strspn(p, "0123456789") < 8)
			return atoi(p);
	}
	return -1;
}

/* torchrun: ".../attempt_0/3/stderr.log" is local rank 3. */
static int
rank_of_dir(const char *name)
{
	const char *base = base_name(name), *p = base;

	if (p - name < 2)
		return -1;
	for (p--; p > name && p[-1] != '/'; p--)
		;
	if (!isdigit((unsigned char)*p) ||
	    strspn(p, "0123456789") != (size_t)(base - 1 - p) || base - p > 7)
		return -1;
	return strstr(name, "attempt_") != NULL ? atoi(p) : -1;
}

static void
describe(struct stream *s)
{
	const char *base = base_name(s->name);
	const char *dot = strrchr(base, '.');

	if (ends_with(base, ".exits"))
		s->kind = STREAM_EXITS;
	else if (ends_with(base, ".kmsg") || strncmp(base, "dmesg", 5) == 0)
		s->kind = STREAM_KERNEL;
	else if (strcmp(base, "error.json") == 0)
		s->kind = STREAM_ERROR;
	s->rank = rank_in(base);
	if (s->rank == -1)
		s->rank = rank_of_dir(s->name);
	if (dot != NULL && dot > base && (s->kind == STREAM_EXITS ||
	    ends_with(base, ".kmsg")))
		s->node = strndup(base, (size_t)(dot - base));
}

/* Standard input and other pipes go to an unlinked file, so that they can be
 * mapped whatever their size. */
static int
spool(int in, struct err *err)
{
	const char *dir = getenv("TMPDIR");
	char path[4096], block[65536];
	ssize_t n, w, done;
	int fd;

	if (dir == NULL || *dir == '\0')
		dir = "/tmp";
	if (snprintf(path, sizeof(path), "%s/holdfast.XXXXXX", dir) >=
	    (int)sizeof(path))
		return err_set(err, ERR_USAGE, "TMPDIR is too long");
	if ((fd = mkostemp(path, O_CLOEXEC)) == -1)
		return err_errno(err, "cannot keep the input in %s", dir);
	unlink(path);
	while ((n = read(in, block, sizeof(block))) != 0) {
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1) {
			err_errno(err, "cannot read the input");
			goto fail;
		}
		for (done = 0; done < n; done += w) {
			w = write(fd, block + done, (size_t)(n - done));
			if (w == -1) {
				err_errno(err, "cannot keep the input in %s", dir);
				goto fail;
			}
		}
	}
	return fd;
fail:
	close(fd);
	return -1;
}

static int
read_all(int fd, struct stream *s, size_t size, const char *path,
    struct err *err)
{
	char *data = malloc(size + PADDING);
	size_t done = 0;
	ssize_t n;

	if (data == NULL)
		return err_memory(err);
	while (done < size) {
		n = pread(fd, data + done, size - done, (off_t)done);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1) {
			free(data);
			return err_errno(err, "cannot read %s", path);
		}
		if (n == 0)
			break;		/* truncated since stat */
		done += (size_t)n;
	}
	memset(data + done, 0, PADDING);
	s->data = data;
	s->len = done;
	return 0;
}

/* error.json of torchelastic: {"message": {"message": "...", "extraInfo":
 * {"py_callstack": "..."}}}.  Its traceback and message become the text of the
 * stream; what is no such object stays as it is. */
static void
decode_error(struct stream *s)
{
	cJSON *o = NULL;
	const cJSON *m, *extra;
	struct buf text = {0};
	const char *stack;

	if (json_parse(s->data, s->len, &o, NULL) == -1)
		return;
	m = cJSON_GetObjectItemCaseSensitive(o, "message");
	extra = cJSON_GetObjectItemCaseSensitive(m, "extraInfo");
	stack = json_str(extra, "py_callstack", NULL);
	if (stack != NULL)
		buf_printf(&text, "%s\n", stack);
	/* The stack ends with the message already, unless it is missing. */
	else if (cJSON_IsObject(m) || cJSON_IsString(m))
		buf_printf(&text, "%s\n", cJSON_IsString(m) ? m->valuestring :
		    json_str(m, "message", ""));
	if (text.len > 0) {
		free((void *)(uintptr_t)s->data);
		s->len = text.len;
		s->data = buf_steal(&text);
	}
	buf_fini(&text);
	cJSON_Delete(o);
}

static int
load(int fd, struct stream *s, const char *path, struct err *err)
{
	struct stat st;
	void *p;

	if (fstat(fd, &st) == -1)
		return err_errno(err, "cannot stat %s", path);
	if (st.st_size <= (off_t)READ_MAX)
		return read_all(fd, s, (size_t)st.st_size, path, err);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return err_errno(err, "cannot map %s", path);
	(void)madvise(p, (size_t)st.st_size, MADV_SEQUENTIAL);
	s->data = p;
	s->len = (size_t)st.st_size;
	s->mapped = true;
	return 0;
}

static int
add_file(struct feed *f, const char *path, const char *name, struct err *err)
{
	bool in = strcmp(path, "-") == 0;
	struct stream *s;
	struct stat st;
	int fd, copy, rc = -1;

	fd = in ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd == -1)
		return err_errno(err, "cannot open %s", path);
	if (fstat(fd, &st) == -1) {
		err_errno(err, "cannot stat %s", path);
		goto out;
	}
	if (!in && !S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode)) {
		err_set(err, ERR_USAGE, "%s is no file", path);
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		if (!in && fcntl(fd, F_SETFL, 0) == -1) {
			err_errno(err, "cannot read %s", path);
			goto out;
		}
		if ((copy = spool(fd, err)) == -1)
			goto out;
		if (!in)
			close(fd);
		fd = copy;
		in = false;
	}
	if ((s = add_stream(f, name, err)) == NULL)
		goto out;
	describe(s);
	if (load(fd, s, path, err) == -1) {
		free(s->name);
		free(s->node);
		f->count--;
		goto out;
	}
	if (s->kind == STREAM_ERROR && !s->mapped)
		decode_error(s);
	rc = 0;
out:
	if (!in && fd != -1)
		close(fd);
	return rc;
}

/* Files that are no logs, by name: weights, code, archives, Holdfast's own
 * records (which quote log lines). */
static bool
is_no_log(const char *name)
{
	static const char *const ends[] = {
		".pt", ".pth", ".bin", ".safetensors", ".ckpt", ".distcp", ".npy",
		".npz", ".zip", ".gz", ".zst", ".xz", ".bz2", ".tar", ".tgz", ".whl",
		".so", ".o", ".pyc", ".py", ".c", ".h", ".sh", ".yaml", ".yml",
		".jsonl", ".png", ".jpg", ".pdf", ".html", ".parquet", ".arrow",
		".idx", ".pkl", ".model", ".pickle", ".csv", ".tsv", ".md", ".toml",
		".db", ".sqlite", ".nsys-rep", ".sqsh", ".prom", ".sock"
	};
	const char *dot = strrchr(name, '.');
	size_t i;

	if (name[0] == '.' || strcmp(name, "lock") == 0 ||
	    strncmp(name, "events.out.tfevents", 19) == 0)
		return true;
	if (dot == NULL)
		return false;
	if (strcmp(dot, ".json") == 0)
		return strcmp(name, "error.json") != 0;
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (strcasecmp(dot, ends[i]) == 0)
			return true;
	return false;
}

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
		add_missing(f, sub, strerror(errno));
	} else if (S_ISDIR(st.st_mode)) {
		rc = add_tree(f, path, sub, depth + 1, err);
	} else if (S_ISREG(st.st_mode) && !is_no_log(name)) {
		if (f->count >= STREAMS_MAX)
			add_missing(f, sub, "too many files");
		else if (add_file(f, path, sub, &why) == -1)
			add_missing(f, sub, why.text);
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
			return err_errno(err, "cannot read %s", dir);
		add_missing(f, rel, strerror(errno));
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
feed_add(struct feed *f, const char *path, struct err *err)
{
	struct stat st;
	char *attempt;
	int rc;

	if (strcmp(path, "-") == 0)
		return add_file(f, path, path, err);
	if (stat(path, &st) == -1)
		return err_errno(err, "cannot read %s", path);
	if (!S_ISDIR(st.st_mode))
		return add_file(f, path, path, err);
	attempt = newest_attempt(path);
	rc = add_tree(f, attempt ? attempt : path,
	    attempt ? attempt + strlen(path) + 1 : "", 0, err);
	free(attempt);
	return rc;
}

int
feed_add_memory(struct feed *f, const char *name, const char *data, size_t len,
    struct err *err)
{
	struct stream *s = add_stream(f, name, err);

	if (s == NULL)
		return -1;
	describe(s);
	s->data = data;
	s->len = len;
	s->borrowed = true;
	return 0;
}

void
feed_fini(struct feed *f)
{
	size_t i;

	for (i = 0; i < f->count; i++) {
		struct stream *s = &f->streams[i];

		if (s->mapped)
			munmap((void *)(uintptr_t)s->data, s->len);
		else if (!s->borrowed)
			free((void *)(uintptr_t)s->data);
		free(s->name);
		free(s->node);
	}
	for (i = 0; i < f->missing_count; i++)
		free(f->missing[i]);
	free(f->streams);
	free(f->missing);
	memset(f, 0, sizeof(*f));
}
