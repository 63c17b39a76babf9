/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_latest.c - steps in names, and the newest valid checkpoint of a
 * directory.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint_fixture.h"
#include "common/clock.h"
#include "checkpoint/names.h"
#include "unit.h"

static char *top, *dir;		/* top/ckpt is the save directory */
static struct checkpoints cs;

static void
set_up(void)
{
	top = fixture_dir();
	dir = fixture_path(top, "ckpt");
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	memset(&cs, 0, sizeof(cs));
}

static void
tear_down(void)
{
	checkpoints_fini(&cs);
	free(dir);
	fixture_remove(top);
}

static void
add(const char *name, long step)
{
	char *path = fixture_path(dir, name);

	fixture_good(path, step);
	free(path);
}

/* Cuts a file to its first half. */
static void
tear(const char *name)
{
	char *path = fixture_path(dir, name);
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(truncate(path, st.st_size / 2), 0);
	free(path);
}

static void
text(const char *name, const char *bytes)
{
	fixture_text(dir, name, bytes);
}

/* The name of the newest valid one, or "". */
static const char *
latest(const struct latest_options *o, long *chosen)
{
	static const struct latest_options all = {
		.before_step = REPORT_UNKNOWN, .threads = 1 };
	const char *path;

	checkpoints_fini(&cs);
	ck_assert_int_eq(checkpoints_find(&cs, dir, 1, NULL), 0);
	ck_assert_int_eq(checkpoints_latest(&cs, o != NULL ? o : &all, chosen,
	    NULL), 0);
	if (*chosen < 0)
		return "";
	path = cs.list[*chosen].path;
	return strrchr(path, '/') + 1;
}

