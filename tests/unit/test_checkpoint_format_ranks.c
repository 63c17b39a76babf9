/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_format_ranks.c - formats with one file a rank: DeepSpeed, Megatron,
 * InternEvo, fairseq in shards, NVRx local.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint_damage.h"
#include "common/file.h"
#include "checkpoint/grid.h"
#include "unit.h"

/* What DeepSpeed's model states tell. */
static void
model_states(const char *name, int dp, int mp, int step)
{
	char pickle[256];

	snprintf(pickle, sizeof(pickle), "(dVdp_world_size\nI%d\nsVmp_world_size\n"
	    "I%d\nsVglobal_steps\nI%d\nsVoptimizer\nNs.", dp, mp, step);
	damage_object(name, pickle);
}

static void
optim_states(const char *name, int partitions, int updates)
{
	char pickle[256];

	snprintf(pickle, sizeof(pickle), "(dVoptimizer_state_dict\n"
	    "(dVpartition_count\nI%d\nsVbase_optimizer_state\n(dVstate\n"
	    "(dI0\n(dVstep\nI%d\nsssss.", partitions, updates);
	damage_object(name, pickle);
}

START_TEST(deepspeed_zero)
{
	damage_folder("global_step10");
	model_states("global_step10/mp_rank_00_model_states.pt", 2, 1, 10);
	damage_incomplete("global_step10", "no file of optimizer states");
	optim_states("global_step10/zero_pp_rank_0_mp_rank_00_optim_states.pt", 2,
	    10);
	damage_incomplete("global_step10", "zero_pp_rank_1_mp_rank_00_optim");
	optim_states("global_step10/zero_pp_rank_1_mp_rank_00_optim_states.pt", 2,
	    10);
	damage_each("global_step10", "mp_rank_00_model_states.pt");
	damage_each("global_step10",
	    "zero_pp_rank_1_mp_rank_00_optim_states.pt");
	damage_gone("global_step10", "zero_pp_rank_0_mp_rank_00_optim_states.pt",
	    "missing of 2 ranks");
	damage_gone("global_step10", "mp_rank_00_model_states.pt",
	    "no file of model states");
	/* a shard of another step, and one of another world size */
	optim_states("global_step10/zero_pp_rank_1_mp_rank_00_optim_states.pt", 2,
	    5);
	damage_incomplete("global_step10", "updated 5 times");
	optim_states("global_step10/zero_pp_rank_1_mp_rank_00_optim_states.pt", 4,
	    10);
	damage_incomplete("global_step10", "one of 4 ranks");
	optim_states("global_step10/zero_pp_rank_1_mp_rank_00_optim_states.pt", 2,
	    10);
	/* left by a larger world: nobody reads it, whatever it holds */
	optim_states("global_step10/zero_pp_rank_2_mp_rank_00_optim_states.pt", 4,
	    5);
	damage_bytes("global_step10/zero_pp_rank_3_mp_rank_00_optim_states.pt",
	    "");
	damage_each("global_step10",
	    "zero_pp_rank_1_mp_rank_00_optim_states.pt");
	damage_gone("global_step10", "zero_pp_rank_1_mp_rank_00_optim_states.pt",
	    "missing of 2 ranks");
	/* ZeRO 1 and 2 keep a count for each group of parameters */
	damage_object("global_step10/zero_pp_rank_1_mp_rank_00_optim_states.pt",
	    "(dVoptimizer_state_dict\n(dVpartition_count\n(lI1\naI2\nass.");
	damage_valid("global_step10");
	damage_object("global_step10/zero_pp_rank_1_mp_rank_00_optim_states.pt",
	    "(dVoptimizer_state_dict\n(dVpartition_count\n(lI4\naI4\nass.");
	damage_incomplete("global_step10", "one of 4 ranks");
}
END_TEST

