/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_feed_names.c - what paths say, alone and together, and which files
 * of a directory are read in which order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "diagnose/feed.h"
#include "diagnose/feed_name.h"
#include "diagnose/feed_path.h"
#include "unit.h"

/* Paths that tell alone.  "" is an unknown node. */
static const struct path_row {
	const char	*path;
	int		 rank, local_rank;
	const char	*node;
	enum stream_kind kind;
} path_rows[] = {
	{ "rank00017.log", 17, -1, "", STREAM_LOG },
	{ "rank_5.log", 5, -1, "", STREAM_LOG },
	{ "train-rank3.err", 3, -1, "", STREAM_LOG },
	{ "train.rank=12.txt.gz", 12, -1, "", STREAM_LOG },
	{ "rank3.log.2.gz", 3, -1, "", STREAM_LOG },
	{ "2026-01-31-03-12-41_rank7.log", 7, -1, "", STREAM_LOG },
	{ "fsdp_rank_4.out", 4, -1, "", STREAM_LOG },
	{ "nemo_log_globalrank-5_localrank-1.txt", 5, 1, "", STREAM_LOG },
	{ "log_local_rank_2.txt", -1, 2, "", STREAM_LOG },
	{ "1/rank.05/stdout", 5, -1, "", STREAM_LOG },
	{ "rank12/stderr.log", 12, -1, "", STREAM_LOG },
	{ "none_x1y2/attempt_0/3/stderr.log", -1, 3, "", STREAM_LOG },
	{ "none_x1y2/attempt_0/3/error.json", -1, 3, "", STREAM_ERROR },
	/* Not what it looks like */
	{ "lora_rank_8.log", -1, -1, "", STREAM_LOG },
	{ "low-rank16/train.log", -1, -1, "", STREAM_LOG },
	{ "rank8/train.log", -1, -1, "", STREAM_LOG },
	{ "mp_rank_00.log", -1, -1, "", STREAM_LOG },
	{ "node_rank_1.log", -1, -1, "", STREAM_LOG },
	{ "prank4.log", -1, -1, "", STREAM_LOG },
	{ "rank8x.log", -1, -1, "", STREAM_LOG },
	{ "3/stderr.log", -1, -1, "", STREAM_LOG },
	{ "log_3.txt", -1, -1, "", STREAM_LOG },
	{ "slurm-123_4.out", -1, -1, "", STREAM_LOG },
	{ "worker-0a1b2c-01000000-4711.out", -1, -1, "", STREAM_LOG },
	{ "pod-worker-3.log", -1, -1, "", STREAM_LOG },
	{ "gpt3_node16_gpu8.log", -1, -1, "", STREAM_LOG },
	{ "gpu-3.log", -1, -1, "", STREAM_LOG },
	{ "train-1.10.0.5rc1.log", -1, -1, "", STREAM_LOG },
	/* Hosts */
	{ "NODE-a.exits", -1, -1, "NODE-a", STREAM_EXITS },
	{ "n1.example.kmsg", -1, -1, "n1.example", STREAM_KERNEL },
	{ "job.123.node07.3.out", -1, -1, "node07", STREAM_LOG },
	{ "job.123.node7.3.out", -1, -1, "node7", STREAM_LOG },
	{ "train_node07.log", -1, -1, "node07", STREAM_LOG },
	{ "train_cn-1-12.log", -1, -1, "cn-1-12", STREAM_LOG },
	{ "x.r12n03.out", -1, -1, "r12n03", STREAM_LOG },
	{ "gpu-3-17.log", -1, -1, "gpu-3-17", STREAM_LOG },
	{ "nid001234.err", -1, -1, "nid001234", STREAM_LOG },
	{ "10.1.2.3.log", -1, -1, "10.1.2.3", STREAM_LOG },
	{ "ip-10-1-2-3.ec2.internal.log", -1, -1, "ip-10-1-2-3", STREAM_LOG },
	{ "node7.log", -1, -1, "node7", STREAM_LOG },
	{ "node7/rank3.log", 3, -1, "node7", STREAM_LOG },
	{ "node7/var/log/syslog", -1, -1, "node7", STREAM_LOG },
	{ "exp-node16/train.log", -1, -1, "", STREAM_LOG },
	/* The kernel */
	{ "dmesg", -1, -1, "", STREAM_KERNEL },
	{ "dmesg.txt", -1, -1, "", STREAM_KERNEL },
	{ "dmesg-node7.txt", -1, -1, "node7", STREAM_KERNEL },
	{ "dmesg_trn-042.log", -1, -1, "trn-042", STREAM_KERNEL },
	{ "node7.dmesg", -1, -1, "node7", STREAM_KERNEL },
	{ "trn042.cluster.local-dmesg.txt", -1, -1, "trn042", STREAM_KERNEL },
	{ "10.1.2.3.dmesg", -1, -1, "10.1.2.3", STREAM_KERNEL },
	{ "dmesg-20260131.txt", -1, -1, "", STREAM_KERNEL },
	{ "dmesg-run2.txt", -1, -1, "", STREAM_KERNEL },
	{ "dmesg-after.txt", -1, -1, "", STREAM_KERNEL },
	{ "kern.log.1", -1, -1, "", STREAM_KERNEL },
	{ "messages-20260131", -1, -1, "", STREAM_LOG }
};

