/* SPDX-License-Identifier: Apache-2.0 */
/*
 * action_quarantine.c - holdfast checkpoint quarantine PATH..., --list DIR and
 * --undo PATH...
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
#include "checkpoint/tracker.h"

struct listing {
	bool	json;
	size_t	n;
};

static void
show_entry(void *arg, const char *path, const char *line)
{
	struct listing *l = arg;
	cJSON *json;
	int64_t step;

	l->n++;
	if (l->json) {
		fputs(line, stdout);
		return;
	}
	if (json_parse(line, strlen(line), &json, NULL) == -1)
		return;
	step = json_int(json, "step", REPORT_UNKNOWN);
	printf("%-10s ", json_str(json, "state", "?"));
	if (step == REPORT_UNKNOWN)
		printf("%10s  ", "-");
	else
		printf("%10lld  ", (long long)step);
	printf("%s  ", json_str(json, "time", "?"));
	print_clean(stdout, path);
	fputs("  ", stdout);
	print_clean(stdout, json_str(json, "reason", ""));
	putchar('\n');
	cJSON_Delete(json);
}

static int
list(const struct verb *v, const struct action_values *o, const char *dir)
{
	struct listing l = { .json = o->json };
	struct err err = {0};

	if (quarantine_list(dir, show_entry, &l, &err) == -1)
		return verb_fail(v, &err);
	if (l.n == 0 && !o->json) {
		fputs("nothing was moved out of ", stdout);
		print_clean(stdout, dir);
		putchar('\n');
	}
	return EXIT_OK;
}

static int
show_move(const struct action_values *o, const char *from, const char *to,
    const struct names *trackers)
{
	cJSON *json, *array, *name;
	size_t i;

	if (!o->json) {
		print_clean(stdout, from);
		fputs(" moved to ", stdout);
		print_clean(stdout, to);
		putchar('\n');
		for (i = 0; i < trackers->n; i++) {
			fputs("  rewrote ", stdout);
			print_clean(stdout, trackers->list[i]);
			putchar('\n');
		}
		return 0;
	}
	json = cJSON_CreateObject();
	if (json == NULL || json_add_text(json, "path", from) == -1 ||
	    json_add_text(json, "moved_to", to) == -1 ||
	    (array = cJSON_AddArrayToObject(json, "trackers")) == NULL)
		goto fail;
	for (i = 0; i < trackers->n; i++) {
		name = cJSON_CreateString(trackers->list[i]);
		if (name == NULL || !cJSON_AddItemToArray(array, name))
			goto fail;
	}
	return print_json_line(json);
fail:
	cJSON_Delete(json);
	return -1;
}

static int
undo(const struct verb *v, const struct action_values *o, char *path)
{
	struct names none = {0};
	struct err err = {0};
	size_t n = strlen(path);
	char *to;
	int rc = EXIT_OK;

	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	if (quarantine_undo(path, &to, &err) == -1)
		return verb_fail(v, &err);
	if (show_move(o, path, to, &none) == -1)
		rc = action_fail_memory(v);
	free(to);
	return rc;
}

/* The directory a checkpoint lies in. */
static char *
save_dir_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL)
		return strdup(".");
	return slash == path ? strdup("/") :
	    strndup(path, (size_t)(slash - path));
}

/* Points the trackers of dir to the newest valid checkpoint left in it. */
static int
repair(const struct action_values *o, const char *dir, struct names *changed,
    struct err *err)
{
	struct latest_options opts = { .before_step = REPORT_UNKNOWN,
	    .threads = (int)o->jobs };
	struct checkpoints cs = {0};
	const struct checkpoint *c;
	const char *slash;
	char *keep = NULL;
	long chosen;
	int rc = -1;

	if (checkpoints_find(&cs, dir, opts.threads, err) == -1 ||
	    checkpoints_latest(&cs, &opts, &chosen, err) == -1 ||
	    (keep = quarantine_dir(dir, err)) == NULL)
		goto out;
	if (chosen < 0) {
		rc = 0;
		goto out;
	}
	c = &cs.list[chosen];
	slash = strrchr(c->path, '/');
	rc = tracker_repair(dir, slash ? slash + 1 : c->path, checkpoint_step(c),
	    keep, changed, err);
out:
	free(keep);
	checkpoints_fini(&cs);
	return rc;
}

static int
move(const struct verb *v, const struct action_values *o, const char *path)
{
	struct checkpoint_options opts = { .threads = (int)o->jobs };
	struct names changed = {0};
	struct checkpoint c;
	struct err err = {0};
	char *dir = NULL, *to = NULL;
	struct stat st;
	int rc = EXIT_USAGE;

	if (lstat(path, &st) == -1) {
		err_errno(&err, "cannot stat %s", path);
		return verb_fail(v, &err);
	}
	if (checkpoint_look(&c, path) == -1) {
		rc = action_fail_memory(v);
		goto out;
	}
	if (c.is_dir && c.format == NULL) {
		err_set(&err, ERR_USAGE, "%s is a folder without the layout of a "
		    "checkpoint; name the checkpoint in it", path);
		verb_fail(v, &err);
		goto out;
	}
	if (c.mtime_ns != REPORT_UNKNOWN && clock_wall_ns(&clock_system) -
	    c.mtime_ns < o->quiet_ms * NS_PER_MS) {
		err_set(&err, ERR_BUSY, "%s changed lately, it may still be written: "
		    "wait, or leave out --quiet-for if no job writes it", path);
		verb_fail(v, &err);
		goto out;
	}
	if ((dir = save_dir_of(c.path)) == NULL) {
		rc = action_fail_memory(v);
		goto out;
	}
	if (checkpoint_check(&c, 1, &opts, NULL, NULL, &err) == -1 ||
	    quarantine_move(dir, &c, &to, &err) == -1 ||
	    repair(o, dir, &changed, &err) == -1) {
		verb_fail(v, &err);
		goto out;
	}
	rc = show_move(o, c.path, to, &changed) == -1 ? action_fail_memory(v) :
	    EXIT_OK;
out:
	names_fini(&changed);
	checkpoint_fini(&c);
	free(dir);
	free(to);
	return rc;
}

int
action_quarantine(const struct verb *v, const struct action_values *o, int n,
    char **paths)
{
	struct err err = {0};
	int i, rc = EXIT_OK, one;

	if (o->list && (o->undo || n != 1)) {
		err_set(&err, ERR_USAGE, "--list takes one directory");
		return verb_fail(v, &err);
	}
	if (o->list)
		return list(v, o, paths[0]);
	for (i = 0; i < n; i++) {
		one = o->undo ? undo(v, o, paths[i]) : move(v, o, paths[i]);
		if (one != EXIT_OK)
			rc = one;
	}
	return rc;
}
