/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_format_shards.c - formats that say in a file of their own what
 * belongs to them: distributed checkpoints and those around them, indexes of Hugging
 * Face, Orbax; and accelerate.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint_damage.h"
#include "common/file.h"
#include "unit.h"

START_TEST(dcp)
{
	struct stat st;

	fixture_dcp(damage_at("d"));
	damage_each("d", "__0_0.distcp");
	damage_each("d", ".metadata");
	damage_gone("d", "__1_0.distcp", "__1_0.distcp is missing");
	damage_gone("d", ".metadata", "no .metadata");
	ck_assert_int_eq(stat(damage_at("d/__0_0.distcp"), &st), 0);
	fixture_dcp_metadata(damage_at("d"), (size_t)st.st_size, 1);
	damage_incomplete("d", "1 of 2 pieces of w");
	fixture_dcp_metadata(damage_at("d"), (size_t)st.st_size, 0);
	ck_assert_int_ne(fixture_state(damage_at("d"), NULL, 0),
	    HOLDFAST_CHECKPOINT_VALID);
	fixture_dcp_metadata(damage_at("d"), (size_t)st.st_size + 1, 2);
	damage_incomplete("d", "bytes of");
	fixture_dcp_metadata(damage_at("d"), (size_t)st.st_size - 1, 2);
	damage_expect("d", HOLDFAST_CHECKPOINT_CORRUPT, "more than .metadata");
	/* a rank of a larger world before */
	fixture_dcp_metadata(damage_at("d"), (size_t)st.st_size, 2);
	damage_good("d/__2_0.distcp");
	damage_valid("d");
}
END_TEST

/* A file of the right size whose items are not what they were. */
START_TEST(dcp_items)
{
	struct buf b = {0};

	fixture_dcp(damage_at("d"));
	ck_assert_int_eq(file_read(damage_at("d/__0_0.distcp"), 1 << 20, &b, NULL),
	    0);
	memset(b.data, 0, 64);
	fixture_write(damage_at("d/__0_0.distcp"), b.data, b.len);
	damage_expect("d", HOLDFAST_CHECKPOINT_CORRUPT, "begins with zeroes");
	memset(b.data, 'x', 64);
	fixture_write(damage_at("d/__0_0.distcp"), b.data, b.len);
	damage_expect("d", HOLDFAST_CHECKPOINT_UNVERIFIED, "not known");
	buf_fini(&b);
}
END_TEST

START_TEST(megatron_dist)
{
	fixture_dcp(damage_at("iter_0000100"));
	fixture_dcp(damage_at("iter_0000200"));
	damage_bytes("iter_0000100/metadata.json",
	    "{\"sharded_backend\":\"torch_dist\"}");
	/* without common.pt only its neighbour tells what is missing */
	damage_incomplete("iter_0000200", "metadata.json");
	damage_bytes("iter_0000200/metadata.json",
	    "{\"sharded_backend\":\"torch_dist\"}");
	damage_object("iter_0000200/common.pt", "(dViteration\nI200\ns.");
	damage_each("iter_0000200", "common.pt");
	damage_each("iter_0000200", "metadata.json");
	damage_gone("iter_0000200", "metadata.json", "metadata.json");
	damage_object("iter_0000200/common.pt", "(dViteration\nI100\ns.");
	damage_incomplete("iter_0000200", "its name tells 200");
}
END_TEST

START_TEST(nemo)
{
	const char *name = "run/checkpoints/m-step=100";

	damage_folder("run/checkpoints/m-step=100/context");
	fixture_dcp(damage_at("run/checkpoints/m-step=100/weights"));
	damage_bytes("run/checkpoints/m-step=100/weights/metadata.json",
	    "{\"sharded_backend\":\"torch_dist\"}");
	damage_good("run/checkpoints/m-step=100/weights/common.pt");
	damage_bytes("run/checkpoints/m-step=100/context/io.json", "{}");
	damage_each(name, "weights/__0_0.distcp");
	damage_each(name, "weights/.metadata");
	damage_each(name, "weights/metadata.json");
	damage_each(name, "context/io.json");
	damage_newest("run", "checkpoints/m-step=100");
	damage_bytes("run/checkpoints/m-step=100-unfinished", "");
	damage_incomplete(name, "marked as unfinished");
	unlink(damage_at("run/checkpoints/m-step=100-unfinished"));
	damage_gone(name, "weights", "weights is missing");
}
END_TEST

