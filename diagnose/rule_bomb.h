/* SPDX-License-Identifier: Apache-2.0 */
/* rule_bomb.h - texts that make a pattern backtrack as much as it can. */
#ifndef HOLDFAST_DIAGNOSE_RULE_BOMB_H
#define HOLDFAST_DIAGNOSE_RULE_BOMB_H

#include <stdbool.h>

#include "common/buf.h"
#include "diagnose/match.h"

/* True when the pattern gives up on a long line made for it.  The line (without
 * its tail) is left in `text`. */
bool	rule_bomb_explodes(struct match *, const char *pattern,
	    struct buf *text);

#endif
