/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint.c - recognises a path and lists what belongs to it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/trouble.h"

/* Sizes and times of the parts; a part that is not there is found later. */
static void
measure(struct checkpoint *c)
{
	struct stat st;
	int64_t mtime;
	size_t i;

	for (i = 0; i < c->parts.n; i++) {
		if (stat(c->parts.list[i].path, &st) == -1) {
			trouble_note(c->parts.list[i].path);
			continue;
		}
		mtime = file_mtime_ns(&st);
		if (c->mtime_ns == REPORT_UNKNOWN || mtime > c->mtime_ns)
			c->mtime_ns = mtime;
		if (S_ISREG(st.st_mode)) {
			if (c->size_bytes == REPORT_UNKNOWN)
				c->size_bytes = 0;
			c->size_bytes += st.st_size;
		}
	}
	if (c->parts.n == 0 && stat(c->path, &st) == 0)
		c->mtime_ns = file_mtime_ns(&st);
}

int
checkpoint_look(struct checkpoint *c, const char *path)
{
	struct report seen;
	struct item it;
	char *end;
	int rc = -1;

	memset(c, 0, sizeof(*c));
	report_init(&c->report);
	c->size_bytes = c->mtime_ns = c->name_step = REPORT_UNKNOWN;
	if ((c->path = strdup(path)) == NULL)
		return -1;
	for (end = c->path + strlen(c->path); end > c->path + 1 &&
	    end[-1] == '/'; end--)
		end[-1] = '\0';
	report_init(&seen);
	trouble_begin();
	if (item_look(&it, c->path, &seen) == 0) {
		c->format = format_find_set(&it);
		if (c->format == NULL)
			c->format = format_find(&it);
		if (c->format == NULL && it.is_regular)
			c->format = format_claimed(&it, &seen);
	}
	c->is_dir = it.is_dir;
	/* what is wrong with a file is said, and confirmed, when it is checked */
	if (it.is_dir || seen.state == HOLDFAST_CHECKPOINT_UNREADABLE)
		report_merge(&c->report, &seen, NULL);
	report_fini(&seen);
	c->name_step = it.is_dir ? name_folder_step(it.name) :
	    name_step(it.name);
	if (c->format != NULL && c->format->complete != NULL) {
		c->format->complete(&it, &c->parts, &c->report);
		if (c->report.step != REPORT_UNKNOWN)
			c->name_step = c->report.step;
	} else if (it.is_dir && c->report.state == HOLDFAST_CHECKPOINT_VALID) {
		report_say(&c->report, HOLDFAST_CHECKPOINT_UNVERIFIED,
		    "a folder without the layout of a checkpoint");
	} else if (!it.is_dir && parts_add(&c->parts, NULL, c->path) == NULL) {
		goto out;
	}
	if (c->parts.failed)
		goto out;
	measure(c);
	(void)trouble_end(&c->report);
	rc = 0;
out:
	item_fini(&it);
	return rc;
}

void
checkpoint_fini(struct checkpoint *c)
{
	free(c->path);
	parts_fini(&c->parts);
	report_fini(&c->report);
	memset(c, 0, sizeof(*c));
}

int64_t
checkpoint_step(const struct checkpoint *c)
{
	return c->report.step != REPORT_UNKNOWN ? c->report.step : c->name_step;
}

bool
checkpoint_needs_quiet(const struct checkpoint *c)
{
	return c->is_dir && (c->format == NULL || !c->format->marked);
}

const char *
checkpoint_format_name(const struct checkpoint *c)
{
	return c->format != NULL ? c->format->name : NULL;
}
