/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - from the chosen candidate to the verdict.
 */
#ifndef HOLDFAST_DIAGNOSE_REPORT_H
#define HOLDFAST_DIAGNOSE_REPORT_H

#include "diagnose/cause.h"
#include "diagnose/verdict.h"

/* Fills a zeroed verdict; no candidate: nothing went wrong, or nothing is known. */
void	report_fill(struct verdict *, const struct case_file *,
	    const struct cause *);

#endif
