/* SPDX-License-Identifier: Apache-2.0 */
/*
 * odd.c - see odd.h.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "supervisor/odd.h"

#define THREE		3	/* of two that differ neither is the odd one */
#define IDLE_PERCENT	5
#define BUSY_PERCENT	50
#define EARLIER_MS	30000

/* One rank in a state that no rank at work is in for long, or a few of many. */
static int
find_state(const struct odd_rank *r, size_t n, char state)
{
	size_t i, count = 0;
	int first = -1;

	for (i = 0; i < n; i++)
		if (r[i].state == state) {
			first = first == -1 ? (int)i : first;
			count++;
		}
	return count > 0 && count < n && count <= (n < 8 ? 1 : n / 8) ? first : -1;
}

/* Behind all the others, each of which tells its own step. */
static int
find_behind(const struct odd_rank *r, size_t n, int64_t *others)
{
	size_t i;
	int least = 0;

	for (i = 0; i < n; i++) {
		if (r[i].step == ODD_UNKNOWN)
			return -1;
		if (r[i].step < r[least].step)
			least = (int)i;
	}
	*others = INT64_MAX;
	for (i = 0; i < n; i++)
		if ((int)i != least && r[i].step < *others)
			*others = r[i].step;
	return n >= 2 && r[least].step < *others ? least : -1;
}

static const char *
text_of(const struct odd_rank *r, bool frame)
{
	return frame ? r->frame : r->wchan;
}

/* All others are in one place, this one in another. */
static int
find_text(const struct odd_rank *r, size_t n, bool frame)
{
	size_t i, k, same;

	for (i = 0; n >= THREE && i < n; i++) {
		const char *other = text_of(&r[i == 0 ? 1 : 0], frame);

		if (text_of(&r[i], frame) == NULL || other == NULL ||
		    strcmp(text_of(&r[i], frame), other) == 0)
			continue;
		for (k = 0, same = 0; k < n; k++)
			same += k != i && text_of(&r[k], frame) != NULL &&
			    strcmp(text_of(&r[k], frame), other) == 0;
		if (same == n - 1)
			return (int)i;
	}
	return -1;
}

/* The one that is (idle, busy) where all others are the opposite. */
static int
find_cpu(const struct odd_rank *r, size_t n, bool idle)
{
	size_t i, idles = 0, busy = 0;
	int found = -1;

	for (i = 0; i < n; i++) {
		if (r[i].cpu == ODD_UNKNOWN)
			return -1;
		idles += r[i].cpu <= IDLE_PERCENT;
		busy += r[i].cpu >= BUSY_PERCENT;
		if (idle ? r[i].cpu <= IDLE_PERCENT : r[i].cpu >= BUSY_PERCENT)
			found = (int)i;
	}
	if (n < THREE || idles + busy != n || (idle ? idles : busy) != 1)
		return -1;
	return found;
}

/* Silent much longer than each of the others. */
static int
find_silent(const struct odd_rank *r, size_t n, int64_t *others)
{
	size_t i;
	int most = 0;

	for (i = 0; i < n; i++) {
		if (r[i].silent_ms == ODD_UNKNOWN)
			return -1;
		if (r[i].silent_ms > r[most].silent_ms)
			most = (int)i;
	}
	*others = 0;
	for (i = 0; i < n; i++)
		if ((int)i != most && r[i].silent_ms > *others)
			*others = r[i].silent_ms;
	return n >= THREE && r[most].silent_ms > *others + EARLIER_MS &&
	    r[most].silent_ms / 2 > *others ? most : -1;
}

int
odd_find(const struct odd_rank *r, size_t n, char why[ODD_WHY_MAX])
{
	char mine[TEXT_SPAN_MAX], theirs[TEXT_SPAN_MAX];
	int64_t others;
	int i;

	why[0] = '\0';
	if (n == 0)
		return -1;
	if ((i = find_state(r, n, 'T')) != -1) {
		snprintf(why, ODD_WHY_MAX, "stopped by a signal (state T)");
	} else if ((i = find_state(r, n, 'D')) != -1) {
		snprintf(why, ODD_WHY_MAX, "blocked in the kernel (state D%s%.80s)",
		    r[i].wchan != NULL ? ", in " : "",
		    r[i].wchan != NULL ? r[i].wchan : "");
	} else if ((i = find_behind(r, n, &others)) != -1) {
		snprintf(why, ODD_WHY_MAX, "at step %" PRId64 ", the others at %"
		    PRId64 " and on", r[i].step, others);
	} else if ((i = find_text(r, n, true)) != -1) {
		snprintf(why, ODD_WHY_MAX, "in %.160s, the others in %.160s",
		    r[i].frame, r[i == 0 ? 1 : 0].frame);
	} else if ((i = find_cpu(r, n, true)) != -1) {
		snprintf(why, ODD_WHY_MAX, "idle, while the others wait busily");
	} else if ((i = find_cpu(r, n, false)) != -1) {
		snprintf(why, ODD_WHY_MAX, "busy, while the others wait for it");
	} else if ((i = find_text(r, n, false)) != -1) {
		snprintf(why, ODD_WHY_MAX, "waiting in %.80s, the others in %.80s",
		    r[i].wchan, r[i == 0 ? 1 : 0].wchan);
	} else if ((i = find_silent(r, n, &others)) != -1) {
		text_format_span(r[i].silent_ms, mine);
		text_format_span(others, theirs);
		snprintf(why, ODD_WHY_MAX, "silent for %s, the others for %s at "
		    "most", mine, theirs);
	}
	return i;
}
