/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_publish.c - see snapshot_publish.h.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "checkpoint/names.h"
#include "checkpoint/report.h"
#include "checkpoint/snapshot_name.h"
#include "checkpoint/snapshot_publish.h"
#include "checkpoint/stage_copy.h"
#include "checkpoint/stage_publish.h"

#define MARK	".incoming-"

static int
make_path(char *out, const char *dir, const char *name, struct err *err)
{
	return snprintf(out, PATH_MAX, "%s/%s", dir, name) < PATH_MAX ? 0 :
	    err_set(err, ERR_LIMIT, "path too long: %s/%s", dir, name);
}

/* The folder of a step while its files come together, and its place. */
static int
folder_paths(const struct snapshot_place *p, char *incoming, char *place,
    struct err *err)
{
	char name[80];

	snprintf(name, sizeof(name), ".step%08lld" MARK "%u", (long long)p->step,
	    p->attempt);
	if (make_path(incoming, p->dir, name, err) == -1)
		return -1;
	snprintf(name, sizeof(name), "step%08lld", (long long)p->step);
	return make_path(place, p->dir, name, err);
}

static void
remove_entry(const char *dir, const char *name)
{
	char path[PATH_MAX];

	if (make_path(path, dir, name, NULL) == 0)
		(void)stage_remove(path, NULL);
}

void
snapshot_clear_left(const char *dir)
{
	struct names names = {0};
	size_t i;

	if (names_read(&names, dir) == 0)
		for (i = 0; i < names.n; i++)
			if (strncmp(names.list[i], ".step", 5) == 0 &&
			    strstr(names.list[i], ".pt" MARK) != NULL)
				remove_entry(dir, names.list[i]);
	names_fini(&names);
}

/* Folders of steps up to this one: whoever was missing there is past them. */
static void
clear_older(const struct snapshot_place *p)
{
	struct names names = {0};
	long long step;
	int end;
	size_t i;

	if (names_read(&names, p->dir) == 0)
		for (i = 0; i < names.n; i++) {
			end = 0;
			if (sscanf(names.list[i], ".step%lld" MARK "%n", &step,
			    &end) == 1 && end > 0 && step <= p->step)
				remove_entry(p->dir, names.list[i]);
		}
	names_fini(&names);
}

/* 1 or 0; -1 when nobody knows. */
static int
has_all_ranks(const char *folder, uint32_t world, struct err *err)
{
	struct names names = {0};
	uint32_t rank, of, found = 0;
	size_t i;
	int rc = 0;

	if (names_read(&names, folder) == -1)
		rc = err_errno(err, "cannot read %s", folder);
	for (i = 0; rc == 0 && i < names.n; i++)
		if (snapshot_name_parse(names.list[i], &rank, &of) && of == world)
			found++;
	names_fini(&names);
	return rc == -1 ? -1 : found == world;
}

/* As above. */
static int
is_same_folder(const char *path, const struct snapshot_place *p, struct err *err)
{
	struct stat st;

	if (lstat(path, &st) == 0)
		return st.st_dev == p->dev && st.st_ino == p->ino;
	return errno == ENOENT ? 0 : err_errno(err, "cannot stat %s", path);
}

static enum snapshot_outcome
keep_path(struct snapshot_place *p, const char *path, enum snapshot_outcome o,
    struct err *err)
{
	free(p->path);
	if ((p->path = strdup(path)) != NULL)
		return o;
	err_memory(err);
	return SNAPSHOT_LOST;
}

/* All data are on the disk, so there is nothing to lose by trying again for a while. */
static enum snapshot_outcome
wait_for_storage(struct snapshot_place *p)
{
	int64_t now = clock_mono_ns(&clock_system);

	if (p->failing_ns == 0)
		p->failing_ns = now;
	return now - p->failing_ns < SNAPSHOT_PATIENCE_MS * NS_PER_MS ?
	    SNAPSHOT_WAITING : SNAPSHOT_LOST;
}

/* That of this rank's file in the folder, which others may rename as soon as they see
 * all files. */
static int
sync_name(struct snapshot_place *p, const char *folder, struct err *err)
{
	if (!p->synced && file_sync_dir(folder, err) == -1)
		return -1;
	p->synced = true;
	return 0;
}

/* It has its name, by whichever rank; that may not be on the disk yet. */
static enum snapshot_outcome
settle(struct snapshot_place *p, const char *place, struct err *err)
{
	if (sync_name(p, place, err) == -1 ||
	    publish_settle(NULL, place, err) == -1)
		return wait_for_storage(p);
	if (!p->moved)
		return keep_path(p, place, SNAPSHOT_JOINED, err);
	clear_older(p);
	return keep_path(p, place, SNAPSHOT_DURABLE, err);
}

