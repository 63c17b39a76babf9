/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - keeps the worst finding and the first reason for it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/report.h"

static const char *const state_names[] = {
	[HOLDFAST_CHECKPOINT_VALID] = "valid",
	[HOLDFAST_CHECKPOINT_UNVERIFIED] = "unverified",
	[HOLDFAST_CHECKPOINT_NON_FINITE] = "non_finite",
	[HOLDFAST_CHECKPOINT_UNREADABLE] = "unreadable",
	[HOLDFAST_CHECKPOINT_INCOMPLETE] = "incomplete",
	[HOLDFAST_CHECKPOINT_CORRUPT] = "corrupt"
};

const char *
holdfast_checkpoint_state_name(enum holdfast_checkpoint_state state)
{
	if ((size_t)state >= sizeof(state_names) / sizeof(state_names[0]))
		return "unknown";
	return state_names[state];
}

void
report_init(struct report *r)
{
	memset(r, 0, sizeof(*r));
	r->step = REPORT_UNKNOWN;
}

void
report_fini(struct report *r)
{
	free(r->reason);
	free(r->note);
	r->reason = r->note = NULL;
}

static __attribute__((format(printf, 1, 0))) char *
clean_text(const char *fmt, va_list ap)
{
	char *text, *p;

	if (vasprintf(&text, fmt, ap) == -1)
		return NULL;
	for (p = text; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	return text;
}

void
report_say(struct report *r, enum holdfast_checkpoint_state state,
    const char *fmt, ...)
{
	va_list ap;

	if (state < r->state || (state == r->state && r->reason != NULL))
		return;
	va_start(ap, fmt);
	free(r->reason);
	r->reason = clean_text(fmt, ap);
	va_end(ap);
	r->state = state;
}

void
report_note(struct report *r, const char *fmt, ...)
{
	va_list ap;

	if (r->note != NULL)
		return;
	va_start(ap, fmt);
	r->note = clean_text(fmt, ap);
	va_end(ap);
}

void
report_merge(struct report *into, const struct report *from, const char *name)
{
	if (from->reason != NULL)
		report_say(into, from->state, "%s%s%s", name ? name : "",
		    name ? ": " : "", from->reason);
	if (from->note != NULL && name == NULL)
		report_note(into, "%s", from->note);
	if (name == NULL && into->step == REPORT_UNKNOWN)
		into->step = from->step;
	if (into->checksum == REPORT_CHECKSUM_UNKNOWN)
		into->checksum = from->checksum;
	else if (from->checksum != REPORT_CHECKSUM_UNKNOWN &&
	    from->checksum != into->checksum)
		into->checksum = REPORT_CHECKSUM_MIXED;
	into->nonfinite_tensors += from->nonfinite_tensors;
	into->nonfinite_values += from->nonfinite_values;
	into->bytes_read += from->bytes_read;
	into->contents_read |= from->contents_read;
}

bool
report_is_bad(const struct report *r)
{
	return r->state > HOLDFAST_CHECKPOINT_NON_FINITE;
}
