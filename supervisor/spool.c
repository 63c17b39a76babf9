/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool.c - a list in memory and an append-only file that is emptied when all
 * is acknowledged.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "common/json.h"
#include "supervisor/spool.h"

#define SPOOL_FILE_MAX	(16u << 20)

struct entry {
	struct entry	*next;
	int64_t		 seq;
	cJSON		*event;
};

struct spool {
	int		 fd;
	int64_t		 last_seq;
	struct entry	*head, **tail;
};

static int
keep(struct spool *s, int64_t seq, cJSON *event)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (e == NULL || event == NULL) {
		free(e);
		cJSON_Delete(event);
		return -1;
	}
	e->seq = seq;
	e->event = event;
	*s->tail = e;
	s->tail = &e->next;
	if (seq > s->last_seq)
		s->last_seq = seq;
	return 0;
}

/* A torn last line is what a killed agent leaves: it was never sent.  Returns
 * how many bytes are whole lines. */
static size_t
take_over(struct spool *s, struct buf *data)
{
	char *line = data->data, *end;
	int64_t seq;
	cJSON *o;

	while (line != NULL && (end = strchr(line, '\n')) != NULL) {
		o = NULL;
		if (json_parse(line, (size_t)(end - line), &o, NULL) == 0 &&
		    (seq = json_int(o, "seq", 0)) > 0)
			keep(s, seq, o);
		else
			cJSON_Delete(o);
		line = end + 1;
	}
	return (size_t)(line - data->data);
}

int
spool_open(const char *path, struct spool **out, struct err *err)
{
	struct spool *s = calloc(1, sizeof(*s));
	struct buf data = {0};
	bool torn = false;
	size_t whole = 0;

	if (s == NULL)
		return err_memory(err);
	s->tail = &s->head;
	if (file_read(path, SPOOL_FILE_MAX, &data, err) == 0) {
		whole = take_over(s, &data);
		torn = whole < data.len;
	}
	buf_fini(&data);
	s->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	/* The next line must not be glued to a torn one. */
	if (s->fd == -1 || (torn && ftruncate(s->fd, (off_t)whole) == -1)) {
		err_errno(err, "cannot open %s", path);
		spool_free(s);
		return -1;
	}
	*out = s;
	return 0;
}

void
spool_free(struct spool *s)
{
	if (s == NULL)
		return;
	s->tail = NULL;
	while (s->head != NULL) {
		struct entry *e = s->head;

		s->head = e->next;
		cJSON_Delete(e->event);
		free(e);
	}
	if (s->fd != -1)
		close(s->fd);
	free(s);
}

int64_t
spool_add(struct spool *s, cJSON *event)
{
	int64_t seq = s->last_seq + 1;
	char *line;

	cJSON_DeleteItemFromObject(event, "seq");
	json_add_int(event, "seq", seq);
	s->last_seq = seq;
	keep(s, seq, cJSON_Duplicate(event, true));
	if ((line = json_line(event)) != NULL &&
	    write(s->fd, line, strlen(line)) == -1)
		s->last_seq = seq;	/* memory still has it */
	free(line);
	return seq;
}

void
spool_ack(struct spool *s, int64_t seq)
{
	struct entry *e;

	while ((e = s->head) != NULL && e->seq <= seq) {
		if ((s->head = e->next) == NULL)
			s->tail = &s->head;
		cJSON_Delete(e->event);
		free(e);
	}
	if (s->head == NULL && ftruncate(s->fd, 0) == -1)
		return;		/* acknowledged events sent again do no harm */
}

bool
spool_is_empty(const struct spool *s)
{
	return s->head == NULL;
}

void
spool_each(const struct spool *s, void (*fn)(const cJSON *, void *),
    void *arg)
{
	const struct entry *e;

	for (e = s->head; e != NULL; e = e->next)
		fn(e->event, arg);
}
