/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_life.h - whether an earlier start of a run is still at work on this host.
 */
#ifndef HOLDFAST_SUPERVISOR_RUN_LIFE_H
#define HOLDFAST_SUPERVISOR_RUN_LIFE_H

#include "common/err.h"
#include "supervisor/run_spec.h"

enum run_life {
	RUN_ENDED,	/* its journal says so, or it never began */
	RUN_LIVES,	/* a supervisor, an agent or a rank of it is there */
	RUN_BROKEN_OFF	/* neither: all was killed, or the host rebooted */
};

/* Reads the journal, asks the sockets and looks through /proc. */
int	run_life_read(const struct run_spec *, enum run_life *out,
	    struct err *err);

/* Number of the last campaign that is over; 0 when there is none. */
int	run_life_campaign(const struct run_spec *);

/* Writes the end a run that broke off could not write. */
int	run_life_close(const struct run_spec *, struct err *err);

#endif
