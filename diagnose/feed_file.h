/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_file.h - one file or pipe becomes one stream.
 */
#ifndef HOLDFAST_DIAGNOSE_FEED_FILE_H
#define HOLDFAST_DIAGNOSE_FEED_FILE_H

#include "diagnose/feed.h"

/* Opens path ("-" is standard input) and adds its text under a name.  Binary data
 * is refused where the file was found, and not named by the user. */
int	feed_file_add(struct feed *, const char *path, const char *name,
	    bool found, struct err *err);

#endif
