/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_room.c - reads statvfs(3), /proc/meminfo, and the memory controller of cgroup
 * v1 and v2 (Documentation/admin-guide/cgroup-v1/memory.rst, cgroup-v2.rst).
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/file.h"
#include "common/text.h"
#include "checkpoint/names.h"
#include "checkpoint/stage_room.h"

#define TMPFS_MAGIC	0x01021994	/* linux/magic.h */
#define RAMFS_MAGIC	0x858458f6
#define SMALL_FILE	65536u
#define DEPTH_MAX	16

static bool
read_text(const char *path, struct buf *out)
{
	buf_clear(out);
	return file_read(path, SMALL_FILE, out, NULL) == 0 && out->len > 0;
}

/* "NAME VALUE" at the beginning of a line; ROOM_UNKNOWN when absent. */
static uint64_t
field(const struct buf *b, const char *name)
{
	size_t n = strlen(name);
	const char *p = b->data;

	while (p != NULL) {
		if (strncmp(p, name, n) == 0 && (p[n] == ' ' || p[n] == ':'))
			return strtoull(p + n + 1, NULL, 10);
		if ((p = strchr(p, '\n')) != NULL)
			p++;
	}
	return ROOM_UNKNOWN;
}

static uint64_t
number_in(const char *dir, const char *name, struct buf *b)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >=
	    (int)sizeof(path) || !read_text(path, b) || b->data[0] < '0' ||
	    b->data[0] > '9')
		return ROOM_UNKNOWN;	/* "max" */
	return strtoull(b->data, NULL, 10);
}

/* Of one group: limit less use, where file pages that can go do not count. */
static uint64_t
room_of_group(const char *dir, bool v2)
{
	struct buf b = {0};
	uint64_t limit, used, cache = 0;
	char path[PATH_MAX];

	limit = number_in(dir, v2 ? "memory.max" : "memory.limit_in_bytes", &b);
	used = number_in(dir, v2 ? "memory.current" : "memory.usage_in_bytes", &b);
	if (snprintf(path, sizeof(path), "%s/memory.stat", dir) <
	    (int)sizeof(path) && read_text(path, &b))
		cache = field(&b, v2 ? "inactive_file" : "total_inactive_file");
	buf_fini(&b);
	/* v1 without a limit has the largest number of pages. */
	if (limit == ROOM_UNKNOWN || used == ROOM_UNKNOWN || limit > INT64_MAX / 2)
		return ROOM_UNKNOWN;
	if (cache != ROOM_UNKNOWN && cache <= used)
		used -= cache;
	return limit > used ? limit - used : 0;
}

/* The group and all above it: each has a limit of its own. */
static uint64_t
room_of_groups(const char *mount, const char *group, bool v2)
{
	uint64_t least = ROOM_UNKNOWN, here;
	char dir[PATH_MAX], *slash;
	size_t base = strlen(mount);
	int depth;

	if (snprintf(dir, sizeof(dir), "%s%s", mount, group) >= (int)sizeof(dir))
		return ROOM_UNKNOWN;
	for (depth = 0; depth < DEPTH_MAX; depth++) {
		here = room_of_group(dir, v2);
		least = here < least ? here : least;
		if ((slash = strrchr(dir, '/')) == NULL ||
		    (size_t)(slash - dir) < base)
			break;
		*slash = '\0';
	}
	return least;
}

uint64_t
room_of_cgroup(const char *root)
{
	char path[PATH_MAX], mount[PATH_MAX], *line, *save = NULL, *colon;
	uint64_t least = ROOM_UNKNOWN, here;
	struct buf b = {0};

	snprintf(path, sizeof(path), "%.2000s/proc/self/cgroup", root);
	if (!read_text(path, &b))
		goto out;
	for (line = strtok_r(b.data, "\n", &save); line != NULL;
	    line = strtok_r(NULL, "\n", &save)) {
		bool v2 = strncmp(line, "0::", 3) == 0;

		if ((colon = strchr(line, ':')) == NULL ||
		    (!v2 && strncmp(colon + 1, "memory:", 7) != 0))
			continue;
		snprintf(mount, sizeof(mount), "%.2000s/sys/fs/cgroup%s", root,
		    v2 ? "" : "/memory");
		here = room_of_groups(mount, v2 ? line + 3 : colon + 8, v2);
		least = here < least ? here : least;
	}
out:
	buf_fini(&b);
	return least;
}

static uint64_t
used_below(const char *path, int depth)
{
	struct names names = {0};
	struct stat st;
	uint64_t n = 0;
	char *below;
	size_t i;

	if (lstat(path, &st) == -1)
		return 0;
	if (!S_ISDIR(st.st_mode))
		return (uint64_t)st.st_blocks * 512;
	if (depth < DEPTH_MAX && names_read(&names, path) == 0)
		for (i = 0; i < names.n; i++) {
			if ((below = file_join(path, names.list[i])) == NULL)
				continue;
			n += used_below(below, depth + 1);
			free(below);
		}
	names_fini(&names);
	return n;
}

static void
bound_by(struct room *r, uint64_t room, const char *what)
{
	if (room >= r->free)
		return;
	r->free = room;
	r->bound = what;
}

static bool
is_memory(const char *dir)
{
	struct statfs fs;

	return statfs(dir, &fs) == 0 && ((unsigned long)fs.f_type == TMPFS_MAGIC ||
	    (unsigned long)fs.f_type == RAMFS_MAGIC);
}

int
room_read(const char *dir, uint64_t budget, struct room *r, struct err *err)
{
	struct buf b = {0};
	struct statvfs fs;
	uint64_t used, kb;

	*r = (struct room){ ROOM_UNKNOWN, "no limit" };
	if (statvfs(dir, &fs) == -1)
		return err_errno(err, "cannot look at %s", dir);
	bound_by(r, (uint64_t)fs.f_bavail * fs.f_frsize, "the file system");
	if (budget > 0) {
		used = used_below(dir, 0);
		bound_by(r, budget > used ? budget - used : 0, "--stage");
	}
	if (!is_memory(dir))
		return 0;
	if (read_text("/proc/meminfo", &b) &&
	    (kb = field(&b, "MemAvailable")) != ROOM_UNKNOWN)
		bound_by(r, kb * 1024, "the memory of the node");
	buf_fini(&b);
	bound_by(r, room_of_cgroup(""), "the memory limit of the cgroup");
	return 0;
}

bool
room_is_linked(const char *link, const char *target)
{
	char have[PATH_MAX];
	ssize_t n = readlink(link, have, sizeof(have) - 1);

	if (n == -1)
		return false;
	have[n] = '\0';
	return strcmp(have, target) == 0;
}

int
room_link(const char *link, const char *target, struct err *err)
{
	char temp[PATH_MAX];
	struct stat st;

	if (room_is_linked(link, target))
		return 0;
	if (lstat(link, &st) == 0 && !S_ISLNK(st.st_mode))
		return err_set(err, ERR_USAGE, "%s is in the way: not a link", link);
	if (snprintf(temp, sizeof(temp), "%s.new", link) >= (int)sizeof(temp))
		return err_set(err, ERR_LIMIT, "path too long: %s", link);
	if (unlink(temp) == -1 && errno != ENOENT)
		return err_errno(err, "cannot remove %s", temp);
	if (symlink(target, temp) == -1)
		return err_errno(err, "cannot create %s", temp);
	if (rename(temp, link) == -1) {
		err_errno(err, "cannot rename %s to %s", temp, link);
		unlink(temp);
		return -1;
	}
	return 0;
}
