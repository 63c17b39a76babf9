/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trouble.h - what the storage would not give, noted where the call failed.
 *
 * Looks at a path answer yes or no ("has it that file?", "is it a folder?"), and a "no"
 * that is an EIO makes a sound checkpoint look incomplete, or another format.  So each
 * such call notes its errno here, for its thread, and who judges a checkpoint or a file
 * asks at the end: with a note there is no other verdict than "unreadable".
 */
#ifndef HOLDFAST_CHECKPOINT_TROUBLE_H
#define HOLDFAST_CHECKPOINT_TROUBLE_H

#include <stdbool.h>

#include "common/err.h"
#include "checkpoint/report.h"

/* The errno tells of the storage, not that nothing of that name is there. */
bool	trouble_is(int errnum);

/* Forgets what this thread noted. */
void	trouble_begin(void);
/* Notes errno, which stays as it is, unless it says that path is not there.  The first
 * note stays. */
void	trouble_note(const char *path);
/* The last note was about what is no part of any checkpoint. */
void	trouble_take_back(void);

/* True when there was trouble: the report then says that alone. */
bool	trouble_end(struct report *);
/* The same for an error; -1 when there was trouble, otherwise 0. */
int	trouble_error(struct err *err);

#endif
