/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_layouts.c - writes checkpoints as the frameworks lay them out, each with
 * as few files as make it whole.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_fixture.h"
#include "checkpoint_layouts.h"
#include "checkpoint/manifest.h"

static void
torch(const char *path, long step)
{
	fixture_good(path, step);
}

static void
torch_in(const char *dir, const char *name, long step)
{
	char *path = fixture_path(dir, name);

	fixture_good(path, step);
	free(path);
}

static void
object_in(const char *dir, const char *name, const char *pickle)
{
	char *path = fixture_path(dir, name);

	fixture_object(path, pickle);
	free(path);
}

/* As torch.save(obj, f, _use_new_zipfile_serialization=False). */
static void
legacy(const char *path, long step)
{
	static const float w[3] = { 1, 2, 3 };
	const struct fixture_tensor t = { "w", "FloatStorage", w, sizeof(w), 3 };
	struct buf b = {0};
	uint64_t n = 3;

	buf_append(&b, "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20"
	    "\x6a\xa8\x50\x19.\x80\2M\xe9\3.\x80\2}.", 25);
	fixture_pickle(&b, &t, 1, step);
	buf_append(&b, "\x80\2]X\1\0\0\0" "0a.", 11);
	buf_append(&b, &n, 8);
	buf_append(&b, w, sizeof(w));
	fixture_write(path, b.data, b.len);
	buf_fini(&b);
}

static void
safetensors(const char *path, long step)
{
	(void)step;
	fixture_safetensors(path, "w");
}

static void
safetensors_in(const char *dir, const char *name, const char *tensor)
{
	char *path = fixture_path(dir, name);

	fixture_safetensors(path, tensor);
	free(path);
}

static void
with_manifest(const char *path)
{
	struct err err = {0};
	struct checkpoint c;

	fixture_check(&c, path, false);
	if (manifest_write(&c, NULL, NULL, 0, &err) == -1)
		ck_abort_msg("%s", err.text);
	checkpoint_fini(&c);
}

static void
torch_with_manifest(const char *path, long step)
{
	fixture_good(path, step);
	with_manifest(path);
}

static void
manifest(const char *path, long step)
{
	char *below = fixture_path(path, "part");

	fixture_mkdirs(below);
	fixture_text(path, "weights.dat", "0123456789");
	fixture_text(below, "more.dat", step % 20 == 0 ? "even" : "odd");
	with_manifest(path);
	free(below);
}

static void
folder(const char *path, long step)
{
	char *below = fixture_path(path, "optim");

	fixture_mkdirs(below);
	torch_in(path, "model.pt", step);
	torch_in(below, "state.pt", step);
	free(below);
}

static void
dcp(const char *path, long step)
{
	(void)step;
	fixture_dcp(path);
}

static void
megatron_dist(const char *path, long step)
{
	char pickle[64];

	fixture_dcp(path);
	fixture_text(path, "metadata.json", "{\"sharded_backend\":\"torch_dist\"}");
	snprintf(pickle, sizeof(pickle), "(dViteration\nI%ld\ns.", step);
	object_in(path, "common.pt", pickle);
}

static void
nemo(const char *path, long step)
{
	char *weights = fixture_path(path, "weights");
	char *context = fixture_path(path, "context");

	(void)step;
	fixture_dcp(weights);
	fixture_text(weights, "metadata.json",
	    "{\"sharded_backend\":\"torch_dist\"}");
	torch_in(weights, "common.pt", -1);
	fixture_mkdirs(context);
	fixture_text(context, "io.json", "{}");
	free(weights);
	free(context);
}

static void
lightning(const char *path, long step)
{
	char pickle[64];

	fixture_dcp(path);
	snprintf(pickle, sizeof(pickle), "(dVglobal_step\nI%ld\ns.", step);
	object_in(path, "meta.pt", pickle);
}

static void
hf_model(const char *path, long step)
{
	(void)step;
	fixture_mkdirs(path);
	safetensors_in(path, "model-00001-of-00002.safetensors", "a");
	safetensors_in(path, "model-00002-of-00002.safetensors", "b");
	fixture_text(path, "model.safetensors.index.json", "{\"weight_map\":{"
	    "\"a\":\"model-00001-of-00002.safetensors\","
	    "\"b\":\"model-00002-of-00002.safetensors\"}}");
}

static void
hf_trainer(const char *path, long step)
{
	char state[64];

	fixture_mkdirs(path);
	safetensors_in(path, "model.safetensors", "w");
	torch_in(path, "optimizer.pt", -1);
	torch_in(path, "scheduler.pt", -1);
	torch_in(path, "rng_state.pth", -1);
	snprintf(state, sizeof(state), "{\"global_step\":%ld}", step);
	fixture_text(path, "trainer_state.json", state);
}

/* With optimizer states that DeepSpeed wrote. */
static void
hf_deepspeed(const char *path, long step)
{
	char tag[64], *below;

	hf_trainer(path, step);
	snprintf(tag, sizeof(tag), "global_step%ld", step);
	below = fixture_path(path, tag);
	fixture_mkdirs(below);
	object_in(below, "mp_rank_00_model_states.pt",
	    "(dVdp_world_size\nI1\nsVoptimizer\nNs.");
	torch_in(below, "zero_pp_rank_0_mp_rank_00_optim_states.pt", -1);
	fixture_text(path, "latest", tag);
	free(below);
}

