/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_quarantine.c - moving checkpoints out of the save directory and back,
 * and everything that can be in the way.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint_fixture.h"
#include "checkpoint/beside.h"
#include "checkpoint/quarantine.h"
#include "unit.h"

static char *top, *dir, *aside;	/* top/ckpt, top/ckpt.quarantine */
static struct err err;

static void
set_up(void)
{
	top = fixture_dir();
	dir = fixture_path(top, "ckpt");
	aside = fixture_path(top, "ckpt.quarantine");
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	memset(&err, 0, sizeof(err));
}

static void
tear_down(void)
{
	free(dir);
	free(aside);
	fixture_remove(top);
}

/* A checkpoint of the directory, cut to its half, looked at and checked. */
static void
broken(struct checkpoint *c, const char *name)
{
	char *path = fixture_path(dir, name);
	struct stat st;

	fixture_good(path, 20);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(truncate(path, st.st_size / 2), 0);
	fixture_check(c, path, false);
	free(path);
}

/* Moves it; "" when refused, otherwise its name in the quarantine. */
static const char *
move(const struct checkpoint *c)
{
	static char name[256];
	char *to = NULL;

	name[0] = '\0';
	memset(&err, 0, sizeof(err));
	if (quarantine_move(dir, c, &to, &err) == 0) {
		ck_assert_int_eq(access(to, F_OK), 0);
		ck_assert_int_ne(access(c->path, F_OK), 0);
		snprintf(name, sizeof(name), "%s", strrchr(to, '/') + 1);
	} else {
		ck_assert_int_ne(err.code, ERR_NONE);
		ck_assert(to == NULL);
	}
	free(to);
	return name;
}

static int
undo(const char *name)
{
	char *path = fixture_path(aside, name), *to = NULL;
	int rc;

	memset(&err, 0, sizeof(err));
	rc = quarantine_undo(path, &to, &err);
	free(to);
	free(path);
	return rc;
}

static void
count_entry(void *arg, const char *path, const char *line)
{
	ck_assert_int_eq(access(path, F_OK), 0);
	ck_assert_ptr_nonnull(strstr(line, "holdfast.quarantine/1"));
	++*(int *)arg;
}

static int
listed(void)
{
	int n = 0;

	ck_assert_int_eq(quarantine_list(dir, count_entry, &n, &err), 0);
	return n;
}

START_TEST(there_and_back)
{
	struct checkpoint a, b;

	ck_assert_int_eq(listed(), 0);
	broken(&a, "step_20.pt");
	ck_assert_str_eq(move(&a), "step_20.pt");
	/* another one of that name has room beside it */
	broken(&b, "step_20.pt");
	ck_assert_str_eq(move(&b), "step_20.pt.2");
	ck_assert_int_eq(listed(), 2);
	ck_assert_int_eq(undo("step_20.pt"), 0);
	ck_assert(fixture_has(dir, "step_20.pt"));
	/* its place is taken now */
	ck_assert_int_eq(undo("step_20.pt.2"), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "exists again"));
	ck_assert(fixture_has(aside, "step_20.pt.2"));
	ck_assert_int_eq(listed(), 1);
	checkpoint_fini(&a);
	checkpoint_fini(&b);
}
END_TEST

/* What no reason file speaks of does not come back by name alone. */
START_TEST(undo_of_others)
{
	struct checkpoint c;
	char *path, *to;

	broken(&c, "step_20.pt");
	ck_assert_int_eq(quarantine_undo(c.path, &to, &err), -1);
	ck_assert_str_eq(move(&c), "step_20.pt");
	ck_assert_int_eq(undo("step_30.pt"), -1);
	ck_assert_int_eq(undo(".."), -1);
	path = fixture_path(aside, "step_20.pt.json");
	fixture_write(path, "{}", 2);
	ck_assert_int_eq(undo("step_20.pt"), -1);
	fixture_write(path, "{\"schema\":\"holdfast.quarantine/1\"}", 34);
	ck_assert_int_eq(undo("step_20.pt"), -1);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(undo("step_20.pt"), -1);
	ck_assert(fixture_has(aside, "step_20.pt"));
	free(path);
	checkpoint_fini(&c);
}
END_TEST

/* The same name holds something else now: written again, replaced, gone. */
START_TEST(changed_underneath)
{
	struct checkpoint c;

	broken(&c, "step_20.pt");
	fixture_good(c.path, 21);
	ck_assert_str_eq(move(&c), "");
	ck_assert_ptr_nonnull(strstr(err.text, "changed since"));
	ck_assert(fixture_has(dir, "step_20.pt"));
	ck_assert_int_eq(unlink(c.path), 0);
	ck_assert_str_eq(move(&c), "");
	ck_assert_int_eq(mkdir(c.path, 0700), 0);
	ck_assert_str_eq(move(&c), "");
	ck_assert(fixture_has(dir, "step_20.pt"));
	ck_assert(!fixture_has(top, "ckpt.quarantine"));
	checkpoint_fini(&c);
}
END_TEST

