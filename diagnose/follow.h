/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow.h - tells what goes wrong in logs while they are written.
 */
#ifndef HOLDFAST_DIAGNOSE_FOLLOW_H
#define HOLDFAST_DIAGNOSE_FOLLOW_H

#include "diagnose/causes.h"

struct follow_options {
	struct rule_set	*set;
	const struct card_style *style;
	bool		 json;		/* findings as lines of JSON */
	bool		 whole;		/* quotes are not cut */
};

/* Prints findings to standard output as they appear, from the beginning of the
 * files on, and what it waits for to standard error.  Ends on SIGINT or SIGTERM,
 * when the job was ended and all files are quiet since, or when standard input
 * ("-") ends; then diagnoses what was read into a zeroed verdict, and findings when
 * extra wants them.  Names in them are those of the feed, which the caller frees. */
int	follow_run(const struct follow_options *, char *const *paths,
	    size_t count, const struct causes_extra *, struct feed *,
	    struct verdict *, struct err *err);

#endif
