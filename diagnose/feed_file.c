/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_file.c - from a path to the bytes of a stream.
 *
 * Opens it, takes it in, unpacks it, makes it UTF-8 where it is UTF-16, and lines of
 * text where it is JSON.
 * Invalid UTF-8 stays: rules work on bytes, and output is cleaned later.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json.h"
#include "diagnose/feed_file.h"
#include "diagnose/feed_json.h"
#include "diagnose/feed_path.h"
#include "diagnose/feed_spool.h"
#include "diagnose/feed_text.h"
#include "diagnose/unpack.h"

#define WRITER_WAIT_MS	5000
#define UNPACK_DEPTH	3
/* Of an error.json; its tree takes many times the room. */
#define ERROR_MAX	((size_t)1 << 20)

/* Until someone has opened a FIFO for writing, it reads as if it were at its end. */
static int
await_writer(int fd, struct err *err)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (poll(&p, 1, WRITER_WAIT_MS) == 0)
		return err_set(err, ERR_TIMEOUT, "nobody writes to it");
	if (fcntl(fd, F_SETFL, 0) == -1)
		return err_errno(err, "cannot read");
	return 0;
}

/* Puts what the spool got in the place of the bytes.  Of a failure, what came before
 * it is diagnosed. */
static int
take_spool(struct feed *f, struct stream *s, struct feed_spool *spool,
    const char *what, const struct err *why, struct err *err)
{
	char text[600];
	int rc;

	if (why->code == ERR_MEMORY)
		return err_memory(err);
	snprintf(text, sizeof(text), "%s%s%s", what, why->text,
	    spool->len > 0 ? "; what came before is read" : "");
	if (why->code != ERR_NONE && spool->len == 0)
		return err_set(err, why->code, "%s", text);
	if ((rc = feed_spool_finish(spool, s, err)) == 0 &&
	    why->code != ERR_NONE)
		feed_add_missing(f, s->name, text);
	if (spool->dropped > 0) {
		snprintf(text, sizeof(text), "%sthe first %llu MiB were not kept: "
		    "TMPDIR has no room", what,
		    (unsigned long long)spool->dropped >> 20);
		feed_add_missing(f, s->name, text);
	}
	return rc;
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
	rc = take_spool(f, s, &spool, "", &why, err);
	feed_spool_fini(&spool);
	return rc;
}

/* error.json of torchelastic: {"message": {"message": "...", "extraInfo":
 * {"py_callstack": "...", "timestamp": "..."}}}.  Its traceback and message become
 * the text of the stream; what is no such object stays as it is. */
static void
decode_error(struct feed *f, struct stream *s)
{
	static const char tail[MAP_TAIL];
	cJSON *o = NULL;
	const cJSON *m, *extra;
	struct buf text = {0};
	const char *stack, *when;
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
	/* Seconds since 1970, where clock.c looks for a time. */
	when = json_str(extra, "timestamp", NULL);
	if (when != NULL && text.len > 0)
		buf_printf(&text, "[%.20s]\n", when);
	len = text.len;
	if (len > 0 && buf_append(&text, tail, sizeof(tail)) == 0)
		feed_set_heap(f, s, buf_steal(&text), len);
	buf_fini(&text);
	cJSON_Delete(o);
}

/* In a directory only what was a file when it was listed is opened; what took its
 * place may not make us wait. */
static int
open_file(const char *path, bool found, struct stat *st, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd == -1)
		return err_errno(err, "cannot open");
	if (fstat(fd, st) == -1)
		err_errno(err, "cannot stat");
	else if (!S_ISREG(st->st_mode) && (found || !S_ISFIFO(st->st_mode)))
		err_set(err, ERR_USAGE, "neither a file nor a pipe");
	else if (S_ISREG(st->st_mode) || await_writer(fd, err) == 0)
		return fd;
	close(fd);
	return -1;
}

