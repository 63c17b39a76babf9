/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter.h - one line on the terminal that says how far a long work is.
 */
#ifndef HOLDFAST_DIAGNOSE_METER_H
#define HOLDFAST_DIAGNOSE_METER_H

#include <stdbool.h>
#include <stdint.h>

/* Starts with meter_init(); shows nothing in the first second, and never where
 * standard error is no terminal. */
struct meter {
	int64_t	next_ns;
	bool	on;
	bool	shown;
};

void	meter_init(struct meter *);
/* meter is a struct meter, so that this can be a callback. */
void	meter_update(uint64_t done, uint64_t all, void *meter);
/* Before anything is read: of one file. */
void	meter_unpack(uint64_t bytes, void *meter);
/* Takes the line away. */
void	meter_end(struct meter *);

#endif
