/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_explain.c - why a rule won or lost each line that its pattern
 * matches.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "diagnose/explain.h"
#include "diagnose/rule_show.h"
#include "rule_fixture.h"
#include "unit.h"

static const char rules_yaml[] =
    REASON("none", "meta", "none")
    REASON("unknown", "meta", "restart")
    REASON("gpu_lost", "infrastructure", "restart_excluding_node")
    REASON("nccl_timeout", "infrastructure", "test_nodes")
    REASON("key_error", "script", "stop")
    REASON("value_error", "script", "stop")
    "- {id: xid, reason: gpu_lost, role: root, source: kernel, hides: "
    "[nccl_timeout], match: 'NVRM: Xid \\((?<gpu>[0-9a-f:]+)\\): 79'}\n"
    "- {id: watchdog, reason: nccl_timeout, role: symptom, "
    "match: 'Watchdog caught', unless: 'dry run'}\n"
    "- {id: key, reason: key_error, role: root, match: 'KeyError: '}\n"
    "- {id: value, reason: value_error, role: either, match: 'ValueError: '}\n"
    "- {id: strong, reason: key_error, role: root, priority: 5, "
    "match: 'ValueError: strong'}\n"
    "- {id: block, role: context, match: 'block begins'}\n"
    "- {id: inside, reason: value_error, role: root, after: block, within: 2, "
    "match: 'detail: broken'}\n"
    "- {id: closing, role: teardown, source: launcher, match: 'closing signal'}\n"
    "- {id: harmless, role: benign, match: 'Error: .*retrying'}\n";

static struct rule_set *set;
static struct feed feed;

static void
set_up(void)
{
	set = rule_fixture_of("t.yaml", rules_yaml);
}

static void
tear_down(void)
{
	feed_fini(&feed);
	rule_set_free(set);
}

static char *
explain(const char *id, bool json)
{
	const struct card_style style = { false, CARD_COLUMNS };
	const struct explain_options how = { &style, json, true };
	struct rule *rule = rule_named(set, id, NULL);
	char *out = NULL;
	size_t len;
	FILE *f = open_memstream(&out, &len);

	ck_assert_ptr_nonnull(rule);
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(explain_rule(&how, set, rule, &feed, f, NULL), 0);
	fclose(f);
	return out;
}

/* "LINE outcome" of each line, by blanks. */
static void
expect(const char *log, const char *id, const char *want)
{
	struct buf got = {0};
	char *out;
	cJSON *o = NULL;
	const cJSON *item;

	feed_fini(&feed);
	ck_assert_int_eq(feed_add_memory(&feed, "log", log, strlen(log), NULL), 0);
	out = explain(id, true);
	ck_assert_int_eq(json_parse(out, strlen(out), &o, NULL), 0);
	ck_assert_str_eq(json_str(o, "schema", ""), "holdfast.explain/1");
	cJSON_ArrayForEach(item, cJSON_GetObjectItem(o, "lines")) {
		buf_printf(&got, "%s%lld %s", got.len > 0 ? " " : "",
		    (long long)json_int(item, "line", -1),
		    json_str(item, "outcome", "?"));
		ck_assert_str_ne(json_str(item, "why", ""), "");
	}
	ck_assert_str_eq(got.data ? got.data : "", want);
	buf_fini(&got);
	cJSON_Delete(o);
	free(out);
	free(explain(id, false));
}

#define TB	"Traceback (most recent call last):\n  File \"t.py\", line 3\n"
#define STEPS	"step 1 loss 2.0\nstep 2 loss 1.9\nstep 3 loss 1.8\n"

START_TEST(outcomes)
{
	expect("x\nKeyError: 'a'\n", "key", "2 cause");
	expect("x\n", "key", "");
	/* explained by another one; by order */
	expect("Watchdog caught it\n[1.0] NVRM: Xid (3b:00): 79, lost\n",
	    "watchdog", "1 echo");
	expect("Watchdog caught it\n" TB "KeyError: 'a'\n", "watchdog", "1 echo");
	expect("KeyError: 'a'\nx\nValueError: b\n", "value", "3 other");
	expect("[rank0]: KeyError: 'a'\n[rank1]: KeyError: 'b'\n", "key",
	    "1 cause 2 same");
	expect(TB "ValueError: b\nclosing signal\n" TB "KeyError: 'a'\n", "key",
	    "7 late");
	expect("closing signal\n", "closing", "1 teardown");
	/* training went on */
	expect("KeyError: 'a'\n" STEPS, "key", "1 passed");
	/* held back */
	expect("Watchdog caught it, dry run\nWatchdog caught it\n", "watchdog",
	    "1 unless 2 cause");
	expect("this might be caused by KeyError: 'a'\n", "key", "1 guess");
	expect(TB "    raise KeyError: 'a'\nValueError: b\n", "key", "3 source");
	expect("detail: broken\nblock begins\nx\ndetail: broken\nx\n"
	    "detail: broken\n", "inside", "1 after 4 cause 6 after");
	expect("| proof   x:1 KeyError: 'a'\n", "key", "");
	/* another rule won the line */
	expect("KeyError: 'a', retrying\n", "key", "1 lost");
	expect("ValueError: strong\n", "value", "1 lost");
	expect("KeyError: 'a', retrying\n", "harmless", "1 benign");
	expect("block begins\n", "block", "1 context");
}
END_TEST

START_TEST(in_words)
{
	char *out;

	out = explain("xid", false);
	ck_assert_ptr_nonnull(strstr(out, "+- rule xid - t.yaml:"));
	ck_assert_ptr_nonnull(strstr(out, "| role    root: can be the cause\n"));
	ck_assert_ptr_nonnull(strstr(out, "| hides   nccl_timeout\n"));
	ck_assert_ptr_null(strstr(out, "matches no line"));
	free(out);
	ck_assert_int_eq(feed_add_memory(&feed, "log",
	    "Watchdog caught it\n[1.0] NVRM: Xid (3b:00): 79, lost\n", 52, NULL),
	    0);
	out = explain("watchdog", false);
	ck_assert_ptr_nonnull(strstr(out,
	    "| echo    log:1: an echo, explained by log:2 (xid, gpu_lost)\n"
	    "|         Watchdog caught it\n"));
	free(out);
	out = explain("key", false);
	ck_assert_ptr_nonnull(strstr(out, "matches no line of this log"));
	free(out);
}
END_TEST

START_TEST(many_lines_are_counted)
{
	struct buf log = {0};
	char *out;
	int i;

	for (i = 0; i < 1000; i++)
		buf_puts(&log, "Watchdog caught it\n");
	ck_assert_int_eq(feed_add_memory(&feed, "log", log.data, log.len, NULL),
	    0);
	out = explain("watchdog", false);
	ck_assert_ptr_nonnull(strstr(out, "| and 960 more lines\n"));
	ck_assert_uint_lt(strlen(out), 8000);
	free(out);
	buf_fini(&log);
}
END_TEST

START_TEST(unknown_rule)
{
	struct err err = {0};

	ck_assert_ptr_null(rule_named(set, "watchdg", &err));
	ck_assert_ptr_nonnull(strstr(err.text, "did you mean 'watchdog'?"));
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, outcomes);
	tcase_add_test(t, in_words);
	tcase_add_test(t, many_lines_are_counted);
	tcase_add_test(t, unknown_rule);
}

int
main(void)
{
	return unit_run("diagnose/explain", add);
}
