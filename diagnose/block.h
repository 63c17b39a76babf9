/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.h - the traceback around a line: where its chain of exceptions began,
 * and whether it was raised, ignored, or only passed on.
 *
 * Looks back from the line over lines of the same writer, so ranks that print
 * into one file are told apart as far as their prefixes tell them apart.
 */
#ifndef HOLDFAST_DIAGNOSE_BLOCK_H
#define HOLDFAST_DIAGNOSE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

#include "diagnose/event.h"

struct block {
	size_t	begin;		/* offset of the first line of the chain */
	size_t	frame;		/* ... of the innermost frame, SIZE_MAX none */
	bool	traceback;	/* a traceback or frames stand before the line */
	bool	ignored;	/* "Exception ignored in", "--- Logging error ---" */
	bool	saving;		/* frames of saving a checkpoint */
	bool	loading;	/* frames of loading one */
	int	depth;		/* exceptions of the chain before this one */
};

/* Remembers lines that were looked at, of any stream: events that stand close to
 * each other look back over the same ones.  The styles of a stream must stay what
 * they were.  NULL without memory. */
struct block_lines;
struct block_lines *block_lines_new(void);
void	block_lines_free(struct block_lines *);

void	block_find(struct block_lines *, const struct stream *,
	    const struct line_styles *, const struct event *, struct block *out);

/* False for a mark that is only quoted: no frame comes behind it. */
bool	block_is_real(const struct stream *, const struct line_styles *,
	    const struct event *mark);
/* An exception at the end of a traceback that no rule knows: looks forward from
 * the "Traceback" mark for the first line of the same writer that is no frame
 * and begins with a class name.  False when there is none. */
bool	block_exception(const struct stream *, const struct line_styles *,
	    const struct event *mark, struct piece *out, struct line *line);

#endif
