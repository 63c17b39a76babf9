/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_supervisor_run_spec.c - what a run is, on disk and back.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json.h"
#include "supervisor/run_spec.h"
#include "unit.h"

#define LENGTH(a)	((int)(sizeof(a) / sizeof((a)[0])))

static char *command[] = { (char *)(uintptr_t)"python",
    (char *)(uintptr_t)"train.py", (char *)(uintptr_t)"--text=a 'b' \"c\"",
    (char *)(uintptr_t)"", (char *)(uintptr_t)"\xc3\xa9", NULL };

static void
defaults(struct run_options *o)
{
	*o = (struct run_options){0};
	ck_assert_int_eq(opt_defaults(run_option_table, o, NULL), 0);
}

static struct run_spec *
make(const struct run_options *o)
{
	struct run_spec *s = NULL;
	struct err err = {0};

	ck_assert_msg(run_spec_new(o, 5, command, &s, &err) == 0, "%s", err.text);
	return s;
}

/* Every option by its row. */
static void
check_options(const struct run_options *a, const struct run_options *b)
{
	const struct opt *row;

	for (row = run_option_table; row->name != NULL; row++) {
		const char *x = (const char *)a + row->offset;
		const char *y = (const char *)b + row->offset;
		const char *tx, *ty;

		if (row->type == OPT_FLAG) {
			ck_assert_int_eq(*(const bool *)x, *(const bool *)y);
		} else if (row->type == OPT_TEXT || row->type == OPT_CHOICE) {
			tx = *(const char *const *)x;
			ty = *(const char *const *)y;
			ck_assert_msg((tx == NULL) == (ty == NULL), "%s",
			    row->name);
			if (tx != NULL)
				ck_assert_str_eq(tx, ty);
		} else {
			ck_assert_int_eq(*(const int64_t *)x,
			    *(const int64_t *)y);
		}
	}
}

