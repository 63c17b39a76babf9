/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_stop.c - holdfast stop: asks the supervisor of a run to end it, and waits
 * until it has.
 */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/loop.h"
#include "supervisor/lock.h"
#include "supervisor/run_find.h"
#include "supervisor/run_life.h"
#include "supervisor/run_parent.h"
#include "supervisor/run_spec.h"
#include "supervisor/verbs.h"
#include "supervisor/wire.h"

struct stop_options {
	const char	*state_dir;
	bool		 now;
	bool		 json;
};

static const struct opt stop_opts[] = {
	{ "now", 0, OPT_FLAG, offsetof(struct stop_options, now), NULL,
	    "kill at once, no grace", .def = "false", .cli_only = true },
	{ "json", 0, OPT_FLAG, offsetof(struct stop_options, json), NULL,
	    "print the result as JSON", .def = "false" },
	{ "state-dir", 0, OPT_TEXT, offsetof(struct stop_options, state_dir),
	    "DIR", "where runs are kept (HOLDFAST_STATE_DIR or .holdfast)" },
	{ .name = NULL }
};

struct stopper {
	struct loop	*loop;
	struct wire	*wire;
	bool		 json;
	bool		 ended;
	int64_t		 code;
};

static void
on_message(const char *type, const cJSON *m, void *arg)
{
	struct stopper *st = arg;

	if (strcmp(type, "say") == 0 && !st->json) {
		fputs(json_str(m, "text", ""), stdout);
		fflush(stdout);
	} else if (strcmp(type, "end") == 0) {
		st->ended = true;
		st->code = json_int(m, "code", 1);
		loop_stop(st->loop, 0);
	}
}

static void
on_close(const struct err *why, void *arg)
{
	struct stopper *st = arg;

	(void)why;
	loop_stop(st->loop, 0);
}

static int
ask(struct stopper *st, int fd, bool now, struct err *err)
{
	cJSON *m;

	if (loop_new(&st->loop, err) == -1 ||
	    wire_new(st->loop, fd, on_message, on_close, st, &st->wire,
	    err) == -1) {
		close(fd);
		return -1;
	}
	m = wire_message("stop");
	cJSON_AddBoolToObject(m, "now", now);
	wire_send(st->wire, m);
	if (loop_run(st->loop, err) == -1)
		return -1;
	if (!st->ended)
		return err_set(err, ERR_SYSTEM, "the supervisor went away before "
		    "it said that the run has ended; ask holdfast status");
	return 0;
}

/* Ranks without a supervisor: it takes one to end them in order. */
static int
stop_unwatched(const struct verb *v, const struct run_spec *spec)
{
	enum run_life life;
	struct err err = {0};
	bool freed;
	int rc;

	if (run_life_read(spec, &life, &err) == -1)
		return verb_fail(v, &err);
	if (life != RUN_LIVES) {
		fprintf(stderr, "holdfast stop: nothing of run %s lives on this "
		    "host\n", spec->options.name);
		return EXIT_NEGATIVE;
	}
	if (lock_acquire(spec->dir, false, &freed, &err) == -1)
		return verb_fail(v, &err);
	rc = run_parent(spec, SIGTERM, &err);
	lock_release(spec->dir);
	if (rc == -1) {
		verb_fail(v, &err);
		return EXIT_NEGATIVE;
	}
	return EXIT_OK;
}

static int
stop_run(const struct verb *v, int argc, char **argv)
{
	struct stop_options o = {0};
	struct stopper st = {0};
	struct run_spec *spec = NULL;
	struct err err = {0};
	int first, fd, rc = EXIT_OK;
	char *dir = NULL;
	bool done;

	if (verb_parse(v, &o, argc, argv, &first, &done) == -1)
		return EXIT_USAGE;
	if (done)
		return EXIT_OK;
	st.json = o.json;
	if (run_find(o.state_dir, first < argc ? argv[first] : NULL, &dir,
	    &err) == -1 || run_spec_load(dir, &spec, NULL, &err) == -1) {
		rc = verb_fail(v, &err);
	} else if ((fd = run_parent_connect(spec, &err)) == -1) {
		rc = stop_unwatched(v, spec);
	} else if (ask(&st, fd, o.now, &err) == -1) {
		verb_fail(v, &err);
		rc = EXIT_NEGATIVE;
	} else if (o.json) {
		printf("{\"stopped\":true,\"code\":%lld}\n", (long long)st.code);
	}
	wire_free(st.wire);
	loop_free(st.loop);
	run_spec_free(spec);
	free(dir);
	return rc;
}

const struct verb verb_stop = {
	.name = "stop",
	.summary = "end a run: its ranks get SIGTERM, then SIGKILL",
	.operands = "[RUN]",
	.opts = stop_opts,
	.run = stop_run
};
