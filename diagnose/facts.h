/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facts.h - what one stream tells besides its findings: how far training came, and
 * when its lines were written.
 */
#ifndef HOLDFAST_DIAGNOSE_FACTS_H
#define HOLDFAST_DIAGNOSE_FACTS_H

#include "diagnose/cause.h"

/* Facts of a stream before anything is known. */
void	facts_init(struct stream_facts *);
/* The last two lines of completed steps, and the first and last times. */
void	facts_read(struct stream_facts *, const struct stream *);

/* Two steps completed after a line: the job got over it. */
bool	facts_got_over(const struct stream_facts *, const struct event *);
/* A bad loss that stays bad is not got over by further steps. */
bool	facts_loss_stays_bad(const struct stream_facts *, const struct event *);

#endif
