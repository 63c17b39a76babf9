/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h - the append-only record of a run (holdfast-journal(5)).
 *
 * One JSON object per line: {"time","time_ns","seq","type","attempt",...}.  A
 * record is synced before what it announces is done, but a store that hangs or
 * is full holds a decision for at most JOURNAL_WAIT_MS; records then go to a
 * node-local spool as well.
 */
#ifndef HOLDFAST_SUPERVISOR_JOURNAL_H
#define HOLDFAST_SUPERVISOR_JOURNAL_H

#include <cjson/cJSON.h>

#include "common/err.h"
#include "common/loop.h"
#include "common/writer.h"
#include "supervisor/history.h"

#define JOURNAL_WAIT_MS	5000

struct journal;

/* Called for each record as it is written. */
typedef void	(*journal_tap_fn)(const cJSON *record, void *arg);
/* The record is durable, or has waited long enough. */
typedef void	(*journal_done_fn)(void *arg);

/* Reads DIR/journal.jsonl into the history and opens it for appending.  A torn
 * last line (power loss) is cut off; a broken line elsewhere is an error.  Records
 * that wait in the spool are brought in. */
int	journal_open(const char *dir, const char *spool_path, struct loop *,
	    struct writer *, struct history *, struct journal **out,
	    struct err *err);
void	journal_free(struct journal *);
void	journal_tap(struct journal *, journal_tap_fn, void *arg);

/* A record to fill. */
cJSON	*journal_record(const char *type, int attempt);
/* Stamps it, folds it into the history, queues it and frees it.  done may be
 * NULL. */
void	journal_append(struct journal *, cJSON *record, journal_done_fn done,
	    void *arg);

/* Folds a journal without opening it for writing; a missing file leaves the
 * history as it is. */
int	journal_read(const char *path, struct history *, long *good_bytes,
	    struct err *err);

#endif
