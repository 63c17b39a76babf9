/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_supervisor_hang.c - hangs are found, and what is merely slow is not taken for
 * one: whole runs by a clock that is moved by hand.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "supervisor/hang.h"
#include "unit.h"

#define TICK_S	5

static const struct hang_limits limits = { .idle_ms = 300000,
    .busy_ms = 1800000, .start_ms = 1800000 };
static struct hang hang;
static struct hang_learnt learnt;
static int64_t now_s, step;
static char why[HANG_WHY_MAX];
static int suspicions, ends;

static void
set_up(void)
{
	memset(&learnt, 0, sizeof(learnt));
	now_s = 1000;
	step = 0;
	suspicions = ends = 0;
	hang_begin(&hang, &limits, &learnt, now_s * NS_PER_S);
}

enum what { IDLE, BUSY, WRITING };

/* seconds in which nothing is said; returns the state at the end. */
static enum hang_state
pass(int64_t seconds, enum what what)
{
	struct hang_sample s = { .known = true, .idle = what == IDLE,
	    .io = what == WRITING };
	enum hang_state state = hang.state, before;

	for (; seconds > 0; seconds -= TICK_S) {
		now_s += TICK_S;
		hang_take(&hang, now_s * NS_PER_S, &s);
		before = hang.state;
		state = hang_check(&hang, now_s * NS_PER_S, TICK_S * NS_PER_S, why);
		suspicions += state == HANG_SUSPECT && before == HANG_NONE;
		ends += state == HANG_CERTAIN;
	}
	return state;
}

static void
train(int steps, int64_t seconds)
{
	while (steps-- > 0) {
		pass(seconds, BUSY);
		hang_step(&hang, now_s * NS_PER_S, ++step);
	}
}

static void
announce(enum hang_phase p)
{
	hang_announce(&hang, now_s * NS_PER_S, p);
}

START_TEST(idle_ranks_are_found)
{
	pass(60, BUSY);
	train(100, 5);
	ck_assert_int_eq(pass(25, IDLE), HANG_NONE);
	ck_assert_int_eq(pass(10, IDLE), HANG_SUSPECT);
	ck_assert_int_eq(pass(260, IDLE), HANG_SUSPECT);
	ck_assert_int_eq(pass(10, IDLE), HANG_CERTAIN);
	ck_assert_str_eq(why, "no step for 5 min 5 s (99 % took at most 5 s), no "
	    "output for 5 min 5 s, all ranks idle");
	ck_assert_int_eq(suspicions, 1);
}
END_TEST

/* A GPU's collective spins; NCCL's own watchdog comes first, where it is on. */
START_TEST(spinning_ranks_take_longer)
{
	train(100, 5);
	ck_assert_int_eq(pass(1790, BUSY), HANG_SUSPECT);
	ck_assert_int_eq(pass(15, BUSY), HANG_CERTAIN);
}
END_TEST

/* Ten times what steps take, whatever that is. */
START_TEST(slow_steps)
{
	train(20, 120);
	ck_assert_int_eq(suspicions, 0);
	ck_assert_int_eq(pass(355, IDLE), HANG_NONE);
	ck_assert_int_eq(pass(10, IDLE), HANG_SUSPECT);
	ck_assert_int_eq(pass(830, IDLE), HANG_SUSPECT);
	ck_assert_int_eq(pass(10, IDLE), HANG_CERTAIN);
}
END_TEST

START_TEST(phases_have_limits_of_their_own)
{
	static const enum hang_phase silent[] = { HANG_EVALUATION,
	    HANG_CHECKPOINT, HANG_SHUTDOWN };
	size_t i;

	for (i = 0; i < 3; i++) {
		set_up();
		train(100, 5);
		announce(silent[i]);
		ck_assert_int_ne(pass(1790, IDLE), HANG_CERTAIN);
		ck_assert_int_eq(pass(15, IDLE), HANG_CERTAIN);
		ck_assert_ptr_nonnull(strstr(why, hang_phase_name(silent[i])));
	}
	/* what took an hour once may take two */
	set_up();
	train(100, 5);
	announce(HANG_EVALUATION);
	pass(900, IDLE);
	pass(1700, BUSY);
	hang_step(&hang, now_s * NS_PER_S, ++step);
	announce(HANG_EVALUATION);
	ck_assert_int_ne(pass(5100, IDLE), HANG_CERTAIN);
	ck_assert_int_eq(pass(110, IDLE), HANG_CERTAIN);
}
END_TEST

