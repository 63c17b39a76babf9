/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_json.h - logs that are one JSON object per line, made into lines of text.
 */
#ifndef HOLDFAST_DIAGNOSE_FEED_JSON_H
#define HOLDFAST_DIAGNOSE_FEED_JSON_H

#include "diagnose/feed.h"
#include "diagnose/feed_spool.h"

/* True when enough of the first lines are records of a logger or a log driver: objects
 * with a text, and a time, a level or the name of an output in them. */
bool	feed_json_is_log(const struct stream *);

/* Appends each record as lines that begin with its time, node, rank and level, and
 * other lines as they are.  Marks in `marks` which lines of the stream those are;
 * see stream_mark(). */
int	feed_json_decode(const struct stream *, struct feed_spool *,
	    struct stream *marks, struct err *err);

#endif
