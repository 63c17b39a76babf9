/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_text.h - what reading and writing a manifest share.
 */
#ifndef HOLDFAST_CHECKPOINT_MANIFEST_TEXT_H
#define HOLDFAST_CHECKPOINT_MANIFEST_TEXT_H

#include "common/buf.h"
#include "checkpoint/manifest.h"

/* A relative path of names, none of them empty, "." or "..". */
bool	manifest_is_safe(const char *path);

/* An empty entry behind the others, or NULL when memory is short. */
struct manifest_file *manifest_add(struct manifest *, const char *path);
void	manifest_file_fini(struct manifest_file *);

/* Reads the text of a manifest.  manifest_fini() in both cases. */
int	manifest_parse(struct manifest *, const char *text, size_t len,
	    struct err *err);

/* The text must end in ',"seal":"DIGEST"}' and a newline; the digest is that of what
 * is before it.  manifest_seal() puts that behind an object without its '}'. */
int	manifest_unseal(const char *text, size_t len, struct err *err);
int	manifest_seal(struct buf *text);

#endif
