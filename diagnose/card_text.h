/* SPDX-License-Identifier: Apache-2.0 */
/* card_text.h - what a card says, before it is laid out; for card*.c alone. */
#ifndef HOLDFAST_DIAGNOSE_CARD_TEXT_H
#define HOLDFAST_DIAGNOSE_CARD_TEXT_H

#include "common/buf.h"
#include "diagnose/quote.h"
#include "diagnose/verdict.h"

/* In the order of the card. */
enum part {
	PART_WHAT, PART_WHERE, PART_PROOF, PART_QUOTE, PART_ECHOES, PART_OR,
	PART_SUSPECTS, PART_READ, PART_DO, PART_ADVICE, PART_NEXT, PART_UNREAD,
	PART_COUNT
};

struct card_text {
	struct buf		 part[PART_COUNT];	/* clean UTF-8 */
	struct quote_span	 telling;		/* of the quoted line */
	size_t			 room;			/* columns of a row, given */
};

void	card_write(const struct verdict *, struct card_text *);

#endif
