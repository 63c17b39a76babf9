/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_megatron_legacy.c - Megatron-LM's --ckpt-format torch:
 * iter_NNNNNNN/mp_rank_TT[_PPP[_EEE]]/model_optim_rng.pt and its neighbours.
 * Source: megatron/training/checkpointing.py.
 *
 * The ranks form a full grid, all with the same files, and every file tells the
 * same iteration.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "checkpoint/folder.h"
#include "checkpoint/peek.h"

#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE
#define SIZE_MAX_GRID	65536	/* of one dimension */

static bool
recognise(const struct item *it)
{
	size_t i;

	for (i = 0; it->is_dir && i < it->names.n; i++)
		if (strncmp(it->names.list[i], "mp_rank_", 8) == 0 &&
		    folder_is_dir(it->path, it->names.list[i]))
			return true;
	return false;
}

/* The numbers in mp_rank_TT_PPP_EEE: how many there are, 0 when it is none. */
static int
ranks_of(const char *name, unsigned out[3])
{
	int n = 0, used = 0;

	if (strncmp(name, "mp_rank_", 8) != 0)
		return 0;
	name += 8;
	while (n < 3 && sscanf(name, "%5u%n", &out[n], &used) == 1) {
		name += used;
		n++;
		if (*name == '\0')
			return n;
		if (*name++ != '_')
			return 0;
	}
	return 0;
}

/* The sizes of tensor and pipeline parallelism that the arguments in a file tell; 0
 * when not known. */
static void
read_sizes(const struct item *it, const char *rank, int dims, unsigned size[3])
{
	static const char *const keys[] = { "tensor_model_parallel_size",
	    "pipeline_model_parallel_size" };
	const struct pickle_value *args, *v;
	struct peek peek;
	char *name;
	int i;

	if ((name = file_join(rank, "model_optim_rng.pt")) == NULL)
		return;
	if (peek_open(&peek, it->path, name) == 0)
		for (i = 0; i < 2 && i < dims; i++) {
			args = pickle_get(&peek.pickle.root, "args");
			if ((v = pickle_attr(args, keys[i])) == NULL)
				v = pickle_get(args, keys[i]);
			if (v != NULL && v->kind == PICKLE_INT && v->i > 0 &&
			    v->i < SIZE_MAX_GRID)
				size[i] = (unsigned)v->i;
		}
	peek_fini(&peek);
	free(name);
}

/* Rank directories must form a grid; the same files in each. */
static void
check_grid(const struct item *it, struct report *r)
{
	unsigned size[3] = { 1, 1, 1 }, told[3] = {0}, at[3];
	const char *first = NULL;
	struct names want = {0}, have = {0};
	size_t i, j, count = 0;
	char *path;
	int dims = 0, n;

	for (i = 0; i < it->names.n; i++) {
		if ((n = ranks_of(it->names.list[i], at)) == 0)
			continue;
		if (first == NULL) {
			first = it->names.list[i];
			dims = n;
		}
		count++;
		while (n-- > 0)
			if (at[n] + 1 > size[n])
				size[n] = at[n] + 1;
	}
	if (first == NULL)
		return;
	read_sizes(it, first, dims, told);
	for (n = 0; n < dims; n++) {
		if (told[n] != 0 && size[n] > told[n])
			report_say(r, INCOMPLETE, "rank folders of %u in a "
			    "dimension of %u", size[n], told[n]);
		else if (told[n] != 0)
			size[n] = told[n];
	}
	if (count != (size_t)size[0] * size[1] * size[2])
		report_say(r, INCOMPLETE, "%zu rank folders of %u x %u x %u",
		    count, size[0], size[1], size[2]);
	for (i = 0; i < it->names.n; i++) {
		if (ranks_of(it->names.list[i], at) == 0 ||
		    (path = file_join(it->path, it->names.list[i])) == NULL)
			continue;
		memset(&have, 0, sizeof(have));
		if (names_read(&have, path) == -1) {
			report_say(r, errno == ENOTDIR ? INCOMPLETE :
			    HOLDFAST_CHECKPOINT_UNREADABLE, "cannot read %s: %s",
			    it->names.list[i], strerror(errno));
			names_fini(&have);
			free(path);
			continue;
		}
		free(path);
		if (it->names.list[i] == first) {
			want = have;
			continue;
		}
		for (j = 0; j < want.n; j++)
			if (!names_has(&have, want.list[j]))
				report_say(r, INCOMPLETE, "%s/%s is missing",
				    it->names.list[i], want.list[j]);
		for (j = 0; j < have.n; j++)
			if (!names_has(&want, have.list[j]))
				report_say(r, INCOMPLETE, "%s/%s is missing",
				    first, have.list[j]);
		names_fini(&have);
	}
	names_fini(&want);
}

static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	check_grid(it, r);
	folder_add_files(it, NULL, parts, r);
	if (parts->n == 0)
		report_say(r, INCOMPLETE, "holds no checkpoint file");
}

static bool
is_iteration(const char *name)
{
	return strncmp(name, "iter_", 5) == 0;
}

/* non_persistent/iter_NNNNNNN, which it resumes from as well. */
static int
enumerate(const char *dir, const struct names *in, struct names *out)
{
	return folder_enumerate(dir, "non_persistent", is_iteration, in, out);
}

const struct format format_megatron_legacy = {
	.name = "megatron_legacy",
	.recognise = recognise,
	.complete = complete,
	.enumerate = enumerate,
	.same_step = true,
	.named_step = true
};
