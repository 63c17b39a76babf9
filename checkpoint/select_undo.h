/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select_undo.h - what select_apply.c and select_undo.c share: where an entry keeps what.
 */
#ifndef HOLDFAST_CHECKPOINT_SELECT_UNDO_H
#define HOLDFAST_CHECKPOINT_SELECT_UNDO_H

#define SELECT_JOURNAL	"select.json"

/* entry/NAME<suffix> with NAME's slashes as '%'; to be freed. */
char	*select_kept(const char *entry, const char *name, const char *suffix);

/* The highest number among the entries of an aside folder, 0 when there is none. */
int	select_last(const char *aside);

#endif
