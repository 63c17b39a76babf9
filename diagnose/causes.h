/* SPDX-License-Identifier: Apache-2.0 */
/*
 * causes.h - from the events of all streams to the one that caused the rest.
 */
#ifndef HOLDFAST_DIAGNOSE_CAUSES_H
#define HOLDFAST_DIAGNOSE_CAUSES_H

#include "common/err.h"
#include "diagnose/feed.h"
#include "diagnose/findings.h"
#include "diagnose/rule.h"
#include "diagnose/verdict.h"

/* What a caller may want besides the verdict. */
struct causes_extra {
	struct findings	*findings;	/* filled when it is not NULL */
	/* Told of the bytes read so far, and of all, when it is not NULL. */
	void		(*progress)(uint64_t done, uint64_t all, void *arg);
	void		*arg;
};

/* Reads all streams of the feed with the rules of a finished set; fills a
 * zeroed verdict, which the caller frees with verdict_fini(). */
int	causes_find(struct rule_set *, const struct feed *,
	    struct verdict *out, struct err *err);
int	causes_find_all(struct rule_set *, const struct feed *,
	    const struct causes_extra *, struct verdict *out, struct err *err);

#endif
