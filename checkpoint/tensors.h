/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensors.h - names and counts the values that are not finite, once a fast pass
 * has seen that a storage or tensor holds some.
 */
#ifndef HOLDFAST_CHECKPOINT_TENSORS_H
#define HOLDFAST_CHECKPOINT_TENSORS_H

#include <stdint.h>

#include "checkpoint/report.h"
#include "checkpoint/scan.h"

#define TENSORS_NAMED_MAX	3	/* tensors a reason names */

/* Collects findings for one report. */
struct tensors {
	uint64_t	n;		/* tensors that are not finite */
	uint64_t	values;
	char		text[640];
};

/* Takes the counts of one tensor of `total` values. */
void	tensors_add(struct tensors *, const char *name, uint64_t total,
	    const struct scan_counts *);
/* Says "non_finite" when there were any. */
void	tensors_report(const struct tensors *, struct report *);

#endif
