/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch_write.h - writes files that torch.load() reads, from memory and without torch.
 *
 * The layout is that of torch.save: a zip archive of stored records whose data begin
 * at multiples of 64 (caffe2/serialize/inline_container.cc), with a pickle of
 * protocol 2 whose tensors refer to records (torch/serialization.py, torch/_utils.py
 * and torch/_tensor.py, PyTorch 1.13 and 2.x).
 */
#ifndef HOLDFAST_CHECKPOINT_TORCH_WRITE_H
#define HOLDFAST_CHECKPOINT_TORCH_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "checkpoint/sink.h"

#define TORCH_WRITE_DEPTH_MAX	64	/* of dicts inside dicts */
#define TORCH_WRITE_DIMS_MAX	64
#define TORCH_WRITE_NAME_MAX	4096	/* bytes */
#define TORCH_WRITE_ENTRIES_MAX	1000000

enum torch_kind {
	TORCH_TENSOR = 1,
	TORCH_INT,
	TORCH_FLOAT,
	TORCH_BOOL,
	TORCH_NONE,
	TORCH_TEXT,		/* UTF-8 */
	TORCH_BYTES
};

/* All pointers are the caller's; name and shape need no alignment or terminator. */
struct torch_entry {
	enum torch_kind	 kind;
	unsigned	 dtype;		/* enum holdfast_checkpoint_dtype */
	const char	*name;
	size_t		 name_len;
	unsigned	 ndim;
	const uint64_t	*shape;
	const void	*data;		/* of a tensor, text, bytes */
	uint64_t	 bytes;
	int64_t		 integer;	/* also of a bool */
	double		 real;
};

/* Bytes of one element; 0 for what is no dtype. */
size_t	torch_dtype_size(unsigned dtype);

/* Checks what can be checked of one entry by itself: the name, the dtype, and that
 * the shape takes as many bytes as there are. */
int	torch_entry_check(const struct torch_entry *, struct err *err);

/*
 * Appends the pickle of a dict of these entries.  With a separator other than 0 names
 * are paths: "model/w" is w in the dict model.  Two entries of one name, or one that
 * is a dict for another, are an error.  The tensors' records are numbered from 0 in
 * the order of the entries.
 */
int	torch_pickle(struct buf *out, const struct torch_entry *, size_t n,
	    char separator, struct err *err);

struct torch_write_options {
	char			 separator;
	struct sink_limit	*limit;		/* may be NULL */
	/* sizes and offsets from here on take 64 bits; 0: as the format asks */
	uint64_t		 zip64_from;
};

/* Writes path, which must not exist, and syncs it; on failure nothing is left.
 * *size (may be NULL) is the size of the file. */
int	torch_write(const char *path, const struct torch_entry *, size_t n,
	    const struct torch_write_options *, uint64_t *size, struct err *err);

#endif
