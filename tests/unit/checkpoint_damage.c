/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_damage.c - a temporary directory with checkpoints in it, and what befalls
 * them.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint_damage.h"
#include "common/file.h"

static char *top;
static char text[1024];

void
damage_set_up(void)
{
	top = fixture_dir();
}

void
damage_tear_down(void)
{
	fixture_remove(top);
}

/* top/name, valid until three more are asked for */
const char *
damage_at(const char *name)
{
	static char paths[4][512];
	static int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", top, name);
	return path;
}

void
damage_good(const char *name)
{
	fixture_good(damage_at(name), -1);
}

void
damage_object(const char *name, const char *pickle)
{
	fixture_object(damage_at(name), pickle);
}

void
damage_bytes(const char *name, const char *data)
{
	fixture_write(damage_at(name), data, strlen(data));
}

void
damage_folder(const char *name)
{
	fixture_mkdirs(damage_at(name));
}

void
damage_expect(const char *name, enum holdfast_checkpoint_state state,
    const char *reason)
{
	enum holdfast_checkpoint_state got = fixture_state(damage_at(name), text,
	    sizeof(text));

	ck_assert_msg(got == state && strstr(text, reason) != NULL,
	    "%s: state %d, %s; wanted %d, %s", name, (int)got, text, (int)state,
	    reason);
}

void
damage_valid(const char *name)
{
	damage_expect(name, HOLDFAST_CHECKPOINT_VALID, "");
}

void
damage_incomplete(const char *name, const char *reason)
{
	damage_expect(name, HOLDFAST_CHECKPOINT_INCOMPLETE, reason);
}

/* What befalls one file of a checkpoint: each kind makes it anything but valid, and
 * back in its place it is valid again. */
void
damage_each(const char *checkpoint, const char *name)
{
	char *kept = fixture_path(top, "kept");
	char file[512], path[512];
	struct stat st;
	int kind;

	snprintf(file, sizeof(file), "%s/%s", checkpoint, name);
	snprintf(path, sizeof(path), "%s", damage_at(file));
	damage_valid(checkpoint);
	ck_assert_int_eq(stat(path, &st), 0);
	for (kind = 0; kind < 6; kind++) {
		struct buf old = {0};

		ck_assert_int_eq(file_read(path, 1 << 20, &old, NULL), 0);
		ck_assert_int_eq(rename(path, kept), 0);
		if (kind == 0)
			fixture_write(path, "", 0);
		else if (kind == 1)
			fixture_write(path, old.data, old.len / 2);
		else if (kind == 2)
			ck_assert_int_eq(mkdir(path, 0700), 0);
		else if (kind == 3)
			ck_assert_int_eq(mkfifo(path, 0600), 0);
		else if (kind == 4)
			ck_assert_int_eq(symlink(path, path), 0);
		else {
			memset(old.data, 0, old.len);
			fixture_write(path, old.data, old.len);
		}
		ck_assert_msg(fixture_state(damage_at(checkpoint), text, sizeof(text)) !=
		    HOLDFAST_CHECKPOINT_VALID, "%s, kind %d", file, kind);
		buf_fini(&old);
		ck_assert_int_eq(remove(path), 0);
		ck_assert_int_eq(rename(kept, path), 0);
	}
	damage_valid(checkpoint);
	free(kept);
}

void
damage_gone(const char *checkpoint, const char *name, const char *reason)
{
	char *kept = fixture_path(top, "kept");
	char file[512];

	snprintf(file, sizeof(file), "%s/%s", checkpoint, name);
	ck_assert_int_eq(rename(damage_at(file), kept), 0);
	damage_incomplete(checkpoint, reason);
	ck_assert_int_eq(rename(kept, damage_at(file)), 0);
	free(kept);
}

/* The name of the newest valid one of a save directory. */
void
damage_newest(const char *dir, const char *want)
{
	struct latest_options o = { .before_step = REPORT_UNKNOWN, .threads = 1 };
	struct checkpoints cs;
	size_t skip;
	long chosen;

	ck_assert_int_eq(checkpoints_find(&cs, damage_at(dir), 1, NULL), 0);
	ck_assert_int_eq(checkpoints_latest(&cs, &o, &chosen, NULL), 0);
	skip = strlen(damage_at(dir)) + 1;
	ck_assert_int_ge(chosen, 0);
	ck_assert_str_eq(cs.list[chosen].path + skip, want);
	checkpoints_fini(&cs);
}
