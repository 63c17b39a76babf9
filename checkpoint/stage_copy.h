/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_copy.h - copies a checkpoint, file or folder, from one file system to
 * another: hashed on the way, on the disk when it returns, at a speed that leaves
 * the disk to others.
 */
#ifndef HOLDFAST_CHECKPOINT_STAGE_COPY_H
#define HOLDFAST_CHECKPOINT_STAGE_COPY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>
#include <xxhash.h>

#include "common/err.h"
#include "checkpoint/sink.h"

#define STAGE_DEPTH_MAX	16			/* folders inside folders */
#define STAGE_FILES_MAX	1000000

/* A file that was copied: as it was found, and what it held. */
struct stage_file {
	char		*name;		/* relative to the checkpoint, "" itself; owned */
	uint64_t	 size;
	int64_t		 mtime_ns;
	dev_t		 dev;
	ino_t		 ino;
	XXH128_hash_t	 digest;
};

struct stage_copy {
	struct sink_limit	 limit;
	struct stage_file	*files;		/* owned */
	size_t			 n, cap;
	XXH3_state_t		*state;		/* owned */
};

/* bytes_per_s 0: as fast as it goes; cancel may be NULL.  0, or -1 when memory is
 * short.  stage_copy_fini() in both cases. */
int	stage_copy_init(struct stage_copy *, uint64_t bytes_per_s,
	    const atomic_bool *cancel, struct err *err);
void	stage_copy_fini(struct stage_copy *);
/* Forgets the files, keeps the buffers and the limit. */
void	stage_copy_clear(struct stage_copy *);

/*
 * Copies the checkpoint at `from` to `to`, which must not exist.  Data, sizes and
 * directories are synced.  A name that is neither file nor folder nor a relative
 * link that stays inside, and a file that changed meanwhile, are errors; ERR_BUSY
 * when `cancel` became true.  What was copied until then is left behind.
 */
int	stage_copy_run(struct stage_copy *, const char *from, const char *to,
	    struct err *err);

/* Removes a file, or a folder with all in it; what is absent is fine. */
int	stage_remove(const char *path, struct err *err);
/* The same for all in dir whose names begin with prefix; an absent dir is fine. */
int	stage_remove_inside(const char *dir, const char *prefix,
	    struct err *err);

#endif
