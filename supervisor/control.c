/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.c - the socket on which people and the run parent reach a supervisor.
 *
 * Only processes of the same user are heard (SO_PEERCRED).  Messages in:
 *   attach {json}       wants text (or records) and tee until the end
 *   signal {signal}     the parent got TERM, INT or USR1
 *   stop {now}          holdfast stop
 * Messages out: say {text}, record {record}, tee {rank, text}, heard {signal},
 * end {code}.
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/log.h"
#include "supervisor/supervisor.h"

#define CLIENT_ROOM	(1u << 20)
#define UNHEARD_MAX	16384
#define UNHEARD_RECORDS_MAX	256

struct control_client {
	struct control_client	*next;
	struct supervisor	*s;
	struct wire		*wire;
	bool			 attached;
	bool			 json;
};

static void
client_free(struct control_client *c)
{
	struct control_client **p;

	for (p = &c->s->clients; *p != NULL; p = &(*p)->next) {
		if (*p == c) {
			*p = c->next;
			break;
		}
	}
	wire_free(c->wire);
	free(c);
}

static void
stop_asked(struct supervisor *s, int sig, const char *by, bool now)
{
	cJSON *r = journal_record("stop", s->history.attempt);

	json_add_int(r, "signal", sig);
	json_add_text(r, "by", by);
	s->stop_signal = sig;
	s->stops += now ? 2 : 1;
	journal_append(s->journal, r, NULL, NULL);
	supervisor_event(s, EVENT_STOP_ASKED);
}

/* Takes the record. */
static void
send_record(struct control_client *c, cJSON *record)
{
	cJSON *m = wire_message("record");

	cJSON_AddItemToObject(m, "record", record);
	wire_send_lossy(c->wire, m, CLIENT_ROOM);
}

/* The first to attach hears what was said before: a supervisor speaks while its
 * parent still connects. */
static void
tell_unheard(struct control_client *c)
{
	cJSON *m;

	while (c->json && (m = cJSON_DetachItemFromArray(c->s->unheard_records,
	    0)) != NULL)
		send_record(c, m);
	if (c->s->unheard.len > 0 && !c->json) {
		m = wire_message("say");
		json_add_text(m, "text", c->s->unheard.data);
		wire_send(c->wire, m);
	}
	buf_clear(&c->s->unheard);
	cJSON_Delete(c->s->unheard_records);
	c->s->unheard_records = NULL;
}

static void
tell_end(struct control_client *c, int code)
{
	cJSON *m = wire_message("end");

	json_add_int(m, "code", code);
	wire_send(c->wire, m);
	wire_flush(c->wire, 1000);
}

static void
take_signal(struct control_client *c, int sig)
{
	cJSON *m = wire_message("heard");

	json_add_int(m, "signal", sig);
	wire_send(c->wire, m);
	stop_asked(c->s, sig, "signal", false);
}

static void
on_message(const char *type, const cJSON *m, void *arg)
{
	struct control_client *c = arg;
	int sig;

	if (strcmp(type, "attach") == 0) {
		c->attached = true;
		c->json = json_bool(m, "json", false);
		tell_unheard(c);
		if (c->s->end_written) {
			tell_end(c, c->s->exit_code);
			loop_timer_set(c->s->farewell, 0);
		}
	} else if (strcmp(type, "signal") == 0) {
		sig = (int)json_int(m, "signal", 0);
		if (sig == SIGTERM || sig == SIGINT || sig == SIGUSR1)
			take_signal(c, sig);
	} else if (strcmp(type, "stop") == 0) {
		c->attached = true;
		stop_asked(c->s, SIGTERM, "holdfast stop",
		    json_bool(m, "now", false));
	} else {
		log_warn("unknown request '%s'", type);
	}
}

static void
on_close(const struct err *why, void *arg)
{
	(void)why;
	client_free(arg);
}

static void
on_connection(int fd, uint32_t events, void *arg)
{
	struct supervisor *s = arg;
	struct control_client *c;
	struct err err = {0};
	int conn;

	(void)events;
	if ((conn = wire_accept(fd)) == -1)
		return;
	if ((c = calloc(1, sizeof(*c))) == NULL) {
		close(conn);
		return;
	}
	c->s = s;
	if (wire_new(s->loop, conn, on_message, on_close, c, &c->wire,
	    &err) == -1) {
		close(conn);
		free(c);
		return;
	}
	c->next = s->clients;
	s->clients = c;
}

int
control_init(struct supervisor *s, struct err *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/control", s->spec->socket_dir);
	if ((s->control_fd = wire_listen(path, err)) == -1)
		return -1;
	return loop_watch_fd(s->loop, s->control_fd, EPOLLIN, on_connection, s,
	    NULL, err);
}

void
control_close(struct supervisor *s)
{
	char path[PATH_MAX];

	while (s->clients != NULL)
		client_free(s->clients);
	snprintf(path, sizeof(path), "%s/control", s->spec->socket_dir);
	unlink(path);
	close(s->control_fd);
}

void
control_broadcast_text(struct supervisor *s, const char *text)
{
	struct control_client *c;
	bool heard = false;
	cJSON *m;

	for (c = s->clients; c != NULL; c = c->next) {
		heard = heard || c->attached;
		if (!c->attached || c->json)
			continue;
		m = wire_message("say");
		json_add_text(m, "text", text);
		wire_send_lossy(c->wire, m, CLIENT_ROOM);
	}
	if (!heard && s->unheard.len < UNHEARD_MAX)
		buf_puts(&s->unheard, text);
}

void
control_broadcast_record(struct supervisor *s, const cJSON *record)
{
	struct control_client *c;
	bool heard = false;

	for (c = s->clients; c != NULL; c = c->next) {
		heard = heard || c->attached;
		if (c->attached && c->json)
			send_record(c, cJSON_Duplicate(record, true));
	}
	if (heard)
		return;
	if (s->unheard_records == NULL)
		s->unheard_records = cJSON_CreateArray();
	if (cJSON_GetArraySize(s->unheard_records) < UNHEARD_RECORDS_MAX)
		cJSON_AddItemToArray(s->unheard_records,
		    cJSON_Duplicate(record, true));
}

void
control_broadcast_tee(struct supervisor *s, const cJSON *note)
{
	struct control_client *c;

	for (c = s->clients; c != NULL; c = c->next)
		if (c->attached && !c->json)
			wire_send_lossy(c->wire, cJSON_Duplicate(note, true),
			    CLIENT_ROOM);
}

void
control_end(struct supervisor *s, int code)
{
	struct control_client *c;

	for (c = s->clients; c != NULL; c = c->next)
		tell_end(c, code);
}

bool
control_has_listener(const struct supervisor *s)
{
	const struct control_client *c;

	for (c = s->clients; c != NULL; c = c->next)
		if (c->attached)
			return true;
	return false;
}
