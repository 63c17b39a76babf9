/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter.c - the share of the logs that is read, on standard error.
 */
#include <stdio.h>
#include <unistd.h>

#include "common/clock.h"
#include "diagnose/meter.h"

#define FIRST_NS	NS_PER_S
#define EVERY_NS	(NS_PER_S / 5)

void
meter_init(struct meter *m)
{
	*m = (struct meter){ .on = isatty(STDERR_FILENO) };
	if (m->on)
		m->next_ns = clock_mono_ns(&clock_system) + FIRST_NS;
}

/* Whether it is time to show something; it is shown then. */
static bool
is_due(struct meter *m)
{
	int64_t now;

	if (!m->on || (now = clock_mono_ns(&clock_system)) < m->next_ns)
		return false;
	m->next_ns = now + EVERY_NS;
	return m->shown = true;
}

void
meter_update(uint64_t done, uint64_t all, void *meter)
{
	struct meter *m = meter;

	if (all > 0 && is_due(m))
		fprintf(stderr, "\rholdfast diagnose: %.0f %% of %.1f GB read\033[K",
		    100 * ((double)done / (double)all), (double)all / 1e9);
}

void
meter_unpack(uint64_t bytes, void *meter)
{
	struct meter *m = meter;

	if (is_due(m))
		fprintf(stderr, "\rholdfast diagnose: %.1f GB unpacked\033[K",
		    (double)bytes / 1e9);
}

void
meter_end(struct meter *m)
{
	if (m->shown)
		fputs("\r\033[K", stderr);
	m->shown = false;
}
