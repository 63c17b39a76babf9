/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.h - what the folder formats share.
 */
#ifndef HOLDFAST_CHECKPOINT_FOLDER_H
#define HOLDFAST_CHECKPOINT_FOLDER_H

#include <stdbool.h>

#include "common/json.h"
#include "checkpoint/format.h"

/* dir/name is a folder, not a link to one. */
bool	folder_is_dir(const char *dir, const char *name);
/* The folder has an entry of that name, which may be "a/b". */
bool	folder_has(const struct item *, const char *name);
/* An entry that starts and ends like this and is no temporary one. */
bool	folder_find(const struct item *, const char *prefix, const char *suffix);

/* For formats whose checkpoints also lie one level deeper: adds folder/NAME of each
 * name in dir/folder that `fits' lets by (NULL: all of them), and then, if there was
 * one, all of `in' but the folder.  0, or -1 when memory is short. */
int	folder_enumerate(const char *dir, const char *folder,
	    bool (*fits)(const char *name), const struct names *in,
	    struct names *out);

/* Adds all checkpoint files in the folder, or in `below` of it, and in the folders
 * inside.  A folder inside that is a checkpoint of its own (DeepSpeed, distributed)
 * adds what that must hold. */
void	folder_add_files(const struct item *, const char *below, struct parts *,
	    struct report *);
/* Adds one file of the folder. */
void	folder_add(const struct item *, const char *name, struct parts *);
/* What the folder `below` holds; finished by the caller.  Errors are said. */
void	folder_names(const struct item *, const char *below, struct names *,
	    struct report *);

/* A JSON file of the folder, to be deleted by the caller; NULL with the reason said
 * (absent, empty, cut off: incomplete). */
cJSON	*folder_json(const struct item *, const char *name, struct report *);

/* The parts of a distributed checkpoint (.metadata and .distcp files) in the folder
 * it->path/below, or in it->path when below is NULL. */
void	dcp_complete(const struct item *, const char *below, struct parts *,
	    struct report *);

#endif
