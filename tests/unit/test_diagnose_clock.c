/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_clock.c - order of several logs by times that lack something or come
 * from clocks that are off; records that belong to a failure and those that do not.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "common/buf.h"
#include "diagnose/causes.h"
#include "rule_fixture.h"
#include "unit.h"

static const char rules_yaml[] =
    REASON("none", "meta", "none")
    REASON("unknown", "meta", "restart")
    REASON("gpu_lost", "infrastructure", "restart_excluding_node")
    REASON("host_oom", "infrastructure", "restart")
    REASON("process_killed", "infrastructure", "restart")
    REASON("nccl_remote_error", "infrastructure", "restart")
    REASON("nccl_timeout", "infrastructure", "test_nodes")
    REASON("native_crash", "framework", "restart")
    REASON("runtime_error", "framework", "stop")
    REASON("cuda_error", "infrastructure", "restart")
    REASON("dataloader_killed", "framework", "restart")
    REASON("key_error", "script", "stop")
    REASON("value_error", "script", "stop")
    "- {id: xid, reason: gpu_lost, role: root, source: kernel, hides: [cuda_error], "
    "match: 'NVRM: Xid \\((?<gpu>[0-9a-f:]+)\\): 79'}\n"
    "- {id: oom, reason: host_oom, role: confirm, source: kernel, "
    "hides: [process_killed], match: 'Out of memory: Killed process'}\n"
    "- {id: loader, reason: dataloader_killed, role: root, "
    "match: 'DataLoader worker .{0,40}killed by signal'}\n"
    "- {id: cuda, reason: cuda_error, role: root, match: 'CUDA error: '}\n"
    "- {id: key, reason: key_error, role: root, match: '^KeyError: '}\n"
    "- {id: value, reason: value_error, role: root, match: '^ValueError: '}\n"
    "- {id: closed, reason: nccl_remote_error, role: symptom, "
    "match: 'Connection closed by peer'}\n"
    "- {id: waited, reason: nccl_timeout, role: symptom, match: 'Timed out waiting'}\n"
    "- {id: abort, reason: native_crash, role: symptom, "
    "match: 'Fatal Python error: Aborted'}\n"
    "- {id: kill, reason: process_killed, role: symptom, source: launcher, "
    "match: 'exitcode +: -9|failed \\(exitcode: -9\\)'}\n";

static struct rule_set *set;

static void
set_up(void)
{
	set = rule_fixture_of("t", rules_yaml);
}

static void
tear_down(void)
{
	rule_set_free(set);
}

/* Several logs and what is said of them. */
struct row {
	const char	*name[3];
	const char	*text[3];
	const char	*reason;
	const char	*file;		/* of the root, NULL none */
	int		 rank;
	const char	*node;		/* NULL none */
};

#define DAY	"2026-01-31 "
#define ONE	"rank00000.log", "rank00001.log"
#define KILLED	"2026-01-31T03:12:41Z holdfast: node n1: rank 2 (pid 81) was ended by " \
	"signal 9 (SIGKILL)\n"
#define LOADER	"RuntimeError: DataLoader worker (pid 81) is killed by signal: Killed.\n"
#define OOM(node, pid)	node "Out of memory: Killed process " pid " (python3)\n"
#define XID	"NVRM: Xid (3b:00): 79, lost\n"

