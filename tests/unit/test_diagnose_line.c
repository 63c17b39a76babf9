/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_line.c - prefixes of log lines, times, pieces.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/line.h"

struct row {
	const char	*line;
	const char	*text;
	int		 rank;
	const char	*node;
	enum line_level	 level;
};

static const struct row rows[] = {
	{ "plain text", "plain text", -1, NULL, LEVEL_NONE },
	{ "", "", -1, NULL, LEVEL_NONE },
	{ "12: text", "text", 12, NULL, LEVEL_NONE },
	{ " 3:   File \"x.py\"", "  File \"x.py\"", 3, NULL, LEVEL_NONE },
	{ "[rank3]: Traceback", "Traceback", 3, NULL, LEVEL_NONE },
	{ "[rank3]:   File \"a\"", "  File \"a\"", 3, NULL, LEVEL_NONE },
	{ "[rank: 3] Child", "Child", 3, NULL, LEVEL_NONE },
	{ "[default0]:text", "text", -1, NULL, LEVEL_NONE },
	{ "[default0]:[rank12]:[E817 17:40:34.227531918 ProcessGroupNCCL.cpp:1515] "
	  "[PG 0 (default_pg) Rank 12] text", "text", 12, NULL, LEVEL_ERROR },
	{ "[E ProcessGroupNCCL.cpp:916] [Rank 1] NCCL watchdog", "NCCL watchdog", 1,
	  NULL, LEVEL_ERROR },
	{ "[W socket.cpp:401] [c10d] The server", "The server", -1, NULL,
	  LEVEL_WARN },
	{ "E0227 17:39:41.510000 293816 site-packages/x.py:732] RuntimeError: a",
	  "RuntimeError: a", -1, NULL, LEVEL_ERROR },
	{ "[1,26]<stdout>:node09:8716 text", "node09:8716 text", 26, NULL,
	  LEVEL_NONE },
	{ "[1,3]<stderr>: text", "text", 3, NULL, LEVEL_NONE },
	{ "(Worker pid=34) text", "text", -1, NULL, LEVEL_NONE },
	{ "(Worker pid=34, ip=10.0.0.7) text", "text", -1, "10.0.0.7",
	  LEVEL_NONE },
	{ "(see above) text", "(see above) text", -1, NULL, LEVEL_NONE },
	{ "node7: text", "text", -1, "node7", LEVEL_NONE },
	{ "RuntimeError: text", "RuntimeError: text", -1, NULL, LEVEL_NONE },
	{ "step12: text", "step12: text", -1, NULL, LEVEL_NONE },
	{ "2026-01-31 03:12:41,123 text", "text", -1, NULL, LEVEL_NONE },
	{ "[2026-01-31T03:12:41.5Z] text", "text", -1, NULL, LEVEL_NONE },
	{ "2026-01-31 03:12:41.215 | ERROR    | text", "text", -1, NULL,
	  LEVEL_ERROR },
	{ "[03/17/23 20:03:12] text", "text", -1, NULL, LEVEL_NONE },
	{ "12:13:46 text", "text", -1, NULL, LEVEL_NONE },
	{ "Jan 31 03:12:41 node7 kernel: NVRM: Xid", "NVRM: Xid", -1, "node7",
	  LEVEL_NONE },
	{ "[ 1234.567890] NVRM: Xid", "NVRM: Xid", -1, NULL, LEVEL_NONE },
	{ "[  +0.000316] pcieport", "pcieport", -1, NULL, LEVEL_NONE },
	{ "[Sat Jan 31 03:12:41 2026] NVRM: Xid", "NVRM: Xid", -1, NULL,
	  LEVEL_NONE },
	{ "[81223] [rank0]:text", "text", 0, NULL, LEVEL_NONE },
	{ "ERROR:torch.distributed.run:text", "text", -1, NULL, LEVEL_ERROR },
	{ "ERROR: text", "text", -1, NULL, LEVEL_ERROR },
	{ "[ERROR] text", "text", -1, NULL, LEVEL_ERROR },
	{ "WARNING:root:CUDA out of memory", "WARNING:root:CUDA out of memory", -1,
	  NULL, LEVEL_WARN },
	{ "2026-01-31 03:12:41,438] torch.api: [ERROR] failed",
	  "] torch.api: [ERROR] failed", -1, NULL, LEVEL_NONE },
	{ "[2026-01-31 03:12:41,438] torch.distributed.api: [ERROR] failed",
	  "failed", -1, NULL, LEVEL_ERROR },
	{ "a.node03.nolog [stderr] [rank3]: text", "text", 3, NULL, LEVEL_NONE },
	{ "[2026-01-31T03:12:41.7Z] fa88a9df [rank=5] || RuntimeError: x",
	  "RuntimeError: x", 5, NULL, LEVEL_NONE },
	{ " 45%|####  | 7/16 [00:01<00:02, 1.1s/it]Traceback", "Traceback", -1,
	  NULL, LEVEL_NONE },
	{ " 45%|####  | 7/16 [00:01<00:02, 1.1s/it]",
	  " 45%|####  | 7/16 [00:01<00:02, 1.1s/it]", -1, NULL, LEVEL_NONE },
	{ "2026-01-31T03:12:41.001125857Z stderr F text", "text", -1, NULL,
	  LEVEL_NONE },
	{ "trainer-1  | text", "text", -1, NULL, LEVEL_NONE },
	{ "a_2 | text", "text", -1, NULL, LEVEL_NONE },
	{ "a | text", "a | text", -1, NULL, LEVEL_NONE },
	{ "[pod/train-0/main] text", "text", -1, NULL, LEVEL_NONE },
	{ "\033[1;31m[rank2]: \033[0mtext", "text", 2, NULL, LEVEL_NONE },
	{ "    \"message\": \"RuntimeError: x", "RuntimeError: x", -1, NULL,
	  LEVEL_NONE },
	{ "{\"message\": {\"message\": \"RuntimeError: x", "RuntimeError: x", -1,
	  NULL, LEVEL_NONE },
	{ "[", "[", -1, NULL, LEVEL_NONE },
	{ "[rank", "[rank", -1, NULL, LEVEL_NONE },
	{ "[rank99999999999999]: x", "[rank99999999999999]: x", -1, NULL,
	  LEVEL_NONE },
	{ "999999999999: x", "999999999999: x", -1, NULL, LEVEL_NONE },
};

