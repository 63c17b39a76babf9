/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_seen.h - files that were met before, under whatever name.
 */
#ifndef HOLDFAST_DIAGNOSE_FEED_SEEN_H
#define HOLDFAST_DIAGNOSE_FEED_SEEN_H

#include <stdbool.h>
#include <sys/stat.h>

#include "diagnose/feed.h"

/* True when it was met before; remembers it otherwise.  When memory is short,
 * everything is new. */
bool	feed_seen(struct feed *, const struct stat *);
void	feed_seen_free(struct feed *);

#endif