enum snapshot_outcome
snapshot_join(struct snapshot_place *p, struct err *err)
{
	char incoming[PATH_MAX], place[PATH_MAX];
	int there, own = 0, all;
	bool faster;

	if (folder_paths(p, incoming, place, err) == -1)
		return SNAPSHOT_LOST;
	if ((there = is_same_folder(place, p, err)) == -1 ||
	    (!there && (own = is_same_folder(incoming, p, err)) == -1))
		return wait_for_storage(p);
	if (there)
		return settle(p, place, err);
	if (!own) {
		err_set(err, ERR_BUSY, "step %lld was given up: other ranks have "
		    "saved a later one", (long long)p->step);
		return SNAPSHOT_PAST;
	}
	if (sync_name(p, incoming, err) == -1 ||
	    (all = has_all_ranks(incoming, p->world, err)) == -1)
		return wait_for_storage(p);
	if (!all) {
		p->failing_ns = 0;
		return SNAPSHOT_WAITING;
	}
	if (publish_move(incoming, place, err) == 0) {
		clear_older(p);
		return keep_path(p, place, SNAPSHOT_DURABLE, err);
	}
	/* Another node was faster, or only the last sync failed. */
	faster = err->errnum == ENOENT;
	if (is_same_folder(place, p, NULL) != 1)
		return wait_for_storage(p);
	p->moved = !faster;
	if (!faster)
		return wait_for_storage(p);
	*err = (struct err){0};
	return settle(p, place, err);
}

/* The data and the table of an area; nothing in it is believed, and the table is
 * looked at where the client cannot change it any more. */
static int
write_area(const char *path, const struct snapshot_message *m, int fd,
    uint64_t area_bytes, struct sink_limit *limit, uint64_t *size, struct err *err)
{
	struct torch_write_options o = { .separator = (char)m->separator,
	    .limit = limit };
	struct torch_entry *entries = NULL;
	void *map, *table;
	int rc = -1;

	map = mmap(NULL, area_bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return err_errno(err, "cannot map shared memory");
	if ((table = malloc(m->table_bytes + 1)) == NULL) {
		err_memory(err);
		goto out;
	}
	memcpy(table, (const char *)map + m->table_offset, m->table_bytes);
	if (snapshot_table_read(table, m->table_bytes, m->entries, map, area_bytes,
	    &entries, err) == -1)
		goto out;
	if (unlink(path) == -1 && errno != ENOENT) {
		err_errno(err, "cannot remove %s", path);
		goto out;
	}
	rc = torch_write(path, entries, m->entries, &o, size, err);
out:
	free(entries);
	free(table);
	munmap(map, area_bytes);
	return rc;
}

static enum snapshot_outcome
write_alone(struct snapshot_place *p, const struct snapshot_message *m, int fd,
    uint64_t area_bytes, struct sink_limit *limit, struct err *err)
{
	char temp[PATH_MAX], place[PATH_MAX], name[80];

	snprintf(name, sizeof(name), ".step%08lld.pt" MARK "%u-%llu",
	    (long long)p->step, p->attempt, (unsigned long long)p->writer);
	if (make_path(temp, p->dir, name, err) == -1)
		return SNAPSHOT_LOST;
	snprintf(name, sizeof(name), "step%08lld.pt", (long long)p->step);
	if (make_path(place, p->dir, name, err) == -1 ||
	    write_area(temp, m, fd, area_bytes, limit, &p->bytes, err) == -1)
		return SNAPSHOT_LOST;
	if (publish_move(temp, place, err) == -1) {
		unlink(temp);
		return SNAPSHOT_LOST;
	}
	return keep_path(p, place, SNAPSHOT_DURABLE, err);
}

enum snapshot_outcome
snapshot_write(struct snapshot_place *p, const struct snapshot_message *m,
    int fd, uint64_t area_bytes, struct sink_limit *limit, struct err *err)
{
	char folder[PATH_MAX], place[PATH_MAX], temp[PATH_MAX], path[PATH_MAX];
	char name[SNAPSHOT_NAME_MAX];
	struct stat st;

	if (file_mkdirs(p->dir, 0777, err) == -1)
		return SNAPSHOT_LOST;
	if (p->world == 1)
		return write_alone(p, m, fd, area_bytes, limit, err);
	snapshot_name(name, p->rank, p->world);
	if (folder_paths(p, folder, place, err) == -1 ||
	    file_mkdirs(folder, 0777, err) == -1 ||
	    make_path(path, folder, name, err) == -1)
		return SNAPSHOT_LOST;
	if (stat(folder, &st) == -1) {
		err_errno(err, "cannot look at %s", folder);
		return SNAPSHOT_LOST;
	}
	p->dev = st.st_dev;
	p->ino = st.st_ino;
	snprintf(name, sizeof(name), ".rank%05u" MARK, p->rank);
	if (make_path(temp, folder, name, err) == -1 ||
	    write_area(temp, m, fd, area_bytes, limit, &p->bytes, err) == -1)
		return SNAPSHOT_LOST;
	if (rename(temp, path) == -1) {
		err_errno(err, "cannot rename %s", temp);
		unlink(temp);
		return SNAPSHOT_LOST;
	}
	return snapshot_join(p, err);
}

void
snapshot_place_fini(struct snapshot_place *p)
{
	free(p->path);
	p->path = NULL;
}