START_TEST(deepspeed_steps)
{
	damage_folder("global_step10");
	model_states("global_step10/zero_pp_rank_0_mp_rank_00_model_states.pt", 2,
	    1, 10);
	model_states("global_step10/zero_pp_rank_1_mp_rank_00_model_states.pt", 2,
	    1, 9);
	optim_states("global_step10/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
	    2, 10);
	optim_states("global_step10/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt",
	    2, 10);
	damage_incomplete("global_step10", "is of step 9");
	model_states("global_step10/zero_pp_rank_1_mp_rank_00_model_states.pt", 2,
	    1, 10);
	damage_valid("global_step10");
	damage_gone("global_step10", "zero_pp_rank_1_mp_rank_00_model_states.pt",
	    "missing of 2 ranks");
	ck_assert_int_eq(rename(damage_at("global_step10"),
	    damage_at("global_step20")), 0);
	damage_incomplete("global_step20", "its folder of 20");
}
END_TEST

/* Experts and pipeline layers; layers without parameters have no file. */
static void
moe_and_layers(const char *dir, int step)
{
	char name[128];
	int i, j;

	damage_folder(dir);
	for (i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "%s/mp_rank_%02d_model_states.pt", dir,
		    i);
		model_states(name, 1, 2, step);
		snprintf(name, sizeof(name),
		    "%s/zero_pp_rank_0_mp_rank_%02d_optim_states.pt", dir, i);
		optim_states(name, 1, step);
	}
	for (i = 0; i < 3; i++)
		for (j = 0; j < 2; j++) {
			snprintf(name, sizeof(name),
			    "%s/layer_0_expert_%d_mp_rank_%02d_model_states.pt",
			    dir, i, j);
			damage_good(name);
			snprintf(name, sizeof(name),
			    "%s/layer_%02d-model_%02d-model_states.pt", dir, 2 * i,
			    j);
			damage_good(name);
		}
}

START_TEST(deepspeed_experts_and_layers)
{
	char name[128];
	int i;

	moe_and_layers("ds/global_step10", 10);
	moe_and_layers("ds/global_step20", 20);
	damage_each("ds/global_step20",
	    "layer_0_expert_2_mp_rank_01_model_states.pt");
	damage_gone("ds/global_step20",
	    "layer_0_expert_1_mp_rank_00_model_states.pt", "expert_1_mp_rank_00");
	damage_gone("ds/global_step20", "layer_02-model_01-model_states.pt",
	    "layer_02-model_01-model_states.pt is missing");
	/* a whole layer: the checkpoint before tells */
	damage_newest("ds", "global_step20");
	unlink(damage_at("ds/global_step20/layer_02-model_00-model_states.pt"));
	unlink(damage_at("ds/global_step20/layer_02-model_01-model_states.pt"));
	damage_newest("ds", "global_step10");
	moe_and_layers("ds/global_step20", 20);
	damage_newest("ds", "global_step20");
	/* the experts of a layer */
	for (i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "ds/global_step20/"
		    "layer_0_expert_%d_mp_rank_00_model_states.pt", i);
		ck_assert_int_eq(unlink(damage_at(name)), 0);
		snprintf(name, sizeof(name), "ds/global_step20/"
		    "layer_0_expert_%d_mp_rank_01_model_states.pt", i);
		ck_assert_int_eq(unlink(damage_at(name)), 0);
	}
	damage_newest("ds", "global_step10");
	moe_and_layers("ds/global_step20", 20);
	/* an expert's optimizer as well */
	for (i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "ds/global_step%d/"
		    "expp_rank_%d_mp_rank_%02d_optim_states.pt",
		    i < 4 ? 10 : 20, i / 2 % 2, i % 2);
		damage_good(name);
	}
	damage_newest("ds", "global_step10");
}
END_TEST

START_TEST(deepspeed_universal)
{
	damage_folder("u/zero/w");
	damage_folder("u/zero/b");
	damage_object("u/mp_rank_00_model_states.pt",
	    "(dVparam_shapes\n(l(dVw\nI1\nsVb\nI1\nsas.");
	damage_good("u/zero/optimizer_state.pt");
	damage_good("u/zero/w/fp32.pt");
	damage_good("u/zero/w/exp_avg.pt");
	damage_good("u/zero/w/exp_avg_sq.pt");
	damage_good("u/zero/b/fp32.pt");
	damage_each("u", "zero/w/exp_avg.pt");
	damage_gone("u", "zero/w/exp_avg_sq.pt", "exp_avg_sq.pt is missing");
	damage_gone("u", "zero/b/fp32.pt", "zero/b/fp32.pt is missing");
	damage_gone("u", "zero/b", "zero/b is missing");
	damage_gone("u", "zero/optimizer_state.pt", "optimizer_state.pt");
	damage_gone("u", "mp_rank_00_model_states.pt", "no file of model");
}
END_TEST

