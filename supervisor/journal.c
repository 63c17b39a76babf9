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
#define RETRY_MS	2000

/* Someone who waits for a record: done comes when it is durable or the wait is
 * over, whichever is first. */
struct waiter {
	struct waiter		*next;
	struct loop_timer	*timer;
	int64_t			 ticket;	/* of the record */
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
	struct buf		 queue;		/* lines not handed to the writer */
	struct buf		 batch;		/* lines it is writing */
	int64_t			 ticket;	/* of the last record */
	int64_t			 batch_ticket;
	bool			 writing;
	bool			 refused;	/* the store; a retry is due */
	struct loop_timer	*retry;
	struct waiter		*waiters, **waiters_tail;
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

/* The node-local copy, written when the store refuses; local, so it may be
 * written here. */
static void
spool_text(struct journal *j, const char *text, size_t len)
{
	int fd = open(j->spool_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
	    0600);

	if (fd == -1)
		return;
	if (write(fd, text, len) == -1)
		log_error("cannot write %s: %s", j->spool_path,
		    strerror(errno));
	close(fd);
}

static void waiters_serve(struct journal *, int64_t);
static void write_queue(struct journal *);

/* The store has refused the batch: it goes back in front of the queue, so that
 * the order in the file stays that of the records, and is tried again. */
static void
take_back(struct journal *j, int errnum)
{
	struct buf queue = {0};

	if (!j->refused) {
		log_error("the journal cannot be written: %s; records are kept "
		    "in %s", strerror(errnum), j->spool_path);
		spool_text(j, j->batch.data, j->batch.len);
		spool_text(j, j->queue.data ? j->queue.data : "", j->queue.len);
	}
	j->refused = true;
	buf_append(&queue, j->batch.data, j->batch.len);
	buf_append(&queue, j->queue.data ? j->queue.data : "", j->queue.len);
	buf_fini(&j->queue);
	buf_clear(&j->batch);
	j->queue = queue;
	loop_timer_set(j->retry, RETRY_MS);
}

static void
on_written(int errnum, void *arg)
{
	struct journal *j = arg;

	j->writing = false;
	if (errnum != 0) {
		take_back(j, errnum);
		return;
	}
	buf_clear(&j->batch);
	if (j->refused && j->queue.len == 0) {
		j->refused = false;
		unlink(j->spool_path);
	}
	waiters_serve(j, j->batch_ticket);
	write_queue(j);
}

/* One batch at a time: what comes meanwhile is synced together. */
static void
write_queue(struct journal *j)
{
	struct buf empty = j->batch;

	if (j->writing || j->queue.len == 0 || loop_timer_pending(j->retry))
		return;
	j->batch = j->queue;
	j->queue = empty;
	j->batch_ticket = j->ticket;
	j->writing = true;
	if (writer_append(j->file, j->batch.data, j->batch.len, on_written,
	    j) == 0)
		on_written(ENOSPC, j);
}

static void
on_retry(void *arg)
{
	write_queue(arg);
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
	/* Now they are in the queue; the spool goes when they are in the file. */
	if (late.len > 0) {
		buf_append(&j->queue, late.data, late.len);
		j->refused = true;
		write_queue(j);
	} else {
		unlink(j->spool_path);
	}
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
	j->waiters_tail = &j->waiters;
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
	if (loop_timer_new(loop, on_retry, j, &j->retry, err) == -1 ||
	    writer_open(writer, path, &j->file, err) == -1)
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
	loop_timer_free(j->retry);
	buf_fini(&j->queue);
	buf_fini(&j->batch);
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

/* Calls done once; the waiter itself goes with its record. */
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
	log_warn("the journal is slow, going on after %d ms", JOURNAL_WAIT_MS);
	waiter_finish(arg);
}

static int
waiter_add(struct journal *j, journal_done_fn done, void *arg)
{
	struct waiter *w = calloc(1, sizeof(*w));

	if (w == NULL || loop_timer_new(j->loop, on_wait_over, w, &w->timer,
	    NULL) == -1) {
		free(w);
		return -1;
	}
	w->ticket = j->ticket;
	w->done = done;
	w->arg = arg;
	*j->waiters_tail = w;
	j->waiters_tail = &w->next;
	loop_timer_set(w->timer, JOURNAL_WAIT_MS);
	return 0;
}

/* Everything up to the ticket is in the file. */
static void
waiters_serve(struct journal *j, int64_t ticket)
{
	struct waiter *w;

	while ((w = j->waiters) != NULL && w->ticket <= ticket) {
		if ((j->waiters = w->next) == NULL)
			j->waiters_tail = &j->waiters;
		waiter_finish(w);
		loop_timer_free(w->timer);
		free(w);
	}
}

void
journal_append(struct journal *j, cJSON *r, journal_done_fn done, void *arg)
{
	char *line;

	json_add_int(r, "seq", j->history->seq + 1);
	history_apply(j->history, r);
	if (j->tap != NULL)
		j->tap(r, j->tap_arg);
	line = json_line(r);
	cJSON_Delete(r);
	j->ticket++;
	if (line == NULL || buf_puts(&j->queue, line) == -1) {
		free(line);
		line = NULL;
	}
	if (line != NULL && j->refused)
		spool_text(j, line, strlen(line));
	if (done != NULL && (line == NULL || waiter_add(j, done, arg) == -1))
		done(arg);
	free(line);
	write_queue(j);
}
