/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_common_err.c - struct err and struct buf.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/clock.h"
#include "common/err.h"
#include "unit.h"

START_TEST(err_carries_code_and_text)
{
	struct err err = {0};

	ck_assert_int_eq(err_set(&err, ERR_LIMIT, "%s is %d", "x", 7), -1);
	ck_assert_int_eq(err.code, ERR_LIMIT);
	ck_assert_int_eq(err.errnum, 0);
	ck_assert_str_eq(err.text, "x is 7");
	ck_assert_int_eq(err_memory(&err), -1);
	ck_assert_int_eq(err.code, ERR_MEMORY);
}
END_TEST

START_TEST(err_is_one_harmless_line)
{
	struct err err = {0};

	err_set(&err, ERR_USAGE, "no %s", "a\nb\033[31m\x7f.log");
	ck_assert_str_eq(err.text, "no a?b?[31m?.log");
	err_prefix(&err, "%s", "x\r");
	ck_assert_str_eq(err.text, "x?: no a?b?[31m?.log");
}
END_TEST

START_TEST(err_errno_keeps_errno)
{
	struct err err = {0};

	errno = ENOSPC;
	ck_assert_int_eq(err_errno(&err, "cannot write %s", "/a"), -1);
	ck_assert_int_eq(errno, ENOSPC);
	ck_assert_int_eq(err.code, ERR_SYSTEM);
	ck_assert_int_eq(err.errnum, ENOSPC);
	ck_assert_str_eq(err.text, "cannot write /a: No space left on device");
}
END_TEST

START_TEST(err_may_be_null)
{
	ck_assert_int_eq(err_set(NULL, ERR_USAGE, "x"), -1);
	ck_assert_int_eq(err_errno(NULL, "x"), -1);
	ck_assert_int_eq(err_prefix(NULL, "x"), -1);
	ck_assert_int_eq(err_memory(NULL), -1);
}
END_TEST

START_TEST(err_prefix_keeps_code)
{
	struct err err = {0};

	err_set(&err, ERR_FORMAT, "broken");
	ck_assert_int_eq(err_prefix(&err, "line %d", 3), -1);
	ck_assert_int_eq(err.code, ERR_FORMAT);
	ck_assert_str_eq(err.text, "line 3: broken");
}
END_TEST

START_TEST(err_long_text_is_cut)
{
	struct err err;
	char word[2000];

	memset(&err, 'x', sizeof(err));
	memset(word, 'a', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	errno = EIO;
	err_errno(&err, "%s", word);
	ck_assert_uint_eq(strlen(err.text), sizeof(err.text) - 1);
	err_prefix(&err, "%s", word);
	ck_assert_uint_eq(strlen(err.text), sizeof(err.text) - 1);
	err_set(&err, ERR_USAGE, "tail");
	err_prefix(&err, "head");
	ck_assert_str_eq(err.text, "head: tail");
}
END_TEST

START_TEST(buf_grows_and_ends_in_nul)
{
	struct buf b = {0};
	size_t i;

	for (i = 0; i < 5000; i++) {
		ck_assert_int_eq(buf_append(&b, &"0123456789"[i % 10], 1), 0);
		ck_assert_uint_eq(b.len, i + 1);
		ck_assert_int_eq(b.data[b.len], '\0');
	}
	for (i = 0; i < 5000; i++)
		ck_assert_int_eq(b.data[i], (char)('0' + i % 10));
	buf_fini(&b);
	ck_assert_ptr_null(b.data);
	ck_assert_uint_eq(b.len, 0);
	buf_fini(&b);
}
END_TEST

START_TEST(buf_nothing_is_fine)
{
	struct buf b = {0};
	char *p;

	ck_assert_int_eq(buf_append(&b, NULL, 0), 0);
	ck_assert_str_eq(b.data, "");
	buf_fini(&b);
	buf_clear(&b);
	buf_consume(&b, 0);
	buf_consume(&b, 10);
	ck_assert_uint_eq(b.len, 0);
	p = buf_steal(&b);
	ck_assert_str_eq(p, "");
	free(p);
	ck_assert_ptr_null(b.data);
}
END_TEST

START_TEST(buf_consume_drops_the_head)
{
	struct buf b = {0};

	ck_assert_int_eq(buf_puts(&b, "abcdef"), 0);
	buf_consume(&b, 0);
	ck_assert_str_eq(b.data, "abcdef");
	buf_consume(&b, 2);
	ck_assert_str_eq(b.data, "cdef");
	ck_assert_uint_eq(b.len, 4);
	buf_consume(&b, 5);
	ck_assert_str_eq(b.data, "");
	ck_assert_uint_eq(b.len, 0);
	buf_fini(&b);
}
END_TEST

START_TEST(buf_refuses_what_cannot_be)
{
	struct buf b = {0};

	ck_assert_int_eq(buf_puts(&b, "kept"), 0);
	ck_assert_int_eq(buf_reserve(&b, SIZE_MAX), -1);
	ck_assert_int_eq(buf_reserve(&b, SIZE_MAX - 4), -1);
	ck_assert_int_eq(buf_reserve(&b, SIZE_MAX / 2), -1);
	ck_assert_str_eq(b.data, "kept");
	buf_fini(&b);
}
END_TEST

START_TEST(buf_printf_appends)
{
	struct buf b = {0};
	char *p;

	ck_assert_int_eq(buf_printf(&b, "%d-%s", 12, "a"), 0);
	ck_assert_int_eq(buf_printf(&b, "%0*d", 300, 7), 0);
	ck_assert_uint_eq(b.len, 304);
	ck_assert_int_eq(strncmp(b.data, "12-a000", 7), 0);
	p = buf_steal(&b);
	ck_assert_uint_eq(strlen(p), 304);
	ck_assert_uint_eq(b.len, 0);
	free(p);
}
END_TEST

START_TEST(clock_is_formatted_in_utc)
{
	char out[CLOCK_TEXT_MAX];
	int64_t now = 1769829161123456789LL;
	struct clock c = clock_fake(&now);

	clock_format(now, out);
	ck_assert_str_eq(out, "2026-01-31T03:12:41.123Z");
	clock_format(0, out);
	ck_assert_str_eq(out, "1970-01-01T00:00:00.000Z");
	ck_assert_int_eq(clock_mono_ns(&c), now);
	now += 5;
	ck_assert_int_eq(clock_wall_ns(&c), now);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_test(t, err_carries_code_and_text);
	tcase_add_test(t, err_is_one_harmless_line);
	tcase_add_test(t, err_errno_keeps_errno);
	tcase_add_test(t, err_may_be_null);
	tcase_add_test(t, err_prefix_keeps_code);
	tcase_add_test(t, err_long_text_is_cut);
	tcase_add_test(t, buf_grows_and_ends_in_nul);
	tcase_add_test(t, buf_nothing_is_fine);
	tcase_add_test(t, buf_consume_drops_the_head);
	tcase_add_test(t, buf_refuses_what_cannot_be);
	tcase_add_test(t, buf_printf_appends);
	tcase_add_test(t, clock_is_formatted_in_utc);
}

int
main(void)
{
	return unit_run("common_err", add);
}