static void
megatron_rank(const char *dir, int tp, int pp, int step)
{
	char name[128], pickle[256];

	snprintf(name, sizeof(name), "%s/mp_rank_%02d_%03d", dir, tp, pp);
	damage_folder(name);
	snprintf(name, sizeof(name), "%s/mp_rank_%02d_%03d/model_optim_rng.pt",
	    dir, tp, pp);
	snprintf(pickle, sizeof(pickle), "(dViteration\nI%d\nsVargs\n"
	    "(dVtensor_model_parallel_size\nI2\nss.", step);
	damage_object(name, pickle);
}

START_TEST(megatron_legacy)
{
	const char *dir = "m/iter_0000100";
	int i;

	for (i = 0; i < 4; i++)
		megatron_rank(dir, i / 2, i % 2, 100);
	damage_each(dir, "mp_rank_01_001/model_optim_rng.pt");
	damage_gone(dir, "mp_rank_01_001/model_optim_rng.pt", "is missing");
	damage_gone(dir, "mp_rank_01_000", "3 rank folders of 2 x 2");
	/* of another step, one and all */
	megatron_rank(dir, 1, 1, 50);
	damage_incomplete(dir, "of step 50");
	for (i = 0; i < 4; i++)
		megatron_rank(dir, i / 2, i % 2, 50);
	damage_incomplete(dir, "its name tells 100");
	for (i = 0; i < 4; i++)
		megatron_rank(dir, i / 2, i % 2, 100);
	damage_valid(dir);
	megatron_rank(dir, 2, 0, 100);
	megatron_rank(dir, 2, 1, 100);
	/* which is what a larger world left: nobody reads it */
	damage_bytes("m/iter_0000100/mp_rank_02_001/model_optim_rng.pt", "");
	damage_valid(dir);
	damage_gone(dir, "mp_rank_01_000", "3 rank folders of 2 x 2");
	/* what only the arguments tell */
	megatron_rank("n/iter_0000100", 0, 0, 100);
	megatron_rank("n/iter_0000100", 0, 1, 100);
	damage_incomplete("n/iter_0000100", "2 rank folders of 2 x 2");
	/* saves that are not kept count as well */
	for (i = 0; i < 4; i++)
		megatron_rank("p/non_persistent/iter_0000120", i / 2, i % 2, 120);
	damage_newest("p", "non_persistent/iter_0000120");
}
END_TEST

/* One number in a name: tensor; two: and pipeline, or experts. */
static void
megatron_sizes(const char *name, int tp, int pp, int ep)
{
	char folder[64], path[128], pickle[256];

	snprintf(folder, sizeof(folder), "iter_0000100/%s", name);
	damage_folder(folder);
	snprintf(path, sizeof(path), "%s/model_optim_rng.pt", folder);
	snprintf(pickle, sizeof(pickle), "(dViteration\nI100\nsVargs\n"
	    "(dVtensor_model_parallel_size\nI%d\ns"
	    "Vpipeline_model_parallel_size\nI%d\ns"
	    "Vexpert_model_parallel_size\nI%d\nss.", tp, pp, ep);
	damage_object(path, pickle);
}

START_TEST(megatron_experts)
{
	const char *dir = "iter_0000100";
	char name[32];
	int i;

	for (i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "mp_rank_%02d_%03d", i / 4, i % 4);
		megatron_sizes(name, 2, 1, 4);
	}
	damage_valid(dir);
	damage_gone(dir, "mp_rank_00_003", "7 rank folders of 2 x 4");
	damage_gone(dir, "mp_rank_01_002", "7 rank folders of 2 x 4");
	/* the others were written by another world */
	megatron_sizes("mp_rank_00_000", 2, 1, 2);
	damage_incomplete(dir, "is of 2 x 1 x 4 ranks");
}
END_TEST

