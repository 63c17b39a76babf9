/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digits.h - whether a pattern can tell one digit from another.
 */
#ifndef HOLDFAST_DIAGNOSE_DIGITS_H
#define HOLDFAST_DIAGNOSE_DIGITS_H

#include <stdbool.h>

/* True when a PCRE2 pattern matches a text exactly if it matches the text with
 * any digits put in place of its digits, one for one: then lines that differ in
 * numbers of the same width need be matched once only.  False in doubt. */
bool	digits_are_alike(const char *pattern);

#endif
