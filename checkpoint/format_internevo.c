/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_internevo.c - InternEvo: STEP/ or snapshot/0|1/ with model_tpT_ppP.pt,
 * optimizer_*.pt, context.pt, and the flag STEP.step written last.  Source:
 * internlm/checkpoint/checkpoint_manager.py.
 *
 * Snapshots are overwritten in place and keep the flag of the former one: there the
 * flag must be newer than every other file.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/file.h"
#include "checkpoint/folder.h"
#include "checkpoint/grid.h"
#include "checkpoint/peek.h"
#include "checkpoint/trouble.h"

#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE
#define SLACK_NS	10000000000	/* a copy does not keep the order of times */

static bool
recognise(const struct item *it)
{
	bool model = folder_find(it, "model_tp", ".pt");
	bool others = folder_find(it, "topo_tp", ".json") ||
	    folder_find(it, "", ".step");

	return it->is_dir && (model ? others || names_has(&it->names,
	    "context.pt") : others && folder_find(it, "optimizer_", ".pt"));
}

static int64_t
mtime_of(const struct item *it, const char *name)
{
	char *path = file_join(it->path, name);
	struct stat st;
	int64_t t = 0;

	if (path != NULL && stat(path, &st) == 0)
		t = file_mtime_ns(&st);
	else if (path != NULL)
		trouble_note(path);
	free(path);
	return t;
}

static bool
is_snapshot(const struct item *it)
{
	const char *p = strstr(it->path, "snapshot/");

	return p != NULL && strchr(p + 9, '/') == NULL;
}

/* All ranks' files; what the model's grid has, the topology's has too. */
static void
check_ranks(const struct item *it, struct report *r)
{
	static const struct grid grids[] = {
		{ .pattern = "model_tp#_pp#.pt" },
		{ .pattern = "model_tp#_pp#_dp#.pt" },
		{ .pattern = "model_tp#_wp#_pp#.pt" },
		{ .pattern = "topo_tp#_pp#.json" },
		{ .pattern = "topo_tp#_pp#_dp#.json" },
		{ .pattern = "topo_tp#_wp#_pp#.json" },
		{ .pattern = "optimizer_tp#_pp#_zo#.pt" },
		{ .pattern = "optimizer_wp#_pp#_zo#.pt" },
		{ .pattern = NULL }
	};
	size_t i, n[3];

	for (i = 0; grids[i].pattern != NULL; i++) {
		size_t got = grid_check(&it->names, &grids[i], r);

		if (i < 3)
			n[i] = got;
		else if (i < 6 && got > 0 && got < n[i - 3])
			report_say(r, INCOMPLETE, "%zu topologies for %zu models",
			    got, n[i - 3]);
	}
	if (!folder_find(it, "model_tp", ".pt"))
		report_say(r, INCOMPLETE, "no model file");
	if (!folder_find(it, "optimizer_", ".pt"))
		report_say(r, INCOMPLETE, "no optimizer file");
}

/* context.pt tells the step that the flag has in its name. */
static void
check_context(const struct item *it, int64_t step, struct report *r)
{
	struct peek peek;
	int64_t inside;

	if (!names_has(&it->names, "context.pt")) {
		report_say(r, INCOMPLETE, "context.pt is missing");
		return;
	}
	if (peek_open(&peek, it->path, "context.pt") == 0) {
		inside = peek_int(&peek, "step_count", REPORT_UNKNOWN);
		if (inside != REPORT_UNKNOWN && inside != step)
			report_say(r, INCOMPLETE, "context.pt is of step %" PRId64
			    ", the flag of %" PRId64, inside, step);
	}
	peek_fini(&peek);
}

static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	const char *flag = NULL;
	int64_t step;
	size_t i, flags = 0;

	for (i = 0; i < it->names.n; i++)
		if (name_ends_with(it->names.list[i], ".step")) {
			flag = it->names.list[i];
			flags++;
		}
	folder_add_files(it, NULL, parts, r);
	check_ranks(it, r);
	if (flags == 0) {
		report_say(r, INCOMPLETE, "no .step flag: the save did not finish");
		return;
	}
	if (flags > 1) {
		report_say(r, INCOMPLETE, "flags of several steps: %s and others",
		    flag);
		return;
	}
	step = name_step(flag);
	r->step = step;
	check_context(it, step, r);
	if (!is_snapshot(it)) {
		if (name_folder_step(it->name) != step)
			report_say(r, INCOMPLETE, "%s in the folder of another step",
			    flag);
		return;
	}
	for (i = 0; i < it->names.n; i++)
		if (mtime_of(it, it->names.list[i]) - SLACK_NS >
		    mtime_of(it, flag))
			report_say(r, INCOMPLETE, "%s is newer than %s: the snapshot "
			    "was being overwritten", it->names.list[i], flag);
}

/* Numbered folders, and the snapshots one level deeper. */
static int
enumerate(const char *dir, const struct names *in, struct names *out)
{
	return folder_enumerate(dir, "snapshot", NULL, in, out);
}

const struct format format_internevo = {
	.name = "internevo",
	.recognise = recognise,
	.complete = complete,
	.enumerate = enumerate,
	.marked = true,
	.same_files = true
};
