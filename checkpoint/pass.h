/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass.h - reads a file once, whatever is to be found out about its bytes: CRC32 of
 * some ranges, NaN and infinity in some, XXH3-128 of chunks or of the whole.
 *
 * The file is cut into units of 64 MiB, which several threads may take; the CRC32 of
 * a range is combined from those of its pieces.  A crew is the threads that check
 * files: one that has none left helps with the units of another's.
 */
#ifndef HOLDFAST_CHECKPOINT_PASS_H
#define HOLDFAST_CHECKPOINT_PASS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/digest.h"
#include "checkpoint/input.h"
#include "checkpoint/scan.h"

#define PASS_UNIT	(64ull << 20)	/* bytes */
/* A block, and the rest of a value that begins in it. */
#define PASS_BLOCK	(INPUT_BLOCK + 8u)

struct check;
struct pass;

struct crew {
	pthread_mutex_t	 lock;
	pthread_cond_t	 changed;
	struct pass	*first;		/* passes that could use help */
	size_t		 working;	/* threads that may still begin one */
};

void	crew_init(struct crew *);
void	crew_fini(struct crew *);
/* For a thread without work of its own, which counts in `working' until now: helps
 * until no thread works any more. */
void	crew_help(struct crew *);

struct pass_range {
	uint64_t	offset, length;	/* in the file */
	enum scan_elem	elem;
	bool		want_crc;
	/* found: */
	bool		hit;		/* a value is not finite */
	uint32_t	crc;
};

/* What a check is to hash on its way. */
struct pass_digests {
	uint32_t	 chunk_size;	/* a power of two up to PASS_UNIT; 0: none */
	bool		 want_whole;	/* then one thread alone reads the file */
	/* found: */
	bool		 done;
	struct digest	*chunks;	/* owned by the caller, who frees it */
	size_t		 n_chunks;
	struct digest	 whole;
};

struct pass_ranges {
	struct pass_range	*list;	/* owned; by offset, without overlap */
	size_t			 n, cap;
};

/* Adds one behind the others; 0, or -1 when memory is short. */
int	pass_add(struct pass_ranges *, const struct pass_range *);
void	pass_ranges_fini(struct pass_ranges *);

/* Reads the ranges, or all of the file when check->digests are still wanted.
 * Returns 0, or -1 with the reason said. */
int	pass_run(struct input *, struct pass_ranges *, const struct check *,
	    struct report *);

#endif
