/* SPDX-License-Identifier: Apache-2.0 */
/* rule_load.h - rule sets ready for use, and checks of the rules in them. */
#ifndef HOLDFAST_DIAGNOSE_RULE_LOAD_H
#define HOLDFAST_DIAGNOSE_RULE_LOAD_H

#include "common/err.h"
#include "diagnose/rule.h"

/* The shipped rules, and those of DIR if it is not NULL; a DIR with its own
 * reasons.yaml is a complete store and stands alone.  *problems counts what was
 * told to `problem`. */
int	rule_load(const char *dir, rule_problem_fn problem, void *arg,
	    struct rule_set **out, int *problems, struct err *err);

/* Looks for mistakes a loader does not see; returns how many it told. */
int	rule_lint(struct rule_set *, rule_problem_fn problem, void *arg);
/* Runs the samples: an example must be won by its rule against the whole set,
 * a counterexample must not match it.  Returns how many failed; *samples
 * counts all. */
int	rule_test(struct rule_set *, rule_problem_fn problem, void *arg,
	    int *samples);

#endif
