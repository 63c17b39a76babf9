/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervisor.c - the process that decides: its life, its signals, and events fed
 * to the table of recovery.c.  One loop, no blocking call.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/log.h"
#include "common/text.h"
#include "common/verb.h"
#include "supervisor/lock.h"
#include "supervisor/proc.h"
#include "supervisor/supervisor.h"
#include "supervisor/verbs.h"

#define WRITER_QUEUE_MAX	(64u << 20)
#define WRITER_WAIT_MS		5000
#define FAREWELL_MS		5000

void
supervisor_say(struct supervisor *s, const char *fmt, ...)
{
	char text[1024], line[1200], when[CLOCK_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	clock_format(clock_wall_ns(&clock_system), when);
	snprintf(line, sizeof(line), "%.8s %s: %s\n", when + 11,
	    s->spec->options.name, text);
	log_info("%s", text);
	control_broadcast_text(s, line);
}

static void
leave(struct supervisor *s)
{
	if (s->agent == NULL)
		link_find(s);
	link_close(s);
	loop_stop(s->loop, s->exit_code);
}

/* The parent may still be connecting: it must hear how the run ended. */
static void
on_end_journaled(void *arg)
{
	struct supervisor *s = arg;

	s->end_written = true;
	status_write(s);
	control_end(s, s->exit_code);
	if (control_has_listener(s))
		leave(s);
	else
		loop_timer_set(s->farewell, FAREWELL_MS);
}

static void
on_farewell(void *arg)
{
	leave(arg);
}

void
supervisor_close(struct supervisor *s, int code, const char *why)
{
	cJSON *r;


	examine_cancel(s);
	loop_timer_cancel(s->delay);
	loop_timer_cancel(s->exits);
	loop_timer_cancel(s->settle);
	s->state = STATE_CLOSED;
	s->exit_code = code;
	r = journal_record("end", s->history.attempt);
	json_add_int(r, "code", code);
	json_add_text(r, "state", code == EXIT_OK ? "finished" : "stopped");
	json_add_text(r, "why", why);
	supervisor_say(s, "%s: %s (exit status %d)", code == EXIT_OK ?
	    "finished" : "stopped", why, code);
	journal_append(s->journal, r, on_end_journaled, s);
}

void
supervisor_event(struct supervisor *s, enum recovery_event event)
{
	enum recovery_action action;
	enum recovery_state next;

	if (recovery_step(s->state, event, &action, &next) == -1) {
		log_debug("%s in %s means nothing", recovery_event_name(event),
		    recovery_state_name(s->state));
		return;
	}
	log_debug("%s: %s -> %s, %s", recovery_state_name(s->state),
	    recovery_event_name(event), recovery_state_name(next),
	    recovery_action_name(action));
	s->state = next;
	action_do(s, action);
	status_changed(s);
}

static void
on_delay_over(void *arg)
{
	supervisor_event(arg, EVENT_DELAY_OVER);
}

static void
on_renewed(int errnum, void *arg)
{
	struct supervisor *s = arg;

	if (errnum != 0 && !s->dir_lost)
		supervisor_say(s, "the run directory %s cannot be reached: %s; "
		    "training goes on", s->spec->dir, strerror(errnum));
	s->dir_lost = errnum != 0;
}

static void
on_lease(void *arg)
{
	struct supervisor *s = arg;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.4000s/lock", s->spec->dir);
	writer_touch(s->writer, path, on_renewed, s);
	loop_timer_set(s->lease, LOCK_RENEW_MS);
}

static void
on_signal(const struct signalfd_siginfo *si, void *arg)
{
	struct supervisor *s = arg;
	cJSON *r;

	if (si->ssi_signo != SIGTERM && si->ssi_signo != SIGINT &&
	    si->ssi_signo != SIGUSR1)
		return;
	r = journal_record("stop", s->history.attempt);
	json_add_int(r, "signal", si->ssi_signo);
	json_add_text(r, "by", "signal");
	s->stop_signal = (int)si->ssi_signo;
	s->stops++;
	journal_append(s->journal, r, NULL, NULL);
	supervisor_event(s, EVENT_STOP_ASKED);
}

static void
on_record(const cJSON *record, void *arg)
{
	control_broadcast_record(arg, record);
}

static int
make_timers(struct supervisor *s, struct err *err)
{
	if (loop_timer_new(s->loop, action_settled, s, &s->settle, err) == -1 ||
	    loop_timer_new(s->loop, action_exits_over, s, &s->exits,
	    err) == -1 ||
	    loop_timer_new(s->loop, on_delay_over, s, &s->delay, err) == -1 ||
	    loop_timer_new(s->loop, monitor_hang_tick, s, &s->hang_tick,
	    err) == -1 ||
	    loop_timer_new(s->loop, on_lease, s, &s->lease, err) == -1 ||
	    loop_timer_new(s->loop, action_drain_over, s, &s->drain, err) == -1 ||
	    loop_timer_new(s->loop, on_farewell, s, &s->farewell, err) == -1)
		return -1;
	loop_timer_set(s->lease, LOCK_RENEW_MS);
	return 0;
}

static void
journal_life(struct supervisor *s)
{
	cJSON *r;

	if (s->history.campaign == 0 || (s->history.ended &&
	    s->history.end_code != EXIT_REQUEUE)) {
		r = journal_record("campaign", 0);
		json_add_int(r, "campaign", s->history.campaign + 1);
		journal_append(s->journal, r, NULL, NULL);
	}
	r = journal_record("supervisor", 0);
	json_add_int(r, "pid", getpid());
	json_add_int(r, "generation", s->history.generation + 1);
	journal_append(s->journal, r, NULL, NULL);
}

static void
log_line(const char *line, size_t len, void *arg)
{
	writer_append(arg, line, len, NULL, NULL);
}

/* The log lies on the shared file system: the loop must not wait for it. */
static int
open_log(struct supervisor *s, struct err *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.4000s/agents/supervisor.log",
	    s->spec->dir);
	if (writer_open(s->writer, path, &s->log, err) == -1)
		return -1;
	log_sink(log_line, s->log);
	return 0;
}