START_TEST(prefixes_are_taken_off)
{
	const struct row *row = &rows[_i];
	size_t n = strlen(row->line);
	char *data = malloc(n + 1);
	struct line l;

	/* Without a terminator, so that reading behind the end is seen. */
	memcpy(data, row->line, n);
	line_parse(data, n, &l);
	ck_assert_msg(l.len == strlen(row->text) &&
	    memcmp(l.text, row->text, l.len) == 0, "'%s' gave '%.*s'", row->line,
	    (int)l.len, l.text);
	ck_assert_msg(l.rank == row->rank, "'%s': rank %d", row->line, l.rank);
	ck_assert_msg(l.level == row->level, "'%s': level %d", row->line,
	    l.level);
	if (row->node == NULL)
		ck_assert_msg(l.node == NULL, "'%s': node", row->line);
	else
		ck_assert_msg(l.node != NULL && l.node_len == strlen(row->node) &&
		    memcmp(l.node, row->node, l.node_len) == 0, "'%s': node",
		    row->line);
	free(data);
}
END_TEST

/* Every cut of every line, at its exact length. */
START_TEST(cut_lines_are_safe)
{
	size_t n = strlen(rows[_i].line), i;
	struct line l;

	for (i = 0; i <= n; i++) {
		char *data = malloc(i ? i : 1);

		memcpy(data, rows[_i].line, i);
		line_parse(data, i, &l);
		ck_assert_uint_le(l.len, i);
		free(data);
	}
}
END_TEST

START_TEST(keys_tell_writers_apart)
{
	static const char *const a = "[rank1]: x", *const b = "[rank2]: x";
	static const char *const c = "2026-01-31 03:12:41 [rank1]: y";
	struct line la, lb, lc, ld;

	line_parse(a, strlen(a), &la);
	line_parse(b, strlen(b), &lb);
	line_parse(c, strlen(c), &lc);
	line_parse("y", 1, &ld);
	ck_assert(la.key != lb.key);
	ck_assert(la.key == lc.key);
	ck_assert(ld.key == 0);
}
END_TEST

