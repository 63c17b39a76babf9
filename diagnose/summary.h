/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary.h - what a verdict says around its cause: how many ranks only echoed it,
 * which part of the proof tells, how much was looked at.
 */
#ifndef HOLDFAST_DIAGNOSE_SUMMARY_H
#define HOLDFAST_DIAGNOSE_SUMMARY_H

#include "diagnose/cause.h"
#include "diagnose/quote.h"
#include "diagnose/verdict.h"

/* Fills the counts and the proof's details of a verdict that is otherwise filled;
 * w is the chosen candidate, NULL when there is none.  Short of memory it leaves
 * counts out. */
void	summary_fill(struct verdict *, const struct case_file *,
	    const struct cause *w);

/* A candidate that the chosen one explains. */
bool	summary_is_echo(const struct cause *, const struct cause *w);

/* The part of a line that a rule matches; empty when it does not. */
struct quote_span summary_telling(const struct rule *, const char *text,
	    size_t len);

#endif
