/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_tracker.c - what trackers say, what can be said in them, and those
 * that name nothing.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint_fixture.h"
#include "common/file.h"
#include "checkpoint/quarantine.h"
#include "checkpoint/tracker.h"
#include "unit.h"

static char *top, *dir;

static void
set_up(void)
{
	top = fixture_dir();
	dir = fixture_path(top, "ckpt");
	ck_assert_int_eq(mkdir(dir, 0700), 0);
}

static void
tear_down(void)
{
	free(dir);
	fixture_remove(top);
}

static void
text(const char *name, const char *bytes)
{
	fixture_text(dir, name, bytes);
}

static void
folder(const char *name)
{
	char *path = fixture_path(dir, name);

	ck_assert_int_eq(mkdir(path, 0700), 0);
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
expect_text(const char *name, const char *want)
{
	fixture_expect_text(dir, name, want);
}

/* What the only tracker of the directory gives; NULL when there is none. */
static const char *
given(enum tracker_kind *kind)
{
	static char target[256];
	struct trackers ts;
	bool any;

	ck_assert_int_eq(trackers_read(&ts, dir, NULL), 0);
	any = ts.n == 1;
	if (any) {
		snprintf(target, sizeof(target), "%s", ts.list[0].target);
		*kind = ts.list[0].kind;
	}
	ck_assert_uint_le(ts.n, 1);
	trackers_fini(&ts);
	return any ? target : NULL;
}

START_TEST(texts)
{
	static const struct {
		const char	*file, *text, *target;
	} rows[] = {
		{ "latest.json", "{\"file\":\"step_20.pt\",\"step\":20}", "step_20.pt" },
		{ "latest.json", "{\"file\":\"/ckpt/a/step_20.pt\"}", "step_20.pt" },
		{ "latest.json", "", "" },
		{ "latest.json", "{\"file\":\"st", "" },
		{ "latest.json", "{\"other\":1}", NULL },
		{ "latest_checkpointed_iteration.txt", "20\n", "iter_0000020" },
		{ "latest_checkpointed_iteration.txt", "30", "global_step_30" },
		{ "latest_checkpointed_iteration.txt", "release", "release" },
		{ "latest_checkpointed_iteration.txt", "", "" },
		{ "latest_checkpointed_iteration.txt", "20x", "" },
		{ "latest_checkpointed_iteration.txt",
		    "99999999999999999999999", "" },
		{ "dlrover_latest.txt", "40", "checkpoint-40" },
		{ "latest", "global_step20", "global_step20" },
		{ "latest", " global_step20 \n", "global_step20" },
		{ "latest", "../elsewhere", NULL },
		{ "latest_universal", "global_step20_universal",
		    "global_step20_universal" },
		{ "latest.txt", "global_step20", NULL },
		{ "LATEST", "global_step20", NULL }
	};
	enum tracker_kind kind;
	const char *target;
	char *path;
	size_t i;

	folder("global_step_30");
	folder("checkpoint-40");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		text(rows[i].file, rows[i].text);
		target = given(&kind);
		if (rows[i].target == NULL)
			ck_assert_msg(target == NULL, "%zu: %s", i, target);
		else
			ck_assert_msg(target != NULL && kind == TRACKER_TEXT &&
			    strcmp(target, rows[i].target) == 0, "%zu: %s", i,
			    target);
		path = fixture_path(dir, rows[i].file);
		ck_assert_int_eq(unlink(path), 0);
		free(path);
	}
}
END_TEST

START_TEST(links)
{
	char *absolute = fixture_path(dir, "step_20.pt");
	enum tracker_kind kind;

	lead("last.ckpt", "step_20.pt");
	ck_assert_str_eq(given(&kind), "step_20.pt");
	ck_assert_int_eq(kind, TRACKER_LINK);
	lead("last.ckpt", "./step_20.pt");
	ck_assert_str_eq(given(&kind), "step_20.pt");
	lead("last.ckpt", absolute);
	ck_assert_str_eq(given(&kind), "step_20.pt");
	/* leads elsewhere: not ours to judge */
	lead("last.ckpt", "/nowhere/step_20.pt");
	ck_assert(given(&kind) == NULL);
	lead("last.ckpt", "..");
	ck_assert_str_eq(given(&kind), "..");
	free(absolute);
}
END_TEST

START_TEST(links_by_name)
{
	static const char *const yes[] = { "LATEST", "latest-rank0.pt",
	    "model-step=20-last", "checkpoint_last.pt", NULL };
	static const char *const no[] = { "best.ckpt", "step_10.pt", "blast", NULL };
	enum tracker_kind kind;
	char *path;
	size_t i;

	for (i = 0; yes[i] != NULL; i++) {
		lead(yes[i], "step_20.pt");
		ck_assert_msg(given(&kind) != NULL, "%s", yes[i]);
		path = fixture_path(dir, yes[i]);
		unlink(path);
		free(path);
	}
	for (i = 0; no[i] != NULL; i++) {
		lead(no[i], "step_20.pt");
		ck_assert_msg(given(&kind) == NULL, "%s", no[i]);
	}
}
END_TEST

