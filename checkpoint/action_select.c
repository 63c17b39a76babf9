/* SPDX-License-Identifier: Apache-2.0 */
/*
 * action_select.c - holdfast checkpoint select STEP DIR and select --undo DIR: checks the
 * step, has the directory changed, and says what was changed.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/text.h"
#include "checkpoint/action.h"
#include "checkpoint/print.h"
#include "checkpoint/select.h"

#define STEP_MAX	(1ll << 53)
#define SHOWN_MAX	6		/* steps named in an error */

static const char *const kinds[] = {
	[SELECT_TRACKER] = "rewrote", [SELECT_COPY] = "replaced",
	[SELECT_LINK] = "created", [SELECT_MOVE] = "moved"
};

static int
add_change(cJSON *array, const struct select_change *c)
{
	cJSON *json = cJSON_CreateObject();

	if (json == NULL || !cJSON_AddItemToArray(array, json)) {
		cJSON_Delete(json);
		return -1;
	}
	return json_add_text(json, "change", kinds[c->kind]) == -1 ||
	    json_add_text(json, "name", c->name) == -1 ||
	    json_add_text(json, "from", c->from) == -1 ||
	    json_add_text(json, "to", c->to) == -1 ? -1 : 0;
}

static int
print_plan(const struct select_plan *p, const struct action_values *o)
{
	cJSON *json = cJSON_CreateObject(), *array;
	size_t i;

	if (json == NULL || json_add_text(json, "dir", p->dir) == -1 ||
	    json_add_int(json, "step", p->step) == -1 ||
	    json_add_text(json, "name", p->name) == -1 ||
	    cJSON_AddBoolToObject(json, "undo", o->undo) == NULL ||
	    cJSON_AddBoolToObject(json, "dry_run", o->dry_run) == NULL ||
	    json_add_text(json, "aside", p->entry) == -1 ||
	    (array = cJSON_AddArrayToObject(json, "changes")) == NULL)
		goto fail;
	for (i = 0; i < p->n; i++)
		if (add_change(array, &p->list[i]) == -1)
			goto fail;
	if ((array = cJSON_AddArrayToObject(json, "left")) == NULL)
		goto fail;
	for (i = 0; i < p->left.n; i++)
		if (json_add_item(array, p->left.list[i]) == -1)
			goto fail;
	return print_json_line(json);
fail:
	cJSON_Delete(json);
	return -1;
}

static void
show_change(const struct select_change *c, bool undo)
{
	const char *kind = kinds[c->kind];

	if (undo)
		kind = c->kind == SELECT_MOVE ? "moved back" :
		    c->kind == SELECT_LINK ? "removed" : "put back";
	printf("  %-10s  ", kind);
	print_clean(stdout, c->name);
	if (c->kind == SELECT_COPY && c->to != NULL) {
		fputs(", now a copy of ", stdout);
		print_clean(stdout, c->to);
	} else if (c->kind != SELECT_MOVE && c->to != NULL) {
		if (c->from == NULL)
			fputs(": ", stdout);
		else if (c->from[0] == '\0')
			fputs(": (nothing) -> ", stdout);
		else {
			fputs(": ", stdout);
			print_clean(stdout, c->from);
			fputs(" -> ", stdout);
		}
		print_clean(stdout, c->to[0] != '\0' ? c->to : "(nothing)");
	}
	putchar('\n');
}

static void
show_plan(const struct select_plan *p, const struct action_values *o,
    const char *dir)
{
	char step[TEXT_SPAN_MAX] = "-";
	size_t i;

	if (p->step != REPORT_UNKNOWN)
		text_format_count(p->step, step);
	printf("%s step %s, ", o->dry_run ? "would select" : o->undo ?
	    "no longer selected:" : "selected", step);
	print_clean(stdout, p->name);
	puts(p->n == 0 ? ": it is the newest already" : "");
	for (i = 0; i < p->n; i++)
		show_change(&p->list[i], o->undo);
	for (i = 0; i < p->left.n; i++) {
		printf("  %-10s  ", "left");
		print_clean(stdout, p->left.list[i]);
		putchar('\n');
	}
	if (o->undo || p->n == 0)
		return;
	if (p->entry != NULL) {
		fputs("old values and moved ones are in ", stdout);
		print_clean(stdout, p->entry);
		fputs("\nto undo: holdfast checkpoint select --undo ", stdout);
	} else {
		fputs("nothing was changed in ", stdout);
	}
	print_clean(stdout, dir);
	putchar('\n');
}

