/* SPDX-License-Identifier: Apache-2.0 */
/*
 * action_stage.c - holdfast checkpoint stage FROM TO: copies checkpoints from a fast
 * directory to a durable one, once or as long as a job runs.
 *
 * Prints an event a line: as JSON for the agent, as words for people.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/text.h"
#include "checkpoint/action.h"
#include "checkpoint/print.h"
#include "checkpoint/stage_daemon.h"

static const char *const kinds[] = {
	[STAGE_DURABLE] = "durable", [STAGE_REFUSED] = "refused",
	[STAGE_DROPPED] = "dropped", [STAGE_FAILED] = "failed",
	[STAGE_LOST] = "lost"
};

/* Events come from two threads; one call of stdio prints a whole one. */
static void
print_event(cJSON *json)
{
	char now[CLOCK_TEXT_MAX], *line;

	clock_format(clock_wall_ns(&clock_system), now);
	json_add_text(json, "time", now);
	if ((line = json_line(json)) != NULL)
		fputs(line, stdout);
	fflush(stdout);
	free(line);
	cJSON_Delete(json);
}

static void
tell_json(void *arg, const struct stage_event *e)
{
	cJSON *json = cJSON_CreateObject();

	(void)arg;
	json_add_text(json, "event", kinds[e->kind]);
	json_add_text(json, "name", e->name);
	json_add_int(json, "step", e->step);
	json_add_int(json, "bytes", (int64_t)e->bytes);
	json_add_int(json, "ms", e->ms);
	json_add_text(json, "why", e->why);
	print_event(json);
}

static void
switched_json(void *arg, bool fast, const char *why)
{
	cJSON *json = cJSON_CreateObject();

	(void)arg;
	json_add_text(json, "event", "switched");
	json_add_text(json, "to", fast ? "fast" : "durable");
	json_add_text(json, "why", why);
	print_event(json);
}

static void
ended_json(unsigned left)
{
	cJSON *json = cJSON_CreateObject();

	json_add_text(json, "event", "ended");
	json_add_int(json, "left", left);
	print_event(json);
}

static void
tell_person(void *arg, const struct stage_event *e)
{
	char span[TEXT_SPAN_MAX], step[TEXT_SPAN_MAX] = "-";

	(void)arg;
	if (e->step != REPORT_UNKNOWN)
		text_format_count(e->step, step);
	flockfile(stdout);
	printf("%-8s step %-9s ", kinds[e->kind], step);
	print_clean(stdout, e->name);
	if (e->kind == STAGE_DURABLE) {
		text_format_span(e->ms, span);
		printf(": %.1f MB in %s", (double)e->bytes / 1e6, span);
		if (e->ms > 0)
			printf(", %.0f MB/s", (double)e->bytes / 1e3 /
			    (double)e->ms);
	} else {
		fputs(": ", stdout);
		print_clean(stdout, e->why);
	}
	putchar('\n');
	funlockfile(stdout);
	fflush(stdout);
}

static void
switched_person(void *arg, bool fast, const char *why)
{
	(void)arg;
	printf("%-8s saves go to the %s directory: %s\n", "switched",
	    fast ? "fast" : "durable", why);
	fflush(stdout);
}

int
action_stage(const struct verb *v, const struct action_values *o, int n,
    char **paths)
{
	struct stage_daemon_options d = {
		.stage = { .bytes_per_s = (uint64_t)o->bandwidth,
		    .keep = o->keep, .quiet_ms = o->quiet_ms,
		    .tell = o->json ? tell_json : tell_person },
		.budget = (uint64_t)o->room, .link = o->link,
		.socket = o->socket, .once = o->once,
		.drop_unfinished = o->drop_unfinished,
		.end_with_input = o->end_with_input,
		.switched = o->json ? switched_json : switched_person
	};
	char host[65] = "";
	struct err err = {0};
	unsigned lost;

	if (n != 2) {
		err_set(&err, ERR_USAGE, "stage takes the fast directory and the "
		    "durable one");
		return verb_fail(v, &err);
	}
	d.stage.from = paths[0];
	d.stage.to = paths[1];
	d.stage.nodes = o->nodes;
	d.stage.node = o->node != NULL ? o->node : host;
	if (o->nodes > 1 && (gethostname(host, sizeof(host) - 1) == -1 ||
	    !text_is_name(d.stage.node))) {
		err_set(&err, ERR_USAGE, "--node takes 1 to 64 of [A-Za-z0-9._-] "
		    "(not '%s')", d.stage.node);
		return verb_fail(v, &err);
	}
	if (o->once && o->socket != NULL) {
		err_set(&err, ERR_USAGE, "--once waits for no snapshots: leave it "
		    "or --socket out");
		return verb_fail(v, &err);
	}
	if (stage_daemon_run(&d, &lost, &err) == -1)
		return verb_fail(v, &err);
	if (o->json)
		ended_json(lost);
	else if (lost > 0)
		printf("%u complete checkpoints are not durable\n", lost);
	return lost > 0 ? EXIT_NEGATIVE : EXIT_OK;
}
