/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_snapshot.c - snapshots from a client to a server in a process of its
 * own: what arrives, who waits for whom, and what a death on either side leaves.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint/snapshot_copy.h"
#include "checkpoint_fixture.h"
#include "snapshot_fixture.h"
#include "unit.h"

START_TEST(test_one)
{
	pid_t pid = snapshot_start(0, RLIM_INFINITY);
	struct holdfast_checkpoint_client *c = snapshot_open();
	struct checkpoint found;
	int64_t shape[] = { 0, 3 };
	char name[20];
	int i;

	IS(INVALID, holdfast_checkpoint_wait(c, 0, WHY));
	OK(holdfast_checkpoint_reserve(c, 8 * MB, WHY));
	snapshot_fill(c, 7, 0, 1, 4);
	OK(holdfast_checkpoint_snapshot(c, "model/empty", HOLDFAST_CHECKPOINT_I64, 2,
	    shape, NULL, 0, WHY));
	OK(holdfast_checkpoint_snapshot(c, "model/\"a\nb\"", HOLDFAST_CHECKPOINT_F64,
	    0, NULL, snapshot_data, 8, WHY));
	OK(holdfast_checkpoint_set_float(c, "rate", 0.25, WHY));
	OK(holdfast_checkpoint_set_bool(c, "yes", 1, WHY));
	OK(holdfast_checkpoint_set_none(c, "none", WHY));
	OK(holdfast_checkpoint_set_text(c, "text", "abc", WHY));
	OK(holdfast_checkpoint_set_bytes(c, "bytes", "\0\xff", 2, WHY));
	OK(holdfast_checkpoint_commit(c, WHY));
	OK(holdfast_checkpoint_wait(c, -1, WHY));
	snapshot_is_valid("step00000007.pt", 7);
	ck_assert_int_eq(unit_count(snapshot_dir), 1);
	/* Memory that was not asked for, and many small ones. */
	OK(holdfast_checkpoint_begin(c, 8, 0, 1, 0, WHY));
	OK(holdfast_checkpoint_set_int(c, "step", 8, WHY));
	shape[0] = 1;
	for (i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "t%d", i);
		OK(holdfast_checkpoint_snapshot(c, name, HOLDFAST_CHECKPOINT_F32, 2,
		    shape, snapshot_data, 12, WHY));
	}
	shape[0] = 4 * MB;
	for (i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "large%d", i);
		OK(holdfast_checkpoint_snapshot(c, name, HOLDFAST_CHECKPOINT_F32, 1,
		    shape, snapshot_data, 16 * MB, WHY));
	}
	OK(holdfast_checkpoint_commit(c, WHY));
	OK(holdfast_checkpoint_wait(c, -1, WHY));
	snapshot_is_valid("step00000008.pt", 8);
	/* The bytes are those of the memory. */
	fixture_check(&found, unit_path(snapshot_dir, "step00000008.pt"), true);
	ck_assert_int_ge(found.size_bytes, (int64_t)(48 * MB));
	checkpoint_fini(&found);
	/* The same step again replaces the file. */
	snapshot_save(c, 8, 0, 1, 1);
	OK(holdfast_checkpoint_wait(c, -1, WHY));
	snapshot_is_valid("step00000008.pt", 8);
	ck_assert_int_eq(unit_count(snapshot_dir), 2);
	holdfast_checkpoint_close(c);
	snapshot_stop(pid);
	ck_assert_int_eq(access(snapshot_socket, F_OK), -1);
}
END_TEST

