/* SPDX-License-Identifier: Apache-2.0 */
/*
 * envp.h - an environment built from the caller's own and a set of changes.
 */
#ifndef HOLDFAST_SUPERVISOR_ENVP_H
#define HOLDFAST_SUPERVISOR_ENVP_H

#include <cjson/cJSON.h>

/* The caller's environment with the members of `set` put in (null removes a
 * variable) and those of `defaults` where it has none.  Both are objects of
 * strings or NULL.  NULL when memory is short; envp_free() frees it. */
char	**envp_new(const cJSON *set, const cJSON *defaults);
void	envp_free(char **envp);

#endif
