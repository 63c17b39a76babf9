/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_supervisor_launch.c - the start order: command, placeholders, environment.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "supervisor/supervisor.h"
#include "unit.h"

#define LENGTH(a)	((int)(sizeof(a) / sizeof((a)[0])))

static struct supervisor sup;
static struct run_spec spec;
static char *words[8];

/* A supervisor with just what the order is made from. */
static void
setup(void)
{
	memset(&sup, 0, sizeof(sup));
	memset(&spec, 0, sizeof(spec));
	history_init(&sup.history);
	ck_assert_int_eq(opt_defaults(run_option_table, &spec.options, NULL), 0);
	spec.run_id = (char *)(uintptr_t)"r.0123";
	spec.dir = (char *)(uintptr_t)"/state/r";
	spec.cwd = (char *)(uintptr_t)"/work dir";
	spec.argv = words;
	spec.argc = 1;
	spec.restarts_max = 10;
	words[0] = (char *)(uintptr_t)"train";
	sup.spec = &spec;
	sup.count = 4;
	sup.selection.step = JSON_UNKNOWN;
	sup.incident.sign.step = JSON_UNKNOWN;
	sup.history.decision.before_step = JSON_UNKNOWN;
	spec.options.nproc_per_node = 4;
}

static void
found(const char *path, int64_t step)
{
	sup.selection.result = SELECTION_FOUND;
	snprintf(sup.selection.path, sizeof(sup.selection.path), "%s", path);
	sup.selection.step = step;
}

static cJSON *
order(void)
{
	cJSON *o = launch_order(&sup, 7, NULL);

	ck_assert_ptr_nonnull(o);
	ck_assert_str_eq(json_str(o, "type", ""), "start");
	ck_assert_int_eq(json_int(o, "attempt", 0), 7);
	return o;
}

/* The command's words, each in brackets. */
static const char *
command(void)
{
	static char text[2000];
	cJSON *o = order(), *w;

	text[0] = '\0';
	cJSON_ArrayForEach(w, cJSON_GetObjectItem(o, "argv"))
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "[%s]",
		    w->valuestring);
	cJSON_Delete(o);
	return text;
}

static const struct {
	const char	*word, *with, *without;
} placeholders[] = {
	{ "{holdfast.checkpoint}", "[/c/step 90]", "[]" },
	{ "--load={holdfast.checkpoint}/x", "[--load=/c/step 90/x]",
	    "[--load=/x]" },
	{ "{holdfast.step}", "[90]", "[]" },
	{ "{holdfast.attempt}", "[7]", "[7]" },
	{ "{holdfast.checkpoint_dir}", "[/work dir/ck]", "[/work dir/ck]" },
	{ "{holdfast.run_dir}", "[/state/r]", "[/state/r]" },
	{ "a{holdfast.step}b{holdfast.step}c", "[a90b90c]", "[abc]" },
	/* All others stay as they are. */
	{ "{}", "[{}]", "[{}]" },
	{ "{step}", "[{step}]", "[{step}]" },
	{ "{holdfast.other}", "[{holdfast.other}]", "[{holdfast.other}]" },
	{ "{holdfast.}", "[{holdfast.}]", "[{holdfast.}]" },
	{ "{holdfast.step", "[{holdfast.step]", "[{holdfast.step]" },
	{ "{holdfast.steps}", "[{holdfast.steps}]", "[{holdfast.steps}]" },
	{ "{Holdfast.step}", "[{Holdfast.step}]", "[{Holdfast.step}]" },
	{ "{holdfast.x{holdfast.step}}", "[{holdfast.x90}]", "[{holdfast.x}]" },
	{ "{\"a\":{\"b\":1}}", "[{\"a\":{\"b\":1}}]", "[{\"a\":{\"b\":1}}]" },
	{ "${HOME} $(id) `id` ; *", "[${HOME} $(id) `id` ; *]",
	    "[${HOME} $(id) `id` ; *]" },
	{ "", "[]", "[]" }
};

START_TEST(placeholders_are_filled)
{
	setup();
	spec.options.checkpoint_dir = "ck";
	words[0] = (char *)(uintptr_t)placeholders[_i].word;
	ck_assert_str_eq(command(), placeholders[_i].without);
	found("/c/step 90", 90);
	ck_assert_str_eq(command(), placeholders[_i].with);
}
END_TEST

