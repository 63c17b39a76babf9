/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_stage_room.c - how much may still be written to memory, and the link
 * that a trainer saves through.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint_fixture.h"
#include "checkpoint/stage_room.h"
#include "unit.h"

static void
put(const char *dir, const char *name, const char *text)
{
	unit_write(unit_path(dir, name), text, strlen(text));
}

/* The least of a group's limits counts, file pages do not. */
START_TEST(room_below_limits)
{
	static const char *const dirs[] = { "proc", "proc/self", "sys", "sys/fs",
	    "sys/fs/cgroup", "sys/fs/cgroup/a", "sys/fs/cgroup/a/b" };
	const char *root = unit_dir();
	size_t i;

	ck_assert_uint_eq(room_of_cgroup(root), ROOM_UNKNOWN);
	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		ck_assert_int_eq(mkdir(unit_path(root, dirs[i]), 0700), 0);
	put(root, "proc/self/cgroup", "0::/a/b\n");
	ck_assert_uint_eq(room_of_cgroup(root), ROOM_UNKNOWN);
	put(root, "sys/fs/cgroup/a/b/memory.max", "max\n");
	put(root, "sys/fs/cgroup/a/b/memory.current", "500\n");
	ck_assert_uint_eq(room_of_cgroup(root), ROOM_UNKNOWN);
	put(root, "sys/fs/cgroup/a/memory.max", "1000\n");
	put(root, "sys/fs/cgroup/a/memory.current", "700\n");
	ck_assert_uint_eq(room_of_cgroup(root), 300);
	put(root, "sys/fs/cgroup/a/memory.stat",
	    "anon 5\ninactive_file 200\n");
	ck_assert_uint_eq(room_of_cgroup(root), 500);
	put(root, "sys/fs/cgroup/a/b/memory.max", "600\n");
	ck_assert_uint_eq(room_of_cgroup(root), 100);
	put(root, "sys/fs/cgroup/a/b/memory.current", "900\n");
	ck_assert_uint_eq(room_of_cgroup(root), 0);
}
END_TEST

START_TEST(room_within_budget)
{
	const char *from = unit_dir();
	struct err err = {0};
	struct room r;

	fixture_good(unit_path(from, "step10.pt"), 10);
	ck_assert_int_eq(room_read(from, 1 << 20, &r, &err), 0);
	ck_assert_str_eq(r.bound, "--stage");
	ck_assert_uint_lt(r.free, 1 << 20);
	ck_assert_int_eq(room_read(from, 1, &r, &err), 0);
	ck_assert_uint_eq(r.free, 0);
	ck_assert_int_eq(room_read("/nowhere", 1, &r, &err), -1);
}
END_TEST

START_TEST(link_is_switched)
{
	const char *link = unit_path(unit_dir(), "link");
	struct err err = {0};

	ck_assert_int_eq(room_link(link, "/a", &err), 0);
	ck_assert(room_is_linked(link, "/a") && !room_is_linked(link, "/b"));
	ck_assert_int_eq(room_link(link, "/b", &err), 0);
	ck_assert(room_is_linked(link, "/b"));
	ck_assert_int_eq(unlink(link), 0);
	ck_assert_int_eq(mkdir(link, 0700), 0);
	ck_assert_int_eq(room_link(link, "/a", &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "in the way"));
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_test(t, room_below_limits);
	tcase_add_test(t, room_within_budget);
	tcase_add_test(t, link_is_switched);
}

int
main(void)
{
	return unit_run("checkpoint_stage_room", add_tests);
}
