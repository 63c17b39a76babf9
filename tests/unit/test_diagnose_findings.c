/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_findings.c - the part that every line has in a case, the order of
 * time, counts of what repeats, and limits.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "diagnose/causes.h"
#include "rule_fixture.h"
#include "unit.h"

static const char rules_yaml[] =
    REASON("none", "meta", "none")
    REASON("unknown", "meta", "restart")
    REASON("gpu_lost", "infrastructure", "restart_excluding_node")
    REASON("nccl_timeout", "infrastructure", "test_nodes")
    REASON("key_error", "script", "stop")
    REASON("value_error", "script", "stop")
    REASON("loss_nan", "framework", "rollback")
    "- {id: xid, reason: gpu_lost, role: root, source: kernel, hides: "
    "[nccl_timeout], match: 'NVRM: Xid \\((?<gpu>[0-9a-f:]+)\\): 79'}\n"
    "- {id: watchdog, reason: nccl_timeout, role: symptom, "
    "match: 'Watchdog caught'}\n"
    "- {id: key, reason: key_error, role: root, match: '^KeyError: '}\n"
    "- {id: value, reason: value_error, role: root, match: '^ValueError: '}\n"
    "- {id: nan, reason: loss_nan, role: root, match: 'loss is NaN'}\n"
    "- {id: closing, role: teardown, source: launcher, match: 'closing signal'}\n"
    "- {id: harmless, role: benign, match: 'KeyError: .*retrying'}\n";

static struct rule_set *set;
static struct feed feed;
static struct verdict verdict;
static struct findings found;

static void
set_up(void)
{
	set = rule_fixture_of("t", rules_yaml);
}

static void
tear_down(void)
{
	verdict_fini(&verdict);
	findings_fini(&found);
	feed_fini(&feed);
	rule_set_free(set);
}

static void
add_log(const char *name, const char *log)
{
	ck_assert_int_eq(feed_add_memory(&feed, name, log, strlen(log), NULL), 0);
}

static void
diagnose(void)
{
	const struct causes_extra extra = { .findings = &found };

	ck_assert_int_eq(causes_find_all(set, &feed, &extra, &verdict, NULL), 0);
}

/* "role file:line xCOUNT" of all findings, one per line. */
static void
expect(const char *want)
{
	struct buf got = {0};
	size_t i;

	for (i = 0; i < found.count; i++) {
		const struct finding *f = &found.list[i];

		buf_printf(&got, "%s %s:%lld", finding_role_name(f->role), f->file,
		    (long long)f->line);
		if (f->count > 1)
			buf_printf(&got, " x%llu", (unsigned long long)f->count);
		buf_puts(&got, "\n");
	}
	ck_assert_str_eq(got.data ? got.data : "", want);
	buf_fini(&got);
}

#define TB	"Traceback (most recent call last):\n  File \"t.py\", line 3\n"

START_TEST(each_line_has_its_part)
{
	add_log("a", "loss is NaN\nstep 1 loss 2.0\nstep 2 loss 1.9\n"
	    "KeyError: 'a', retrying\n" TB "ValueError: b\n"
	    "Watchdog caught it\nWatchdog caught it\n"
	    "ValueError: b\n"
	    "sending closing signal\n" TB "KeyError: 'a'\n");
	diagnose();
	ck_assert_str_eq(verdict.reason, "value_error");
	expect("passed a:1\nbenign a:4\ncause a:7\necho a:8 x2\nsame a:10\n"
	    "teardown a:11\nlate a:14\n");
}
END_TEST

START_TEST(streams_are_laid_side_by_side)
{
	/* b has no time of its own behind its first line */
	add_log("rank0", "2026-01-02 10:00:05 Watchdog caught it\n");
	add_log("rank1", "2026-01-02 10:00:01 step 5 loss 2.0\n" TB
	    "KeyError: 'a'\n2026-01-02 10:00:09 Watchdog caught it\n");
	add_log("rank2", "KeyError: 'b'\n");
	add_log("rank3", "Watchdog caught it\n"
	    "2026-01-02 10:00:00 Watchdog caught it\n");
	diagnose();
	ck_assert_str_eq(verdict.reason, "key_error");
	expect("echo rank3:1 x2\ncause rank1:4\necho rank0:1\n"
	    "echo rank1:5\nsame rank2:1\n");
	ck_assert_int_eq(found.list[1].rank, 1);
	ck_assert_int_eq(found.list[0].time_ns, found.list[1].time_ns -
	    1000000000);
	ck_assert_int_eq(found.list[4].time_ns, LINE_NO_TIME);
}
END_TEST

