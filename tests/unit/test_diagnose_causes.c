/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_causes.c - from several lines to the one that caused them, on a
 * small rule set of its own.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "diagnose/causes.h"
#include "rule_fixture.h"
#include "unit.h"

static const char rules_yaml[] =
    REASON("none", "meta", "none")
    REASON("unknown", "meta", "restart")
    REASON("gpu_lost", "infrastructure", "restart_excluding_node")
    REASON("host_oom", "infrastructure", "restart")
    REASON("process_killed", "infrastructure", "restart")
    REASON("nccl_timeout", "infrastructure", "test_nodes")
    REASON("nccl_remote_error", "infrastructure", "test_nodes")
    REASON("native_crash", "framework", "restart")
    REASON("runtime_error", "framework", "stop")
    REASON("gpu_oom", "framework", "stop")
    REASON("loss_nan", "framework", "rollback")
    REASON("key_error", "script", "stop")
    REASON("value_error", "script", "stop")
    REASON("job_time_limit", "external", "requeue")
    "- {id: xid, reason: gpu_lost, role: root, source: kernel, hides: "
    "[nccl_timeout], match: 'NVRM: Xid \\((?<gpu>[0-9a-f:]+)\\): 79'}\n"
    "- {id: oom-record, reason: host_oom, role: confirm, source: kernel, "
    "hides: [process_killed], match: 'Out of memory: Killed process'}\n"
    "- {id: watchdog, reason: nccl_timeout, role: symptom, priority: 2, "
    "match: 'Watchdog caught'}\n"
    "- {id: closed, reason: nccl_remote_error, role: symptom, "
    "match: 'Connection closed by peer'}\n"
    "- {id: runtime, reason: runtime_error, role: root, priority: -10, "
    "match: '^RuntimeError: '}\n"
    "- {id: gpu-oom, reason: gpu_oom, role: root, match: '^\\S*: CUDA out of '}\n"
    "- {id: key, reason: key_error, role: root, match: '^KeyError: '}\n"
    "- {id: value, reason: value_error, role: root, match: '^ValueError: '}\n"
    "- {id: abort, reason: native_crash, role: symptom, "
    "match: 'Fatal Python error: Aborted'}\n"
    "- {id: elastic-kill, reason: process_killed, role: symptom, "
    "match: 'failed \\(exitcode: -9\\)|exitcode +: -9'}\n"
    "- {id: nan, reason: loss_nan, role: root, match: 'loss is NaN'}\n"
    "- {id: limit, reason: job_time_limit, role: root, source: scheduler, "
    "match: 'DUE TO TIME LIMIT'}\n"
    "- {id: closing, role: teardown, source: launcher, match: 'closing signal'}\n"
    "- {id: taking-down, reason: nccl_timeout, role: teardown, "
    "match: 'taking the process down'}\n"
    "- {id: harmless, role: benign, match: 'KeyError: .*retrying'}\n"
    "- {id: server-down, reason: gpu_lost, role: root, match: 'server gone'}\n"
    "- {id: server-up, role: benign, cancels: [server-down], "
    "match: 'server back'}\n";

static struct rule_set *set;
static const char *dir;

static void
set_up(void)
{
	set = rule_fixture_of("t", rules_yaml);
	dir = unit_dir();
}

static void
tear_down(void)
{
	rule_set_free(set);
}

#define TB	"Traceback (most recent call last):\n" \
		"  File \"t.py\", line 3, in main\n    go()\n"
#define STEPS	"step 1 loss 2.0\nstep 2 loss 1.9\nstep 3 loss 1.8\n"

struct row {
	const char	*log;
	const char	*status;
	const char	*reason;
	long long	 line;		/* -1: no root */
};

