/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_rules.c - reading, linting and testing rules; the shipped ones.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/rule_load.h"

struct told {
	char	text[4000];
	int	count;
};

static void
problem(const char *text, void *arg)
{
	struct told *t = arg;
	size_t n = strlen(t->text);

	t->count++;
	snprintf(t->text + n, sizeof(t->text) - n, "%s\n", text);
}

#define REASON	"- {reason: r, category: script, what: w, action: stop, advice: a}\n"
#define GOOD	"- {id: good, reason: r, role: root, match: 'some words',\n" \
		"   examples: ['some words'], counterexamples: ['other']}\n"

struct row {
	const char	*yaml;
	const char	*want;		/* part of the problems; NULL: none */
};

static const struct row rows[] = {
	{ REASON GOOD, NULL },
	{ "", NULL },
	{ "- [", "t.yaml:2:1: " },
	{ "key: value\n", "a list of rules or reasons was expected" },
	{ "- word\n", "a rule was expected" },
	{ REASON "- {id: x, reason: r, role: root, match: 'text', exmples: []}\n",
	  "t.yaml:2:49: unknown key 'exmples', did you mean 'examples'?" },
	{ REASON "- {id: x, reason: r, role: rooot, match: 'text'}\n",
	  "t.yaml:2:28: 'rooot' is no role" },
	{ REASON "- {id: x, reason: r, match: 'text'}\n", "needs a role" },
	{ REASON "- {reason: r, role: root, match: 'text'}\n", "needs an id" },
	{ REASON "- {id: x, reason: q, role: root, match: 'text'}\n",
	  "unknown reason 'q'" },
	{ REASON "- {id: x, role: root, match: 'text'}\n", "needs a reason" },
	{ REASON "- {id: x, role: benign, match: 'text'}\n", NULL },
	{ REASON "- {id: x, reason: r, role: root, match: '.*'}\n", "no literal" },
	{ REASON "- {id: x, reason: r, role: root, match: 'text', hides: [q]}\n",
	  "hides an unknown reason 'q'" },
	{ REASON "- {id: x, reason: r, role: root, match: 'text', after: y}\n",
	  "is after an unknown rule 'y'" },
	{ REASON "- {id: x, reason: r, role: root, match: 'text', within: 0}\n",
	  "must be a number from 1" },
	{ REASON "- {id: x, reason: r, role: root, match: 'text', confidence: 2}\n",
	  "must be above 0" },
	{ REASON "- {id: x, reason: r, role: root, match: [text]}\n",
	  "'match' must be a text" },
	{ REASON "- {id: x, reason: r, role: root, match: 'text', hides: {a: b}}\n",
	  "'hides' must be a list" },
	{ REASON GOOD GOOD, "is there already (t.yaml:2)" },
	{ "- {reason: r, category: scrip, what: w, action: stop, advice: a}\n",
	  "a reason needs" },
	{ "- {reason: r, category: script, what: w, action: halt, advice: a}\n",
	  "'halt' is no action" },
};

START_TEST(problems_have_a_place)
{
	const struct row *row = &rows[_i];
	struct told t = {0};
	struct rule_set *set;
	struct err err;

	ck_assert_int_eq(rule_set_new(&set, &err), 0);
	rule_read_text(set, "t.yaml", row->yaml, strlen(row->yaml), problem, &t);
	ck_assert_int_eq(rule_set_finish(set, problem, &t, &err), 0);
	if (row->want == NULL)
		ck_assert_msg(t.count == 0, "row %d: %s", _i, t.text);
	else
		ck_assert_msg(strstr(t.text, row->want) != NULL, "row %d: %s", _i,
		    t.text);
	rule_set_free(set);
}
END_TEST

static void
lint(const char *rules, struct told *t, int *tested)
{
	struct rule_set *set;
	struct err err;
	char yaml[4000];
	int samples;

	snprintf(yaml, sizeof(yaml), "%s%s", REASON, rules);
	ck_assert_int_eq(rule_set_new(&set, &err), 0);
	ck_assert_int_eq(rule_read_text(set, "t.yaml", yaml, strlen(yaml),
	    NULL, NULL), 0);
	ck_assert_int_eq(rule_set_finish(set, NULL, NULL, &err), 0);
	if (tested == NULL)
		rule_lint(set, problem, t);
	else
		*tested = rule_test(set, problem, t, &samples);
	rule_set_free(set);
}

START_TEST(lint_finds_mistakes)
{
	struct told t = {0};

	lint(GOOD, &t, NULL);
	ck_assert_msg(t.count == 0, "%s", t.text);
	lint("- {id: x, reason: r, role: root, match: 'lost (a+)+b words'}\n", &t,
	    NULL);
	ck_assert_ptr_nonnull(strstr(t.text, "backtracks too much"));
	ck_assert_ptr_nonnull(strstr(t.text, "no examples"));
	ck_assert_ptr_nonnull(strstr(t.text, "no counterexamples"));
	memset(&t, 0, sizeof(t));
	lint(GOOD "- {id: x, reason: r, role: root, match: 'some words',\n"
	    "   examples: ['some words'], counterexamples: ['other']}\n", &t, NULL);
	ck_assert_ptr_nonnull(strstr(t.text, "same match as 'good'"));
	memset(&t, 0, sizeof(t));
	lint("- {id: x, reason: r, role: root, match: 'some (words'}\n", &t, NULL);
	ck_assert_ptr_nonnull(strstr(t.text, "at offset"));
}
END_TEST

START_TEST(samples_are_run)
{
	struct told t = {0};
	int failed;

	lint(GOOD, &t, &failed);
	ck_assert_int_eq(failed, 0);
	lint("- {id: a, reason: r, role: root, match: 'some words',\n"
	    "   examples: ['some words of two'], counterexamples: ['some words']}\n"
	    "- {id: b, reason: r, role: root, priority: 1, match: 'of two'}\n", &t,
	    &failed);
	ck_assert_int_eq(failed, 2);
	ck_assert_ptr_nonnull(strstr(t.text, "example is won by 'b'"));
	ck_assert_ptr_nonnull(strstr(t.text, "matches its counterexample"));
	/* samples of several lines, and the rule a rule is after */
	memset(&t, 0, sizeof(t));
	lint("- {id: a, role: context, match: 'header:'}\n"
	    "- {id: b, reason: r, role: root, match: 'cause', after: a,"
	    " within: 2,\n   examples: [\"header:\\ncause\"],\n"
	    "   counterexamples: ['cause', \"header:\\n\\n\\ncause\"]}\n", &t,
	    &failed);
	ck_assert_msg(failed == 0, "%s", t.text);
}
END_TEST

START_TEST(shipped_rules_are_sound)
{
	struct told t = {0};
	struct rule_set *set;
	struct err err;
	int problems, samples;

	ck_assert_int_eq(rule_load(NULL, problem, &t, &set, &problems, &err), 0);
	rule_lint(set, problem, &t);
	rule_test(set, problem, &t, &samples);
	ck_assert_msg(t.count == 0, "%s", t.text);
	ck_assert_int_ge((int)set->count, 40);
	ck_assert_int_ge(samples, 2 * 40);
	rule_set_free(set);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("diagnose_rules");
	TCase *t = tcase_create("all");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, problems_have_a_place, 0,
	    (int)(sizeof(rows) / sizeof(rows[0])));
	tcase_add_test(t, lint_finds_mistakes);
	tcase_add_test(t, samples_are_run);
	tcase_add_test(t, shipped_rules_are_sound);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
