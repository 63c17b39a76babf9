/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch.h - the storages and tensors that a torch.save pickle speaks of.
 *
 * A storage is one record of raw bytes; a tensor is a named view of a part of
 * one.  Source: torch/serialization.py (persistent_id) and torch/_utils.py
 * (_rebuild_*) of PyTorch 1.13 and 2.x.
 */
#ifndef HOLDFAST_CHECKPOINT_TORCH_H
#define HOLDFAST_CHECKPOINT_TORCH_H

#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/pickle.h"
#include "checkpoint/report.h"
#include "checkpoint/scan.h"

#define TORCH_DEPTH_MAX		100	/* of containers walked for names */

struct torch_storage {
	const char	*key;		/* not terminated; inside the pickle */
	uint32_t	 key_len;
	enum scan_elem	 elem;
	uint32_t	 elem_size;	/* bytes; 0: type not known */
	bool		 untyped;	/* numel counts bytes; elem from a tensor */
	uint64_t	 numel;
	uint64_t	 bytes;		/* numel * elem_size */
};

struct torch_tensor {
	size_t		 storage;	/* index */
	enum scan_elem	 elem;
	uint32_t	 elem_size;
	uint64_t	 first, count;	/* elements of the storage it spans */
	char		*name;		/* "model/0.weight" */
};

struct torch_model {
	struct torch_storage	*storages;
	size_t			 n_storages;
	struct torch_tensor	*tensors;
	size_t			 n_tensors, cap_tensors;
	int64_t			 step;		/* REPORT_UNKNOWN */
	size_t			*index;		/* hash table over keys */
	size_t			 index_size;
};

/* Collects from a pickle that was read; names and keys stay valid as long as the
 * pickle and its buffer.  What does not fit together is said.  Returns 0, or -1
 * when nothing more can be checked (also said).  torch_free() in both cases. */
int	torch_collect(struct torch_model *, const struct pickle *,
	    struct report *);
void	torch_free(struct torch_model *);

/* The storage with that key, or NULL. */
struct torch_storage *torch_find(const struct torch_model *, const char *key,
	    size_t len);

/* The training step a top-level dict of a checkpoint tells, or REPORT_UNKNOWN. */
int64_t	torch_step(const struct pickle_value *root);

/* Infinities that are meant: masks, running extremes, scaling statistics. */
bool	torch_inf_is_meant(const char *tensor_name);

#endif
