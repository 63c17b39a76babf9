/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_offer.c - the fast directory may have been lost with the node, or may hold
 * what is broken: then training goes on from the durable one.
 */
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "checkpoint/stage_notes.h"
#include "checkpoint/stage_offer.h"

static int
make_parent(const char *path, struct err *err)
{
	char dir[PATH_MAX], *slash;

	snprintf(dir, sizeof(dir), "%s", path);
	if ((slash = strrchr(dir, '/')) == NULL || slash == dir)
		return 0;
	*slash = '\0';
	return file_mkdirs(dir, 0700, err);
}

int
stage_offer(const char *from, const char *to, const char *path, struct err *err)
{
	const char *name = file_inside(to, path);
	struct notes notes = {0};
	char *place, *real;
	struct stat st;
	size_t i;
	int rc = -1;

	if (name == NULL)
		return 0;
	place = file_join(from, name);
	real = realpath(path, NULL);
	if (place == NULL || real == NULL) {
		err_errno(err, "cannot offer %s", path);
		goto out;
	}
	if (lstat(place, &st) == 0 && !S_ISLNK(st.st_mode)) {
		rc = 0;
		goto out;
	}
	if (make_parent(place, err) == -1)
		goto out;
	if ((unlink(place) == -1 && errno != ENOENT) ||
	    symlink(real, place) == -1) {
		err_errno(err, "cannot create %s", place);
		goto out;
	}
	if (notes_read(&notes, to, INT64_MAX, err) == -1)
		goto out;
	for (i = 0, rc = 0; rc == 0 && i < notes.n; i++)
		rc = notes_write(&notes.list[i], from, err);
	if (rc == 0 && notes.unread != NULL) {
		*err = notes.why;
		rc = -1;
	}
out:
	notes_fini(&notes);
	free(place);
	free(real);
	return rc;
}
