/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_watchdog.c - who kept the others waiting, by what the watchdogs of
 * PyTorch 1.13 to 2.9 print; with the shipped rules.
 */
#include <stdio.h>
#include <string.h>

#include "common/buf.h"
#include "diagnose/causes.h"
#include "rule_fixture.h"
#include "unit.h"

static struct rule_set *set;

static void
set_up(void)
{
	set = rule_fixture_shipped();
}

static void
tear_down(void)
{
	rule_set_free(set);
}

#define HEAD(rank)	"[rank" rank "]:[E131 03:12:41.9 ProcessGroupNCCL.cpp:632] "
#define PG(rank)	"[PG ID 0 PG GUID 0(default_pg) Rank " rank "] "
#define WORK(seq, op, in) "Watchdog caught collective operation timeout: WorkNCCL(" \
	"SeqNum=" seq ", OpType=" op ", NumelIn=" in ", NumelOut=" in \
	", Timeout(ms)=600000) ran for 600021 milliseconds before timing out.\n"
#define CAUGHT(rank, seq, op, in) HEAD(rank) PG(rank) WORK(seq, op, in)
#define OLD(rank, seq)	"[E ProcessGroupNCCL.cpp:828] [Rank " rank "] Watchdog caught " \
	"collective operation timeout: WorkNCCL(SeqNum=" seq ", OpType=ALLREDUCE, " \
	"Timeout(ms)=1800000) ran for 1804232 milliseconds before timing out.\n"
#define STATUS(rank, enqueued, completed) HEAD(rank) PG(rank) "failure detected by " \
	"watchdog at work sequence id: 9 PG status: last enqueued work: " enqueued \
	", last completed work: " completed "\n"
#define TOLD(rank, enqueued, completed) HEAD(rank) PG(rank) "Received a dump signal " \
	"due to a collective timeout from  rank 0 and we will try our best to dump the " \
	"debug info. Last enqueued NCCL work: " enqueued ", last completed NCCL work: " \
	completed ".\n"
#define GROUP(rank, guid, inner, seq, op) HEAD(rank) "[PG ID 2 PG GUID " guid " Rank " \
	inner "] " WORK(seq, op, "8")

#define RUNS(rank, a, op, b, other) "[rank" rank "]: RuntimeError: Detected mismatch " \
	"between collectives on ranks. Rank " a " is running collective: " \
	"CollectiveFingerPrint(SequenceNumber=3, OpType=" op "), but Rank " b " is " \
	"running collective: CollectiveFingerPrint(SequenceNumber=3, OpType=" other ").\n"
#define MADE(node, rank) node ":81:90 [0] NCCL INFO comm 0x7f rank " rank " nranks 16 " \
	"cudaDev 0 busId 3b000 - Init COMPLETE\n"

struct row {
	const char	*log;
	const char	*reason;
	int		 root;		/* rank of the root, -2: does not matter */
	int		 suspects[4];	/* ranks, -1 ends */
	const char	*why;		/* in the first one's text, NULL none */
};

