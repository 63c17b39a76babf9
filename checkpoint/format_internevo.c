/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_internevo.c - InternEvo: STEP/ or snapshot/0|1/ with model_tpT_ppP.pt,
 * optimizer_*.pt, context.pt, and the flag STEP.step written last.  Source:
 * internlm/checkpoint/checkpoint_manager.py.
 *
 * Snapshots are overwritten in place and keep the flag of the former one: there the
 * flag must be newer than every other file.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/file.h"
#include "checkpoint/folder.h"

#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE
#define SLACK_NS	10000000000	/* a copy does not keep the order of times */

static bool
recognise(const struct item *it)
{
	return it->is_dir && folder_find(it, "model_tp", ".pt") &&
	    (names_has(&it->names, "context.pt") ||
	    folder_find(it, "topo_tp", ".json") ||
	    folder_find(it, "", ".step"));
}

static int64_t
mtime_of(const struct item *it, const char *name)
{
	char *path = file_join(it->path, name);
	struct stat st;
	int64_t t = 0;

	if (path != NULL && stat(path, &st) == 0)
		t = (int64_t)st.st_mtim.tv_sec * 1000000000 +
		    st.st_mtim.tv_nsec;
	free(path);
	return t;
}

static bool
is_snapshot(const struct item *it)
{
	const char *p = strstr(it->path, "snapshot/");

	return p != NULL && strchr(p + 9, '/') == NULL;
}

static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	const char *flag = NULL;
	int64_t step;
	size_t i, flags = 0;

	for (i = 0; i < it->names.n; i++)
		if (name_ends_with(it->names.list[i], ".step")) {
			flag = it->names.list[i];
			flags++;
		}
	folder_add_files(it, NULL, parts);
	if (flags == 0) {
		report_say(r, INCOMPLETE, "no .step flag: the save did not finish");
		return;
	}
	if (flags > 1) {
		report_say(r, INCOMPLETE, "flags of several steps: %s and others",
		    flag);
		return;
	}
	step = name_step(flag);
	r->step = step;
	if (!is_snapshot(it)) {
		if (name_folder_step(it->name) != step)
			report_say(r, INCOMPLETE, "%s in the folder of another step",
			    flag);
		return;
	}
	for (i = 0; i < it->names.n; i++)
		if (mtime_of(it, it->names.list[i]) - SLACK_NS >
		    mtime_of(it, flag))
			report_say(r, INCOMPLETE, "%s is newer than %s: the snapshot "
			    "was being overwritten", it->names.list[i], flag);
}

/* Numbered folders, and the snapshots one level deeper. */
static int
enumerate(const char *dir, const struct names *in, struct names *out)
{
	struct names inside = {0};
	char *path, *name;
	size_t i;
	int rc = 0;

	if (!names_has(in, "snapshot") || !folder_is_dir(dir, "snapshot"))
		return 0;
	if ((path = file_join(dir, "snapshot")) == NULL)
		return -1;
	(void)names_read(&inside, path);
	free(path);
	for (i = 0; i < inside.n && rc == 0; i++) {
		if ((name = file_join("snapshot", inside.list[i])) == NULL)
			rc = -1;
		else
			rc = names_add(out, name);
		free(name);
	}
	for (i = 0; i < in->n && rc == 0 && out->n > 0; i++)
		if (strcmp(in->list[i], "snapshot") != 0)
			rc = names_add(out, in->list[i]);
	names_fini(&inside);
	return rc;
}

const struct format format_internevo = {
	.name = "internevo",
	.recognise = recognise,
	.complete = complete,
	.enumerate = enumerate
};