static const struct row rows[] = {
	{ "", "no_error", "none", -1 },
	{ STEPS, "no_error", "none", -1 },
	{ STEPS TB "KeyError: 'a'\n", "diagnosed", "key_error", 7 },
	/* an echo alone, and an echo before its cause */
	{ "Watchdog caught it\n", "symptom_only", "nccl_timeout", 1 },
	{ "Watchdog caught it\n" TB "KeyError: 'a'\n", "diagnosed", "key_error", 5 },
	{ TB "KeyError: 'a'\nWatchdog caught it\n", "diagnosed", "key_error", 4 },
	{ TB "odd.Failure: a\n" STEPS, "no_error", "none", -1 },
	/* a hardware record wins, wherever it stands */
	{ TB "RuntimeError: cuda\n[1.0] NVRM: Xid (3b:00): 79, lost\n", "diagnosed",
	  "gpu_lost", 5 },
	/* first of two exceptions; specific over generic of one chain */
	{ "[rank0]: KeyError: 'a'\n[rank1]: ValueError: b\n", "diagnosed",
	  "key_error", 1 },
	{ TB "KeyError: 'a'\n\nDuring handling of the above exception, another "
	  "exception occurred:\n\n" TB "ValueError: b\n", "diagnosed", "key_error",
	  4 },
	{ TB "RuntimeError: x\n\nThe above exception was the direct cause of the "
	  "following exception:\n\n" TB "ValueError: b\n", "diagnosed",
	  "value_error", 11 },
	{ "Exception ignored in: <function D.__del__>\n" TB "KeyError: 'a'\n",
	  "no_error", "none", -1 },
	/* the job went on */
	{ TB "KeyError: 'a'\n" STEPS, "no_error", "none", -1 },
	{ "loss is NaN\n" STEPS, "no_error", "none", -1 },
	{ "loss is NaN\nstep 1 loss nan\nstep 2 loss nan\n", "diagnosed",
	  "loss_nan", 1 },
	/* benign beats everything on its line */
	{ "KeyError: 'a', retrying\n", "no_error", "none", -1 },
	/* a teardown is a reason only when there is no other */
	{ STEPS "taking the process down\n", "symptom_only", "nccl_timeout", 4 },
	{ "Connection closed by peer\ntaking the process down\n", "symptom_only",
	  "nccl_remote_error", 1 },
	{ STEPS "Sending closing signal\n", "no_error", "none", -1 },
	/* after the teardown: only when there is nothing before */
	{ TB "ValueError: b\nSending closing signal SIGTERM\n" TB "KeyError: 'a'\n",
	  "diagnosed", "value_error", 4 },
	{ "Watchdog caught it\nSending closing signal SIGTERM\n" TB "KeyError: 'a'\n",
	  "diagnosed", "key_error", 6 },
	/* the scheduler, before and after a failure */
	{ "*** JOB 7 CANCELLED DUE TO TIME LIMIT ***\n" TB "KeyError: 'a'\n",
	  "diagnosed", "job_time_limit", 1 },
	{ TB "KeyError: 'a'\n*** JOB 7 CANCELLED DUE TO TIME LIMIT ***\n",
	  "diagnosed", "key_error", 4 },
	/* ... also where it stands right behind an exception that says little */
	{ TB "RuntimeError: x\n*** JOB 7 CANCELLED DUE TO TIME LIMIT ***\n",
	  "diagnosed", "runtime_error", 4 },
	/* an abort says less than what led to it */
	{ "Watchdog caught it\nFatal Python error: Aborted\n", "symptom_only",
	  "nccl_timeout", 1 },
	/* a guess is no finding */
	{ "this may be caused by Connection closed by peer\n", "no_error", "none",
	  -1 },
	/* an exception no rule knows */
	{ TB "my.pkg.OddFailure: text\n", "diagnosed", "runtime_error", 4 },
	/* two ranks in one file */
	{ "[rank0]: Traceback (most recent call last):\n"
	  "[rank1]: Traceback (most recent call last):\n"
	  "[rank0]:   File \"t.py\", line 3, in main\n"
	  "[rank1]:   File \"t.py\", line 3, in main\n"
	  "[rank0]: RuntimeError: Connection closed by peer\n"
	  "[rank1]: torch.OutOfMemoryError: CUDA out of memory.\n", "diagnosed",
	  "gpu_oom", 6 },
	/* torchelastic says who was first */
	{ "[rank0]: ValueError: b\n[rank1]: KeyError: 'a'\n"
	  "Root Cause (first observed failure):\n[0]:\n  time      : t\n"
	  "  rank      : 1 (local_rank: 1)\n", "diagnosed", "key_error", 2 },
	/* taken back by a later line, but not by an earlier one */
	{ "server gone\nserver back\n", "no_error", "none", -1 },
	{ "server back\nserver gone\n", "diagnosed", "gpu_lost", 2 },
	/* a prefix no one knows, a traceback that ends in nothing known */
	{ "<w 1> Traceback (most recent call last):\n<w 1>   File \"t.py\", line 3\n"
	  "<w 1> KeyError: 'a'\n", "diagnosed", "key_error", 3 },
	{ TB, "undetermined", "unknown", -1 },
	/* source shown in a traceback is no message */
	{ "Traceback (most recent call last):\n  File \"t.py\", line 3, in main\n"
	  "    raise X('Connection closed by peer')\nValueError: b\n", "diagnosed",
	  "value_error", 4 },
	/* bars, colours, garbage */
	{ "1%|a\r2%|b\r\033[31mKeyError: 'a'\033[0m\n", "diagnosed", "key_error", 1 },
	{ "\xff\xfe\x01 \nKeyError: 'a'\n", "diagnosed", "key_error", 2 },
	/* Holdfast's own card does not count */
	{ "| proof   x:1 KeyError: 'a'\n", "no_error", "none", -1 },
};