/* A respawned supervisor may find that its predecessor had written the end and
 * died before the parent heard it: then there is nothing but to say it again.
 * Campaigns up to `over` had ended before the parent began. */
static void
begin(struct supervisor *s, bool respawned, int over)
{
	if (respawned && s->history.ended && s->history.campaign > over) {
		s->exit_code = s->history.end_code;
		s->state = STATE_CLOSED;
		s->end_written = true;
		loop_timer_set(s->farewell, FAREWELL_MS);
		return;
	}
	journal_life(s);
	if (s->history.stop_asked) {
		s->stop_signal = s->history.stop_signal;
		s->stops = 1;
	}
	status_changed(s);
	link_connect(s);
}

static int
supervisor_init(struct supervisor *s, const char *dir, struct err *err)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, 0 };
	char spool[PATH_MAX];

	history_init(&s->history);
	s->state = STATE_CONNECTING;
	s->progress.interval = JSON_UNKNOWN;
	monitor_reset(s);
	s->selection.step = s->durable_step = JSON_UNKNOWN;
	if (run_spec_load(dir, &s->spec, NULL, err) == -1 ||
	    run_spec_make_socket_dir(s->spec, err) == -1)
		return -1;
	s->count = s->spec->options.nproc_per_node > 0 ?
	    (int)s->spec->options.nproc_per_node : 1;
	snprintf(spool, sizeof(spool), "%s/journal", s->spec->socket_dir);
	if (loop_new(&s->loop, err) == -1 ||
	    writer_new(s->loop, WRITER_QUEUE_MAX, &s->writer, err) == -1 ||
	    open_log(s, err) == -1 ||
	    journal_open(s->spec->dir, spool, s->loop, s->writer, &s->history,
	    &s->journal, err) == -1 || make_timers(s, err) == -1 ||
	    loop_watch_signals(s->loop, signals, on_signal, s, NULL,
	    err) == -1 || control_init(s, err) == -1 || link_init(s, err) == -1)
		return -1;
	journal_tap(s->journal, on_record, s);
	return 0;
}

static void
supervisor_fini(struct supervisor *s)
{
	log_sink(NULL, NULL);
	control_close(s);
	rmdir(s->spec->socket_dir);
	journal_free(s->journal);
	writer_close(s->log);
	if (!writer_free(s->writer, WRITER_WAIT_MS))
		log_warn("the file system hangs, some records were not written");
	loop_free(s->loop);
	incident_clear(&s->incident);
	cJSON_Delete(s->selection.json);
	buf_fini(&s->unheard);
	cJSON_Delete(s->unheard_records);
	run_spec_free(s->spec);
}

static int
supervisor_run(const struct verb *v, int argc, char **argv)
{
	struct supervisor s = {0};
	struct err err = {0};
	int rc;

	(void)v;
	log_open_environment("supervisor");
	if (argc < 2 || argc > 3) {
		log_error("the supervisor is started by holdfast run");
		return EXIT_USAGE;
	}
	signal(SIGPIPE, SIG_IGN);
	if (supervisor_init(&s, argv[1], &err) == -1) {
		log_sink(NULL, NULL);
		log_error("%s", err.text);
		return EXIT_USAGE;
	}
	begin(&s, argc == 3, argc == 3 ? atoi(argv[2]) : 0);
	if ((rc = loop_run(s.loop, &err)) == -1) {
		log_error("%s", err.text);
		return EXIT_NEGATIVE;
	}
	supervisor_fini(&s);
	return rc;
}

const struct verb verb_supervisor = {
	.name = "supervisor",
	.summary = "decide for a run (started by holdfast run)",
	.run = supervisor_run,
	.internal = true
};
