/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - the tables that torchelastic prints when ranks of a node failed.
 *
 * Keys of an entry (torch/distributed/elastic/multiprocessing/errors/__init__.py):
 * time, host, rank with local_rank, exitcode with pid, error_file, traceback; older
 * ones have no blanks before the colon, and "msg".
 */
#ifndef HOLDFAST_DIAGNOSE_TABLE_H
#define HOLDFAST_DIAGNOSE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "diagnose/event.h"

/* One rank in one table. */
struct table_entry {
	uint32_t	 stream;
	size_t		 begin, end;	/* its lines, from "time" on */
	size_t		 line;		/* of the exit code, or the first one */
	uint64_t	 key;		/* of the agent that printed it */
	int		 task;		/* srun's label of that agent, -1 */
	int		 rank;		/* -1 unknown, as all numbers */
	int		 local_rank;
	int		 exitcode;	/* negative: a signal; INT_MIN unknown */
	int		 pid;
	int64_t		 time_ns;	/* whole seconds; LINE_NO_TIME */
	char		 host[EVENT_NODE_MAX];
	bool		 root;		/* "first observed failure" of its table */
	bool		 told;		/* an error file or a traceback is there */
};

struct table_list {
	struct table_entry *list;	/* by stream, then place */
	size_t		 count, cap;
	size_t		 searched;	/* bytes, for messages */
};

/* The line in the middle of a table: "Root Cause (first observed failure):". */
bool	table_is_mark(const struct stream *, const struct event *);
/* Reads the table around its mark, and those behind it in the same stream up to *end,
 * which is set: of many nodes more may have printed one than there are events of a
 * rule. */
int	table_read(struct table_list *, const struct feed *,
	    const struct line_styles *, const struct event *first, size_t *end,
	    struct err *err);
void	table_fini(struct table_list *);

/* The entry that a place in a stream lies in, or NULL. */
const struct table_entry *table_at(const struct table_list *, uint32_t stream,
	    size_t at);
/* The entry of a process of that stream, by its pid, else by its local rank when
 * no other agent printed into the stream. */
const struct table_entry *table_of_process(const struct table_list *,
	    uint32_t stream, int pid, int local_rank);
/* The one entry whose traceback has this message; NULL when none or several do, or
 * too much was searched already. */
const struct table_entry *table_of_message(struct table_list *,
	    const struct stream *, uint32_t stream, const char *text, size_t len);
/* The one entry of a process that crashed; NULL when none or several did. */
const struct table_entry *table_of_crash(const struct table_list *,
	    uint32_t stream);
/* The entry of an agent whose lines have this label of srun. */
const struct table_entry *table_of_task(const struct table_list *,
	    uint32_t stream, int task);
/* True when this rank failed in the second in which the first one did. */
bool	table_is_first(const struct table_list *, int rank);
/* How many ranks failed in an earlier second; -1 when it is not listed. */
int	table_order(const struct table_list *, int rank);

#endif
