/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_find.c - looks runs up in the state directory.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/text.h"
#include "supervisor/run_find.h"
#include "supervisor/run_spec.h"

static int
find_newest(const char *state, char *path, size_t size, struct err *err)
{
	char candidate[PATH_MAX];
	time_t newest = 0;
	struct dirent *e;
	struct stat st;
	bool any = false;
	DIR *d;

	if ((d = opendir(state)) == NULL)
		return err_errno(err, "no runs here: cannot open %s", state);
	while ((e = readdir(d)) != NULL) {
		if (!text_is_name(e->d_name))
			continue;
		snprintf(candidate, sizeof(candidate), "%.2000s/%s/run.json",
		    state, e->d_name);
		if (stat(candidate, &st) == -1)
			continue;
		snprintf(candidate, sizeof(candidate), "%.2000s/%s/status.json",
		    state, e->d_name);
		if (stat(candidate, &st) == -1 || (any && st.st_mtime < newest))
			continue;
		newest = st.st_mtime;
		any = true;
		snprintf(path, size, "%.2000s/%s", state, e->d_name);
	}
	closedir(d);
	if (!any)
		return err_set(err, ERR_USAGE, "no runs in %s", state);
	return 0;
}

int
run_find(const char *state_dir, const char *name, char **dir, struct err *err)
{
	const char *state = run_spec_state_dir(state_dir);
	char path[PATH_MAX], absolute[PATH_MAX];
	struct text_nearest near = {0};
	struct dirent *e;
	DIR *d;

	if (name == NULL) {
		if (find_newest(state, path, sizeof(path), err) == -1)
			return -1;
	} else {
		if (!text_is_name(name))
			return err_set(err, ERR_USAGE, "'%s' is no name of a run",
			    name);
		snprintf(path, sizeof(path), "%.2000s/%s", state, name);
	}
	if (realpath(path, absolute) != NULL) {
		*dir = strdup(absolute);
		return *dir ? 0 : err_memory(err);
	}
	err_errno(err, "no run '%s' in %s", name ? name : "", state);
	if (name != NULL && errno == ENOENT && (d = opendir(state)) != NULL) {
		while ((e = readdir(d)) != NULL)
			if (text_is_name(e->d_name))
				text_nearest_try(&near, name, e->d_name);
		if (near.best != NULL)
			err_set(err, ERR_USAGE, "no run '%s' in %s, did you mean "
			    "'%s'?", name, state, near.best);
		closedir(d);
	}
	return -1;
}