START_TEST(lightning)
{
	fixture_dcp(damage_at("epoch=0-step=100.ckpt"));
	damage_incomplete("epoch=0-step=100.ckpt", "no meta.pt");
	damage_object("epoch=0-step=100.ckpt/meta.pt",
	    "(dVglobal_step\nI100\ns.");
	damage_each("epoch=0-step=100.ckpt", "meta.pt");
	damage_each("epoch=0-step=100.ckpt", "__1_0.distcp");
	damage_object("epoch=0-step=100.ckpt/meta.pt", "(dVglobal_step\nI90\ns.");
	damage_incomplete("epoch=0-step=100.ckpt", "of step 90");
	damage_folder("last.ckpt/checkpoint");
	damage_object("last.ckpt/checkpoint/mp_rank_00_model_states.pt",
	    "(dVdp_world_size\nI1\ns.");
	damage_good("last.ckpt/checkpoint/zero_pp_rank_0_mp_rank_00_optim_states.pt");
	damage_bytes("last.ckpt/latest", "checkpoint");
	damage_bytes("last.ckpt/zero_to_fp32.py", "");
	damage_each("last.ckpt",
	    "checkpoint/zero_pp_rank_0_mp_rank_00_optim_states.pt");
	damage_gone("last.ckpt", "latest", "no latest");
}
END_TEST

static void
safetensors(const char *name, const char *tensor)
{
	fixture_safetensors(damage_at(name), tensor);
}

static void
trainer(const char *dir, const char *state)
{
	static const char *const files[] = { "optimizer.pt", "scheduler.pt",
	    "rng_state_0.pth", "rng_state_1.pth", NULL };
	char name[128];
	int i;

	damage_folder(dir);
	for (i = 0; files[i] != NULL; i++) {
		snprintf(name, sizeof(name), "%s/%s", dir, files[i]);
		damage_good(name);
	}
	snprintf(name, sizeof(name), "%s/trainer_state.json", dir);
	damage_bytes(name, state);
}

START_TEST(hf_index)
{
	static const char index[] = "h/model.safetensors.index.json";

	damage_folder("h");
	safetensors("h/model-00001-of-00002.safetensors", "a");
	safetensors("h/model-00002-of-00002.safetensors", "b");
	damage_incomplete("h", "without model.safetensors.index.json");
	damage_bytes(index, "{\"weight_map\":{"
	    "\"a\":\"model-00001-of-00002.safetensors\","
	    "\"b\":\"model-00002-of-00002.safetensors\"}}");
	damage_gone("h", "model-00002-of-00002.safetensors", "is missing");
	damage_each("h", "model.safetensors.index.json");
	/* zeroes cut off the header: what remains of it is judged by itself */
	damage_each("h", "model-00001-of-00002.safetensors");
	/* the same shard twice */
	safetensors("h/model-00002-of-00002.safetensors", "a");
	damage_expect("h", HOLDFAST_CHECKPOINT_CORRUPT, "does not hold b");
	safetensors("h/model-00002-of-00002.safetensors", "b");
	damage_bytes(index,
	    "{\"weight_map\":{\"a\":\"model-00001-of-00002.safetensors\","
	    "\"b\":\"model-00003-of-00003.safetensors\"}}");
	damage_incomplete("h", "model-00003-of-00003.safetensors is missing");
	damage_bytes(index,
	    "{\"weight_map\":{\"a\":\"../model-00001-of-00002.safetensors\"}}");
	damage_expect("h", HOLDFAST_CHECKPOINT_CORRUPT, "names the file");
	damage_bytes(index, "{\"weight_map\":{}}");
	damage_expect("h", HOLDFAST_CHECKPOINT_CORRUPT, "no weight_map");
}
END_TEST

/* Shards and indexes of other names than the two most common. */
START_TEST(hf_index_names)
{
	static const char *const names[][2] = {
	    { "model", "fp16." }, { "diffusion_pytorch_model", "" },
	    { "consolidated", "" } };
	char index[256], file[2][64], path[128];
	int i;

	for (i = 0; i < 2; i++)
		snprintf(file[i], sizeof(file[i]), "%s-0000%d-of-00002.%s"
		    "safetensors", names[_i][0], i + 1, names[_i][1]);
	snprintf(index, sizeof(index), "{\"weight_map\":{\"a\":\"%s\","
	    "\"b\":\"%s\"}}", file[0], file[1]);
	damage_folder("m");
	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "m/%s", file[i]);
		safetensors(path, i == 0 ? "a" : "b");
	}
	snprintf(path, sizeof(path), "m/%s.safetensors.index.%sjson",
	    names[_i][0], names[_i][1]);
	damage_bytes(path, index);
	damage_each("m", file[1]);
	damage_each("m", path + 2);
	damage_gone("m", file[0], "is missing, which");
}
END_TEST

