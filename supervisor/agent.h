/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent.h - what the files of the agent share.
 *
 * agent.c          connections, orders, life and end of the agent
 * agent_start.c    beginning of an attempt: port, outputs, reaper, command
 * agent_attempt.c  its life and end: kill ladder, exits, proof
 * agent_output.c   output of the main processes: file, tee, scan
 * agent_stage.c    staged checkpoints on their way to the durable directory
 * agent_sweep.c    processes that an earlier agent left behind
 * agent_kernel.c   what the kernel of the node says meanwhile
 * agent_watch.c    what the ranks do while nothing is heard of them
 * agent_evidence.c their stacks, before a hung attempt is ended
 *
 * Orders from the supervisor (wire.h frames with generation and attempt):
 *   take   {generation}                this supervisor is the one to obey
 *   start  {attempt, argv, cwd, ...}   see agent_start.c
 *   stop   {attempt, grace_ms, why}    climb the kill ladder
 *   signal {attempt, signal}           to the main processes
 *   evidence {attempt, dir, limit_ms}  stacks of all ranks; answered by a note
 *   ack    {event_seq}                 journaled up to here
 *   drain                              make durable what is staged, say "drained"
 *   quit                               end, when no attempt runs
 * Events to it, spooled until acknowledged, all with instance, attempt, seq:
 *   started {pids, port}  failed {errnum, text}  exit {rank, pid, kind, status}
 *   stuck {processes}     gone {proof, killed, unreadable}
 * Notes, which may be lost: hello, progress, watch, evidence, sign, tee, drained,
 * stage {event of `holdfast checkpoint stage`}.
 */
#ifndef HOLDFAST_SUPERVISOR_AGENT_H
#define HOLDFAST_SUPERVISOR_AGENT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/loop.h"
#include "common/writer.h"
#include "supervisor/run_spec.h"
#include "supervisor/spool.h"
#include "supervisor/wire.h"

#define AGENT_INSTANCE_MAX	20
#define AGENT_NODE_MAX		65

struct attempt;
struct staging;
struct output;
struct rule_set;
struct peer;

struct agent {
	struct loop		*loop;
	struct writer		*writer;
	struct run_spec		*spec;
	struct writer_file	*log;
	struct spool		*spool;
	struct rule_set		*rules;		/* for the live scan */
	int			 listen_fd;
	int			 lock_fd;
	struct peer		*peers;
	struct wire		*supervisor;	/* the one obeyed, or NULL */
	int64_t			 generation;
	struct attempt		*attempt;	/* running or just gone, or NULL */
	int			 last_attempt;
	struct staging		*staging;	/* agent_stage.c, or NULL */
	struct loop_timer	*idle_timer;
	struct loop_timer	*sweep_timer;
	int			 swept;		/* processes ended at start */
	int			 leftovers;	/* that could not be ended */
	int			 empty_passes;
	int			 unreadable;
	int64_t			 sweep_end_ns;
	char			 instance[AGENT_INSTANCE_MAX];
	char			 node[AGENT_NODE_MAX];
};

/* An event or note with instance and attempt filled in. */
cJSON	*agent_message(struct agent *, const char *type, int attempt);
/* Spools the event and sends it if a supervisor is there; frees it. */
void	agent_event(struct agent *, cJSON *event);
/* Sends a note, or drops it; frees it. */
void	agent_note(struct agent *, cJSON *note, size_t room);
/* The attempt has told its last event and is freed. */
void	agent_attempt_over(struct agent *);

/* agent_start.c */
int	attempt_start(struct agent *, const cJSON *order, struct err *err);
/* agent_attempt.c */
void	attempt_stop(struct attempt *, int64_t grace_ms, const char *why);
void	attempt_signal(struct attempt *, int sig);
void	attempt_free(struct attempt *);
/* It has told its last event. */
bool	attempt_is_over(const struct attempt *);
/* Adds what a new supervisor must know to a hello. */
void	attempt_describe(const struct attempt *, cJSON *hello);
/* All output of the attempt has ended (agent_output.c). */
void	attempt_output_ended(struct attempt *);

/* agent_stage.c; nothing without --stage.  Before the ranks start: the directories,
 * and the checkpoint to resume from (NULL: none) where the trainer looks for it. */
int	staging_prepare(struct agent *, const char *resume, struct err *err);
/* Nobody finishes any more what the attempt began to save. */
void	staging_attempt_over(struct agent *);
/* Tells "drained" when all that is complete is durable, or cannot be. */
void	staging_drain(struct agent *);
void	staging_free(struct agent *);

/* agent_output.c: one stream per main process. */
int	output_new(struct agent *, struct attempt *, int number, int rank,
	    const char *path, bool tee, int *write_fd, struct output **out,
	    struct err *err);
void	output_free(struct output *);
bool	output_ended(const struct output *);
/* Tells progress that was held back, so that it comes before what follows. */
void	output_flush(struct output *);

struct output_news {
	int64_t		 heard_ns;	/* when the last bytes came, monotonic; 0 */
	uint64_t	 bytes;		/* in all */
	const char	*tail;		/* the last ones, the output's */
	size_t		 tail_len;
	int64_t		 step;		/* or JSON_UNKNOWN */
};
void	output_tell(const struct output *, struct output_news *);

/* A process hides its environment for a moment while it execs, so a single empty
 * pass proves nothing. */
#define SWEEP_EMPTY_PASSES	2
#define SWEEP_MS		20

/* agent_sweep.c: one pass of KILL over processes whose environment has this run
 * id.  Returns how many are still there, -1 when /proc cannot be read.  A process
 * of this user that is younger than the run and hides its environment is
 * counted in *unreadable. */
int	sweep_pass(const struct run_spec *, int *killed, int *unreadable);

#endif
