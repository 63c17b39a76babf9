/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_nvrx.c - local checkpoints of NVIDIA's resiliency extension:
 * SESSION/RANK/iter_NNNNNNN_OWNER_local.pt, written as ..._local.dirty.pt and renamed.
 * A rank's folder may hold copies of other ranks' files.  Source:
 * nvidia_resiliency_ext/checkpointing/local/ckpt_managers.
 *
 * An iteration is whole when every rank's file is in some folder.  The ranks are
 * those that have a folder or a file of any iteration.  The checkpoint is known by
 * its first file.
 */
#include <ctype.h>
#include <inttypes.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "checkpoint/folder.h"
#include "checkpoint/trouble.h"

#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE
#define RANK_MAX	1000000

struct local {
	int64_t	 iteration;
	int64_t	 owner;
	char	*name;		/* RANK/FILE, owned */
};

struct session {
	struct local	*list;
	size_t		 n, cap;
	int64_t		*ranks;		/* sorted, distinct */
	size_t		 n_ranks, cap_ranks;
};

/* A decimal number that is all of the text up to `end`; -1 when it is none. */
static int64_t
number(const char *text, const char *end)
{
	int64_t n = 0;

	if (text == end || end - text > 15)
		return -1;
	for (; text < end; text++) {
		if (!isdigit((unsigned char)*text))
			return -1;
		n = n * 10 + (*text - '0');
	}
	return n;
}

/* iter_NNNNNNN_OWNER_local.pt, and with .dirty before its end when `dirty`. */
static bool
parse(const char *name, bool dirty, int64_t *iteration, int64_t *owner)
{
	const char *end = dirty ? "_local.dirty.pt" : "_local.pt";
	const char *mid, *last;

	if (strncmp(name, "iter_", 5) != 0 || !name_ends_with(name, end))
		return false;
	last = name + strlen(name) - strlen(end);
	if ((mid = strchr(name + 5, '_')) == NULL || mid >= last)
		return false;
	*iteration = number(name + 5, mid);
	*owner = number(mid + 1, last);
	return *iteration >= 0 && *owner >= 0 && *owner < RANK_MAX;
}

static int
add_rank(struct session *s, int64_t rank)
{
	int64_t *list;
	size_t i, cap;

	for (i = 0; i < s->n_ranks && s->ranks[i] < rank; i++)
		;
	if (i < s->n_ranks && s->ranks[i] == rank)
		return 0;
	if (s->n_ranks == s->cap_ranks) {
		cap = s->cap_ranks ? s->cap_ranks * 2 : 16;
		if ((list = reallocarray(s->ranks, cap, sizeof(*list))) == NULL)
			return -1;
		s->ranks = list;
		s->cap_ranks = cap;
	}
	memmove(&s->ranks[i + 1], &s->ranks[i], (s->n_ranks - i) *
	    sizeof(*s->ranks));
	s->ranks[i] = rank;
	s->n_ranks++;
	return 0;
}

static int
add_file(struct session *s, const char *rank, const char *name,
    int64_t iteration, int64_t owner)
{
	struct local *list;
	size_t cap;

	if (s->n == s->cap) {
		cap = s->cap ? s->cap * 2 : 32;
		if ((list = reallocarray(s->list, cap, sizeof(*list))) == NULL)
			return -1;
		s->list = list;
		s->cap = cap;
	}
	if ((s->list[s->n].name = file_join(rank, name)) == NULL)
		return -1;
	s->list[s->n].iteration = iteration;
	s->list[s->n++].owner = owner;
	return add_rank(s, owner);
}

static int
read_rank(struct session *s, const char *dir, const char *rank)
{
	struct names names = {0};
	int64_t iteration, owner;
	char *path;
	size_t i;
	int rc = 0;
	bool any = false;

	if ((path = file_join(dir, rank)) == NULL)
		return -1;
	(void)names_read(&names, path);
	for (i = 0; i < names.n && rc == 0; i++) {
		if (parse(names.list[i], false, &iteration, &owner))
			rc = add_file(s, rank, names.list[i], iteration, owner);
		else if (!parse(names.list[i], true, &iteration, &owner))
			continue;
		any = true;
	}
	if (rc == 0 && any)
		rc = add_rank(s, number(rank, rank + strlen(rank)));
	names_fini(&names);
	free(path);
	return rc;
}