START_TEST(save_directory_gone)
{
	char *away = fixture_path(top, "away");
	struct checkpoint c;

	broken(&c, "step_20.pt");
	ck_assert_int_eq(rename(dir, away), 0);
	ck_assert_str_eq(move(&c), "");
	/* an empty one in its place */
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	ck_assert_str_eq(move(&c), "");
	ck_assert(fixture_has(away, "step_20.pt"));
	ck_assert(!fixture_has(top, "ckpt.quarantine"));
	checkpoint_fini(&c);
	free(away);
}
END_TEST

START_TEST(in_the_way)
{
	struct checkpoint c;

	broken(&c, "step_20.pt");
	fixture_write(aside, "x", 1);
	ck_assert_str_eq(move(&c), "");
	ck_assert_ptr_nonnull(strstr(err.text, "in the way"));
	ck_assert_int_eq(unlink(aside), 0);
	/* a link could lead anywhere */
	ck_assert_int_eq(symlink("/tmp", aside), 0);
	ck_assert_str_eq(move(&c), "");
	ck_assert(fixture_has(dir, "step_20.pt"));
	ck_assert_int_eq(unlink(aside), 0);
	ck_assert_str_eq(move(&c), "step_20.pt");
	checkpoint_fini(&c);
}
END_TEST

/* A save directory reached through a link has its quarantine beside the real one. */
START_TEST(through_a_link)
{
	char *link = fixture_path(top, "link"), *path, *to;
	struct checkpoint c;

	broken(&c, "step_20.pt");
	checkpoint_fini(&c);
	ck_assert_int_eq(symlink("ckpt", link), 0);
	path = fixture_path(link, "step_20.pt");
	fixture_check(&c, path, false);
	ck_assert_int_eq(quarantine_move(link, &c, &to, &err), 0);
	free(to);
	ck_assert(fixture_has(aside, "step_20.pt"));
	ck_assert_int_eq(undo("step_20.pt"), 0);
	ck_assert(fixture_has(dir, "step_20.pt"));
	checkpoint_fini(&c);
	free(path);
	free(link);
}
END_TEST

/* What lies beside a checkpoint and speaks of it goes with it, and comes back. */
START_TEST(companions)
{
	char *marker = fixture_path(dir, "step_20.pt-unfinished");
	char *manifest = fixture_path(dir, ".step_20.pt.holdfast-manifest.json");
	struct checkpoint c;

	broken(&c, "step_20.pt");
	fixture_write(marker, "", 0);
	fixture_write(manifest, "{}", 2);
	ck_assert_str_eq(move(&c), "step_20.pt");
	ck_assert(!fixture_has(dir, "step_20.pt-unfinished"));
	ck_assert(!fixture_has(dir, ".step_20.pt.holdfast-manifest.json"));
	ck_assert_int_eq(listed(), 1);
	ck_assert_int_eq(undo("step_20.pt"), 0);
	ck_assert(fixture_has(dir, "step_20.pt-unfinished"));
	ck_assert(fixture_has(dir, ".step_20.pt.holdfast-manifest.json"));
	free(marker);
	free(manifest);
	checkpoint_fini(&c);
}
END_TEST

START_TEST(odd_names)
{
	static const char *const names[] = { "step 20.pt", "step_20\nx.pt",
	    "-rf.pt", "step_20.pt.json", "%s%n.pt", NULL };
	struct checkpoint c;
	size_t i;

	for (i = 0; names[i] != NULL; i++) {
		broken(&c, names[i]);
		ck_assert_str_eq(move(&c), names[i]);
		ck_assert_msg(undo(names[i]) == 0, "%s: %s", names[i], err.text);
		ck_assert(fixture_has(dir, names[i]));
		checkpoint_fini(&c);
	}
	/* bytes that the reason file cannot hold: undo leaves that to a person */
	broken(&c, "step_20\xff.pt");
	ck_assert_str_eq(move(&c), "step_20\xff.pt");
	ck_assert_int_eq(undo("step_20\xff.pt"), -1);
	ck_assert(fixture_has(aside, "step_20\xff.pt"));
	checkpoint_fini(&c);
}
END_TEST

/* /proc is another file system: nothing is created there, nothing moves. */
START_TEST(another_file_system)
{
	struct stat a, b;

	ck_assert_int_eq(stat("/proc", &a), 0);
	ck_assert_int_eq(stat(top, &b), 0);
	ck_assert(a.st_dev != b.st_dev);
	ck_assert_int_eq(beside_make("/proc", aside, &err), -1);
	ck_assert_int_eq(err.errnum, EXDEV);
	ck_assert_ptr_nonnull(strstr(err.text, "subdirectory of the mount"));
	ck_assert(!fixture_has(top, "ckpt.quarantine"));
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, there_and_back);
	tcase_add_test(t, undo_of_others);
	tcase_add_test(t, changed_underneath);
	tcase_add_test(t, save_directory_gone);
	tcase_add_test(t, in_the_way);
	tcase_add_test(t, through_a_link);
	tcase_add_test(t, companions);
	tcase_add_test(t, odd_names);
	tcase_add_test(t, another_file_system);
}

int
main(void)
{
	return unit_run("checkpoint_quarantine", add_tests);
}
