/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest.h - what a checkpoint held when it was whole: the size and XXH3-128 of each
 * file, beside it under a dot name, which trainers do not look at.
 *
 * DIR/.holdfast-manifest.json for a folder, DIR/.NAME.holdfast-manifest.json for the
 * file DIR/NAME.  It finds what most formats cannot: zeroes in place of data, a shard
 * of another step.  It only ever speaks for the save that it was written for: one that
 * is damaged, of another step or older than the files is unusable, which makes no
 * checkpoint bad.
 */
#ifndef HOLDFAST_CHECKPOINT_MANIFEST_H
#define HOLDFAST_CHECKPOINT_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/digest.h"
#include "checkpoint/names.h"

#define MANIFEST_SCHEMA	"holdfast.manifest/1"
#define MANIFEST_NAME	".holdfast-manifest.json"

/* Limits on what is taken from outside. */
#define MANIFEST_BYTES_MAX	(32u << 20)
#define MANIFEST_FILES_MAX	100000
#define MANIFEST_SIZE_MAX	(1ull << 53)	/* of a file */
#define MANIFEST_DEPTH_MAX	16		/* of folders */

struct manifest_file {
	char		*path;		/* relative to the folder; the file's name */
	uint64_t	 size;
	int64_t		 mtime_ns;
	uint64_t	 ino;
	struct digest	 whole;
	uint32_t	 chunk_size;	/* 0: no chunks */
	struct digest	*chunks;
	size_t		 n_chunks;
};

struct manifest {
	char			*format;	/* NULL: none */
	int64_t			 step;		/* or REPORT_UNKNOWN */
	char			*created;	/* "2026-01-31T03:12:41.123Z" */
	bool			 full;		/* contents were read and found valid */
	struct manifest_file	*files;		/* owned; sorted by path */
	size_t			 n, cap;
};

/* Where the manifest of a checkpoint is, to be freed; NULL when memory is short. */
char	*manifest_path(const char *checkpoint, bool is_dir);
/* The name is that of a manifest, or of one that is being written. */
bool	manifest_is_name(const char *name);

enum manifest_found {
	MANIFEST_ABSENT,
	MANIFEST_UNUSABLE,	/* err says why */
	MANIFEST_FOUND
};

/* Reads it without looking at the files.  manifest_fini() in all cases. */
enum manifest_found manifest_read(struct manifest *, const char *checkpoint,
	    bool is_dir, struct err *err);
void	manifest_fini(struct manifest *);

/* NULL when there is none of that path. */
const struct manifest_file *manifest_find(const struct manifest *,
	    const char *path);

/* All regular files are there with the size, time and inode they had, and it was
 * written after a full check: their contents need no second one. */
bool	manifest_stands(const struct manifest *, const char *checkpoint,
	    bool is_dir);

/* The regular files of a checkpoint by their paths in a manifest, sorted, without
 * manifests.  0, or -1. */
int	manifest_list(const char *checkpoint, bool is_dir, struct names *,
	    struct err *err);

/* A check read all of it, kept the digests, and found it valid; its manifest does not
 * stand. */
bool	manifest_is_due(const struct checkpoint *c);

/* Of the chunks of a file so large: 64 MiB, less for files that would have few. */
uint32_t manifest_chunk_size(uint64_t size);

/*
 * Writes the manifest of c, which checkpoint_check() found valid after reading all of
 * it, or which is a folder of no known format (its manifest then says what belongs to
 * it).  Syncs the files first: a manifest must not outlive them.  `at' is where the
 * files are when they were copied meanwhile, otherwise NULL.  known[n_known] are
 * digests that are known already, of files with the same path ("" or its name for a
 * single file), size and mtime; so are those that the check kept.  Others are read
 * now.  ERR_BUSY when a file changed since the check.
 */
int	manifest_write(const struct checkpoint *c, const char *at,
	    const struct manifest_file *known, size_t n_known, struct err *err);

#endif
