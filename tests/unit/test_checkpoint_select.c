/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_select.c - what select changes in layouts of their own kind, what it
 * leaves, and when undo refuses.  The common ones, killed and failing, are in
 * test_checkpoint_faults.c.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint_fixture.h"
#include "common/file.h"
#include "checkpoint/select.h"
#include "unit.h"

static char *top, *dir;
static struct checkpoints cs;
static struct select_plan plan;
static struct err err;

static void
set_up(void)
{
	top = fixture_dir();
	dir = fixture_path(top, "ckpt");
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	memset(&err, 0, sizeof(err));
}

static void
tear_down(void)
{
	select_fini(&plan);
	checkpoints_fini(&cs);
	free(dir);
	fixture_remove(top);
}

static void
file(const char *name, long step)
{
	char *path = fixture_path(dir, name);

	fixture_good(path, step);
	free(path);
}

/* A folder with one checkpoint file in it. */
static void
folder(const char *name, const char *inside, long step)
{
	char *path = fixture_path(dir, name), *in;

	(void)mkdir(path, 0700);
	in = fixture_path(path, inside);
	fixture_good(in, step);
	free(in);
	free(path);
}

static void
text(const char *name, const char *bytes)
{
	fixture_text(dir, name, bytes);
}

static bool
has(const char *name)
{
	return fixture_has(dir, name);
}

static void
expect_text(const char *name, const char *want)
{
	fixture_expect_text(dir, name, want);
}

static void
expect_link(const char *name, const char *want)
{
	char *path = fixture_path(dir, name), to[256] = "";

	ck_assert_int_gt(readlink(path, to, sizeof(to) - 1), 0);
	ck_assert_str_eq(to, want);
	free(path);
}

static void
lead(const char *link, const char *to)
{
	char *path = fixture_path(dir, link);

	(void)unlink(path);
	ck_assert_int_eq(symlink(to, path), 0);
	free(path);
}

static void
make_plan(int64_t step)
{
	bool member[32];

	select_fini(&plan);
	checkpoints_fini(&cs);
	ck_assert_int_eq(checkpoints_find(&cs, dir, 1, &err), 0);
	ck_assert_uint_le(cs.n, 32);
	ck_assert_uint_gt(select_members(&cs, dir, step, member), 0);
	ck_assert_msg(select_plan(&plan, dir, &cs, member, &err) == 0, "%s",
	    err.text);
}

static void
choose(int64_t step)
{
	make_plan(step);
	ck_assert_msg(select_apply(&plan, &err) == 0, "%s", err.text);
}

static int
undo(bool force)
{
	select_fini(&plan);
	memset(&err, 0, sizeof(err));
	return select_undo(&plan, dir, force, &err);
}

/* Some line about what was left speaks of this. */
static bool
left(const char *name)
{
	size_t i;

	for (i = 0; i < plan.left.n; i++)
		if (strncmp(plan.left.list[i], name, strlen(name)) == 0)
			return true;
	return false;
}

START_TEST(universal)
{
	folder("global_step10", "model.pt", 10);
	folder("global_step10_universal", "model.pt", 10);
	folder("global_step20", "model.pt", 20);
	folder("global_step20_universal", "model.pt", 20);
	text("latest", "global_step20");
	text("latest_universal", "global_step20_universal");
	choose(10);
	expect_text("latest", "global_step10");
	expect_text("latest_universal", "global_step10_universal");
	ck_assert(!has("global_step20") && !has("global_step20_universal"));
	ck_assert_int_eq(undo(false), 0);
	expect_text("latest", "global_step20");
	expect_text("latest_universal", "global_step20_universal");
	ck_assert(has("global_step20") && has("global_step20_universal"));
}
END_TEST

/* No universal one of the step: its tracker keeps what it gives, and says so. */
START_TEST(universal_of_the_newer_one_only)
{
	folder("global_step10", "model.pt", 10);
	folder("global_step20", "model.pt", 20);
	folder("global_step20_universal", "model.pt", 20);
	text("latest", "global_step20");
	text("latest_universal", "global_step20_universal");
	choose(10);
	expect_text("latest", "global_step10");
	expect_text("latest_universal", "global_step20_universal");
	ck_assert(has("global_step20_universal") && !has("global_step20"));
	ck_assert(left("latest_universal"));
}
END_TEST

/* One file a rank: each link goes to that of its own rank. */
START_TEST(ranks)
{
	file("ep0-ba10-rank0.pt", 10);
	file("ep0-ba10-rank1.pt", 10);
	file("ep0-ba20-rank0.pt", 20);
	file("ep0-ba20-rank1.pt", 20);
	lead("latest-rank0.pt", "ep0-ba20-rank0.pt");
	lead("latest-rank1.pt", "ep0-ba20-rank1.pt");
	choose(10);
	expect_link("latest-rank0.pt", "ep0-ba10-rank0.pt");
	expect_link("latest-rank1.pt", "ep0-ba10-rank1.pt");
	ck_assert(!has("ep0-ba20-rank0.pt") && !has("ep0-ba20-rank1.pt"));
	ck_assert_int_eq(undo(false), 0);
	expect_link("latest-rank1.pt", "ep0-ba20-rank1.pt");
}
END_TEST

