/* SPDX-License-Identifier: Apache-2.0 */
/* card.h - a verdict for a person, in at most 15 lines. */
#ifndef HOLDFAST_DIAGNOSE_CARD_H
#define HOLDFAST_DIAGNOSE_CARD_H

#include <stdbool.h>
#include <stdio.h>

#include "diagnose/verdict.h"

void	card_print(const struct verdict *, bool colour, bool all, FILE *);

#endif
