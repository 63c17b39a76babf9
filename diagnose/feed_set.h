/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_set.h - what the names of several files say together.
 */
#ifndef HOLDFAST_DIAGNOSE_FEED_SET_H
#define HOLDFAST_DIAGNOSE_FEED_SET_H

#include "diagnose/feed.h"

/* Sets ranks that are counted from 0 in names like log_3.txt, and local ranks when
 * all are of one node; and which stream goes on in the next one. */
int	feed_set_compare(struct feed *, struct err *err);

#endif
