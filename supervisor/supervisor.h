/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervisor.h - what the files of the supervisor share.
 *
 * supervisor.c   life and end, events into recovery.c
 * actions.c      what the table orders
 * link.c         the connection to the agent: connect, start, orders, events
 * launch.c       the start order: command, environment, placeholders
 * monitor.c      signs: exits, losses, first step after a restart
 * monitor_hang.c signs: no progress
 * examine.c      diagnose and checkpoint selection, as children
 * control.c      the control socket: run parents, holdfast stop
 * status.c       status.json and the lines and cards people read
 * recovery.c, restart.c, history.c decide; they do no I/O
 */
#ifndef HOLDFAST_SUPERVISOR_SUPERVISOR_H
#define HOLDFAST_SUPERVISOR_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/child.h"
#include "common/loop.h"
#include "common/writer.h"
#include "supervisor/hang.h"
#include "supervisor/history.h"
#include "supervisor/incident.h"
#include "supervisor/journal.h"
#include "supervisor/loss.h"
#include "supervisor/recovery.h"
#include "supervisor/run_spec.h"
#include "supervisor/wire.h"

/* After the first failure the other ranks get this long to say what they saw,
 * before they are told to end. */
#define SUPERVISOR_SETTLE_MS	250

struct control_client;

/* The newest progress of the open attempt, as the agent reports it. */
struct latest_progress {
	int64_t	first_step;	/* of this attempt, JSON_UNKNOWN before */
	int64_t	step;
	int64_t	interval;	/* between two reported steps, unknown before */
	double	loss;
	bool	has_loss;
	double	step_ms;
	bool	has_step_ms;
};

struct supervisor {
	struct loop		*loop;
	struct writer		*writer;
	struct run_spec		*spec;
	struct journal		*journal;
	struct writer_file	*log;
	struct history		 history;
	enum recovery_state	 state;
	int			 exit_code;

	/* the open attempt */
	int			 count;		/* main processes */
	char			 node[80];
	int64_t			 launched_ns;	/* monotonic */
	struct latest_progress	 progress;
	bool			 resume_checked;
	struct loss		 loss;
	int64_t			 spike_step;	/* where the last spike began */
	struct hang		 hang;
	struct hang_learnt	 hang_learnt;	/* of all attempts */
	struct loop_timer	*hang_tick;
	bool			 hang_asked;	/* for evidence */
	char			 hang_why[HANG_WHY_MAX];
	cJSON			*hang_ranks;	/* as last seen, or NULL */
	struct selection	 selection;	/* to start from next */
	struct incident		 incident;
	int64_t			 lost_ms;	/* time lost to failures so far */
	int64_t			 failed_ns;	/* monotonic, of the last failure */

	/* link.c */
	struct wire		*agent;
	pid_t			 agent_pid;	/* of the connected one */
	pid_t			 agent_peer;	/* the kernel's word, before hello */
	pid_t			 agent_child;	/* started here, not reaped yet */
	int			 agent_starts;
	bool			 starting_agent;
	bool			 hello_due;	/* connected, not introduced yet */
	bool			 idle_due;	/* its past is still to come */
	bool			 agent_is_known; /* it was here before this supervisor */
	int64_t			 connect_until_ns;
	struct loop_timer	*connect_timer;

	/* examine.c */
	struct child		*diagnose_child, *checkpoint_child;
	bool			 examining;	/* both answers, then decide */

	/* control.c */
	int			 control_fd;
	struct control_client	*clients;
	struct buf		 unheard;	/* said while nobody was attached */
	cJSON			*unheard_records;

	/* staging */
	bool			 stage_failed;	/* and it was said */
	int			 end_code;	/* stated, not written yet */
	char			 end_why[INCIDENT_TEXT_MAX];
	int64_t			 durable_step;	/* newest, JSON_UNKNOWN */
	struct loop_timer	*drain;		/* limit of the wait */

	struct loop_timer	*settle, *exits, *delay, *lease, *status_timer;
	struct loop_timer	*farewell;	/* until the parent has heard the end */
	bool			 end_written;
	bool			 dir_lost;	/* and it was said */
	int			 select_tries;	/* that found nothing out */
	int			 stops;		/* times asked */
	int			 stop_signal;
	enum recovery_state	 status_state;	/* last one written */
	cJSON			*start_order;	/* waits for its record */
};

/* supervisor.c: one event through the table. */
void	supervisor_event(struct supervisor *, enum recovery_event);
/* A line for people. */
void	supervisor_say(struct supervisor *, const char *fmt, ...)
	    __attribute__((format(printf, 2, 3)));
/* Writes the end of the campaign; the process leaves when it is durable. */
void	supervisor_close(struct supervisor *, int code, const char *why);

/* actions.c */
void	action_do(struct supervisor *, enum recovery_action);
/* Timer: the ranks had time to say what they saw. */
void	action_settled(void *supervisor);
/* Timer: exits, or strays, are overdue. */
void	action_exits_over(void *supervisor);
/* Timer: the staged checkpoints had their time to become durable. */
void	action_drain_over(void *supervisor);

/* link.c */
int	link_init(struct supervisor *, struct err *err);
void	link_connect(struct supervisor *);
/* Connects to an agent that is there, to tell it that the run is over. */
void	link_find(struct supervisor *);
void	link_close(struct supervisor *);
/* An order with generation and attempt filled in. */
cJSON	*link_order(struct supervisor *, const char *type);
void	link_send(struct supervisor *, cJSON *order);

/* launch.c */
cJSON	*launch_order(struct supervisor *, int attempt, struct err *err);

/* monitor.c */
void	monitor_exit(struct supervisor *, const cJSON *record);
void	monitor_progress(struct supervisor *, const cJSON *note);
void	monitor_sign(struct supervisor *, const cJSON *note);
void	monitor_stage(struct supervisor *, const cJSON *note);
void	monitor_reset(struct supervisor *);
/* Ranks run: from now on they are watched. */
void	monitor_begin(struct supervisor *);
/* The first sign of an attempt ends it. */
void	monitor_raise(struct supervisor *, enum sign_kind, int rank,
	    const char *text);

/* monitor_hang.c */
void	monitor_hang_begin(struct supervisor *);
void	monitor_hang_step(struct supervisor *, int64_t step);
void	monitor_hang_tick(void *supervisor);
void	monitor_watch(struct supervisor *, const cJSON *note);
void	monitor_evidence(struct supervisor *, const cJSON *note);

/* examine.c */
void	examine_select(struct supervisor *, int64_t before_step);
void	examine_incident(struct supervisor *);
void	examine_cancel(struct supervisor *);

/* control.c */
int	control_init(struct supervisor *, struct err *err);
void	control_close(struct supervisor *);
void	control_broadcast_text(struct supervisor *, const char *line);
void	control_broadcast_record(struct supervisor *, const cJSON *record);
void	control_broadcast_tee(struct supervisor *, const cJSON *note);
void	control_end(struct supervisor *, int code);
bool	control_has_listener(const struct supervisor *);

/* status.c */
void	status_changed(struct supervisor *);
void	status_write(struct supervisor *);

/* card.c: the incident as a boxed card, to be freed by the caller. */
char	*card_format(const struct incident *, const struct supervisor *);

#endif
