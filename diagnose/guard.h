/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h - lines that mention a failure without being one. */
#ifndef HOLDFAST_DIAGNOSE_GUARD_H
#define HOLDFAST_DIAGNOSE_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "diagnose/line.h"

/* What stands before a match makes it a guess: "might be caused by ...". */
bool	guard_is_guess(const char *before, size_t len);
/* Source that a traceback shows: "    raise ValueError(...)". */
bool	guard_is_source(const struct line *);

#endif