static int
compare(const void *a, const void *b)
{
	const struct local *x = a, *y = b;

	if (x->iteration != y->iteration)
		return x->iteration < y->iteration ? -1 : 1;
	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* 0, or -1 when memory is short; an empty one when dir is no session. */
static int
session_read(struct session *s, const char *dir, const struct names *in)
{
	size_t i;

	memset(s, 0, sizeof(*s));
	for (i = 0; i < in->n; i++)
		if (number(in->list[i], in->list[i] + strlen(in->list[i])) >= 0 &&
		    folder_is_dir(dir, in->list[i]) &&
		    read_rank(s, dir, in->list[i]) == -1)
			return -1;
	if (s->n > 0)
		qsort(s->list, s->n, sizeof(*s->list), compare);
	return 0;
}

static void
session_fini(struct session *s)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		free(s->list[i].name);
	free(s->list);
	free(s->ranks);
	memset(s, 0, sizeof(*s));
}

/* The directory two levels above the file. */
static char *
session_of(const struct item *it)
{
	size_t len = (size_t)(it->name - it->path);
	char *rank = len > 0 ? strndup(it->path, len) : strdup(".");
	char *dir = rank != NULL ? file_join(rank, "..") : NULL;

	free(rank);
	return dir;
}

static bool
recognise(const struct item *it)
{
	int64_t iteration, owner;

	return it->is_regular && parse(it->name, false, &iteration, &owner);
}

static void
add_owner(const struct session *s, const char *dir, int64_t iteration,
    int64_t rank, struct parts *parts, struct report *r)
{
	bool found = false;
	size_t i;

	for (i = 0; i < s->n; i++)
		if (s->list[i].iteration == iteration &&
		    s->list[i].owner == rank) {
			found = true;
			if (parts_add(parts, dir, s->list[i].name) == NULL)
				parts->failed = true;
		}
	if (!found)
		report_say(r, INCOMPLETE, "no file of rank %" PRId64 " of %zu",
		    rank, s->n_ranks);
}

static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	struct session s = {0};
	struct names names = {0};
	int64_t iteration = 0, owner = 0;
	char *dir = session_of(it);
	size_t i;

	if (dir == NULL)
		goto fail;
	(void)parse(it->name, false, &iteration, &owner);
	r->step = iteration;
	if (names_read(&names, dir) == -1) {
		report_say(r, HOLDFAST_CHECKPOINT_UNREADABLE,
		    "cannot read the session: %s", strerror(errno));
		goto out;
	}
	if (session_read(&s, dir, &names) == -1)
		goto fail;
	for (i = 0; i < s.n_ranks; i++)
		add_owner(&s, dir, iteration, s.ranks[i], parts, r);
	/* not in the layout of a session: the file alone */
	if (s.n == 0 && parts_add(parts, NULL, it->path) == NULL)
		parts->failed = true;
	goto out;
fail:
	parts->failed = true;
out:
	session_fini(&s);
	names_fini(&names);
	free(dir);
}

/* The first file of each iteration of one session, relative to the directory that
 * holds it. */
static int
list_session(const char *dir, const char *prefix, const struct names *in,
    struct names *out)
{
	struct session s;
	char *name;
	size_t i;
	int rc;

	rc = session_read(&s, dir, in);
	for (i = 0; i < s.n && rc == 0; i++) {
		if (i > 0 && s.list[i].iteration == s.list[i - 1].iteration)
			continue;
		name = prefix != NULL ? file_join(prefix, s.list[i].name) :
		    strdup(s.list[i].name);
		if (name == NULL || names_add(out, name) == -1)
			rc = -1;
		free(name);
	}
	session_fini(&s);
	return rc;
}

/* Of a session, or of the folder that holds sessions. */
static int
enumerate(const char *dir, const struct names *in, struct names *out)
{
	struct names inside;
	char *path;
	size_t i;
	int rc = list_session(dir, NULL, in, out);

	for (i = 0; i < in->n && rc == 0; i++) {
		if (number(in->list[i], in->list[i] + strlen(in->list[i])) >= 0 ||
		    !folder_is_dir(dir, in->list[i]))
			continue;
		memset(&inside, 0, sizeof(inside));
		if ((path = file_join(dir, in->list[i])) == NULL)
			return -1;
		if (names_read(&inside, path) == 0)
			rc = list_session(path, in->list[i], &inside, out);
		else if (errno == EACCES || errno == EPERM)
			trouble_take_back();	/* lost+found and the like */
		names_fini(&inside);
		free(path);
	}
	return rc;
}

const struct format format_nvrx = {
	.name = "nvrx_local",
	.recognise = recognise,
	.complete = complete,
	.enumerate = enumerate,
	.same_step = true,
	.file_set = true
};
