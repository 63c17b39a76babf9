/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confidence.c - how sure a verdict is, by the kind of its evidence.
 */
#include "diagnose/confidence.h"

double
confidence_of(const struct case_file *c, const struct cause *w,
    const struct verdict *v)
{
	static const double by_role[] = {
		[ROLE_ROOT] = 0.9, [ROLE_EITHER] = 0.75, [ROLE_SYMPTOM] = 0.5,
		[ROLE_CONFIRM] = 0.9, [ROLE_TEARDOWN] = 0.3,
		[ROLE_CONTEXT] = 0.3, [ROLE_BENIGN] = 0.1
	};
	double x = w->event.rule->def.confidence;

	if (x <= 0)
		x = w->exit ? 0.5 : by_role[w->event.rule->def.role];
	if (w->event.rule->def.priority < 0)
		x *= 0.8;
	if (w->late)
		x *= 0.7;
	if (v->alternative_count > 0)
		x *= 0.85;
	if (c->events.gave_up)
		x *= 0.9;
	return x;
}

