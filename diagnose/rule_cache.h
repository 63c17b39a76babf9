/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rule_cache.h - remembers how the rules of a site are searched for.
 *
 * Literals and plan of a thousand rules take tens of milliseconds to work out.
 * They are kept in a file per rule folder below $XDG_CACHE_HOME/holdfast (or
 * ~/.cache/holdfast), which may be removed at any time.
 */
#ifndef HOLDFAST_DIAGNOSE_RULE_CACHE_H
#define HOLDFAST_DIAGNOSE_RULE_CACHE_H

#include <stdbool.h>

#include "diagnose/rule.h"

/* Gives the rules that were not prepared at build time what was stored for them.
 * False when there is nothing for exactly these rules. */
bool	rule_cache_load(struct rule_set *, const char *dir);
/* Stores what a finished set worked out; does nothing when that is not possible,
 * or not worth it. */
void	rule_cache_store(const struct rule_set *, const char *dir);

#endif
