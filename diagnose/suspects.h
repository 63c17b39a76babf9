/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspects.h - the nodes and ranks that the evidence points at, and whether one node
 * may be left out for it.
 */
#ifndef HOLDFAST_DIAGNOSE_SUSPECTS_H
#define HOLDFAST_DIAGNOSE_SUSPECTS_H

#include "diagnose/cause.h"
#include "diagnose/verdict.h"

/* Adds one; node may be "", rank -1. */
void	suspect_add(struct verdict *, const char *node, int rank,
	    const char *why);
/* The node that a rank runs on, as far as any log tells; "" unknown. */
void	suspect_node_of_rank(const struct case_file *, int rank, char *out,
	    size_t size);
/* By the chosen candidate; also settles the node that the action excludes. */
void	suspects_find(struct verdict *, const struct case_file *,
	    const struct cause *);

#endif
