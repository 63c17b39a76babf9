/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_live.c - streams in chunks cut anywhere.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/live.h"

static const char rules_yaml[] =
    "- {reason: gpu_lost, category: infrastructure, what: w, action: stop,"
    " advice: a}\n"
    "- {id: lost, reason: gpu_lost, role: root, match: 'device lost on "
    "(?<node>\\w+)'}\n"
    "- {id: inner, reason: gpu_lost, role: root, match: '^inner cause', "
    "after: last-error, within: 2, priority: 5}\n"
    "- {id: quiet, role: benign, match: 'device lost on purpose'}\n";

/* What was reported, as text: "M rule line offset" and "P step line". */
struct seen {
	char	text[4000];
	size_t	len;
};

static void
on_match(const struct live_match *m, void *arg)
{
	struct seen *s = arg;

	ck_assert_uint_le(m->len, LIVE_HEAD_MAX);
	s->len += (size_t)snprintf(s->text + s->len, sizeof(s->text) - s->len,
	    "M %s %llu %llu\n", m->rule->def.id, (unsigned long long)m->line,
	    (unsigned long long)m->offset);
}

static void
on_progress(const struct progress *p, uint64_t line, void *arg)
{
	struct seen *s = arg;

	s->len += (size_t)snprintf(s->text + s->len, sizeof(s->text) - s->len,
	    "P %lld %llu\n", (long long)p->step, (unsigned long long)line);
}

static struct rule_set *set;
static struct live *live;
static struct seen seen;

static void
set_up(void)
{
	const struct live_calls calls = { on_match, on_progress, &seen };
	struct err err = {0};

	memset(&seen, 0, sizeof(seen));
	ck_assert_int_eq(rule_set_new(&set, &err), 0);
	ck_assert_int_eq(rule_read_text(set, "t", rules_yaml,
	    strlen(rules_yaml), NULL, NULL), 0);
	ck_assert_int_eq(rule_set_finish(set, NULL, NULL, &err), 0);
	ck_assert_int_eq(live_new(set, &calls, &live, &err), 0);
}

static void
tear_down(void)
{
	live_free(live);
	rule_set_free(set);
}

static const char text[] =
    "step 1 loss 2.5\n"
    "device lost on n1\r\n"
    "bar 1\rstep 2 loss 2.4\rdevice lost on n2\n"
    "inner cause\n"
    "Last error:\n"
    "\n"
    "inner cause\n"
    "device lost on purpose\n"
    "\0\0device lost on n3\0\n"
    "step 3 loss 2.3\n"
    "device lost on n4";

static const char want[] =
    "P 1 1\nM lost 2 16\nP 2 3\nM lost 3 57\nM inner 7 100\n"
    "M lost 9 135\nP 3 10\nM lost 11 172\n";

START_TEST(whole)
{
	live_feed(live, text, sizeof(text) - 1);
	live_flush(live);
	ck_assert_str_eq(seen.text, want);
	ck_assert_uint_eq(live_lines(live), 10);
	ck_assert_uint_eq(live_bytes(live), sizeof(text) - 1);
}
END_TEST

/* Two cuts at every pair of places, and one byte at a time. */
START_TEST(cut_anywhere)
{
	const struct live_calls calls = { on_match, on_progress, &seen };
	size_t n = sizeof(text) - 1, i, k;
	struct err err;

	for (i = 0; i <= n; i++) {
		for (k = i; k <= n; k += 7) {
			live_free(live);
			memset(&seen, 0, sizeof(seen));
			ck_assert_int_eq(live_new(set, &calls, &live, &err), 0);
			live_feed(live, text, i);
			live_feed(live, text + i, k - i);
			live_feed(live, text + k, n - k);
			live_flush(live);
			ck_assert_str_eq(seen.text, want);
		}
	}
	live_free(live);
	memset(&seen, 0, sizeof(seen));
	ck_assert_int_eq(live_new(set, &calls, &live, &err), 0);
	for (i = 0; i < n; i++)
		live_feed(live, text + i, 1);
	live_flush(live);
	ck_assert_str_eq(seen.text, want);
}
END_TEST

/* 100 MB without a newline: the head counts, the rest is passed over. */
START_TEST(endless_line)
{
	static char block[1 << 16];
	size_t i;

	memset(block, 'x', sizeof(block));
	memcpy(block + 60000, "device lost on n9 ", 18);
	live_feed(live, "device lost on n1 ", 18);
	for (i = 0; i < 1600; i++)
		live_feed(live, block, sizeof(block));
	live_feed(live, "\ndevice lost on n2\n", 19);
	ck_assert_str_eq(seen.text, "M lost 1 0\nM lost 2 104857619\n");
}
END_TEST

START_TEST(nothing_but_ends)
{
	live_feed(live, "\n\n\r\r\n\r", 6);
	live_feed(live, "", 0);
	live_flush(live);
	ck_assert_uint_eq(seen.len, 0);
	ck_assert_uint_eq(live_lines(live), 3);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("diagnose_live");
	TCase *t = tcase_create("all");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, whole);
	tcase_add_test(t, cut_anywhere);
	tcase_add_test(t, endless_line);
	tcase_add_test(t, nothing_but_ends);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