START_TEST(hf_trainer)
{
	const char *dir = "checkpoint-10";

	trainer(dir, "{\"global_step\":10}");
	damage_incomplete(dir, "holds no weights");
	safetensors("checkpoint-10/adapter_model.safetensors", "a");
	damage_each(dir, "optimizer.pt");
	damage_each(dir, "trainer_state.json");
	damage_each(dir, "adapter_model.safetensors");
	damage_gone(dir, "optimizer.pt", "optimizer.pt is missing");
	damage_gone(dir, "scheduler.pt", "scheduler.pt is missing");
	damage_gone(dir, "rng_state_0.pth", "rng_state_0.pth is missing");
	damage_gone(dir, "trainer_state.json", "no trainer_state.json");
	/* as Python writes what is no number in JSON */
	damage_bytes("checkpoint-10/trainer_state.json", "{\"log_history\":"
	    "[{\"loss\": NaN, \"grad_norm\": Infinity, \"NaN\\\"\": -Infinity}],"
	    "\"best_metric\":NaN,\"global_step\":10}");
	damage_valid(dir);
	damage_bytes("checkpoint-10/trainer_state.json",
	    "{\"global_step\":10, Nan}");
	damage_incomplete(dir, "not JSON");
	damage_bytes("checkpoint-10/trainer_state.json", "{\"global_step\":9}");
	damage_incomplete(dir, "tells step 9");
	damage_bytes("checkpoint-10/trainer_state.json", "{\"global_step\":10}");
	/* several adapters, each in a folder */
	damage_folder("checkpoint-10/critic");
	damage_bytes("checkpoint-10/critic/adapter_config.json", "{}");
	safetensors("checkpoint-10/critic/adapter_model.safetensors", "a");
	unlink(damage_at("checkpoint-10/adapter_model.safetensors"));
	damage_each(dir, "critic/adapter_model.safetensors");
	damage_gone(dir, "critic", "holds no weights");
	/* save_only_model */
	trainer("checkpoint-20", "{\"global_step\":20}");
	safetensors("checkpoint-20/model.safetensors", "a");
	unlink(damage_at("checkpoint-20/optimizer.pt"));
	unlink(damage_at("checkpoint-20/scheduler.pt"));
	unlink(damage_at("checkpoint-20/rng_state_0.pth"));
	unlink(damage_at("checkpoint-20/rng_state_1.pth"));
	damage_valid("checkpoint-20");
}
END_TEST

START_TEST(hf_trainer_folders)
{
	const char *dir = "checkpoint-10";

	trainer(dir, "{\"global_step\":10}");
	unlink(damage_at("checkpoint-10/optimizer.pt"));
	fixture_dcp(damage_at("checkpoint-10/pytorch_model_fsdp_0"));
	fixture_dcp(damage_at("checkpoint-10/optimizer_0"));
	damage_each(dir, "optimizer_0/__1_0.distcp");
	damage_each(dir, "pytorch_model_fsdp_0/.metadata");
	damage_gone(dir, "optimizer_0/__1_0.distcp", "optimizer_0: __1_0.distcp");
	damage_gone(dir, "optimizer_0", "optimizer.pt is missing");
	trainer("checkpoint-20", "{\"global_step\":20}");
	damage_folder("checkpoint-20/global_step20");
	damage_object("checkpoint-20/global_step20/mp_rank_00_model_states.pt",
	    "(dVdp_world_size\nI1\nsVoptimizer\nNs.");
	damage_incomplete("checkpoint-20", "no latest");
	damage_bytes("checkpoint-20/latest", "global_step20\n");
	damage_incomplete("checkpoint-20", "global_step20: no file of optimizer");
	damage_good("checkpoint-20/global_step20/"
	    "zero_pp_rank_0_mp_rank_00_optim_states.pt");
	damage_each("checkpoint-20",
	    "global_step20/zero_pp_rank_0_mp_rank_00_optim_states.pt");
	damage_bytes("checkpoint-20/latest", "global_step10");
	damage_incomplete("checkpoint-20", "latest names global_step10");
	damage_bytes("checkpoint-20/latest", "");
	damage_incomplete("checkpoint-20", "latest is empty");
}
END_TEST

