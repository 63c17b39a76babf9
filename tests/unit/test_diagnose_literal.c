/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_literal.c - which literals are taken out of a pattern.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/literal.h"

struct row {
	const char	*pattern;
	const char	*want;		/* sorted, joined by |; NULL: refused */
	bool		 fold;
};

static const struct row rows[] = {
	{ "NVRM: Xid \\(", "NVRM: Xid (", false },
	{ "lm loss: (nan|inf)", "lm loss: inf|lm loss: nan", false },
	{ "(?:GPU|NPU) lost", "GPU lost|NPU lost", false },
	{ "a?bcde", "bcde", false },
	{ "ab?cdef", "abcdef|acdef", false },
	{ "x*long part", "long part", false },
	{ "start.*the longer end", "the longer end", false },
	{ "(?<name>\\d+) errors found", " errors found", false },
	{ "(?P<name>\\d+) errors found", " errors found", false },
	{ "^Error\\b", "Error", false },
	{ "abc", NULL, false },
	{ "\\d+\\.\\d+", NULL, false },
	{ "longword|x", NULL, false },
	{ "longword|otherword", "longword|otherword", false },
	{ "(?i)Out Of Memory", "out of memory", true },
	{ "(?i:Killed) process", "killed process", true },
	{ "[Tt]imed out", "Timed out|timed out", false },
	{ "[a-z]imed out", "imed out", false },
	{ "[^]]tail of it", "tail of it", false },
	{ "(?=ahead)only this", "only this", false },
	{ "(?<!un)correctable", "correctable", false },
	{ "(?!nothing)something", "something", false },
	{ "(abcd)+efgh", "abcdefgh", false },
	{ "[Kk]illed +\\S", "Killed |killed ", false },
	{ "ab(?:cd|ef)+\\d", "abcd|abef", false },
	{ "(?:ab|cd?)+ef", NULL, false },
	{ "(?:ab|cd?){2,}efg", "abefg|cdefg|cefg", false },
	{ "(abcd){2}ef", "abcdef", false },
	{ "a{2}bcdef", "abcdef", false },
	{ "abcd{0}efgh", "efgh", false },
	{ "\\x41BCD", "ABCD", false },
	{ "\\QABCD\\E", NULL, false },
	{ "(?x) A B C D", NULL, false },
	{ "(?R)abcd", NULL, false },
	{ "(abcd", NULL, false },
	{ "abcd)", NULL, false },
	{ "[abcd", NULL, false },
	{ "abcd\\", NULL, false },
	{ "(*ACCEPT)abcd", NULL, false },
	{ "", NULL, false },
	{ "a(?#comment)bcd", "abcd", false },
	{ "(?:one|two|three)(?: more)? words", "one more words|one words|"
	    "three more words|three words|two more words|two words", false },
	{ "a|", NULL, false },
	{ "tab\\there", "tab\there", false },
	{ "no \\{brace\\}", "no {brace}", false },
	{ "x{,3}abcd", NULL, false },
	{ "x{ 1,3 }abcd", NULL, false },
	{ "x{a}bcd", "x{a}bcd", false },
};

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

START_TEST(literals_of_patterns)
{
	const struct row *row = &rows[_i];
	struct literal_set l;
	char joined[400] = "";
	struct err err;
	size_t i;
	int rc = literal_extract(row->pattern, NULL, &l, &err);

	if (row->want == NULL || strlen(row->want) < 4) {
		ck_assert_msg(rc == -1, "'%s' was taken", row->pattern);
		ck_assert_int_eq(err.code, ERR_FORMAT);
		return;
	}
	ck_assert_msg(rc == 0, "'%s': %s", row->pattern, err.text);
	qsort(l.texts, l.count, sizeof(*l.texts), by_text);
	for (i = 0; i < l.count; i++)
		snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined),
		    "%s%s", i ? "|" : "", l.texts[i]);
	ck_assert_str_eq(joined, row->want);
	ck_assert_int_eq(l.fold, row->fold);
	literal_fini(&l);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("diagnose_literal");
	TCase *t = tcase_create("all");
	SRunner *r;
	int failed;

	tcase_add_loop_test(t, literals_of_patterns, 0,
	    (int)(sizeof(rows) / sizeof(rows[0])));
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