static const struct row rows[] = {
	/* dates in full, one of them with a zone */
	{ { ONE }, { DAY "03:12:45 KeyError: 'a'\n", DAY "03:12:40 ValueError: b\n" },
	  "value_error", "rank00001.log", 1, NULL },
	{ { ONE }, { DAY "03:12:45 KeyError: 'a'\n",
	  "2026-01-31T04:12:40+01:00 ValueError: b\n" }, "value_error",
	  "rank00001.log", 1, NULL },
	/* no year in one, no date in the other */
	{ { ONE }, { DAY "03:12:45 KeyError: 'a'\n",
	  "E0131 03:12:40.000001 81 f.cc:1] ValueError: b\n" }, "value_error",
	  "rank00001.log", 1, NULL },
	{ { ONE }, { DAY "00:00:03 KeyError: 'a'\n", "23:59:58 ValueError: b\n" },
	  "value_error", "rank00001.log", 1, NULL },
	/* the turn of the year, when no log has one */
	{ { ONE }, { "E0101 00:00:02.000001 81 f.cc:1] KeyError: 'a'\n",
	  "E1231 23:59:58.000001 81 f.cc:1] ValueError: b\n" }, "value_error",
	  "rank00001.log", 1, NULL },
	/* a second apart is as good as together: by place */
	{ { ONE }, { DAY "03:12:41 KeyError: 'a'\n", DAY "03:12:40 ValueError: b\n" },
	  "key_error", "rank00000.log", 0, NULL },
	/* a clock that is 5 minutes slow, by the step all have completed */
	{ { ONE }, { DAY "03:12:40 step 3 loss 2.0\n" DAY "03:12:45 KeyError: 'a'\n",
	  DAY "03:07:40 step 3 loss 2.0\n" DAY "03:07:50 ValueError: b\n" },
	  "key_error", "rank00000.log", 0, NULL },
	/* ... by where the logs begin and end */
	{ { ONE }, { DAY "03:00:00 hello\n" DAY "03:12:45 KeyError: 'a'\n"
	  DAY "03:12:52 bye\n",
	  DAY "02:55:01 hello\n" DAY "03:07:50 ValueError: b\n"
	  DAY "03:07:53 bye\n" }, "key_error", "rank00000.log", 0, NULL },
	/* ... but a log that only ends early is that of who stopped first */
	{ { ONE }, { DAY "03:00:00 hello\n" DAY "03:12:45 KeyError: 'a'\n",
	  DAY "03:00:01 hello\n" DAY "03:07:50 ValueError: b\n" }, "value_error",
	  "rank00001.log", 1, NULL },
	/* steps that another rank completed long after */
	{ { ONE }, { DAY "03:00:00 KeyError: 'a'\n", DAY "03:08:00 step 7 loss 2.0\n"
	  DAY "03:09:00 step 8 loss 2.0\n" }, "none", NULL, -1, NULL },
	{ { ONE }, { DAY "03:08:30 KeyError: 'a'\n", DAY "03:08:00 step 7 loss 2.0\n"
	  DAY "03:09:00 step 8 loss 2.0\n" }, "key_error", "rank00000.log", 0, NULL },
	/* the log of another rank behind it in one file has no later steps */
	{ { "a.log" }, { DAY "03:09:00 step 7 loss 2.0\n" DAY "03:09:30 KeyError: 'a'\n"
	  DAY "03:00:00 step 1 loss 2.0\n" DAY "03:00:05 step 2 loss 2.0\n" },
	  "key_error", "a.log", -1, NULL },
	{ { "a.log" }, { DAY "03:09:00 step 7 loss 2.0\n" DAY "03:09:30 KeyError: 'a'\n"
	  DAY "03:10:00 step 8 loss 2.0\n" DAY "03:10:05 step 9 loss 2.0\n" }, "none",
	  NULL, -1, NULL },
	/* the record of the same process, on this node or without one */
	{ { "n1.exits", "n1.kmsg" }, { KILLED, OOM("", "81") }, "host_oom", "n1.kmsg",
	  2, "n1" },
	{ { "n1.exits", "dmesg.txt" }, { KILLED, OOM("", "81") }, "host_oom",
	  "dmesg.txt", 2, "n1" },
	/* ... of another process there: numbers differ between containers */
	{ { "n1.exits", "n1.kmsg" }, { KILLED, OOM("", "4711") }, "host_oom", "n1.kmsg",
	  2, "n1" },
	/* ... of another process on another node */
	{ { "n1.exits", "n2.kmsg" }, { KILLED, OOM("", "4711") }, "process_killed",
	  "n1.exits", 2, "n1" },
	/* a worker of the data loader */
	{ { "rank00002.log", "n1.kmsg" }, { LOADER, OOM("", "81") }, "host_oom",
	  "n1.kmsg", 2, "n1" },
	{ { "rank00002.log" }, { LOADER }, "dataloader_killed", "rank00002.log", 2,
	  NULL },
	/* kernel logs reach back to other jobs */
	{ { "rank00000.log", "n1.kmsg" }, { DAY "03:12:45 CUDA error: unknown\n",
	  "[Thu Jan 29 01:00:00 2026] " XID }, "cuda_error", "rank00000.log", 0,
	  NULL },
	{ { "rank00000.log", "n1.kmsg" }, { DAY "03:12:45 CUDA error: unknown\n",
	  "[Sat Jan 31 03:12:30 2026] " XID }, "gpu_lost", "n1.kmsg", 0, "n1" },
	/* a record of later on is no cause of what ended before */
	{ { "rank00000.log", "n1.kmsg" }, { DAY "03:05:00 ValueError: b\n",
	  "[Sat Jan 31 03:09:00 2026] " XID }, "value_error", "rank00000.log", 0,
	  NULL },
	{ { "rank00000.log", "n1.kmsg" }, { DAY "03:05:00 ValueError: b\n",
	  "[Sat Jan 31 03:05:30 2026] " XID }, "gpu_lost", "n1.kmsg", -1, "n1" },
	/* the rank of a GPU, by what NCCL printed when it began */
	{ { "a.log", "n1.kmsg" }, { "n1:81:90 [3] NCCL INFO comm 0x7f rank 1 nranks 2 "
	  "cudaDev 3 busId 3b000 - Init COMPLETE\nn1:81:90 [3] NCCL INFO comm 0x7e rank "
	  "11 nranks 16 cudaDev 3 busId 3b000 - Init COMPLETE\n", XID }, "gpu_lost",
	  "n1.kmsg", 11, "n1" },
	{ { "a.log", "n1.kmsg" }, { "n2:81:90 [3] NCCL INFO comm 0x7f rank 19 nranks 16 "
	  "cudaDev 3 busId 3b000 - Init COMPLETE\n", XID }, "gpu_lost", "n1.kmsg", -1,
	  "n1" },
	/* a Xid explains no CUDA error of another node, but of its own */
	{ { "a.log", "n1.kmsg" }, { "node7: CUDA error: unknown\n", XID }, "gpu_lost",
	  "n1.kmsg", -1, "n1" },
};

