/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.c - the kernel's clocks and a fake one behind one interface.
 */
#include <stdio.h>
#include <time.h>

#include "common/clock.h"

static int64_t
clock_read(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static int64_t
system_mono(void *arg)
{
	(void)arg;
	return clock_read(CLOCK_MONOTONIC);
}

static int64_t
system_wall(void *arg)
{
	(void)arg;
	return clock_read(CLOCK_REALTIME);
}

const struct clock clock_system = { system_mono, system_wall, NULL };

int64_t
clock_mono_ns(const struct clock *c)
{
	return c->mono_ns(c->arg);
}

int64_t
clock_wall_ns(const struct clock *c)
{
	return c->wall_ns(c->arg);
}

void
clock_format(int64_t wall_ns, char out[CLOCK_TEXT_MAX])
{
	time_t s = (time_t)(wall_ns / NS_PER_S);
	int ms = (int)(wall_ns % NS_PER_S / NS_PER_MS);
	struct tm tm;
	size_t n;

	gmtime_r(&s, &tm);
	n = strftime(out, CLOCK_TEXT_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, CLOCK_TEXT_MAX - n, ".%03dZ", ms);
}

static int64_t
fake_read(void *arg)
{
	return *(int64_t *)arg;
}

struct clock
clock_fake(int64_t *now_ns)
{
	return (struct clock){ fake_read, fake_read, now_ns };
}
