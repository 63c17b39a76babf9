/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.c - the supervisor's connection to its agent.
 *
 * Connects to an agent that is already there before it starts one: a respawned
 * supervisor and the first one go the same way.  Each event is journaled, then
 * acknowledged; one that comes twice is recognised by its seq.
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/json.h"
#include "common/log.h"
#include "common/verb.h"
#include "supervisor/role.h"
#include "supervisor/supervisor.h"

#define CONNECT_MS		20
#define CONNECT_LIMIT_NS	(30 * NS_PER_S)
#define AGENT_STARTS_MAX	5
#define HELLO_MS		10000

struct ack {
	struct supervisor	*s;
	int64_t			 event_seq;
};

cJSON *
link_order(struct supervisor *s, const char *type)
{
	cJSON *m = wire_message(type);

	json_add_int(m, "generation", s->history.generation);
	json_add_int(m, "attempt", s->history.attempt);
	return m;
}

void
link_send(struct supervisor *s, cJSON *order)
{
	wire_send(s->agent, order);
}

static void
on_journaled(void *arg)
{
	struct ack *ack = arg;
	cJSON *m = link_order(ack->s, "ack");

	json_add_int(m, "event_seq", ack->event_seq);
	link_send(ack->s, m);
	free(ack);
}

/* The event as a journal record: its own members, the origin beside them. */
static cJSON *
journal_event(struct supervisor *s, const char *type, const cJSON *event)
{
	static const char *const own[] = { "v", "type", "seq", "attempt",
	    "instance", NULL };
	cJSON *r = journal_record(type, (int)json_int(event, "attempt", 0));
	cJSON *copy;
	const cJSON *m;
	struct ack *ack;
	int i;

	cJSON_ArrayForEach(m, event) {
		for (i = 0; own[i] != NULL; i++)
			if (strcmp(own[i], m->string) == 0)
				break;
		if (own[i] == NULL && cJSON_GetObjectItem(r, m->string) == NULL)
			cJSON_AddItemToObject(r, m->string,
			    cJSON_Duplicate(m, true));
	}
	json_add_text(r, "instance", json_str(event, "instance", ""));
	json_add_int(r, "event_seq", json_int(event, "seq", 0));
	copy = cJSON_Duplicate(r, true);
	if ((ack = calloc(1, sizeof(*ack))) != NULL) {
		ack->s = s;
		ack->event_seq = json_int(event, "seq", 0);
	}
	journal_append(s->journal, r, ack ? on_journaled : NULL, ack);
	return copy;
}

static void
take_failed(struct supervisor *s, const cJSON *event)
{
	if (s->history.sign.kind == SIGN_NONE) {
		s->history.sign.kind = SIGN_START;
		snprintf(s->history.sign.text, sizeof(s->history.sign.text),
		    "%s", json_str(event, "text", "cannot start"));
	}
	supervisor_event(s, EVENT_START_FAILED);
}

static void
take_stuck(struct supervisor *s, const cJSON *event)
{
	const cJSON *p;

	cJSON_ArrayForEach(p, cJSON_GetObjectItem(event, "processes"))
		supervisor_say(s, "pid %d (%s) does not die: state %s, waits in "
		    "%s", (int)json_int(p, "pid", 0), json_str(p, "comm", "?"),
		    json_str(p, "state", "?"), json_str(p, "wchan", "?"));
}

static void
take_event(struct supervisor *s, const char *type, const cJSON *event)
{
	static const char *const types[][2] = { { "started", "ranks" },
	    { "failed", "start_failed" }, { "exit", "exit" },
	    { "stuck", "stuck" }, { "gone", "gone" }, { NULL, NULL } };
	int attempt = (int)json_int(event, "attempt", 0), i;
	int64_t seq = json_int(event, "seq", 0);
	bool known = strcmp(json_str(event, "instance", ""),
	    s->history.instance) == 0 && seq <= s->history.event_seq;
	cJSON *record, *m;

	for (i = 0; types[i][0] != NULL; i++)
		if (strcmp(types[i][0], type) == 0)
			break;
	if (types[i][0] == NULL) {
		log_warn("unknown event '%s'", type);
		return;
	}
	/* Already journaled, or of an attempt that is not open: nothing of an
	 * old attempt may touch a new one. */
	if (known || attempt != s->history.attempt ||
	    s->history.phase == ATTEMPT_NONE ||
	    s->history.phase == ATTEMPT_GONE ||
	    s->history.phase == ATTEMPT_DECIDED) {
		m = link_order(s, "ack");
		json_add_int(m, "event_seq", seq);
		link_send(s, m);
		return;
	}
	record = journal_event(s, types[i][1], event);
	if (strcmp(type, "started") == 0)
		supervisor_event(s, EVENT_STARTED);
	else if (strcmp(type, "failed") == 0)
		take_failed(s, event);
	else if (strcmp(type, "exit") == 0)
		monitor_exit(s, record);
	else if (strcmp(type, "stuck") == 0)
		take_stuck(s, event);
	else
		supervisor_event(s, EVENT_GONE);
	cJSON_Delete(record);
}