static void
diagnose(const struct feed *feed, struct verdict *v)
{
	struct err err = {0};

	memset(v, 0, sizeof(*v));
	ck_assert_int_eq(causes_find(set, feed, v, &err), 0);
}

START_TEST(one_log)
{
	const struct row *row = &rows[_i];
	struct feed feed = {0};
	struct verdict v;
	struct err err;

	ck_assert_int_eq(feed_add_memory(&feed, "t", row->log, strlen(row->log),
	    &err), 0);
	diagnose(&feed, &v);
	ck_assert_msg(strcmp(v.reason, row->reason) == 0, "row %d: %s", _i,
	    v.reason);
	ck_assert_str_eq(verdict_status_name(v.status), row->status);
	ck_assert_int_eq(v.has_root ? v.root.line : -1, row->line);
	verdict_fini(&v);
	feed_fini(&feed);
}
END_TEST

static void
put(const char *name, const char *text)
{
	unit_write(unit_path(dir, name), text, strlen(text));
}

static void
diagnose_dir(struct verdict *v)
{
	struct feed feed = {0};
	struct err err = {0};

	ck_assert_int_eq(feed_add(&feed, dir, &err), 0);
	ck_assert_int_eq(feed_settle(&feed, &err), 0);
	diagnose(&feed, v);
	feed_fini(&feed);
}

#define WHEN	"2026-01-31T03:12:41.123Z holdfast: "
#define STOPPED	WHEN "attempt stopped: sending SIGTERM to the remaining ranks\n"

START_TEST(killed_rank_is_the_cause)
{
	struct verdict v;

	put("n1.exits", WHEN "node n1: rank 2 (pid 9) was ended by signal 9 "
	    "(SIGKILL)\n" WHEN "node n1: rank 0 (pid 7) exited with status 1\n"
	    STOPPED WHEN "node n1: rank 1 (pid 8) exited with status 1\n");
	put("rank00000.log", STEPS TB "RuntimeError: Connection closed by peer\n");
	put("rank00001.log", STEPS TB "RuntimeError: gone\n");
	put("rank00002.log", STEPS);
	diagnose_dir(&v);
	ck_assert_str_eq(v.reason, "process_killed");
	ck_assert_int_eq(v.status, VERDICT_SYMPTOM_ONLY);
	ck_assert_str_eq(v.root.file, "n1.exits");
	ck_assert_int_eq(v.root.line, 1);
	ck_assert_int_eq(v.root.rank, 2);
	ck_assert_str_eq(v.root.node, "n1");
	ck_assert_ptr_null(v.root.rule);
	ck_assert_int_eq(v.step, 3);
	ck_assert_str_eq(v.stage, "training");
	verdict_fini(&v);
	/* with a record of who killed it */
	put("n1.kmsg", "[5.0] Out of memory: Killed process 9 (python)\n");
	diagnose_dir(&v);
	ck_assert_str_eq(v.reason, "host_oom");
	ck_assert_int_eq(v.status, VERDICT_DIAGNOSED);
	ck_assert_str_eq(v.root.node, "n1");
	verdict_fini(&v);
}
END_TEST

START_TEST(first_to_exit_has_the_cause)
{
	struct verdict v;

	put("n1.exits", WHEN "node n1: rank 1 (pid 9) exited with status 1\n"
	    STOPPED WHEN "node n1: rank 0 (pid 7) exited with status 1\n");
	put("rank00000.log", TB "ValueError: b\n");
	put("rank00001.log", STEPS TB "KeyError: 'a'\n");
	put("weights.pt", "ValueError: not a log\n");
	put("journal.jsonl", "ValueError: not a log\n");
	diagnose_dir(&v);
	ck_assert_str_eq(v.reason, "key_error");
	ck_assert_str_eq(v.root.file, "rank00001.log");
	ck_assert_int_eq(v.root.line, 7);
	ck_assert_int_eq(v.root.rank, 1);
	verdict_fini(&v);
}
END_TEST

