/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_line.c - prefixes of log lines, times, pieces.
 */
#include <check.h>
#include <stdio.h>
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
	{ " [2026-01-31 03:12:41] iteration", "iteration", -1, NULL, LEVEL_NONE },
	{ " [1, 2]", " [1, 2]", -1, NULL, LEVEL_NONE },
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
	/* launchers */
	{ "worker-1: text", "text", -1, "worker-1", LEVEL_NONE },
	{ "worker1: text", "worker1: text", -1, NULL, LEVEL_NONE },
	{ "gpu7.lab.example.com: text", "gpu7.lab.example.com: text", -1, NULL,
	  LEVEL_NONE },
	{ "n7.lab.example.com: text", "text", -1, "n7.lab.example.com", LEVEL_NONE },
	{ "urllib3.exceptions.MaxRetryError: x", "urllib3.exceptions.MaxRetryError: x",
	  -1, NULL, LEVEL_NONE },
	{ "libfoo.so.12: cannot open", "libfoo.so.12: cannot open", -1, NULL,
	  LEVEL_NONE },
	{ "(RayTrainWorker pid=7, ip=10.0.0.7) [rank3]: text", "text", 3, "10.0.0.7",
	  LEVEL_NONE },
	{ "\033[36m(WorkerDict pid=34)\033[0m text", "text", -1, NULL, LEVEL_NONE },
	{ "[36m(WorkerDict pid=34)[0m text", "text", -1, NULL, LEVEL_NONE },
	{ "(raylet, ip=10.0.0.7) text", "text", -1, "10.0.0.7", LEVEL_NONE },
	{ "(worker1, rank=1, pid=7, ip=10.0.0.7) text", "text", 1, "10.0.0.7",
	  LEVEL_NONE },
	{ "[1,mpirank:3,algo-2]<stderr>:text", "text", 3, "algo-2", LEVEL_NONE },
	{ "Sat Jan 31 03:12:41 2026[1,3]<stderr>:text", "text", 3, NULL, LEVEL_NONE },
	{ "[3]<stderr>:text", "text", 3, NULL, LEVEL_NONE },
	{ "[1,3]<stderr>[n4:81]: text", "text", 3, NULL, LEVEL_NONE },
	{ "[rank3]:text", "text", 3, NULL, LEVEL_NONE },
	{ "[trainer3]:text", "text", -1, NULL, LEVEL_NONE },
	{ "Rank 3: text", "text", 3, NULL, LEVEL_NONE },
	{ "rank3[81][MainThread]: ERROR: composer.trainer: text", "composer.trainer: "
	  "text", 3, NULL, LEVEL_ERROR },
	{ "2026-01-31 03:12:41,438: rank3[81][MainThread]: ERROR: composer.trainer: "
	  "text", "text", 3, NULL, LEVEL_ERROR },
	{ "Rank 3 is late", "Rank 3 is late", -1, NULL, LEVEL_NONE },
	{ "worker  | text", "text", -1, NULL, LEVEL_NONE },
	{ "name  | a | b", "name  | a | b", -1, NULL, LEVEL_NONE },
	{ "{\"log\":\"[rank3]: text", "text", 3, NULL, LEVEL_NONE },
	{ "{\"MESSAGE\":\"text", "text", -1, NULL, LEVEL_NONE },
	{ "time=\"2026-01-31T03:12:41Z\" level=error msg=\"text", "text", -1, NULL,
	  LEVEL_NONE },
	/* the rank inside a group is no global one */
	{ "[rank12]:[E131 03:12:41.2 ProcessGroupNCCL.cpp:1] [PG ID 3 PG GUID 9(tp) "
	  "Rank 2] text", "text", 12, NULL, LEVEL_ERROR },
	{ "[PG ID 3 PG GUID 9(tp) Rank 2] text", "text", -1, NULL, LEVEL_NONE },
	{ "[PG ID 0 PG GUID 0(default_pg) Rank 2] text", "text", 2, NULL, LEVEL_NONE },
	/* the system's */
	{ "Jan 31 03:12:41 node7 kernel: [  12.3] NVRM: Xid", "NVRM: Xid", -1, "node7",
	  LEVEL_NONE },
	{ "Jan 31 03:12:41 RuntimeError: text", "RuntimeError: text", -1, NULL,
	  LEVEL_NONE },
	{ "2026-01-31T03:12:41+0100 node7 kernel: text", "text", -1, "node7",
	  LEVEL_NONE },
	{ "2026-01-31T03:12:41.5+01:00 node7 python3[81]: text", "text", -1, "node7",
	  LEVEL_NONE },
	{ "2026-01-31 03:12:41 eval loss: 3", "eval loss: 3", -1, NULL, LEVEL_NONE },
	{ "Sat 2026-01-31 03:12:41 UTC node7 trainer@2.service[81]: text", "text", -1,
	  "node7", LEVEL_NONE },
	{ "1769829161.123456 node7 kernel: text", "text", -1, "node7", LEVEL_NONE },
	{ "MESSAGE=text", "text", -1, NULL, LEVEL_NONE },
	{ "<4>[   12.345678] text", "text", -1, NULL, LEVEL_NONE },
	{ "<14>1 2026-01-31T03:12:41.5Z node7 app 81 ID7 - text", "text", -1, "node7",
	  LEVEL_NONE },
	{ "<14>1 2026-01-31T03:12:41Z node7 app - - [x@1 y=\"2\"] text", "text", -1,
	  "node7", LEVEL_NONE },
	{ "kern  :err   : [   12.345678] text", "text", -1, NULL, LEVEL_NONE },
	{ "[   12.345678][   T81] text", "text", -1, NULL, LEVEL_NONE },
	{ "[n7:00411] Signal: Segmentation fault (11)", "Signal: Segmentation fault "
	  "(11)", -1, "n7", LEVEL_NONE },
	{ "[n7:411  :0:411] Caught signal 11", "Caught signal 11", -1, "n7",
	  LEVEL_NONE },
	{ "n7:411:513 [0] misc/socket.cc:4 NCCL WARN x", "misc/socket.cc:4 NCCL WARN x",
	  -1, "n7", LEVEL_NONE },
	/* loggers */
	{ "E20260131 03:12:41.123456 81 file.cpp:12] text", "text", -1, NULL,
	  LEVEL_ERROR },
	{ "E0131 03:12:41.123456 81 file.cpp:12] text", "text", -1, NULL, LEVEL_ERROR },
	{ "2026-01-31 03:12:41.123456: E external/xla/x.cc:12] text", "text", -1, NULL,
	  LEVEL_ERROR },
	{ "[NeMo E 2026-01-31 03:12:41 nemo_logging:361] text", "text", -1, NULL,
	  LEVEL_ERROR },
	{ "[NeMo W 2026-01-31 03:12:41 rank:3 x:1] text", "text", 3, NULL, LEVEL_WARN },
	{ "2026/01/31 03:12:41 - mmengine - ERROR - text", "text", -1, NULL,
	  LEVEL_ERROR },
	{ "2026-01-31 03:12:41.215 | ERROR    | mod.sub:func:12 - text", "text", -1, NULL,
	  LEVEL_ERROR },
	{ "2026-01-31 03:12:41 | ERROR | fairseq_cli.train | text", "text", -1, NULL,
	  LEVEL_ERROR },
	{ "[03:12:41] ERROR    text", "text", -1, NULL, LEVEL_ERROR },
	{ "                    ERROR    text", "text", -1, NULL, LEVEL_ERROR },
	{ "[2026-01-31 03:12:41,438] [ERROR] [launch.py:321:sigkill_handler] text",
	  "text", -1, NULL, LEVEL_ERROR },
	{ "[2026-01-31 03:12:41,438][hydra.core][ERROR] - text", "text", -1, NULL,
	  LEVEL_ERROR },
	{ "[ERROR|trainer.py:12] 2026-01-31 03:12:41,438 >> text", "text", -1, NULL,
	  LEVEL_ERROR },
	{ "[ERROR:swift] text", "text", -1, NULL, LEVEL_ERROR },
	{ "[2026-01-31 03:12:41,438] [   ERROR] text", "text", -1, NULL, LEVEL_ERROR },
	{ "ERROR 01-31 03:12:41 [core.py:390] text", "text", -1, NULL, LEVEL_ERROR },
	{ "26/01/31 03:12:41 ERROR Executor: text", "Executor: text", -1, NULL,
	  LEVEL_ERROR },
	{ "2026-01-31 03:12:41,438 [main] ERROR org.x.Y - text", "text", -1, NULL,
	  LEVEL_ERROR },
	{ "2026-01-31 03:12:41,438\tERROR train.py:12 in main -- text", "text", -1, NULL,
	  LEVEL_ERROR },
	{ "[titan] 2026-01-31 03:12:41,438 - root - ERROR - text", "text", -1, NULL,
	  LEVEL_ERROR },
	{ "2026-01-31 03:12:41,438 - ERROR - ValueError: x", "ValueError: x", -1, NULL,
	  LEVEL_ERROR },
	{ "[ERROR] HCCL(81,python3):2026-01-31-03:12:41.123.456 [op.cc:12] [81] text",
	  "text", -1, NULL, LEVEL_ERROR },
	{ "[ERROR] 2026-01-31-03:12:41 (PID:81, Device:2, RankID:3) ERR02200 DIST",
	  "ERR02200 DIST", 3, NULL, LEVEL_ERROR },
	{ "##[error]text", "text", -1, NULL, LEVEL_NONE },
	/* members of an exception group */
	{ "    | ValueError: x", "ValueError: x", -1, NULL, LEVEL_NONE },
	{ "  + Exception Group Traceback (most recent call last):",
	  "Exception Group Traceback (most recent call last):", -1, NULL, LEVEL_NONE },
	/* several at once, in any order */
	{ "[pod/t-0/main] 2026-01-31T03:12:41.1Z [rank3]: text", "text", 3, NULL,
	  LEVEL_NONE },
	{ "3: [rank3]: (Worker pid=7, ip=10.0.0.7) 2026-01-31 03:12:41,1 text", "text", 3,
	  "10.0.0.7", LEVEL_NONE },
	{ "Jan 31 03:12:41 node7 docker[81]: t-1  | [default2]:[rank10]: text", "text",
	  10, "node7", LEVEL_NONE },
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