/* A kind of file that all ranks lost is missed when the checkpoint before has it. */
START_TEST(megatron_optimizer)
{
	int i;

	for (i = 0; i < 8; i++)
		megatron_rank(i < 4 ? "m/iter_0000100" : "m/iter_0000200",
		    i / 2 % 2, i % 2, i < 4 ? 100 : 200);
	damage_newest("m", "iter_0000200");
	damage_good("m/iter_0000100/mp_rank_00_000/distrib_optim.pt");
	damage_good("m/iter_0000100/mp_rank_00_001/distrib_optim.pt");
	damage_good("m/iter_0000100/mp_rank_01_000/distrib_optim.pt");
	damage_good("m/iter_0000100/mp_rank_01_001/distrib_optim.pt");
	damage_newest("m", "iter_0000100");
}
END_TEST

/* Without arguments in the files, the checkpoint before tells how many ranks. */
START_TEST(megatron_uncounted)
{
	char name[64];
	int i;

	for (i = 0; i < 7; i++) {
		snprintf(name, sizeof(name), "m/iter_0000%d/mp_rank_%02d",
		    i < 4 ? 100 : 200, i % 4);
		damage_folder(name);
		snprintf(name, sizeof(name), "m/iter_0000%d/mp_rank_%02d/"
		    "model_optim_rng.pt", i < 4 ? 100 : 200, i % 4);
		damage_good(name);
	}
	damage_newest("m", "iter_0000100");
	damage_folder("m/iter_0000200/mp_rank_03");
	damage_good("m/iter_0000200/mp_rank_03/model_optim_rng.pt");
	damage_newest("m", "iter_0000200");
}
END_TEST

START_TEST(internevo)
{
	damage_folder("100");
	damage_good("100/model_tp0_pp0.pt");
	damage_good("100/model_tp1_pp0.pt");
	damage_good("100/optimizer_tp0_pp0_zo0.pt");
	damage_good("100/optimizer_tp0_pp0_zo1.pt");
	damage_object("100/context.pt", "(dVstep_count\nI100\ns.");
	damage_incomplete("100", "no .step flag");
	damage_bytes("100/100.step", "");
	damage_each("100", "model_tp1_pp0.pt");
	damage_gone("100", "model_tp0_pp0.pt", "model_tp0_pp0.pt is missing");
	damage_gone("100", "optimizer_tp0_pp0_zo0.pt", "zo0.pt is missing");
	damage_gone("100", "context.pt", "context.pt is missing");
	damage_object("100/context.pt", "(dVstep_count\nI90\ns.");
	damage_incomplete("100", "context.pt is of step 90");
	damage_object("100/context.pt", "(dVstep_count\nI100\ns.");
	damage_bytes("100/90.step", "");
	damage_incomplete("100", "flags of several steps");
	/* the last rank, and what has no rank: the checkpoint before tells */
	unlink(damage_at("100/90.step"));
	damage_folder("200");
	damage_good("200/model_tp0_pp0.pt");
	damage_good("200/model_tp1_pp0.pt");
	damage_good("200/optimizer_tp0_pp0_zo0.pt");
	damage_object("200/context.pt", "(dVstep_count\nI200\ns.");
	damage_bytes("200/200.step", "");
	damage_newest("", "100");
	damage_good("200/optimizer_tp0_pp0_zo1.pt");
	damage_newest("", "200");
	damage_good("100/schedulder.pt");
	damage_newest("", "100");
}
END_TEST

static void
shard(const char *name, int step)
{
	char pickle[128];

	snprintf(pickle, sizeof(pickle),
	    "(dVoptimizer_history\n(l(dVnum_updates\nI%d\nsas.", step);
	damage_object(name, pickle);
}

