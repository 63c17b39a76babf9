/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_checkpoint.c - holdfast checkpoint list|verify|latest|...: which saved states are
 * whole, which one to go on from, and moving others aside.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/clock.h"
#include "common/json.h"
#include "checkpoint/action.h"
#include "checkpoint/print.h"
#include "checkpoint/quarantine.h"
#include "checkpoint/verbs.h"

/* A folder without a marker of its own is whole when it was left alone so long. */
#define STAGE_QUIET_MS	1000
/* A save takes minutes; retention is in no hurry. */
#define PRUNE_QUIET_MS	300000

enum { ACTION_LIST, ACTION_VERIFY, ACTION_LATEST, ACTION_QUARANTINE, ACTION_STAGE,
    ACTION_SELECT, ACTION_PRUNE };

#define OFFSET(field)	offsetof(struct action_values, field)

static const struct opt options[] = {
	{ "json", 0, OPT_FLAG, OFFSET(json), NULL,
	    "print one JSON object per line", "false" },
	{ "structure", 0, OPT_FLAG, OFFSET(structure), NULL,
	    "verify, latest, select: structure only, do not read the contents",
	    "false",
	    .cli_only = true },
	{ "full", 0, OPT_FLAG, OFFSET(full), NULL,
	    "list: read the contents too; latest: despite a manifest",
	    "false", .cli_only = true },
	{ "jobs", 'j', OPT_INT, OFFSET(jobs), "N",
	    "files checked at a time; 0: one a core, at most 4", "0", NULL, 0,
	    CHECKPOINT_THREADS_MAX, .cli_only = true },
	{ "before-step", 0, OPT_INT, OFFSET(before_step), "N",
	    "latest: only checkpoints of an earlier step than N", NULL, NULL, 0,
	    1ll << 53, .cli_only = true },
	{ "quiet-for", 0, OPT_DURATION, OFFSET(quiet_ms), "TIME",
	    "leave out what changed so lately (0; stage: 1s, prune: 5m)",
	    NULL, .cli_only = true },
	{ "quarantine", 0, OPT_CHOICE, OFFSET(quarantine), "WHEN",
	    "latest: move newer broken ones aside: auto or never", "never",
	    "auto never", .cli_only = true },
	{ "write-manifest", 0, OPT_FLAG, OFFSET(write_manifest), NULL,
	    "latest: write the manifest of what was read and found valid", "false",
	    .cli_only = true },
	{ "staged", 0, OPT_TEXT, OFFSET(staged), "FROM",
	    "latest: look here too, where checkpoints are staged", NULL,
	    .cli_only = true },
	{ "list", 0, OPT_FLAG, OFFSET(list), NULL,
	    "quarantine: show what was moved out of DIR", "false",
	    .cli_only = true },
	{ "undo", 0, OPT_FLAG, OFFSET(undo), NULL,
	    "quarantine: move PATH back; select: undo the last one", "false",
	    .cli_only = true },
	{ "force", 0, OPT_FLAG, OFFSET(force), NULL,
	    "select: take a step that is not valid; undo though a trainer went on",
	    "false", .cli_only = true },
	{ "dry-run", 'n', OPT_FLAG, OFFSET(dry_run), NULL,
	    "select, prune: say what would be done, change nothing", "false",
	    .cli_only = true },
	{ "keep-last", 0, OPT_INT, OFFSET(keep_last), "K",
	    "prune: keep the newest K valid steps, at least 2", NULL, NULL, 0,
	    1000000, .cli_only = true },
	{ "keep-every", 0, OPT_INT, OFFSET(keep_every), "N",
	    "prune: keep the first valid step of every N", "0", NULL, 0,
	    1ll << 53, .cli_only = true },
	{ "keep-newer-than", 0, OPT_DURATION, OFFSET(keep_newer_ms), "TIME",
	    "prune: keep what is younger than TIME", NULL, .cli_only = true },
	{ "before-spike", 0, OPT_TEXT, OFFSET(spikes), "N,...",
	    "prune: keep the last valid step before each step N", NULL,
	    .cli_only = true },
	{ "xxhsum", 0, OPT_FLAG, OFFSET(xxhsum), NULL,
	    "manifest: print what is there, for xxhsum -H2 -c", "false",
	    .cli_only = true },
	{ "once", 0, OPT_FLAG, OFFSET(once), NULL,
	    "stage: copy what is complete now, then end", "false",
	    .cli_only = true },
	{ "drop-unfinished", 0, OPT_FLAG, OFFSET(drop_unfinished), NULL,
	    "stage: first remove from FROM what no trainer will finish", "false",
	    .cli_only = true },
	{ "end-with-input", 0, OPT_FLAG, OFFSET(end_with_input), NULL,
	    "stage: end when standard input does, after the last copy", "false",
	    .cli_only = true },
	{ "bandwidth", 0, OPT_SIZE, OFFSET(bandwidth), "SIZE",
	    "stage: bytes a second at most", "0", .cli_only = true },
	{ "room", 0, OPT_SIZE, OFFSET(room), "SIZE",
	    "stage: what FROM may hold; 0: what its file system can", "0",
	    .cli_only = true },
	{ "keep", 0, OPT_INT, OFFSET(keep), "N",
	    "stage: durable checkpoints that stay in FROM", "1", NULL, 0, 1000,
	    .cli_only = true },
	{ "nodes", 0, OPT_INT, OFFSET(nodes), "N",
	    "stage: a checkpoint has parts on N nodes, each with its FROM", "1",
	    NULL, 1, 100000, .cli_only = true },
	{ "node", 0, OPT_TEXT, OFFSET(node), "NAME",
	    "stage: the name of this one, unless its host name is unique", NULL,
	    .cli_only = true },
	{ "link", 0, OPT_TEXT, OFFSET(link), "PATH",
	    "stage: the link to FROM, or to TO while FROM has no room", NULL,
	    .cli_only = true },
	{ "socket", 0, OPT_TEXT, OFFSET(socket), "PATH",
	    "stage: take ranks' snapshots there; latest: wait for them", NULL,
	    .cli_only = true },
	{ NULL }
};