static void
accelerate_state(const char *dir)
{
	static const char *const files[] = { "optimizer.bin", "scheduler.bin",
	    "random_states_0.pkl", "random_states_1.pkl",
	    "custom_checkpoint_0.pkl", NULL };
	char name[128];
	int i;

	damage_folder(dir);
	for (i = 0; files[i] != NULL; i++) {
		snprintf(name, sizeof(name), "%s/%s", dir, files[i]);
		damage_good(name);
	}
	snprintf(name, sizeof(name), "%s/model.safetensors", dir);
	safetensors(name, "a");
}

START_TEST(accelerate)
{
	const char *dir = "p/checkpoints/checkpoint_1";

	accelerate_state("p/checkpoints/checkpoint_0");
	accelerate_state(dir);
	damage_each(dir, "model.safetensors");
	damage_each(dir, "random_states_1.pkl");
	damage_each(dir, "custom_checkpoint_0.pkl");
	damage_gone(dir, "random_states_0.pkl", "random_states_0.pkl");
	damage_gone(dir, "optimizer.bin", "optimizer.bin is missing");
	damage_gone(dir, "model.safetensors", "holds no weights");
	/* a number in a rank's name is not the step, even when it is the same */
	damage_newest("p", "checkpoints/checkpoint_1");
	unlink(damage_at("p/checkpoints/checkpoint_1/scheduler.bin"));
	damage_newest("p", "checkpoints/checkpoint_0");
}
END_TEST

START_TEST(orbax)
{
	static const char manifest[] = "\x0c\xdb\x3a\x2a tree";
	const char *mark = "100/_CHECKPOINT_METADATA";

	damage_folder("100/state/ocdbt.process_0");
	damage_folder("100/state/ocdbt.process_1");
	damage_bytes(mark, "{\"commit_timestamp_nsecs\":1}");
	damage_bytes("100/state/_METADATA", "{}");
	damage_bytes("100/state/manifest.ocdbt", manifest);
	damage_bytes("100/state/ocdbt.process_0/manifest.ocdbt", manifest);
	damage_incomplete("100", "process_1/manifest.ocdbt is missing");
	damage_bytes("100/state/ocdbt.process_1/manifest.ocdbt", manifest);
	damage_valid("100");
	damage_gone("100", "state/ocdbt.process_0", "ocdbt.process_0 is missing");
	damage_gone("100", "state/manifest.ocdbt", "manifest.ocdbt is missing");
	damage_gone("100", "state/_METADATA", "state/_METADATA is missing");
	ck_assert_int_eq(rename(damage_at("100/state/_METADATA"),
	    damage_at("100/state/checkpoint")), 0);
	damage_valid("100");
	damage_bytes("100/state/manifest.ocdbt", "zzzz");
	damage_expect("100", HOLDFAST_CHECKPOINT_CORRUPT, "as a manifest");
	damage_bytes("100/state/manifest.ocdbt", manifest);
	damage_bytes(mark, "{\"commit_timestamp_nsecs\":null}");
	damage_incomplete("100", "tells no commit");
	damage_bytes(mark, "");
	damage_incomplete("100", "is empty");
	/* before OCDBT */
	damage_folder("200/default/w");
	damage_bytes("200/default/checkpoint", "\x82");
	damage_bytes("200/default/w/.zarray", "{}");
	damage_valid("200");
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_checked_fixture(t, damage_set_up, damage_tear_down);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, dcp);
	tcase_add_test(t, dcp_items);
	tcase_add_test(t, megatron_dist);
	tcase_add_test(t, nemo);
	tcase_add_test(t, lightning);
	tcase_add_test(t, hf_index);
	tcase_add_loop_test(t, hf_index_names, 0, 3);
	tcase_add_test(t, hf_trainer);
	tcase_add_test(t, hf_trainer_folders);
	tcase_add_test(t, accelerate);
	tcase_add_test(t, orbax);
}

int
main(void)
{
	return unit_run("checkpoint_format_shards", add_tests);
}
