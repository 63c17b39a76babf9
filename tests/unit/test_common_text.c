/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_common_text.c - nearest word, durations, sizes, counts, clean UTF-8.
 */
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "unit.h"

#define LENGTH(a)	((int)(sizeof(a) / sizeof((a)[0])))
#define BAD		INT64_MIN
#define REPLACED	"\xef\xbf\xbd"

static const struct {
	const char	*text;
	int64_t		 want;
} durations[] = {
	{ "90", 90000 }, { "0", 0 }, { "90s", 90000 }, { "5m", 300000 },
	{ "5min", 300000 }, { "24h", 86400000 }, { "2d", 172800000 },
	{ "500ms", 500 }, { "", BAD }, { "-1", BAD }, { "+1", BAD },
	{ "s", BAD }, { "1x", BAD }, { "1.5h", BAD }, { " 1", BAD },
	{ "1 s", BAD }, { "1s ", BAD }, { "1h30m", BAD }, { "0x10", BAD },
	{ "1S", BAD }, { "99999999999999999999", BAD },
	{ "9223372036854775807", BAD }, { "9223372036854775807d", BAD },
	{ "4611686018427387903ms", 4611686018427387903LL },
	{ "4611686018427387904ms", BAD }
}, sizes[] = {
	{ "4096", 4096 }, { "0", 0 }, { "7B", 7 }, { "64K", 65536 },
	{ "64KB", 65536 }, { "64KiB", 65536 }, { "16M", 16777216 },
	{ "2G", 2147483648LL }, { "1T", 1099511627776LL },
	{ "1TiB", 1099511627776LL }, { "", BAD }, { "K", BAD }, { "1k", BAD },
	{ "1.5G", BAD }, { "-1G", BAD }, { "1GG", BAD }, { "1P", BAD },
	{ "9999999999T", BAD }, { "18446744073709551616", BAD }
};

START_TEST(duration_is_read)
{
	int64_t ms = BAD;
	int rc = text_parse_duration(durations[_i].text, &ms);

	ck_assert_int_eq(rc, durations[_i].want == BAD ? -1 : 0);
	ck_assert_int_eq(ms, durations[_i].want);
}
END_TEST

START_TEST(size_is_read)
{
	int64_t bytes = BAD;
	int rc = text_parse_size(sizes[_i].text, &bytes);

	ck_assert_int_eq(rc, sizes[_i].want == BAD ? -1 : 0);
	ck_assert_int_eq(bytes, sizes[_i].want);
}
END_TEST

START_TEST(int_is_read_within_its_range)
{
	static const char *const bad[] = { "", "-", "+5", " 5", "5 ", "5x", "x",
	    "0x5", "-6", "11", "99999999999999999999", "--5" };
	int64_t n = 77;
	int i;

	ck_assert_int_eq(text_parse_int("-5", -5, 10, &n), 0);
	ck_assert_int_eq(n, -5);
	ck_assert_int_eq(text_parse_int("10", -5, 10, &n), 0);
	ck_assert_int_eq(n, 10);
	ck_assert_int_eq(text_parse_int("0007", -5, 10, &n), 0);
	ck_assert_int_eq(n, 7);
	for (i = 0; i < LENGTH(bad); i++) {
		ck_assert_msg(text_parse_int(bad[i], -5, 10, &n) == -1, "'%s'",
		    bad[i]);
		ck_assert_int_eq(n, 7);
	}
	ck_assert_int_eq(text_parse_int("-9223372036854775808", INT64_MIN,
	    INT64_MAX, &n), 0);
	ck_assert_int_eq(n, INT64_MIN);
}
END_TEST

static const struct {
	int64_t		 n;
	const char	*span, *count;
} formats[] = {
	{ 0, "0 ms", "0" }, { 7, "7 ms", "7" }, { 850, "850 ms", "850" },
	{ 999, "999 ms", "999" }, { 1000, "1 s", "1,000" },
	{ 59999, "59 s", "59,999" }, { 60000, "1 min 0 s", "60,000" },
	{ 250000, "4 min 10 s", "250,000" },
	{ 7380000, "2 h 3 min", "7,380,000" },
	{ 172799999, "47 h 59 min", "172,799,999" },
	{ 176400000, "2 d 1 h", "176,400,000" },
	{ -1, "-1 ms", "-1" }, { -100, "-100 ms", "-100" },
	{ -1000, "-1000 ms", "-1,000" },
	{ INT64_MIN, NULL, "-9,223,372,036,854,775,808" },
	{ INT64_MAX, NULL, "9,223,372,036,854,775,807" }
};

