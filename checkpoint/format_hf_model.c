/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_hf_model.c - a sharded Hugging Face model in a folder: shards, and
 * NAME.index.json written after them (also what torchtitan exports).
 */
#include "checkpoint/hf_index.h"

static bool
recognise(const struct item *it)
{
	return it->is_dir && hf_index_present(it);
}

static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	hf_index_check(it, r);
	folder_add_files(it, NULL, parts, r);
}

const struct format format_hf_model = {
	.name = "hf_model",
	.recognise = recognise,
	.complete = complete
};