START_TEST(start_up)
{
	/* compiling, or reading a checkpoint for hours */
	ck_assert_int_ne(pass(1750, BUSY), HANG_CERTAIN);
	ck_assert_int_eq(pass(7200, WRITING), HANG_SUSPECT);
	train(10, 5);
	ck_assert_int_eq(hang.state, HANG_NONE);
	/* the next attempt may take as long again */
	hang_begin(&hang, &limits, &learnt, now_s * NS_PER_S);
	ck_assert_int_ne(pass(8900, IDLE), HANG_CERTAIN);
	train(10, 5);
	/* nobody comes to the rendezvous */
	set_up();
	ck_assert_int_ne(pass(1790, IDLE), HANG_CERTAIN);
	ck_assert_int_eq(pass(15, IDLE), HANG_CERTAIN);
}
END_TEST

START_TEST(files_that_grow_are_work)
{
	train(100, 5);
	ck_assert_int_ne(pass(7200, WRITING), HANG_CERTAIN);
	ck_assert_int_ne(pass(140, IDLE), HANG_CERTAIN);
	ck_assert_int_eq(pass(20, IDLE), HANG_CERTAIN);
}
END_TEST

/* A watchdog that prints, or a line of an old step again, is no progress. */
START_TEST(output_is_no_progress)
{
	int i;

	train(100, 5);
	for (i = 0; i < 70; i++) {
		pass(5, IDLE);
		hang_output(&hang, now_s * NS_PER_S);
		hang_step(&hang, now_s * NS_PER_S, step - 1);
	}
	ck_assert_int_eq(hang.state, HANG_CERTAIN);
}
END_TEST

/* Steps that nobody can read, told or not; only ranks that rest are hung. */
START_TEST(trainers_without_steps)
{
	int i;

	ck_assert_int_ne(pass(10 * 86400, BUSY), HANG_CERTAIN);
	set_up();
	for (i = 0; i < 1000; i++) {
		pass(600, IDLE);
		hang_output(&hang, now_s * NS_PER_S);
	}
	ck_assert_int_eq(ends, 0);
	ck_assert_int_ne(pass(1790, IDLE), HANG_CERTAIN);
	ck_assert_int_eq(pass(15, IDLE), HANG_CERTAIN);
}
END_TEST

/* The first steps tell what is usual: rollouts of ten minutes, say. */
START_TEST(first_steps)
{
	train(1, 60);
	for (; step < 12; step++) {
		ck_assert_int_ne(pass(900, IDLE), HANG_CERTAIN);
		hang_step(&hang, now_s * NS_PER_S, step + 1);
	}
	ck_assert_int_eq(ends, 0);
	ck_assert_int_ne(pass(8900, IDLE), HANG_CERTAIN);
	ck_assert_int_eq(pass(110, IDLE), HANG_CERTAIN);
}
END_TEST

/* An evaluation of two hours in words of its own. */
START_TEST(work_that_talks)
{
	int i;

	train(100, 5);
	for (i = 0; i < 140; i++) {
		pass(50, BUSY);
		hang_output(&hang, now_s * NS_PER_S);
	}
	ck_assert_int_eq(ends, 0);
	for (i = 0; i < 10; i++) {
		pass(50, BUSY);
		hang_output(&hang, now_s * NS_PER_S);
	}
	ck_assert_int_eq(hang.state, HANG_CERTAIN);
}
END_TEST

/* The supervisor was suspended with its job, or the machine slept. */
START_TEST(time_that_nobody_saw)
{
	train(100, 5);
	now_s += 86400;
	ck_assert_int_eq(pass(25, IDLE), HANG_NONE);
	ck_assert_int_eq(pass(10, IDLE), HANG_SUSPECT);
	now_s += 86400;
	ck_assert_int_eq(pass(200, IDLE), HANG_SUSPECT);
	ck_assert_int_eq(pass(80, IDLE), HANG_CERTAIN);
}
END_TEST

