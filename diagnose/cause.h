/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cause.h - one line that could be the cause, and the case it belongs to.
 */
#ifndef HOLDFAST_DIAGNOSE_CAUSE_H
#define HOLDFAST_DIAGNOSE_CAUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diagnose/block.h"
#include "diagnose/event.h"
#include "diagnose/exits.h"

struct cause {
	struct event	 event;		/* event.rule may be a rule of the engine */
	const struct reason *reason;
	struct block	 block;
	int64_t		 time_ns;	/* LINE_NO_TIME unknown */
	int		 rank_class;	/* place on the ladder, small is strong */
	int		 order;		/* of the rank's end; INT_MAX unknown */
	bool		 late;		/* after the job began to be ended */
	bool		 echo;		/* explained by another one */
	bool		 exit;		/* an exit record, no line of a rule */
};

/* What is known of one stream. */
struct stream_facts {
	size_t		 teardown;	/* offset of the first mark, SIZE_MAX none */
	size_t		 progress;	/* offset of the last step line, SIZE_MAX */
	size_t		 progress_before; /* ... of the one before it */
	int64_t		 step;		/* last step, -1 */
	bool		 finite;	/* its loss was a number */
};

struct case_file {
	struct rule_set	*set;
	const struct feed *feed;
	struct events	 events;
	struct exit_list exits;
	struct stream_facts *facts;	/* per stream */
	struct cause	*causes;
	size_t		 count, cap;
	bool		 unknown_exception;
	int		 table_rank;	/* first to fail by torchelastic, -1 */
};

/* Reads all streams; fills a zeroed case. */
int	case_read(struct case_file *, struct rule_set *, const struct feed *,
	    struct err *err);
void	case_fini(struct case_file *);

/* Records of hardware, nodes and schedulers have at most this class. */
#define CLASS_RECORD	3
/* The class of symptoms: only chosen when nothing stronger is there. */
#define CLASS_SYMPTOM	20

/* Names of the rules the engine itself has, for candidates no rule gave. */
#define RULE_EXCEPTION	"exception"

#endif