/* The bytes as they are. */
static int
load(struct feed *f, struct stream *s, const char *path, bool found,
    struct err *err)
{
	bool in = !found && strcmp(path, "-") == 0;
	int fd = STDIN_FILENO, rc;
	struct stat st;

	if (in && fstat(fd, &st) == -1)
		return err_errno(err, "cannot read");
	if (!in && (fd = open_file(path, found, &st, err)) == -1)
		return -1;
	/* Files of the kernel have a size of 0; standard input may have been
	 * read in part. */
	if (S_ISREG(st.st_mode) && st.st_size > 0 &&
	    (!in || lseek(fd, 0, SEEK_CUR) == 0))
		rc = feed_set_file(f, s, fd, 0, (size_t)st.st_size, err);
	else
		rc = load_pipe(f, s, fd, err);
	if (!in)
		close(fd);
	return rc;
}

static int
unpack_once(struct feed *f, struct stream *s,
    const struct unpack_format *format, struct err *err)
{
	struct feed_spool spool;
	struct err why = {0};
	char what[32];
	int rc;

	if (format->decode == NULL)
		return err_set(err, ERR_FORMAT, "%s is not read: %s",
		    format->name, format->advice);
	feed_spool_init(&spool, f);
	format->decode(s, &spool, &why);
	snprintf(what, sizeof(what), "%s, ", format->name);
	rc = take_spool(f, s, &spool, what, &why, err);
	feed_spool_fini(&spool);
	return rc;
}

/* Rotation and a copy to the archive may each have packed it. */
static int
unpack(struct feed *f, struct stream *s, struct err *err)
{
	const struct unpack_format *format;
	int i;

	for (i = 0; (format = unpack_recognise(s)) != NULL; i++) {
		if (i == UNPACK_DEPTH)
			return err_set(err, ERR_LIMIT,
			    "packed more than %d times", UNPACK_DEPTH);
		if (unpack_once(f, s, format, err) == -1)
			return -1;
	}
	return 0;
}

static int
to_utf8(struct feed *f, struct stream *s, struct err *err)
{
	struct feed_spool spool;
	struct err why = {0};
	size_t mark;
	enum feed_encoding e = feed_text_encoding(s, &mark);
	int rc;

	if (e == FEED_BYTES) {
		feed_skip(f, s, mark);
		return 0;
	}
	feed_spool_init(&spool, f);
	feed_text_convert(s, mark, e, &spool, &why);
	rc = take_spool(f, s, &spool, "UTF-16, ", &why, err);
	feed_spool_fini(&spool);
	return rc;
}

static int
from_json(struct feed *f, struct stream *s, struct err *err)
{
	struct feed_spool spool;
	struct err why = {0};
	int rc;

	if (!feed_json_is_log(s))
		return 0;
	feed_spool_init(&spool, f);
	spool.keep_all = true;
	feed_json_decode(s, &spool, s, &why);
	rc = take_spool(f, s, &spool, "JSON, ", &why, err);
	feed_spool_fini(&spool);
	return rc;
}

int
feed_file_add(struct feed *f, const char *path, const char *name, bool found,
    struct err *err)
{
	struct stream *s = feed_add_stream(f, name, err);

	if (s == NULL)
		return -1;
	feed_path_describe(s);
	if (load(f, s, path, found, err) == -1 || unpack(f, s, err) == -1 ||
	    to_utf8(f, s, err) == -1 || from_json(f, s, err) == -1) {
		feed_drop_stream(f);
		return -1;
	}
	if (feed_text_is_binary(s)) {
		if (found) {
			feed_drop_stream(f);
			return err_set(err, ERR_FORMAT, "binary");
		}
		/* Asked for by its name, it is searched for text. */
		if (feed_add_missing(f, name, "mostly binary") == -1)
			return err_memory(err);
	}
	if (s->kind == STREAM_ERROR)
		decode_error(f, s);
	/* One look at each of thousands of files brings many pages of each. */
	stream_release(s, 0, s->len);
	return 0;
}