START_TEST(test_wrong_calls)
{
	struct holdfast_checkpoint_client *c;
	int64_t shape[] = { 3 }, minus[] = { -1 };
	int status;
	pid_t pid, child;

	IS(NO_SERVER, holdfast_checkpoint_open(snapshot_socket, &c, WHY));
	unsetenv("HOLDFAST_STAGE_SOCKET");
	IS(NO_SERVER, holdfast_checkpoint_open(NULL, &c, WHY));
	pid = snapshot_start(0, RLIM_INFINITY);
	holdfast_checkpoint_close(snapshot_open());
	setenv("HOLDFAST_STAGE_SOCKET", snapshot_socket, 1);
	OK(holdfast_checkpoint_open(NULL, &c, WHY));
	IS(INVALID, holdfast_checkpoint_commit(c, WHY));
	IS(INVALID, holdfast_checkpoint_set_int(c, "a", 1, NULL, 0));
	IS(INVALID, holdfast_checkpoint_begin(c, -1, 0, 1, 0, WHY));
	IS(INVALID, holdfast_checkpoint_begin(c, 1, 1, 1, 0, WHY));
	IS(INVALID, holdfast_checkpoint_begin(c, 1, 0, 0, 0, WHY));
	IS(INVALID, holdfast_checkpoint_reserve(c, UINT64_MAX, WHY));
	OK(holdfast_checkpoint_begin(c, 1, 0, 1, '/', WHY));
	IS(INVALID, holdfast_checkpoint_begin(c, 1, 0, 1, '/', WHY));
	IS(INVALID, holdfast_checkpoint_snapshot(c, "a", HOLDFAST_CHECKPOINT_F32, 1,
	    shape, snapshot_data, 11, WHY));
	IS(INVALID, holdfast_checkpoint_snapshot(c, "a", HOLDFAST_CHECKPOINT_F32, 1,
	    minus, snapshot_data, 12, WHY));
	IS(INVALID, holdfast_checkpoint_snapshot(c, "a", 99, 1, shape,
	    snapshot_data, 12, WHY));
	IS(INVALID, holdfast_checkpoint_snapshot(c, "a", HOLDFAST_CHECKPOINT_F32, 65,
	    shape, snapshot_data, 12, WHY));
	IS(INVALID, holdfast_checkpoint_snapshot(c, "a", HOLDFAST_CHECKPOINT_F32, 1,
	    shape, NULL, 12, WHY));
	IS(INVALID, holdfast_checkpoint_set_int(c, "\xff", 1, WHY));
	IS(INVALID, holdfast_checkpoint_set_text(c, "a", "\xff", WHY));
	OK(holdfast_checkpoint_set_int(c, "a", 1, WHY));
	OK(holdfast_checkpoint_set_int(c, "a/b", 1, WHY));
	IS(INVALID, holdfast_checkpoint_commit(c, WHY));
	OK(holdfast_checkpoint_abort(c, WHY));
	/* A forked child, such as a snapshot_data loader, leaves the connection alone. */
	if ((child = fork()) == 0) {
		holdfast_checkpoint_close(c);
		_exit(holdfast_checkpoint_begin(c, 1, 0, 1, 0, NULL, 0) ==
		    HOLDFAST_CHECKPOINT_INVALID ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	snapshot_save(c, 1, 0, 1, 1);
	OK(holdfast_checkpoint_wait(c, -1, WHY));
	holdfast_checkpoint_close(c);
	snapshot_stop(pid);
}
END_TEST

/* One is written, one waits, the third takes the place of that. */
START_TEST(test_newest_wins)
{
	pid_t pid = snapshot_start(SLOW, RLIM_INFINITY);
	struct holdfast_checkpoint_client *c = snapshot_open();

	snapshot_save(c, 1, 0, 1, 4);
	snapshot_save(c, 2, 0, 1, 4);
	IS(TIMEOUT, holdfast_checkpoint_wait(c, 0, WHY));
	snapshot_save(c, 3, 0, 1, 1);
	OK(holdfast_checkpoint_wait(c, -1, WHY));
	snapshot_is_valid("step00000001.pt", 1);
	snapshot_is_valid("step00000003.pt", 3);
	ck_assert_int_eq(unit_count(snapshot_dir), 2);
	/* Half a snapshot is dropped with its rank, a committed one is not. */
	snapshot_save(c, 4, 0, 1, 1);
	snapshot_fill(c, 5, 0, 1, 1);
	holdfast_checkpoint_close(c);
	snapshot_stop(pid);
	snapshot_is_valid("step00000004.pt", 4);
	ck_assert_int_eq(unit_count(snapshot_dir), 3);
}
END_TEST

START_TEST(test_ranks)
{
	pid_t pid = snapshot_start(SLOW, RLIM_INFINITY);
	struct holdfast_checkpoint_client *a = snapshot_open(), *b = snapshot_open();

	snapshot_save(a, 1, 0, 2, 1);
	IS(TIMEOUT, holdfast_checkpoint_wait(a, 700, WHY));
	ck_assert(!snapshot_is_there("step00000001"));
	snapshot_save(b, 1, 1, 2, 1);
	OK(holdfast_checkpoint_wait(a, -1, WHY));
	OK(holdfast_checkpoint_wait(b, -1, WHY));
	snapshot_is_valid("step00000001", 1);
	ck_assert_int_eq(unit_count(unit_path(snapshot_dir, "step00000001")), 2);
	/* Faster than the disk: some are skipped, by all ranks the same ones. */
	snapshot_save(a, 2, 0, 2, 2);
	snapshot_save(a, 3, 0, 2, 1);
	snapshot_save(b, 2, 1, 2, 1);
	snapshot_save(b, 3, 1, 2, 1);
	snapshot_save(a, 4, 0, 2, 1);
	snapshot_save(b, 4, 1, 2, 1);
	OK(holdfast_checkpoint_wait(b, -1, WHY));
	OK(holdfast_checkpoint_wait(a, -1, WHY));
	snapshot_is_valid("step00000004", 4);
	/* Again, as after going back: the new files take the old ones' place. */
	snapshot_save(b, 4, 1, 2, 1);
	snapshot_save(a, 4, 0, 2, 1);
	OK(holdfast_checkpoint_wait(a, -1, WHY));
	snapshot_is_valid("step00000004", 4);
	/* One rank dies: its partner's part is no checkpoint. */
	holdfast_checkpoint_close(b);
	snapshot_save(a, 5, 0, 2, 1);
	holdfast_checkpoint_close(a);
	snapshot_stop(pid);
	ck_assert(!snapshot_is_there("step00000005"));
}
END_TEST

/* The server is killed in the middle of writing; the rank has the memory still. */
START_TEST(test_server_killed)
{
	pid_t pid = snapshot_start(SLOW, RLIM_INFINITY);
	struct holdfast_checkpoint_client *c = snapshot_open();
	int code, i;

	snapshot_save(c, 1, 0, 1, 4);
	snapshot_save(c, 2, 0, 1, 1);
	for (i = 0; i < 1000 && unit_count(snapshot_dir) == 0; i++)
		poll(NULL, 0, 5);
	snapshot_kill(pid);
	ck_assert(!snapshot_is_there("step00000001.pt"));
	do
		code = holdfast_checkpoint_begin(c, 3, 0, 1, 0, WHY);
	while (code == 0 && holdfast_checkpoint_abort(c, WHY) == 0);
	ck_assert_int_eq(code, HOLDFAST_CHECKPOINT_LOST);
	/* Its socket is there still. */
	pid = snapshot_start(0, RLIM_INFINITY);
	OK(holdfast_checkpoint_wait(c, -1, WHY));
	snapshot_is_valid("step00000001.pt", 1);
	snapshot_is_valid("step00000002.pt", 2);
	/* Nothing half-written is left. */
	ck_assert_int_eq(unit_count(snapshot_dir), 2);
	snapshot_save(c, 3, 0, 1, 4);
	OK(holdfast_checkpoint_wait(c, -1, WHY));
	/* Gone while a snapshot is made. */
	snapshot_fill(c, 4, 0, 1, 1);
	snapshot_kill(pid);
	pid = snapshot_start(0, RLIM_INFINITY);
	while ((code = holdfast_checkpoint_commit(c, WHY)) ==
	    HOLDFAST_CHECKPOINT_LOST)
		poll(NULL, 0, 10);
	ck_assert_int_eq(code, 0);
	OK(holdfast_checkpoint_wait(c, -1, WHY));
	snapshot_is_valid("step00000004.pt", 4);
	holdfast_checkpoint_close(c);
	snapshot_stop(pid);
}
END_TEST

/* A rank that is killed in the middle of a snapshot, many times. */
START_TEST(test_client_killed)
{
	pid_t pid = snapshot_start(0, RLIM_INFINITY), child;
	struct holdfast_checkpoint_client *c = snapshot_open();
	int i;

	for (i = 0; i < 20; i++) {
		if ((child = fork()) == 0) {
			struct holdfast_checkpoint_client *mine = snapshot_open();

			for (;;)
				snapshot_save(mine, 1, 0, 1, 1 + unit_random(4));
		}
		poll(NULL, 0, (int)unit_random(40));
		snapshot_kill(child);
	}
	snapshot_save(c, 2, 0, 1, 1);
	OK(holdfast_checkpoint_wait(c, -1, WHY));
	holdfast_checkpoint_close(c);
	snapshot_stop(pid);
	if (snapshot_is_there("step00000001.pt"))
		snapshot_is_valid("step00000001.pt", 1);
	snapshot_is_valid("step00000002.pt", 2);
	ck_assert_int_eq(unit_count(snapshot_dir), 1 +
	    snapshot_is_there("step00000001.pt"));
}
END_TEST

START_TEST(test_limits)
{
	pid_t pid = snapshot_start(0, 24 * MB);
	struct holdfast_checkpoint_client *c = snapshot_open();
	int64_t shape[] = { 4 * MB };
	struct loop *loop;
	struct snapshot_server *second;
	struct snapshot_server_ops ops = { snapshot_target, snapshot_told, NULL, 0 };
	struct err err = {0};

	OK(holdfast_checkpoint_begin(c, 1, 0, 1, 0, WHY));
	OK(holdfast_checkpoint_snapshot(c, "a", HOLDFAST_CHECKPOINT_F32, 1, shape,
	    snapshot_data, 16 * MB, WHY));
	IS(NO_MEMORY, holdfast_checkpoint_snapshot(c, "b", HOLDFAST_CHECKPOINT_F32, 1,
	    shape, snapshot_data, 16 * MB, WHY));
	ck_assert_msg(strstr(snapshot_why, "ulimit") != NULL, "%s", snapshot_why);
	/* What is there is there. */
	OK(holdfast_checkpoint_commit(c, WHY));
	OK(holdfast_checkpoint_wait(c, -1, WHY));
	/* More than any machine has. */
	OK(holdfast_checkpoint_reserve(c, (uint64_t)1 << 43, WHY));
	IS(NO_MEMORY, holdfast_checkpoint_begin(c, 2, 0, 1, 0, WHY));
	/* A second server stays away. */
	ck_assert_int_eq(loop_new(&loop, NULL), 0);
	ck_assert_int_eq(snapshot_server_new(loop, snapshot_socket, &ops, NULL, &second,
	    &err), -1);
	ck_assert_int_eq(err.code, ERR_BUSY);
	loop_free(loop);
	holdfast_checkpoint_close(c);
	snapshot_stop(pid);
}
END_TEST

/* Each byte and no other, wherever it lies and however many threads share the work. */
START_TEST(test_copy)
{
	static const size_t lengths[] = { 0, 1, 255, (256 << 10) + 63, 8 * MB - 1,
	    8 * MB, 9 * MB + 1, 17 * MB + 4097 };
	size_t room = 18 * MB, n, i, gap;
	uint8_t *from = malloc(room), *to = malloc(room);
	unsigned threads;

	ck_assert(from != NULL && to != NULL);
	for (i = 0; i < room; i++)
		from[i] = (uint8_t)(i % 251 + 1);
	for (n = 0; n < sizeof(lengths) / sizeof(lengths[0]); n++)
		for (threads = 0; threads <= SNAPSHOT_COPY_THREADS_MAX + 1;
		    threads += 3) {
			gap = 1 + n * 7 + threads;
			memset(to, 0, room);
			snapshot_copy(to + gap, from + n, lengths[n], threads);
			ck_assert_int_eq(memcmp(to + gap, from + n, lengths[n]), 0);
			ck_assert_uint_eq(to[gap - 1], 0);
			ck_assert_uint_eq(to[gap + lengths[n]], 0);
		}
	free(from);
	free(to);
}
END_TEST

static void
add(TCase *c)
{
	tcase_add_checked_fixture(c, snapshot_set_up, NULL);
	tcase_add_test(c, test_copy);
	tcase_add_test(c, test_one);
	tcase_add_test(c, test_wrong_calls);
	tcase_add_test(c, test_newest_wins);
	tcase_add_test(c, test_ranks);
	tcase_add_test(c, test_server_killed);
	tcase_add_test(c, test_client_killed);
	tcase_add_test(c, test_limits);
	tcase_set_timeout(c, 120);
}

int
main(void)
{
	return unit_run("checkpoint_snapshot", add);
}
