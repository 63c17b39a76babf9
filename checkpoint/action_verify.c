/* SPDX-License-Identifier: Apache-2.0 */
/*
 * action_verify.c - holdfast checkpoint verify PATH... and list DIR.
 */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "checkpoint/action.h"
#include "checkpoint/expect.h"
#include "checkpoint/print.h"

struct verify {
	const struct action_values	*o;
	bool				 all_valid, short_of_memory;
	struct print_progress		 progress;
};

static void
verify_done(void *arg, struct checkpoint *c)
{
	struct verify *v = arg;
	cJSON *json;

	if (strcmp(print_state(c, v->o->structure), "valid") != 0)
		v->all_valid = false;
	if (!v->o->json) {
		print_progress_end(&v->progress);
		print_verdict(c, v->o->structure);
		return;
	}
	json = print_json(c, v->o->structure);
	if (print_json_line(json) == -1)
		v->short_of_memory = true;
}

int
action_collect(struct checkpoints *cs, const char *path, struct err *err)
{
	struct checkpoint *c;
	struct checkpoints inside;

	if ((c = calloc(1, sizeof(*c))) == NULL ||
	    checkpoint_look(c, path) == -1) {
		free(c);
		return err_memory(err);
	}
	memset(&inside, 0, sizeof(inside));
	if (c->is_dir && c->format == NULL &&
	    c->report.state == HOLDFAST_CHECKPOINT_UNVERIFIED &&
	    checkpoints_list(&inside, path, err) == 0 && inside.n > 0) {
		checkpoint_fini(c);
		free(c);
		return checkpoints_move(cs, &inside, err);
	}
	checkpoints_fini(&inside);
	inside.list = c;
	inside.n = 1;
	return checkpoints_move(cs, &inside, err);
}

int
action_verify(const struct verb *verb, const struct action_values *o, int n,
    char **paths)
{
	struct checkpoint_options opts = { .structure_only = o->structure,
	    .threads = (int)o->jobs };
	struct verify v = { .o = o, .all_valid = true };
	struct checkpoints cs = {0};
	struct err err = {0};
	int i, rc = EXIT_USAGE;

	for (i = 0; i < n; i++)
		if (action_collect(&cs, paths[i], &err) == -1) {
			verb_fail(verb, &err);
			goto out;
		}
	if (expect_beside(cs.list, cs.n, opts.threads) == -1) {
		action_fail_memory(verb);
		goto out;
	}
	print_progress_start(&v.progress, cs.list, cs.n);
	opts.progress = print_progress_add;
	opts.progress_arg = &v.progress;
	if (checkpoint_check(cs.list, cs.n, &opts, verify_done, &v, &err) == -1)
		verb_fail(verb, &err);
	else if (v.short_of_memory)
		action_fail_memory(verb);
	else
		rc = v.all_valid ? EXIT_OK : EXIT_NEGATIVE;
out:
	checkpoints_fini(&cs);
	return rc;
}

int
action_list(const struct verb *verb, const struct action_values *o, int n,
    char **paths)
{
	struct checkpoint_options opts = { .threads = (int)o->jobs };
	struct print_progress progress;
	struct checkpoints cs = {0};
	struct err err = {0};
	size_t i;
	int rc = EXIT_USAGE;

	(void)n;
	if (checkpoints_find(&cs, paths[0], opts.threads, &err) == -1) {
		verb_fail(verb, &err);
		goto out;
	}
	print_progress_start(&progress, cs.list, cs.n);
	opts.progress = print_progress_add;
	opts.progress_arg = &progress;
	if (o->full && checkpoint_check(cs.list, cs.n, &opts, NULL, NULL, &err)
	    == -1) {
		verb_fail(verb, &err);
		goto out;
	}
	print_progress_end(&progress);
	rc = EXIT_OK;
	if (!o->json && cs.n > 0)
		print_table(&cs, clock_wall_ns(&clock_system));
	else if (!o->json)
		printf("no checkpoint in %s\n", paths[0]);
	for (i = 0; o->json && i < cs.n; i++)
		if (print_json_line(print_json(&cs.list[i], false)) == -1)
			rc = action_fail_memory(verb);
out:
	checkpoints_fini(&cs);
	return rc;
}