START_TEST(several_logs)
{
	const struct row *row = &rows[_i];
	struct feed feed = {0};
	struct verdict v = {0};
	struct err err = {0};
	size_t i;

	for (i = 0; i < 3 && row->name[i] != NULL; i++)
		ck_assert_int_eq(feed_add_memory(&feed, row->name[i], row->text[i],
		    strlen(row->text[i]), &err), 0);
	ck_assert_int_eq(causes_find(set, &feed, &v, &err), 0);
	ck_assert_msg(strcmp(v.reason, row->reason) == 0, "row %d: %s", _i,
	    v.reason);
	if (row->file != NULL)
		ck_assert_msg(v.has_root && strcmp(v.root.file, row->file) == 0,
		    "row %d: %s", _i, v.root.file);
	ck_assert_msg(v.root.rank == row->rank, "row %d: rank %d", _i, v.root.rank);
	if (row->node != NULL)
		ck_assert_msg(v.root.node != NULL &&
		    strcmp(v.root.node, row->node) == 0, "row %d: node %s", _i,
		    v.root.node ? v.root.node : "none");
	else
		ck_assert_msg(v.root.node == NULL, "row %d: node %s", _i,
		    v.root.node);
	verdict_fini(&v);
	feed_fini(&feed);
}
END_TEST

#define ENTRY(label, host, rank, local, code, pid, time, trace) \
	label "[0]:\n" label "  time      : 2026-01-31_" time "\n" \
	label "  host      : " host "\n" \
	label "  rank      : " rank " (local_rank: " local ")\n" \
	label "  exitcode  : " code " (pid: " pid ")\n" \
	label "  error_file: " trace "\n"
#define FILE_OF(rank, text) "/tmp/" rank "/error.json\n" \
	"  traceback : Traceback (most recent call last):\n  " text
#define NO_FILE	"<N/A>"
#define FAILURES(label)	label "============\n" label "t.py FAILED\n" label "Failures:\n"
#define ROOT(label)	label "------------\n" label \
	"Root Cause (first observed failure):\n"
#define CLOSED	"RuntimeError: Connection closed by peer [::1]:81"

#define WAITED	"RuntimeError: Timed out waiting 8000ms for recv operation"

struct table_row {
	const char	*log;
	const char	*reason;
	int		 rank;
	const char	*node;
	int		 suspect;	/* rank, -1 none */
	const char	*why;
};