/* What is put in is not looked at again. */
START_TEST(values_are_no_placeholders)
{
	setup();
	words[0] = (char *)(uintptr_t)"{holdfast.checkpoint}";
	found("/c/{holdfast.attempt}", 90);
	ck_assert_str_eq(command(), "[/c/{holdfast.attempt}]");
	/* A checkpoint that does not say its step. */
	words[0] = (char *)(uintptr_t)"<{holdfast.step}>";
	found("/c/x", JSON_UNKNOWN);
	ck_assert_str_eq(command(), "[<>]");
}
END_TEST

static const struct {
	const char	*args, *want;
} resume_args[] = {
	{ "--resume {holdfast.checkpoint}", "[train][--resume][/c/step 90]" },
	{ "--load '{holdfast.checkpoint}' -n {holdfast.step}",
	    "[train][--load][/c/step 90][-n][90]" },
	{ "  a \t b\nc  ", "[train][a][b][c]" },
	{ "'a b' \"c d\"", "[train][a b][c d]" },
	{ "a'b c'd", "[train][ab cd]" },
	{ "'\"' \"'\"", "[train][\"][']" },
	{ "'' \"\"", "[train][][]" },
	{ "a\\ b", "[train][a\\][b]" },
	{ "", "[train]" }, { "   ", "[train]" },
	{ "$HOME *", "[train][$HOME][*]" }
};

START_TEST(resume_args_are_split)
{
	setup();
	spec.options.resume_args = resume_args[_i].args;
	/* Only when there is a checkpoint. */
	ck_assert_str_eq(command(), "[train]");
	sup.selection.result = SELECTION_UNKNOWN;
	ck_assert_str_eq(command(), "[train]");
	found("/c/step 90", 90);
	ck_assert_str_eq(command(), resume_args[_i].want);
}
END_TEST

static const char *
env(const cJSON *o, const char *name)
{
	const cJSON *e = cJSON_GetObjectItem(cJSON_GetObjectItem(o, "env"), name);

	return e == NULL ? "(absent)" : cJSON_IsNull(e) ? "(removed)" :
	    e->valuestring;
}

START_TEST(resume_variables_are_set_or_taken_away)
{
	cJSON *o;

	setup();
	o = order();
	ck_assert_str_eq(env(o, "HOLDFAST_RESUME_FROM"), "(removed)");
	ck_assert_str_eq(env(o, "HOLDFAST_RESUME_STEP"), "(removed)");
	ck_assert_str_eq(env(o, "HOLDFAST_SKIP_FROM"), "(removed)");
	ck_assert_str_eq(env(o, "HOLDFAST_SKIP_TO"), "(removed)");
	ck_assert_str_eq(env(o, "HOLDFAST_RUN_ID"), "r.0123");
	ck_assert_str_eq(env(o, "HOLDFAST_ATTEMPT"), "7");
	ck_assert_str_eq(env(o, "HOLDFAST_RUN_DIR"), "/state/r");
	cJSON_Delete(o);
	found("/c/90", 90);
	spec.options.checkpoint_dir = "/c";
	o = order();
	ck_assert_str_eq(env(o, "HOLDFAST_RESUME_FROM"), "/c/90");
	ck_assert_str_eq(env(o, "HOLDFAST_RESUME_STEP"), "90");
	ck_assert_str_eq(env(o, "HOLDFAST_CHECKPOINT_DIR"), "/c");
	cJSON_Delete(o);
	found("/c/x", JSON_UNKNOWN);
	o = order();
	ck_assert_str_eq(env(o, "HOLDFAST_RESUME_FROM"), "/c/x");
	ck_assert_str_eq(env(o, "HOLDFAST_RESUME_STEP"), "(removed)");
	cJSON_Delete(o);
}
END_TEST

START_TEST(skipped_window_is_told_after_a_rollback)
{
	cJSON *o;

	setup();
	found("/c/90", 90);
	sup.history.decision.before_step = 100;
	sup.incident.sign.step = 120;
	/* Only for the attempt that the decision is for. */
	o = order();
	ck_assert_str_eq(env(o, "HOLDFAST_SKIP_FROM"), "(removed)");
	cJSON_Delete(o);
	sup.history.phase = ATTEMPT_DECIDED;
	o = order();
	ck_assert_str_eq(env(o, "HOLDFAST_SKIP_FROM"), "90");
	ck_assert_str_eq(env(o, "HOLDFAST_SKIP_TO"), "121");
	cJSON_Delete(o);
	sup.incident.sign.step = JSON_UNKNOWN;
	o = order();
	ck_assert_str_eq(env(o, "HOLDFAST_SKIP_TO"), "101");
	cJSON_Delete(o);
}
END_TEST