START_TEST(shards)
{
	struct buf a = {0}, b = {0};
	char *path;

	file("checkpoint_1_10-shard0.pt", 10);
	file("checkpoint_1_10-shard1.pt", 10);
	file("checkpoint_1_20-shard0.pt", 20);
	file("checkpoint_1_20-shard1.pt", 20);
	file("checkpoint_last-shard0.pt", 20);
	file("checkpoint_last-shard1.pt", 20);
	/* so that they differ by more than their step */
	text("checkpoint_best.pt", "x");
	choose(10);
	path = fixture_path(dir, "checkpoint_last-shard1.pt");
	ck_assert_int_eq(file_read(path, 1 << 20, &a, NULL), 0);
	free(path);
	path = fixture_path(dir, "checkpoint_1_10-shard1.pt");
	ck_assert_int_eq(file_read(path, 1 << 20, &b, NULL), 0);
	free(path);
	ck_assert(a.len == b.len && memcmp(a.data, b.data, a.len) == 0);
	ck_assert(has("checkpoint_best.pt"));
	/* a copy of its own: the trainer writes into it */
	path = fixture_path(dir, "checkpoint_last-shard1.pt");
	fixture_write(path, "new", 3);
	free(path);
	buf_clear(&a);
	path = fixture_path(dir, "checkpoint_1_10-shard1.pt");
	ck_assert_int_eq(file_read(path, 1 << 20, &a, NULL), 0);
	free(path);
	ck_assert(a.len == b.len);
	buf_fini(&a);
	buf_fini(&b);
}
END_TEST

/* Trainers that find no tracker start from nothing. */
START_TEST(missing_tracker)
{
	folder("iter_0000010", "x.pt", 10);
	folder("iter_0000010/mp_rank_00", "model_optim_rng.pt", 10);
	folder("iter_0000020", "x.pt", 20);
	folder("iter_0000020/mp_rank_00", "model_optim_rng.pt", 20);
	choose(10);
	expect_text("latest_checkpointed_iteration.txt", "10");
	ck_assert_int_eq(undo(false), 0);
	ck_assert(!has("latest_checkpointed_iteration.txt"));
	ck_assert(has("iter_0000020"));
}
END_TEST

/* As NeMo lays one out; nothing in it. */
static void
nemo(const char *name)
{
	static const char *const below[] = { "", "/weights", "/context", NULL };
	char inside[128], *path;
	size_t i;

	for (i = 0; below[i] != NULL; i++) {
		snprintf(inside, sizeof(inside), "%s%s", name, below[i]);
		path = fixture_path(dir, inside);
		ck_assert_int_eq(mkdir(path, 0700), 0);
		free(path);
	}
}

/* NeMo resumes from what is called "-last", and from nothing when there is none. */
START_TEST(nemo_last)
{
	nemo("model-step=10");
	nemo("model-step=20-last");
	choose(10);
	expect_link("model-step=10-last", "model-step=10");
	ck_assert(!has("model-step=20-last"));
	ck_assert_int_eq(undo(false), 0);
	ck_assert(!has("model-step=10-last") && has("model-step=20-last"));
	/* it made such a link itself: that one is turned */
	choose(10);
	choose(10);
	ck_assert_uint_eq(plan.n, 0);
	ck_assert_int_eq(undo(false), 0);
	nemo("model-step=20");
	lead("model-last", "model-step=20");
	choose(10);
	expect_link("model-last", "model-step=10");
	ck_assert(!has("model-step=10-last"));
}
END_TEST

/* "NAME-unfinished" goes after what it speaks of, and comes back before it. */
START_TEST(unfinished_marker)
{
	nemo("model-step=10");
	nemo("model-step=20");
	text("model-step=20-unfinished", "");
	choose(10);
	ck_assert(!has("model-step=20") && !has("model-step=20-unfinished"));
	ck_assert_int_eq(undo(false), 0);
	ck_assert(has("model-step=20") && has("model-step=20-unfinished"));
	/* forced: the marker of the selected one goes, too */
	text("model-step=10-unfinished", "");
	choose(10);
	ck_assert(has("model-step=10") && !has("model-step=10-unfinished"));
	ck_assert_int_eq(undo(false), 0);
	ck_assert(has("model-step=10-unfinished"));
}
END_TEST

/* A name without a step is nobody's "latest", whatever the file holds. */
START_TEST(best_stays)
{
	file("step_10.pt", 10);
	file("step_20.pt", 20);
	file("best.pt", 20);
	choose(10);
	ck_assert(has("best.pt") && !has("step_20.pt"));
	ck_assert(left("best.pt"));
}
END_TEST

