/* SPDX-License-Identifier: Apache-2.0 */
/*
 * role.h - starts another process of this program: a supervisor or an agent.
 */
#ifndef HOLDFAST_SUPERVISOR_ROLE_H
#define HOLDFAST_SUPERVISOR_ROLE_H

#include <sys/types.h>

#include "common/err.h"

/* `holdfast ROLE DIR [ARGUMENT]` in a session of its own, no signal blocked,
 * standard input /dev/null, both outputs on output_fd. */
int	role_start(const char *role, const char *dir, const char *argument,
	    int output_fd, pid_t *out, struct err *err);

#endif
