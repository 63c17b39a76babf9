/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.c - the functions of holdfast-checkpoint.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "checkpoint/checkpoint.h"

static const struct holdfast_checkpoint_options defaults =
    HOLDFAST_CHECKPOINT_OPTIONS_INIT;

static int
fail(char *error, size_t error_size, const char *text)
{
	if (error != NULL && error_size > 0)
		snprintf(error, error_size, "%s", text);
	return -1;
}

static void
clear(struct holdfast_checkpoint_report *r)
{
	free(r->path);
	free(r->format);
	free(r->reason);
}

/* Copies what is public; 0, or -1 when memory is short. */
static int
copy(struct holdfast_checkpoint_report *to, const struct checkpoint *c)
{
	const char *format = checkpoint_format_name(c);

	memset(to, 0, sizeof(*to));
	to->step = checkpoint_step(c);
	to->state = c->report.state;
	to->size_bytes = c->size_bytes;
	to->mtime_ns = c->mtime_ns;
	to->nonfinite_tensors = c->report.nonfinite_tensors;
	to->nonfinite_values = c->report.nonfinite_values;
	if ((to->path = strdup(c->path)) == NULL ||
	    (format != NULL && (to->format = strdup(format)) == NULL) ||
	    (c->report.reason != NULL &&
	    (to->reason = strdup(c->report.reason)) == NULL)) {
		clear(to);
		return -1;
	}
	return 0;
}

int
holdfast_checkpoint_verify(const char *path,
    const struct holdfast_checkpoint_options *o,
    struct holdfast_checkpoint_report **out, char *error, size_t error_size)
{
	struct checkpoint_options opts = {0};
	struct holdfast_checkpoint_report *r = NULL;
	struct checkpoint c;
	struct err err = {0};
	int rc = -1;

	*out = NULL;
	if (o == NULL)
		o = &defaults;
	opts.structure_only = o->structure_only != 0;
	opts.threads = o->threads;
	if (checkpoint_look(&c, path) == -1) {
		fail(error, error_size, "out of memory");
		goto out;
	}
	if (c.is_dir && c.format == NULL &&
	    c.report.state == HOLDFAST_CHECKPOINT_UNVERIFIED) {
		fail(error, error_size, c.report.reason);
		goto out;
	}
	if (checkpoint_check(&c, 1, &opts, NULL, NULL, &err) == -1) {
		fail(error, error_size, err.text);
		goto out;
	}
	if ((r = malloc(sizeof(*r))) == NULL || copy(r, &c) == -1) {
		free(r);
		fail(error, error_size, "out of memory");
		goto out;
	}
	*out = r;
	rc = 0;
out:
	checkpoint_fini(&c);
	return rc;
}

void
holdfast_checkpoint_report_free(struct holdfast_checkpoint_report *r)
{
	if (r == NULL)
		return;
	clear(r);
	free(r);
}

/* The chosen one first, then those in front of it. */
static int
fill(struct holdfast_checkpoint_list *list, const struct checkpoints *cs,
    long chosen)
{
	size_t n = chosen >= 0 ? (size_t)chosen : cs->n, i;

	list->reports = calloc(n + 1, sizeof(*list->reports));
	if (list->reports == NULL)
		return -1;
	if (chosen >= 0) {
		if (copy(&list->reports[0], &cs->list[chosen]) == -1)
			return -1;
		list->n_reports = 1;
		list->found = 1;
	}
	for (i = 0; i < n; i++) {
		if (copy(&list->reports[list->n_reports], &cs->list[i]) == -1)
			return -1;
		list->n_reports++;
	}
	return 0;
}

int
holdfast_checkpoint_latest(const char *dir,
    const struct holdfast_checkpoint_options *o,
    struct holdfast_checkpoint_list **out, char *error, size_t error_size)
{
	struct holdfast_checkpoint_list *list = NULL;
	struct latest_options opts = {0};
	struct checkpoints cs = {0};
	struct err err = {0};
	long chosen;
	int rc = -1;

	*out = NULL;
	if (o == NULL)
		o = &defaults;
	opts.before_step = o->before_step;
	opts.quiet_ms = o->quiet_ms;
	opts.now_ns = clock_wall_ns(&clock_system);
	opts.structure_only = o->structure_only != 0;
	opts.threads = o->threads;
	if (checkpoints_find(&cs, dir, opts.threads, &err) == -1 ||
	    checkpoints_latest(&cs, &opts, &chosen, &err) == -1) {
		fail(error, error_size, err.text);
		goto out;
	}
	if ((list = calloc(1, sizeof(*list))) == NULL ||
	    fill(list, &cs, chosen) == -1) {
		holdfast_checkpoint_list_free(list);
		fail(error, error_size, "out of memory");
		goto out;
	}
	*out = list;
	rc = 0;
out:
	checkpoints_fini(&cs);
	return rc;
}

void
holdfast_checkpoint_list_free(struct holdfast_checkpoint_list *list)
{
	size_t i;

	if (list == NULL)
		return;
	for (i = 0; i < list->n_reports; i++)
		clear(&list->reports[i]);
	free(list->reports);
	free(list);
}

int
holdfast_checkpoint_latest_valid(const char *dir, char *path, size_t path_size,
    int64_t *step, char *error, size_t error_size)
{
	struct holdfast_checkpoint_list *list;
	int rc = 0;

	if (holdfast_checkpoint_latest(dir, NULL, &list, error, error_size) == -1)
		return -1;
	if (!list->found) {
		fail(error, error_size, list->n_reports > 0 &&
		    list->reports[0].reason != NULL ? list->reports[0].reason :
		    "no checkpoint in the directory");
	} else if (strlen(list->reports[0].path) >= path_size) {
		rc = fail(error, error_size, "the path is too long");
	} else {
		memcpy(path, list->reports[0].path,
		    strlen(list->reports[0].path) + 1);
		if (step != NULL)
			*step = list->reports[0].step;
		rc = 1;
	}
	holdfast_checkpoint_list_free(list);
	return rc;
}
