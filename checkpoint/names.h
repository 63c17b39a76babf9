/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - what a file name says: a step, a temporary, a checkpoint; and lists
 * of names.
 */
#ifndef HOLDFAST_CHECKPOINT_NAMES_H
#define HOLDFAST_CHECKPOINT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAMES_MAX	1000000	/* entries of a directory that are looked at */

struct names {
	char	**list;
	size_t	  n, cap;
};

/* Adds a copy; 0, or -1 when memory is short. */
int	names_add(struct names *, const char *name);
void	names_sort(struct names *);
bool	names_has(const struct names *, const char *name);	/* sorted ones */
void	names_fini(struct names *);
/* All entries of a directory but . and .., sorted; 0, or -1 with errno. */
int	names_read(struct names *, const char *dir);

/* The step a name tells ("step_10.pt", "checkpoint-10", "iter_0000010",
 * "epoch=0-step=200.ckpt", "ep0-ba100-rank0.pt"), or REPORT_UNKNOWN. */
int64_t	name_step(const char *name);
/* As name_step(), for folders: numbers that only a word such as step, iter,
 * checkpoint, epoch (or no word at all) makes a step; "run3" has none. */
int64_t	name_folder_step(const char *name);

/* Dot files, *.tmp, *.part, tmp-*, *-unfinished, ...: never a checkpoint. */
bool	name_is_temporary(const char *name);

/* .pt .pth .ckpt .bin .safetensors .distcp, and accelerate's .pkl */
bool	name_is_checkpoint_file(const char *name);

/* The last component of a path, each number in it replaced by '#'; to be freed, NULL
 * when memory is short. */
char	*name_kind(const char *path);
/* .pkl and .pickle, but not accelerate's, which torch.save writes. */
bool	name_is_pickle(const char *path);
bool	name_ends_with(const char *name, const char *suffix);

#endif
