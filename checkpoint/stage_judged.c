/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_judged.c - a list by name; a fast directory holds a few checkpoints.
 */
#include <stdlib.h>
#include <string.h>

#include "checkpoint/stage_judged.h"

static struct judged *
by_name(const struct judged_list *l, const char *name)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (strcmp(l->list[i].name, name) == 0)
			return &l->list[i];
	return NULL;
}

struct judged *
judged_find(const struct judged_list *l, const char *name,
    const struct checkpoint *c)
{
	struct judged *j = by_name(l, name);

	return j != NULL && j->mtime_ns == c->mtime_ns &&
	    j->size_bytes == c->size_bytes ? j : NULL;
}

static struct judged *
add(struct judged_list *l, const char *name)
{
	size_t cap = l->cap ? l->cap * 2 : 32;
	struct judged *list;

	if (l->n == l->cap) {
		if ((list = reallocarray(l->list, cap, sizeof(*list))) == NULL)
			return NULL;
		l->list = list;
		l->cap = cap;
	}
	l->list[l->n] = (struct judged){ .name = strdup(name) };
	return l->list[l->n].name != NULL ? &l->list[l->n++] : NULL;
}

void
judged_set(struct judged_list *l, const char *name, const struct checkpoint *c,
    enum judged_as what)
{
	struct judged *j = by_name(l, name);

	if (j == NULL && (j = add(l, name)) == NULL)
		return;
	j->mtime_ns = c->mtime_ns;
	j->size_bytes = c->size_bytes;
	j->what = what;
}

void
judged_begin(struct judged_list *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		l->list[i].kept = false;
}

void
judged_keep(struct judged_list *l, const char *name)
{
	struct judged *j = by_name(l, name);

	if (j != NULL)
		j->kept = true;
}

void
judged_end(struct judged_list *l)
{
	size_t i, n = 0;

	for (i = 0; i < l->n; i++)
		if (l->list[i].kept)
			l->list[n++] = l->list[i];
		else
			free(l->list[i].name);
	l->n = n;
}

void
judged_fini(struct judged_list *l)
{
	judged_begin(l);
	judged_end(l);
	free(l->list);
	*l = (struct judged_list){0};
}
