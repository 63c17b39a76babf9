/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensors.c - decides which NaN and infinities make a checkpoint unfit, and says
 * so by name and number.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint/tensors.h"
#include "checkpoint/torch.h"

/* Infinities are meant in masks (only -inf and zeroes), running extremes and
 * scaling statistics; NaN never is. */
static bool
is_meant(const char *name, const struct scan_counts *c)
{
	if (c->nan > 0)
		return false;
	return (c->plus_inf == 0 && c->other_nonzero == 0) ||
	    torch_inf_is_meant(name);
}

void
tensors_add(struct tensors *t, const char *name, uint64_t total,
    const struct scan_counts *c)
{
	uint64_t inf = c->plus_inf + c->minus_inf;
	size_t len = strlen(t->text);
	int cut = (int)strnlen(name, REPORT_NAME_MAX);

	if ((c->nan == 0 && inf == 0) || is_meant(name, c))
		return;
	t->values += c->nan + inf;
	if (t->n++ >= TENSORS_NAMED_MAX)
		return;
	snprintf(t->text + len, sizeof(t->text) - len,
	    "%s%.*s: %" PRIu64 " NaN, %" PRIu64 " infinite of %" PRIu64 " values",
	    len > 0 ? "; " : "", cut, name, c->nan, inf, total);
}

void
tensors_report(const struct tensors *t, struct report *r)
{
	if (t->n == 0)
		return;
	r->nonfinite_tensors += t->n;
	r->nonfinite_values += t->values;
	if (t->n > TENSORS_NAMED_MAX)
		report_say(r, HOLDFAST_CHECKPOINT_NON_FINITE,
		    "%s; and %" PRIu64 " more tensors", t->text,
		    t->n - TENSORS_NAMED_MAX);
	else
		report_say(r, HOLDFAST_CHECKPOINT_NON_FINITE, "%s", t->text);
}
