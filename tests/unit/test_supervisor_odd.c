/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_supervisor_odd.c - the rank that differs, and none where that would be a guess.
 */
#include <check.h>
#include <string.h>

#include "supervisor/odd.h"
#include "unit.h"

#define U	ODD_UNKNOWN
#define S	{ 'S', 1, 60000, 7, "futex", "wait" }

START_TEST(differing_ranks)
{
	static const struct {
		struct odd_rank	 ranks[9];
		int		 n, want;
		const char	*why;
	} rows[] = {
		{ { S, S, S, S }, 4, -1, "" },
		{ { S, S, { 'T', 0, 60000, 7, "signal", "wait" }, S }, 4, 2,
		    "stopped" },
		{ { S, { 'T', 0, U, U, NULL, NULL } }, 2, 1, "stopped" },
		/* all stopped: the scheduler suspended the job */
		{ { { 'T', 0, U, U, NULL, NULL }, { 'T', 0, U, U, NULL, NULL } },
		    2, -1, "" },
		{ { S, { 'D', 0, U, U, "nfs_wait", NULL }, S }, 3, 1, "nfs_wait" },
		{ { S, { 'S', 1, 60000, 6, "futex", "wait" } }, 2, 1, "at step 6" },
		/* rank 0 alone tells steps */
		{ { S, { 'S', 1, U, U, "futex", "wait" } }, 2, -1, "" },
		{ { S, S, { 'S', 1, 60000, 7, "futex", "load (data.py:3)" } }, 3, 2,
		    "in load (data.py:3), the others in wait" },
		{ { { 'S', 1, 60000, 7, "futex", "other" }, S, S }, 3, 0,
		    "the others in wait" },
		/* two that differ */
		{ { S, { 'S', 1, 60000, 7, "futex", "other" } }, 2, -1, "" },
		{ { S, S, { 'S', 1, 0, 7, "futex", "a" },
		    { 'S', 1, 0, 7, "futex", "b" } }, 4, -1, "" },
		{ { { 'R', 100, U, U, NULL, NULL }, { 'S', 0, U, U, NULL, NULL },
		    { 'R', 99, U, U, NULL, NULL } }, 3, 1, "idle" },
		{ { { 'S', 0, U, U, NULL, NULL }, { 'S', 0, U, U, NULL, NULL },
		    { 'R', 99, U, U, NULL, NULL } }, 3, 2, "busy" },
		{ { { 'S', 0, U, U, NULL, NULL }, { 'S', U, U, U, NULL, NULL },
		    { 'R', 99, U, U, NULL, NULL } }, 3, -1, "" },
		{ { { 'S', 0, U, U, "poll", NULL }, { 'S', 0, U, U, "poll", NULL },
		    { 'S', 0, U, U, "pipe_read", NULL } }, 3, 2, "pipe_read" },
		{ { { 'S', 0, 60000, U, NULL, NULL }, { 'S', 0, 61000, U, NULL,
		    NULL }, { 'S', 0, 600000, U, NULL, NULL } }, 3, 2,
		    "silent for 10 min" },
		{ { S }, 1, -1, "" },
		{ { S }, 0, -1, "" },
	};
	char why[ODD_WHY_MAX];
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ck_assert_msg(odd_find(rows[i].ranks, (size_t)rows[i].n, why) ==
		    rows[i].want, "row %zu: %s", i, why);
		ck_assert_msg(strstr(why, rows[i].why) != NULL, "row %zu: %s", i,
		    why);
	}
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_test(t, differing_ranks);
}

int
main(void)
{
	return unit_run("supervisor_odd", add_tests);
}