static bool
attempt_is_open(const struct supervisor *s)
{
	enum attempt_phase p = s->history.phase;

	return p == ATTEMPT_ORDERED || p == ATTEMPT_RUNNING ||
	    p == ATTEMPT_ENDING;
}

/* No attempt is open.  One that is gone but not decided is a new supervisor's
 * first task. */
static void
hello_of_idle(struct supervisor *s)
{
	const struct history *h = &s->history;

	if (s->state != STATE_CONNECTING || h->phase != ATTEMPT_GONE)
		supervisor_event(s, EVENT_AGENT_IDLE);
	else if (h->exits_failed == 0 && h->exits_ok >= s->count &&
	    h->sign.kind == SIGN_NONE)
		supervisor_event(s, EVENT_ALL_ENDED_WELL);
	else
		supervisor_event(s, EVENT_RESUME_EXAMINATION);
}

static void
take_hello(struct supervisor *s, const cJSON *hello)
{
	const char *phase = json_str(hello, "phase", "idle");
	int attempt = (int)json_int(hello, "attempt", 0);
	const char *instance = json_str(hello, "instance", "");
	cJSON *r;

	s->agent_is_known = strcmp(instance, s->history.last_agent) == 0;
	s->hello_due = false;
	loop_timer_cancel(s->connect_timer);
	snprintf(s->node, sizeof(s->node), "%s", json_str(hello, "node", "?"));
	s->agent_pid = (pid_t)json_int(hello, "pid", 0);
	s->starting_agent = false;
	r = journal_record("agent", 0);
	json_add_text(r, "node", s->node);
	json_add_int(r, "pid", s->agent_pid);
	json_add_text(r, "agent", instance);
	json_add_text(r, "phase", phase);
	json_add_int(r, "swept", json_int(hello, "swept", 0));
	journal_append(s->journal, r, NULL, NULL);
	if (json_int(hello, "leftovers", 0) != 0) {
		supervisor_say(s, "%d processes of an earlier attempt on node %s "
		    "do not die; nothing is started beside them",
		    (int)json_int(hello, "leftovers", 0), s->node);
		supervisor_event(s, EVENT_AGENT_FAILED);
		return;
	}
	if (json_int(hello, "unreadable", 0) > 0)
		supervisor_say(s, "the environment of %d processes of this user "
		    "cannot be read; whether they belong to the run is unknown",
		    (int)json_int(hello, "unreadable", 0));
	/* First of all: orders of one that has not taken over are refused. */
	link_send(s, link_order(s, "take"));
	if (s->state == STATE_CONNECTING && s->history.stop_asked)
		supervisor_event(s, EVENT_STOP_ASKED);
	s->idle_due = false;
	if (!attempt_is_open(s)) {
		hello_of_idle(s);
	} else if (strcmp(phase, "idle") == 0 ||
	    attempt != s->history.attempt) {
		/* Before it counts as lost, its last events must be in. */
		s->idle_due = true;
	} else {
		supervisor_event(s, EVENT_AGENT_HAS_ATTEMPT);
	}
}

/* The agent has told all it knew, and the attempt that is open here is not
 * there. */
static void
take_resent(struct supervisor *s)
{
	cJSON *r;

	if (!s->idle_due)
		return;
	s->idle_due = false;
	if (!attempt_is_open(s)) {
		hello_of_idle(s);
		return;
	}
	if (s->history.phase == ATTEMPT_ORDERED && s->agent_is_known &&
	    s->state == STATE_CONNECTING) {
		/* The order died with the supervisor: nothing was started. */
		r = journal_record("gone", s->history.attempt);
		json_add_text(r, "proof", "never started");
		journal_append(s->journal, r, NULL, NULL);
		r = journal_record("decision", s->history.attempt);
		json_add_text(r, "kind", "restart");
		json_add_text(r, "why", "the start order was lost");
		cJSON_AddBoolToObject(r, "free", true);
		journal_append(s->journal, r, NULL, NULL);
	} else if (s->state == STATE_CONNECTING) {
		s->state = STATE_LOST;
	}
	supervisor_event(s, EVENT_AGENT_IDLE);
}

