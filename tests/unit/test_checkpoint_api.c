/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_api.c - holdfast-checkpoint.h without snapshots: what a program that
 * links the library is told.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint_fixture.h"
#include "unit.h"

static char *dir, why[300];

static void
set_up(void)
{
	dir = fixture_dir();
	why[0] = '\0';
}

static void
tear_down(void)
{
	fixture_remove(dir);
}

static void
add(const char *name, long step, bool whole)
{
	char *path = fixture_path(dir, name);
	struct stat st;

	fixture_good(path, step);
	ck_assert_int_eq(stat(path, &st), 0);
	if (!whole)
		ck_assert_int_eq(truncate(path, st.st_size / 2), 0);
	free(path);
}

/* Turns a bit over in the last byte of tensor data: 1.0f ends in 0x3f. */
static void
flip(const char *name)
{
	char *path = fixture_path(dir, name), *data, *at = NULL, *p;
	size_t len;

	data = (char *)(uintptr_t)unit_read(path, &len);
	for (p = data; p + 4 <= data + len; p++)
		if (memcmp(p, "\0\0\x80\x3f", 4) == 0)
			at = p;
	ck_assert_ptr_nonnull(at);
	at[2] ^= 1;
	unit_write(path, data, len);
	free(path);
}

static struct holdfast_checkpoint_report *
verify(const char *name, const struct holdfast_checkpoint_options *o)
{
	struct holdfast_checkpoint_report *r;
	char *path = fixture_path(dir, name);

	ck_assert_int_eq(holdfast_checkpoint_verify(path, o, &r, why,
	    sizeof(why)), 0);
	ck_assert_str_eq(r->path, path);
	free(path);
	return r;
}

START_TEST(test_names)
{
	ck_assert_str_eq(holdfast_checkpoint_state_name(
	    HOLDFAST_CHECKPOINT_VALID), "valid");
	ck_assert_str_eq(holdfast_checkpoint_state_name(
	    HOLDFAST_CHECKPOINT_CORRUPT), "corrupt");
	holdfast_checkpoint_report_free(NULL);
	holdfast_checkpoint_list_free(NULL);
	holdfast_checkpoint_close(NULL);
}
END_TEST

START_TEST(test_verify)
{
	struct holdfast_checkpoint_options structure =
	    HOLDFAST_CHECKPOINT_OPTIONS_INIT;
	struct holdfast_checkpoint_report *r;

	structure.structure_only = 1;
	add("step00000007.pt", 7, true);
	r = verify("step00000007.pt", NULL);
	ck_assert_int_eq(r->state, HOLDFAST_CHECKPOINT_VALID);
	ck_assert_ptr_null(r->reason);
	ck_assert_str_eq(r->format, "torch_zip");
	ck_assert_int_eq(r->step, 7);
	ck_assert_int_gt(r->size_bytes, 0);
	ck_assert_int_gt(r->mtime_ns, 0);
	holdfast_checkpoint_report_free(r);

	add("step00000008.pt", 8, false);
	r = verify("step00000008.pt", NULL);
	ck_assert_int_eq(r->state, HOLDFAST_CHECKPOINT_INCOMPLETE);
	ck_assert_int_gt(strlen(r->reason), 0);
	holdfast_checkpoint_report_free(r);
	/* The contents are looked at unless that is not wanted. */
	flip("step00000007.pt");
	r = verify("step00000007.pt", NULL);
	ck_assert_int_eq(r->state, HOLDFAST_CHECKPOINT_CORRUPT);
	holdfast_checkpoint_report_free(r);
	r = verify("step00000007.pt", &structure);
	ck_assert_int_eq(r->state, HOLDFAST_CHECKPOINT_VALID);
	holdfast_checkpoint_report_free(r);
	r = verify("absent.pt", NULL);
	ck_assert_int_eq(r->state, HOLDFAST_CHECKPOINT_UNREADABLE);
	holdfast_checkpoint_report_free(r);
}
END_TEST

/* A folder that is no checkpoint is no broken one; the error may be left out. */
START_TEST(test_verify_other)
{
	struct holdfast_checkpoint_report *r;

	fixture_text(dir, "notes", "x");
	ck_assert_int_eq(holdfast_checkpoint_verify(dir, NULL, &r, why,
	    sizeof(why)), -1);
	ck_assert_ptr_null(r);
	ck_assert_int_gt(strlen(why), 0);
	ck_assert_int_eq(holdfast_checkpoint_verify(dir, NULL, &r, NULL, 0), -1);
	why[1] = 'x';
	ck_assert_int_eq(holdfast_checkpoint_verify(dir, NULL, &r, why, 1), -1);
	ck_assert_int_eq(why[0], '\0');
	ck_assert_int_eq(why[1], 'x');
}
END_TEST

