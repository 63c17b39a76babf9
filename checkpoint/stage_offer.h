/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_offer.h - a durable checkpoint shown in the fast directory, for a trainer that
 * looks for its newest one by itself.
 */
#ifndef HOLDFAST_CHECKPOINT_STAGE_OFFER_H
#define HOLDFAST_CHECKPOINT_STAGE_OFFER_H

#include "common/err.h"

/* Of a checkpoint that lies in TO: a link to it in FROM, and TO's trackers beside it.
 * What FROM has itself stays; a path elsewhere is left alone. */
int	stage_offer(const char *from, const char *to, const char *path,
	    struct err *err);

#endif
