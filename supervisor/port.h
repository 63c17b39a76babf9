/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port.h - a free TCP port for MASTER_PORT.
 *
 * The port is held by a bound socket that does not listen.  With SO_REUSEADDR on
 * both sides rank 0 can bind and listen on it all the same (socket(7): an address
 * may be bound twice unless one of the sockets listens), while the kernel hands
 * it to nobody else as an ephemeral port.
 */
#ifndef HOLDFAST_SUPERVISOR_PORT_H
#define HOLDFAST_SUPERVISOR_PORT_H

#include "common/err.h"

/* The holding descriptor, *port set; -1 with err. */
int	port_hold(int *port, struct err *err);

#endif