static void
on_message(const char *type, const cJSON *m, void *arg)
{
	struct supervisor *s = arg;

	if (strcmp(type, "hello") == 0)
		take_hello(s, m);
	else if (strcmp(type, "progress") == 0)
		monitor_progress(s, m);
	else if (strcmp(type, "watch") == 0)
		monitor_watch(s, m);
	else if (strcmp(type, "evidence") == 0)
		monitor_evidence(s, m);
	else if (strcmp(type, "resent") == 0)
		take_resent(s);
	else if (strcmp(type, "sign") == 0)
		monitor_sign(s, m);
	else if (strcmp(type, "stage") == 0)
		monitor_stage(s, m);
	else if (strcmp(type, "drained") == 0)
		supervisor_event(s, EVENT_DRAINED);
	else if (strcmp(type, "tee") == 0)
		control_broadcast_tee(s, m);
	else
		take_event(s, type, m);
}

static void
on_lost(const struct err *why, void *arg)
{
	struct supervisor *s = arg;

	log_warn("the agent is gone: %s", why->text);
	wire_free(s->agent);
	s->agent = NULL;
	supervisor_event(s, EVENT_AGENT_LOST);
}

static int
start_agent(struct supervisor *s, struct err *err)
{
	if (s->agent_starts++ >= AGENT_STARTS_MAX)
		return err_set(err, ERR_LIMIT, "the agent ended %d times",
		    AGENT_STARTS_MAX);
	/* What it has to say goes to agents/NODE.log; standard error, the
	 * supervisor's, is for what a library prints before it dies. */
	return role_start("agent", s->spec->dir, NULL, STDERR_FILENO,
	    &s->agent_child, err);
}

static void
give_up(struct supervisor *s, const struct err *err)
{
	supervisor_say(s, "no agent on this node: %s (see %s/agents)",
	    err->text, s->spec->dir);
	supervisor_event(s, EVENT_AGENT_FAILED);
}

/* It accepted and says nothing: stopped, or hung.  Its successor sweeps the node,
 * so it is killed rather than left with ranks nobody reaches. */
static void
end_silent_agent(struct supervisor *s)
{
	wire_free(s->agent);
	s->agent = NULL;
	s->hello_due = false;
	s->starting_agent = false;
	supervisor_say(s, "the agent (pid %d) does not answer, replacing it",
	    (int)s->agent_peer);
	if (s->agent_peer > 1)
		kill(s->agent_peer, SIGKILL);
	s->connect_until_ns = clock_mono_ns(&clock_system) + CONNECT_LIMIT_NS;
}

static void
on_connect_timer(void *arg)
{
	struct supervisor *s = arg;
	struct err err = {0};
	char path[PATH_MAX];
	int fd, status;

	if (s->agent != NULL) {
		end_silent_agent(s);
		if (s->agent_starts >= AGENT_STARTS_MAX) {
			err_set(&err, ERR_TIMEOUT, "the agent does not answer; "
			    "its ranks may live");
			give_up(s, &err);
			return;
		}
	}
	snprintf(path, sizeof(path), "%s/agent", s->spec->socket_dir);
	if ((fd = wire_connect(path, &err)) != -1) {
		if (wire_new(s->loop, fd, on_message, on_lost, s, &s->agent,
		    &err) == 0) {
			s->hello_due = true;
			s->agent_peer = wire_peer_pid(fd);
			loop_timer_set(s->connect_timer, HELLO_MS);
			return;
		}
		close(fd);
	}
	/* One that ended before it listened is tried again, a few times. */
	if (s->agent_child > 0 &&
	    waitpid(s->agent_child, &status, WNOHANG) == s->agent_child) {
		s->agent_child = 0;
		s->starting_agent = false;
		/* Another one has the lock and will listen soon. */
		if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_OK)
			s->agent_starts--;
	}
	if (!s->starting_agent) {
		s->starting_agent = true;
		if (start_agent(s, &err) == -1) {
			give_up(s, &err);
			return;
		}
	}
	if (clock_mono_ns(&clock_system) > s->connect_until_ns) {
		give_up(s, &err);
		return;
	}
	loop_timer_set(s->connect_timer, CONNECT_MS);
}

int
link_init(struct supervisor *s, struct err *err)
{
	return loop_timer_new(s->loop, on_connect_timer, s, &s->connect_timer,
	    err);
}

void
link_connect(struct supervisor *s)
{
	s->connect_until_ns = clock_mono_ns(&clock_system) + CONNECT_LIMIT_NS;
	s->starting_agent = false;
	loop_timer_set(s->connect_timer, 0);
}

void
link_find(struct supervisor *s)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/agent", s->spec->socket_dir);
	if ((fd = wire_connect(path, NULL)) == -1)
		return;
	if (wire_new(s->loop, fd, on_message, on_lost, s, &s->agent,
	    NULL) == -1) {
		close(fd);
		return;
	}
	link_send(s, link_order(s, "take"));
}

void
link_close(struct supervisor *s)
{
	if (s->agent == NULL)
		return;
	link_send(s, link_order(s, "quit"));
	wire_flush(s->agent, 1000);
	wire_free(s->agent);
	s->agent = NULL;
}
