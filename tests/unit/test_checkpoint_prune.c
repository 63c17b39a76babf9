/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_prune.c - what prune decides: by hand, and what must hold for any set
 * of checkpoints and any policy.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/prune.h"
#include "unit.h"

#define N_MAX		24
#define ROUNDS		20000
#define VALID		HOLDFAST_CHECKPOINT_VALID
#define CORRUPT		HOLDFAST_CHECKPOINT_CORRUPT
#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE
#define NON_FINITE	HOLDFAST_CHECKPOINT_NON_FINITE
#define UNVERIFIED	HOLDFAST_CHECKPOINT_UNVERIFIED
#define UNREADABLE	HOLDFAST_CHECKPOINT_UNREADABLE

static struct prune_step list[N_MAX];
/* what reading to the last byte finds */
static enum holdfast_checkpoint_state truth[N_MAX];
static struct prune_policy policy;
static const char *refused;

static int
read_all(void *arg, struct prune_step *s)
{
	(void)arg;
	s->state = truth[s - list];
	return 0;
}

static int
cannot_read(void *arg, struct prune_step *s)
{
	(void)arg;
	(void)s;
	return -1;
}

static void
set_up(void)
{
	memset(list, 0, sizeof(list));
	memset(&policy, 0, sizeof(policy));
	policy.keep_last = 2;
	policy.keep_after_ns = REPORT_UNKNOWN;
	policy.verify = read_all;
}

/* Steps 100, 90, ... of one letter each: v valid, c corrupt (by structure), d corrupt
 * inside, i incomplete, n not finite, u unverified, r unreadable, h valid but held, t
 * valid and given by a tracker, b without step in its name. */
static void
steps(const char *letters)
{
	size_t i;

	for (i = 0; letters[i] != '\0'; i++) {
		struct prune_step *s = &list[i];

		*s = (struct prune_step){ .step = 100 - 10 * (int64_t)i,
		    .mtime_ns = 1000 - (int64_t)i };
		truth[i] = letters[i] == 'd' ? CORRUPT : letters[i] == 'n' ?
		    NON_FINITE : VALID;
		s->state = letters[i] == 'c' ? CORRUPT : letters[i] == 'i' ?
		    INCOMPLETE : letters[i] == 'u' ? UNVERIFIED :
		    letters[i] == 'r' ? UNREADABLE : VALID;
		s->held = letters[i] == 'h';
		s->pinned = letters[i] == 't';
		s->unnamed = letters[i] == 'b';
	}
}

/* The decision as letters: - removed, + kept; "!" when nothing may be removed. */
static const char *
decide(const char *letters)
{
	static char out[N_MAX + 1];
	size_t i, n = strlen(letters);

	steps(letters);
	ck_assert_int_eq(prune_decide(list, n, &policy, &refused), 0);
	for (i = 0; i < n; i++) {
		out[i] = list[i].remove ? '-' : '+';
		ck_assert(!list[i].remove || list[i].why != NULL);
	}
	out[n] = '\0';
	if (refused != NULL) {
		ck_assert_ptr_null(strchr(out, '-'));
		return "!";
	}
	return out;
}

START_TEST(by_hand)
{
	ck_assert_str_eq(decide("vvvv"), "++--");
	ck_assert_str_eq(decide("vv"), "++");
	ck_assert_str_eq(decide("v"), "+");
	ck_assert_str_eq(decide(""), "!");
	/* broken ones do not count, and go only behind enough whole ones */
	ck_assert_str_eq(decide("vcvv"), "+++-");
	ck_assert_str_eq(decide("vdvv"), "+++-");
	ck_assert_str_eq(decide("ivvcv"), "+++--");
	ck_assert_str_eq(decide("vccc"), "++++");
	/* poisoned in front: nothing goes */
	ck_assert_str_eq(decide("nvvvv"), "!");
	ck_assert_str_eq(decide("invvvv"), "!");
	ck_assert_str_eq(decide("hnvvvv"), "!");
	/* poisoned behind a whole one: a run that went back and on */
	ck_assert_str_eq(decide("vnvnv"), "+++--");
	ck_assert_str_eq(decide("cccc"), "!");
	/* left alone, and not counted */
	ck_assert_str_eq(decide("hvvv"), "+++-");
	ck_assert_str_eq(decide("vvhv"), "+++-");
	ck_assert_str_eq(decide("vvtv"), "+++-");
	ck_assert_str_eq(decide("vvbv"), "+++-");
	ck_assert_str_eq(decide("vvuv"), "+++-");
	ck_assert_str_eq(decide("vvrv"), "+++-");
	ck_assert_str_eq(decide("bbvvv"), "++++-");
	policy.keep_last = 3;
	ck_assert_str_eq(decide("vvvv"), "+++-");
}
END_TEST