START_TEST(numbers_are_written_for_people)
{
	char out[TEXT_SPAN_MAX];

	text_format_count(formats[_i].n, out);
	ck_assert_str_eq(out, formats[_i].count);
	text_format_span(formats[_i].n, out);
	ck_assert_uint_lt(strlen(out), TEXT_SPAN_MAX);
	if (formats[_i].span != NULL)
		ck_assert_str_eq(out, formats[_i].span);
}
END_TEST

static const struct {
	const char	*a, *b;
	size_t		 want;
} distances[] = {
	{ "", "", 0 }, { "", "abc", 3 }, { "abc", "", 3 }, { "abc", "abc", 0 },
	{ "abc", "abd", 1 }, { "abc", "ab", 1 }, { "abc", "abcd", 1 },
	{ "abcd", "abdc", 1 }, { "ba", "ab", 1 }, { "ca", "abc", 3 },
	{ "kitten", "sitting", 3 }, { "grace", "garce", 1 },
	{ "checkpoint", "chekcpoint", 1 }
};

START_TEST(distance_counts_edits)
{
	const char *a = distances[_i].a, *b = distances[_i].b;

	ck_assert_uint_eq(text_distance(a, b), distances[_i].want);
	ck_assert_uint_eq(text_distance(b, a), distances[_i].want);
}
END_TEST

START_TEST(distance_of_long_words_is_capped)
{
	char a[300], b[300];

	memset(a, 'a', sizeof(a) - 1);
	memset(b, 'b', sizeof(b) - 1);
	a[sizeof(a) - 1] = b[sizeof(b) - 1] = '\0';
	ck_assert_uint_eq(text_distance(a, b), 64);
	ck_assert_uint_eq(text_distance(a, ""), 64);
	ck_assert_uint_eq(text_distance(a, a), 0);
}
END_TEST

static const char *
nearest(const char *word, const char *const *candidates)
{
	struct text_nearest near = {0};

	for (; *candidates != NULL; candidates++)
		text_nearest_try(&near, word, *candidates);
	return near.best ? near.best : "(none)";
}

START_TEST(nearest_word_is_found)
{
	static const char *const words[] = { "name", "nnodes", "grace",
	    "checkpoint-dir", "max-restarts", "tee", NULL };

	ck_assert_str_eq(nearest("nme", words), "name");
	ck_assert_str_eq(nearest("max-restart", words), "max-restarts");
	ck_assert_str_eq(nearest("check", words), "checkpoint-dir");
	ck_assert_str_eq(nearest("checkpont-dri", words), "checkpoint-dir");
	ck_assert_str_eq(nearest("te", words), "tee");
	ck_assert_str_eq(nearest("grcae", words), "grace");
	ck_assert_str_eq(nearest("zzzzzz", words), "(none)");
	ck_assert_str_eq(nearest("quarantine", words), "(none)");
	ck_assert_str_eq(nearest("", words), "(none)");
}
END_TEST

START_TEST(names_of_runs_and_nodes)
{
	static const char *const good[] = { "a", "run-1_B.2", "-x", "0" };
	static const char *const bad[] = { "", ".hidden", "a/b", "a b", "..",
	    "a\n", "\xc3\xa9" };
	char word[66];
	int i;

	for (i = 0; i < LENGTH(good); i++)
		ck_assert_msg(text_is_name(good[i]), "'%s'", good[i]);
	for (i = 0; i < LENGTH(bad); i++)
		ck_assert_msg(!text_is_name(bad[i]), "'%s'", bad[i]);
	memset(word, 'a', sizeof(word));
	word[65] = '\0';
	ck_assert(!text_is_name(word));
	word[64] = '\0';
	ck_assert(text_is_name(word));
}
END_TEST

