/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_run.c - holdfast run: checks everything that can be checked before
 * anything is started, takes the lock, and becomes the run parent.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/text.h"
#include "diagnose/rule_load.h"
#include "supervisor/lock.h"
#include "supervisor/run_config.h"
#include "supervisor/run_life.h"
#include "supervisor/run_parent.h"
#include "supervisor/run_spec.h"
#include "supervisor/run_stage.h"
#include "supervisor/verbs.h"

static int
is_executable_file(const char *path)
{
	struct stat st;

	if (stat(path, &st) == -1)
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = S_ISDIR(st.st_mode) ? EISDIR : EACCES;
		return -1;
	}
	return access(path, X_OK);
}

/* As execvp() will look for it. */
static int
check_command(const char *name, struct err *err)
{
	const char *path = getenv("PATH"), *end;
	char candidate[PATH_MAX];
	int found = ENOENT;

	if (strchr(name, '/') != NULL) {
		if (is_executable_file(name) == 0)
			return 0;
		return err_errno(err, "cannot run %s", name);
	}
	if (path == NULL)
		path = "/usr/local/bin:/bin:/usr/bin";
	for (;; path = end + 1) {
		end = strchrnul(path, ':');
		snprintf(candidate, sizeof(candidate), "%.*s/%s",
		    end == path ? 1 : (int)(end - path),
		    end == path ? "." : path, name);
		if (is_executable_file(candidate) == 0)
			return 0;
		if (errno == EACCES)
			found = EACCES;
		if (*end == '\0')
			break;
	}
	errno = found;
	return err_errno(err, "cannot run %s (looked in PATH)", name);
}

static int
check_directory(const char *option, const char *dir, bool write,
    struct err *err)
{
	struct stat st;

	if (dir == NULL)
		return 0;
	if (stat(dir, &st) == -1) {
		/* A save directory may be made by the trainer. */
		if (errno == ENOENT && write)
			return 0;
		return err_errno(err, "--%s %s", option, dir);
	}
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ERR_USAGE, "--%s %s: not a directory", option,
		    dir);
	if (access(dir, R_OK | X_OK | (write ? W_OK : 0)) == -1)
		return err_errno(err, "--%s %s", option, dir);
	return 0;
}

static void
print_problem(const char *text, void *arg)
{
	(void)arg;
	fprintf(stderr, "holdfast run: %s\n", text);
}

static int
check_rules(const struct run_options *o, struct err *err)
{
	struct rule_set *set = NULL;
	int problems = 0;

	if (o->rules == NULL)
		return 0;
	if (rule_load(o->rules, print_problem, NULL, &set, &problems, err) == -1)
		return -1;
	rule_set_free(set);
	if (problems == 0 || o->rules_lenient)
		return 0;
	return err_set(err, ERR_FORMAT, "--rules %s: %d problem%s (repair them, "
	    "or start without these rules by --rules-lenient)", o->rules,
	    problems, problems == 1 ? "" : "s");
}

static int
check_all(const struct run_spec *s, struct err *err)
{
	const struct run_options *o = &s->options;

	if (check_command(s->argv[0], err) == -1 ||
	    check_directory("checkpoint-dir", o->checkpoint_dir, true,
	    err) == -1 || check_directory("log-dir", o->log_dir, true,
	    err) == -1 || check_directory("rules", o->rules, false, err) == -1)
		return -1;
	return check_rules(o, err);
}

static void
print_staging(const struct run_spec *s)
{
	struct run_stage stage;

	run_stage_places(s, &stage);
	if (stage.on)
		printf("staging     up to %lld MiB in %s\n            (the trainer is "
		    "told to save to %s)\n", (long long)stage.bytes >> 20,
		    stage.fast, stage.link);
}

static int
print_plan(const struct run_spec *s)
{
	const struct run_options *o = &s->options;
	bool launcher = run_spec_is_launcher(s);
	char grace[TEXT_SPAN_MAX];
	int i;

	text_format_span(o->grace_ms, grace);
	printf("run         %s in %s\ncommand    ", o->name, s->dir);
	for (i = 0; i < s->argc; i++)
		printf(" %s", s->argv[i]);
	if (o->nproc_per_node > 0)
		printf("\nranks       %lld, started by Holdfast on this node\n",
		    (long long)o->nproc_per_node);
	else
		printf("\nranks       started by the command%s\n", launcher ? "" :
		    " (no launcher that is known; --nproc-per-node starts ranks)");
	printf("checkpoints %s\n", o->checkpoint_dir ? o->checkpoint_dir :
	    "not known (--checkpoint-dir): not checked before a restart");
	print_staging(s);
	printf("restarts    %s\ngrace       %s\n", o->max_restarts, grace);
	printf("all checks passed, nothing was started\n");
	return EXIT_OK;
}

/* A write with sync is the only proof that there is room for the journal. */
static int
check_store(const struct run_spec *s, struct err *err)
{
	char path[PATH_MAX];
	int rc;

	snprintf(path, sizeof(path), "%.4000s/agents", s->dir);
	if (file_mkdirs(path, 0700, err) == -1)
		return -1;
	if (chmod(s->dir, 0700) == -1)
		return err_errno(err, "cannot set the mode of %s", s->dir);
	snprintf(path, sizeof(path), "%.4000s/.room", s->dir);
	rc = file_write_atomic(path, "room for the journal\n", 21, 0600, err);
	unlink(path);
	return rc;
}

