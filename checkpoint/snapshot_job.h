/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_job.h - calls that block, each in a thread of its own, and the news of
 * their ends in the loop.
 */
#ifndef HOLDFAST_CHECKPOINT_SNAPSHOT_JOB_H
#define HOLDFAST_CHECKPOINT_SNAPSHOT_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/loop.h"

struct snapshot_jobs;

int	snapshot_jobs_new(struct loop *, struct snapshot_jobs **out,
	    struct err *err);
/* work(arg) in a thread, then done(arg) in the loop. */
int	snapshot_jobs_start(struct snapshot_jobs *, void (*work)(void *arg),
	    void (*done)(void *arg), void *arg, struct err *err);
/* Waits for wait_ms for the threads, calling done for those that end.  False when
 * one did not: then it keeps its memory, and what it works on must stay. */
bool	snapshot_jobs_free(struct snapshot_jobs *, int64_t wait_ms);

#endif
