/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.h - rules and progress on the output of a running rank.
 *
 * Bytes come in chunks cut anywhere; memory per stream is bounded whatever they
 * hold: of a line only the first LIVE_HEAD_MAX bytes are looked at.  A piece that
 * ends in a carriage return (a progress bar) counts as a line of its own but
 * does not advance the line number.
 */
#ifndef HOLDFAST_DIAGNOSE_LIVE_H
#define HOLDFAST_DIAGNOSE_LIVE_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "diagnose/progress.h"
#include "diagnose/rule.h"

#define LIVE_HEAD_MAX	8192

/* A line that a rule won.  Texts are valid during the call only. */
struct live_match {
	const struct rule	*rule;		/* rule->def.id, .role; rule->reason */
	uint64_t		 line;		/* 1-based, in the stream */
	uint64_t		 offset;	/* of the line in the stream, bytes */
	const char		*text;		/* the line's head, not terminated */
	size_t			 len;
	int			 rank;		/* as the line says, -1 unknown */
	int64_t			 step;		/* -1 unknown */
	const char		*node;		/* "" unknown */
	const char		*gpu;		/* "" unknown */
};

struct live_calls {
	/* Rules of role context and benign are not reported. */
	void	(*match)(const struct live_match *, void *arg);
	void	(*progress)(const struct progress *, uint64_t line, void *arg);
	void	*arg;
};

struct live;

/* The set must be finished and outlive the stream; many streams of one thread
 * share it.  Either call may be NULL. */
int	live_new(struct rule_set *, const struct live_calls *, struct live **out,
	    struct err *err);
void	live_feed(struct live *, const char *data, size_t len);
/* Looks at a last line without a newline; the stream may go on afterwards. */
void	live_flush(struct live *);
void	live_free(struct live *);

/* Bytes and newlines seen so far. */
uint64_t live_bytes(const struct live *);
uint64_t live_lines(const struct live *);

#endif
