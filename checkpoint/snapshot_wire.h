/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_wire.h - what a rank (client) and the process that writes its snapshots
 * (server) say to each other.
 *
 * One message is one packet of a Unix socket (SOCK_SEQPACKET) and always the whole
 * struct, in the byte order of the machine, on which both run.  Tensors lie in areas
 * of shared memory: memfds that the server makes, sealed against shrinking, so that
 * neither side can make the other one fault.
 *
 *	client				server
 *	RESERVE bytes			AREA for both, once they are ready
 *	BEGIN step rank world bytes	AREA that may be filled now, or FAIL
 *	GROW area bytes			AREA, or FAIL
 *	COMMIT area table		DONE, once it is durable, or is not going to be
 *	ABORT area
 *	ADOPT area, with its memfd	- (after a new connection: COMMIT may follow)
 *
 * AREA carries the memfd when the client cannot have it yet.  At the end of a
 * committed area's data is its table: a struct snapshot_head for each entry, then its
 * shape (u64 each) and its name, filled up to a multiple of 8.
 */
#ifndef HOLDFAST_CHECKPOINT_SNAPSHOT_WIRE_H
#define HOLDFAST_CHECKPOINT_SNAPSHOT_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "checkpoint/snapshot_name.h"
#include "checkpoint/torch_write.h"

#define SNAPSHOT_SOCKET_ENV	"HOLDFAST_STAGE_SOCKET"
#define SNAPSHOT_MAGIC		0x31534648u	/* "HFS1": changes with the struct */
#define SNAPSHOT_AREAS		2
#define SNAPSHOT_TEXT_MAX	256
#define SNAPSHOT_STEP_MAX	((int64_t)1 << 53)
#define SNAPSHOT_BYTES_MAX	((uint64_t)1 << 44)	/* of an area */
#define SNAPSHOT_TABLE_MAX	((uint64_t)1 << 28)
#define SNAPSHOT_ALIGN		64u			/* of data in an area */

enum snapshot_type {
	SNAPSHOT_RESERVE = 1, SNAPSHOT_BEGIN, SNAPSHOT_GROW, SNAPSHOT_COMMIT,
	SNAPSHOT_ABORT, SNAPSHOT_ADOPT, SNAPSHOT_FLUSH,
	SNAPSHOT_AREA = 32, SNAPSHOT_FAIL, SNAPSHOT_DONE
};

struct snapshot_message {
	uint32_t	magic;
	uint32_t	type;
	uint32_t	area;
	uint32_t	rank, world;
	uint32_t	attempt;	/* keeps the ranks of one start together */
	uint32_t	separator;
	uint32_t	begun;		/* AREA: it answers BEGIN or GROW */
	int32_t		code;		/* DONE, FAIL: a holdfast_checkpoint_code */
	uint32_t	entries;
	int64_t		step;
	uint64_t	sequence;	/* of the commit; DONE repeats it */
	uint64_t	bytes;		/* of the area */
	uint64_t	table_offset, table_bytes;
	char		text[SNAPSHOT_TEXT_MAX];
};

/* Sends one message, with pass_fd unless that is -1; 0, or -1 with errno. */
int	snapshot_send(int fd, struct snapshot_message *, int pass_fd);
/* The next message: 1, 0 at the end of the connection, -1 with errno; EPROTO for what
 * is none.  *passed is -1 or a descriptor that is the caller's now. */
int	snapshot_receive(int fd, struct snapshot_message *, int *passed);

struct snapshot_head {
	uint32_t	kind;		/* enum torch_kind */
	uint32_t	dtype;
	uint32_t	name_len;
	uint32_t	ndim;
	uint64_t	offset, bytes;	/* of the data in the area */
	uint64_t	value;		/* of int, float (its bits), bool */
};

/* Appends an entry whose data lie at offset; 0, or -1 when memory is short. */
int	snapshot_table_add(struct buf *, const struct torch_entry *,
	    uint64_t offset);
/*
 * Reads a table of n entries that stays in place; entries point into it, and into the
 * area of area_bytes bytes for their data.  Nothing in it is believed.  *out is the
 * caller's to free.
 */
int	snapshot_table_read(const void *table, size_t len, size_t n,
	    const void *area, uint64_t area_bytes, struct torch_entry **out,
	    struct err *err);

#endif
