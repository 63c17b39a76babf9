/* SPDX-License-Identifier: Apache-2.0 */
/* run_find.h - finds the run a verb is about: by name, or the only or newest one. */
#ifndef HOLDFAST_SUPERVISOR_RUN_FIND_H
#define HOLDFAST_SUPERVISOR_RUN_FIND_H

#include "common/err.h"

/* The run directory for NAME; without a name the one whose status changed last.
 * The caller frees *dir. */
int	run_find(const char *state_dir, const char *name, char **dir,
	    struct err *err);

#endif