static const struct row rows[] = {
	/* counters of 2.5 and later: rank 2 never enqueued number 9 */
	{ CAUGHT("0", "9", "ALLREDUCE", "4") STATUS("0", "9", "8")
	  CAUGHT("1", "9", "ALLREDUCE", "4") STATUS("1", "9", "8")
	  TOLD("2", "8", "8"), "nccl_timeout", 2, { 2, -1 }, "enqueued 8" },
	/* nothing at all was enqueued */
	{ CAUGHT("0", "1", "ALLREDUCE", "4") CAUGHT("1", "1", "ALLREDUCE", "4")
	  TOLD("2", "-1", "-1"), "nccl_timeout", -2, { 2, -1 }, "enqueued 0" },
	/* all of them entered it: nobody is named */
	{ CAUGHT("0", "9", "ALLREDUCE", "4") STATUS("0", "9", "8")
	  CAUGHT("1", "9", "ALLREDUCE", "4") STATUS("1", "12", "8"), "nccl_timeout",
	  0, { -1 }, NULL },
	/* no number is known, but one had nothing left to do */
	{ TOLD("1", "7", "6") TOLD("2", "7", "7"), "nccl_timeout", -2, { 2, -1 },
	  "completed all" },
	/* 1.13 prints no group: the one that is behind many */
	{ OLD("0", "12") OLD("1", "12") OLD("3", "11") OLD("2", "12"),
	  "nccl_timeout", 3, { 3, -1 }, "waits in collective 11" },
	/* ... two against two may be two groups */
	{ OLD("0", "12") OLD("1", "12") OLD("2", "5") OLD("3", "5"), "nccl_timeout",
	  -2, { -1 }, NULL },
	/* numbers of different groups are not compared */
	{ GROUP("0", "3(tp)", "0", "40", "ALLREDUCE")
	  GROUP("1", "3(tp)", "1", "40", "ALLREDUCE")
	  GROUP("2", "4(tp)", "0", "7", "ALLREDUCE")
	  GROUP("3", "4(tp)", "1", "7", "ALLREDUCE"), "nccl_timeout", -2, { -1 },
	  NULL },
	/* the same number, another operation or another size */
	{ CAUGHT("0", "9", "ALLREDUCE", "4") CAUGHT("1", "9", "BROADCAST", "4")
	  CAUGHT("2", "9", "ALLREDUCE", "4"), "collective_mismatch", 1, { 1, -1 },
	  "BROADCAST" },
	{ CAUGHT("0", "9", "_ALLGATHER_BASE", "4")
	  CAUGHT("1", "9", "_ALLGATHER_BASE", "4")
	  CAUGHT("2", "9", "_ALLGATHER_BASE", "2"), "collective_mismatch", 2,
	  { 2, -1 }, "of 2 elements" },
	/* ... sizes of an all-to-all may differ */
	{ CAUGHT("0", "9", "ALLTOALL_BASE", "4") CAUGHT("1", "9", "ALLTOALL_BASE", "4")
	  CAUGHT("2", "9", "ALLTOALL_BASE", "2"), "nccl_timeout", -2, { -1 }, NULL },
	/* silent while three complain */
	{ CAUGHT("0", "9", "ALLREDUCE", "4") CAUGHT("1", "9", "ALLREDUCE", "4")
	  CAUGHT("3", "9", "ALLREDUCE", "4"), "nccl_timeout", -2, { 2, -1 },
	  "silent" },
	/* ... but not while it says something else */
	{ CAUGHT("0", "9", "ALLREDUCE", "4") CAUGHT("1", "9", "ALLREDUCE", "4")
	  CAUGHT("3", "9", "ALLREDUCE", "4")
	  "[rank2]: RuntimeError: [../gloo/transport/tcp/pair.cc:598] Connection closed "
	  "by peer [10.0.0.7]:81\n", "nccl_timeout", -2, { -1 }, NULL },
	/* srun's label, and a node by its prefix */
	{ "n1: " OLD("0", "12") "n1: " OLD("1", "12") "n2: " OLD("2", "10")
	  "n2: " OLD("3", "12"), "nccl_timeout", 2, { 2, -1 }, "collective 10" },
	/* the debug wrapper: the one that all others name */
	{ RUNS("0", "0", "ALLREDUCE", "2", "BROADCAST")
	  RUNS("1", "1", "ALLREDUCE", "2", "BROADCAST")
	  RUNS("2", "2", "BROADCAST", "0", "ALLREDUCE"), "collective_mismatch", 0,
	  { 2, -1 }, "another collective" },
	/* ... of two nobody is the odd one */
	{ RUNS("0", "0", "ALLREDUCE", "1", "BROADCAST")
	  RUNS("1", "1", "BROADCAST", "0", "ALLREDUCE"), "collective_mismatch", 0,
	  { -1 }, NULL },
	/* ranks that a barrier names */
	{ "[rank0]: RuntimeError: [Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier "
	  "in 300000 ms\n", "nccl_timeout", 0, { 1, 3, -1 }, "missing" },
	/* the watchdog itself hangs */
	{ CAUGHT("0", "9", "ALLREDUCE", "4") HEAD("1") PG("1") "ProcessGroupNCCL's "
	  "watchdog got stuck for 480 seconds without making progress in monitoring "
	  "enqueued collectives.\n", "hang", 1, { 1, -1 }, "stuck" },
};