START_TEST(paths)
{
	const struct path_row *row = &path_rows[_i];
	char name[256];
	struct stream s = { .name = name, .rank = -1, .local_rank = -1 };

	snprintf(name, sizeof(name), "%s", row->path);
	feed_path_describe(&s);
	ck_assert_msg(s.rank == row->rank && s.local_rank == row->local_rank &&
	    s.kind == row->kind && strcmp(s.node ? s.node : "", row->node) == 0,
	    "%s: rank %d local rank %d node %s kind %d", row->path, s.rank,
	    s.local_rank, s.node ? s.node : "unknown", (int)s.kind);
	free(s.node);
}
END_TEST

START_TEST(parts)
{
	/* Of one log each, oldest first. */
	static const char *const rows[][5] = {
		{ "a.log.10", "a.log.9.gz", "a.log.2.zst", "a.log.1", "a.log" },
		{ "a.log-20251231.xz", "a.log-20260101-1767225600.gz",
		    "a.log-2026010203", "a.log.2026-01-02_04-00-00", "a.log" },
		{ "syslog.2.gz", "syslog.1", "syslog", NULL },
		{ "x.out.old", "x.out", NULL },
		{ "dmesg.1.gz", "dmesg.0", "dmesg", NULL }
	};
	static const char *const alone[] = {
		"core.1234", "rank.05", "run-20260131", "a.log.99999", "a.1.log",
		"slurm-20260131.out", "a.log-20261331", "a.log-2026", "log.1"
	};
	struct feed_part p, q;
	size_t i, k;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (k = 1; k < 5 && rows[i][k] != NULL; k++) {
			const char *a = rows[i][k - 1], *b = rows[i][k];

			feed_name_part(a, &p);
			feed_name_part(b, &q);
			ck_assert_msg(p.stem == q.stem && p.when < q.when,
			    "%s %s", a, b);
			ck_assert_int_lt(feed_name_compare(a, b), 0);
			ck_assert_int_gt(feed_name_compare(b, a), 0);
		}
	for (i = 0; i < sizeof(alone) / sizeof(alone[0]); i++) {
		feed_name_part(alone[i], &p);
		ck_assert_msg(p.stem == strlen(alone[i]) &&
		    p.when == FEED_PART_CURRENT, "%s", alone[i]);
	}
	ck_assert_int_lt(feed_name_compare("rank9.log", "rank10.log"), 0);
	ck_assert_int_eq(feed_name_compare("a.log", "a.log"), 0);
}
END_TEST

