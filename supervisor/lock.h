/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.h - one live run per NAME.
 *
 * The lock is the file DIR/lock, made with O_EXCL, that holds {host, boot_id,
 * pid, starttime} of the run parent.  On the same host it is judged by pid and
 * start time; on another host it is respected until its lease (the file's age
 * against the file system's own clock) has expired and take-over was asked
 * for, since its ranks may live.
 */
#ifndef HOLDFAST_SUPERVISOR_LOCK_H
#define HOLDFAST_SUPERVISOR_LOCK_H

#include <stdbool.h>

#include "common/err.h"

/* The supervisor renews the lease at this interval; it expires after the other. */
#define LOCK_RENEW_MS	10000
#define LOCK_LEASE_MS	60000

/* Takes the lock of a run directory for this process.  ERR_BUSY names the
 * holder; *freed is set when the lock of a dead holder was replaced. */
int	lock_acquire(const char *dir, bool take_over, bool *freed,
	    struct err *err);
/* Touches it. */
int	lock_renew(const char *dir, struct err *err);
/* Removes it if this process holds it. */
void	lock_release(const char *dir);

#endif
