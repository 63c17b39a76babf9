/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prune.c - the decision alone, over steps from the newest to the oldest.
 */
#include "checkpoint/prune.h"

#define VALID	HOLDFAST_CHECKPOINT_VALID

/* A step that counts: whole, to the last byte, and finished. */
static int
is_whole(struct prune_step *s, const struct prune_policy *p, bool *whole)
{
	*whole = false;
	if (s->held || s->unnamed || s->state != VALID)
		return 0;
	if (p->verify != NULL && p->verify(p->arg, s) == -1)
		return -1;
	*whole = s->state == VALID;
	return 0;
}

static void
keep(struct prune_step *s, const char *why)
{
	s->remove = false;
	if (s->why == NULL)
		s->why = why;
}

/* The newest that is finished must not be poisoned: those before it may be all that is
 * left to go back to. */
static int
check_newest(struct prune_step *list, size_t n, const struct prune_policy *p,
    const char **refused)
{
	bool whole;
	size_t i;

	for (i = 0; i < n; i++) {
		if (is_whole(&list[i], p, &whole) == -1)
			return -1;
		if (list[i].state == HOLDFAST_CHECKPOINT_NON_FINITE) {
			*refused = "the newest one holds NaN or infinity";
			return 0;
		}
		if (whole)
			return 0;
	}
	*refused = "no finished, whole checkpoint was found";
	return 0;
}

/* Marks the last keep_last whole ones; *behind is the index behind the last of them,
 * n when there are not so many. */
static int
keep_last(struct prune_step *list, size_t n, const struct prune_policy *p,
    size_t *behind)
{
	int64_t left = p->keep_last;
	bool whole;
	size_t i;

	for (i = 0; i < n && left > 0; i++) {
		if (is_whole(&list[i], p, &whole) == -1)
			return -1;
		if (whole) {
			keep(&list[i], "one of the last");
			left--;
		}
	}
	*behind = left > 0 ? n : i;
	return 0;
}

/* The first whole one of each keep_every steps: it stays the first. */
static int
keep_every(struct prune_step *list, size_t n, const struct prune_policy *p)
{
	int64_t bucket, last = -1;
	bool whole;
	size_t i;

	if (p->keep_every <= 0)
		return 0;
	for (i = n; i-- > 0; ) {
		if (list[i].step < 0)
			continue;
		bucket = list[i].step / p->keep_every;
		if (bucket == last)
			continue;
		if (is_whole(&list[i], p, &whole) == -1)
			return -1;
		if (whole) {
			keep(&list[i], "one of every so many");
			last = bucket;
		}
	}
	return 0;
}

static int
keep_before_spikes(struct prune_step *list, size_t n,
    const struct prune_policy *p)
{
	bool whole;
	size_t i, k;

	for (k = 0; k < p->n_spikes; k++)
		for (i = 0; i < n; i++) {
			if (list[i].step < 0 || list[i].step >= p->spikes[k])
				continue;
			if (is_whole(&list[i], p, &whole) == -1)
				return -1;
			if (whole) {
				keep(&list[i], "the last before a spike");
				break;
			}
		}
	return 0;
}

static void
keep_others(struct prune_step *s, const struct prune_policy *p)
{
	if (s->held)
		keep(s, "may still be written");
	if (s->pinned)
		keep(s, "a tracker or the trainer names it");
	if (s->unnamed || s->step < 0)
		keep(s, "its name has no step");
	if (p->keep_after_ns != REPORT_UNKNOWN && (s->mtime_ns == REPORT_UNKNOWN ||
	    s->mtime_ns >= p->keep_after_ns))
		keep(s, "is young");
	if (s->state == HOLDFAST_CHECKPOINT_UNREADABLE)
		keep(s, "cannot be read");
	if (s->state == HOLDFAST_CHECKPOINT_UNVERIFIED)
		keep(s, "cannot be judged");
}

int
prune_decide(struct prune_step *list, size_t n, const struct prune_policy *p,
    const char **refused)
{
	size_t i, behind;

	*refused = NULL;
	for (i = 0; i < n; i++) {
		list[i].remove = false;
		list[i].why = NULL;
	}
	if (check_newest(list, n, p, refused) == -1)
		return -1;
	for (i = 0; *refused != NULL && i < n; i++)
		keep_others(&list[i], p);
	if (*refused != NULL)
		return 0;
	if (keep_last(list, n, p, &behind) == -1)
		return -1;
	for (i = behind; i < n; i++)
		list[i].remove = true;
	if (keep_every(list, n, p) == -1 || keep_before_spikes(list, n, p) == -1)
		return -1;
	for (i = 0; i < n; i++)
		keep_others(&list[i], p);
	for (i = 0; i < n; i++)
		if (list[i].why == NULL)
			list[i].why = list[i].remove ? (list[i].state == VALID ?
			    "not needed" : "broken") : "newer than those that count";
	return 0;
}