static int
show(const struct verb *v, const struct select_plan *p,
    const struct action_values *o, const char *dir)
{
	if (!o->json)
		show_plan(p, o, dir);
	else if (print_plan(p, o) == -1)
		return action_fail_memory(v);
	return EXIT_OK;
}

/* Names the steps that are there, newest first. */
static int
fail_absent(const struct checkpoints *cs, int64_t step, const char *dir,
    struct err *err)
{
	char have[200] = "";
	int64_t last = REPORT_UNKNOWN;
	size_t i, n = 0, len = 0;

	for (i = 0; i < cs->n && n < SHOWN_MAX; i++) {
		int64_t s = checkpoint_step(&cs->list[i]);

		if (s == REPORT_UNKNOWN || s == last)
			continue;
		len += (size_t)snprintf(have + len, sizeof(have) - len,
		    "%s%" PRId64, n > 0 ? ", " : "", s);
		last = s;
		n++;
	}
	if (n == 0)
		return err_set(err, ERR_USAGE, "no checkpoint of step %" PRId64
		    " in %s, nor of any other", step, dir);
	return err_set(err, ERR_USAGE, "no checkpoint of step %" PRId64 " in %s; "
	    "there are %s%s", step, dir, have, i < cs->n ? ", ..." : "");
}

/* Every file of the step must be valid. */
static int
check_members(struct checkpoints *cs, const bool *member,
    const struct action_values *o, struct err *err)
{
	struct checkpoint_options opts = { .structure_only = o->structure,
	    .threads = (int)o->jobs };
	size_t i;

	for (i = 0; i < cs->n; i++) {
		struct checkpoint *c = &cs->list[i];

		if (!member[i])
			continue;
		if (!o->structure && c->report.state == HOLDFAST_CHECKPOINT_VALID &&
		    checkpoint_check(c, 1, &opts, NULL, NULL, err) == -1)
			return -1;
		if (c->report.state != HOLDFAST_CHECKPOINT_VALID && !o->force)
			return err_set(err, ERR_FORMAT, "%.200s is %s (%.120s): "
			    "select another step, see `holdfast checkpoint list', or "
			    "use --force", c->path, holdfast_checkpoint_state_name(
			    c->report.state), c->report.reason != NULL ?
			    c->report.reason : "no reason");
	}
	return 0;
}

/* Reads the directory and plans; 0, or -1 with *status set when it is refused. */
static int
plan(struct select_plan *p, const char *dir, int64_t step,
    const struct action_values *o, int *status, struct err *err)
{
	struct checkpoints cs = {0};
	bool *member = NULL;
	int rc = -1;

	*status = EXIT_USAGE;
	if (checkpoints_find(&cs, dir, (int)o->jobs, err) == -1)
		goto out;
	if ((member = calloc(cs.n + 1, sizeof(*member))) == NULL) {
		err_memory(err);
		goto out;
	}
	if (select_members(&cs, dir, step, member) == 0) {
		fail_absent(&cs, step, dir, err);
		goto out;
	}
	if (check_members(&cs, member, o, err) == -1)
		*status = EXIT_NEGATIVE;
	else
		rc = select_plan(p, dir, &cs, member, err);
out:
	free(member);
	checkpoints_fini(&cs);
	return rc;
}

static int
undo(const struct verb *v, const struct action_values *o, int n, char **paths)
{
	struct select_plan p = {0};
	struct err err = {0};
	int rc;

	if (n != 1 || o->dry_run || o->structure) {
		err_set(&err, ERR_USAGE, "select --undo takes one directory, and no "
		    "--dry-run or --structure");
		return verb_fail(v, &err);
	}
	if (select_undo(&p, paths[0], o->force, &err) == -1) {
		rc = verb_fail(v, &err);
		if (err.code == ERR_BUSY)
			rc = EXIT_NEGATIVE;
	} else {
		rc = show(v, &p, o, paths[0]);
	}
	select_fini(&p);
	return rc;
}

int
action_select(const struct verb *v, const struct action_values *o, int n,
    char **paths)
{
	struct select_plan p = {0};
	struct err err = {0};
	int64_t step;
	int rc;

	if (o->undo)
		return undo(v, o, n, paths);
	if (n != 2 || text_parse_int(paths[0], 0, STEP_MAX, &step) == -1) {
		err_set(&err, ERR_USAGE, "select takes a step and a directory, as in "
		    "select 1000 /ckpt");
		return verb_fail(v, &err);
	}
	if (plan(&p, paths[1], step, o, &rc, &err) == -1 ||
	    (!o->dry_run && select_apply(&p, &err) == -1))
		verb_fail(v, &err);
	else
		rc = show(v, &p, o, paths[1]);
	select_fini(&p);
	return rc;
}
