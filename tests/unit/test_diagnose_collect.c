/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_collect.c - logs that are hard to cut into lines, and patterns that
 * are hard to match.
 */
#include <string.h>

#include "diagnose/event.h"
#include "diagnose/rule_load.h"
#include "tests/unit/unit.h"

static struct rule_set *
loaded(void)
{
	struct rule_set *set;
	struct err err;

	ck_assert_int_eq(rule_load(NULL, NULL, NULL, &set, NULL, &err), 0);
	return set;
}

static void
put(struct buf *b, const char *text)
{
	ck_assert_int_eq(buf_puts(b, text), 0);
}

/* Lines of a text that a further rule wins. */
static uint32_t
count_seen(const char *pattern, const struct buf *text)
{
	const struct rule_def def = { .id = "seen", .reason = "runtime_error",
	    .file = "t", .match = pattern, .role = ROLE_ROOT, .action = -1 };
	struct rule_set *set = loaded();
	struct events ev = {0};
	struct feed feed = {0};
	uint32_t count;
	struct err err;

	ck_assert_int_eq(rule_set_add(set, &def, &err), 0);
	ck_assert_int_eq(rule_set_finish(set, NULL, NULL, &err), 0);
	ck_assert_int_eq(feed_add_memory(&feed, "t", text->data, text->len,
	    &err), 0);
	ck_assert_int_eq(events_collect(&ev, set, &feed, 0, &err), 0);
	count = ev.matched[rule_set_find(set, "seen")];
	events_fini(&ev);
	feed_fini(&feed);
	rule_set_free(set);
	return count;
}

/* Progress bars have no line ends; no window may end within a literal. */
START_TEST(bars_hide_nothing)
{
	struct buf text = {0};
	uint32_t i, bars = 200000;

	for (i = 0; i < bars; i++)
		put(&text, "errors=5 seen\r");
	ck_assert_uint_eq(count_seen("errors=\\d seen", &text), bars);
	buf_fini(&text);
}
END_TEST

/* Too long a piece does not hide the next ones. */
START_TEST(endless_lines_end)
{
	struct buf text = {0};
	int i;

	for (i = 0; i < 20000; i++)
		put(&text, "x");
	put(&text, "errors=5 seen\rbar\rerrors=5 seen\r");
	for (i = 0; i < 200000; i++)
		put(&text, "x");
	put(&text, "errors=5 seen errors=5 seen\nerrors=5 seen");
	ck_assert_uint_eq(count_seen("errors=\\d seen", &text), 2);
	buf_fini(&text);
}
END_TEST

/* A pattern that explodes is tried on a few lines only, others go on. */
START_TEST(bombs_are_given_up)
{
	static const struct rule_def defs[] = {
		{ .id = "bomb", .reason = "runtime_error", .file = "t",
		  .match = "errors (a+)+b", .role = ROLE_ROOT, .action = -1 },
		{ .id = "seen", .reason = "runtime_error", .file = "t",
		  .match = "c[bd] seen", .role = ROLE_ROOT, .action = -1 }
	};
	struct rule_set *set = loaded();
	struct events ev = {0};
	struct feed feed = {0};
	struct buf text = {0};
	struct err err;
	int i, bomb;

	for (i = 0; i < 2; i++)
		ck_assert_int_eq(rule_set_add(set, &defs[i], &err), 0);
	ck_assert_int_eq(rule_set_finish(set, NULL, NULL, &err), 0);
	for (i = 0; i < 200000; i++)
		put(&text, "errors aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaacb seen\n");
	ck_assert_int_eq(feed_add_memory(&feed, "t", text.data, text.len, &err),
	    0);
	ck_assert_int_eq(events_collect(&ev, set, &feed, 0, &err), 0);
	bomb = rule_set_find(set, "bomb");
	ck_assert(set->rules[bomb].broken && ev.gave_up);
	ck_assert_uint_eq(set->rules[bomb].given_up, RULE_GIVEN_UP_MAX);
	ck_assert_uint_eq(ev.matched[rule_set_find(set, "seen")], 200000);
	events_fini(&ev);
	feed_fini(&feed);
	buf_fini(&text);
	rule_set_free(set);
}
END_TEST

static void
add(TCase *t)
{
	tcase_set_timeout(t, 120);
	tcase_add_test(t, bars_hide_nothing);
	tcase_add_test(t, endless_lines_end);
	tcase_add_test(t, bombs_are_given_up);
}

int
main(void)
{
	return unit_run("diagnose_collect", add);
}
