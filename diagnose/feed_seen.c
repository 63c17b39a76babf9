/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_seen.c - a set of device and inode numbers.
 *
 * "latest" is often a link to a folder beside it: read twice, every finding would
 * count twice, and ranks would seem to exist twice.
 */
#include <stdint.h>
#include <stdlib.h>

#include "diagnose/feed_seen.h"

struct entry {
	uint64_t	dev, ino;
	bool		used;
};

struct feed_seen {
	struct entry	*entries;	/* open addressing, at most half full */
	size_t		 count, size;	/* size is a power of two */
};

static struct entry *
find(const struct feed_seen *s, uint64_t dev, uint64_t ino)
{
	uint64_t h = (ino + dev * 0x9e3779b97f4a7c15u) * 0x9e3779b97f4a7c15u;
	size_t i = h >> 32;

	for (;; i++) {
		struct entry *e = &s->entries[i & (s->size - 1)];

		if (!e->used || (e->dev == dev && e->ino == ino))
			return e;
	}
}

static bool
grow(struct feed_seen *s)
{
	struct feed_seen big = { .size = s->size ? s->size * 2 : 256 };
	size_t i;

	big.entries = calloc(big.size, sizeof(*big.entries));
	if (big.entries == NULL)
		return false;
	for (i = 0; i < s->size; i++)
		if (s->entries[i].used)
			*find(&big, s->entries[i].dev, s->entries[i].ino) =
			    s->entries[i];
	big.count = s->count;
	free(s->entries);
	*s = big;
	return true;
}

bool
feed_seen(struct feed *f, const struct stat *st)
{
	struct feed_seen *s = f->seen;
	struct entry *e;

	if (s == NULL && (s = f->seen = calloc(1, sizeof(*s))) == NULL)
		return false;
	if (s->count * 2 >= s->size && !grow(s))
		return false;
	e = find(s, (uint64_t)st->st_dev, (uint64_t)st->st_ino);
	if (e->used)
		return true;
	*e = (struct entry){ (uint64_t)st->st_dev, (uint64_t)st->st_ino, true };
	s->count++;
	return false;
}

void
feed_seen_free(struct feed *f)
{
	if (f->seen != NULL)
		free(f->seen->entries);
	free(f->seen);
	f->seen = NULL;
}
