/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_name.h - what the name of a file says: is it a log, or a part of one.
 */
#ifndef HOLDFAST_DIAGNOSE_FEED_NAME_H
#define HOLDFAST_DIAGNOSE_FEED_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of a log that was rotated: app.log.2.gz, messages-20260131, x.out.old. */
struct feed_part {
	size_t	stem;		/* bytes of the name that all parts share */
	int64_t	when;		/* of one stem, a smaller one is older */
};
/* ... of the part that is written to; of one with a number, this less the
 * number and one. */
#define FEED_PART_CURRENT	INT64_C(1000000000000000)
void	feed_name_part(const char *base, struct feed_part *out);

/* Order of the entries of a directory: numbers by value, parts oldest first. */
int	feed_name_compare(const char *a, const char *b);

/* False for weights, code, archives and the like. */
bool	feed_name_is_log(const char *base);

const char *feed_name_base(const char *path);

#endif
