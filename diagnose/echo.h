/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo.h - which candidates are only the echo of another one.
 */
#ifndef HOLDFAST_DIAGNOSE_ECHO_H
#define HOLDFAST_DIAGNOSE_ECHO_H

#include "diagnose/cause.h"

/* Marks them. */
int	echo_mark(struct case_file *, struct err *err);

/* False when places or times show that a did not lead to b. */
bool	echo_possible(const struct cause *a, const struct cause *b);
/* They name nodes that cannot be the same. */
bool	echo_other_node(const struct cause *a, const struct cause *b);
/* A failure that a rank can only have from its own node. */
bool	echo_is_local(const struct reason *);

#endif
