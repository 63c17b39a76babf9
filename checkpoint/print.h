/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.h - checkpoints as JSON objects and as lines for people.
 */
#ifndef HOLDFAST_CHECKPOINT_PRINT_H
#define HOLDFAST_CHECKPOINT_PRINT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "checkpoint/checkpoint.h"

/* State and reason as shown: one whose contents were not read is at best
 * "unverified". */
const char *print_state(const struct checkpoint *, bool structure_is_enough);

/* {"path","format","step","state","reason",...}; NULL when memory is short. */
cJSON	*print_json(const struct checkpoint *, bool structure_is_enough);

/* Prints and frees; 0, or -1 when memory is short. */
int	print_json_line(cJSON *);

/* One line a checkpoint: state, step, path, reason. */
void	print_verdict(const struct checkpoint *, bool structure_is_enough);

/* The table of `list`, with ages relative to now. */
void	print_table(const struct checkpoints *, int64_t now_ns);

/* Text with its control bytes as '?'. */
void	print_clean(FILE *, const char *text);

/* A progress line on stderr, if that is a terminal; told the bytes read so far.
 * print_progress_end() wipes it. */
struct print_progress {
	uint64_t	total;
	bool		on;
	int64_t		next_ns;
	int64_t		start_ns;
};
void	print_progress_start(struct print_progress *, const struct checkpoint *,
	    size_t n);
void	print_progress_add(void *progress, uint64_t bytes);
void	print_progress_end(struct print_progress *);

#endif
