/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_accelerate.c - accelerate's save_state(): checkpoint_I/ with weights,
 * optimizer, scheduler, sampler, and last random_states_RANK.pkl (torch.save files in
 * spite of the name).  Source: accelerate/checkpointing.py, save_accelerator_state().
 *
 * I counts saves, it is no step.  There is no marker.
 */
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "checkpoint/grid.h"
#include "checkpoint/hf_index.h"

#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE

static bool
recognise(const struct item *it)
{
	return it->is_dir && !names_has(&it->names, "trainer_state.json") &&
	    (folder_find(it, "random_states_", ".pkl") ||
	    (folder_find(it, "optimizer", ".bin") &&
	    (folder_find(it, "scheduler", ".bin") ||
	    folder_find(it, "sampler", ".bin"))));
}

static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	static const struct grid ranks = { .pattern = "random_states_#.pkl" };
	static const struct grid custom = { .pattern = "custom_checkpoint_#.pkl" };

	/* DeepSpeed and FSDP have folders of their own */
	if (!hf_index_check(it, r) && !hf_weights_present(it) &&
	    !folder_find(it, "model", ".safetensors") &&
	    !folder_find(it, "pytorch_model", ""))
		report_say(r, INCOMPLETE, "holds no weights");
	if (!folder_find(it, "optimizer", "") && !names_has(&it->names,
	    "pytorch_model"))
		report_say(r, INCOMPLETE, "optimizer.bin is missing");
	if (grid_check(&it->names, &ranks, r) == 0)
		report_say(r, INCOMPLETE,
		    "no random_states file: the save did not finish");
	grid_check(&it->names, &custom, r);
	folder_add_files(it, NULL, parts, r);
	report_note(r, "no completeness marker in this layout");
}

static bool
is_lasting(const char *name)
{
	return !name_is_temporary(name);
}

/* PROJECT/checkpoints/, where accelerate and NeMo put them. */
static int
enumerate(const char *dir, const struct names *in, struct names *out)
{
	return folder_enumerate(dir, "checkpoints", is_lasting, in, out);
}

const struct format format_accelerate = {
	.name = "accelerate",
	.recognise = recognise,
	.complete = complete,
	.enumerate = enumerate,
	.same_files = true
};
