/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect.c - compares the file names of neighbouring checkpoint folders.
 *
 * One that lacks something is incomplete, unless the next newer one has exactly its
 * files: then the world became smaller, or the trainer saves something else now.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/expect.h"

enum lack {
	LACK_NONE,
	LACK_SOME,
	LACK_MEMORY
};

/* The name with its step replaced by '#', so that step_10.pt is step_20.pt. */
static char *
without_step(const char *name, int64_t step)
{
	char digits[24], *out, *to;
	const char *p = name;
	size_t n;

	if ((out = malloc(strlen(name) + 2)) == NULL)
		return NULL;
	snprintf(digits, sizeof(digits), "%" PRId64, step);
	n = strlen(digits);
	for (to = out; *p != '\0'; ) {
		const char *start = p;
		size_t len = 0;

		if (!isdigit((unsigned char)*p)) {
			*to++ = *p++;
			continue;
		}
		while (isdigit((unsigned char)p[len]))
			len++;
		while (*start == '0' && len > n) {
			start++;
			len--;
		}
		if (step >= 0 && len == n && memcmp(start, digits, n) == 0)
			*to++ = '#';
		else {
			memcpy(to, p, (size_t)(start - p) + len);
			to += (size_t)(start - p) + len;
		}
		p = start + len;
	}
	*to = '\0';
	return out;
}

/* The names of a checkpoint's parts, sorted; without their step when `bare`. */
static int
part_names(const struct checkpoint *c, bool bare, struct names *names)
{
	char *name;
	size_t i;
	int rc;

	for (i = 0; i < c->parts.n; i++) {
		name = bare ? without_step(c->parts.list[i].name, c->name_step) :
		    strdup(c->parts.list[i].name);
		if (name == NULL)
			return -1;
		rc = names_add(names, name);
		free(name);
		if (rc == -1)
			return -1;
	}
	names_sort(names);
	return 0;
}

static int
part_kinds(const struct checkpoint *c, struct names *kinds)
{
	char *kind;
	size_t i;
	int rc;

	for (i = 0; i < c->parts.n; i++) {
		if ((kind = name_kind(c->parts.list[i].name)) == NULL)
			return -1;
		rc = names_add(kinds, kind);
		free(kind);
		if (rc == -1)
			return -1;
	}
	names_sort(kinds);
	return 0;
}

/* Files of ranks whose number stands in others: .metadata knows its shards, and the
 * model states of DeepSpeed the ranks. */
static bool
is_counted(const char *name)
{
	static const char *const begin[] = { "zero_pp_rank_",
	    "bf16_zero_pp_rank_", "mp_rank_", NULL };
	const char *slash = strrchr(name, '/');
	size_t i;

	name = slash != NULL ? slash + 1 : name;
	for (i = 0; begin[i] != NULL; i++)
		if (strncmp(name, begin[i], strlen(begin[i])) == 0)
			return name_ends_with(name, "_states.pt");
	return name_ends_with(name, ".distcp");
}

struct sets {
	struct names	have, bare, kinds;
};

static enum lack
lack_of(const struct checkpoint *c, const struct sets *sets, const char *want,
    int64_t step)
{
	enum lack lack = LACK_NONE;
	char *name;

	/* another world size is none of our business there */
	if (is_counted(want))
		return LACK_NONE;
	if (c->format->same_kinds && c->parts.counted) {
		if ((name = name_kind(want)) == NULL)
			return LACK_MEMORY;
		if (!names_has(&sets->kinds, name))
			lack = LACK_SOME;
	} else {
		/* rank_1 of step 1 is a rank as well */
		if (names_has(&sets->have, want))
			return LACK_NONE;
		if ((name = without_step(want, step)) == NULL)
			return LACK_MEMORY;
		if (!names_has(&sets->bare, name))
			lack = LACK_SOME;
	}
	free(name);
	return lack;
}

/* What c lacks; said in r unless that is NULL. */
static enum lack
compare_sets(const struct checkpoint *c, const struct checkpoint *older,
    struct report *r)
{
	enum lack lack, worst = LACK_NONE;
	struct sets sets;
	size_t i;