/* An epoch in the name, updates in the file; a torn one tells its name alone. */
START_TEST(torn_newer_one)
{
	char *path = fixture_path(dir, "checkpoint_4.pt");

	file("checkpoint_3.pt", 5000);
	file("checkpoint_4.pt", 6000);
	ck_assert_int_eq(truncate(path, 100), 0);
	choose(5000);
	ck_assert(has("checkpoint_3.pt") && !has("checkpoint_4.pt"));
	free(path);
}
END_TEST

START_TEST(nothing_to_do)
{
	file("step_10.pt", 10);
	file("step_20.pt", 20);
	text("latest.json", "{\"file\":\"step_20.pt\",\"step\":20}");
	choose(20);
	ck_assert_uint_eq(plan.n, 0);
	ck_assert_ptr_null(plan.entry);
	ck_assert_int_eq(undo(false), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "nothing to undo"));
	/* names that could not be put back are refused before anything changes */
	file("step_30\xff.pt", 30);
	make_plan(20);
	ck_assert_int_eq(select_apply(&plan, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "UTF-8"));
	ck_assert(has("step_30\xff.pt"));
}
END_TEST

/* The trainer has gone on: undo would throw that away. */
START_TEST(undo_refused)
{
	file("step_10.pt", 10);
	file("step_20.pt", 20);
	text("latest.json", "{\"file\":\"step_20.pt\"}");
	choose(10);
	text("latest.json", "{\"file\":\"step_15.pt\"}");
	ck_assert_int_eq(undo(false), -1);
	ck_assert_int_eq(err.code, ERR_BUSY);
	expect_text("latest.json", "{\"file\":\"step_15.pt\"}");
	ck_assert(!has("step_20.pt"));
	/* what it wrote under the same name stays, also by force */
	file("step_20.pt", 20);
	ck_assert_int_eq(undo(true), -1);
	ck_assert_int_eq(err.code, ERR_BUSY);
	char *path = fixture_path(dir, "step_20.pt");
	unlink(path);
	free(path);
	ck_assert_msg(undo(true) == 0, "%s", err.text);
	expect_text("latest.json", "{\"file\":\"step_20.pt\"}");
	ck_assert(has("step_20.pt"));
}
END_TEST

START_TEST(undo_of_a_written_copy)
{
	file("step=10.ckpt", 10);
	file("step=20.ckpt", 20);
	file("last.ckpt", 20);
	choose(10);
	/* a save of the trainer: temporary file, rename */
	file("x", 15);
	char *from = fixture_path(dir, "x"), *to = fixture_path(dir, "last.ckpt");
	ck_assert_int_eq(rename(from, to), 0);
	ck_assert_int_eq(undo(true), -1);
	ck_assert_int_eq(err.code, ERR_BUSY);
	ck_assert(has("last.ckpt"));
	free(from);
	free(to);
}
END_TEST

/* A journal that names what is outside is refused. */
START_TEST(hostile_journal)
{
	static const char *const names[] = { "../x", "/etc/x", "a/../../x", "", "..",
	    NULL };
	char *path, *victim = fixture_path(top, "x"), line[256];
	size_t i;

	path = fixture_path(top, "ckpt.aside");
	ck_assert_int_eq(mkdir(path, 0700), 0);
	free(path);
	path = fixture_path(top, "ckpt.aside/0001");
	ck_assert_int_eq(mkdir(path, 0700), 0);
	free(path);
	path = fixture_path(top, "ckpt.aside/0001/select.json");
	fixture_write(victim, "x", 1);
	for (i = 0; names[i] != NULL; i++) {
		snprintf(line, sizeof(line), "{\"schema\":\"holdfast.select/1\","
		    "\"name\":\"a\",\"step\":1,\"changes\":[{\"kind\":\"link\","
		    "\"name\":\"%s\"}]}", names[i]);
		fixture_write(path, line, strlen(line));
		ck_assert_msg(undo(true) == -1, "%s", names[i]);
		ck_assert_int_eq(access(victim, F_OK), 0);
	}
	fixture_write(path, "{}", 2);
	ck_assert_int_eq(undo(true), -1);
	fixture_write(path, "{", 1);
	ck_assert_int_eq(undo(true), -1);
	free(path);
	free(victim);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, universal);
	tcase_add_test(t, universal_of_the_newer_one_only);
	tcase_add_test(t, ranks);
	tcase_add_test(t, shards);
	tcase_add_test(t, missing_tracker);
	tcase_add_test(t, nemo_last);
	tcase_add_test(t, unfinished_marker);
	tcase_add_test(t, best_stays);
	tcase_add_test(t, torn_newer_one);
	tcase_add_test(t, nothing_to_do);
	tcase_add_test(t, undo_refused);
	tcase_add_test(t, undo_of_a_written_copy);
	tcase_add_test(t, hostile_journal);
}

int
main(void)
{
	return unit_run("checkpoint_select", add_tests);
}