/* Each byte that belongs to no sequence becomes one U+FFFD. */
static const struct {
	const char	*what, *in;
	size_t		 len;
	const char	*want;
} dirty[] = {
	{ "lone continuation", "a\x80z", 3, "a" REPLACED "z" },
	{ "lone continuation", "\xbf", 1, REPLACED },
	{ "never a byte", "\xfe\xff", 2, REPLACED REPLACED },
	{ "five-byte lead", "\xf8" "a", 2, REPLACED "a" },
	{ "overlong 2", "\xc0\x80", 2, REPLACED REPLACED },
	{ "overlong 2", "\xc1\xbf", 2, REPLACED REPLACED },
	{ "overlong 3", "\xe0\x9f\xbf", 3, REPLACED REPLACED REPLACED },
	{ "overlong 4", "\xf0\x8f\xbf\xbf", 4,
	    REPLACED REPLACED REPLACED REPLACED },
	{ "low surrogate", "\xed\xa0\x80", 3, REPLACED REPLACED REPLACED },
	{ "high surrogate", "\xed\xbf\xbf", 3, REPLACED REPLACED REPLACED },
	{ "above U+10FFFF", "\xf4\x90\x80\x80", 4,
	    REPLACED REPLACED REPLACED REPLACED },
	{ "lead f5", "\xf5\x80\x80\x80", 4,
	    REPLACED REPLACED REPLACED REPLACED },
	{ "cut 2 at the end", "a\xc3", 2, "a" REPLACED },
	{ "cut 3 at the end", "\xe2\x82", 2, REPLACED REPLACED },
	{ "cut 4 at the end", "\xf0\x9f\x98", 3, REPLACED REPLACED REPLACED },
	{ "cut 3 before text", "\xe2\x82" "a", 3, REPLACED REPLACED "a" },
	{ "cut 2 before a whole one", "\xc3\xc3\xa9", 3, REPLACED "\xc3\xa9" },
	{ "NUL", "a\0b", 3, "a" REPLACED "b" },
	{ "whole ones", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9,
	    "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
	{ "edges", "\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80"
	    "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\x7f\x01", 23,
	    "\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80"
	    "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\x7f\x01" },
	{ "nothing", "", 0, "" }
};

START_TEST(invalid_utf8_is_replaced)
{
	struct buf b = {0};
	char *exact = malloc(dirty[_i].len + 1);

	/* On the heap without a NUL: a read beyond the end is seen. */
	exact = realloc(exact, dirty[_i].len ? dirty[_i].len : 1);
	memcpy(exact, dirty[_i].in, dirty[_i].len);
	ck_assert_int_eq(text_utf8_clean(exact, dirty[_i].len, &b), 0);
	ck_assert_msg(strcmp(b.data, dirty[_i].want) == 0, "%s: '%s'",
	    dirty[_i].what, b.data);
	ck_assert_uint_eq(b.len, strlen(dirty[_i].want));
	free(exact);
	buf_fini(&b);
}
END_TEST

/* Encodes a code point as RFC 3629 says; the test's own. */
static size_t
encode(unsigned c, char out[4])
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 63));
		out[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 63));
	out[2] = (char)(0x80 | (c >> 6 & 63));
	out[3] = (char)(0x80 | (c & 63));
	return 4;
}

START_TEST(every_code_point_passes)
{
	struct buf b = {0};
	char in[4];
	unsigned c;
	size_t n;

	for (c = 1; c <= 0x10ffff; c++) {
		bool surrogate = c >= 0xd800 && c <= 0xdfff;

		n = encode(c, in);
		buf_clear(&b);
		/* An assertion each would take seconds. */
		if (text_utf8_clean(in, n, &b) == -1 ||
		    (b.len == n && memcmp(b.data, in, n) == 0) == surrogate)
			ck_abort_msg("U+%04X", c);
	}
	buf_fini(&b);
}
END_TEST

/* What comes out is clean: cleaning it again changes nothing. */
START_TEST(random_bytes_become_clean)
{
	struct buf once = {0}, twice = {0};
	char in[64];
	int round, i;

	for (round = 0; round < 20000; round++) {
		for (i = 0; i < LENGTH(in); i++)
			in[i] = (char)(unit_random(3) ? 0x80 | unit_random(128) :
			    unit_random(256));
		buf_clear(&once);
		buf_clear(&twice);
		ck_assert_int_eq(text_utf8_clean(in, sizeof(in), &once), 0);
		ck_assert_int_eq(text_utf8_clean(once.data, once.len, &twice), 0);
		ck_assert_uint_eq(once.len, twice.len);
		ck_assert_int_eq(memcmp(once.data, twice.data, once.len), 0);
		ck_assert_uint_eq(strlen(once.data), once.len);
	}
	buf_fini(&once);
	buf_fini(&twice);
}
END_TEST

START_TEST(clean_appends)
{
	struct buf b = {0};

	ck_assert_int_eq(buf_puts(&b, "x="), 0);
	ck_assert_int_eq(text_utf8_clean("1\xff", 2, &b), 0);
	ck_assert_str_eq(b.data, "x=1" REPLACED);
	buf_fini(&b);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_loop_test(t, duration_is_read, 0, LENGTH(durations));
	tcase_add_loop_test(t, size_is_read, 0, LENGTH(sizes));
	tcase_add_test(t, int_is_read_within_its_range);
	tcase_add_loop_test(t, numbers_are_written_for_people, 0,
	    LENGTH(formats));
	tcase_add_loop_test(t, distance_counts_edits, 0, LENGTH(distances));
	tcase_add_test(t, distance_of_long_words_is_capped);
	tcase_add_test(t, nearest_word_is_found);
	tcase_add_test(t, names_of_runs_and_nodes);
	tcase_add_loop_test(t, invalid_utf8_is_replaced, 0, LENGTH(dirty));
	tcase_add_test(t, every_code_point_passes);
	tcase_add_test(t, random_bytes_become_clean);
	tcase_add_test(t, clean_appends);
}

int
main(void)
{
	return unit_run("common_text", add);
}