static bool
is_ours(const char *prefix, const char *text)
{
	char line[512];
	struct line l;
	int n = snprintf(line, sizeof(line), "%s%s", prefix, text);

	ck_assert_int_lt(n, (int)sizeof(line));
	line_parse(line, (size_t)n, &l);
	return l.ours;
}

/* A row of a card is no log, whoever passed it on and whatever it quotes. */
START_TEST(own_rows_are_known)
{
	static const char *const prefixes[] = {
		"", "2026-01-31 03:12:41,641 INFO ", "2026-01-31 03:12:41,641 | INFO ",
		"2026-01-31 03:12:41,641 | ERROR | ", "INFO:root:", "ERROR: ",
		"node7: ", "[rank3]: ", "3: ", "trainer-1  | ", "[1,3]<stderr>:",
		"Jan 31 03:12:41 node7 holdfast[81]: ", "(Worker pid=34) ",
		"2026-01-31T03:12:41.001125857Z stderr F ", "WARNING: ",
		"2026-01-31T03:12:41.5Z "
	};
	static const char *const own[] = {
		"|         RuntimeError: a", "| proof   a.log:12", "| echoes  12 lines",
		"| cause   rank 3  cuda-ecc", "+- diagnosis: gpu_ecc_error, b ---",
		"+- incident 1 - attempt 2 -", "holdfast: RuntimeError: a",
		"|         45%|####  | 7/16 [00:01<00:02, 1.1s/it] RuntimeError: a",
		"{\"schema\":\"holdfast.verdict/1\",\"root\":{\"text\":\"a\"}}"
	};
	static const char *const others[] = {
		"RuntimeError: a", "| a | b |", "|     raise ValueError", "+---",
		"45%|####  | 7/16 [00:01<00:02, 1.1s/it] RuntimeError: a",
		"Error: a | proof of what", "hold: a", "{\"schema\":\"other/1\"}"
	};
	size_t i, k;

	for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		for (k = 0; k < sizeof(own) / sizeof(own[0]); k++)
			ck_assert_msg(is_ours(prefixes[i], own[k]), "%s%s",
			    prefixes[i], own[k]);
		for (k = 0; k < sizeof(others) / sizeof(others[0]); k++)
			ck_assert_msg(!is_ours(prefixes[i], others[k]), "%s%s",
			    prefixes[i], others[k]);
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

#define SECOND	1000000000ll
#define JAN_31	1769829161ll	/* 2026-01-31 03:12:41 */
#define IN_YEAR	(30ll * 86400 + 11561)
#define IN_DAY	11561ll

struct time_row {
	const char	*line;
	enum line_clock	 clock;
	int64_t		 seconds;
	bool		 zoned;
};

static const struct time_row time_rows[] = {
	{ "2026-01-31T03:12:41Z x", CLOCK_DATE, JAN_31, true },
	{ "2026-01-31T03:12:41+0800 x", CLOCK_DATE, JAN_31 - 28800, true },
	{ "2026-01-31T03:12:41-05 x", CLOCK_DATE, JAN_31 + 18000, true },
	{ "2026-01-31 03:12:41.123456 x", CLOCK_DATE, JAN_31, false },
	{ "2026-01-31 03:12:41 +0100 x", CLOCK_DATE, JAN_31 - 3600, true },
	{ "2026-01-31 03:12:41 UTC x", CLOCK_DATE, JAN_31, true },
	{ " [2026-01-31 03:12:41] x", CLOCK_DATE, JAN_31, false },
	{ "20260131 03:12:41 x", CLOCK_DATE, JAN_31, false },
	{ "20260131T031241Z x", CLOCK_DATE, JAN_31, true },
	{ "01/31/2026 03:12:41 x", CLOCK_DATE, JAN_31, false },
	{ "01/31/2026 03:12:41 PM x", CLOCK_DATE, JAN_31 + 43200, false },
	{ "[01/31/26 03:12:41] x", CLOCK_DATE, JAN_31, false },
	{ "26/01/31 03:12:41 INFO x", CLOCK_DATE, JAN_31, false },
	{ "31/Jan/2026:03:12:41 +0100 x", CLOCK_DATE, JAN_31 - 3600, true },
	{ "Jan 31, 2026 3:12:41 AM x", CLOCK_DATE, JAN_31, false },
	{ "Sat Jan 31 03:12:41 2026 x", CLOCK_DATE, JAN_31, false },
	{ "[Sat Jan 31 03:12:41 2026] x", CLOCK_DATE, JAN_31, false },
	{ "Sat Jan 31 03:12:41 UTC 2026 x", CLOCK_DATE, JAN_31, true },
	{ "Sat 31 Jan 2026 03:12:41 x", CLOCK_DATE, JAN_31, false },
	{ "Sat 2026-01-31 03:12:41 UTC x", CLOCK_DATE, JAN_31, true },
	{ "1769829161.5 x", CLOCK_DATE, JAN_31, true },
	{ "1769829161123 x", CLOCK_DATE, JAN_31, true },
	{ "[1769829161123456] x", CLOCK_DATE, JAN_31, true },
	{ "Jan 31 03:12:41 node7 app[1]: x", CLOCK_NO_YEAR, IN_YEAR, false },
	{ "E0131 03:12:41.123456 81 f.cc:12] x", CLOCK_NO_YEAR, IN_YEAR, false },
	{ "[E131 03:12:41.123456789 f.cc:12] x", CLOCK_NO_YEAR, IN_YEAR, false },
	{ "ERROR 01-31 03:12:41 x", CLOCK_NO_YEAR, IN_YEAR, false },
	{ "03:12:41 x", CLOCK_NO_DATE, IN_DAY, false },
	{ "[03:12:41.5] x", CLOCK_NO_DATE, IN_DAY, false },
	{ "[  812.345678] x", CLOCK_BOOT, 812, false },
	/* the one that says most */
	{ "Jan 31 03:12:41 n7 app[1]: 2026-01-31 03:12:41,1 x", CLOCK_DATE, JAN_31,
	  false },
	{ "2026-01-31 x", CLOCK_NONE, 0, false },
	{ "2026-13-31 03:12:41 x", CLOCK_NONE, 0, false },
	{ "Jan 32 03:12:41 n7 app[1]: x", CLOCK_NONE, 0, false },
	{ "12345678901 x", CLOCK_NONE, 0, false },
	{ "9999999999999999999 x", CLOCK_NONE, 0, false },
};

START_TEST(times_of_lines)
{
	const struct time_row *row = &time_rows[_i];
	struct line l;

	line_parse(row->line, strlen(row->line), &l);
	ck_assert_msg(l.when.clock == row->clock, "'%s': clock %d", row->line,
	    l.when.clock);
	ck_assert_msg(l.when.ns / SECOND == row->seconds, "'%s': %lld", row->line,
	    (long long)(l.when.ns / SECOND));
	ck_assert_msg(l.when.zoned == row->zoned, "'%s': zone", row->line);
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

static const char *const escapes[][2] = {
	{ "\033[31mred\033[0m \033]0;title\atext\033", "red text" },
	{ "\033]8;;http://x\033\\link\033]8;;\033\\ text", "link text" },
	{ "\033Pq\033\\text\033(B\033[m", "text" },
	{ "\033c\033\033[1mtext", "text" },
	/* Two that write to one terminal */
	{ "\033]0;title Error: x", "0;title Error: x" },
	{ "\033]0;title\033[31mError: x", "0;titleError: x" },
	{ "\033[3\033[31mError: x", "Error: x" },
	{ "text\033[", "text" }, { "text\033]", "text" }, { "text\033(", "text" }
};

START_TEST(ansi_is_taken_out)
{
	const char *in = escapes[_i][0], *want = escapes[_i][1];
	char out[100];
	size_t n = line_strip_ansi(in, strlen(in), out);

	ck_assert_msg(n == strlen(want) && memcmp(out, want, n) == 0,
	    "'%s' came out as '%.*s'", want, (int)n, out);
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

/* Ends of either kind are found at any distance that is looked at. */
START_TEST(far_ends)
{
	static char d[200000];
	static const size_t gaps[] = { 1, 511, 512, 513, 1024, 65535, 65536 };
	size_t first = 60000, gap, i;
	struct piece p;
	int end;

	for (i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++)
		for (end = 0; end < 4; end++) {
			gap = gaps[i];
			memset(d, 'x', sizeof(d));
			d[first] = end & 1 ? '\r' : '\n';
			d[first + gap] = end & 2 ? '\r' : '\n';
			ck_assert(line_piece(d, sizeof(d), first + gap, gap, &p));
			ck_assert(p.start == first + 1 && p.end == first + gap);
			ck_assert(gap == 1 || !line_piece(d, sizeof(d), first +
			    gap, gap - 2, &p));
			ck_assert_uint_eq(line_end(d, sizeof(d), first + 1),
			    first + gap);
			ck_assert(line_piece_before(d, first + gap + 1, &p));
			/* "\r\n" is one end. */
			ck_assert_uint_eq(p.start, gap == 1 && end == 1 ? 0 :
			    first + 1);
		}
	ck_assert_uint_eq(line_end(d, sizeof(d), 130000), 130000 + 65536);
	ck_assert_uint_eq(line_end(d, sizeof(d), sizeof(d)), sizeof(d));
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
	tcase_add_test(t, own_rows_are_known);
	tcase_add_test(t, keys_tell_writers_apart);
	tcase_add_test(t, times_are_read);
	tcase_add_loop_test(t, times_of_lines, 0,
	    (int)(sizeof(time_rows) / sizeof(time_rows[0])));
	tcase_add_test(t, styles_are_learnt);
	tcase_add_loop_test(t, ansi_is_taken_out, 0,
	    (int)(sizeof(escapes) / sizeof(escapes[0])));
	tcase_add_test(t, pieces_are_cut);
	tcase_add_test(t, far_ends);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
