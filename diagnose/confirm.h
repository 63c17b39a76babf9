/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confirm.h - records that confirm what ranks say, and those that cannot belong to
 * this job.
 */
#ifndef HOLDFAST_DIAGNOSE_CONFIRM_H
#define HOLDFAST_DIAGNOSE_CONFIRM_H

#include "diagnose/cause.h"

/* Takes out what is too old or too new, and what completed steps refute. */
void	confirm_drop(struct case_file *);
/* True when steps were completed in a later part of the event's rotated log. */
bool	confirm_got_over_later(const struct case_file *, const struct event *);
/* Joins kernel records with the ends and errors of ranks; completes ranks and
 * nodes on both sides. */
int	confirm_join(struct case_file *, struct err *err);

#endif