static void
accelerate(const char *path, long step)
{
	(void)step;
	fixture_mkdirs(path);
	safetensors_in(path, "model.safetensors", "w");
	torch_in(path, "optimizer.bin", -1);
	torch_in(path, "scheduler.bin", -1);
	torch_in(path, "random_states_0.pkl", -1);
}

static void
deepspeed(const char *path, long step)
{
	char pickle[256];
	int i;

	fixture_mkdirs(path);
	snprintf(pickle, sizeof(pickle), "(dVdp_world_size\nI2\nsVmp_world_size\n"
	    "I1\nsVglobal_steps\nI%ld\nsVoptimizer\nNs.", step);
	object_in(path, "mp_rank_00_model_states.pt", pickle);
	for (i = 0; i < 2; i++)
		object_in(path, i == 0 ?
		    "zero_pp_rank_0_mp_rank_00_optim_states.pt" :
		    "zero_pp_rank_1_mp_rank_00_optim_states.pt",
		    "(dVoptimizer_state_dict\n(dVpartition_count\nI2\nss.");
}

static void
universal(const char *path, long step)
{
	char *zero = fixture_path(path, "zero"), *w = fixture_path(zero, "w");

	(void)step;
	fixture_mkdirs(w);
	object_in(path, "mp_rank_00_model_states.pt",
	    "(dVparam_shapes\n(l(dVw\nI1\nsas.");
	torch_in(zero, "optimizer_state.pt", -1);
	torch_in(w, "fp32.pt", -1);
	torch_in(w, "exp_avg.pt", -1);
	torch_in(w, "exp_avg_sq.pt", -1);
	free(zero);
	free(w);
}

static void
megatron(const char *path, long step)
{
	static const char *const ranks[] = { "mp_rank_00", "mp_rank_01" };
	char pickle[128], *below;
	int i;

	snprintf(pickle, sizeof(pickle), "(dViteration\nI%ld\nsVargs\n"
	    "(dVtensor_model_parallel_size\nI2\nss.", step);
	for (i = 0; i < 2; i++) {
		below = fixture_path(path, ranks[i]);
		fixture_mkdirs(below);
		object_in(below, "model_optim_rng.pt", pickle);
		free(below);
	}
}

static void
orbax(const char *path, long step)
{
	static const char text[] = "\x0c\xdb\x3a\x2a tree";
	char *state = fixture_path(path, "state");
	char *process = fixture_path(state, "ocdbt.process_0");

	(void)step;
	fixture_mkdirs(process);
	fixture_text(path, "_CHECKPOINT_METADATA",
	    "{\"commit_timestamp_nsecs\":1}");
	fixture_text(state, "_METADATA", "{}");
	fixture_text(state, "manifest.ocdbt", text);
	fixture_text(process, "manifest.ocdbt", text);
	free(process);
	free(state);
}

/* The path is that of the first shard. */
static void
fairseq(const char *path, long step)
{
	char *other = strdup(path), *digit = strstr(other, "shard0");

	fixture_good(path, step);
	digit[5] = '1';
	fixture_good(other, step);
	free(other);
}

static void
nvrx(const char *path, long step)
{
	char *other = strdup(path), *digit = strstr(other, "_0_local");

	fixture_good(path, step);
	digit[1] = '1';
	fixture_good(other, step);
	free(other);
}

const struct layout_row layout_rows[] = {
	{ "torch", "step_%ld.pt", torch },
	{ "legacy", "step_%ld.pt", legacy },
	{ "safetensors", "step_%ld.safetensors", safetensors },
	{ "torch with manifest", "step_%ld.pt", torch_with_manifest },
	{ "manifest", "checkpoint-%ld", manifest },
	{ "folder", "step_%ld", folder },
	{ "dcp", "step-%ld", dcp },
	{ "megatron_dist", "iter_%07ld", megatron_dist },
	{ "nemo", "checkpoints/m-step=%ld", nemo },
	{ "lightning", "epoch=0-step=%ld.ckpt", lightning },
	{ "hf_model", "step-%ld", hf_model },
	{ "hf_trainer", "checkpoint-%ld", hf_trainer },
	{ "hf_deepspeed", "checkpoint-%ld", hf_deepspeed },
	{ "accelerate", "checkpoints/checkpoint_%ld", accelerate },
	{ "deepspeed", "global_step%ld", deepspeed },
	{ "universal", "global_step%ld_universal", universal },
	{ "megatron", "iter_%07ld", megatron },
	{ "orbax", "%ld", orbax },
	{ "fairseq", "checkpoint_1_%ld-shard0.pt", fairseq },
	{ "nvrx", "0/iter_%07ld_0_local.pt", nvrx }
};
const int n_layout_rows = sizeof(layout_rows) / sizeof(layout_rows[0]);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
const char *
layout_path(const struct layout_row *l, const char *save_dir, long step)
{
	static char paths[3][512];
	static int next;
	char *path = paths[next++ % 3], *slash;
	size_t n = strlen(save_dir);

	memcpy(path, save_dir, n);
	path[n] = '/';
	snprintf(path + n + 1, sizeof(paths[0]) - n - 1, l->shape, step);
	slash = strrchr(path, '/');
	*slash = '\0';
	fixture_mkdirs(path);
	*slash = '/';
	return path;
}
#pragma GCC diagnostic pop

const char *
layout_make(const struct layout_row *l, const char *save_dir, long step)
{
	const char *path = layout_path(l, save_dir, step);

	l->make(path, step);
	return path;
}
