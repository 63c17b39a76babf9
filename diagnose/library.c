/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library.c - the functions of holdfast-diagnose.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "diagnose/causes.h"
#include "diagnose/holdfast-diagnose.h"
#include "diagnose/rule_load.h"

struct holdfast_diagnose {
	struct rule_set	*set;
};

static void
give_error(const struct err *err, char *error, size_t size)
{
	if (error != NULL && size > 0)
		snprintf(error, size, "%s", err->text);
}

struct holdfast_diagnose *
holdfast_diagnose_open(const char *rules_dir, char *error, size_t error_size)
{
	struct holdfast_diagnose *h = calloc(1, sizeof(*h));
	struct err err = {0};

	if (h == NULL)
		err_memory(&err);
	else if (rule_load(rules_dir, NULL, NULL, &h->set, NULL, &err) == 0)
		return h;
	give_error(&err, error, error_size);
	free(h);
	return NULL;
}

void
holdfast_diagnose_close(struct holdfast_diagnose *h)
{
	if (h == NULL)
		return;
	rule_set_free(h->set);
	free(h);
}

/* Takes the feed. */
static char *
diagnose(struct holdfast_diagnose *h, struct feed *feed, struct err *err)
{
	struct verdict v = {0};
	char *text = NULL;

	if (causes_find(h->set, feed, &v, err) == 0 &&
	    (text = verdict_json(&v)) == NULL)
		err_memory(err);
	verdict_fini(&v);
	feed_fini(feed);
	return text;
}

char *
holdfast_diagnose_paths(struct holdfast_diagnose *h,
    const char *const *paths, size_t count, char *error, size_t error_size)
{
	struct feed feed = {0};
	struct err err = {0};
	char *text = NULL;
	size_t i;

	for (i = 0; i < count; i++)
		if (feed_add(&feed, paths[i], &err) == -1)
			break;
	if (i < count || feed_settle(&feed, &err) == -1)
		feed_fini(&feed);
	else
		text = diagnose(h, &feed, &err);
	if (text == NULL)
		give_error(&err, error, error_size);
	return text;
}

char *
holdfast_diagnose_memory(struct holdfast_diagnose *h, const char *name,
    const void *data, size_t len, char *error, size_t error_size)
{
	struct feed feed = {0};
	struct err err = {0};
	char *text = NULL;

	if (feed_add_memory(&feed, name, data, len, &err) == 0)
		text = diagnose(h, &feed, &err);
	else
		feed_fini(&feed);
	if (text == NULL)
		give_error(&err, error, error_size);
	return text;
}

void
holdfast_diagnose_free(char *text)
{
	free(text);
}
