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

/* The names of a checkpoint's parts without their step, sorted. */
static int
part_names(const struct checkpoint *c, struct names *names)
{
	char *name;
	size_t i;
	int rc;

	for (i = 0; i < c->parts.n; i++) {
		name = without_step(c->parts.list[i].name, c->name_step);
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
	struct names have = {0}, want = {0};
	size_t i;
	int rc = -1;

	if (part_names(c, &have) == -1 || part_names(older, &want) == -1)
		goto out;
	for (i = 0; i < want.n; i++)
		if (!names_has(&have, want.list[i]))
			report_say(&c->report, HOLDFAST_CHECKPOINT_INCOMPLETE,
			    "%s is missing, which step %" PRId64 " has",
			    want.list[i], checkpoint_step(older));
	rc = 0;
out:
	names_fini(&have);
	names_fini(&want);
	return rc;
}

int
expect_same_files(struct checkpoints *cs)
{
	const struct checkpoint *older = NULL;
	size_t i;

	for (i = cs->n; i-- > 0; ) {
		struct checkpoint *c = &cs->list[i];

		if (c->format == NULL || !c->format->same_files ||
		    report_is_bad(&c->report))
			continue;
		if (older != NULL && older->format == c->format &&
		    compare_sets(c, older) == -1)
			return -1;
		if (!report_is_bad(&c->report))
			older = c;
	}
	return 0;
}
