/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_config.h - where the options of `holdfast run` come from.
 *
 * Built in < SYSCONFDIR/holdfast/holdfast.conf < ~/.config/holdfast/holdfast.conf
 * < --config FILE < HOLDFAST_* < command line (holdfast.conf(5)).
 */
#ifndef HOLDFAST_SUPERVISOR_RUN_CONFIG_H
#define HOLDFAST_SUPERVISOR_RUN_CONFIG_H

#include "common/err.h"
#include "supervisor/run_spec.h"

struct run_config;

/* Resolves all sources; *first is the index of the command in argv.  Texts of
 * the options live as long as *out, argv and the environment. */
int	run_config_read(int argc, char *const *argv, struct run_options *options,
	    int *first, struct run_config **out, struct err *err);
void	run_config_free(struct run_config *);

#endif
