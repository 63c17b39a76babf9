/* SPDX-License-Identifier: Apache-2.0 */
/*
 * action_latest.c - holdfast checkpoint latest DIR: the newest valid checkpoint and
 * why newer ones were skipped; on request those are moved aside.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "checkpoint/action.h"
#include "checkpoint/manifest.h"
#include "checkpoint/print.h"
#include "checkpoint/quarantine.h"
#include "checkpoint/snapshot_flush.h"
#include "checkpoint/tracker.h"

#define FLUSH_MS	(10 * 60 * 1000)

/* What is shown of one that was skipped. */
static int
add_skipped(cJSON *array, const struct checkpoint *c, const char *moved_to)
{
	cJSON *json = cJSON_CreateObject();

	if (json == NULL || !cJSON_AddItemToArray(array, json)) {
		cJSON_Delete(json);
		return -1;
	}
	if (json_add_text(json, "path", c->path) == -1 ||
	    json_add_int(json, "step", checkpoint_step(c)) == -1 ||
	    json_add_text(json, "format", checkpoint_format_name(c)) == -1 ||
	    json_add_text(json, "state",
	    holdfast_checkpoint_state_name(c->report.state)) == -1 ||
	    json_add_text(json, "reason", c->report.reason) == -1 ||
	    json_add_text(json, "quarantined", moved_to) == -1 ||
	    cJSON_AddBoolToObject(json, "held", c->held) == NULL)
		return -1;
	return 0;
}

static int
print_latest(const struct checkpoints *cs, long chosen, char *const *moved)
{
	const struct checkpoint *c = chosen >= 0 ? &cs->list[chosen] : NULL;
	size_t n = chosen >= 0 ? (size_t)chosen : cs->n, i;
	cJSON *json = cJSON_CreateObject(), *skipped;

	if (json == NULL ||
	    json_add_text(json, "path", c ? c->path : NULL) == -1 ||
	    json_add_int(json, "step", c ? checkpoint_step(c) : JSON_UNKNOWN)
	    == -1 ||
	    json_add_text(json, "format", c ? checkpoint_format_name(c) : NULL)
	    == -1 ||
	    json_add_text(json, "state", c ?
	    holdfast_checkpoint_state_name(c->report.state) : NULL) == -1 ||
	    (skipped = cJSON_AddArrayToObject(json, "skipped")) == NULL)
		goto fail;
	for (i = 0; i < n; i++)
		if (add_skipped(skipped, &cs->list[i], moved ? moved[i] : NULL)
		    == -1)
			goto fail;
	return print_json_line(json);
fail:
	cJSON_Delete(json);
	return -1;
}

static bool
any_held(const struct checkpoints *cs)
{
	size_t i;

	for (i = 0; i < cs->n; i++)
		if (cs->list[i].held)
			return true;
	return false;
}

static void
show_latest(const struct checkpoints *cs, long chosen, char *const *moved,
    const char *dir)
{
	size_t n = chosen >= 0 ? (size_t)chosen : cs->n, i;

	for (i = 0; i < n; i++) {
		fputs(cs->list[i].held ? "held     " : "skipped  ", stdout);
		print_verdict(&cs->list[i], true);
		if (moved != NULL && moved[i] != NULL) {
			fputs("         moved to ", stdout);
			print_clean(stdout, moved[i]);
			putchar('\n');
		}
	}
	if (chosen >= 0) {
		fputs("latest   ", stdout);
		print_verdict(&cs->list[chosen], true);
	} else {
		fputs("no valid checkpoint in ", stdout);
		print_clean(stdout, dir);
		puts(cs->n == 0 ? ": it holds none" : any_held(cs) ?
		    ": wait for what is held; if no job writes, use --quiet-for 0" :
		    ": all were skipped, for the reasons above");
	}
}