static int
set_aside(const char *dir, struct err *err)
{
	char aside[PATH_MAX], when[CLOCK_TEXT_MAX];

	clock_format(clock_wall_ns(&clock_system), when);
	snprintf(aside, sizeof(aside), "%.4000s.old-%s", dir, when);
	if (rename(dir, aside) == -1 && errno != ENOENT)
		return err_errno(err, "cannot set %s aside", dir);
	return 0;
}

static int
refuse_other_command(const struct run_spec *spec, struct err *err)
{
	return err_set(err, ERR_USAGE, "run %s is alive and has another command; "
	    "end it (holdfast stop %s), or take another --name",
	    spec->options.name, spec->options.name);
}

/* Decides between a new run, a new campaign, and going on with one that is not
 * over. */
static int
settle_spec(struct run_spec **spec, struct err *err)
{
	struct run_spec *new = *spec, *old = NULL;
	enum run_life life;
	bool missing;

	if (run_spec_load(new->dir, &old, &missing, err) == -1)
		return missing ? run_spec_save(new, err) : -1;
	if (run_life_read(old, &life, err) == -1) {
		run_spec_free(old);
		return -1;
	}
	if (life != RUN_ENDED && run_spec_same_command(old, new)) {
		fprintf(stderr, "holdfast run: going on with run %s, with the "
		    "options it was started with\n", new->options.name);
		*spec = old;
		run_spec_free(new);
		return 0;
	}
	if (life == RUN_LIVES) {
		run_spec_free(old);
		return refuse_other_command(new, err);
	}
	if (life == RUN_BROKEN_OFF && run_life_close(old, err) == -1) {
		run_spec_free(old);
		return -1;
	}
	/* The id stays: processes of the older campaign would be found by it. */
	free(new->run_id);
	free(new->socket_dir);
	new->run_id = strdup(old->run_id);
	new->socket_dir = strdup(old->socket_dir);
	run_spec_free(old);
	if (new->run_id == NULL || new->socket_dir == NULL)
		return err_memory(err);
	return run_spec_save(new, err);
}

/* --fresh.  The lock goes along with what is set aside. */
static int
forget(const struct run_spec *spec, struct err *err)
{
	struct run_spec *old = NULL;
	enum run_life life = RUN_ENDED;
	bool missing, freed;

	if (run_spec_load(spec->dir, &old, &missing, NULL) == -1 && missing)
		return 0;
	/* Whatever cannot be read is set aside, that is what --fresh is for. */
	if (old != NULL && run_life_read(old, &life, NULL) == -1)
		life = RUN_ENDED;
	run_spec_free(old);
	if (life == RUN_LIVES)
		return err_set(err, ERR_USAGE, "run %s is alive: without --fresh "
		    "the same command takes it over; holdfast stop %s ends it",
		    spec->options.name, spec->options.name);
	if (set_aside(spec->dir, err) == -1 || check_store(spec, err) == -1)
		return -1;
	return lock_acquire(spec->dir, false, &freed, err);
}

static int
start(const struct verb *v, struct run_spec **spec)
{
	struct err err = {0};
	bool freed;
	int rc;

	if (check_store(*spec, &err) == -1 ||
	    lock_acquire((*spec)->dir, (*spec)->options.take_over, &freed,
	    &err) == -1)
		return verb_fail(v, &err);
	if ((*spec)->options.fresh && forget(*spec, &err) == -1) {
		lock_release((*spec)->dir);
		return verb_fail(v, &err);
	}
	if (settle_spec(spec, &err) == -1 ||
	    run_spec_make_socket_dir(*spec, &err) == -1) {
		lock_release((*spec)->dir);
		return verb_fail(v, &err);
	}
	rc = run_parent(*spec, 0, &err);
	lock_release((*spec)->dir);
	if (rc == -1) {
		verb_fail(v, &err);
		return EXIT_NEGATIVE;
	}
	return rc;
}

static int
run_run(const struct verb *v, int argc, char **argv)
{
	struct run_config *config = NULL;
	struct run_spec *spec = NULL;
	struct run_options options;
	struct err err = {0};
	int first, i, rc;

	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return verb_help(v);
	if (run_config_read(argc, argv, &options, &first, &config, &err) == -1)
		return verb_fail(v, &err);
	if (first >= argc) {
		err_set(&err, ERR_USAGE, "no command: holdfast run [options] -- "
		    "COMMAND...");
		rc = verb_fail(v, &err);
	} else if (run_spec_new(&options, argc - first, argv + first, &spec,
	    &err) == -1 || check_all(spec, &err) == -1) {
		rc = verb_fail(v, &err);
	} else if (options.dry_run) {
		rc = print_plan(spec);
	} else {
		rc = start(v, &spec);
	}
	run_spec_free(spec);
	run_config_free(config);
	return rc;
}

const struct verb verb_run = {
	.name = "run",
	.summary = "start a training run and keep it alive",
	.operands = "-- COMMAND...",
	.opts = run_option_table,
	.run = run_run
};
