/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_status.c - holdfast status: prints status.json for people.
 *
 * The file says what the supervisor last knew; whether that supervisor still
 * lives is asked of /proc, so that a killed run does not look like training.
 */
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "common/json.h"
#include "common/text.h"
#include "supervisor/proc.h"
#include "supervisor/run_find.h"
#include "supervisor/verbs.h"

struct status_options {
	const char	*state_dir;
	bool		 json;
};

static const struct opt status_opts[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct status_options, json), NULL,
	    "print the status as JSON", .def = "false" },
	{ "state-dir", 0, OPT_TEXT, offsetof(struct status_options, state_dir),
	    "DIR", "where runs are kept (HOLDFAST_STATE_DIR or .holdfast)" },
	{ .name = NULL }
};

static bool
supervisor_is_alive(const cJSON *status)
{
	const cJSON *s = cJSON_GetObjectItem(status, "supervisor");
	char boot_id[PROC_BOOT_ID_MAX];

	proc_read_boot_id(boot_id);
	return strcmp(boot_id, json_str(s, "boot_id", "")) == 0 &&
	    proc_is_alive((pid_t)json_int(s, "pid", 0),
	    (uint64_t)json_int(s, "starttime", 0));
}

static void
print_row(const char *label, const char *text)
{
	printf("%-12s %s\n", label, text);
}

static void
print_training(const cJSON *o)
{
	char text[256], count[TEXT_SPAN_MAX], lost[TEXT_SPAN_MAX];
	int64_t step = json_int(o, "step", JSON_UNKNOWN);
	int n = 0;

	if (step != JSON_UNKNOWN) {
		text_format_count(step, count);
		n = snprintf(text, sizeof(text), "%s", count);
		if (cJSON_IsNumber(cJSON_GetObjectItem(o, "loss")))
			n += snprintf(text + n, sizeof(text) - (size_t)n,
			    ", loss %.4f", json_num(o, "loss", 0));
		if (cJSON_IsNumber(cJSON_GetObjectItem(o, "step_ms")))
			snprintf(text + n, sizeof(text) - (size_t)n,
			    ", %.1f ms a step", json_num(o, "step_ms", 0));
		print_row("step", text);
	}
	text_format_span(json_int(o, "lost_ms", 0), lost);
	snprintf(text, sizeof(text), "%lld of %lld%s%s",
	    (long long)json_int(o, "restarts", 0),
	    (long long)json_int(o, "restarts_max", 0),
	    json_int(o, "lost_ms", 0) ? ", time lost " : "",
	    json_int(o, "lost_ms", 0) ? lost : "");
	print_row("restarts", text);
}

static void
print_incident(const cJSON *o)
{
	const cJSON *in = cJSON_GetObjectItem(o, "last_incident");
	char text[1024];

	if (!cJSON_IsObject(in))
		return;
	snprintf(text, sizeof(text), "%lld (attempt %lld): %s, %s",
	    (long long)json_int(in, "incident", 0),
	    (long long)json_int(in, "attempt", 0), json_str(in, "reason", "?"),
	    json_str(in, "sign", ""));
	print_row("incident", text);
	if (json_str(in, "why", NULL) != NULL) {
		snprintf(text, sizeof(text), "%s: %s",
		    json_str(in, "decision", "?"), json_str(in, "why", ""));
		print_row("decision", text);
	}
	if (json_str(in, "advice", NULL) != NULL)
		print_row("advice", json_str(in, "advice", ""));
}

static void
print_status(const cJSON *o, bool over, bool alive)
{
	int64_t durable;
	char text[256];

	snprintf(text, sizeof(text), "%s, %s, attempt %lld",
	    json_str(o, "name", "?"), json_str(o, "state", "?"),
	    (long long)json_int(o, "attempt", 0));
	if (!over && !alive)
		snprintf(text, sizeof(text), "%s, UNWATCHED (was %s, attempt "
		    "%lld)", json_str(o, "name", "?"), json_str(o, "state", "?"),
		    (long long)json_int(o, "attempt", 0));
	print_row("run", text);
	print_training(o);
	if (json_str(cJSON_GetObjectItem(o, "checkpoint"), "path", NULL) != NULL)
		print_row("started from", json_str(cJSON_GetObjectItem(o,
		    "checkpoint"), "path", ""));
	durable = json_int(cJSON_GetObjectItem(o, "checkpoint"), "durable_step",
	    JSON_UNKNOWN);
	if (durable != JSON_UNKNOWN) {
		snprintf(text, sizeof(text), "up to step %lld", (long long)durable);
		print_row("durable", text);
	}
	print_incident(o);
	if (over) {
		snprintf(text, sizeof(text), "%lld",
		    (long long)json_int(o, "exit_code", 0));
		print_row("exit status", text);
	} else if (!alive) {
		print_row("you", "the supervisor is gone; its ranks may live. "
		    "Start the same command again to take them over.");
	}
	print_row("updated", json_str(o, "updated", "?"));
}

static int
show(const struct verb *v, const char *dir, bool json)
{
	char path[PATH_MAX], *line;
	struct buf data = {0};
	struct err err = {0};
	cJSON *o = NULL;
	bool over, alive;
	int rc = EXIT_OK;

	snprintf(path, sizeof(path), "%.4000s/status.json", dir);
	if (file_read(path, 1u << 20, &data, &err) == -1 ||
	    json_parse(data.data, data.len, &o, &err) == -1) {
		if (err.code == ERR_FORMAT)
			err_prefix(&err, "%s", path);
		rc = verb_fail(v, &err);
		goto out;
	}
	over = strcmp(json_str(o, "state", ""), "finished") == 0 ||
	    strcmp(json_str(o, "state", ""), "stopped") == 0;
	alive = supervisor_is_alive(o);
	cJSON_AddBoolToObject(o, "alive", alive);
	if (json) {
		if ((line = json_line(o)) != NULL)
			fputs(line, stdout);
		free(line);
	} else {
		print_status(o, over, alive);
	}
out:
	cJSON_Delete(o);
	buf_fini(&data);
	return rc;
}

static int
status_run(const struct verb *v, int argc, char **argv)
{
	struct status_options o = {0};
	struct err err = {0};
	char *dir = NULL;
	int first, rc;
	bool done;

	if (verb_parse(v, &o, argc, argv, &first, &done) == -1)
		return EXIT_USAGE;
	if (done)
		return EXIT_OK;
	if (run_find(o.state_dir, first < argc ? argv[first] : NULL, &dir,
	    &err) == -1)
		return verb_fail(v, &err);
	rc = show(v, dir, o.json);
	free(dir);
	return rc;
}

const struct verb verb_status = {
	.name = "status",
	.summary = "show how a run is doing",
	.operands = "[RUN]",
	.opts = status_opts,
	.run = status_run
};
