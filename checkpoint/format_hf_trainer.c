/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_hf_trainer.c - the Hugging Face Trainer's checkpoint-N/: weights, optimizer,
 * scheduler, rng states, and trainer_state.json, which rank 0 writes last.  Source:
 * transformers/trainer.py, _save_checkpoint().
 *
 * There is no marker: whole means that trainer_state.json tells step N, that the
 * weights are there (all shards of the index), and that every file is whole.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/folder.h"

#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE

static const char *const indexes[] = { "model.safetensors.index.json",
    "pytorch_model.bin.index.json", NULL };
static const char *const weights[] = { "model.safetensors",
    "pytorch_model.bin", "adapter_model.safetensors", "adapter_model.bin",
    "pytorch_model_fsdp.bin", "pytorch_model_fsdp_0", NULL };

static int64_t
step_of(const char *name)
{
	static const char prefix[] = "checkpoint-";

	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return REPORT_UNKNOWN;
	return name_folder_step(name);
}

static bool
recognise(const struct item *it)
{
	return it->is_dir && step_of(it->name) != REPORT_UNKNOWN &&
	    (names_has(&it->names, "trainer_state.json") ||
	    names_has(&it->names, "training_args.bin"));
}

/* Every file of the index's weight_map must be there. */
static void
check_index(const struct item *it, const char *index, struct report *r)
{
	cJSON *json = folder_json(it, index, r);
	const cJSON *map, *file;

	if (json == NULL)
		return;
	map = cJSON_GetObjectItemCaseSensitive(json, "weight_map");
	if (!cJSON_IsObject(map))
		report_say(r, HOLDFAST_CHECKPOINT_CORRUPT,
		    "%s has no weight_map", index);
	cJSON_ArrayForEach(file, map) {
		if (cJSON_IsString(file) &&
		    !names_has(&it->names, file->valuestring))
			report_say(r, INCOMPLETE, "%.*s is missing, which %s names",
			    REPORT_NAME_MAX, file->valuestring, index);
	}
	cJSON_Delete(json);
}

static void
check_weights(const struct item *it, struct report *r)
{
	size_t i;
	bool any = false;

	for (i = 0; indexes[i] != NULL; i++)
		if (names_has(&it->names, indexes[i])) {
			check_index(it, indexes[i], r);
			any = true;
		}
	for (i = 0; weights[i] != NULL; i++)
		any = any || names_has(&it->names, weights[i]);
	/* DeepSpeed keeps them in global_stepN/ */
	if (!any && !folder_find(it, "global_step", ""))
		report_say(r, INCOMPLETE, "holds no weights");
}

static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	int64_t want = step_of(it->name), step;
	cJSON *json = NULL;

	if (!names_has(&it->names, "trainer_state.json"))
		report_say(r, INCOMPLETE,
		    "no trainer_state.json: the save did not finish");
	else
		json = folder_json(it, "trainer_state.json", r);
	if (json != NULL) {
		step = json_int(json, "global_step", REPORT_UNKNOWN);
		if (step != want)
			report_say(r, INCOMPLETE, "trainer_state.json tells step %"
			    PRId64 ", the folder's name %" PRId64,
			    step == REPORT_UNKNOWN ? -1 : step, want);
		cJSON_Delete(json);
	}
	check_weights(it, r);
	r->step = want;
	folder_add_files(it, NULL, parts);
	report_note(r, "no completeness marker in this layout");
}

const struct format format_hf_trainer = {
	.name = "hf_trainer",
	.recognise = recognise,
	.complete = complete,
	.same_files = true
};