/* What an older part of a rotated log complains of is over when training goes on
 * in a later one. */
START_TEST(rotated_log_goes_on)
{
	struct verdict v;

	put("n1.log.1", STEPS TB "ValueError: b\n");
	put("n1.log", STEPS);
	diagnose_dir(&v);
	ck_assert_int_eq(v.status, VERDICT_NO_ERROR);
	verdict_fini(&v);
	put("n1.log", "nothing more\n");
	diagnose_dir(&v);
	ck_assert_str_eq(v.reason, "value_error");
	ck_assert_str_eq(v.root.file, "n1.log.1");
	verdict_fini(&v);
}
END_TEST

#define ECHO	TB "RuntimeError: [pair.cc:598] Connection closed by peer [::1]:1\n"
#define LATER	"2026-01-31T03:12:41.323Z holdfast: "

START_TEST(echo_that_ends_first_yields)
{
	struct verdict v;

	put("n1.exits", WHEN "node n1: rank 0 (pid 7) exited with status 1\n"
	    LATER "node n1: rank 1 (pid 9) was ended by signal 6 (SIGABRT)\n");
	put("rank00000.log", STEPS ECHO);
	put("rank00001.log", STEPS "Fatal Python error: Aborted\n");
	diagnose_dir(&v);
	ck_assert_str_eq(v.reason, "native_crash");
	ck_assert_str_eq(v.root.file, "rank00001.log");
	ck_assert_int_eq(v.root.rank, 1);
	verdict_fini(&v);
	/* one that leaves without a word */
	put("n1.exits", WHEN "node n1: rank 0 (pid 7) exited with status 1\n"
	    LATER "node n1: rank 1 (pid 9) exited with status 7\n");
	put("rank00001.log", STEPS);
	diagnose_dir(&v);
	ck_assert_str_eq(v.reason, "unknown");
	ck_assert_int_eq(v.root.rank, 1);
	verdict_fini(&v);
	/* but not one that is an echo itself, nor one that was told to end */
	put("rank00001.log", STEPS ECHO);
	diagnose_dir(&v);
	ck_assert_str_eq(v.reason, "nccl_remote_error");
	ck_assert_int_eq(v.root.rank, 0);
	verdict_fini(&v);
	put("n1.exits", WHEN "node n1: rank 0 (pid 7) exited with status 1\n"
	    STOPPED LATER "node n1: rank 1 (pid 9) exited with status 7\n");
	put("rank00001.log", STEPS);
	diagnose_dir(&v);
	ck_assert_str_eq(v.reason, "nccl_remote_error");
	verdict_fini(&v);
}
END_TEST

START_TEST(table_names_the_rank)
{
	struct verdict v;

	put("n1.log", STEPS
	    "ERROR:torch.distributed.elastic.multiprocessing.api:failed "
	    "(exitcode: -9) local_rank: 1 (pid: 4711) of binary: python3\n"
	    "Root Cause (first observed failure):\n[0]:\n"
	    "  time      : 2026-01-31_03:12:41\n  host      : n1\n"
	    "  rank      : 5 (local_rank: 1)\n  exitcode  : -9 (pid: 4711)\n"
	    "  error_file: <N/A>\n"
	    "  traceback : Signal 9 (SIGKILL) received by PID 4711\n");
	diagnose_dir(&v);
	ck_assert_str_eq(v.reason, "process_killed");
	ck_assert_int_eq(v.root.rank, 5);
	verdict_fini(&v);
}
END_TEST

START_TEST(silent_exit_is_undetermined)
{
	struct verdict v;

	put("n1.exits", WHEN "node n1: rank 0 (pid 9) exited with status 3\n");
	put("rank00000.log", STEPS);
	diagnose_dir(&v);
	ck_assert_str_eq(v.reason, "unknown");
	ck_assert_int_eq(v.status, VERDICT_UNDETERMINED);
	ck_assert_int_eq(v.root.line, 1);
	verdict_fini(&v);
	put("n1.exits", WHEN "node n1: rank 0 (pid 9) was ended by signal 11 "
	    "(SIGSEGV)\n");
	diagnose_dir(&v);
	ck_assert_str_eq(v.reason, "native_crash");
	verdict_fini(&v);
	put("n1.exits", WHEN "node n1: rank 0 (pid 9) exited with status 0\n");
	diagnose_dir(&v);
	ck_assert_int_eq(v.status, VERDICT_NO_ERROR);
	verdict_fini(&v);
}
END_TEST

