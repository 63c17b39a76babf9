/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_deepspeed.c - DeepSpeed's TAG/: model states, under ZeRO one optimizer file a
 * data-parallel rank, files of experts and of pipeline layers; or, converted to
 * "universal", a folder zero/PARAMETER/ each.
 *
 * The numbers of ranks stand in the model states, the partition count in each
 * optimizer file.  There is no marker.  Source: deepspeed/runtime/engine.py,
 * _get_ckpt_name() and below, deepspeed/checkpoint/ds_to_universal.py.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "checkpoint/folder.h"
#include "checkpoint/grid.h"
#include "checkpoint/peek.h"

#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE

static const char model_end[] = "_model_states.pt";
static const char optim_end[] = "_optim_states.pt";

/* What the model states tell; 0: not known. */
struct world {
	unsigned	dp, mp, experts;
	int64_t		step;
	bool		optim_apart;	/* the optimizer is in files of its own */
};

static bool
is_universal(const struct item *it)
{
	return it->is_dir && names_has(&it->names, "zero") &&
	    (folder_find(it, "mp_rank_", model_end) ||
	    folder_has(it, "zero/optimizer_state.pt"));
}

static bool
recognise(const struct item *it)
{
	return it->is_dir && !is_universal(it) &&
	    (folder_find(it, "mp_rank_", model_end) ||
	    folder_find(it, "zero_pp_rank_", model_end) ||
	    folder_find(it, "layer_", "-model_states.pt") ||
	    folder_find(it, "zero_pp_rank_", optim_end) ||
	    folder_find(it, "bf16_zero_pp_rank_", optim_end));
}

/* The first file of model states; NULL when there is none. */
static const char *
first_model(const struct item *it)
{
	size_t i;

	for (i = 0; i < it->names.n; i++)
		if (name_ends_with(it->names.list[i], model_end) &&
		    strstr(it->names.list[i], "mp_rank_") != NULL &&
		    strncmp(it->names.list[i], "layer_", 6) != 0)
			return it->names.list[i];
	return NULL;
}

static unsigned
plausible(int64_t n)
{
	return n < 1 || n >= GRID_MAX ? 0 : (unsigned)n;
}

/* num_experts: a number, or a list of one for each kind of layer. */
static unsigned
read_experts(const struct pickle_value *v)
{
	int64_t n = 0;
	uint32_t i;

	if (v != NULL && v->kind == PICKLE_INT)
		n = v->i;
	if (v != NULL && v->kind == PICKLE_LIST)
		for (i = 0; i < v->node->n; i++) {
			if (v->node->items[i].kind != PICKLE_INT ||
			    (i > 0 && v->node->items[i].i != n))
				return 0;
			n = v->node->items[i].i;
		}
	return plausible(n);
}

static void
read_world(const struct item *it, const char *model, struct world *w)
{
	const struct pickle_value *v;
	struct peek peek;

	w->step = REPORT_UNKNOWN;
	if (peek_open(&peek, it->path, model) == 0) {
		w->dp = plausible(peek_int(&peek, "dp_world_size", 0));
		w->mp = plausible(peek_int(&peek, "mp_world_size", 0));
		w->step = peek_int(&peek, "global_steps", REPORT_UNKNOWN);
		w->experts = read_experts(pickle_get(&peek.pickle.root,
		    "num_experts"));
		v = pickle_get(&peek.pickle.root, "optimizer");
		w->optim_apart = w->dp > 0 && v != NULL &&
		    v->kind == PICKLE_NONE;
	}
	peek_fini(&peek);
}

/* The number of updates that the optimizer in a shard counts, as far as it is kept as
 * a number. */
static int64_t
updates_of(const struct pickle_value *optimizer)
{
	const struct pickle_value *v;

	v = pickle_get(pickle_get(optimizer, "base_optimizer_state"), "state");
	if (v == NULL || v->kind != PICKLE_DICT || v->node->n < 2)
		return REPORT_UNKNOWN;
	v = pickle_get(&v->node->items[1], "step");
	return v != NULL && v->kind == PICKLE_INT ? v->i : REPORT_UNKNOWN;
}

/* partition_count: a number, or a list of one for each group of parameters, those of
 * experts smaller: dp when it is among them. */
