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
#include "diagnose/table.h"

struct cause {
	struct event	 event;		/* event.rule may be a rule of the engine */
	const struct reason *reason;
	struct block	 block;
	int64_t		 time_ns;	/* by one clock for all, LINE_NO_TIME unknown */
	int		 rank_class;	/* place on the ladder, small is strong */
	int		 order;		/* of the rank's end; INT_MAX unknown */
	bool		 late;		/* after the job began to be ended */
	bool		 echo;		/* explained by another one */
	bool		 exit;		/* an exit record, no line of a rule */
	bool		 confirmed;	/* another record says the same */
};

/* What is known of one stream. */
struct stream_facts {
	size_t		 teardown;	/* offset of the first mark, SIZE_MAX none */
	size_t		 progress;	/* offset of the last step line, SIZE_MAX */
	size_t		 progress_before; /* ... of the one before it */
	int64_t		 step;		/* last step, -1 */
	bool		 finite;	/* its loss was a number */
	struct line_time first, last;	/* times that its lines print */
	struct line_time step_time;	/* ... and its last step line */
	int64_t		 first_ns, last_ns, step_ns; /* resolved by clock.c */
	int64_t		 ahead_ns;	/* its clock against the others' */
};

struct case_file {
	struct rule_set	*set;
	const struct feed *feed;
	struct events	 events;
	struct exit_list exits;
	struct table_list tables;
	struct stream_facts *facts;	/* per stream */
	struct block_lines *lines;
	struct cause	*causes;
	size_t		 count, cap;
	bool		 unknown_exception;
};

/* Reads all streams; fills a case that is zeroed but for events.progress. */
int	case_read(struct case_file *, struct rule_set *, const struct feed *,
	    struct err *err);
/* Adds a candidate, for cause.c and ends.c; NULL without memory. */
struct cause *case_add(struct case_file *, struct err *err);
void	case_fini(struct case_file *);

/* ends.c: takes what is known about how ranks ended into the case. */
int	case_add_ends(struct case_file *, struct err *err);

/* Negative when a came first: by place in one stream, then by the end of the rank,
 * then by time. */
int	cause_compare(const struct cause *a, const struct cause *b);
/* As far as their times tell, and their clocks may differ; 0 when they do not. */
int	cause_compare_time(const struct cause *a, const struct cause *b);

/* Records of hardware, nodes and schedulers have at most this class. */
#define CLASS_RECORD	3
/* The class of symptoms: only chosen when nothing stronger is there. */
#define CLASS_SYMPTOM	20

/* Clocks of two nodes differ less. */
#define CAUSE_SKEW_NS	2000000000ll

/* Names of the rules the engine itself has, for candidates no rule gave. */
#define RULE_EXCEPTION	"exception"
extern const struct rule cause_rule_exception;

#endif
