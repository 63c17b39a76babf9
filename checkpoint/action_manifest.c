/* SPDX-License-Identifier: Apache-2.0 */
/*
 * action_manifest.c - holdfast checkpoint manifest PATH...: checks each and writes down
 * what it holds; with --xxhsum prints what was written down.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/file.h"
#include "common/json.h"
#include "checkpoint/action.h"
#include "checkpoint/manifest.h"
#include "checkpoint/print.h"

struct action {
	const struct verb		*verb;
	const struct action_values	*o;
	struct print_progress		 progress;
	bool				 all_written, short_of_memory;
};

static int
put_json(const struct checkpoint *c, const char *path, const char *why)
{
	cJSON *json = cJSON_CreateObject();

	if (json == NULL || json_add_text(json, "path", c->path) == -1 ||
	    json_add_text(json, "manifest", path) == -1 ||
	    json_add_text(json, "format", checkpoint_format_name(c)) == -1 ||
	    json_add_int(json, "step", checkpoint_step(c)) == -1 ||
	    json_add_text(json, "state", print_state(c, false)) == -1 ||
	    json_add_text(json, "reason", why) == -1) {
		cJSON_Delete(json);
		return -1;
	}
	return print_json_line(json);
}

static void
write_one(void *arg, struct checkpoint *c)
{
	struct action *a = arg;
	struct err err = {0};
	char *path = manifest_path(c->path, c->is_dir);
	bool written, bad = report_is_bad(&c->report) ||
	    c->report.state == HOLDFAST_CHECKPOINT_NON_FINITE;
	const char *why;

	written = !bad && manifest_write(c, NULL, NULL, 0, &err) == 0;
	a->all_written = a->all_written && written;
	if (path == NULL)
		a->short_of_memory = true;
	print_progress_end(&a->progress);
	why = written ? NULL : bad || err.text[0] == '\0' ? c->report.reason :
	    err.text;
	if (a->o->json) {
		if (put_json(c, written ? path : NULL, why) == -1)
			a->short_of_memory = true;
	} else if (written) {
		fputs("written    ", stdout);
		print_clean(stdout, path);
		putchar('\n');
	} else if (bad) {
		print_verdict(c, false);
	} else {
		fputs("not written  ", stdout);
		print_clean(stdout, err.text);
		putchar('\n');
	}
	free(path);
}

/* Lines that `xxhsum -H2 -c' reads from the directory this runs in.  That has no way to
 * write a name with a line end. */
static int
put_sums(const struct verb *verb, const char *checkpoint)
{
	enum manifest_found found;
	struct manifest m;
	struct err err = {0};
	struct stat st;
	char text[DIGEST_TEXT_MAX], *path;
	const char *slash = strrchr(checkpoint, '/');
	bool is_dir = stat(checkpoint, &st) == 0 && S_ISDIR(st.st_mode);
	size_t i;
	int rc = EXIT_OK;

	found = manifest_read(&m, checkpoint, is_dir, &err);
	if (found == MANIFEST_ABSENT)
		err_set(&err, ERR_USAGE, "%s has no manifest; `holdfast checkpoint "
		    "manifest %s' writes one", checkpoint, checkpoint);
	else if (found == MANIFEST_UNUSABLE)
		err_prefix(&err, "%s: manifest unusable", checkpoint);
	if (found != MANIFEST_FOUND) {
		verb_fail(verb, &err);
		rc = EXIT_NEGATIVE;
	}
	for (i = 0; i < m.n && found == MANIFEST_FOUND; i++) {
		path = is_dir || slash == NULL ? file_join(is_dir ? checkpoint : ".",
		    m.files[i].path) : strdup(checkpoint);
		if (path == NULL || strchr(path, '\n') != NULL) {
			err_set(&err, ERR_FORMAT, "%s: a name that xxhsum cannot "
			    "read", checkpoint);
			verb_fail(verb, &err);
			rc = EXIT_NEGATIVE;
		} else {
			digest_format(m.files[i].whole, text);
			printf("%s  %s\n", text, path);
		}
		free(path);
	}
	manifest_fini(&m);
	return rc;
}

int
action_manifest(const struct verb *verb, const struct action_values *o, int n,
    char **paths)
{
	struct checkpoint_options opts = { .keep_digests = true,
	    .threads = (int)o->jobs };
	struct action a = { .verb = verb, .o = o, .all_written = true };
	struct checkpoints cs = {0};
	struct err err = {0};
	int i, rc = EXIT_OK;

	if (o->xxhsum) {
		for (i = 0; i < n; i++)
			if (put_sums(verb, paths[i]) != EXIT_OK)
				rc = EXIT_NEGATIVE;
		return rc;
	}
	rc = EXIT_USAGE;
	for (i = 0; i < n; i++)
		if (action_collect(&cs, paths[i], &err) == -1) {
			verb_fail(verb, &err);
			goto out;
		}
	print_progress_start(&a.progress, cs.list, cs.n);
	opts.progress = print_progress_add;
	opts.progress_arg = &a.progress;
	if (checkpoint_check(cs.list, cs.n, &opts, write_one, &a, &err) == -1)
		verb_fail(verb, &err);
	else if (a.short_of_memory)
		action_fail_memory(verb);
	else
		rc = a.all_written ? EXIT_OK : EXIT_NEGATIVE;
out:
	checkpoints_fini(&cs);
	return rc;
}
