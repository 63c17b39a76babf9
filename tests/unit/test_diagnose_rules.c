/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_rules.c - reading, linting and testing rules; the shipped ones.
 */
#include <check.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "diagnose/causes.h"
#include "diagnose/guard.h"
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
	{ REASON "- id: x\n  reason: 'r \xff'\n", "t.yaml:3:14: invalid" },
	{ REASON "- {id: x, reason: r, role: root, match: 'text',"
	  " examples: ['\xc3\x28']}\n", "t.yaml:2:62: " },
	{ REASON "- {id: x, reason: r, id: y}\n", "'id' is given twice" },
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

#define RULE(id, match)	"- {id: " id ", reason: r, role: root, match: '" match "',\n" \
		"   examples: ['lost words'], counterexamples: ['other']}\n"

static const struct row lint_rows[] = {
	{ GOOD, NULL },
	/* backtracking without end, wherever it stands */
	{ RULE("x", "lost (a+)+b"), "t.yaml:2:3: rule 'x': match backtracks too" },
	{ RULE("x", "lost (x*)*y"), "backtracks too much" },
	{ RULE("x", "lost (.*)*foo"), "backtracks too much" },
	{ RULE("x", "lost (?:\\w+\\s?)*:"), "backtracks too much" },
	{ RULE("x", "lost (?:[b-z]+,?)+="), "backtracks too much" },
	{ RULE("x", "lost (?:words|(?:q|q)*r)"), "backtracks too much" },
	{ RULE("x", "lost (?:a|b|(?:q|qq){1,}r)"), "backtracks too much" },
	{ RULE("x", "lost (?=(a+)+b)"), "backtracks too much" },
	{ RULE("x", "lost (?!(?:[A-Z]+ ?)+;)words"), "backtracks too much" },
	{ RULE("x", "^(?:[\\w.]*Lost)+(?: ?:|$)"), "backtracks too much" },
	{ "- {id: x, reason: r, role: root, match: 'lost', unless: '(b+)+c',\n"
	  "   examples: ['lost'], counterexamples: ['other']}\n",
	  "unless backtracks too much" },
	/* ... and what only looks like it */
	{ RULE("x", "lost (?:words|(?:ab)+c)"), NULL },
	{ RULE("x", "lost (?:words|(?:\\d+, )*\\d+ items)"), NULL },
	{ RULE("x", "lost (?:words|(?>a+)+b)"), NULL },
	{ RULE("x", "^[^\"]*?lost .{0,200}words"), NULL },
	{ RULE("x", "lost (words"), "t.yaml:2:3: rule 'x': match: missing" },
	/* samples */
	{ "- {id: x, reason: r, role: root, match: 'lost words',\n"
	  "   counterexamples: ['other']}\n", "rule 'x': has no examples" },
	{ "- {id: x, reason: r, role: root, match: 'lost words',\n"
	  "   examples: ['lost words'], counterexamples: []}\n",
	  "rule 'x': has no counterexamples" },
	/* one of two is too much */
	{ RULE("x", "lost words") RULE("y", "lost words"),
	  "t.yaml:4:3: rule 'y': has the same match as 'x'" },
	{ RULE("x", "lost words") RULE("y", "lost w[aeo]rds|lost words"),
	  "rule 'y': cannot be told from 'x'" },
	{ "- {id: x, reason: r, role: root, match: 'lost words', priority: 1,\n"
	  "   examples: ['lost words'], counterexamples: ['other']}\n"
	  "- {id: y, reason: r, role: root, match: 'lost \\w+',\n"
	  "   examples: ['lost sheep'], counterexamples: ['other']}\n", NULL },
	{ "- {id: x, reason: r, role: root, match: 'lost \\w+', priority: 1,\n"
	  "   examples: ['lost sheep'], counterexamples: ['other']}\n"
	  "- {id: y, reason: r, role: root, match: 'lost words',\n"
	  "   examples: ['lost words'], counterexamples: ['other']}\n",
	  "t.yaml:4:3: rule 'y': never wins: the last of its examples goes to 'x'" },
	{ "- {id: x, reason: r, role: root, match: 'lost words', hides: [r],\n"
	  "   examples: ['lost words'], counterexamples: ['other']}\n",
	  "hides its own reason" },
};