START_TEST(copies)
{
	static const char *const yes[] = { "last.ckpt", "last-v1.ckpt", "last.pt",
	    "checkpoint_last.pt", "checkpoint_last-shard1.pt",
	    "checkpoint_last-model_part-0-shard3.pt", "latest_train_state.pt", NULL };
	static const char *const no[] = { "checkpoint_1_500.pt", "step_10.pt",
	    "best.pt", "last_10.pt", "checkpoint-10", NULL };
	size_t i;

	for (i = 0; yes[i] != NULL; i++)
		ck_assert_msg(tracker_is_copy(yes[i]), "%s", yes[i]);
	for (i = 0; no[i] != NULL; i++)
		ck_assert_msg(!tracker_is_copy(no[i]), "%s", no[i]);
}
END_TEST

/* What can be said in which. */
START_TEST(values)
{
	static const struct {
		const char	*file, *name;
		int64_t		 step;
		const char	*want;
	} rows[] = {
		{ "latest", "global_step10", 10, "global_step10" },
		{ "latest_universal", "global_step10_universal", 10,
		    "global_step10_universal" },
		{ "latest_universal", "global_step10", 10, NULL },
		{ "latest_checkpointed_iteration.txt", "iter_0000010", 10, "10" },
		/* by its name, whatever the files count */
		{ "latest_checkpointed_iteration.txt", "iter_0000010", 9, "10" },
		{ "latest_checkpointed_iteration.txt", "global_step_10", 10, "10" },
		{ "latest_checkpointed_iteration.txt", "step_10.pt", 10, NULL },
		{ "latest_checkpointed_iteration.txt", "iter_10", 10, NULL },
		{ "dlrover_latest.txt", "checkpoint-10", 10, "10" },
		{ "latest.json", "step_10.pt", 10,
		    "{\"file\":\"step_10.pt\",\"step\":10}\n" }
	};
	struct tracker t = { .kind = TRACKER_TEXT };
	struct buf b = {0};
	char file[64];
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(file, sizeof(file), "%s", rows[i].file);
		t.file = file;
		buf_clear(&b);
		if (tracker_text(&t, rows[i].name, rows[i].step, &b) == -1)
			ck_assert_msg(rows[i].want == NULL, "%zu", i);
		else
			ck_assert_msg(rows[i].want != NULL &&
			    strcmp(b.data, rows[i].want) == 0, "%zu: %s", i,
			    b.data);
	}
	buf_fini(&b);
}
END_TEST

START_TEST(repair)
{
	char *link = fixture_path(dir, "last.pt"), *keep;
	char target[64] = "";
	struct names changed = {0};
	struct err err = {0};

	text("step_10.pt", "x");
	ck_assert_ptr_nonnull(keep = quarantine_dir(dir, &err));
	ck_assert_int_eq(mkdir(keep, 0700), 0);
	text("latest.json", "{\"file\":\"step_20.pt\",\"step\":20,\"x\":1}");
	text("latest", "step_20.pt\n");
	text("latest_checkpointed_iteration.txt", "20\n");
	lead("last.pt", "step_20.pt");
	ck_assert_int_eq(tracker_repair(dir, "step_10.pt", 10, keep, &changed,
	    &err), 0);
	expect_text("latest.json", "{\"x\":1,\"file\":\"step_10.pt\",\"step\":10}\n");
	expect_text("latest", "step_10.pt");
	/* a Megatron tracker cannot name step_10.pt */
	expect_text("latest_checkpointed_iteration.txt", "20\n");
	ck_assert_int_eq(readlink(link, target, sizeof(target) - 1), 10);
	ck_assert_str_eq(target, "step_10.pt");
	ck_assert_uint_eq(changed.n, 3);
	names_fini(&changed);
	/* trackers that point to something are left alone */
	text("latest", "step_10.pt");
	ck_assert_int_eq(tracker_repair(dir, "step_5.pt", 5, keep, &changed,
	    &err), 0);
	ck_assert_uint_eq(changed.n, 0);
	names_fini(&changed);
	folder("iter_0000010");
	ck_assert_int_eq(tracker_repair(dir, "iter_0000010", 10, keep, &changed,
	    &err), 0);
	expect_text("latest_checkpointed_iteration.txt", "10");
	/* an empty one too */
	text("latest_checkpointed_iteration.txt", "");
	ck_assert_int_eq(tracker_repair(dir, "iter_0000010", 10, keep, NULL,
	    &err), 0);
	expect_text("latest_checkpointed_iteration.txt", "10");
	names_fini(&changed);
	free(link);
	free(keep);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, texts);
	tcase_add_test(t, links);
	tcase_add_test(t, links_by_name);
	tcase_add_test(t, copies);
	tcase_add_test(t, values);
	tcase_add_test(t, repair);
}

int
main(void)
{
	return unit_run("checkpoint_tracker", add_tests);
}
