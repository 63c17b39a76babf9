/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_common_json.c - checked reading, clean writing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "unit.h"

#define LENGTH(a)	((int)(sizeof(a) / sizeof((a)[0])))

static cJSON *
parse(const char *text)
{
	struct err err = {0};
	cJSON *v = NULL;

	ck_assert_msg(json_parse(text, strlen(text), &v, &err) == 0, "%s: %s",
	    text, err.text);
	return v;
}

static const char *const bad[] = { "", " ", "{", "{\"a\":1", "{\"a\":1}x",
    "{\"a\":1} {\"b\":2}", "[1,2]]", "\"abc", "tru", "nul", "{a:1}",
    "{\"a\" 1}", "[1 2]", "\"\\x\"", "\"\\u12\"", "\x01" };

START_TEST(broken_text_is_refused)
{
	size_t len = strlen(bad[_i]);
	/* Exactly as long as it is: a read beyond the end is seen. */
	char *exact = malloc(len ? len : 1);
	struct err err = {0};
	cJSON *v = NULL;

	memcpy(exact, bad[_i], len);
	ck_assert_int_eq(json_parse(exact, len, &v, &err), -1);
	ck_assert_int_eq(err.code, ERR_FORMAT);
	ck_assert_ptr_null(v);
	ck_assert_ptr_nonnull(strstr(err.text, "byte"));
	free(exact);
}
END_TEST

START_TEST(white_space_behind_is_fine)
{
	cJSON *v = parse("{\"a\":1} \t\r\n");

	ck_assert_int_eq(json_int(v, "a", 0), 1);
	cJSON_Delete(v);
}
END_TEST

START_TEST(bytes_behind_are_placed)
{
	struct err err = {0};
	cJSON *v = NULL;

	ck_assert_int_eq(json_parse("{} x", 4, &v, &err), -1);
	ck_assert_str_eq(err.text, "bytes after the JSON value at byte 3");
	ck_assert_int_eq(json_parse("{}\0", 3, &v, &err), -1);
}
END_TEST

START_TEST(length_bounds_the_text)
{
	char *exact = malloc(8);
	cJSON *v = NULL;

	memcpy(exact, "{\"a\":12}", 8);
	ck_assert_int_eq(json_parse(exact, 8, &v, NULL), 0);
	ck_assert_int_eq(json_int(v, "a", 0), 12);
	cJSON_Delete(v);
	free(exact);
	/* What stands behind the length does not count. */
	ck_assert_int_eq(json_parse("123456", 3, &v, NULL), 0);
	ck_assert_double_eq(v->valuedouble, 123);
	cJSON_Delete(v);
}
END_TEST

START_TEST(deep_nesting_is_refused)
{
	size_t n = 200000;
	char *deep = malloc(n);
	cJSON *v = NULL;

	memset(deep, '[', n);
	ck_assert_int_eq(json_parse(deep, n, &v, NULL), -1);
	free(deep);
}
END_TEST

START_TEST(members_of_other_types_give_the_default)
{
	cJSON *v = parse("{\"s\":\"x\",\"n\":5,\"b\":true,\"z\":null,\"o\":{}}");

	ck_assert_str_eq(json_str(v, "s", "d"), "x");
	ck_assert_str_eq(json_str(v, "n", "d"), "d");
	ck_assert_str_eq(json_str(v, "z", "d"), "d");
	ck_assert_str_eq(json_str(v, "absent", "d"), "d");
	ck_assert_ptr_null(json_str(v, "S", NULL));
	ck_assert_int_eq(json_int(v, "s", 9), 9);
	ck_assert_int_eq(json_int(v, "b", 9), 9);
	ck_assert_int_eq(json_int(v, "n", 9), 5);
	ck_assert(json_bool(v, "b", false));
	ck_assert(json_bool(v, "n", true));
	ck_assert(!json_bool(v, "s", false));
	ck_assert_double_eq(json_num(v, "o", 1.5), 1.5);
	ck_assert_int_eq(json_int(NULL, "n", 9), 9);
	cJSON_Delete(v);
}
END_TEST

static const struct {
	const char	*text;
	int64_t		 want;		/* -7: not taken */
} ints[] = {
	{ "0", 0 }, { "-0", 0 }, { "-1", -1 }, { "1.0", 1 }, { "1e3", 1000 },
	{ "9007199254740992", 9007199254740992LL },
	{ "-9007199254740992", -9007199254740992LL },
	{ "9007199254740994", -7 }, { "-9007199254740994", -7 },
	{ "9223372036854775807", -7 }, { "1e300", -7 }, { "-1e300", -7 },
	{ "1e999", -7 }, { "1.5", -7 }, { "0.5", -7 }, { "-0.5", -7 },
	{ "\"5\"", -7 }, { "true", -7 }, { "[5]", -7 }
};