START_TEST(logs_by_name)
{
	static const char *const yes[] = {
		"a.log", "stdout", "error.json", "a.log.gz", "a.log.1.zst",
		"slurm-1.out", "core.1", "messages-20260131.xz", "x.7", "Z"
	};
	static const char *const no[] = {
		"model.pt", "a.tar", "a.tar.gz", "a.TGZ", "data.npy.xz",
		"data.csv.gz", "config.json", ".hidden", "lock", "git-info.log",
		"events.out.tfevents.1.x", "train.py"
	};
	size_t i;

	for (i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		ck_assert_msg(feed_name_is_log(yes[i]), "%s", yes[i]);
	for (i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		ck_assert_msg(!feed_name_is_log(no[i]), "%s", no[i]);
}
END_TEST

/* Makes the files (names in one text, a space between them; "name=" is an empty
 * one) and reads the folder. */
static void
read_tree(struct feed *f, const char *dir, const char *names)
{
	char copy[1000], path[4200], *name, *rest = copy;
	struct err err = {0};

	snprintf(copy, sizeof(copy), "%s", names);
	while ((name = strsep(&rest, " ")) != NULL) {
		bool empty = name[strlen(name) - 1] == '=';

		name[strcspn(name, "=")] = '\0';
		snprintf(path, sizeof(path), "%s/%s", dir, name);
		*strrchr(path, '/') = '\0';
		ck_assert_int_eq(file_mkdirs(path, 0700, NULL), 0);
		snprintf(path, sizeof(path), "%s/%s", dir, name);
		unit_write(path, "text\n", empty ? 0 : 5);
	}
	ck_assert_int_eq(feed_add(f, dir, &err), 0);
	ck_assert_msg(feed_settle(f, &err) == 0, "%s", err.text);
}

/* "name:rank" of all streams in order, "~" where it goes on in the next. */
static const char *
told(const struct feed *f)
{
	static char text[2000];
	size_t i, n = 0;

	text[0] = '\0';
	for (i = 0; i < f->count; i++) {
		const struct stream *s = &f->streams[i];

		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s",
		    i > 0 ? " " : "", s->name);
		if (s->rank != -1)
			n += (size_t)snprintf(text + n, sizeof(text) - n, ":%d",
			    s->rank);
		if (s->goes_on)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "~");
	}
	return text;
}

static const struct tree_row {
	const char	*names;
	const char	*told;
} tree_rows[] = {
	/* Order, parts, and what is no log */
	{ "app.log app.log.1 app.log.2.gz app.log.10 b.log x.tar.gz w/model.pt",
	  "app.log.10~ app.log.2.gz~ app.log.1~ app.log b.log" },
	{ "rank10.log rank9.log rank9.log.1",
	  "rank9.log.1:9~ rank9.log:9 rank10.log:10" },
	/* Counted from 0, or not */
	{ "log_0.txt log_1.txt log_2.txt", "log_0.txt:0 log_1.txt:1 log_2.txt:2" },
	{ "log_1.txt log_2.txt", "log_1.txt log_2.txt" },
	{ "log_0.txt log_2.txt", "log_0.txt log_2.txt" },
	{ "log_0.txt", "log_0.txt" },
	{ "try_0.log try_1.log", "try_0.log try_1.log" },
	{ "slurm-12_0.out slurm-12_1.out", "slurm-12_0.out slurm-12_1.out" },
	{ "a/log_0.txt a/log_1.txt b/log_0.txt b/log_1.txt",
	  "a/log_0.txt:0 a/log_1.txt:1 b/log_0.txt:0 b/log_1.txt:1" },
	{ "log_0.txt log_1.txt log_1.txt.1 log_01.txt",
	  "log_01.txt log_0.txt log_1.txt.1~ log_1.txt" },
	{ "log_0.txt log_1.txt log_1.txt.1",
	  "log_0.txt:0 log_1.txt.1:1~ log_1.txt:1" },
	{ "j.node1.0.out j.node1.1.out j.node2.2.out j.node2.3.out",
	  "j.node1.0.out:0 j.node1.1.out:1 j.node2.2.out:2 j.node2.3.out:3" },
	{ "j.node1.0.out j.node1.1.out j.node2.0.out j.node2.1.out",
	  "j.node1.0.out j.node1.1.out j.node2.0.out j.node2.1.out" },
	{ "stderr.0 stderr.1 stderr.2", "stderr.2:2 stderr.1:1 stderr.0:0" },
	{ "stderr stderr.0 stderr.1", "stderr.1~ stderr.0~ stderr" },
	{ "stderr.1 stderr.2", "stderr.2~ stderr.1" },
	/* torchrun: the newest attempt that wrote something; one node or two */
	{ "r/attempt_0/0/stderr.log r/attempt_9/0/stderr.log "
	  "r/attempt_10/0/stderr.log= r/attempt_9/1/stderr.log",
	  "r/attempt_9/0/stderr.log:0 r/attempt_9/1/stderr.log:1" },
	{ "r/attempt_0/0/stderr.log= r/attempt_1/1/stderr.log=",
	  "r/attempt_1/1/stderr.log:1" },
	{ "a/attempt_0/0/stderr.log b/attempt_0/0/stderr.log",
	  "a/attempt_0/0/stderr.log b/attempt_0/0/stderr.log" },
	{ "attempt_1 attempt_2", "attempt_1 attempt_2" },
	/* A run of Holdfast */
	{ "journal attempts/0001/rank00000.log attempts/0002/n1.exits "
	  "attempts/0002/n1.log attempts/0002/rank00000.log "
	  "attempts/0003/rank00000.log=",
	  "attempts/0002/n1.exits attempts/0002/n1.log "
	  "attempts/0002/rank00000.log:0" },
	{ "x/attempts/0001/rank00000.log x/attempts/0002/rank00000.log",
	  "x/attempts/0002/rank00000.log:0" }
};

