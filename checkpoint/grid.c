/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grid.c - reads the numbers in file names and looks for the combination that is
 * absent.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/grid.h"

#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE

struct cell {
	unsigned	at[GRID_DIMS];
};

/* The distinct numbers of one dimension, sorted. */
struct axis {
	unsigned	*list;
	size_t		 n;
};

struct cells {
	struct cell	*list;		/* sorted */
	size_t		 n, dims;
	struct axis	 axes[GRID_DIMS];
	const char	*sample;	/* a name, for the width of its numbers */
};

bool
grid_match(const char *name, const char *pattern, unsigned at[GRID_DIMS])
{
	size_t dim = 0, digits;
	unsigned n;

	for (; *pattern != '\0'; pattern++) {
		if (*pattern != '#') {
			if (*name++ != *pattern)
				return false;
			continue;
		}
		for (n = 0, digits = 0; isdigit((unsigned char)*name); digits++) {
			n = n * 10 + (unsigned)(*name++ - '0');
			if (n >= GRID_MAX)
				return false;
		}
		if (digits == 0 || dim == GRID_DIMS)
			return false;
		at[dim++] = n;
	}
	return *name == '\0';
}

static int
compare_cells(const void *a, const void *b)
{
	const struct cell *x = a, *y = b;
	size_t i;

	for (i = 0; i < GRID_DIMS; i++)
		if (x->at[i] != y->at[i])
			return x->at[i] < y->at[i] ? -1 : 1;
	return 0;
}

static int
compare_numbers(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return x < y ? -1 : x > y;
}

bool
grid_fits(const struct grid *g, const unsigned at[GRID_DIMS])
{
	size_t d;

	for (d = 0; d < GRID_DIMS; d++)
		if (g->size[d] > 0 && at[d] >= g->size[d])
			return false;
	return true;
}

/* 0, or -1 when memory is short. */
static int
collect(struct cells *c, const struct names *names, const struct grid *g)
{
	struct axis *axis;
	const char *p;
	size_t i, d, n;

	for (p = g->pattern; *p != '\0'; p++)
		c->dims += *p == '#';
	if ((c->list = calloc(names->n + 1, sizeof(*c->list))) == NULL)
		return -1;
	for (i = 0; i < names->n; i++)
		if (grid_match(names->list[i], g->pattern, c->list[c->n].at) &&
		    grid_fits(g, c->list[c->n].at)) {
			if (c->n++ == 0)
				c->sample = names->list[i];
		} else {
			memset(&c->list[c->n], 0, sizeof(c->list[c->n]));
		}
	qsort(c->list, c->n, sizeof(*c->list), compare_cells);
	for (d = 0; d < c->dims; d++) {
		axis = &c->axes[d];
		axis->list = calloc(c->n + 1, sizeof(*axis->list));
		if (axis->list == NULL)
			return -1;
		for (i = 0; i < c->n; i++)
			axis->list[i] = c->list[i].at[d];
		qsort(axis->list, c->n, sizeof(*axis->list), compare_numbers);
		for (i = 0, n = 0; i < c->n; i++)
			if (n == 0 || axis->list[n - 1] != axis->list[i])
				axis->list[n++] = axis->list[i];
		axis->n = n;
	}
	return 0;
}

/* The name of a cell, its numbers as wide as those of the sample. */
static void
cell_name(const struct cells *c, const struct grid *g, const struct cell *cell,
    char *out, size_t size)
{
	const char *p, *from = c->sample;
	size_t len = 0, dim = 0;
	int width;

	out[0] = '\0';
	for (p = g->pattern; *p != '\0' && len + 1 < size; p++) {
		if (*p != '#') {
			out[len++] = *p;
			out[len] = '\0';
			from++;
			continue;
		}
		for (width = 0; isdigit((unsigned char)*from); from++)
			width++;
		if (width > 1 && from[-width] != '0')
			width = 1;
		len += (size_t)snprintf(out + len, size - len, "%0*u", width,
		    cell->at[dim++]);
	}
}

static bool
has_cell(const struct cells *c, const struct cell *cell)
{
	return bsearch(cell, c->list, c->n, sizeof(*c->list), compare_cells) !=
	    NULL;
}

/* Numbers that must be there and are not, or are and must not; true when so. */
static bool
check_axis(const struct cells *c, const struct grid *g, size_t d,
    struct report *r)
{
	const struct axis *axis = &c->axes[d];
	struct cell cell = c->list[0];
	char name[160];
	size_t i;

	for (i = 0; i < axis->n && !g->holes[d]; i++)
		if (axis->list[i] != i)
			break;
	if (g->holes[d] || (i == axis->n && (g->size[d] == 0 ||
	    g->size[d] == axis->n)))
		return false;
	cell.at[d] = (unsigned)i;
	cell_name(c, g, &cell, name, sizeof(name));
	if (g->size[d] > 0)
		report_say(r, INCOMPLETE, "%s is missing of %u ranks", name,
		    g->size[d]);
	else
		report_say(r, INCOMPLETE, "%s is missing", name);
	return true;
}

/* All combinations; finds the first absent one after at most n steps. */
static void
check_cells(const struct cells *c, const struct grid *g, struct report *r)
{
	size_t digit[GRID_DIMS] = {0}, d;
	struct cell cell;
	char name[160];

	memset(&cell, 0, sizeof(cell));
	for (;;) {
		for (d = 0; d < c->dims; d++)
			cell.at[d] = c->axes[d].list[digit[d]];
		if (!has_cell(c, &cell)) {
			cell_name(c, g, &cell, name, sizeof(name));
			report_say(r, INCOMPLETE, "%s is missing", name);
			return;
		}
		for (d = c->dims; d > 0; d--) {
			if (++digit[d - 1] < c->axes[d - 1].n)
				break;
			digit[d - 1] = 0;
		}
		if (d == 0)
			return;
	}
}

size_t
grid_check(const struct names *names, const struct grid *g, struct report *r)
{
	struct cells c = {0};
	size_t d;

	if (collect(&c, names, g) == -1) {
		report_say(r, HOLDFAST_CHECKPOINT_UNVERIFIED, "out of memory");
		goto out;
	}
	for (d = 0; c.n > 0 && d < c.dims; d++)
		if (check_axis(&c, g, d, r))
			goto out;
	if (c.n > 0)
		check_cells(&c, g, r);
out:
	free(c.list);
	for (d = 0; d < GRID_DIMS; d++)
		free(c.axes[d].list);
	return c.n;
}
