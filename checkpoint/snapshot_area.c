/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_area.c - see snapshot_area.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/snapshot_area.h"
#include "checkpoint/snapshot_wire.h"
#include "checkpoint/stage_room.h"

#define PIECE		((uint64_t)64 << 20)	/* between looks at the room */
#define FLOOR		((uint64_t)64 << 20)	/* that is left to others */

int
snapshot_area_new(struct err *err)
{
	int fd = memfd_create("holdfast-snapshot", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd == -1)
		return err_errno(err, "cannot make shared memory");
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
		return fd;
	err_errno(err, "cannot seal shared memory");
	close(fd);
	return -1;
}

/* MemAvailable of /proc/meminfo, in bytes; ROOM_UNKNOWN when it does not tell. */
static uint64_t
available(void)
{
	unsigned long long kb = 0;
	uint64_t found = ROOM_UNKNOWN;
	char line[200];
	FILE *f = fopen("/proc/meminfo", "re");

	if (f == NULL)
		return ROOM_UNKNOWN;
	while (found == ROOM_UNKNOWN && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "MemAvailable: %llu", &kb) == 1)
			found = (uint64_t)kb * 1024;
	fclose(f);
	return found;
}

/* Without this the kernel would end a process of its choice. */
static int
check_room(uint64_t more, struct err *err)
{
	uint64_t node = available(), group = room_of_cgroup("");

	if (node < more + FLOOR || group < more + FLOOR)
		return err_set(err, ERR_LIMIT, "no memory for %llu MiB of a "
		    "snapshot: %s leaves %llu MiB",
		    (unsigned long long)more >> 20, group < node ?
		    "the limit of the cgroup" : "the node",
		    (unsigned long long)(group < node ? group : node) >> 20);
	return 0;
}

int
snapshot_area_grow(int fd, uint64_t bytes, struct err *err)
{
	struct rlimit limit;
	struct stat st;
	uint64_t at, n;

	if (fstat(fd, &st) == -1)
		return err_errno(err, "cannot look at shared memory");
	if ((uint64_t)st.st_size >= bytes)
		return 0;
	/* Beyond it a signal would end the process. */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur)
		return err_set(err, ERR_LIMIT, "the limit for files (ulimit -f) is "
		    "less than a snapshot of %llu MiB",
		    (unsigned long long)bytes >> 20);
	if (check_room(bytes - (uint64_t)st.st_size, err) == -1)
		return -1;
	for (at = (uint64_t)st.st_size; at < bytes; at += n) {
		n = bytes - at < PIECE ? bytes - at : PIECE;
		if (check_room(n, err) == -1)
			return -1;
		while (fallocate(fd, 0, (off_t)at, (off_t)n) == -1)
			if (errno != EINTR)
				return err_errno(err, "no memory for a snapshot "
				    "of %llu MiB", (unsigned long long)bytes >> 20);
	}
	return 0;
}

int
snapshot_area_check(int fd, uint64_t *bytes, struct err *err)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals == -1 || (seals & F_SEAL_SHRINK) == 0 ||
	    (seals & F_SEAL_WRITE) != 0)
		return err_set(err, ERR_FORMAT, "not shared memory that stays as "
		    "long as it is");
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) || st.st_size < 0 ||
	    (uint64_t)st.st_size > SNAPSHOT_BYTES_MAX)
		return err_set(err, ERR_FORMAT, "shared memory of a wrong size");
	*bytes = (uint64_t)st.st_size;
	return 0;
}
