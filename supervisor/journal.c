/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.c - writes and replays journal.jsonl.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "common/json.h"
#include "common/log.h"
#include "supervisor/journal.h"

#define JOURNAL_MAX	(1u << 30)

/* Someone who waits for a record: done comes from the writer or the timer,
 * whichever is first. */
struct waiter {
	struct journal		*journal;
	struct loop_timer	*timer;
	char			*line;		/* for the spool, if refused */
	journal_done_fn		 done;
	void			*arg;
};

struct journal {
	struct loop		*loop;
	struct writer_file	*file;
	struct history		*history;
	char			*spool_path;
	journal_tap_fn		 tap;
	void			*tap_arg;
	bool			 complained;
};

static int
read_lines(const struct buf *data, struct history *h, long *good,
    struct err *err)
{
	const char *line = data->data, *end = data->data + data->len, *nl;
	cJSON *record;
	long number = 0;

	while (line < end && (nl = memchr(line, '\n',
	    (size_t)(end - line))) != NULL) {
		number++;
		record = NULL;
		if (nl > line && json_parse(line, (size_t)(nl - line), &record,
		    err) == -1)
			return err_prefix(err, "line %ld", number);
		history_apply(h, record);
		cJSON_Delete(record);
		line = nl + 1;
	}
	*good = line - data->data;
	return 0;
}

int
journal_read(const char *path, struct history *h, long *good_bytes,
    struct err *err)
{
	struct err why = {0};
	struct buf data = {0};
	long good = 0;
	int rc = -1;

	if (file_read(path, JOURNAL_MAX, &data, &why) == -1) {
		if (why.errnum == ENOENT)
			rc = 0;
		else if (err != NULL)
			*err = why;
	} else if (data.len == 0 || read_lines(&data, h, &good, err) == 0) {
		rc = 0;
	} else {
		err_prefix(err, "%s", path);
	}
	if (good_bytes != NULL)
		*good_bytes = (size_t)good == data.len ? -1 : good;
	buf_fini(&data);
	return rc;
}

static void
on_merged(int errnum, void *arg)
{
	struct journal *j = arg;

	if (errnum == 0)
		unlink(j->spool_path);
}

/* Records an earlier supervisor could not write to the store. */
static void
merge_spool(struct journal *j)
{
	struct buf spool = {0}, late = {0};
	char *line, *end;
	cJSON *record;

	if (file_read(j->spool_path, JOURNAL_MAX, &spool, NULL) == -1)
		goto out;
	for (line = spool.data; (end = strchr(line, '\n')) != NULL;
	    line = end + 1) {
		record = NULL;
		if (json_parse(line, (size_t)(end - line), &record, NULL) == 0 &&
		    json_int(record, "seq", 0) > j->history->seq) {
			history_apply(j->history, record);
			buf_append(&late, line, (size_t)(end - line) + 1);
		}
		cJSON_Delete(record);
	}
	if (late.len > 0)
		writer_append(j->file, late.data, late.len, on_merged, j);
	else
		unlink(j->spool_path);
out:
	buf_fini(&spool);
	buf_fini(&late);
}

int
journal_open(const char *dir, const char *spool_path, struct loop *loop,
    struct writer *writer, struct history *h, struct journal **out,
    struct err *err)
{
	struct journal *j = calloc(1, sizeof(*j));
	char path[PATH_MAX];
	long good = -1;

	if (j == NULL)
		return err_memory(err);
	snprintf(path, sizeof(path), "%s/journal.jsonl", dir);
	j->loop = loop;
	j->history = h;
	if ((j->spool_path = strdup(spool_path)) == NULL) {
		err_memory(err);
		goto fail;
	}
	if (journal_read(path, h, &good, err) == -1)
		goto fail;
	if (good >= 0 && truncate(path, good) == -1) {
		err_errno(err, "cannot cut the torn end of %s", path);
		goto fail;
	}
	if (writer_open(writer, path, &j->file, err) == -1)
		goto fail;
	merge_spool(j);
	*out = j;
	return 0;
fail:
	journal_free(j);
	return -1;
}

void
journal_free(struct journal *j)
{
	if (j == NULL)
		return;
	writer_close(j->file);
	free(j->spool_path);
	free(j);
}

void
journal_tap(struct journal *j, journal_tap_fn fn, void *arg)
{
	j->tap = fn;
	j->tap_arg = arg;
}

cJSON *
journal_record(const char *type, int attempt)
{
	cJSON *r = cJSON_CreateObject();
	int64_t now = clock_wall_ns(&clock_system);
	char when[CLOCK_TEXT_MAX], ns[24];

	clock_format(now, when);
	snprintf(ns, sizeof(ns), "%lld", (long long)now);
	json_add_text(r, "time", when);
	json_add_text(r, "time_ns", ns);
	json_add_text(r, "type", type);
	if (attempt > 0)
		json_add_int(r, "attempt", attempt);
	return r;
}

static void
waiter_finish(struct waiter *w)
{
	journal_done_fn done = w->done;

	w->done = NULL;
	loop_timer_cancel(w->timer);
	if (done != NULL)
		done(w->arg);
}

static void
on_wait_over(void *arg)
{
	struct waiter *w = arg;

	log_warn("the journal is slow, going on after %d ms", JOURNAL_WAIT_MS);
	waiter_finish(w);
}

/* The node-local copy, written when the store refuses; local, so it may be
 * written here. */
static void
spool_line(struct journal *j, const char *line)
{
	int fd = open(j->spool_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
	    0600);

	if (fd == -1)
		return;
	if (write(fd, line, strlen(line)) == -1)
		log_error("cannot write %s: %s", j->spool_path,
		    strerror(errno));
	close(fd);
}

static void
on_written(int errnum, void *arg)
{
	struct waiter *w = arg;
	struct journal *j = w->journal;

	if (errnum != 0 && !j->complained) {
		j->complained = true;
		log_error("the journal cannot be written: %s; records are kept "
		    "in %s", strerror(errnum), j->spool_path);
	}
	if (errnum != 0)
		spool_line(j, w->line);
	waiter_finish(w);
	loop_timer_free(w->timer);
	free(w->line);
	free(w);
}

void
journal_append(struct journal *j, cJSON *r, journal_done_fn done, void *arg)
{
	struct waiter *w = calloc(1, sizeof(*w));
	char *line;

	json_add_int(r, "seq", j->history->seq + 1);
	history_apply(j->history, r);
	if (j->tap != NULL)
		j->tap(r, j->tap_arg);
	line = json_line(r);
	cJSON_Delete(r);
	if (w == NULL || line == NULL ||
	    loop_timer_new(j->loop, on_wait_over, w, &w->timer, NULL) == -1) {
		free(w);
		free(line);
		if (done != NULL)
			done(arg);
		return;
	}
	w->journal = j;
	w->line = line;
	w->done = done;
	w->arg = arg;
	if (writer_append(j->file, line, strlen(line), on_written, w) == 0)
		on_written(ENOSPC, w);
	else if (done != NULL)
		loop_timer_set(w->timer, JOURNAL_WAIT_MS);
}