/* What torchrun sets for its workers, and what only has defaults. */
START_TEST(native_ranks_see_the_variables_of_torchrun)
{
	static const char *const names[][2] = { { "WORLD_SIZE", "4" },
	    { "LOCAL_WORLD_SIZE", "4" }, { "GROUP_RANK", "0" },
	    { "GROUP_WORLD_SIZE", "1" }, { "ROLE_WORLD_SIZE", "4" },
	    { "MASTER_ADDR", "127.0.0.1" }, { "TORCHELASTIC_RUN_ID", "r.0123" },
	    { "TORCHELASTIC_RESTART_COUNT", "2" },
	    { "TORCHELASTIC_MAX_RESTARTS", "10" },
	    { "TORCHELASTIC_USE_AGENT_STORE", "False" } };
	const cJSON *defaults;
	cJSON *o;
	int i;

	setup();
	sup.history.restarts = 2;
	o = order();
	for (i = 0; i < LENGTH(names); i++)
		ck_assert_str_eq(env(o, names[i][0]), names[i][1]);
	defaults = cJSON_GetObjectItem(o, "env_default");
	ck_assert_str_eq(json_str(defaults, "OMP_NUM_THREADS", ""), "1");
	ck_assert_str_eq(json_str(defaults, "PYTHONUNBUFFERED", ""), "1");
	ck_assert_str_eq(json_str(o, "port_name", ""), "MASTER_PORT");
	ck_assert_int_eq(json_int(o, "count", 0), 4);
	ck_assert_int_eq(json_int(o, "rank0", -1), 0);
	ck_assert_str_eq(json_str(o, "cwd", ""), "/work dir");
	ck_assert_str_eq(json_str(o, "log_dir", ""), "/state/r/attempts/0007");
	cJSON_Delete(o);
}
END_TEST

START_TEST(launcher_is_told_by_its_own_variables)
{
	const cJSON *defaults;
	cJSON *o;

	setup();
	sup.count = 1;
	spec.options.nproc_per_node = 0;
	spec.options.log_dir = "logs";
	unsetenv("PET_MASTER_PORT");
	o = order();
	ck_assert_str_eq(env(o, "WORLD_SIZE"), "(absent)");
	ck_assert_str_eq(env(o, "HOLDFAST_RUN_ID"), "r.0123");
	defaults = cJSON_GetObjectItem(o, "env_default");
	ck_assert_str_eq(json_str(defaults, "PET_MAX_RESTARTS", ""), "0");
	ck_assert_ptr_nonnull(json_str(defaults, "PET_TEE", NULL));
	ck_assert_str_eq(json_str(o, "log_dir", ""),
	    "/work dir/logs/attempts/0007");
	ck_assert_ptr_nonnull(strstr(json_str(defaults, "PET_LOG_DIR", ""),
	    "/work dir/logs/attempts/0007/"));
	ck_assert_str_eq(json_str(o, "port_name", ""), "PET_MASTER_PORT");
	ck_assert_int_eq(json_int(o, "rank0", 0), -1);
	cJSON_Delete(o);
	/* The user's own port is left alone. */
	setenv("PET_MASTER_PORT", "29500", 1);
	o = order();
	ck_assert_ptr_null(json_str(o, "port_name", NULL));
	cJSON_Delete(o);
}
END_TEST

START_TEST(tee_lists_stay_whole)
{
	char list[20000] = "";
	const char *got;
	cJSON *o;
	int i;

	setup();
	o = order();
	ck_assert_str_eq(json_str(o, "tee", ""), ",0,");
	cJSON_Delete(o);
	spec.options.tee = "all";
	o = order();
	ck_assert_str_eq(json_str(o, "tee", ""), "all");
	cJSON_Delete(o);
	for (i = 0; i < 3000; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%d",
		    i ? "," : "", i);
	spec.options.tee = list;
	o = order();
	got = json_str(o, "tee", "");
	ck_assert_uint_eq(strlen(got), strlen(list) + 2);
	ck_assert_ptr_nonnull(strstr(got, ",2999,"));
	cJSON_Delete(o);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_loop_test(t, placeholders_are_filled, 0, LENGTH(placeholders));
	tcase_add_test(t, values_are_no_placeholders);
	tcase_add_loop_test(t, resume_args_are_split, 0, LENGTH(resume_args));
	tcase_add_test(t, resume_variables_are_set_or_taken_away);
	tcase_add_test(t, skipped_window_is_told_after_a_rollback);
	tcase_add_test(t, native_ranks_see_the_variables_of_torchrun);
	tcase_add_test(t, launcher_is_told_by_its_own_variables);
	tcase_add_test(t, tee_lists_stay_whole);
}

int
main(void)
{
	return unit_run("supervisor_launch", add);
}
