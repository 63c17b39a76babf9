/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_path.h - whose output a file holds, as its path says.
 */
#ifndef HOLDFAST_DIAGNOSE_FEED_PATH_H
#define HOLDFAST_DIAGNOSE_FEED_PATH_H

#include "diagnose/feed.h"

/* Sets kind, rank, local rank and node of a stream from its name. */
void	feed_path_describe(struct stream *);

/* The number in names like log_3.txt and job.node07.3.out, which is a rank when it
 * counts from 0; and the host before it, if any (host_len 0). */
struct feed_number {
	size_t	at, len;
	size_t	host_at, host_len;
};
bool	feed_path_number(const char *path, size_t len, struct feed_number *out);

#endif
