/* SPDX-License-Identifier: Apache-2.0 */
/*
 * card.h - a verdict for a person: one frame of at most CARD_ROWS rows, whatever is
 * in the verdict.
 */
#ifndef HOLDFAST_DIAGNOSE_CARD_H
#define HOLDFAST_DIAGNOSE_CARD_H

#include <stdbool.h>
#include <stdio.h>

#include "diagnose/verdict.h"

#define CARD_ROWS	15
#define CARD_COLUMNS	80	/* where the width is not known */

/* How to write for a person who reads at the other end of a descriptor. */
struct card_style {
	bool	colour;
	int	columns;
};

/* Colours on a terminal unless NO_COLOR is set; its width, within reason. */
struct card_style card_style_of(int fd);

void	card_print(const struct verdict *, const struct card_style *, FILE *);

/* A title between dashes, filled up to the width of the card; and its end. */
void	card_put_rule(const char *title, const char *colour,
	    const struct card_style *, FILE *);

/* "restart, leave out node07": what an action is called among people; node may be
 * NULL. */
#define CARD_ACTION_MAX	160
void	card_action(enum action_kind, const char *node,
	    char out[CARD_ACTION_MAX]);

#endif
