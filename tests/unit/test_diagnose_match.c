/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_match.c - patterns with a guard against PCRE2 itself, limits,
 * named groups.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <check.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/match.h"

static const char *const guarded[] = {
	"^[^#'\"`]*?(?:cat|dog \\d+)", "^[^#]*?dog(?<n>\\d*)$",
	"^(?!\\s*(?:-|return)? ?')[^#\"`]*?(?:cat|dog)\\b", "^[^#]*?cat|dog",
	"^[^#]*?(?:cat)|dog", "^[^#]*?[|)]cat", "^[^]#]*?cat", "^[^a-c]*?cat",
	"^(?!a(?:b|[)]))[^#]*?cat", "^[^#]*cat", "^[^#]+?cat", "^[^\\s]*?cat",
	"^[^#]*?(?i)CAT", "^[^#]*?(?<=x)cat", "^[^#]*?\\bcat"
};

#define PATTERNS	(sizeof(guarded) / sizeof(guarded[0]))

static uint64_t seed = 88172645463325252ull;

static unsigned
random_below(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 33) % n;
}

static size_t
random_line(char *out)
{
	static const char *const words[] = {
		"cat", "dog", " ", "7", "#", "'", "\"", "`", "-", "return", "x",
		"|", ")", "]", "ab", "a)", "CAT", "\t", "dog 1"
	};
	size_t n = 0;
	unsigned i;

	for (i = random_below(8); i > 0; i--) {
		const char *w = words[random_below(19)];

		memcpy(out + n, w, strlen(w));
		n += strlen(w);
	}
	return n;
}

START_TEST(guards_mean_what_pcre2_says)
{
	const char *pattern = guarded[_i];
	pcre2_match_data *data;
	struct match *m;
	struct err err;
	PCRE2_SIZE at;
	pcre2_code *code;
	char line[128];
	int number, round, rc;

	code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, 0,
	    &number, &at, NULL);
	ck_assert_ptr_nonnull(code);
	data = pcre2_match_data_create_from_pattern(code, NULL);
	ck_assert_int_eq(match_new(pattern, &m, &err), 0);
	for (round = 0; round < 20000; round++) {
		size_t n = random_line(line);

		rc = pcre2_match(code, (PCRE2_SPTR)line, n, 0, 0, data, NULL);
		ck_assert_msg((rc >= 0) == (match_run(m, line, n) == MATCH_YES),
		    "'%s' on '%.*s': PCRE2 %d", pattern, (int)n, line, rc);
	}
	match_free(m);
	pcre2_match_data_free(data);
	pcre2_code_free(code);
}
END_TEST

START_TEST(limits_hold)
{
	static char text[MATCH_LINE_MAX + 100];
	struct match *m;
	struct err err;

	memset(text, 'a', sizeof(text));
	ck_assert_int_eq(match_new("(a+)+$b|(a|aa)+c", &m, &err), 0);
	text[MATCH_LINE_MAX - 1] = 'x';
	text[MATCH_LINE_MAX - 2] = 'c';
	text[0] = 'b';
	(void)match_run(m, text, sizeof(text));
	match_free(m);
	/* Nothing behind MATCH_LINE_MAX is seen. */
	ck_assert_int_eq(match_new("zzzz", &m, &err), 0);
	memcpy(text + MATCH_LINE_MAX, "zzzz", 4);
	ck_assert_int_eq(match_run(m, text, sizeof(text)), MATCH_NO);
	memcpy(text + MATCH_LINE_MAX - 4, "zzzz", 4);
	ck_assert_int_eq(match_run(m, text, sizeof(text)), MATCH_YES);
	ck_assert_uint_eq(match_start(m), MATCH_LINE_MAX - 4);
	match_free(m);
}
END_TEST

START_TEST(groups_and_errors)
{
	struct match *m;
	struct err err;
	size_t len;

	ck_assert_int_eq(match_new("^[^#]*?lost (?<node>\\w+)(?: (?<gpu>\\d+))?", &m,
	    &err), 0);
	ck_assert_int_eq(match_run(m, "x lost n1", 9), MATCH_YES);
	ck_assert_uint_eq(match_start(m), 2);
	ck_assert(memcmp(match_group(m, "node", &len), "n1", 2) == 0);
	ck_assert_uint_eq(len, 2);
	ck_assert_ptr_null(match_group(m, "gpu", &len));
	ck_assert_ptr_null(match_group(m, "rank", &len));
	match_free(m);
	ck_assert_int_eq(match_new("^[^#]*?lost (", &m, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "offset 13"));
	ck_assert_int_eq(match_new("\\C", &m, &err), -1);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("diagnose_match");
	TCase *t = tcase_create("all");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, guards_mean_what_pcre2_says, 0, (int)PATTERNS);
	tcase_add_test(t, limits_hold);
	tcase_add_test(t, groups_and_errors);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
