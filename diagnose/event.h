/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.h - what the rules found in the streams, in order.
 */
#ifndef HOLDFAST_DIAGNOSE_EVENT_H
#define HOLDFAST_DIAGNOSE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "diagnose/feed.h"
#include "diagnose/line.h"
#include "diagnose/rule.h"

#define EVENT_NODE_MAX	72
#define EVENT_GPU_MAX	40
#define EVENT_NIC_MAX	24
#define EVENT_PATH_MAX	160

/* One line that one rule won. */
struct event {
	const struct rule *rule;
	uint32_t	 stream;
	uint32_t	 len;		/* of the piece */
	size_t		 start;		/* of the piece in its stream */
	size_t		 text;		/* of the text behind the prefixes */
	int		 rank;		/* -1 unknown */
	int		 local_rank;	/* -1 unknown */
	int		 task;		/* srun's label, -1 none */
	bool		 rank_is_task;	/* rank is that label */
	int		 pid;		/* -1 unknown */
	int64_t		 step;		/* -1 unknown */
	int64_t		 time_ns;	/* of a whole date, LINE_NO_TIME unknown */
	struct line_time when;
	uint64_t	 key;		/* of the writer */
	enum line_level	 level;
	bool		 bare;		/* while collecting: not read yet */
	char		 node[EVENT_NODE_MAX];
	char		 gpu[EVENT_GPU_MAX];
	char		 nic[EVENT_NIC_MAX];
	char		 path[EVENT_PATH_MAX];
};

struct ahead;

struct events {
	struct event	*list;		/* by stream, then position */
	size_t		 count, cap;
	uint32_t	*matched;	/* lines won, per rule */
	struct line_styles styles;	/* of the stream read last */
	uint64_t	 prefixes_learnt;	/* in all streams */
	bool		 gave_up;	/* a match limit was hit */
	/* Told of all bytes looked at so far, now and then; may be NULL. */
	void		(*progress)(uint64_t bytes, void *arg);
	void		*progress_arg;
	uint64_t	 bytes;
	struct ahead	*ahead;		/* set by events_begin() */
	struct collector *collector;	/* kept from stream to stream */
};

/* Starts to scan all streams, in `threads` threads ahead of events_collect(),
 * which must then be called for the streams in their order; a stream that is
 * left out is skipped.  0: no thread.  Optional. */
int	events_begin(struct events *, struct rule_set *, const struct feed *,
	    unsigned threads, struct err *err);

/* Runs all rules of a finished set over one stream and appends its events.
 * Per rule and stream the first EVENT_FIRST and the last EVENT_LAST are kept,
 * all are counted.  Compiles rules lazily, hence not const. */
#define EVENT_FIRST	96
#define EVENT_LAST	32
int	events_collect(struct events *, struct rule_set *, const struct feed *,
	    uint32_t stream, struct err *err);
/* As if the set had only this rule, and the one it is `after`; or all of them,
 * and lines that only a benign rule matches are events too. */
#define EVENTS_AND_BENIGN	(UINT32_MAX - 1)
int	events_collect_rule(struct events *, struct rule_set *,
	    const struct feed *, uint32_t stream, uint32_t rule,
	    struct err *err);
void	events_fini(struct events *);

/* False when no literal of any rule stands in the line: cheap. */
bool	rule_set_may_match(struct rule_set *, const char *line,
	    size_t len);
/* What a stream remembers for `after:`. */
struct line_memory {
	uint64_t	*last;		/* per rule: line it matched last, 0 never */
	uint64_t	 line;		/* the current one, 1-based */
	struct line_styles styles;
};
/* Matches one line against all rules; the rule that wins, or NULL.  Updates the
 * memory, which may be NULL when no rule has an `after:`. */
struct rule *rule_set_match_line(struct rule_set *, const char *line,
	    size_t len, struct line_memory *, struct event *out);

#endif
