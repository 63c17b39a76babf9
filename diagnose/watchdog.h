/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watchdog.h - which rank kept the others waiting in a collective.
 *
 * PyTorch's ProcessGroupNCCL prints counters per process group when a collective times
 * out (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, 1.13 to 2.9):
 * "WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=...)",
 * "last enqueued NCCL work: 14, last completed NCCL work: 11" (2.3 to 2.5),
 * "last enqueued work: 14, last completed work: 11" (later), "Received a dump signal due
 * to a collective timeout from  rank 7 ...".
 */
#ifndef HOLDFAST_DIAGNOSE_WATCHDOG_H
#define HOLDFAST_DIAGNOSE_WATCHDOG_H

#include "diagnose/cause.h"
#include "diagnose/verdict.h"

#define WATCH_OP_MAX	32
#define WATCH_GROUP_MAX	64

/* What one rank says of one process group. */
struct watch_peer {
	char		 group[WATCH_GROUP_MAX];	/* "" not named */
	char		 node[EVENT_NODE_MAX];
	char		 op[WATCH_OP_MAX];
	int		 rank;		/* global; in the group when `local` */
	bool		 local;
	int64_t		 seq;		/* of the work that timed out; all -1 unknown */
	int64_t		 numel_in, numel_out;
	int64_t		 enqueued, completed;
	bool		 timed_out;	/* its own watchdog complains */
	bool		 told;		/* it heard of it from another rank */
	bool		 stuck;		/* its watchdog itself does not get on */
	uint32_t	 stream;
	size_t		 start;		/* of the line that tells most */
};

struct watch_list {
	struct watch_peer *list;
	size_t		 count, cap;
	int		*named;		/* ranks that others name as missing */
	size_t		 named_count;
};

/* watchdog_read.c: reads the lines of all streams that have some. */
int	watch_read(struct watch_list *, const struct case_file *, struct err *err);
void	watch_fini(struct watch_list *);

/* Adds suspects to a verdict whose root is a collective that timed out.  Returns the
 * candidate that is the culprit's own line, or NULL; *mismatch is set when the ranks
 * called different collectives. */
const struct cause *watchdog_judge(const struct case_file *, struct verdict *,
	    bool *mismatch);

#endif
