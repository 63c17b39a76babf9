/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - time as a parameter, so that tests and simulations can drive it.
 */
#ifndef HOLDFAST_COMMON_CLOCK_H
#define HOLDFAST_COMMON_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define NS_PER_MS	1000000LL
#define NS_PER_S	1000000000LL

struct clock {
	int64_t	(*mono_ns)(void *arg);	/* never steps; for intervals */
	int64_t	(*wall_ns)(void *arg);	/* since 1970, for people and other hosts */
	void	*arg;
};

/* The kernel's clocks. */
extern const struct clock clock_system;

int64_t	clock_mono_ns(const struct clock *);
int64_t	clock_wall_ns(const struct clock *);

/* "2026-01-31T03:12:41.123Z" (UTC) into out, which holds CLOCK_TEXT_MAX bytes. */
#define CLOCK_TEXT_MAX	32
void	clock_format(int64_t wall_ns, char out[CLOCK_TEXT_MAX]);

/* A fake for tests: both clocks read the int64_t behind arg. */
struct clock clock_fake(int64_t *now_ns);

#endif