START_TEST(another_candidate)
{
	add_log("a", "KeyError: 'a'\nx\nValueError: b\n");
	diagnose();
	expect("cause a:1\nother a:3\n");
}
END_TEST

START_TEST(traceback_without_end)
{
	add_log("a", "x\n" TB);
	diagnose();
	ck_assert_int_eq(verdict.status, VERDICT_UNDETERMINED);
	expect("unclear a:2\n");
}
END_TEST

START_TEST(exits_are_findings)
{
	add_log("rank00000.log", "step 1 loss 2.0\n");
	add_log("n1.exits", "2026-01-02T10:00:00.000Z holdfast: node n1: rank 0 "
	    "(pid 9) was ended by signal 11 (SIGSEGV)\n");
	verdict_fini(&verdict);
	ck_assert_int_eq(rule_set_add_reason(set, &(struct reason){
	    .name = "native_crash", .category = "framework", .what = "w",
	    .advice = "a" }, NULL), 0);
	diagnose();
	expect("cause n1.exits:1\n");
	ck_assert_ptr_null(found.list[0].rule);
	ck_assert_str_eq(found.list[0].node, "n1");
}
END_TEST

/* Many lines: memory is bounded, what is not listed is counted, the cause is
 * listed. */
START_TEST(limits)
{
	struct buf log = {0};
	uint64_t lines = 0;
	size_t i, cause = 0;
	char name[32];

	for (i = 0; i < 6000; i++) {
		snprintf(name, sizeof(name), "rank%zu", i);
		add_log(name, i % 2 ? "Watchdog caught it\nWatchdog caught it\n" :
		    "Watchdog caught it\n");
	}
	for (i = 0; i < 500; i++)
		buf_puts(&log, "Watchdog caught it\n");
	buf_puts(&log, "2026-01-02 10:00:00 x\nKeyError: 'a'\n");
	add_log("rank6000", log.data);
	diagnose();
	ck_assert_uint_eq(found.count, FINDINGS_MAX);
	for (i = 0; i < found.count; i++) {
		lines += found.list[i].count;
		cause += found.list[i].role == FINDING_CAUSE;
	}
	ck_assert_uint_eq(cause, 1);
	ck_assert_uint_eq(lines + found.unlisted, 9000 + 500 + 1);
	buf_fini(&log);
}
END_TEST

/* What is shown, and the JSON of it. */
START_TEST(printed_and_json)
{
	const struct card_style style = { false, CARD_COLUMNS };
	char *out = NULL, *text;
	struct verdict again = {0};
	size_t len;
	cJSON *o = NULL;
	FILE *f;

	add_log("rank0", "\xff\xfe KeyError\nKeyError: '\x1b[1m\x01\xc3(a'\n"
	    "Watchdog caught it\n");
	add_log("rank1", "Watchdog caught it\n");
	diagnose();
	f = open_memstream(&out, &len);
	ck_assert_ptr_nonnull(f);
	findings_print(&found, &style, true, f);
	fclose(f);
	ck_assert_ptr_nonnull(strstr(out, "| cause   rank 0"));
	ck_assert_ptr_nonnull(strstr(out, "| echo    2 ranks"));
	ck_assert_ptr_nonnull(strstr(out,
	    "|         rank0:2: KeyError: '\xef\xbf\xbd(a'\n"));
	text = verdict_json_all(&verdict, &found);
	ck_assert_ptr_nonnull(text);
	ck_assert_int_eq(json_parse(text, strlen(text), &o, NULL), 0);
	ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(o, "findings")),
	    3);
	ck_assert_int_eq(json_int(o, "findings_unlisted", -1), 0);
	cJSON_Delete(o);
	free(text);
	feed_fini(&feed);
	add_log("x", out);
	ck_assert_int_eq(causes_find(set, &feed, &again, NULL), 0);
	ck_assert_int_eq(again.status, VERDICT_NO_ERROR);
	verdict_fini(&again);
	free(out);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, each_line_has_its_part);
	tcase_add_test(t, streams_are_laid_side_by_side);
	tcase_add_test(t, another_candidate);
	tcase_add_test(t, traceback_without_end);
	tcase_add_test(t, exits_are_findings);
	tcase_add_test(t, limits);
	tcase_add_test(t, printed_and_json);
}

int
main(void)
{
	return unit_run("diagnose/findings", add);
}