START_TEST(test_latest)
{
	struct holdfast_checkpoint_options before =
	    HOLDFAST_CHECKPOINT_OPTIONS_INIT;
	struct holdfast_checkpoint_list *list;

	add("step00000005.pt", 5, true);
	add("step00000006.pt", 6, true);
	add("step00000007.pt", 7, false);
	add("step00000008.pt", 8, false);
	ck_assert_int_eq(holdfast_checkpoint_latest(dir, NULL, &list, why,
	    sizeof(why)), 0);
	ck_assert_int_eq(list->found, 1);
	ck_assert_uint_eq(list->n_reports, 3);
	ck_assert_int_eq(list->reports[0].step, 6);
	ck_assert_int_eq(list->reports[0].state, HOLDFAST_CHECKPOINT_VALID);
	ck_assert_int_eq(list->reports[1].step, 8);
	ck_assert_int_eq(list->reports[2].step, 7);
	ck_assert_int_eq(list->reports[2].state,
	    HOLDFAST_CHECKPOINT_INCOMPLETE);
	ck_assert_ptr_nonnull(list->reports[2].reason);
	holdfast_checkpoint_list_free(list);

	before.before_step = 6;
	ck_assert_int_eq(holdfast_checkpoint_latest(dir, &before, &list, why,
	    sizeof(why)), 0);
	ck_assert_int_eq(list->reports[0].step, 5);
	holdfast_checkpoint_list_free(list);
	before.before_step = 5;
	ck_assert_int_eq(holdfast_checkpoint_latest(dir, &before, &list, why,
	    sizeof(why)), 0);
	ck_assert_int_eq(list->found, 0);
	holdfast_checkpoint_list_free(list);
	ck_assert_int_eq(holdfast_checkpoint_latest("/nonexistent", NULL, &list,
	    why, sizeof(why)), -1);
	ck_assert_ptr_null(list);
	ck_assert_int_gt(strlen(why), 0);
}
END_TEST

START_TEST(test_latest_valid)
{
	char path[300];
	int64_t step = 0;

	ck_assert_int_eq(holdfast_checkpoint_latest_valid(dir, path,
	    sizeof(path), &step, why, sizeof(why)), 0);
	ck_assert_str_eq(why, "no checkpoint in the directory");
	add("step00000007.pt", 7, false);
	ck_assert_int_eq(holdfast_checkpoint_latest_valid(dir, path,
	    sizeof(path), &step, why, sizeof(why)), 0);
	ck_assert_int_ne(strcmp(why, "no checkpoint in the directory"), 0);
	add("step00000005.pt", 5, true);
	ck_assert_int_eq(holdfast_checkpoint_latest_valid(dir, path,
	    sizeof(path), &step, why, sizeof(why)), 1);
	ck_assert_int_eq(step, 5);
	ck_assert_ptr_nonnull(strstr(path, "/step00000005.pt"));
	ck_assert_int_eq(holdfast_checkpoint_latest_valid(dir, path,
	    strlen(path), NULL, why, sizeof(why)), -1);
	ck_assert_str_eq(why, "the path is too long");
	ck_assert_int_eq(holdfast_checkpoint_latest_valid("/nonexistent", path,
	    sizeof(path), NULL, NULL, 0), -1);
}
END_TEST

/* The folder that several ranks' snapshots become. */
START_TEST(test_snapshot_folder)
{
	static const struct {
		const char	*names[4];
		long		 steps[4];
		int		 want;
		const char	*reason;
	} rows[] = {
		{ { "rank-00000-of-00002.pt", "rank-00001-of-00002.pt" }, { 9, 9 },
		    HOLDFAST_CHECKPOINT_VALID, NULL },
		{ { "rank-00000-of-00001.pt", "notes.pt" }, { 9, 9 },
		    HOLDFAST_CHECKPOINT_VALID, NULL },
		{ { "rank-00000-of-00002.pt" }, { 9 },
		    HOLDFAST_CHECKPOINT_INCOMPLETE, "rank-00001-of-00002.pt" },
		{ { "rank-00001-of-00002.pt" }, { 9 },
		    HOLDFAST_CHECKPOINT_INCOMPLETE, "rank-00000-of-00002.pt" },
		{ { "rank-00000-of-00003.pt", "rank-00002-of-00003.pt" }, { 9, 9 },
		    HOLDFAST_CHECKPOINT_INCOMPLETE, "rank-00001-of-00003.pt" },
		{ { "rank-00000-of-00001.pt", "rank-00001-of-00002.pt" }, { 9, 9 },
		    HOLDFAST_CHECKPOINT_INCOMPLETE, "of 1 ranks and of 2" },
		{ { "rank-00000-of-00002.pt", "rank-00001-of-00002.pt" }, { 9, 8 },
		    HOLDFAST_CHECKPOINT_INCOMPLETE, "8" },
	};
	size_t i, k;
	char name[40], text[300];

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *sub, *path;

		snprintf(name, sizeof(name), "step%08zu/", i);
		sub = fixture_path(dir, name);
		fixture_mkdirs(sub);
		for (k = 0; k < 4 && rows[i].names[k] != NULL; k++) {
			path = fixture_path(sub, rows[i].names[k]);
			fixture_good(path, rows[i].steps[k]);
			free(path);
		}
		ck_assert_msg((int)fixture_state(sub, text, sizeof(text)) ==
		    rows[i].want, "row %zu: %s", i, text);
		if (rows[i].reason != NULL)
			ck_assert_msg(strstr(text, rows[i].reason) != NULL,
			    "row %zu: %s", i, text);
		free(sub);
	}
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, test_names);
	tcase_add_test(t, test_verify);
	tcase_add_test(t, test_verify_other);
	tcase_add_test(t, test_latest);
	tcase_add_test(t, test_latest_valid);
	tcase_add_test(t, test_snapshot_folder);
}

int
main(void)
{
	return unit_run("checkpoint_api", add_tests);
}