START_TEST(steps_in_names)
{
	static const struct {
		const char	*name;
		int64_t		 step;
	} rows[] = {
		{ "step10.pt", 10 }, { "step_10.pt", 10 }, { "step00000010.pt", 10 },
		{ "checkpoint-10", 10 }, { "iter_0000010", 10 },
		{ "epoch=0-step=200.ckpt", 200 }, { "global_step10", 10 },
		{ "model_step_500.pt", 500 }, { "ckpt_500.pt", 500 },
		{ "ep0-ba100-rank0.pt", 100 }, { "checkpoint_1_600.pt", 600 },
		{ "epoch=3-step=20-v1.ckpt", 20 }, { "model_7b_step_30.pt", 30 },
		{ "step=5-loss=0.25.ckpt", 5 }, { "100", 100 },
		{ "llama-3.1-8b-iter-40.pth", 40 }, { "epoch_3.pt", 3 },
		{ "last.pt", REPORT_UNKNOWN }, { "rank0.pt", REPORT_UNKNOWN },
		{ "step99999999999999999999.pt", REPORT_UNKNOWN },
		{ "", REPORT_UNKNOWN }
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_msg(name_step(rows[i].name) == rows[i].step,
		    "%s: %lld", rows[i].name, (long long)name_step(rows[i].name));
	ck_assert_int_eq(name_folder_step("run3"), REPORT_UNKNOWN);
	ck_assert_int_eq(name_folder_step("step_3"), 3);
}
END_TEST

START_TEST(temporary_names)
{
	static const char *const yes[] = { ".step10.pt", "step10.pt.tmp",
	    "step10.pt.tmp.4711", "step10.part", "tmp-checkpoint-90",
	    "step10.pt~", "400.orbax-checkpoint-tmp-17", "last-unfinished",
	    "iter_0000200_1_local.dirty.pt", NULL };
	static const char *const no[] = { "step10.pt", "temperature_5.pt",
	    "checkpoint-10", NULL };
	size_t i;

	for (i = 0; yes[i] != NULL; i++)
		ck_assert_msg(name_is_temporary(yes[i]), "%s", yes[i]);
	for (i = 0; no[i] != NULL; i++)
		ck_assert_msg(!name_is_temporary(no[i]), "%s", no[i]);
}
END_TEST

START_TEST(newest_valid_wins)
{
	long chosen;

	add("step_10.pt", 10);
	add("step_20.pt", 20);
	add("step_100.pt", 100);
	add("step_300.pt.tmp", 300);
	add(".step_400.pt", 400);
	tear("step_100.pt");
	ck_assert_str_eq(latest(NULL, &chosen), "step_20.pt");
	ck_assert_int_eq(chosen, 1);
	ck_assert_uint_eq(cs.n, 3);
	ck_assert_int_eq(cs.list[0].report.state, HOLDFAST_CHECKPOINT_INCOMPLETE);
	ck_assert_ptr_nonnull(cs.list[0].report.reason);
	tear("step_20.pt");
	tear("step_10.pt");
	ck_assert_str_eq(latest(NULL, &chosen), "");
	ck_assert_uint_eq(cs.n, 3);
}
END_TEST

START_TEST(step_of_the_file_is_told)
{
	long chosen;

	add("step_10.pt", 9);		/* counts from 0 inside */
	add("step_20.pt", 19);
	ck_assert_str_eq(latest(NULL, &chosen), "step_20.pt");
	ck_assert_int_eq(checkpoint_step(&cs.list[0]), 19);
	/* no number in one name: by what the files tell */
	add("best.pt", 15);
	ck_assert_str_eq(latest(NULL, &chosen), "step_20.pt");
	ck_assert_int_eq(checkpoint_step(&cs.list[1]), 15);
}
END_TEST

START_TEST(limits)
{
	struct latest_options o = { .before_step = 20, .threads = 1 };
	int64_t now = clock_wall_ns(&clock_system);
	char *sub;
	long chosen;

	add("step_10.pt", 10);
	add("step_20.pt", 20);
	ck_assert_str_eq(latest(&o, &chosen), "step_10.pt");
	ck_assert_ptr_nonnull(strstr(cs.list[0].report.reason, "not before"));
	o.before_step = 10;
	ck_assert_str_eq(latest(&o, &chosen), "");
	/* a file ends with what makes it whole, a folder may lack one */
	o.before_step = REPORT_UNKNOWN;
	o.quiet_ms = 3600000;
	o.now_ns = now;
	ck_assert_str_eq(latest(&o, &chosen), "step_20.pt");
	sub = fixture_path(dir, "step_30/");
	fixture_mkdirs(sub);
	free(sub);
	add("step_30/model.pt", 30);
	ck_assert_str_eq(latest(&o, &chosen), "step_20.pt");
	ck_assert(cs.list[0].held);
	o.now_ns = now + 2 * 3600 * NS_PER_S;
	ck_assert_str_eq(latest(&o, &chosen), "step_30");
	/* unless its marker is there */
	o.now_ns = now;
	sub = fixture_path(dir, "step_40/");
	fixture_mkdirs(sub);
	fixture_dcp(sub);
	free(sub);
	ck_assert_str_eq(latest(&o, &chosen), "step_40");
}
END_TEST

START_TEST(odd_neighbours)
{
	char *fifo = fixture_path(dir, "step_900.pt");
	char *loop = fixture_path(dir, "step_800.pt");
	char *alias = fixture_path(dir, "last.pt");
	char *sub = fixture_path(dir, "logs");
	long chosen;

	add("step_10.pt", 10);
	add("step_20\nstep_30.pt", 30);
	ck_assert_int_eq(mkfifo(fifo, 0600), 0);
	ck_assert_int_eq(symlink("step_800.pt", loop), 0);
	ck_assert_int_eq(symlink("step_10.pt", alias), 0);
	ck_assert_int_eq(mkdir(sub, 0700), 0);
	text("latest.json", "{}");
	text("log.txt", "hello");
	ck_assert_str_eq(latest(NULL, &chosen), "step_20\nstep_30.pt");
	ck_assert_int_eq(chosen, 2);
	ck_assert_int_eq(cs.list[0].report.state, HOLDFAST_CHECKPOINT_UNVERIFIED);
	ck_assert_int_eq(cs.list[1].report.state, HOLDFAST_CHECKPOINT_UNREADABLE);
	ck_assert_uint_eq(cs.n, 4);
	free(fifo);
	free(loop);
	free(alias);
	free(sub);
}
END_TEST

/* Pickles are checkpoints where nothing else is, and only with a step. */
START_TEST(pickles)
{
	long at;

	text("ckpt_10.pkl", "\x80\2}.");
	text("ckpt_20.pkl", "\x80\2}");
	text("ckpt_30.pkl", "");
	text("vocab_32000.pkl", "\x80\2}.");
	text("args.pkl", "\x80\2}.");
	ck_assert_str_eq(latest(NULL, &at), "ckpt_10.pkl");
	ck_assert_int_eq(at, 2);
	ck_assert_uint_eq(cs.n, 3);
	add("step5.pt", 5);
	ck_assert_str_eq(latest(NULL, &at), "step5.pt");
	ck_assert_uint_eq(cs.n, 1);
}
END_TEST

START_TEST(folders)
{
	char *one = fixture_path(dir, "step_10"), *two = fixture_path(dir,
	    "step_20");
	long chosen;

	ck_assert_int_eq(mkdir(one, 0700), 0);
	ck_assert_int_eq(mkdir(two, 0700), 0);
	add("step_10/model_10.pt", -1);
	add("step_10/optim.pt", -1);
	add("step_20/model_20.pt", -1);
	ck_assert_str_eq(latest(NULL, &chosen), "step_10");
	ck_assert_ptr_nonnull(strstr(cs.list[0].report.reason,
	    "optim.pt is missing"));
	add("step_20/optim.pt", -1);
	ck_assert_str_eq(latest(NULL, &chosen), "step_20");
	tear("step_20/optim.pt");
	ck_assert_str_eq(latest(NULL, &chosen), "step_10");
	free(one);
	free(two);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, steps_in_names);
	tcase_add_test(t, temporary_names);
	tcase_add_test(t, newest_valid_wins);
	tcase_add_test(t, step_of_the_file_is_told);
	tcase_add_test(t, limits);
	tcase_add_test(t, odd_neighbours);
	tcase_add_test(t, pickles);
	tcase_add_test(t, folders);
}

int
main(void)
{
	return unit_run("checkpoint_latest", add_tests);
}
