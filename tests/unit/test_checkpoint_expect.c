/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_expect.c - a checkpoint held against its neighbours: in a list, alone,
 * and when what is saved has changed.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint_damage.h"
#include "checkpoint/expect.h"
#include "checkpoint/names.h"
#include "unit.h"

/* step_N/ with model.pt, one file of each of the ranks, and optim.pt if wanted. */
static void
save(const char *dir, int step, int ranks, bool optim)
{
	char name[64];
	int i;

	snprintf(name, sizeof(name), "%s/step_%d", dir, step);
	damage_folder(name);
	snprintf(name, sizeof(name), "%s/step_%d/model.pt", dir, step);
	damage_good(name);
	for (i = 0; i < ranks; i++) {
		snprintf(name, sizeof(name), "%s/step_%d/rank_%d.pt", dir, step, i);
		damage_good(name);
	}
	snprintf(name, sizeof(name), "%s/step_%d/optim.pt", dir, step);
	if (optim)
		damage_good(name);
}

/* The state of one that was named alone, as verify tells it. */
static void
alone(const char *name, enum holdfast_checkpoint_state want, const char *reason)
{
	struct checkpoint_options o = { .threads = 1 };
	struct checkpoint c;
	const char *why;

	ck_assert_int_eq(checkpoint_look(&c, damage_at(name)), 0);
	ck_assert_int_eq(expect_beside(&c, 1, 1), 0);
	ck_assert_int_eq(checkpoint_check(&c, 1, &o, NULL, NULL, NULL), 0);
	why = c.report.reason != NULL ? c.report.reason : "";
	ck_assert_msg(c.report.state == want && strstr(why, reason) != NULL,
	    "%s: %d, %s", name, (int)c.report.state, why);
	checkpoint_fini(&c);
}

/* How many of the list are valid. */
static size_t
valid_in(const char *dir)
{
	struct checkpoints cs;
	size_t i, n = 0;

	ck_assert_int_eq(checkpoints_find(&cs, damage_at(dir), 1, NULL), 0);
	for (i = 0; i < cs.n; i++)
		n += cs.list[i].report.state == HOLDFAST_CHECKPOINT_VALID;
	checkpoints_fini(&cs);
	return n;
}

START_TEST(one_alone)
{
	save("a", 10, 2, true);
	save("a", 20, 2, true);
	alone("a/step_20", HOLDFAST_CHECKPOINT_VALID, "");
	unlink(damage_at("a/step_20/optim.pt"));
	alone("a/step_20", HOLDFAST_CHECKPOINT_INCOMPLETE,
	    "optim.pt is missing, which step 10 has");
	alone("a/step_10", HOLDFAST_CHECKPOINT_VALID, "");
	ck_assert_uint_eq(valid_in("a"), 1);
	/* what has another name is none of its business */
	save("b", 20, 2, false);
	damage_folder("b/other_10");
	damage_good("b/other_10/model.pt");
	damage_good("b/other_10/optim.pt");
	alone("b/step_20", HOLDFAST_CHECKPOINT_VALID, "");
}
END_TEST

START_TEST(last_rank)
{
	save("a", 10, 4, true);
	save("a", 20, 3, true);
	damage_newest("a", "step_10");
	alone("a/step_20", HOLDFAST_CHECKPOINT_INCOMPLETE, "rank_3.pt is missing");
	/* written after all */
	save("a", 20, 4, true);
	damage_newest("a", "step_20");
}
END_TEST

/* Two in a row agree: the world became smaller, or something is no longer saved. */
START_TEST(change)
{
	bool optim = _i != 0;

	save("a", 10, 4, true);
	save("a", 20, 2, optim);
	damage_newest("a", "step_10");
	save("a", 30, 2, optim);
	damage_newest("a", "step_30");
	ck_assert_uint_eq(valid_in("a"), 3);
	alone("a/step_20", HOLDFAST_CHECKPOINT_VALID, "");
	save("a", 40, 1, optim);
	damage_newest("a", "step_30");
	/* it is not the same that is absent */
	save("b", 10, 4, true);
	save("b", 20, 2, true);
	save("b", 30, 3, true);
	damage_newest("b", "step_10");
	save("b", 40, 4, true);
	damage_newest("b", "step_40");
	ck_assert_uint_eq(valid_in("b"), 2);
}
END_TEST

/* What the files themselves count is not compared: the world may shrink. */
START_TEST(counted)
{
	static const char *const names[] = { "__3_0.distcp",
	    "w/zero_pp_rank_3_mp_rank_00_optim_states.pt",
	    "bf16_zero_pp_rank_3_mp_rank_00_optim_states.pt",
	    "mp_rank_03_model_states.pt", "expp_rank_3_mp_rank_00_optim_states.pt",
	    "layer_3_expert_0_mp_rank_00_model_states.pt", "rank_3.pt", NULL };
	struct checkpoint list[2];
	struct checkpoints cs = { .list = list, .n = 2 };
	size_t i;

	for (i = 0; names[i] != NULL; i++) {
		save("a", 10, 0, false);
		save("a", 20, 0, false);
		ck_assert_int_eq(checkpoint_look(&list[0],
		    damage_at("a/step_20")), 0);
		ck_assert_int_eq(checkpoint_look(&list[1],
		    damage_at("a/step_10")), 0);
		ck_assert_ptr_nonnull(parts_add(&list[1].parts, "x", names[i]));
		ck_assert_int_eq(expect_same_files(&cs), 0);
		ck_assert_msg(report_is_bad(&list[0].report) == (i >= 4), "%s",
		    names[i]);
		checkpoint_fini(&list[0]);
		checkpoint_fini(&list[1]);
	}
}
END_TEST

START_TEST(kinds)
{
	static const char *const want[][2] = { { "a/iter_0000100", "iter_#" },
	    { "12", "#" }, { "x1y22z", "x#y#z" }, { "", "" }, { "a/b", "b" } };
	size_t i;

	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		char *kind = name_kind(want[i][0]);

		ck_assert_str_eq(kind, want[i][1]);
		free(kind);
	}
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_checked_fixture(t, damage_set_up, damage_tear_down);
	tcase_add_test(t, one_alone);
	tcase_add_test(t, last_rank);
	tcase_add_loop_test(t, change, 0, 2);
	tcase_add_test(t, counted);
	tcase_add_test(t, kinds);
}

int
main(void)
{
	return unit_run("checkpoint_expect", add_tests);
}
