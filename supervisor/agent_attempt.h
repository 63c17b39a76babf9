/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_attempt.h - an attempt on one node, as agent_attempt.c (its life and end)
 * and agent_start.c (its beginning) share it.
 */
#ifndef HOLDFAST_SUPERVISOR_AGENT_ATTEMPT_H
#define HOLDFAST_SUPERVISOR_AGENT_ATTEMPT_H

#include "supervisor/agent.h"

enum phase { PHASE_STARTING, PHASE_RUNNING, PHASE_ENDING, PHASE_GONE };

struct main_state {
	pid_t	pid;
	bool	over;
};

struct attempt {
	struct agent		*agent;
	int			 number;
	enum phase		 phase;
	int			 count;
	int			 rank0;		/* -1: one launcher */
	struct main_state	*mains;
	struct output		**outputs;
	struct writer_file	*exits;
	struct wire		*reaper;
	pid_t			 reaper_pid;
	bool			 proven;	/* nothing is left */
	bool			 flushed;
	const char		*proof;
	int			 killed, unreadable, empty_passes;
	int			 port, port_fd;
	int64_t			 grace_ms;
	struct loop_timer	*ladder;	/* TERM to KILL */
	struct loop_timer	*flush;
	struct loop_timer	*sweep;
};

/* agent_attempt.c, for agent_start.c */
int	attempt_make_timers(struct attempt *, struct err *err);
void	attempt_report(const char *type, const cJSON *report, void *arg);
void	attempt_reaper_lost(const struct err *why, void *arg);

#endif
