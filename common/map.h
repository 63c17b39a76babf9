/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.h - files in memory that may be cut while they are read.
 *
 * Reading a mapped page that a file no longer has (a log rotated by copy and
 * truncate, a disk or server that fails) raises SIGBUS.  The first map_open()
 * of a process installs a handler that puts zero pages in the place of the rest
 * of that mapping; any other SIGBUS goes to the handler that was there before.
 * System calls on such pages fail with EFAULT instead.  Bytes of a file that is
 * written to may change between two reads of them.
 */
#ifndef HOLDFAST_COMMON_MAP_H
#define HOLDFAST_COMMON_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

/* Bytes behind the end that can be read as well: vector code reads whole blocks. */
#define MAP_TAIL	64

struct map {
	const char	*data;
	size_t		 len;
	uint32_t	 slot;		/* of the handler's table */
};

/* Maps len bytes of a file for reading, from an offset that is a multiple of the
 * page size; the descriptor is not needed any more then.  ERR_LIMIT when a further
 * mapping would leave too few of those that vm.max_map_count allows for the rest of
 * the process. */
int	map_open(struct map *, int fd, off_t offset, size_t len,
	    struct err *err);
void	map_close(struct map *);

/* True when a part of the file was gone, and zeros were read. */
bool	map_is_hurt(const struct map *);

/* Gives the memory between two offsets back, and what came with it: reading a byte
 * may bring up to 2 MiB around it.  It is read again when it is needed again. */
void	map_release(const struct map *, size_t from, size_t to);

#endif