static const struct table_row table_rows[] = {
	/* the rank by local rank, by pid, by the message */
	{ "[default1]:KeyError: 'alpha beta'\n" FAILURES("") "  <NO_OTHER_FAILURES>\n"
	  ROOT("") ENTRY("", "n2", "9", "1", "1", "81", "03:12:41", NO_FILE)
	  "============\n", "key_error", 9, "n2", -1, NULL },
	{ "failed (exitcode: -9) local_rank: 1 (pid: 81) of binary: python3\n"
	  ROOT("") ENTRY("", "n2", "9", "1", "-9", "81", "03:12:41", NO_FILE)
	  "============\n", "process_killed", 9, "n2", 9, "process_killed" },
	{ "KeyError: 'alpha beta'\n" FAILURES("") ENTRY("", "n2", "9", "1", "1", "82",
	  "03:12:41", FILE_OF("9", "KeyError: 'alpha beta'")) ROOT("") ENTRY("", "n2",
	  "8", "0", "1", "81", "03:12:41", FILE_OF("8", CLOSED)) "============\n",
	  "key_error", 9, "n2", -1, NULL },
	/* two agents in one log: the label is theirs, and no rank */
	{ "0: KeyError: 'a'\n1: ValueError: b\n"
	  ROOT("0: ") ENTRY("0: ", "n1", "0", "0", "1", "81", "03:12:44", NO_FILE)
	  "0: ============\n"
	  ROOT("1: ") ENTRY("1: ", "n2", "8", "0", "1", "81", "03:12:41", NO_FILE)
	  "1: ============\n", "key_error", -1, "n1", -1, NULL },
	/* the earliest of all tables: rank 8 on the second node */
	{ "[rank0]: KeyError: 'a'\n[rank8]: ValueError: b\n"
	  ROOT("0: ") ENTRY("0: ", "n1", "0", "0", "1", "81", "03:12:44", NO_FILE)
	  "0: ============\n"
	  ROOT("1: ") ENTRY("1: ", "n2", "8", "0", "1", "81", "03:12:41", NO_FILE)
	  "1: ============\n", "value_error", 8, NULL, -1, NULL },
	/* a crash that names no rank: the only one with such an end */
	{ "Fatal Python error: Aborted\n" FAILURES("") ENTRY("", "n2", "2", "2", "-6",
	  "83", "03:12:42", NO_FILE) ROOT("") ENTRY("", "n2", "0", "0", "1", "81",
	  "03:12:41", FILE_OF("0", CLOSED)) "============\n", "native_crash", 2, "n2",
	  -1, NULL },
	/* three waited in vain, and the fourth does not stand in the table */
	{ FAILURES("") ENTRY("", "n2", "1", "1", "1", "82", "03:12:41", FILE_OF("1",
	  WAITED)) ENTRY("", "n2", "3", "3", "1", "84", "03:12:41", FILE_OF("3",
	  WAITED)) ROOT("") ENTRY("", "n2", "0", "0", "1", "81", "03:12:41",
	  FILE_OF("0", WAITED)) "============\n", "nccl_timeout", 1, "n2", 2,
	  "silent" },
	/* a table that is cut short */
	{ CLOSED "\n" FAILURES("") ENTRY("", "n2", "2", "2", "1", "83", "03:12:42",
	  FILE_OF("2", CLOSED)) ROOT("") "[0]:\n  time      : 2026-01-31_03:12:41\n"
	  "  rank      : 0 (local_rank: 0)\n", "nccl_remote_error", 2, "n2", -1, NULL },
	/* all but one tell that they lost a peer; that one says nothing */
	{ CLOSED "\n" FAILURES("") ENTRY("", "n2", "2", "2", "7", "83", "03:12:42",
	  NO_FILE) ROOT("") ENTRY("", "n2", "0", "0", "1", "81", "03:12:41",
	  FILE_OF("0", CLOSED)) "============\n", "nccl_remote_error", 0, "n2", 2,
	  "exited with status 7" },
};

START_TEST(tables)
{
	const struct table_row *row = &table_rows[_i];
	struct feed feed = {0};
	struct verdict v = {0};
	struct err err = {0};

	ck_assert_int_eq(feed_add_memory(&feed, "t", row->log, strlen(row->log),
	    &err), 0);
	ck_assert_int_eq(causes_find(set, &feed, &v, &err), 0);
	ck_assert_msg(strcmp(v.reason, row->reason) == 0, "row %d: %s", _i,
	    v.reason);
	ck_assert_msg(v.root.rank == row->rank, "row %d: rank %d", _i, v.root.rank);
	if (row->node != NULL)
		ck_assert_msg(v.root.node != NULL &&
		    strcmp(v.root.node, row->node) == 0, "row %d: node %s", _i,
		    v.root.node ? v.root.node : "none");
	if (row->suspect < 0)
		ck_assert_msg(v.suspect_count == 0 || strcmp(v.category,
		    "infrastructure") != 0 || v.suspects[0].rank == row->rank,
		    "row %d: suspect %d", _i, v.suspects[0].rank);
	if (row->suspect >= 0) {
		ck_assert_uint_ge(v.suspect_count, 1);
		ck_assert_int_eq(v.suspects[0].rank, row->suspect);
		ck_assert_ptr_nonnull(strstr(v.suspects[0].why, row->why));
	}
	verdict_fini(&v);
	feed_fini(&feed);
}
END_TEST

