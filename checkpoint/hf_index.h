/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_index.h - weights as Hugging Face libraries save them: one file, or shards and an
 * index that is written after them.  Source: huggingface_hub/serialization/_torch.py
 * and transformers/modeling_utils.py, save_pretrained().
 */
#ifndef HOLDFAST_CHECKPOINT_HF_INDEX_H
#define HOLDFAST_CHECKPOINT_HF_INDEX_H

#include "checkpoint/folder.h"

/* True when the folder has an index, or shards named as such. */
bool	hf_index_present(const struct item *);
/* Checks the indexes: their files exist, and hold exactly the tensors that the index
 * says; no shards without one.  Returns true when there were any. */
bool	hf_index_check(const struct item *, struct report *);

/* A file or folder of whole weights: model.safetensors, an adapter, FSDP's. */
bool	hf_weights_present(const struct item *);

/* The names of a safetensors file's tensors, sorted; -1 when it cannot be read (its
 * check says why). */
int	safetensors_names(const char *path, struct names *);

#endif
