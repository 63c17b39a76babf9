/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_fixture.h - a server of snapshots in a process of its own, and clients that
 * save to it.
 */
#ifndef HOLDFAST_TESTS_SNAPSHOT_FIXTURE_H
#define HOLDFAST_TESTS_SNAPSHOT_FIXTURE_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "checkpoint/holdfast-checkpoint.h"
#include "checkpoint/snapshot_server.h"

#define MB	((size_t)1 << 20)
#define SLOW	(4u << 20)	/* bytes a second */

extern const char *snapshot_dir, *snapshot_socket;
extern char snapshot_why[300];		/* of the last call that failed */
extern float *snapshot_data;		/* 16 MB */

#define WHY		snapshot_why, sizeof(snapshot_why)
#define OK(call)	ck_assert_msg((call) == 0, "%s", snapshot_why)
#define IS(code, call)	ck_assert_int_eq(call, HOLDFAST_CHECKPOINT_##code)

/* New folders; for tcase_add_checked_fixture(). */
void	snapshot_set_up(void);
/* Starts a server: how fast it may write, how large files may get. */
pid_t	snapshot_start(uint64_t bytes_per_s, rlim_t files);
/* Ends it as when a run ends: what is committed is written. */
void	snapshot_stop(pid_t);
void	snapshot_kill(pid_t);
/* The directory that the server writes to; for its operations. */
const char *snapshot_target(void *arg);
void	snapshot_told(void *arg, const struct snapshot_done *);

struct holdfast_checkpoint_client *snapshot_open(void);
/* A snapshot of mb MB, begun and filled; and committed. */
void	snapshot_fill(struct holdfast_checkpoint_client *, int64_t step, int rank,
	    int world, size_t mb);
void	snapshot_save(struct holdfast_checkpoint_client *, int64_t step, int rank,
	    int world, size_t mb);

/* The checkpoint of that name in the directory is whole, and of this step. */
void	snapshot_is_valid(const char *name, int64_t step);
bool	snapshot_is_there(const char *name);

#endif
