/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confidence.h - how sure a verdict is.
 */
#ifndef HOLDFAST_DIAGNOSE_CONFIDENCE_H
#define HOLDFAST_DIAGNOSE_CONFIDENCE_H

#include "diagnose/cause.h"
#include "diagnose/verdict.h"

double	confidence_of(const struct case_file *, const struct cause *,
	    const struct verdict *);
/* That nothing went wrong: more sure when steps were completed. */
double	confidence_of_none(const struct case_file *);

#endif
