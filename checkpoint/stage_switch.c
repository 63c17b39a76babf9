/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_switch.c - reads when files changed, what room there is, and the last round.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/clock.h"
#include "common/file.h"
#include "checkpoint/names.h"
#include "checkpoint/stage_room.h"
#include "checkpoint/stage_switch.h"

#define SETTLED_NS	(5 * NS_PER_S)	/* no save goes on in TO */
#define UNFINISHED_NS	(600 * NS_PER_S)
#define DEPTH_MAX	3

/* When something below a directory changed last.  The directory itself changes when
 * staging takes something out. */
static int64_t
newest_change(const char *path, int depth)
{
	struct names names = {0};
	int64_t newest, below;
	struct stat st;
	char *name;
	size_t i;

	if (lstat(path, &st) == -1)
		return 0;
	newest = depth == 0 ? 0 : file_mtime_ns(&st);
	if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX &&
	    names_read(&names, path) == 0)
		for (i = 0; i < names.n; i++) {
			if (names.list[i][0] == '.' ||
			    (name = file_join(path, names.list[i])) == NULL)
				continue;
			below = newest_change(name, depth + 1);
			newest = below > newest ? below : newest;
			free(name);
		}
	names_fini(&names);
	return newest;
}

static bool
is_settled(const char *dir, int64_t ns)
{
	return clock_wall_ns(&clock_system) - newest_change(dir, 0) > ns;
}

/* "x.tmp" is whole and waits for its rename.  What is old was left by a save that was
 * cut short. */
static bool
is_unfinished(const char *name, const struct stat *st)
{
	if (!name_is_temporary(name) ||
	    (name[0] == '.' && strstr(name, "tmp") == NULL))
		return false;
	return clock_wall_ns(&clock_system) - file_mtime_ns(st) <
	    UNFINISHED_NS;
}

static bool
has_unfinished(const char *dir, int depth)
{
	struct names names = {0};
	bool found = false;
	struct stat st;
	char *path;
	size_t i;

	if (names_read(&names, dir) == -1) {
		names_fini(&names);
		return false;
	}
	for (i = 0; !found && i < names.n; i++) {
		path = file_join(dir, names.list[i]);
		if (path != NULL && lstat(path, &st) == 0)
			found = is_unfinished(names.list[i], &st) ||
			    (S_ISDIR(st.st_mode) && depth < DEPTH_MAX &&
			    has_unfinished(path, depth + 1));
		free(path);
	}
	names_fini(&names);
	return found;
}

/* All that lay in FROM was whole when the last round began, and nothing was begun
 * since.  A trainer that has not saved yet may still be loading: then what it loads
 * must be in both places. */
static bool
is_between_saves(const struct stage_switch *w, const struct stage_pass *last,
    int64_t began_ns, bool rests)
{
	int64_t newest = newest_change(w->o->stage.from, 0);

	return last->waiting == 0 && newest < last->started_ns &&
	    !has_unfinished(w->o->stage.from, 0) &&
	    (newest > began_ns ||
	    (last->failed == 0 && !last->unquiet && rests));
}

static void
switch_link(struct stage_switch *w, bool fast, const char *why)
{
	const struct stage_options *stage = &w->o->stage;
	struct err err = {0};

	if (room_link(w->o->link, fast ? stage->from : stage->to, &err) == -1) {
		if (!w->failed)
			w->o->switched(stage->tell_arg, w->fast, err.text);
		w->failed = true;
		return;
	}
	w->failed = false;
	w->fast = fast;
	w->o->switched(stage->tell_arg, fast, why);
}

/* What the next save may take: a fifth more than the largest so far.  Before the
 * first one, half of what FROM may hold is to be there: /dev/shm of a container has
 * 64 MiB. */
static uint64_t
needed(const struct stage_switch *w, const struct stage_pass *last)
{
	if (last->largest > 0)
		return last->largest + last->largest / 5;
	return w->o->budget / 2;
}

void
stage_switch_begin(struct stage_switch *w, const struct stage_daemon_options *o)
{
	w->o = o;
	w->fast = room_is_linked(o->link, o->stage.from);
}

void
stage_switch_look(struct stage_switch *w, const struct stage_pass *last,
    int64_t began_ns, bool rests)
{
	uint64_t need = needed(w, last);
	const char *from = w->o->stage.from, *to = w->o->stage.to;
	struct err err = {0};
	struct room r;
	char why[200];

	if (room_read(from, w->o->budget, &r, &err) == -1) {
		if (w->fast)
			switch_link(w, false, err.text);
		return;
	}
	if (w->fast && r.free < need &&
	    is_between_saves(w, last, began_ns, rests)) {
		snprintf(why, sizeof(why), "%s leaves %llu MiB, the next save may "
		    "need %llu MiB", r.bound, (unsigned long long)r.free >> 20,
		    (unsigned long long)need >> 20);
		switch_link(w, false, why);
	} else if (!w->fast && r.free >= 2 * need &&	/* and one that stays */
	    is_settled(to, SETTLED_NS) && !has_unfinished(to, 0)) {
		switch_link(w, true, "there is room again");
	}
}
