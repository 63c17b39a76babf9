/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exits.h - the file in which the agent of a node notes how its ranks ended.
 *
 * Lines: "TIME holdfast: node N: rank R (pid P) exited with status S", "... was
 * ended by signal S (NAME)", "... did not end within T s and was killed", and
 * "TIME holdfast: attempt stopped: sending SIGTERM to the remaining ranks".
 */
#ifndef HOLDFAST_DIAGNOSE_EXITS_H
#define HOLDFAST_DIAGNOSE_EXITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "diagnose/feed.h"

enum exit_how { EXIT_HOW_STATUS, EXIT_HOW_SIGNAL, EXIT_HOW_TIMEOUT };

struct exit_record {
	uint32_t	 stream;
	size_t		 start, len;	/* its line */
	int		 rank;
	int		 pid;		/* -1 unknown */
	enum exit_how	 how;
	int		 code;		/* status or signal */
	int64_t		 time_ns;
	bool		 stopped;	/* after the agent began to stop the attempt */
	int64_t		 stop_ns;	/* when it did, LINE_NO_TIME unknown */
};

struct exit_list {
	struct exit_record *list;	/* by time, then as read */
	size_t		 count, cap;
};

int	exits_read(struct exit_list *, const struct feed *, uint32_t stream,
	    struct err *err);
/* Puts them in order.  Agents are told to stop at the same moment, so a node that
 * noted another time for it has its clock set by that first. */
void	exits_sort(struct exit_list *);
void	exits_fini(struct exit_list *);

/* The first abnormal end that was not the agent's doing; NULL when all ended
 * well. */
const struct exit_record *exits_first(const struct exit_list *);
/* Walks the other ranks that ended abnormally, of themselves, at most window_ns
 * behind a record; from is the last one returned, or NULL. */
const struct exit_record *exits_next(const struct exit_list *,
	    const struct exit_record *after, const struct exit_record *from,
	    int64_t window_ns);
/* How many ranks ended abnormally before this one; -1 when it did not, or is
 * not listed. */
int	exits_order(const struct exit_list *, int rank);

#endif