START_TEST(other_rules)
{
	static const int64_t spikes[] = { 65, 1000 };

	/* 100 .. 40: the first of each 30 steps is 90, 60, 40 (the first there is) */
	policy.keep_every = 30;
	ck_assert_str_eq(decide("vvvvvvv"), "++--+-+");
	/* 60 is broken inside: 70 stands in for it */
	ck_assert_str_eq(decide("vvvvdvv"), "++-+--+");
	policy.keep_every = 0;
	policy.spikes = spikes;
	policy.n_spikes = 1;
	ck_assert_str_eq(decide("vvvvvvv"), "++--+--");
	ck_assert_str_eq(decide("vvvvdvv"), "++---+-");
	policy.n_spikes = 2;
	ck_assert_str_eq(decide("vvvvvvv"), "++--+--");
	policy.n_spikes = 0;
	policy.keep_after_ns = 996;
	ck_assert_str_eq(decide("vvvvvvv"), "+++++--");
	policy.verify = cannot_read;
	steps("vvv");
	ck_assert_int_eq(prune_decide(list, 3, &policy, &refused), -1);
}
END_TEST

static unsigned long long seed = 0x9e3779b97f4a7c15;

static unsigned
random_below(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed % n);
}

/* A set and a policy; half of the sets are mostly whole. */
static size_t
random_set(char letters[N_MAX + 1])
{
	static const char any[] = "vvvvcdinurhtb", mostly[] = "vvvvvvvvvvvvvdcnth";
	size_t n = random_below(N_MAX), i;
	bool m = random_below(2) == 0;

	for (i = 0; i < n; i++)
		letters[i] = m ? mostly[random_below(sizeof(mostly) - 1)] :
		    any[random_below(sizeof(any) - 1)];
	letters[n] = '\0';
	return n;
}

static bool
is_whole(char letter)
{
	return letter == 'v' || letter == 't';
}

static void
check_invariants(const char *letters, size_t n)
{
	size_t i, k, whole = 0, kept = 0;
	size_t newest = n;

	for (i = 0; i < n; i++) {
		whole += is_whole(letters[i]);
		kept += is_whole(letters[i]) && !list[i].remove;
		/* never touched */
		if (strchr("hturb", letters[i]) != NULL)
			ck_assert_msg(!list[i].remove, "%s: %zu", letters, i);
		/* among the last keep_last whole ones */
		if (is_whole(letters[i]) && (int64_t)whole <= policy.keep_last)
			ck_assert_msg(!list[i].remove, "%s: %zu", letters, i);
		/* whatever goes has that many whole ones before it */
		if (list[i].remove)
			ck_assert_msg((int64_t)(whole - is_whole(letters[i])) >=
			    policy.keep_last, "%s: %zu", letters, i);
		if (newest == n && (is_whole(letters[i]) || letters[i] == 'n'))
			newest = i;
		if (policy.keep_after_ns != REPORT_UNKNOWN &&
		    list[i].mtime_ns >= policy.keep_after_ns)
			ck_assert(!list[i].remove);
	}
	ck_assert_msg(kept >= (whole < 2 ? whole : 2), "%s", letters);
	if (newest < n && letters[newest] == 'n')
		for (i = 0; i < n; i++)
			ck_assert_msg(!list[i].remove, "%s", letters);
	for (k = 0; k < policy.n_spikes; k++)
		for (i = 0; i < n; i++)
			if (list[i].step < policy.spikes[k] &&
			    is_whole(letters[i])) {
				ck_assert_msg(!list[i].remove, "%s: spike %lld",
				    letters, (long long)policy.spikes[k]);
				break;
			}
}

/* Pruning what pruning has left changes nothing. */
static void
check_again(const char *letters, size_t n)
{
	size_t i, m = 0;

	for (i = 0; i < n; i++)
		if (!list[i].remove) {
			truth[m] = truth[i];
			list[m++] = list[i];
		}
	ck_assert_int_eq(prune_decide(list, m, &policy, &refused), 0);
	for (i = 0; i < m; i++)
		ck_assert_msg(!list[i].remove, "%s: %zu the second time", letters,
		    i);
}

START_TEST(any_set)
{
	int64_t spikes[2];
	char letters[N_MAX + 1];
	size_t n, removed = 0, i;
	int round;

	policy.spikes = spikes;
	for (round = 0; round < ROUNDS; round++) {
		n = random_set(letters);
		policy.keep_last = 2 + random_below(4);
		policy.keep_every = random_below(3) == 0 ? 10 * random_below(8) : 0;
		policy.keep_after_ns = random_below(4) == 0 ?
		    1000 - random_below(N_MAX) : REPORT_UNKNOWN;
		policy.n_spikes = random_below(3);
		spikes[0] = random_below(120);
		spikes[1] = random_below(120);
		decide(letters);
		for (i = 0; i < n; i++)
			removed += list[i].remove;
		check_invariants(letters, n);
		check_again(letters, n);
	}
	/* or all of this said nothing */
	ck_assert_uint_gt(removed, ROUNDS / 2);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, NULL);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, by_hand);
	tcase_add_test(t, other_rules);
	tcase_add_test(t, any_set);
}

int
main(void)
{
	return unit_run("checkpoint_prune", add_tests);
}
