/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_name.h - what the name of a file says.
 */
#ifndef HOLDFAST_DIAGNOSE_FEED_NAME_H
#define HOLDFAST_DIAGNOSE_FEED_NAME_H

#include <stdbool.h>

#include "diagnose/feed.h"

/* Sets kind, rank and node of a stream from its name. */
void	feed_name_describe(struct stream *);

/* False for weights, code, archives and the like. */
bool	feed_name_is_log(const char *base);

#endif