START_TEST(who_is_late)
{
	const struct row *row = &rows[_i];
	struct feed feed = {0};
	struct verdict v = {0};
	struct err err = {0};
	size_t n;

	ck_assert_int_eq(feed_add_memory(&feed, "t", row->log, strlen(row->log),
	    &err), 0);
	ck_assert_int_eq(causes_find(set, &feed, &v, &err), 0);
	ck_assert_msg(strcmp(v.reason, row->reason) == 0, "row %d: %s", _i,
	    v.reason);
	if (row->root != -2)
		ck_assert_msg(v.root.rank == row->root, "row %d: root %d", _i,
		    v.root.rank);
	for (n = 0; row->suspects[n] != -1; n++)
		ck_assert_msg(n < v.suspect_count &&
		    v.suspects[n].rank == row->suspects[n], "row %d: suspect %d",
		    _i, n < v.suspect_count ? v.suspects[n].rank : -1);
	ck_assert_msg(n == v.suspect_count, "row %d: %zu suspects, '%s'", _i,
	    v.suspect_count, v.suspect_count > n ? v.suspects[n].why : "");
	if (row->why != NULL)
		ck_assert_msg(strstr(v.suspects[0].why, row->why) != NULL,
		    "row %d: %s", _i, v.suspects[0].why);
	verdict_fini(&v);
	feed_fini(&feed);
}
END_TEST

/* Every rank has a file, the highest one does not complain; nodes by the prefix. */
START_TEST(silent_file)
{
	static const char *const logs[] = {
		"node1: " CAUGHT("0", "9", "ALLREDUCE", "4"),
		"node1: " CAUGHT("1", "9", "ALLREDUCE", "4"),
		"node2: " CAUGHT("2", "9", "ALLREDUCE", "4"),
		"step 1 loss 2.0\n"
	};
	struct feed feed = {0};
	struct verdict v = {0};
	struct err err = {0};
	char name[24];
	size_t i;

	for (i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "rank%05zu.log", i);
		ck_assert_int_eq(feed_add_memory(&feed, name, logs[i],
		    strlen(logs[i]), &err), 0);
	}
	ck_assert_int_eq(causes_find(set, &feed, &v, &err), 0);
	ck_assert_str_eq(v.reason, "nccl_timeout");
	ck_assert_int_eq(v.status, VERDICT_SYMPTOM_ONLY);
	ck_assert_uint_eq(v.suspect_count, 1);
	ck_assert_int_eq(v.suspects[0].rank, 3);
	verdict_fini(&v);
	feed_fini(&feed);
}
END_TEST

/* All five ranks of a node say nothing; NCCL told which node has them. */
START_TEST(silent_node)
{
	static const char first[] = MADE("n1", "0") MADE("n2", "5") MADE("n3", "10");
	struct feed feed = {0};
	struct verdict v = {0};
	struct err err = {0};
	struct buf log = {0};
	int r;

	buf_printf(&log, "%s", first);
	for (r = 0; r < 16; r++) {
		if (r >= 5 && r < 10)
			continue;
		buf_printf(&log, "[rank%d]:[E131 03:12:41.9 f.cpp:1] [PG ID 0 PG "
		    "GUID 0(default_pg) Rank %d] " WORK("9", "ALLREDUCE", "4"), r, r);
	}
	ck_assert_int_eq(feed_add_memory(&feed, "t", log.data, log.len, &err), 0);
	ck_assert_int_eq(causes_find(set, &feed, &v, &err), 0);
	ck_assert_uint_eq(v.suspect_count, 1);
	ck_assert_int_eq(v.suspects[0].rank, 5);
	ck_assert_str_eq(v.suspects[0].node, "n2");
	ck_assert_ptr_nonnull(strstr(v.suspects[0].why, "ranks 5 to 9"));
	verdict_fini(&v);
	feed_fini(&feed);
	buf_fini(&log);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, who_is_late, 0,
	    (int)(sizeof(rows) / sizeof(rows[0])));
	tcase_add_test(t, silent_file);
	tcase_add_test(t, silent_node);
}

int
main(void)
{
	return unit_run("diagnose/watchdog", add);
}
