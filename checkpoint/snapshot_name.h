/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_name.h - the names of the files that several ranks' snapshots become.
 */
#ifndef HOLDFAST_CHECKPOINT_SNAPSHOT_NAME_H
#define HOLDFAST_CHECKPOINT_SNAPSHOT_NAME_H

#include <stdbool.h>
#include <stdint.h>

#define SNAPSHOT_NAME_MAX	40
#define SNAPSHOT_WORLD_MAX	100000

/* "rank-00001-of-00002.pt": ranks count from 0, and there are `world' of them. */
void	snapshot_name(char out[SNAPSHOT_NAME_MAX], uint32_t rank, uint32_t world);
/* False when the name is none of these. */
bool	snapshot_name_parse(const char *name, uint32_t *rank, uint32_t *world);

#endif