START_TEST(kernel_record_names_the_node)
{
	struct verdict v;
	char *json;
	cJSON *o;

	put("rank00000.log", STEPS "Watchdog caught it\n");
	put("n2.kmsg", "[5.0] NVRM: Xid (3b:00): 79, lost\n");
	diagnose_dir(&v);
	ck_assert_str_eq(v.reason, "gpu_lost");
	ck_assert_str_eq(v.action_node, "n2");
	ck_assert_str_eq(v.root.gpu, "3b:00");
	ck_assert_ptr_nonnull(json = verdict_json(&v));
	ck_assert_int_eq(json_parse(json, strlen(json), &o, NULL), 0);
	ck_assert_str_eq(json_str(o, "schema", ""), "holdfast.verdict/1");
	ck_assert(cJSON_HasObjectItem(o, "missing_evidence"));
	ck_assert(cJSON_IsNull(cJSON_GetObjectItem(cJSON_GetObjectItem(o, "root"),
	    "rank")));
	cJSON_Delete(o);
	free(json);
	verdict_fini(&v);
}
END_TEST

START_TEST(shared_fault_excludes_nobody)
{
	struct verdict v;

	put("rank00000.log", STEPS);
	put("n1.kmsg", "[5.0] NVRM: Xid (3b:00): 79, lost\n");
	put("n2.kmsg", "[5.0] NVRM: Xid (4b:00): 79, lost\n");
	diagnose_dir(&v);
	ck_assert_str_eq(v.reason, "gpu_lost");
	ck_assert_int_eq(v.action, ACTION_BACKOFF_RETRY);
	ck_assert_ptr_null(v.action_node);
	verdict_fini(&v);
}
END_TEST

/* The clock of n2 is behind; who lost a peer there ties its record to the failure. */
START_TEST(lost_peer_outweighs_clocks)
{
	static const char *const names[] = { "n2", "n9", "n22" };
	char log[600];
	struct verdict v;
	size_t i;

	put("n2.kmsg", "Jan 31 03:02:41 n2 kernel: NVRM: Xid (3b:00): 79, lost\n");
	for (i = 0; i < 3; i++) {
		snprintf(log, sizeof(log),
		    "2026-01-31 03:11:40 step 1 loss 2.0\n"
		    "2026-01-31 03:12:40 step 2 loss 1.9\n"
		    "2026-01-31 03:12:41 step 3 loss 1.8\n"
		    "Connection closed by peer %s<41109>\n", names[i]);
		put("rank00000.log", log);
		diagnose_dir(&v);
		ck_assert_str_eq(v.reason, i == 0 ? "gpu_lost" :
		    "nccl_remote_error");
		verdict_fini(&v);
	}
}
END_TEST

/* In the output of a rank, a node that the job did not run on is what someone wrote
 * about it; its own node, also by its full name, and those of others are not. */
START_TEST(foreign_node_is_not_excluded)
{
	static const struct {
		const char	*named;
		const char	*excluded;
	} about[] = {
		{ "node9", NULL }, { "node3", "node3" },
		{ "node3.lab.example.com", "node3.lab.example.com" },
		{ "node4", "node4" }
	};
	char line[160];
	struct verdict v;
	size_t i;

	put("job.node4.1.log", STEPS);
	for (i = 0; i < sizeof(about) / sizeof(about[0]); i++) {
		snprintf(line, sizeof(line), "Jan 31 03:12:41 %s kernel: NVRM: Xid "
		    "(3b:00): 79, lost\n", about[i].named);
		put("job.node3.0.log", line);
		diagnose_dir(&v);
		ck_assert_str_eq(v.reason, "gpu_lost");
		if (about[i].excluded == NULL)
			ck_assert_ptr_null(v.action_node);
		else
			ck_assert_pstr_eq(v.action_node, about[i].excluded);
		verdict_fini(&v);
	}
}
END_TEST

