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

/* What the arguments in a file tell; 0: not known. */
struct sizes {
	unsigned	tp, pp, ep;
};

static unsigned
size_in(const struct pickle_value *args, const char *key)
{
	const struct pickle_value *v = pickle_attr(args, key);

	if (v == NULL)
		v = pickle_get(args, key);
	return v != NULL && v->kind == PICKLE_INT && v->i > 0 &&
	    v->i < SIZE_MAX_GRID ? (unsigned)v->i : 0;
}

static void
read_sizes(const struct item *it, const char *rank, struct sizes *s)
{
	const struct pickle_value *args;
	struct peek peek;
	char *name;

	memset(s, 0, sizeof(*s));
	if ((name = file_join(rank, "model_optim_rng.pt")) == NULL)
		return;
	if (peek_open(&peek, it->path, name) == 0) {
		args = pickle_get(&peek.pickle.root, "args");
		s->tp = size_in(args, "tensor_model_parallel_size");
		s->pp = size_in(args, "pipeline_model_parallel_size");
		s->ep = size_in(args, "expert_model_parallel_size");
	}
	peek_fini(&peek);
	free(name);
}

/* The sizes in the order of the numbers in a folder's name: that of the pipeline, and
 * that of the experts, are there when there is more than one. */
static void
told_sizes(const struct sizes *s, int dims, unsigned told[3])
{
	bool experts = dims == 2 && s->ep > 1 && s->pp <= 1;

	told[0] = s->tp;
	told[1] = experts ? s->ep : s->pp;
	told[2] = dims == 3 ? s->ep : 0;
}

/* The folders that count, in order: not those that a larger world left, which nobody
 * reads. */
struct ranks {
	const char	**list;		/* borrowed */
	size_t		 n;
	unsigned	 size[3];
};

static void
find_ranks(const struct item *it, struct ranks *ranks, struct parts *parts,
    struct report *r)
{
	unsigned told[3] = {0}, at[3] = {0};
	struct sizes first, s;
	size_t i;
	int dims = 0, n, d;

	for (i = 0; i < it->names.n; i++) {
		const char *name = it->names.list[i];

		if ((n = ranks_of(name, at)) == 0 || (dims != 0 && n != dims))
			continue;
		if (dims == 0) {
			dims = n;
			read_sizes(it, name, &first);
			parts->counted = first.tp != 0;
			told_sizes(&first, dims, told);
			for (d = 0; d < 3; d++)
				ranks->size[d] = d < dims && told[d] ? told[d] : 1;
		}
		for (d = 0; d < dims && (told[d] == 0 || at[d] < told[d]); d++)
			;
		if (d < dims) {
			report_note(r, "%s was left by a larger world and is not "
			    "read", name);
			continue;
		}
		for (d = 0; d < dims; d++)
			if (at[d] >= ranks->size[d])
				ranks->size[d] = at[d] + 1;
		read_sizes(it, name, &s);
		if (s.tp != 0 && memcmp(&s, &first, sizeof(s)) != 0)
			report_say(r, INCOMPLETE, "%s is of %u x %u x %u ranks, %s "
			    "of %u x %u x %u", name, s.tp, s.pp, s.ep,
			    ranks->list[0], first.tp, first.pp, first.ep);
		ranks->list[ranks->n++] = name;
	}
}

/* The same files in two folders. */
static void
compare_folders(const char *a, const struct names *in_a, const char *b,
    const struct names *in_b, struct report *r)
{
	size_t i;

	for (i = 0; i < in_a->n; i++)
		if (!names_has(in_b, in_a->list[i]))
			report_say(r, INCOMPLETE, "%s/%s is missing", b,
			    in_a->list[i]);
	for (i = 0; i < in_b->n; i++)
		if (!names_has(in_a, in_b->list[i]))
			report_say(r, INCOMPLETE, "%s/%s is missing", a,
			    in_b->list[i]);
}

/* The folders form a grid, with the same files in each. */
static void
check_grid(const struct item *it, const struct ranks *ranks, struct report *r)
{
	struct names want = {0}, have = {0};
	const unsigned *size = ranks->size;
	size_t i;
	char *path;

	if (ranks->n != (size_t)size[0] * size[1] * size[2])
		report_say(r, INCOMPLETE, "%zu rank folders of %u x %u x %u",
		    ranks->n, size[0], size[1], size[2]);
	for (i = 0; i < ranks->n; i++) {
		struct names *names = i == 0 ? &want : &have;

		if ((path = file_join(it->path, ranks->list[i])) == NULL)
			continue;
		if (names_read(names, path) == -1)
			report_say(r, errno == ENOTDIR ? INCOMPLETE :
			    HOLDFAST_CHECKPOINT_UNREADABLE, "cannot read %s: %s",
			    ranks->list[i], strerror(errno));
		else if (i > 0)
			compare_folders(ranks->list[0], &want, ranks->list[i],
			    &have, r);
		free(path);
		names_fini(&have);
	}
	names_fini(&want);
}

static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	struct ranks ranks = {0};
	size_t i;

	ranks.list = calloc(it->names.n + 1, sizeof(*ranks.list));
	if (ranks.list == NULL) {
		parts->failed = true;
		return;
	}
	find_ranks(it, &ranks, parts, r);
	check_grid(it, &ranks, r);
	for (i = 0; i < ranks.n; i++)
		if (folder_is_dir(it->path, ranks.list[i]))
			folder_add_files(it, ranks.list[i], parts, r);
	free(ranks.list);
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
	.same_kinds = true,
	.named_step = true
};