START_TEST(fairseq_shards)
{
	char name[128];
	int step, i;

	damage_folder("f");
	for (step = 500; step <= 600; step += 100)
		for (i = 0; i < 3; i++) {
			snprintf(name, sizeof(name), "f/checkpoint_1_%d-shard%d.pt",
			    step, i);
			shard(name, step);
		}
	damage_newest("f", "checkpoint_1_600-shard0.pt");
	damage_valid("f/checkpoint_1_600-shard1.pt");
	/* any of them makes the whole set invalid */
	shard("f/checkpoint_1_600-shard2.pt", 500);
	damage_incomplete("f/checkpoint_1_600-shard0.pt", "is of step 500");
	damage_newest("f", "checkpoint_1_500-shard0.pt");
	/* the last one: the set before has it */
	unlink(damage_at("f/checkpoint_1_600-shard2.pt"));
	damage_newest("f", "checkpoint_1_500-shard0.pt");
	damage_bytes("f/checkpoint_1_600-shard2.pt", "");
	damage_incomplete("f/checkpoint_1_600-shard0.pt", "is empty");
	shard("f/checkpoint_1_600-shard2.pt", 600);
	damage_newest("f", "checkpoint_1_600-shard0.pt");
	unlink(damage_at("f/checkpoint_1_600-shard1.pt"));
	damage_incomplete("f/checkpoint_1_600-shard0.pt", "shard1.pt is missing");
	shard("f/x-model_part-0-shard0.pt", 1);
	shard("f/x-model_part-0-shard1.pt", 1);
	shard("f/x-model_part-1-shard0.pt", 1);
	damage_incomplete("f/x-model_part-0-shard0.pt",
	    "-model_part-1-shard1.pt is missing");
}
END_TEST

static void
local(const char *name, int step)
{
	char pickle[64];

	snprintf(pickle, sizeof(pickle), "(dViteration\nI%d\ns.", step);
	damage_object(name, pickle);
}

START_TEST(nvrx_local)
{
	damage_folder("s/0");
	damage_folder("s/1");
	local("s/0/iter_0000100_0_local.pt", 100);
	local("s/1/iter_0000100_1_local.pt", 100);
	local("s/0/iter_0000200_0_local.pt", 200);
	local("s/1/iter_0000200_1_local.dirty.pt", 200);
	damage_newest("s", "0/iter_0000100_0_local.pt");
	damage_incomplete("s/0/iter_0000200_0_local.pt", "no file of rank 1");
	/* a copy of it in another folder counts */
	local("s/0/iter_0000200_1_local.pt", 200);
	damage_newest("s", "0/iter_0000200_0_local.pt");
	local("s/0/iter_0000200_1_local.pt", 100);
	damage_incomplete("s/0/iter_0000200_0_local.pt", "is of step 100");
	damage_bytes("s/0/iter_0000200_1_local.pt", "");
	damage_newest("s", "0/iter_0000100_0_local.pt");
}
END_TEST

START_TEST(grids)
{
	static const char *const have[] = { "a0_b0", "a0_b1", "a1_b0", "a1_b1",
	    "a2_b0", "x", "a1_b", "a99999999999_b0", NULL };
	struct grid g = { .pattern = "a#_b#" };
	struct names names = {0};
	struct report r;
	size_t i;

	for (i = 0; have[i] != NULL; i++)
		ck_assert_int_eq(names_add(&names, have[i]), 0);
	names_sort(&names);
	report_init(&r);
	ck_assert_uint_eq(grid_check(&names, &g, &r), 5);
	ck_assert_str_eq(r.reason, "a2_b1 is missing");
	report_fini(&r);
	report_init(&r);
	g.pattern = "c#";
	ck_assert_uint_eq(grid_check(&names, &g, &r), 0);
	ck_assert_ptr_null(r.reason);
	report_fini(&r);
	names_fini(&names);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_checked_fixture(t, damage_set_up, damage_tear_down);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, deepspeed_zero);
	tcase_add_test(t, deepspeed_steps);
	tcase_add_test(t, deepspeed_experts_and_layers);
	tcase_add_test(t, deepspeed_universal);
	tcase_add_test(t, megatron_legacy);
	tcase_add_test(t, megatron_experts);
	tcase_add_test(t, megatron_optimizer);
	tcase_add_test(t, megatron_uncounted);
	tcase_add_test(t, internevo);
	tcase_add_test(t, fairseq_shards);
	tcase_add_test(t, nvrx_local);
	tcase_add_test(t, grids);
}

int
main(void)
{
	return unit_run("checkpoint_format_ranks", add_tests);
}
