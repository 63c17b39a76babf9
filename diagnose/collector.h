/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collector.h - what event.c, collect.c and template.c share: the state of
 * collecting the events of one stream.
 */
#ifndef HOLDFAST_DIAGNOSE_COLLECTOR_H
#define HOLDFAST_DIAGNOSE_COLLECTOR_H

#include "diagnose/event.h"
#include "diagnose/match.h"

#define EVENTS_ALL	UINT32_MAX

/* Candidates of one line; the same rule counts once, with its longest literal. */
#define HITS_MAX	256

struct hit {
	uint32_t	 rule;
	uint16_t	 literal_len;
};

/* Where a rule won last, for `after:`, and its events of this stream. */
struct rule_state {
	size_t		 last_start;	/* SIZE_MAX never */
	uint32_t	 count;
	uint32_t	 ring;		/* next of the last ones to overwrite */
	uint32_t	 first_index;	/* of the ring in the list */
};

/* What a line came to: its winner, and the context rules that marked it. */
#define OUTCOME_MARKS	4
struct outcome {
	struct rule	*rule;		/* NULL none */
	uint32_t	 marks[OUTCOME_MARKS];
	size_t		 mark_count;	/* more than fit: not all are there */
};

struct collector {
	struct events	*events;
	struct rule_set	*set;
	const struct stream *stream;
	uint32_t	 stream_index;
	struct rule_state *states;
	struct piece	 piece;		/* the current line */
	bool		 open;		/* piece is set */
	bool		 skip;		/* ... and is the rest of an endless line */
	struct hit	 hits[HITS_MAX];
	size_t		 hit_count;
	char		*scratch;	/* MATCH_LINE_MAX bytes */
	bool		 failed;	/* no memory */
	bool		 gave_up;	/* a limit was hit on the current line */
	struct line_memory *memory;	/* for a single line, or NULL */
	uint32_t	 only;		/* this rule alone, or EVENTS_... */
	struct templates *templates;	/* NULL without memory */
	uint64_t	 prefixes;	/* names the learnt prefixes; 0 none */
};

/* A literal stands in the current line. */
void	collector_hit(struct collector *, uint32_t literal);
/* A rule matched the current line. */
void	collector_remember(struct collector *, uint32_t rule);
/* The line without ANSI sequences (in scratch if it had any), and its prefixes. */
void	collector_parse(struct collector *, const char *data, size_t len,
	    struct line *, const char **whole, size_t *whole_len);
/* Fills an event from the line its rule just matched. */
void	collector_fill(struct event *, struct rule *, const struct line *,
	    size_t text);
/* The rule that wins the current line, by its hits. */
struct rule *collector_best(struct collector *, const char *data, size_t len,
	    struct event *, struct outcome *);

/*
 * template.c: remembers what lines came to.  Error text repeats; lines that differ
 * in numbers only are one template, where no rule that looks at them can tell.
 */
struct templates;

struct templates *templates_new(void);
void	templates_free(struct templates *);
/* True when the line's outcome is known. */
bool	templates_find(struct collector *, const char *data, size_t len,
	    struct outcome *);
/* Call right after collector_best() of the line that was not found. */
void	templates_add(struct collector *, size_t len, const struct outcome *);

#endif