static int64_t
partitions_of(const struct pickle_value *optimizer, unsigned dp)
{
	const struct pickle_value *v = pickle_get(optimizer, "partition_count");
	const struct pickle_value *list = v;
	uint32_t i;

	for (i = 0; list != NULL && list->kind == PICKLE_LIST &&
	    i < list->node->n; i++) {
		v = &list->node->items[i];
		if (v->kind == PICKLE_INT && v->i == (int64_t)dp)
			break;
	}
	return v != NULL && v->kind == PICKLE_INT ? v->i : REPORT_UNKNOWN;
}

/* Left in the folder by a larger world: DeepSpeed reads the files of its own ranks. */
static bool
is_stale(const char *name, const struct world *w)
{
	static const char *const patterns[] = {
	    "zero_pp_rank_#_mp_rank_#_model_states.pt",
	    "zero_pp_rank_#_mp_rank_#_optim_states.pt",
	    "bf16_zero_pp_rank_#_mp_rank_#_optim_states.pt" };
	struct grid g = { .pattern = "mp_rank_#_model_states.pt",
	    .size = { w->mp } };
	unsigned at[GRID_DIMS] = {0};
	size_t i;

	if (grid_match(name, g.pattern, at))
		return !grid_fits(&g, at);
	g.size[0] = w->dp;
	g.size[1] = w->mp;
	for (i = 0; i < 3; i++)
		if (grid_match(name, patterns[i], at))
			return !grid_fits(&g, at);
	return false;
}

static void
drop_stale(const struct world *w, struct parts *parts, size_t i, struct report *r)
{

	while (i < parts->n) {
		if (!is_stale(parts->list[i].name, w)) {
			i++;
			continue;
		}
		report_note(r, "%s was left by a larger world and is not read",
		    parts->list[i].name);
		parts_remove(parts, i);
	}
}

/* A shard tells how many there are, and how often it was updated: one of another
 * world size or step does not belong. */
static void
check_partitions(const struct item *it, const struct world *w, struct report *r)
{
	int64_t updates = REPORT_UNKNOWN, n;
	struct peek peek;
	size_t i;

	for (i = 0; i < it->names.n; i++) {
		const char *name = it->names.list[i];

		if (strstr(name, "zero_pp_rank_") == NULL ||
		    !name_ends_with(name, optim_end) || is_stale(name, w))
			continue;
		if (peek_open(&peek, it->path, name) == 0) {
			const struct pickle_value *optimizer = pickle_get(
			    &peek.pickle.root, "optimizer_state_dict");

			n = updates_of(optimizer);
			if (updates == REPORT_UNKNOWN)
				updates = n;
			else if (n != REPORT_UNKNOWN && n != updates)
				report_say(r, INCOMPLETE, "%s was updated %" PRId64
				    " times, the shards before it %" PRId64, name, n,
				    updates);
			n = partitions_of(optimizer, w->dp);
			if (w->dp > 0 && n != REPORT_UNKNOWN &&
			    n != (int64_t)w->dp)
				report_say(r, INCOMPLETE, "%s is one of %" PRId64
				    " ranks, the model states tell %u", name, n,
				    w->dp);
		}
		peek_fini(&peek);
	}
}

static void
check_optimizer(const struct item *it, const struct world *w, struct report *r)
{
	const struct grid bf16 = { .pattern =
	    "bf16_zero_pp_rank_#_mp_rank_#_optim_states.pt",
	    .size = { w->dp, w->mp } };
	const struct grid plain = { .pattern =
	    "zero_pp_rank_#_mp_rank_#_optim_states.pt",
	    .size = { w->dp, w->mp } };
	const struct grid experts = { .pattern =
	    "expp_rank_#_mp_rank_#_optim_states.pt", .size = { 0, w->mp } };
	size_t n = grid_check(&it->names, &bf16, r);

	n += grid_check(&it->names, &plain, r);
	n += grid_check(&it->names, &experts, r);
	if (n == 0 && w->optim_apart && !folder_find(it, "", optim_end))
		report_say(r, INCOMPLETE, "no file of optimizer states");
	check_partitions(it, w, r);
}

static void
check_models(const struct item *it, const struct world *w, struct report *r)
{
	const struct grid zero3 = { .pattern =
	    "zero_pp_rank_#_mp_rank_#_model_states.pt",
	    .size = { w->dp, w->mp } };
	const struct grid plain = { .pattern = "mp_rank_#_model_states.pt",
	    .size = { w->mp } };
	const struct grid experts = { .pattern =
	    "layer_#_expert_#_mp_rank_#_model_states.pt",
	    .size = { 0, w->experts, w->mp } };
	const struct grid layers = { .pattern = "layer_#-model_#-model_states.pt",
	    .holes = { true } };

	grid_check(&it->names, &zero3, r);
	grid_check(&it->names, &plain, r);
	grid_check(&it->names, &experts, r);
	grid_check(&it->names, &layers, r);
}