START_TEST(trees)
{
	struct feed f = {0};

	read_tree(&f, unit_dir(), tree_rows[_i].names);
	ck_assert_str_eq(told(&f), tree_rows[_i].told);
	ck_assert_uint_eq(f.missing_count, 0);
	feed_fini(&f);
}
END_TEST

START_TEST(output_of_an_agent_is_of_its_node)
{
	struct feed f = {0};

	read_tree(&f, unit_dir(), "attempts/0001/n1.exits attempts/0001/n1.kmsg "
	    "attempts/0001/n1.log attempts/0001/n2.log");
	ck_assert_uint_eq(f.count, 4);
	ck_assert_str_eq(f.streams[2].node, "n1");
	ck_assert_ptr_null(f.streams[3].node);
	feed_fini(&f);
}
END_TEST

/* Links, loops of them, and names given twice. */
START_TEST(nothing_is_read_twice)
{
	const char *dir = unit_dir();
	struct feed f = {0};

	ck_assert_int_eq(symlink("run_2", unit_path(dir, "latest")), 0);
	ck_assert_int_eq(symlink("..", unit_path(dir, "up")), 0);
	ck_assert_int_eq(symlink("b.log", unit_path(dir, "c.log")), 0);
	read_tree(&f, dir, "run_2/a.log b.log");
	ck_assert_int_eq(feed_add(&f, dir, NULL), 0);
	ck_assert_int_eq(feed_add(&f, unit_path(dir, "b.log"), NULL), 0);
	ck_assert_str_eq(told(&f), "b.log latest/a.log");
	feed_fini(&f);
}
END_TEST

/* Ten links to the folder they are in: 10^16 ways to the bottom. */
START_TEST(loops_in_an_attempt_end)
{
	const char *dir = unit_dir();
	struct feed f = {0};
	char path[300];
	int i;

	snprintf(path, sizeof(path), "%s/attempt_1", dir);
	ck_assert_int_eq(file_mkdirs(path, 0700, NULL), 0);
	for (i = 0; i < 10; i++) {
		snprintf(path, sizeof(path), "%s/attempt_1/%d", dir, i);
		ck_assert_int_eq(symlink(".", path), 0);
	}
	read_tree(&f, dir, "attempt_0/a.log attempt_1/a.log=");
	ck_assert_str_eq(told(&f), "attempt_0/a.log");
	feed_fini(&f);
}
END_TEST

/* The order of the command line is the order that counts. */
START_TEST(named_files_keep_their_order)
{
	const char *dir = unit_dir();
	const char *b = unit_path(dir, "b.log"), *a = unit_path(dir, "a.log");
	const char *a1 = unit_path(dir, "a.log.1");
	struct feed f = {0};

	unit_write(a, "x", 1);
	unit_write(a1, "x", 1);
	unit_write(b, "x", 1);
	ck_assert_int_eq(feed_add(&f, b, NULL), 0);
	ck_assert_int_eq(feed_add(&f, a1, NULL), 0);
	ck_assert_int_eq(feed_add(&f, a, NULL), 0);
	ck_assert_int_eq(feed_settle(&f, NULL), 0);
	ck_assert_uint_eq(f.count, 3);
	ck_assert_str_eq(f.streams[0].name, b);
	ck_assert_str_eq(f.streams[1].name, a1);
	ck_assert(!f.streams[0].goes_on && f.streams[1].goes_on);
	feed_fini(&f);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_loop_test(t, paths, 0,
	    sizeof(path_rows) / sizeof(path_rows[0]));
	tcase_add_test(t, parts);
	tcase_add_test(t, logs_by_name);
	tcase_add_loop_test(t, trees, 0,
	    sizeof(tree_rows) / sizeof(tree_rows[0]));
	tcase_add_test(t, output_of_an_agent_is_of_its_node);
	tcase_add_test(t, nothing_is_read_twice);
	tcase_add_test(t, loops_in_an_attempt_end);
	tcase_add_test(t, named_files_keep_their_order);
}

int
main(void)
{
	return unit_run("feed names", add_tests);
}
