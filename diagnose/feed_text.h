/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_text.h - is it text, and in which encoding.
 */
#ifndef HOLDFAST_DIAGNOSE_FEED_TEXT_H
#define HOLDFAST_DIAGNOSE_FEED_TEXT_H

#include "diagnose/feed.h"
#include "diagnose/feed_spool.h"

enum feed_encoding {
	FEED_BYTES,	/* UTF-8 and all supersets of ASCII: taken as they are */
	FEED_UTF16_LE,
	FEED_UTF16_BE
};

/* *mark is the length of the byte order mark at the start. */
enum feed_encoding feed_text_encoding(const struct stream *, size_t *mark);

/* Appends UTF-16, from an offset to the end, as UTF-8; what is no character
 * becomes U+FFFD. */
int	feed_text_convert(const struct stream *, size_t from,
	    enum feed_encoding, struct feed_spool *, struct err *err);

/* True when neither the beginning nor the end of it is text. */
bool	feed_text_is_binary(const struct stream *);

#endif
