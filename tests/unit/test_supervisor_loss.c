/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_supervisor_loss.c - sustained spikes are seen with their first step; warm-up,
 * outliers, restarts of the learning rate and slow changes are none.
 */
#include <check.h>
#include <math.h>

#include "supervisor/loss.h"
#include "unit.h"

static const struct loss_limits limits = { .factor = 2, .count = 20 };
static struct loss loss;
static int64_t step;
static int spikes;

static void
set_up(void)
{
	loss_begin(&loss, &limits);
	step = 0;
	spikes = 0;
}

/* n losses from one level to another, with noise of some percent. */
static void
feed(int n, double from, double to, double percent)
{
	int i;

	for (i = 0; i < n; i++) {
		double at = from + (to - from) * i / n;
		double noise = ((int)unit_random(2001) - 1000) / 1000.0;

		spikes += loss_add(&loss, ++step, at * (1 + noise * percent / 100));
	}
}

START_TEST(spikes_that_stay)
{
	feed(500, 11, 2.5, 3);
	feed(500, 2.5, 2.4, 3);
	ck_assert_int_eq(spikes, 0);
	feed(19, 7, 7, 10);
	ck_assert_int_eq(spikes, 0);
	feed(1, 7, 7, 10);
	ck_assert_int_eq(spikes, 1);
	ck_assert_int_eq(loss.onset, 1001);
	ck_assert(loss.level > 2.2 && loss.level < 2.6);
	/* said once */
	feed(200, 7, 9, 10);
	ck_assert_int_eq(spikes, 1);
}
END_TEST

START_TEST(what_is_no_spike)
{
	int i;

	/* warm-up, from far above, or with a rise at first */
	feed(20, 11, 14, 5);
	feed(500, 12, 2.5, 5);
	/* outliers, and short ones */
	for (i = 0; i < 50; i++) {
		feed(50, 2.5, 2.4, 4);
		feed(1 + (int)unit_random(19), 9, 9, 20);
	}
	/* restarts of the learning rate, another mixture of data */
	for (i = 0; i < 10; i++) {
		feed(300, 2.5, 2.2, 4);
		feed(100, 2.9, 2.5, 4);
	}
	feed(300, 3.3, 3.2, 4);
	/* slowly upwards: a matter for people */
	feed(20000, 3.2, 12, 4);
	ck_assert_int_eq(spikes, 0);
}
END_TEST

START_TEST(odd_losses)
{
	/* constant, zero, negative, and very noisy ones */
	feed(200, 3, 3, 0);
	feed(20, 5.9, 5.9, 0);
	ck_assert_int_eq(spikes, 0);
	set_up();
	feed(200, 0, 0, 0);
	feed(20, 0.5, 0.5, 0);
	ck_assert_int_eq(spikes, 0);
	feed(20, 0.6, 0.6, 0);
	ck_assert_int_eq(spikes, 1);
	/* a policy's, which begins near nothing */
	set_up();
	feed(200, 0.0001, 0.001, 50);
	feed(2000, 0.001, 0.4, 50);
	ck_assert_int_eq(spikes, 0);
	set_up();
	feed(200, -5, -5, 3);
	feed(20, -2, -2, 3);
	ck_assert_int_eq(spikes, 0);
	feed(20, 1, 1, 3);
	ck_assert_int_eq(spikes, 1);
	set_up();
	feed(2000, 1, 1, 80);
	ck_assert_int_eq(spikes, 0);
}
END_TEST

/* After going back, the same height is a spike at once. */
START_TEST(levels_outlive_attempts)
{
	feed(200, 2, 2, 3);
	feed(20, 9, 9, 3);
	ck_assert_int_eq(spikes, 1);
	loss_resume(&loss);
	step = 150;
	feed(20, 9, 9, 3);
	ck_assert_int_eq(spikes, 2);
	ck_assert_int_eq(loss.onset, 151);
	loss_resume(&loss);
	step = 150;
	feed(500, 2, 1.9, 3);
	ck_assert_int_eq(spikes, 2);
}
END_TEST

START_TEST(steps_and_limits)
{
	static const struct loss_limits off = { .count = 20 };
	int i;

	/* the same step by another rank, or an older one, does not count */
	feed(100, 2, 2, 1);
	for (i = 0; i < 100; i++)
		ck_assert(!loss_add(&loss, step - i, 50));
	ck_assert_int_eq(loss.high, 0);
	loss_begin(&loss, &off);
	feed(100, 2, 2, 1);
	feed(100, 50, 50, 1);
	ck_assert_int_eq(spikes, 0);
	/* too early to tell */
	set_up();
	feed(LOSS_SETTLED / 3, 2, 2, 1);
	feed(1000, 50, 50, 1);
	ck_assert_int_eq(spikes, 0);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, NULL);
	tcase_add_test(t, spikes_that_stay);
	tcase_add_test(t, what_is_no_spike);
	tcase_add_test(t, odd_losses);
	tcase_add_test(t, levels_outlive_attempts);
	tcase_add_test(t, steps_and_limits);
}

int
main(void)
{
	return unit_run("supervisor_loss", add_tests);
}
