/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect.c - compares the file names of neighbouring checkpoint folders.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/expect.h"

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
compare_sets(struct checkpoint *c, const struct checkpoint *older)
{
	struct names have = {0}, bare = {0};
	size_t i;
	int rc = -1;

	if (part_names(c, false, &have) == -1 || part_names(c, true, &bare) == -1)
		goto out;
	for (i = 0; i < older->parts.n; i++) {
		const char *want = older->parts.list[i].name;
		char *name;
		bool found;

		/* another world size is none of our business there */
		if (c->format->own_ranks && strstr(want, "rank_") != NULL)
			continue;
		/* rank_1 of step 1 is a rank as well */
		if (names_has(&have, want))
			continue;
		if ((name = without_step(want, older->name_step)) == NULL)
			goto out;
		found = names_has(&bare, name);
		free(name);
		if (!found)
			report_say(&c->report, HOLDFAST_CHECKPOINT_INCOMPLETE,
			    "%s is missing, which step %" PRId64 " has", want,
			    checkpoint_step(older));
	}
	rc = 0;
out:
	names_fini(&have);
	names_fini(&bare);
	return rc;
}

/* The next older sound one of the same format and another step, or NULL. */
static const struct checkpoint *
find_older(const struct checkpoints *cs, size_t i)
{
	const struct checkpoint *c = &cs->list[i];
	size_t j;

	for (j = i + 1; j < cs->n; j++)
		if (cs->list[j].format == c->format &&
		    cs->list[j].name_step != c->name_step &&
		    !report_is_bad(&cs->list[j].report))
			return &cs->list[j];
	return NULL;
}

int
expect_same_files(struct checkpoints *cs)
{
	const struct checkpoint *older;
	size_t i;

	for (i = cs->n; i-- > 0; ) {
		struct checkpoint *c = &cs->list[i];

		if (c->format == NULL || !c->format->same_files ||
		    report_is_bad(&c->report) ||
		    (older = find_older(cs, i)) == NULL)
			continue;
		if (compare_sets(c, older) == -1)
			return -1;
	}
	return 0;
}
