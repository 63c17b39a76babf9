/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_file.c - from a path to the bytes of a stream.
 *
 * Small files are read, larger ones mapped (common/map.h): a large log needs no
 * memory of this process, and thousands of files no descriptors.  Where mapping
 * is not possible, they are read too.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json.h"
#include "diagnose/feed_file.h"
#include "diagnose/feed_name.h"
#include "diagnose/feed_spool.h"

#define READ_MAX	8192u		/* larger files are mapped */
#define ERROR_MAX	((size_t)16 << 20)	/* of an error.json */

/* Reads what there is of the first size bytes; a failure in the middle keeps what
 * came before it. */
static int
read_all(struct feed *f, struct stream *s, int fd, size_t size,
    struct err *err)
{
	char *data = size < SIZE_MAX / 2 ? malloc(size + MAP_TAIL) : NULL, *p;
	size_t done = 0;
	ssize_t n = 1;

	if (data == NULL)
		return err_memory(err);
	while (done < size && n != 0) {
		n = pread(fd, data + done, size - done, (off_t)done);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && done == 0) {
			err_errno(err, "cannot read");
			free(data);
			return -1;
		}
		if (n == -1) {
			feed_add_missing(f, s->name, strerror(errno));
			break;
		}
		done += (size_t)n;
	}
	if (done < size && (p = realloc(data, done + MAP_TAIL)) != NULL)
		data = p;
	memset(data + done, 0, MAP_TAIL);
	feed_set_heap(f, s, data, done);
	return 0;
}

static int
load(struct feed *f, struct stream *s, int fd, size_t size, struct err *err)
{
	struct err why = {0};

	if (size <= READ_MAX && f->heap + size <= FEED_HEAP_MAX)
		return read_all(f, s, fd, size, err);
	if (feed_set_map(f, s, fd, size, &why) == 0)
		return 0;
	/* Too many of them; and some file systems cannot map. */
	if (why.code == ERR_LIMIT || why.errnum == ENOMEM ||
	    why.errnum == ENODEV)
		return read_all(f, s, fd, size, err);
	*err = why;
	return -1;
}

/* Standard input and other pipes; a failure keeps what came before it. */
static int
load_pipe(struct feed *f, struct stream *s, int fd, struct err *err)
{
	struct feed_spool spool;
	struct err why = {0};
	char block[65536];
	ssize_t n;
	int rc;

	feed_spool_init(&spool, f);
	while ((n = read(fd, block, sizeof(block))) != 0) {
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			err_errno(&why, "cannot read");
		if (n == -1 || feed_spool_write(&spool, block, (size_t)n,
		    &why) == -1)
			break;
	}
	if (why.code != ERR_NONE && spool.len == 0) {
		*err = why;
		rc = -1;
	} else {
		if (why.code != ERR_NONE)
			feed_add_missing(f, s->name, why.text);
		rc = feed_spool_finish(&spool, f, s, err);
	}
	feed_spool_fini(&spool);
	return rc;
}

/* error.json of torchelastic: {"message": {"message": "...", "extraInfo":
 * {"py_callstack": "..."}}}.  Its traceback and message become the text of the
 * stream; what is no such object stays as it is. */
static void
decode_error(struct feed *f, struct stream *s)
{
	static const char tail[MAP_TAIL];
	cJSON *o = NULL;
	const cJSON *m, *extra;
	struct buf text = {0};
	const char *stack;
	size_t len;

	if (s->len > ERROR_MAX || json_parse(s->data, s->len, &o, NULL) == -1)
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
	len = text.len;
	if (len > 0 && buf_append(&text, tail, sizeof(tail)) == 0)
		feed_set_heap(f, s, buf_steal(&text), len);
	buf_fini(&text);
	cJSON_Delete(o);
}

static int
open_file(const char *path, struct stat *st, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd == -1)
		return err_errno(err, "cannot open");
	if (fstat(fd, st) == -1)
		err_errno(err, "cannot stat");
	else if (!S_ISREG(st->st_mode) && !S_ISFIFO(st->st_mode))
		err_set(err, ERR_USAGE, "neither a file nor a pipe");
	else if (S_ISFIFO(st->st_mode) && fcntl(fd, F_SETFL, 0) == -1)
		err_errno(err, "cannot read");
	else
		return fd;
	close(fd);
	return -1;
}

int
feed_file_add(struct feed *f, const char *path, const char *name,
    struct err *err)
{
	struct stream *s = feed_add_stream(f, name, err);
	bool in = strcmp(path, "-") == 0;
	int fd = STDIN_FILENO, rc = -1;
	struct stat st;

	if (s == NULL)
		return -1;
	feed_name_describe(s);
	if (in ? fstat(fd, &st) == -1 : (fd = open_file(path, &st, err)) == -1) {
		if (in)
			err_errno(err, "cannot read");
	} else if (S_ISREG(st.st_mode) && (!in || lseek(fd, 0, SEEK_CUR) == 0)) {
		rc = load(f, s, fd, (size_t)st.st_size, err);
	} else {
		rc = load_pipe(f, s, fd, err);
	}
	if (!in && fd != -1)
		close(fd);
	if (rc == 0 && s->kind == STREAM_ERROR)
		decode_error(f, s);
	else if (rc == -1)
		feed_drop_stream(f);
	return rc;
}
