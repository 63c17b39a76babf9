/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_hf_trainer.c - the Hugging Face Trainer's checkpoint-N/: weights, optimizer,
 * scheduler, rng states, and trainer_state.json, which rank 0 writes last.  Source:
 * transformers/trainer.py, _save_checkpoint().
 *
 * There is no marker: whole means that trainer_state.json tells step N, that the
 * weights are there (all shards of the index), that what is needed to resume is
 * there or was not saved at all (save_only_model), and that every file is whole.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/file.h"
#include "checkpoint/grid.h"
#include "checkpoint/hf_index.h"
#include "checkpoint/trouble.h"

#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE
#define TAG_MAX		4096	/* bytes of DeepSpeed's latest */

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
	return it->is_dir && (names_has(&it->names, "trainer_state.json") ||
	    names_has(&it->names, "training_args.bin") ||
	    (names_has(&it->names, "scheduler.pt") &&
	    folder_find(it, "rng_state", ".pth"))) &&
	    (step_of(it->name) != REPORT_UNKNOWN ||
	    folder_find(it, "rng_state", ".pth") ||
	    folder_find(it, "optimizer", ""));
}

static void
check_state(const struct item *it, int64_t want, struct report *r)
{
	cJSON *json;
	int64_t step;

	if (!names_has(&it->names, "trainer_state.json")) {
		report_say(r, INCOMPLETE,
		    "no trainer_state.json: the save did not finish");
		return;
	}
	if ((json = folder_json(it, "trainer_state.json", r)) == NULL)
		return;
	step = json_int(json, "global_step", REPORT_UNKNOWN);
	if (step == REPORT_UNKNOWN)
		report_say(r, INCOMPLETE, "trainer_state.json tells no step");
	else if (want != REPORT_UNKNOWN && step != want)
		report_say(r, INCOMPLETE, "trainer_state.json tells step %" PRId64
		    ", the folder's name %" PRId64, step, want);
	r->step = want != REPORT_UNKNOWN ? want : step;
	cJSON_Delete(json);
}

/* DeepSpeed resumes from the tag that latest names, and from none without it. */
static void
check_tag(const struct item *it, struct report *r)
{
	char *path = file_join(it->path, "latest");
	struct buf text = {0};
	struct err err = {0};
	const char *tag;

	if (path == NULL || file_read(path, TAG_MAX, &text, &err) == -1) {
		errno = err.errnum;
		trouble_note(path != NULL ? path : "");
		report_say(r, INCOMPLETE, "no latest beside the DeepSpeed folder");
		goto out;
	}
	tag = text.len > 0 ? text.data : "";
	if (text.len > 0)
		text.data[strcspn(text.data, " \r\n\t")] = '\0';
	if (*tag == '\0')
		report_say(r, INCOMPLETE, "latest is empty");
	else if (!names_has(&it->names, tag) || !folder_is_dir(it->path, tag))
		report_say(r, INCOMPLETE, "latest names %.*s, which is missing",
		    REPORT_NAME_MAX, tag);
out:
	buf_fini(&text);
	free(path);
}

/* Optimizer, scheduler and rng states are saved together or not at all. */
static void
check_resume(const struct item *it, bool deepspeed, struct report *r)
{
	static const struct grid ranks = { .pattern = "rng_state_#.pth" };
	bool rng = grid_check(&it->names, &ranks, r) > 0 ||
	    names_has(&it->names, "rng_state.pth");
	bool optimizer = deepspeed || names_has(&it->names, "optimizer.pt") ||
	    names_has(&it->names, "optimizer.bin") ||
	    names_has(&it->names, "optimizer_0") ||
	    names_has(&it->names, "optimizer.safetensors");
	bool scheduler = names_has(&it->names, "scheduler.pt");

	if (!rng && !optimizer && !scheduler)
		return;
	if (!optimizer)
		report_say(r, INCOMPLETE, "optimizer.pt is missing");
	if (!scheduler && !deepspeed)
		report_say(r, INCOMPLETE, "scheduler.pt is missing");
	if (!rng)
		report_say(r, INCOMPLETE, "no rng_state file");
}

/* PEFT keeps each of several adapters in a folder of its name. */
static bool
has_adapter_folder(const struct item *it)
{
	bool found = false;
	char *name;
	size_t i;

	for (i = 0; i < it->names.n && !found; i++) {
		if (!folder_is_dir(it->path, it->names.list[i]) ||
		    (name = file_join(it->names.list[i],
		    "adapter_config.json")) == NULL)
			continue;
		found = folder_has(it, name);
		free(name);
	}
	return found;
}

static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	bool deepspeed = folder_find(it, "global_step", "");

	check_state(it, step_of(it->name), r);
	/* DeepSpeed keeps the weights too */
	if (!hf_index_check(it, r) && !hf_weights_present(it) && !deepspeed &&
	    !has_adapter_folder(it))
		report_say(r, INCOMPLETE, "holds no weights");
	if (deepspeed)
		check_tag(it, r);
	check_resume(it, deepspeed, r);
	folder_add_files(it, NULL, parts, r);
	report_note(r, "no completeness marker in this layout");
}

const struct format format_hf_trainer = {
	.name = "hf_trainer",
	.recognise = recognise,
	.complete = complete,
	.same_files = true
};
