/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_name.h - what the name of a file says: is it a log, or a piece of one.
 */
#ifndef HOLDFAST_DIAGNOSE_FEED_NAME_H
#define HOLDFAST_DIAGNOSE_FEED_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of a log that was rotated: app.log.2.gz, messages-20260131, x.out.old. */
struct feed_piece {
	size_t	stem;		/* bytes of the name that all pieces share */
	int64_t	when;		/* of one stem, a smaller one is older */
};
/* ... of the piece that is written to; of one with a number, this less the
 * number and one. */
#define FEED_PIECE_CURRENT	INT64_C(1000000000000000)
void	feed_name_piece(const char *base, struct feed_piece *out);

/* Order of the entries of a directory: numbers by value, pieces oldest first. */
int	feed_name_compare(const char *a, const char *b);

/* False for weights, code, archives and the like. */
bool	feed_name_is_log(const char *base);

const char *feed_name_base(const char *path);

#endif