/* Not what may still be written, nor what the storage would not give. */
static bool
may_move(const struct checkpoint *c)
{
	return !c->held && (c->report.state == HOLDFAST_CHECKPOINT_CORRUPT ||
	    c->report.state == HOLDFAST_CHECKPOINT_INCOMPLETE ||
	    c->report.state == HOLDFAST_CHECKPOINT_NON_FINITE);
}

/* The save directory that a checkpoint lies in. */
static const char *
home_of(const struct checkpoint *c, const char *dir, const char *staged)
{
	return staged != NULL && file_inside(staged, c->path) != NULL ?
	    staged : dir;
}

/* With nothing valid to fall back to all stay where they are: an empty directory
 * would make the trainer start from nothing without a word. */
static void
move_broken(const struct verb *v, const struct checkpoints *cs, long chosen,
    const char *dir, const char *staged, char **moved)
{
	const struct checkpoint *good = &cs->list[chosen];
	const char *slash = strrchr(good->path, '/');
	struct err err = {0};
	bool any = false;
	char *keep;
	long i;

	for (i = 0; i < chosen; i++) {
		if (!may_move(&cs->list[i]))
			continue;
		if (quarantine_move(home_of(&cs->list[i], dir, staged),
		    &cs->list[i], &moved[i], &err) == -1)
			verb_fail(v, &err);
		else
			any = true;
	}
	if (!any || (keep = quarantine_dir(dir, &err)) == NULL)
		return;
	if (tracker_repair(dir, slash ? slash + 1 : good->path,
	    checkpoint_step(good), keep, NULL, &err) == -1)
		verb_fail(v, &err);
	free(keep);
}

int
action_latest(const struct verb *v, const struct action_values *o, int n,
    char **paths)
{
	struct latest_options opts = { .before_step = o->before_step,
	    .quiet_ms = o->quiet_ms, .structure_only = o->structure,
	    .full = o->full, .keep_digests = o->write_manifest,
	    .threads = (int)o->jobs };
	struct checkpoints cs = {0};
	struct err err = {0};
	char **moved = NULL;
	struct stat st;
	long chosen = -1;
	size_t i;
	int rc = EXIT_USAGE;

	(void)n;
	/* Without it there is an older one. */
	if (o->socket != NULL && snapshot_flush(o->socket, FLUSH_MS, &err) == -1)
		verb_fail(v, &err);
	/* Before the first save there may be no directory yet: no checkpoint. */
	if (stat(paths[0], &st) == 0 || errno != ENOENT) {
		if ((o->staged != NULL ? checkpoints_find_both(&cs, o->staged,
		    paths[0], opts.threads, &err) : checkpoints_find(&cs,
		    paths[0], opts.threads, &err)) == -1)
			goto fail;
		opts.now_ns = clock_wall_ns(&clock_system);
		if (checkpoints_latest(&cs, &opts, &chosen, &err) == -1)
			goto fail;
	}
	if ((moved = calloc(cs.n + 1, sizeof(*moved))) == NULL) {
		err_memory(&err);
		goto fail;
	}
	if (strcmp(o->quarantine, "auto") == 0 && chosen > 0)
		move_broken(v, &cs, chosen, paths[0], o->staged, moved);
	if (o->write_manifest && chosen >= 0 &&
	    manifest_is_due(&cs.list[chosen]) &&
	    manifest_write(&cs.list[chosen], NULL, NULL, 0, &err) == -1)
		verb_fail(v, &err);
	rc = chosen >= 0 ? EXIT_OK : EXIT_NEGATIVE;
	if (!o->json)
		show_latest(&cs, chosen, moved, paths[0]);
	else if (print_latest(&cs, chosen, moved) == -1)
		rc = action_fail_memory(v);
	goto out;
fail:
	verb_fail(v, &err);
out:
	for (i = 0; moved != NULL && i < cs.n; i++)
		free(moved[i]);
	free(moved);
	checkpoints_fini(&cs);
	return rc;
}
