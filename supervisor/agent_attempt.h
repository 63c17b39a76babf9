/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_attempt.h - an attempt on one node, as agent_attempt.c (its life and end)
 * and agent_start.c (its beginning) share it.
 */
#ifndef HOLDFAST_SUPERVISOR_AGENT_ATTEMPT_H
#define HOLDFAST_SUPERVISOR_AGENT_ATTEMPT_H

#include "supervisor/agent.h"
#include "supervisor/proc.h"

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
	struct watch		*watch;		/* agent_watch.c */
	struct evidence		*evidence;	/* agent_evidence.c, or NULL */
	struct kernel_log	*kernel;	/* agent_kernel.c, or NULL */
};

/* agent_kernel.c: from now on, to DIR/NODE.kernel.log */
void	kernel_begin(struct attempt *, const char *dir);
/* Reads what is there before the attempt is over. */
void	kernel_catch_up(struct kernel_log *);
void	kernel_end(struct kernel_log *);

/* agent_watch.c */
int	watch_new(struct attempt *, struct err *err);
void	watch_free(struct watch *);

/* A process that is a rank: a main one, or a worker that a launcher started. */
struct watch_rank {
	int		 rank;		/* -1 unknown */
	pid_t		 pid;
	uint64_t	 starttime;
	struct output	*output;	/* of its own, or NULL */
	char		 state;		/* R S D T ...; '?' unknown */
	char		 wchan[PROC_WCHAN_MAX];
	int		 cpu;		/* percent of one core, -1 unknown */
	uint64_t	 ticks, io;	/* of it and its descendants, so far */
	bool		 sampled;
};
/* Looks now; the list is the watch's.  Returns its length. */
size_t	watch_look(struct watch *, struct watch_rank **out);
/* One rank as an object for a note. */
cJSON	*watch_describe(const struct watch_rank *, int64_t now_ns);

/* agent_evidence.c: writes DIR/rankNNNNN.txt of each rank and says "evidence", after
 * limit_ms at the latest. */
void	evidence_start(struct attempt *, const char *dir, int64_t limit_ms);
void	evidence_free(struct evidence *);

/* agent_attempt.c, for agent_start.c */
int	attempt_make_timers(struct attempt *, struct err *err);
void	attempt_report(const char *type, const cJSON *report, void *arg);
void	attempt_reaper_lost(const struct err *why, void *arg);

#endif
