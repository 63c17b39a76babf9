/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_snapshot.c - what snapshots of several ranks become (holdfast-checkpoint.h): a
 * folder stepNNNNNNNN with a torch.save file of each rank, whose names say how many
 * there are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/folder.h"
#include "checkpoint/snapshot_name.h"

#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE

void
snapshot_name(char out[SNAPSHOT_NAME_MAX], uint32_t rank, uint32_t world)
{
	snprintf(out, SNAPSHOT_NAME_MAX, "rank-%05u-of-%05u.pt", rank, world);
}

bool
snapshot_name_parse(const char *name, uint32_t *rank, uint32_t *world)
{
	char again[SNAPSHOT_NAME_MAX];
	int end = 0;

	if (sscanf(name, "rank-%9u-of-%9u.pt%n", rank, world, &end) != 2 ||
	    end == 0 || *world > SNAPSHOT_WORLD_MAX || *rank >= *world)
		return false;
	/* Nothing behind it, no sign, no space. */
	snapshot_name(again, *rank, *world);
	return strcmp(again, name) == 0;
}

static bool
recognise(const struct item *it)
{
	uint32_t rank, world;
	size_t i;

	for (i = 0; it->is_dir && i < it->names.n; i++)
		if (snapshot_name_parse(it->names.list[i], &rank, &world))
			return true;
	return false;
}

/* The names are sorted, so ranks of one world size follow each other. */
static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	uint32_t rank, world, first_world = 0, next = 0;
	char absent[SNAPSHOT_NAME_MAX];
	size_t i;

	for (i = 0; i < it->names.n; i++) {
		if (!snapshot_name_parse(it->names.list[i], &rank, &world))
			continue;
		if (first_world == 0)
			first_world = world;
		if (world != first_world) {
			report_say(r, INCOMPLETE, "files of %u ranks and of %u",
			    first_world, world);
			return;
		}
		if (rank != next)
			break;
		next++;
		folder_add(it, it->names.list[i], parts);
	}
	if (next < first_world) {
		snapshot_name(absent, next, first_world);
		report_say(r, INCOMPLETE, "%s is missing", absent);
	}
}

const struct format format_snapshot = {
	.name = "snapshot",
	.recognise = recognise,
	.complete = complete,
	.same_step = true,
	.marked = true		/* renamed as a whole */
};