START_TEST(times_are_read)
{
	int64_t t = 5;

	ck_assert_uint_eq(line_parse_time("2026-01-31T03:12:41.123Z", 24, &t), 24);
	ck_assert_int_eq(t, 1769829161123000000ll);
	ck_assert_uint_eq(line_parse_time("2026-01-31 03:12:41,5", 21, &t), 21);
	ck_assert_int_eq(t, 1769829161500000000ll);
	ck_assert_uint_eq(line_parse_time("2026/01/31 03:12:41+01:00", 25, &t), 25);
	ck_assert_int_eq(t, 1769825561000000000ll);
	t = 5;
	ck_assert_uint_eq(line_parse_time("2026-13-31T03:12:41", 19, &t), 0);
	ck_assert_uint_eq(line_parse_time("2026-01-31T25:12:41", 19, &t), 0);
	ck_assert_uint_eq(line_parse_time("2026-01-31", 10, &t), 0);
	ck_assert_int_eq(t, 5);
}
END_TEST

/* What stands before a Traceback is taken off lines of the same shape. */
START_TEST(styles_are_learnt)
{
	static const char *const rows_of[][2] = {
		{ "[w][17] - KeyError: 'a'", "KeyError: 'a'" },
		{ "[w][] - KeyError: 'a'", "[w][] - KeyError: 'a'" },
		{ "[w][17] + KeyError: 'a'", "[w][17] + KeyError: 'a'" },
		{ "[w][1", "[w][1" },
	};
	static const char first[] =
	    "[w][3] - Traceback (most recent call last):";
	static const char text[] = "Original Traceback (most recent call last):";
	struct line_styles st = {0};
	struct line l;
	size_t i;

	line_parse(text, strlen(text), &l);
	line_styles_learn(&st, &l);
	ck_assert_uint_eq(st.count, 0);
	line_parse(first, strlen(first), &l);
	line_styles_learn(&st, &l);
	line_styles_learn(&st, &l);
	ck_assert_uint_eq(st.count, 1);
	for (i = 0; i < sizeof(rows_of) / sizeof(rows_of[0]); i++) {
		line_parse(rows_of[i][0], strlen(rows_of[i][0]), &l);
		line_styles_apply(&st, &l);
		ck_assert_msg(l.len == strlen(rows_of[i][1]) &&
		    memcmp(l.text, rows_of[i][1], l.len) == 0, "'%s' gave '%.*s'",
		    rows_of[i][0], (int)l.len, l.text);
	}
}
END_TEST

START_TEST(ansi_is_taken_out)
{
	static const char in[] = "\033[31mred\033[0m \033]0;title\atext\033";
	char out[sizeof(in)];
	size_t n = line_strip_ansi(in, sizeof(in) - 1, out);

	ck_assert_uint_eq(n, 8);
	ck_assert(memcmp(out, "red text", 8) == 0);
}
END_TEST

START_TEST(pieces_are_cut)
{
	static const char d[] = "one\ntwo\rthree\r\nfour";
	struct piece p;

	ck_assert(line_piece(d, 19, 1, 100, &p));
	ck_assert(p.start == 0 && p.end == 3);
	ck_assert(line_piece(d, 19, 5, 100, &p));
	ck_assert(p.start == 4 && p.end == 7);
	ck_assert(line_piece(d, 19, 9, 100, &p));
	ck_assert(p.start == 8 && p.end == 13);
	ck_assert(line_piece(d, 19, 17, 100, &p));
	ck_assert(p.start == 15 && p.end == 19);
	ck_assert(line_piece(d, 19, 17, 2, &p));
	ck_assert(!line_piece(d, 19, 18, 2, &p));
	p.start = 19;
	ck_assert(line_piece_before(d, 15, &p));
	ck_assert(p.start == 8 && p.end == 13);
	ck_assert(line_piece_before(d, p.start, &p));
	ck_assert(p.start == 4 && p.end == 7);
	ck_assert(line_piece_before(d, p.start, &p));
	ck_assert(p.start == 0 && p.end == 3);
	ck_assert(!line_piece_before(d, p.start, &p));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("diagnose_line");
	TCase *t = tcase_create("all");
	SRunner *r;
	int failed;

	tcase_add_loop_test(t, prefixes_are_taken_off, 0,
	    (int)(sizeof(rows) / sizeof(rows[0])));
	tcase_add_loop_test(t, cut_lines_are_safe, 0,
	    (int)(sizeof(rows) / sizeof(rows[0])));
	tcase_add_test(t, keys_tell_writers_apart);
	tcase_add_test(t, times_are_read);
	tcase_add_test(t, styles_are_learnt);
	tcase_add_test(t, ansi_is_taken_out);
	tcase_add_test(t, pieces_are_cut);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