/* Rank 2 enqueued less; rank 3 of five says nothing. */
START_TEST(watchdog_names_who_is_missing)
{
	static const char log[] =
	    "[rank0]: Watchdog caught it, last enqueued work: 9, last\n"
	    "[rank1]: Watchdog caught it, last enqueued work: 9, last\n"
	    "[rank2]: Watchdog caught it, last enqueued work: 7, last\n"
	    "[rank4]: Watchdog caught it, last enqueued NCCL work: 9, last\n";
	struct feed feed = {0};
	struct verdict v;
	struct err err;

	ck_assert_int_eq(feed_add_memory(&feed, "t", log, strlen(log), &err), 0);
	diagnose(&feed, &v);
	ck_assert_int_eq(v.status, VERDICT_SYMPTOM_ONLY);
	ck_assert_uint_eq(v.suspect_count, 2);
	ck_assert_ptr_nonnull(strstr(v.suspects[0].why, "rank 2 enqueued 7"));
	ck_assert_ptr_nonnull(strstr(v.suspects[1].why, "rank 3 is silent"));
	verdict_fini(&v);
	feed_fini(&feed);
}
END_TEST

/* From strong evidence to weak. */
START_TEST(confidence_falls)
{
	static const char *const logs[] = {
		"[1.0] NVRM: Xid (3b:00): 79, lost\n",
		TB "KeyError: 'a'\n",
		TB "RuntimeError: x\n",
		TB "my.pkg.OddFailure: text\n",
		"Watchdog caught it\n",
		TB
	};
	double last = 1;
	struct verdict v;
	struct err err;
	size_t i;

	for (i = 0; i < sizeof(logs) / sizeof(logs[0]); i++) {
		struct feed feed = {0};

		ck_assert_int_eq(feed_add_memory(&feed, "t", logs[i],
		    strlen(logs[i]), &err), 0);
		diagnose(&feed, &v);
		ck_assert_msg(v.confidence < last, "log %zu: %g", i, v.confidence);
		last = v.confidence;
		verdict_fini(&v);
		feed_fini(&feed);
	}
}
END_TEST

/* Most certain of nothing in a log that tells of steps; a rival makes less so. */
START_TEST(confidence_of_logs)
{
	static const char *const pairs[][2] = {
		{ STEPS, "hello\n" },
		{ "[rank0]: KeyError: 'a'\n[rank1]: KeyError: 'a'\n",
		  "[rank0]: KeyError: 'a'\n[rank1]: ValueError: b\n" },
	};
	double x[2];
	struct verdict v;
	struct err err;
	size_t i, k;

	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		for (k = 0; k < 2; k++) {
			struct feed feed = {0};

			ck_assert_int_eq(feed_add_memory(&feed, "t", pairs[i][k],
			    strlen(pairs[i][k]), &err), 0);
			diagnose(&feed, &v);
			x[k] = v.confidence;
			verdict_fini(&v);
			feed_fini(&feed);
		}
		ck_assert_msg(x[0] > x[1], "pair %zu: %g %g", i, x[0], x[1]);
	}
}
END_TEST

/* The cause may stand in what could not be read. */
START_TEST(unread_files_make_less_sure)
{
	double last = 1;
	int missing;

	for (missing = 0; missing < 3; missing++) {
		struct feed feed = {0};
		struct verdict v;
		struct err err;
		int i;

		ck_assert_int_eq(feed_add_memory(&feed, "t", STEPS,
		    strlen(STEPS), &err), 0);
		for (i = 0; i < missing; i++)
			ck_assert_int_eq(feed_add_missing(&feed, "u", "gone"), 0);
		diagnose(&feed, &v);
		ck_assert_str_eq(v.reason, "none");
		ck_assert_msg(v.confidence < last, "%d: %g", missing,
		    v.confidence);
		last = v.confidence;
		verdict_fini(&v);
		feed_fini(&feed);
	}
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, one_log, 0, (int)(sizeof(rows) / sizeof(rows[0])));
	tcase_add_test(t, killed_rank_is_the_cause);
	tcase_add_test(t, first_to_exit_has_the_cause);
	tcase_add_test(t, rotated_log_goes_on);
	tcase_add_test(t, echo_that_ends_first_yields);
	tcase_add_test(t, table_names_the_rank);
	tcase_add_test(t, silent_exit_is_undetermined);
	tcase_add_test(t, kernel_record_names_the_node);
	tcase_add_test(t, shared_fault_excludes_nobody);
	tcase_add_test(t, lost_peer_outweighs_clocks);
	tcase_add_test(t, foreign_node_is_not_excluded);
	tcase_add_test(t, watchdog_names_who_is_missing);
	tcase_add_test(t, confidence_falls);
	tcase_add_test(t, confidence_of_logs);
	tcase_add_test(t, unread_files_make_less_sure);
}

int
main(void)
{
	return unit_run("diagnose_causes", add_tests);
}