START_TEST(never)
{
	static const struct hang_limits off = { .busy_ms = 1800000,
	    .start_ms = 1800000 };

	hang_begin(&hang, &off, &learnt, now_s * NS_PER_S);
	train(100, 5);
	ck_assert_int_eq(pass(86400, IDLE), HANG_SUSPECT);
	ck_assert_int_eq(ends, 0);
}
END_TEST

/* One sample of an unknown rank proves nothing about all of them. */
START_TEST(unknown_is_not_idle)
{
	struct hang_sample s = { .idle = true };
	int i;

	train(100, 5);
	for (i = 0; i < 300; i++) {
		now_s += TICK_S;
		hang_take(&hang, now_s * NS_PER_S, &s);
		ck_assert_int_ne(hang_check(&hang, now_s * NS_PER_S,
		    TICK_S * NS_PER_S, why), HANG_CERTAIN);
	}
}
END_TEST

/* Random runs of days with long evaluations, saves and compilations: no alarm; then
 * each of them hangs, and is found. */
START_TEST(random_runs)
{
	int run, i, pace;

	for (run = 0; run < 50; run++) {
		set_up();
		pace = 5 * (1 + (int)unit_random(12));
		pass(5 * (1 + unit_random(300)), unit_random(2) ? BUSY : WRITING);
		for (i = 0; i < 400; i++) {
			if (unit_random(20) == 0) {
				announce(unit_random(2) ? HANG_CHECKPOINT :
				    HANG_EVALUATION);
				pass(5 * (1 + unit_random(340)), unit_random(3));
			} else if (unit_random(50) == 0) {
				/* unannounced, though not idle */
				pass(5 * (1 + unit_random(340)),
				    1 + unit_random(2));
			} else {
				pass(pace * (1 + unit_random(2)), BUSY);
			}
			hang_step(&hang, now_s * NS_PER_S, ++step);
		}
		ck_assert_int_eq(ends, 0);
		ck_assert_int_eq(pass(7200, IDLE), HANG_CERTAIN);
	}
}
END_TEST

START_TEST(phases_of_lines)
{
	static const struct {
		const char	*line;
		int		 phase;
	} rows[] = {
		{ "saving checkpoint at iteration    1000 to /ckpt in torch format",
		    HANG_CHECKPOINT },
		{ "  successfully saved checkpoint from iteration 1000 to /ckpt",
		    HANG_TRAINING },
		{ "***** Running Evaluation *****", HANG_EVALUATION },
		{ "[titan] Saving the checkpoint (or staging if async).",
		    HANG_CHECKPOINT },
		{ "Finished saving the checkpoint in 3.20 seconds.",
		    HANG_TRAINING },
		{ "Validation DataLoader 0:  42%|####      | 5/12",
		    HANG_EVALUATION },
		{ "compiling the model... (takes a ~minute)", HANG_COMPILE },
		{ "`Trainer.fit` stopped: `max_steps=100` reached.",
		    HANG_SHUTDOWN },
		{ "Evaluating on the validation set", HANG_EVALUATION },
		{ "step 12 loss 1.25", -1 },
		{ "", -1 },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_msg(hang_phase_of(rows[i].line, strlen(rows[i].line)) ==
		    rows[i].phase, "%s", rows[i].line);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, NULL);
	tcase_add_test(t, idle_ranks_are_found);
	tcase_add_test(t, spinning_ranks_take_longer);
	tcase_add_test(t, slow_steps);
	tcase_add_test(t, phases_have_limits_of_their_own);
	tcase_add_test(t, start_up);
	tcase_add_test(t, files_that_grow_are_work);
	tcase_add_test(t, output_is_no_progress);
	tcase_add_test(t, trainers_without_steps);
	tcase_add_test(t, first_steps);
	tcase_add_test(t, work_that_talks);
	tcase_add_test(t, time_that_nobody_saw);
	tcase_add_test(t, never);
	tcase_add_test(t, unknown_is_not_idle);
	tcase_add_test(t, random_runs);
	tcase_add_test(t, phases_of_lines);
}

int
main(void)
{
	return unit_run("supervisor_hang", add_tests);
}
