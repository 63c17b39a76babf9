/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.h - why a rule decided a case, or did not.
 */
#ifndef HOLDFAST_DIAGNOSE_EXPLAIN_H
#define HOLDFAST_DIAGNOSE_EXPLAIN_H

#include "diagnose/causes.h"

struct explain_options {
	const struct card_style *style;
	bool	json;
	bool	whole;		/* quotes are not cut */
};

/* Prints the rule, and for each line of the streams that its pattern matches what
 * became of it.  An empty feed: only the rule. */
int	explain_rule(const struct explain_options *, struct rule_set *,
	    struct rule *, const struct feed *, FILE *, struct err *err);

#endif