	memset(&sets, 0, sizeof(sets));
	if (part_names(c, false, &sets.have) == -1 ||
	    part_names(c, true, &sets.bare) == -1 ||
	    part_kinds(c, &sets.kinds) == -1)
		worst = LACK_MEMORY;
	for (i = 0; i < older->parts.n && worst != LACK_MEMORY; i++) {
		const char *want = older->parts.list[i].name;

		lack = lack_of(c, &sets, want, older->name_step);
		if (lack != LACK_NONE && lack != LACK_MEMORY && r != NULL)
			report_say(r, HOLDFAST_CHECKPOINT_INCOMPLETE,
			    "%s is missing, which step %" PRId64 " has", want,
			    checkpoint_step(older));
		worst = lack > worst ? lack : worst;
	}
	names_fini(&sets.have);
	names_fini(&sets.bare);
	names_fini(&sets.kinds);
	return worst;
}

/* The next older sound one of the same format and another step, or NULL. */
static const struct checkpoint *
find_older(const struct checkpoints *cs, size_t i, size_t except)
{
	const struct checkpoint *c = &cs->list[i];
	size_t j;

	for (j = i + 1; j < cs->n; j++)
		if (cs->list[j].format == c->format && j != except &&
		    cs->list[j].name_step != c->name_step &&
		    !report_is_bad(&cs->list[j].report))
			return &cs->list[j];
	return NULL;
}

/* Both have the same files. */
static bool
agree(const struct checkpoint *a, const struct checkpoint *b)
{
	return a->format == b->format &&
	    compare_sets(a, b, NULL) == LACK_NONE &&
	    compare_sets(b, a, NULL) == LACK_NONE;
}

static bool
is_compared(const struct checkpoint *c)
{
	return c->format != NULL && (c->format->same_files ||
	    c->format->same_kinds);
}

/* What was put off: c lacks what an older one has, and no newer one agrees. */
static int
say_doubtful(const struct checkpoints *cs, size_t i)
{
	const struct checkpoint *older;

	if (i == cs->n || (older = find_older(cs, i, cs->n)) == NULL)
		return 0;
	return compare_sets(&cs->list[i], older, &cs->list[i].report) ==
	    LACK_MEMORY ? -1 : 0;
}

int
expect_same_files(struct checkpoints *cs)
{
	const struct checkpoint *older;
	size_t i, doubtful = cs->n;	/* lacks some; no newer one was seen yet */
	enum lack lack;

	for (i = cs->n; i-- > 0; ) {
		struct checkpoint *c = &cs->list[i];

		if (!is_compared(c) || report_is_bad(&c->report) ||
		    (older = find_older(cs, i, doubtful)) == NULL)
			continue;
		lack = compare_sets(c, older, NULL);
		if (lack == LACK_MEMORY)
			return -1;
		if (lack == LACK_NONE)
			continue;
		if (doubtful < cs->n && agree(c, &cs->list[doubtful])) {
			doubtful = cs->n;
			continue;
		}
		if (say_doubtful(cs, doubtful) == -1)
			return -1;
		doubtful = i;
	}
	return say_doubtful(cs, doubtful);
}

/* Equal for those that are compared: directory and kind of name.  To be freed. */
static char *
path_like(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *kind = name_kind(path), *like = NULL;

	if (kind != NULL && asprintf(&like, "%.*s/%s", slash != NULL ?
	    (int)(slash - path) : 0, path, kind) == -1)
		like = NULL;
	free(kind);
	return like;
}

/* Holds c against the list of what lies in its directory. */
static int
expect_of(struct checkpoint *c, const struct checkpoints *listed)
{
	const struct checkpoint *older;
	size_t i;

	for (i = 0; i < listed->n; i++)
		if (listed->list[i].format == c->format &&
		    listed->list[i].name_step == c->name_step)
			break;
	/* what the list holds of it was compared already */
	if (i == listed->n || !report_is_bad(&listed->list[i].report) ||
	    (older = find_older(listed, i, listed->n)) == NULL)
		return 0;
	return compare_sets(c, older, &c->report) == LACK_MEMORY ? -1 : 0;
}

int
expect_beside(struct checkpoint *list, size_t n, int threads)
{
	struct checkpoints listed = {0};
	char *of = NULL, *like;
	struct err err;
	size_t i;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++) {
		struct checkpoint *c = &list[i];

		if (!is_compared(c) || c->name_step == REPORT_UNKNOWN ||
		    report_is_bad(&c->report))
			continue;
		if ((like = path_like(c->path)) == NULL) {
			rc = -1;
			break;
		}
		if (of == NULL || strcmp(of, like) != 0) {
			checkpoints_fini(&listed);
			err = (struct err){0};
			/* what cannot be listed cannot be compared */
			(void)checkpoints_find_like(&listed, c->path, threads,
			    &err);
			free(of);
			of = like;
		} else {
			free(like);
		}
		rc = expect_of(c, &listed);
	}
	checkpoints_fini(&listed);
	free(of);
	return rc;
}
