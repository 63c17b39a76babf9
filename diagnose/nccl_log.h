/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_log.h - what NCCL's own lines tell about a failure besides their message.
 *
 * A failed call prints the way back through its callers: "host:pid:tid [0] NCCL INFO
 * misc/socket.cc:535 -> 6", the innermost first (NCCL's src/include/checks.h).  The
 * number is that of ncclResult_t: 1 CUDA, 2 system, 3 internal, 4 and 5 usage, 6 remote.
 * "comm 0x... rank 3 nranks 8 cudaDev 3 busId 4e000 - Init COMPLETE" (src/init.cc) tells
 * which rank has which GPU.
 */
#ifndef HOLDFAST_DIAGNOSE_NCCL_LOG_H
#define HOLDFAST_DIAGNOSE_NCCL_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "diagnose/cause.h"

#define NCCL_REMOTE	6

struct nccl_origin {
	int	 result;	/* of the innermost call */
	char	 file[32];	/* "socket.cc" */
};

/* The innermost call on the way back that is printed next to an offset, before it or
 * right behind; false when there is none near. */
bool	nccl_find_origin(const struct stream *, size_t at, struct nccl_origin *);
/* The reason that a source file of NCCL stands for, NULL when for none. */
const char *nccl_reason_of_file(const char *file);
/* The rank whose communicator uses the GPU at a PCI address, on a node or on any
 * ("" unknown); -1 when no line tells, or several do. */
int	nccl_rank_of_gpu(const struct case_file *, const char *node,
	    const char *gpu);
/* The host that a rank of the largest communicator runs on; "" when no line tells. */
void	nccl_node_of_rank(const struct case_file *, int rank, char *out,
	    size_t size);

#endif