static const char *const actions[] = { "list", "verify", "latest",
    "quarantine", "stage", "select", "prune", "manifest", NULL };

static int (*const handlers[])(const struct verb *,
    const struct action_values *, int, char **) = {
	action_list, action_verify, action_latest, action_quarantine,
	action_stage, action_select, action_prune, action_manifest
};

int
action_fail_memory(const struct verb *v)
{
	struct err err = {0};

	err_memory(&err);
	return verb_fail(v, &err);
}

/* Which options go with which action; the others would be without effect. */
static int
check_options(const struct verb *v, const struct action_values *o, int action)
{
	const struct {
		bool		 given;
		const char	*name;
		const char	*with;	/* actions it goes with */
	} rows[] = {
		{ o->structure, "structure", "verify latest select" },
		{ o->full, "full", "list latest" },
		{ o->before_step != REPORT_UNKNOWN, "before-step", "latest" },
		{ o->quiet_ms != -1, "quiet-for", "latest stage prune quarantine" },
		{ strcmp(o->quarantine, "never") != 0, "quarantine", "latest" },
		{ o->write_manifest, "write-manifest", "latest" },
		{ o->staged != NULL, "staged", "latest" },
		{ o->list, "list", "quarantine" },
		{ o->undo, "undo", "quarantine select" },
		{ o->force, "force", "select" },
		{ o->dry_run, "dry-run", "select prune" },
		{ o->keep_last != -1, "keep-last", "prune" },
		{ o->keep_every != 0, "keep-every", "prune" },
		{ o->keep_newer_ms != -1, "keep-newer-than", "prune" },
		{ o->spikes != NULL, "before-spike", "prune" },
		{ o->xxhsum, "xxhsum", "manifest" },
		{ o->once, "once", "stage" },
		{ o->drop_unfinished, "drop-unfinished", "stage" },
		{ o->end_with_input, "end-with-input", "stage" },
		{ o->bandwidth != 0, "bandwidth", "stage" },
		{ o->room != 0, "room", "stage" },
		{ o->keep != 1, "keep", "stage" },
		{ o->nodes != 1, "nodes", "stage" },
		{ o->node != NULL, "node", "stage" },
		{ o->link != NULL, "link", "stage" },
		{ o->socket != NULL, "socket", "latest stage" }
	};
	struct err err = {0};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].given &&
		    strstr(rows[i].with, actions[action]) == NULL) {
			err_set(&err, ERR_USAGE, "--%s goes with %s, not with %s",
			    rows[i].name, rows[i].with, actions[action]);
			return verb_fail(v, &err);
		}
	return 0;
}

static int
run(const struct verb *v, int argc, char **argv)
{
	struct action_values o = { .before_step = REPORT_UNKNOWN, .quiet_ms = -1,
	    .keep_last = -1, .keep_newer_ms = -1 };
	struct err err = {0};
	int first, action;
	bool done;

	if (verb_parse(v, &o, argc, argv, &first, &done) == -1)
		return EXIT_USAGE;
	if (done)
		return EXIT_OK;
	if ((action = verb_action(v, argc, argv, first)) == -1)
		return EXIT_USAGE;
	if (check_options(v, &o, action) != 0)
		return EXIT_USAGE;
	if (first + 1 >= argc) {
		err_set(&err, ERR_USAGE, "%s: which path?", actions[action]);
		return verb_fail(v, &err);
	}
	if ((action == ACTION_LIST || action == ACTION_LATEST ||
	    action == ACTION_PRUNE) && first + 2 < argc) {
		err_set(&err, ERR_USAGE, "%s takes one directory",
		    actions[action]);
		return verb_fail(v, &err);
	}
	if (o.quiet_ms == -1)
		o.quiet_ms = action == ACTION_STAGE ? STAGE_QUIET_MS :
		    action == ACTION_PRUNE ? PRUNE_QUIET_MS : 0;
	return handlers[action](v, &o, argc - first - 1, argv + first + 1);
}

const struct verb verb_checkpoint = {
	.name = "checkpoint",
	.summary = "say which checkpoints are valid, and which is the newest one",
	.operands = "PATH...",
	.actions = actions,
	.opts = options,
	.run = run
};
