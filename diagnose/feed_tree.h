/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_tree.h - the logs of a directory.
 */
#ifndef HOLDFAST_DIAGNOSE_FEED_TREE_H
#define HOLDFAST_DIAGNOSE_FEED_TREE_H

#include "diagnose/feed.h"

/* Searches a directory to the bottom.  What cannot be read in it is listed as
 * missing. */
int	feed_tree_add(struct feed *, const char *dir, struct err *err);

#endif
