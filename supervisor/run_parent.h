/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_parent.h - the foreground process of a run: shows what happens, forwards
 * signals, respawns a crashed supervisor, returns its exit status.
 */
#ifndef HOLDFAST_SUPERVISOR_RUN_PARENT_H
#define HOLDFAST_SUPERVISOR_RUN_PARENT_H

#include "common/err.h"
#include "supervisor/run_spec.h"

/* Runs until the run has ended; the exit status, or -1 with err when no
 * supervisor can be had.  first_signal, if not 0, is forwarded as soon as there
 * is one. */
int	run_parent(const struct run_spec *, int first_signal, struct err *err);

/* Connects to a living supervisor of the run; -1 when there is none. */
int	run_parent_connect(const struct run_spec *, struct err *err);

#endif
