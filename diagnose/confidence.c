/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confidence.c - how sure a verdict is, by the kind of its evidence.
 *
 * The numbers are shares of right reasons, rounded, that each kind of evidence had on
 * labelled logs of failed jobs, a part of which no rule had been written for.  A site's
 * rule may say its own.
 */
#include <string.h>

#include "diagnose/confidence.h"

#define GENERIC		(-5)	/* rules of less priority know only a class */

/* Evidence, from strong to weak. */
enum evidence {
	EVIDENCE_CONFIRMED,	/* a record and a rank say the same */
	EVIDENCE_RECORD,	/* of the kernel or the scheduler */
	EVIDENCE_SPECIFIC,	/* a message that means one thing */
	EVIDENCE_EITHER,	/* one that can also be an echo */
	EVIDENCE_GENERIC,	/* an exception by its class alone */
	EVIDENCE_GUESSED,	/* an exception that no rule knows */
	EVIDENCE_SYMPTOM,	/* an echo, and nothing better */
	EVIDENCE_END,		/* how a process ended */
	EVIDENCE_NOTHING	/* something failed, no more is known */
};

static const double right[] = {
	[EVIDENCE_CONFIRMED] = 0.98, [EVIDENCE_RECORD] = 0.97,
	[EVIDENCE_SPECIFIC] = 0.96, [EVIDENCE_EITHER] = 0.92,
	[EVIDENCE_GENERIC] = 0.85, [EVIDENCE_GUESSED] = 0.75,
	[EVIDENCE_SYMPTOM] = 0.6, [EVIDENCE_END] = 0.5, [EVIDENCE_NOTHING] = 0.2
};

static enum evidence
kind_of(const struct cause *w, const struct verdict *v)
{
	const struct rule_def *d = &w->event.rule->def;

	if (v->status == VERDICT_UNDETERMINED)
		return EVIDENCE_NOTHING;
	if (w->exit)
		return EVIDENCE_END;
	if (v->status == VERDICT_SYMPTOM_ONLY)
		return EVIDENCE_SYMPTOM;
	if (w->confirmed)
		return EVIDENCE_CONFIRMED;
	if (strcmp(d->id, RULE_EXCEPTION) == 0)
		return EVIDENCE_GUESSED;
	if (d->priority < GENERIC)
		return EVIDENCE_GENERIC;
	if (d->role == ROLE_EITHER || d->role == ROLE_SYMPTOM)
		return EVIDENCE_EITHER;
	return d->source == SOURCE_KERNEL || d->source == SOURCE_SCHEDULER ?
	    EVIDENCE_RECORD : EVIDENCE_SPECIFIC;
}

/* Another cause that is as strong and that this one does not explain. */
static bool
has_rival(const struct case_file *c, const struct cause *w)
{
	size_t i;

	for (i = 0; i < c->count; i++) {
		const struct cause *a = &c->causes[i];

		if (a != w && !a->echo && !a->late && a->reason != w->reason &&
		    a->rank_class <= w->rank_class)
			return true;
	}
	return false;
}

double
confidence_of(const struct case_file *c, const struct cause *w,
    const struct verdict *v)
{
	double x = w->event.rule->def.confidence;

	if (x <= 0)
		x = right[kind_of(w, v)];
	if (w->late)
		x *= 0.85;
	if (has_rival(c, w))
		x *= 0.9;
	if (c->events.gave_up)
		x *= 0.9;
	if (c->feed->missing_count > 0)
		x *= 0.97;
	return x;
}

double
confidence_of_none(const struct case_file *c)
{
	size_t i;

	if (c->feed->missing_count > c->feed->count)
		return 0.3;
	if (c->feed->missing_count > 0)
		return 0.5;
	for (i = 0; i < c->feed->count; i++)
		if (c->facts[i].progress_before != SIZE_MAX)
			return 0.9;
	return 0.65;
}
