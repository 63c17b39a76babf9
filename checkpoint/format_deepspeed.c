/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_deepspeed.c - DeepSpeed's TAG/: model states and, under ZeRO, one optimizer
 * file a data-parallel rank.  The numbers of ranks stand in the model states.
 * Source: deepspeed/runtime/engine.py, _get_ckpt_name() and below.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint/folder.h"
#include "checkpoint/peek.h"

#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE
#define WORLD_MAX	65536	/* ranks a checkpoint can plausibly tell */

static const char model_end[] = "_model_states.pt";
static const char optim_end[] = "_optim_states.pt";

static bool
recognise(const struct item *it)
{
	return it->is_dir && (folder_find(it, "mp_rank_", model_end) ||
	    folder_find(it, "zero_pp_rank_", model_end) ||
	    folder_find(it, "", optim_end));
}

/* PREFIX zero_pp_rank_D_mp_rank_MM END for all D and MM. */
static void
expect_ranks(const struct item *it, const char *prefix, const char *end,
    int64_t dp, int64_t mp, struct report *r)
{
	char name[128];
	int64_t d, m;

	for (d = 0; d < dp; d++)
		for (m = 0; m < mp; m++) {
			snprintf(name, sizeof(name), "%szero_pp_rank_%" PRId64
			    "_mp_rank_%02" PRId64 "%s", prefix, d, m, end);
			if (!names_has(&it->names, name)) {
				report_say(r, INCOMPLETE, "%s is missing of %"
				    PRId64 " x %" PRId64 " ranks", name, dp, mp);
				return;
			}
		}
}

static void
expect_models(const struct item *it, int64_t mp, struct report *r)
{
	char name[64];
	int64_t m;

	for (m = 0; m < mp; m++) {
		snprintf(name, sizeof(name), "mp_rank_%02" PRId64 "%s", m,
		    model_end);
		if (!names_has(&it->names, name)) {
			report_say(r, INCOMPLETE, "%s is missing of %" PRId64, name,
			    mp);
			return;
		}
	}
}

/* The first file of model states; NULL when there is none. */
static const char *
first_model(const struct item *it)
{
	size_t i;

	for (i = 0; i < it->names.n; i++)
		if (name_ends_with(it->names.list[i], model_end) &&
		    strncmp(it->names.list[i], "layer_", 6) != 0)
			return it->names.list[i];
	return NULL;
}

static void
expect_all(const struct item *it, const char *model, struct report *r)
{
	bool universal = names_has(&it->names, "zero");
	struct peek peek;
	int64_t dp, mp;

	if (peek_open(&peek, it->path, model) == -1)
		goto out;
	dp = peek_int(&peek, "dp_world_size", 0);
	mp = peek_int(&peek, "mp_world_size", 1);
	if (dp < 1 || dp > WORLD_MAX || mp < 1 || mp > WORLD_MAX)
		goto out;
	if (folder_find(it, "zero_pp_rank_", model_end))
		expect_ranks(it, "", model_end, dp, mp, r);
	else
		expect_models(it, mp, r);
	if (folder_find(it, "bf16_zero_pp_rank_", optim_end))
		expect_ranks(it, "bf16_", optim_end, dp, mp, r);
	else if (folder_find(it, "zero_pp_rank_", optim_end))
		expect_ranks(it, "", optim_end, dp, mp, r);
	if (universal && !folder_has(it, "zero/optimizer_state.pt"))
		report_say(r, INCOMPLETE, "zero/optimizer_state.pt is missing");
out:
	peek_fini(&peek);
}

static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	const char *model = first_model(it);

	if (model == NULL)
		report_say(r, INCOMPLETE, "no file of model states");
	else
		expect_all(it, model, r);
	folder_add_files(it, NULL, parts);
	report_note(r, "no completeness marker in this layout");
}

const struct format format_deepspeed = {
	.name = "deepspeed",
	.recognise = recognise,
	.complete = complete,
	.same_step = true
};