START_TEST(saved_spec_loads_the_same)
{
	struct run_options o;
	struct run_spec *a, *b = NULL;
	struct err err = {0};
	struct stat st;
	bool missing;
	int i;

	defaults(&o);
	o.name = "run-1";
	o.state_dir = unit_dir();
	o.nproc_per_node = 8;
	o.checkpoint_dir = "ckpt";
	o.max_restarts = "7/2h";
	o.grace_ms = 12345;
	o.resume_args = "--load '{holdfast.checkpoint}'";
	o.tee = "0,3";
	o.rules_lenient = true;
	o.quarantine = "never";
	a = make(&o);
	ck_assert_int_eq(a->restarts_max, 7);
	ck_assert_int_eq(a->window_ms, 7200000);
	ck_assert_int_eq(mkdir(a->dir, 0700), 0);
	ck_assert_int_eq(run_spec_load(a->dir, &b, &missing, &err), -1);
	ck_assert(missing);
	ck_assert_int_eq(run_spec_save(a, &err), 0);
	ck_assert_int_eq(stat(unit_path(a->dir, "run.json"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_msg(run_spec_load(a->dir, &b, &missing, &err) == 0, "%s",
	    err.text);
	ck_assert(!missing);
	check_options(&a->options, &b->options);
	ck_assert_str_eq(a->run_id, b->run_id);
	ck_assert_str_eq(a->dir, b->dir);
	ck_assert_str_eq(a->socket_dir, b->socket_dir);
	ck_assert_str_eq(a->cwd, b->cwd);
	ck_assert_uint_eq(a->born_ticks, b->born_ticks);
	ck_assert_uint_gt(b->born_ticks, 0);
	ck_assert_int_eq(b->restarts_max, 7);
	ck_assert_int_eq(b->window_ms, 7200000);
	ck_assert_int_eq(b->argc, 5);
	for (i = 0; i < 5; i++)
		ck_assert_str_eq(b->argv[i], command[i]);
	ck_assert_ptr_null(b->argv[5]);
	ck_assert(run_spec_same_command(a, b));
	run_spec_free(a);
	run_spec_free(b);
	run_spec_free(NULL);
}
END_TEST

START_TEST(spec_owns_its_texts)
{
	char name[] = "first", dir[PATH_MAX];
	struct run_options o;
	struct run_spec *s;

	defaults(&o);
	snprintf(dir, sizeof(dir), "%s", unit_dir());
	o.name = name;
	o.state_dir = dir;
	s = make(&o);
	memset(name, 'x', 5);
	memset(dir, 'x', 5);
	ck_assert_str_eq(s->options.name, "first");
	ck_assert_int_eq(s->options.state_dir[0], '/');
	run_spec_free(s);
}
END_TEST

static const struct {
	const char	*name, *text, *want;
} wrong[] = {
	{ "name", "", "--name takes" }, { "name", ".x", "(not '.x')" },
	{ "name", "a/b", "--name takes" }, { "name", "a b", "--name takes" },
	{ "nnodes", "2", "--nnodes 2" }, { "nnodes", "1:4", "not implemented" },
	{ "tee", "", "--tee takes" }, { "tee", "some", "--tee takes" },
	{ "tee", "0;3", "--tee takes" },
	{ "max-restarts", "", "--max-restarts takes" },
	{ "max-restarts", "-1", "--max-restarts takes" },
	{ "max-restarts", "x", "(not 'x')" },
	{ "max-restarts", "10/", "--max-restarts takes" },
	{ "max-restarts", "10/0", "--max-restarts takes" },
	{ "max-restarts", "10/x", "--max-restarts takes" },
	{ "max-restarts", "/24h", "--max-restarts takes" },
	{ "max-restarts", "10/24h/2", "--max-restarts takes" },
	{ "max-restarts", "1025", "--max-restarts takes" },
	{ "max-restarts", "99999999999999999999999999", "--max-restarts takes" }
};

START_TEST(wrong_values_are_refused)
{
	struct run_options o;
	struct run_spec *s = NULL;
	struct err err = {0};

	defaults(&o);
	ck_assert_int_eq(opt_set(run_option_table, &o, wrong[_i].name,
	    wrong[_i].text, NULL), 0);
	ck_assert_int_eq(run_spec_new(&o, 5, command, &s, &err), -1);
	ck_assert_int_eq(err.code, ERR_USAGE);
	ck_assert_msg(strstr(err.text, wrong[_i].want) != NULL, "%s", err.text);
	ck_assert_ptr_null(s);
}
END_TEST

START_TEST(budgets_are_read)
{
	static const struct {
		const char	*text;
		int64_t		 max, window_ms;
	} rows[] = { { "0", 0, 0 }, { "3", 3, 0 }, { "10/24h", 10, 86400000 },
	    { "1024", 1024, 0 }, { "5/90", 5, 90000 } };
	struct run_options o;
	struct run_spec *s;
	int i;

	for (i = 0; i < LENGTH(rows); i++) {
		defaults(&o);
		o.max_restarts = rows[i].text;
		s = make(&o);
		ck_assert_int_eq(s->restarts_max, rows[i].max);
		ck_assert_int_eq(s->window_ms, rows[i].window_ms);
		run_spec_free(s);
	}
}
END_TEST

START_TEST(long_commands_are_refused)
{
	char *word = malloc(40000), *argv[2] = { word, NULL };
	struct run_options o;
	struct run_spec *s = NULL;
	struct err err = {0};

	memset(word, 'a', 39999);
	word[39999] = '\0';
	defaults(&o);
	ck_assert_int_eq(run_spec_new(&o, 1, argv, &s, &err), -1);
	ck_assert_int_eq(err.code, ERR_LIMIT);
	free(word);
}
END_TEST

static const char *const files[] = { "", "{", "[]", "{}",
    "{\"run_id\":\"a\",\"socket_dir\":\"/s\",\"cwd\":\"/\"}",
    "{\"run_id\":\"a\",\"socket_dir\":\"/s\",\"cwd\":\"/\",\"argv\":[]}",
    "{\"run_id\":\"a\",\"socket_dir\":\"/s\",\"argv\":[\"x\"]}",
    "{\"run_id\":5,\"socket_dir\":\"/s\",\"cwd\":\"/\",\"argv\":[\"x\"]}",
    "{\"run_id\":\"a\",\"socket_dir\":\"/s\",\"cwd\":\"/\",\"argv\":[\"x\"],"
    "\"options\":{\"name\":\"a/b\"}}",
    "{\"run_id\":\"a\",\"socket_dir\":\"/s\",\"cwd\":\"/\",\"argv\":[\"x\"],"
    "\"options\":{\"max-restarts\":\"many\"}}" };

START_TEST(broken_files_are_refused)
{
	const char *dir = unit_dir();
	struct run_spec *s = NULL;
	struct err err = {0};
	bool missing = true;

	unit_write(unit_path(dir, "run.json"), files[_i], strlen(files[_i]));
	ck_assert_int_eq(run_spec_load(dir, &s, &missing, &err), -1);
	ck_assert(!missing);
	ck_assert_ptr_null(s);
	ck_assert_ptr_nonnull(strstr(err.text, "run.json"));
}
END_TEST

START_TEST(unreadable_file_is_not_a_missing_one)
{
	const char *dir = unit_dir();
	struct run_spec *s = NULL;
	struct err err = {0};
	bool missing = true;

	ck_assert_int_eq(mkdir(unit_path(dir, "run.json"), 0700), 0);
	errno = ENOENT;
	ck_assert_int_eq(run_spec_load(dir, &s, &missing, &err), -1);
	ck_assert(!missing);
	ck_assert_ptr_nonnull(strstr(err.text, "run.json"));
}
END_TEST

/* An absent member has the default of the option. */
START_TEST(files_of_an_older_version)
{
	static const char text[] = "{\"run_id\":\"a.1\",\"socket_dir\":\"/s\","
	    "\"cwd\":\"/w\",\"argv\":[\"x\",5],\"options\":{\"grace\":7}}";
	const char *dir = unit_dir();
	struct run_options o;
	struct run_spec *s = NULL;

	unit_write(unit_path(dir, "run.json"), text, strlen(text));
	ck_assert_int_eq(run_spec_load(dir, &s, NULL, NULL), 0);
	defaults(&o);
	o.grace_ms = 7;
	check_options(&s->options, &o);
	ck_assert_str_eq(s->argv[1], "");
	/* Another boot: start times of then mean nothing. */
	ck_assert_uint_eq(s->born_ticks, 0);
	run_spec_free(s);
}
END_TEST

START_TEST(same_command_is_words_and_place)
{
	struct run_options o;
	struct run_spec *a, *b = NULL;
	char *other[] = { command[0], (char *)(uintptr_t)"eval.py", command[2],
	    command[3], command[4], NULL };

	defaults(&o);
	a = make(&o);
	ck_assert_int_eq(run_spec_new(&o, 4, command, &b, NULL), 0);
	ck_assert(!run_spec_same_command(a, b));
	run_spec_free(b);
	ck_assert_int_eq(run_spec_new(&o, 5, other, &b, NULL), 0);
	ck_assert(!run_spec_same_command(a, b));
	run_spec_free(b);
	ck_assert_int_eq(chdir(unit_dir()), 0);
	b = make(&o);
	ck_assert(!run_spec_same_command(a, b));
	ck_assert_str_ne(a->run_id, b->run_id);
	ck_assert_str_ne(a->socket_dir, b->socket_dir);
	ck_assert_int_eq(chdir(a->cwd), 0);
	run_spec_free(b);
	b = make(&o);
	ck_assert(run_spec_same_command(a, b));
	run_spec_free(a);
	run_spec_free(b);
}
END_TEST

static const struct {
	const char	*words[6];
	bool		 want;
} launchers[] = {
	{ { "torchrun", "train.py" }, true },
	{ { "/opt/env/bin/torchrun", "train.py" }, true },
	{ { "deepspeed", "train.py" }, true },
	{ { "accelerate", "launch", "train.py" }, true },
	{ { "mpirun", "-n", "4", "python" }, true },
	{ { "srun", "python", "train.py" }, true },
	{ { "python", "-m", "torch.distributed.run", "x" }, true },
	{ { "python3", "-m", "torch.distributed.launch", "x" }, true },
	{ { "python", "-u", "-m", "torch.distributed.run" }, true },
	{ { "numactl", "-N0", "torchrun", "x" }, true },
	{ { "python", "train.py" }, false },
	{ { "python", "-m", "mytrainer" }, false },
	{ { "python", "torch.distributed.run" }, false },
	{ { "torchrunner" }, false }, { { "my-srun" }, false },
	{ { "python", "train.py", "--launcher", "x", "torchrun" }, false }
};

START_TEST(launchers_are_known)
{
	struct run_options o;
	struct run_spec *s = NULL;
	char *argv[7] = { NULL };
	int n = 0;

	while (n < 6 && launchers[_i].words[n] != NULL) {
		argv[n] = (char *)(uintptr_t)launchers[_i].words[n];
		n++;
	}
	defaults(&o);
	ck_assert_int_eq(run_spec_new(&o, n, argv, &s, NULL), 0);
	ck_assert_int_eq(run_spec_is_launcher(s), launchers[_i].want);
	run_spec_free(s);
}
END_TEST

START_TEST(places_follow_options_and_environment)
{
	struct run_options o;
	struct run_spec *s;
	char want[PATH_MAX + 32], cwd[PATH_MAX], *path;

	unsetenv("HOLDFAST_STATE_DIR");
	unsetenv("HOLDFAST_RUNTIME_DIR");
	ck_assert_ptr_nonnull(getcwd(cwd, sizeof(cwd)));
	defaults(&o);
	s = make(&o);
	snprintf(want, sizeof(want), "%s/.holdfast/default", cwd);
	ck_assert_str_eq(s->dir, want);
	ck_assert_str_eq(s->cwd, cwd);
	snprintf(want, sizeof(want), "/tmp/holdfast-%u/", (unsigned)geteuid());
	ck_assert_int_eq(strncmp(s->socket_dir, want, strlen(want)), 0);
	path = run_spec_path(s, "lock");
	ck_assert_int_eq(strcmp(path + strlen(s->dir), "/lock"), 0);
	free(path);
	run_spec_free(s);
	setenv("HOLDFAST_STATE_DIR", "/from/env", 1);
	setenv("HOLDFAST_RUNTIME_DIR", "/run/me", 1);
	s = make(&o);
	ck_assert_str_eq(s->dir, "/from/env/default");
	ck_assert_int_eq(strncmp(s->socket_dir, "/run/me/", 8), 0);
	/* A socket path has to be short (unix(7)). */
	ck_assert_uint_lt(strlen(s->socket_dir), 60);
	run_spec_free(s);
	o.state_dir = "/from/option";
	s = make(&o);
	ck_assert_str_eq(s->dir, "/from/option/default");
	run_spec_free(s);
}
END_TEST

START_TEST(socket_dir_is_ours_alone)
{
	const char *dir = unit_dir();
	struct run_options o;
	struct run_spec *s;
	struct err err = {0};
	struct stat st;

	setenv("HOLDFAST_RUNTIME_DIR", dir, 1);
	defaults(&o);
	s = make(&o);
	ck_assert_msg(run_spec_make_socket_dir(s, &err) == 0, "%s", err.text);
	ck_assert_int_eq(run_spec_make_socket_dir(s, &err), 0);
	ck_assert_int_eq(stat(s->socket_dir, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	ck_assert_int_eq(chmod(s->socket_dir, 0755), 0);
	ck_assert_int_eq(run_spec_make_socket_dir(s, &err), -1);
	ck_assert_int_eq(rmdir(s->socket_dir), 0);
	/* A link somebody else laid there is not followed. */
	ck_assert_int_eq(symlink(unit_dir(), s->socket_dir), 0);
	ck_assert_int_eq(run_spec_make_socket_dir(s, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, s->socket_dir));
	run_spec_free(s);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_test(t, saved_spec_loads_the_same);
	tcase_add_test(t, spec_owns_its_texts);
	tcase_add_loop_test(t, wrong_values_are_refused, 0, LENGTH(wrong));
	tcase_add_test(t, budgets_are_read);
	tcase_add_test(t, long_commands_are_refused);
	tcase_add_loop_test(t, broken_files_are_refused, 0, LENGTH(files));
	tcase_add_test(t, unreadable_file_is_not_a_missing_one);
	tcase_add_test(t, files_of_an_older_version);
	tcase_add_test(t, same_command_is_words_and_place);
	tcase_add_loop_test(t, launchers_are_known, 0, LENGTH(launchers));
	tcase_add_test(t, places_follow_options_and_environment);
	tcase_add_test(t, socket_dir_is_ours_alone);
}

int
main(void)
{
	return unit_run("supervisor_run_spec", add);
}