START_TEST(lint_finds_mistakes)
{
	const struct row *row = &lint_rows[_i];
	struct told t = {0};

	lint(row->yaml, &t, NULL);
	if (row->want == NULL)
		ck_assert_msg(t.count == 0, "row %d: %s", _i, t.text);
	else
		ck_assert_msg(strstr(t.text, row->want) != NULL, "row %d: %s", _i,
		    t.text);
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
	/* an example that another text only quotes */
	memset(&t, 0, sizeof(t));
	lint("- {id: a, reason: r, role: root, match: '^.*some words',\n"
	    "   examples: ['some words'], counterexamples: ['other']}\n", &t,
	    &failed);
	ck_assert_int_eq(failed, 2);	/* "..." and '...' */
	ck_assert_ptr_nonnull(strstr(t.text, "its example in quotation marks"));
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

struct mention {
	const char	*line;
	enum guard	 want;
};

/* "lost" is what the rule would have matched. */
static const struct mention mentions[] = {
	{ "link lost", GUARD_NONE },
	{ "rank 3: \"node 7\" lost", GUARD_NONE },
	{ "the ranks' link is lost", GUARD_NONE },
	{ "it's lost, don't wait", GUARD_NONE },
	{ "Command '['/bin/x', '-u']' lost <9>.", GUARD_NONE },
	{ "open quote \"link lost", GUARD_NONE },
	{ "response of node 7: lost", GUARD_NONE },
	{ "textual link lost", GUARD_NONE },
	{ "-- lost", GUARD_NONE },
	{ "> lost", GUARD_NONE },
	{ "it prints \"link lost\" then", GUARD_QUOTE },
	{ "it prints \"say \\\"link\\\" lost\" then", GUARD_QUOTE },
	{ "    - 'link lost'", GUARD_QUOTE },
	{ "[1, 'link lost', 2]", GUARD_QUOTE },
	{ "see `link lost` for", GUARD_QUOTE },
	{ "x = re.compile(rb'link .* lost')", GUARD_QUOTE },
	{ "`link lost' is old", GUARD_QUOTE },
	{ "see `x 'a' link lost` for", GUARD_QUOTE },
	{ "{\"text\": \"link lost\", \"id\": 7}", GUARD_DATA },
	{ "{\"id\": 7, \"text\": \"link lost\"}", GUARD_QUOTE },
	{ "prompt: link lost", GUARD_DATA },
	{ "Label[3] = link lost", GUARD_DATA },
	{ "<user>: link lost", GUARD_DATA },
	{ "# link lost", GUARD_SOURCE },
	{ "| 7 | link lost | restart |", GUARD_SOURCE },
	{ "| link lost | restart", GUARD_NONE },
	{ "| Error: GPU 3     | link lost           |", GUARD_NONE },
	{ "| `link lost`      | see `lost`          |", GUARD_SOURCE },
	{ "  // link lost", GUARD_SOURCE },
	{ " * link lost", GUARD_SOURCE },
	{ ".It Li link lost", GUARD_SOURCE },
	{ "    raise Error(link lost)", GUARD_SOURCE },
	{ "\tcase LINK: return lost", GUARD_SOURCE },
	{ "raise Error: link lost", GUARD_NONE },
	{ "this might be caused by a link that is lost", GUARD_GUESS },
	{ "If you see link lost, wait", GUARD_GUESS },
	{ "lost; this might be caused by a cable", GUARD_NONE },
};

START_TEST(mentions_are_no_messages)
{
	const struct mention *m = &mentions[_i];
	const char *at = strstr(m->line, "lost");
	struct line line;

	line_parse(m->line, strlen(m->line), &line);
	ck_assert_msg(guard_check(&line, line.text, line.len,
	    (size_t)(at - line.text)) == m->want, "%s", m->line);
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

static void
assert_says_nothing(struct rule_set *set, const char *name, const struct buf *b)
{
	struct verdict v = {0};
	struct feed feed = {0};
	struct err err = {0};

	ck_assert_int_eq(feed_add_memory(&feed, name, b->data ? b->data : "",
	    b->len, &err), 0);
	ck_assert_int_eq(causes_find(set, &feed, &v, &err), 0);
	ck_assert_msg(v.status == VERDICT_NO_ERROR, "%s: %s by %s: %s", name,
	    v.reason, v.root.rule, v.root.text);
	verdict_fini(&v);
	feed_fini(&feed);
}

/* What this repository says about failures is no failure. */
START_TEST(own_texts_say_nothing)
{
	static const char *const patterns[] = {
		"rules/*.yaml", "man/*", "diagnose/*.c", "common/*.c", "README.md"
	};
	const char *top = getenv("top_srcdir");
	struct buf all = {0}, one = {0};
	struct rule_set *set;
	struct err err = {0};
	size_t i, k;

	ck_assert_int_eq(rule_load(NULL, NULL, NULL, &set, NULL, &err), 0);
	for (i = 0; top != NULL && i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		char pattern[4096];
		glob_t g;

		snprintf(pattern, sizeof(pattern), "%s/%s", top, patterns[i]);
		ck_assert_int_eq(glob(pattern, 0, NULL, &g), 0);
		for (k = 0; k < g.gl_pathc; k++) {
			buf_clear(&one);
			ck_assert_int_eq(file_read(g.gl_pathv[k], 16u << 20, &one,
			    &err), 0);
			assert_says_nothing(set, g.gl_pathv[k], &one);
			ck_assert_int_eq(buf_append(&all, one.data, one.len), 0);
		}
		globfree(&g);
	}
	assert_says_nothing(set, "all", &all);
	buf_fini(&one);
	buf_fini(&all);
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
	tcase_add_loop_test(t, lint_finds_mistakes, 0,
	    (int)(sizeof(lint_rows) / sizeof(lint_rows[0])));
	tcase_add_loop_test(t, mentions_are_no_messages, 0,
	    (int)(sizeof(mentions) / sizeof(mentions[0])));
	tcase_add_test(t, samples_are_run);
	tcase_add_test(t, shipped_rules_are_sound);
	tcase_add_test(t, own_texts_say_nothing);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