START_TEST(int_takes_exact_numbers_only)
{
	char text[64];
	cJSON *v;

	snprintf(text, sizeof(text), "{\"n\":%s}", ints[_i].text);
	v = parse(text);
	ck_assert_int_eq(json_int(v, "n", -7), ints[_i].want);
	cJSON_Delete(v);
}
END_TEST

START_TEST(foreign_bytes_become_utf8)
{
	cJSON *v = cJSON_CreateObject(), *again = NULL;
	char *line;

	ck_assert_int_eq(json_add_bytes(v, "a", "x\xff\0y", 4), 0);
	ck_assert_int_eq(json_add_text(v, "b", "\xed\xa0\x80"), 0);
	ck_assert_int_eq(json_add_text(v, "c", NULL), 0);
	ck_assert_int_eq(json_add_text(v, "d", "\"\\\n\t\x01\x7f"), 0);
	ck_assert_int_eq(json_add_bytes(v, "e", "", 0), 0);
	ck_assert_str_eq(json_str(v, "a", ""), "x\xef\xbf\xbd\xef\xbf\xbdy");
	ck_assert_str_eq(json_str(v, "b", ""),
	    "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	ck_assert(cJSON_IsNull(cJSON_GetObjectItem(v, "c")));
	line = json_line(v);
	ck_assert_ptr_eq(strchr(line, '\n'), line + strlen(line) - 1);
	ck_assert_int_eq(json_parse(line, strlen(line), &again, NULL), 0);
	ck_assert(cJSON_Compare(v, again, true));
	free(line);
	cJSON_Delete(v);
	cJSON_Delete(again);
}
END_TEST

START_TEST(items_are_texts_or_null)
{
	cJSON *list = cJSON_CreateArray();
	char *text;

	ck_assert_int_eq(json_add_item(list, "a\xff"), 0);
	ck_assert_int_eq(json_add_item(list, NULL), 0);
	ck_assert_int_eq(json_add_item(list, ""), 0);
	text = json_line(list);
	ck_assert_str_eq(text, "[\"a\xef\xbf\xbd\",null,\"\"]\n");
	free(text);
	cJSON_Delete(list);
}
END_TEST

START_TEST(unknown_numbers_are_null)
{
	cJSON *v = cJSON_CreateObject();
	char *line;

	ck_assert_int_eq(json_add_int(v, "a", JSON_UNKNOWN), 0);
	ck_assert_int_eq(json_add_int(v, "b", -3), 0);
	ck_assert_int_eq(json_add_int(v, "c", 999999999999999LL), 0);
	line = json_line(v);
	ck_assert_str_eq(line, "{\"a\":null,\"b\":-3,\"c\":999999999999999}\n");
	ck_assert_int_eq(json_int(v, "a", JSON_UNKNOWN), JSON_UNKNOWN);
	free(line);
	cJSON_Delete(v);
}
END_TEST

/* cJSON prints 15 digits when that is near enough: true up to 2^52. */
START_TEST(ints_survive_the_way_out_and_in)
{
	int64_t n;
	char *line;
	cJSON *v;
	int round;

	for (round = 0; round < 20000; round++) {
		n = ((int64_t)unit_random(1u << 20) << 32 |
		    unit_random(UINT32_MAX)) >> unit_random(52);
		v = cJSON_CreateObject();
		ck_assert_int_eq(json_add_int(v, "n", n), 0);
		line = json_line(v);
		cJSON_Delete(v);
		v = parse(line);
		ck_assert_int_eq(json_int(v, "n", -1), n);
		cJSON_Delete(v);
		free(line);
	}
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_loop_test(t, broken_text_is_refused, 0, LENGTH(bad));
	tcase_add_test(t, white_space_behind_is_fine);
	tcase_add_test(t, bytes_behind_are_placed);
	tcase_add_test(t, length_bounds_the_text);
	tcase_add_test(t, deep_nesting_is_refused);
	tcase_add_test(t, members_of_other_types_give_the_default);
	tcase_add_loop_test(t, int_takes_exact_numbers_only, 0, LENGTH(ints));
	tcase_add_test(t, foreign_bytes_become_utf8);
	tcase_add_test(t, items_are_texts_or_null);
	tcase_add_test(t, unknown_numbers_are_null);
	tcase_add_test(t, ints_survive_the_way_out_and_in);
}

int
main(void)
{
	return unit_run("common_json", add);
}
