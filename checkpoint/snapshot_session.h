/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_session.h - what the server knows of one rank, and the rules of its areas;
 * only for snapshot_server.c and snapshot_session.c.
 */
#ifndef HOLDFAST_CHECKPOINT_SNAPSHOT_SESSION_H
#define HOLDFAST_CHECKPOINT_SNAPSHOT_SESSION_H

#include <stdatomic.h>

#include "checkpoint/snapshot_job.h"
#include "checkpoint/snapshot_publish.h"
#include "checkpoint/snapshot_server.h"

/* So long after it was asked for, what ranks sent before they died has been read. */
#define SESSION_FLUSH_MS	100

enum area_state {
	AREA_FREE,		/* also one that was not made yet: fd -1 */
	AREA_GROWING,		/* a thread finds memory for it */
	AREA_FILLING,		/* the rank's */
	AREA_PENDING,		/* committed; its turn has not come */
	AREA_WRITING
};

struct area {
	int			 fd;
	uint64_t		 bytes;
	enum area_state		 state;
	bool			 sent;		/* the rank has the descriptor */
	struct snapshot_message	 commit;
	int64_t			 commit_ns;
};

struct session {
	struct snapshot_server	*server;
	struct session		*next;
	int			 fd;		/* -1: the rank is gone */
	struct loop_watch	*watch;
	struct area		 areas[SNAPSHOT_AREAS];
	unsigned		 jobs;		/* that use it */
	int64_t			 flush_ns;	/* asks when all is written; 0: no */
	bool			 begin_waits;
	struct snapshot_message	 begin;
	uint32_t		 world, attempt;	/* 0: has not begun yet */
	int64_t			 written;	/* newest step written, -1 */
	/* written, and not complete as long as other ranks are missing */
	bool			 waits, looking;
	struct snapshot_place	 place;
	uint64_t		 sequence;
	int64_t			 commit_ns;
};

struct snapshot_server {
	struct loop		*loop;
	struct snapshot_server_ops ops;
	void			*arg;
	char			*path;
	int			 listen_fd;
	struct loop_watch	*watch;
	struct loop_timer	*again;		/* sessions that wait */
	struct snapshot_jobs	*jobs;
	struct session		*sessions;
	unsigned		 n_sessions;
	uint64_t		 writers;
	struct sink_limit	 limit;
	atomic_bool		 cancel;
	bool			 ending;
};

/* A message of the rank; false when it breaks the rules.  passed is the session's. */
bool	session_message(struct session *, const struct snapshot_message *,
	    int passed);
/* Starts what may be written now, of any session. */
void	session_start_writing(struct snapshot_server *);
/* Looks whether the step that a session waits for is complete. */
void	session_look_again(struct session *);
/* Says that all is written to one that asked for that. */
void	session_answer_flush(struct session *);
/* True when nothing of it is left to write. */
bool	session_is_idle(const struct session *);
/* Closes areas and releases it. */
void	session_free(struct session *);
/* Ends the connection; areas that are committed stay. */
void	session_hang_up(struct session *);

/* Of snapshot_server.c: a job has ended, a session may have no use any more. */
void	server_settle(struct snapshot_server *);

#endif