/* One parameter of a universal checkpoint: its values, and both moments or none. */
static void
check_parameter(const struct item *it, const char *name, struct report *r)
{
	static const char *const moments[] = { "exp_avg.pt", "exp_avg_sq.pt" };
	struct names inside = {0};
	char *path = file_join("zero", name);

	if (path == NULL)
		return;
	folder_names(it, path, &inside, r);
	if (!names_has(&inside, "fp32.pt"))
		report_say(r, INCOMPLETE, "%s/fp32.pt is missing", path);
	if (names_has(&inside, moments[0]) != names_has(&inside, moments[1]))
		report_say(r, INCOMPLETE, "%s/%s is missing", path,
		    moments[names_has(&inside, moments[0])]);
	names_fini(&inside);
	free(path);
}

/* Every parameter that the model states name has a folder. */
static void
check_shapes(const struct item *it, const char *model,
    const struct names *folders, struct report *r)
{
	const struct pickle_value *v;
	struct peek peek;
	char name[512];
	uint32_t i, j;

	if (peek_open(&peek, it->path, model) == -1)
		goto out;
	v = pickle_get(&peek.pickle.root, "param_shapes");
	for (i = 0; v != NULL && v->kind == PICKLE_LIST && i < v->node->n; i++) {
		const struct pickle_value *group = &v->node->items[i];

		if (group->kind != PICKLE_DICT && (group->kind != PICKLE_OBJECT ||
		    !group->node->pairs))
			continue;
		for (j = 0; j + 1 < group->node->n; j += 2) {
			const struct pickle_value *key = &group->node->items[j];

			if (key->kind != PICKLE_TEXT || key->len >= sizeof(name))
				continue;
			snprintf(name, sizeof(name), "%.*s", (int)key->len, key->s);
			if (!names_has(folders, name))
				report_say(r, INCOMPLETE, "zero/%s is missing", name);
		}
	}
out:
	peek_fini(&peek);
}

static void
check_universal(const struct item *it, const char *model, struct report *r)
{
	struct names inside = {0};
	size_t i, n = 0;
	char *path;

	folder_names(it, "zero", &inside, r);
	if (!names_has(&inside, "optimizer_state.pt"))
		report_say(r, INCOMPLETE, "zero/optimizer_state.pt is missing");
	for (i = 0; i < inside.n; i++) {
		if ((path = file_join("zero", inside.list[i])) != NULL &&
		    folder_is_dir(it->path, path)) {
			check_parameter(it, inside.list[i], r);
			n++;
		}
		free(path);
	}
	if (n == 0)
		report_say(r, INCOMPLETE, "zero/ holds no parameters");
	if (model != NULL)
		check_shapes(it, model, &inside, r);
	names_fini(&inside);
}

static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	static const char tag[] = "global_step";
	const char *model = first_model(it);
	bool universal = is_universal(it);
	struct world w = { .step = REPORT_UNKNOWN };
	int64_t named = strncmp(it->name, tag, sizeof(tag) - 1) == 0 ?
	    name_folder_step(it->name) : REPORT_UNKNOWN;
	size_t n;

	if (model == NULL)
		report_say(r, INCOMPLETE, "no file of model states");
	else
		read_world(it, model, &w);
	check_models(it, &w, r);
	if (universal)
		check_universal(it, model, r);
	else
		check_optimizer(it, &w, r);
	if (named != REPORT_UNKNOWN && w.step != REPORT_UNKNOWN &&
	    named != w.step)
		report_say(r, INCOMPLETE, "%s is of step %" PRId64 ", its folder of %"
		    PRId64, model, w.step, named);
	n = parts->n;
	folder_add_files(it, NULL, parts, r);
	drop_stale(&w, parts, n, r);
	report_note(r, "no completeness marker in this layout");
}

const struct format format_deepspeed = {
	.name = "deepspeed",
	.recognise = recognise,
	.complete = complete,
	.same_step = true,
	.same_files = true,
	.inside = true
};

/* Another format, so that neither is held against the other's files. */
const struct format format_deepspeed_universal = {
	.name = "deepspeed_universal",
	.recognise = is_universal,
	.complete = complete,
	.same_step = true,
	.inside = true
};