#define STOP(time)	"2026-01-31T" time "Z holdfast: attempt stopped: sending " \
	"SIGTERM to the remaining ranks\n"
#define ENDED(time, node, rank)	"2026-01-31T" time "Z holdfast: node " node ": rank " \
	rank " (pid 7) exited with status 3\n"

/* The clock of n1 is two minutes slow: its rank was not the first to end. */
START_TEST(agents_stop_together)
{
	static const char n1[] = ENDED("03:10:42.500", "n1", "0")
	    STOP("03:10:42.600") ENDED("03:10:43", "n1", "1");
	static const char n2[] = ENDED("03:12:42", "n2", "2") STOP("03:12:42.500");
	struct feed feed = {0};
	struct verdict v = {0};
	struct err err = {0};

	ck_assert_int_eq(feed_add_memory(&feed, "n1.exits", n1, strlen(n1), &err),
	    0);
	ck_assert_int_eq(feed_add_memory(&feed, "n2.exits", n2, strlen(n2), &err),
	    0);
	ck_assert_int_eq(causes_find(set, &feed, &v, &err), 0);
	ck_assert_int_eq(v.root.rank, 2);
	ck_assert_str_eq(v.root.node, "n2");
	verdict_fini(&v);
	feed_fini(&feed);
}
END_TEST

/* torchelastic's error files tell when they were written. */
START_TEST(error_files)
{
	static const char text[] = "{\"message\": {\"message\": \"x\", \"extraInfo\": "
	    "{\"py_callstack\": \"Traceback (most recent call last):\\n  File "
	    "\\\"t.py\\\", line 3\\n%s\\n\", \"timestamp\": \"%s\"}}}";
	static const char *const errors[][2] = {
		{ "KeyError: 1", "1769829171" }, { "ValueError: b", "1769829161" }
	};
	char path[200], json[400];
	const char *dir;
	struct feed feed = {0};
	struct verdict v = {0};
	struct err err = {0};
	int i;

	for (i = 0; i < 2; i++) {
		dir = unit_dir();
		snprintf(path, sizeof(path), "%s/error.json", dir);
		snprintf(json, sizeof(json), text, errors[i][0], errors[i][1]);
		unit_write(path, json, strlen(json));
		ck_assert_int_eq(feed_add(&feed, path, &err), 0);
	}
	ck_assert_int_eq(causes_find(set, &feed, &v, &err), 0);
	ck_assert_str_eq(v.reason, "value_error");
	verdict_fini(&v);
	feed_fini(&feed);
}
END_TEST

/* More nodes print a table than events of one rule are kept. */
START_TEST(many_tables)
{
	struct buf log = {0};
	struct feed feed = {0};
	struct verdict v = {0};
	struct err err = {0};
	int i;

	for (i = 0; i < 200; i++)
		buf_printf(&log, i == 117 ? "%d: KeyError: 'alpha beta'\n" :
		    "%d: " CLOSED "\n", i);
	for (i = 0; i < 200; i++)
		buf_printf(&log, "%d: ----\n%d: Root Cause (first observed failure):\n"
		    "%d:   time      : 2026-01-31_03:12:41\n%d:   host      : n%d\n"
		    "%d:   rank      : %d (local_rank: 0)\n"
		    "%d:   exitcode  : 1 (pid: 81)\n%d:   error_file: <N/A>\n"
		    "%d: ====\n", i, i, i, i, i, i, i * 8, i, i, i);
	ck_assert_int_eq(feed_add_memory(&feed, "t", log.data, log.len, &err), 0);
	ck_assert_int_eq(causes_find(set, &feed, &v, &err), 0);
	ck_assert_str_eq(v.reason, "key_error");
	ck_assert_str_eq(v.root.node, "n117");
	ck_assert_int_eq(v.root.rank, -1);
	verdict_fini(&v);
	feed_fini(&feed);
	buf_fini(&log);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, several_logs, 0,
	    (int)(sizeof(rows) / sizeof(rows[0])));
	tcase_add_loop_test(t, tables, 0,
	    (int)(sizeof(table_rows) / sizeof(table_rows[0])));
	tcase_add_test(t, agents_stop_together);
	tcase_add_test(t, error_files);
	tcase_add_test(t, many_tables);
}

int
main(void)
{
	return unit_run("diagnose/clock", add);
}
