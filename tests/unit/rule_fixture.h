/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rule_fixture.h - sets of rules for tests of diagnose/; the caller frees them.  A
 * set that cannot be made fails the test.
 */
#ifndef HOLDFAST_TESTS_RULE_FIXTURE_H
#define HOLDFAST_TESTS_RULE_FIXTURE_H

#include "diagnose/rule.h"

/* A row of reasons.yaml, as a string. */
#define REASON(name, cat, act) \
    "- {reason: " name ", category: " cat ", what: w, action: " act \
    ", advice: do}\n"

/* A finished set of the rules of a YAML text, and of nothing else. */
struct rule_set *rule_fixture_of(const char *name, const char *yaml);
/* ... of the shipped rules. */
struct rule_set *rule_fixture_shipped(void);

#endif
