/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rule_cache.c - a file of literals and their plan, by the patterns they are of.
 *
 * The key covers the patterns and the plan of the shipped rules, so a file is
 * valid for exactly what it was made of; a checksum covers the rest.  Only a file
 * of this user that nobody else may write to is read, and each number in it is
 * checked: a bad one costs time, never a match.  Native byte order: it does not
 * travel.
 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "diagnose/rule_cache.h"

#define MAGIC		0x31504648u	/* "HFP1" */
#define RULES_MIN	32		/* fewer are planned at once */
#define SIZE_LIMIT	(16 << 20)

struct header {
	uint32_t	magic;
	uint32_t	rules;
	uint64_t	key[2];
	uint64_t	sum;		/* of what follows */
};

struct rule_row {
	uint16_t	literals;
	uint8_t		blind;
	uint8_t		zero;
};

/* Followed by the text. */
struct literal_row {
	uint8_t		len;
	uint8_t		fold;
	uint8_t		any_case;
	uint8_t		offset;
	uint8_t		exact;
	uint8_t		nibble;
};

static uint64_t
mix(uint64_t h, const void *data, size_t len)
{
	const unsigned char *p = data;

	while (len-- > 0)
		h = (h ^ *p++) * 1099511628211ull;	/* FNV-1a */
	return h;
}

static void
mix_both(uint64_t key[2], const void *data, size_t len)
{
	key[0] = mix(key[0], data, len);
	key[1] = mix(key[1] ^ 0x5bd1e9955bd1e995ull, data, len);
}

static void
mix_text(uint64_t key[2], const char *text)
{
	if (text == NULL)
		mix_both(key, "\xff", 1);
	else
		mix_both(key, text, strlen(text) + 1);
}

static size_t
make_key(const struct rule_set *set, uint64_t key[2])
{
	const struct scan_literal *l;
	size_t i, fresh = 0;

	key[0] = key[1] = 14695981039346656037ull;
	mix_text(key, PACKAGE_VERSION);
	for (i = 0; i < set->count; i++) {
		const struct rule_def *d = &set->rules[i].def;

		if (!d->prepared) {
			mix_text(key, d->match);
			mix_text(key, d->unless);
			fresh++;
			continue;
		}
		for (l = d->literals; l != NULL && l->text != NULL; l++) {
			mix_text(key, l->text);
			mix_both(key, &l->offset, 1);
			mix_both(key, &l->exact, 1);
			mix_both(key, &l->nibble, 1);
		}
	}
	return fresh;
}

/* The folder of the cache, for the caller to free; NULL without a home. */
static char *
cache_dir(void)
{
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *dir = NULL;
	int n;

	if (base != NULL && base[0] == '/')
		n = asprintf(&dir, "%s/holdfast", base);
	else if (home != NULL && home[0] == '/')
		n = asprintf(&dir, "%s/.cache/holdfast", home);
	else
		return NULL;
	return n == -1 ? NULL : dir;
}

/* The file of a rule folder, for the caller to free. */
static char *
cache_path(const char *dir, bool make)
{
	char *real = realpath(dir, NULL), *folder = cache_dir(), *path = NULL;
	uint64_t h;

	if (real == NULL || folder == NULL ||
	    (make && file_mkdirs(folder, 0700, NULL) == -1))
		goto out;
	h = mix(14695981039346656037ull, real, strlen(real));
	if (asprintf(&path, "%s/rules-%016llx.plan", folder,
	    (unsigned long long)h) == -1)
		path = NULL;
out:
	free(real);
	free(folder);
	return path;
}

/* The bytes of a file that is ours alone; 0 and no data when there is none. */
static size_t
read_own(const char *path, char **out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	char *data = NULL;
	size_t len = 0;
	ssize_t n;

	if (fd == -1)
		return 0;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_uid == geteuid() && (st.st_mode & 022) == 0 &&
	    st.st_size > (off_t)sizeof(struct header) &&
	    st.st_size < SIZE_LIMIT &&
	    (data = malloc((size_t)st.st_size)) != NULL) {
		while (len < (size_t)st.st_size && (n = read(fd, data + len,
		    (size_t)st.st_size - len)) > 0)
			len += (size_t)n;
	}
	close(fd);
	*out = data;
	return len;
}

struct reader {
	const char	*p, *end;
	struct rule_set	*set;
};

static bool
take(struct reader *r, void *out, size_t len)
{
	if ((size_t)(r->end - r->p) < len)
		return false;
	memcpy(out, r->p, len);
	r->p += len;
	return true;
}

static bool
read_literal(struct reader *r, struct scan_literal *l)
{
	struct literal_row row;
	char *text;

	if (!take(r, &row, sizeof(row)) || row.len < SCAN_LITERAL_MIN ||
	    row.len > SCAN_LITERAL_MAX || row.offset + 4 > row.len ||
	    row.exact >= SCAN_BUCKETS_EXACT ||
	    row.nibble >= SCAN_BUCKETS_NIBBLE || row.fold > row.any_case ||
	    row.any_case > 1 || (size_t)(r->end - r->p) < row.len ||
	    memchr(r->p, '\0', row.len) != NULL)
		return false;
	text = strndup(r->p, row.len);
	r->p += row.len;
	*l = (struct scan_literal){ .text = text, .len = row.len,
	    .fold = row.fold, .planned = true, .any_case = row.any_case,
	    .offset = row.offset, .exact = row.exact, .nibble = row.nibble };
	return rule_set_own(r->set, text, NULL) == 0;
}

static bool
read_rule(struct reader *r, struct rule_def *d)
{
	struct scan_literal *list;
	struct rule_row row;
	size_t i;

	if (!take(r, &row, sizeof(row)) || row.literals == 0)
		return false;
	list = calloc(row.literals + 1u, sizeof(*list));
	if (rule_set_own(r->set, list, NULL) == -1)
		return false;
	for (i = 0; i < row.literals; i++)
		if (!read_literal(r, &list[i]))
			return false;
	d->literals = list;
	d->blind = row.blind != 0;
	return true;
}

/* What was read for some rules is taken back when one of them is wrong. */
static bool
read_rules(struct reader *r)
{
	size_t i;

	for (i = 0; i < r->set->count; i++) {
		struct rule_def *d = &r->set->rules[i].def;

		if (d->prepared || d->literals != NULL)
			continue;
		if (!read_rule(r, d))
			break;
	}
	if (i == r->set->count && r->p == r->end)
		return true;
	for (i = 0; i < r->set->count; i++)
		if (!r->set->rules[i].def.prepared)
			r->set->rules[i].def.literals = NULL;
	return false;
}

bool
rule_cache_load(struct rule_set *set, const char *dir)
{
	struct reader r = { .set = set };
	struct header h;
	uint64_t key[2];
	size_t len, fresh = make_key(set, key);
	char *path, *data = NULL;
	bool ok = false;

	if (fresh < RULES_MIN || (path = cache_path(dir, false)) == NULL)
		return false;
	len = read_own(path, &data);
	if (len > sizeof(h)) {
		r.p = data;
		r.end = data + len;
		(void)take(&r, &h, sizeof(h));
		ok = h.magic == MAGIC && h.rules == fresh &&
		    h.key[0] == key[0] && h.key[1] == key[1] &&
		    h.sum == mix(0, r.p, (size_t)(r.end - r.p)) &&
		    read_rules(&r);
	}
	free(data);
	free(path);
	return ok;
}

static int
write_rule(struct buf *b, const struct rule_set *set, size_t rule)
{
	const struct rule_def *d = &set->rules[rule].def;
	struct rule_row row = { .blind = d->blind };
	const struct scan_literal *l = rule_set_planned(set, rule);
	size_t n = rule_literal_count(d);

	if (l == NULL || n == 0 || n > UINT16_MAX)
		return -1;
	row.literals = (uint16_t)n;
	if (buf_append(b, &row, sizeof(row)) == -1)
		return -1;
	for (; n > 0; n--, l++) {
		struct literal_row lr = { l->len, l->fold, l->any_case, l->offset,
		    l->exact, l->nibble };

		if (buf_append(b, &lr, sizeof(lr)) == -1 ||
		    buf_append(b, l->text, l->len) == -1)
			return -1;
	}
	return 0;
}

void
rule_cache_store(const struct rule_set *set, const char *dir)
{
	struct header h = { .magic = MAGIC };
	struct buf b = {0};
	char *path = NULL;
	size_t i;

	h.rules = (uint32_t)make_key(set, h.key);
	if (h.rules < RULES_MIN || buf_append(&b, &h, sizeof(h)) == -1)
		goto out;
	for (i = 0; i < set->count; i++)
		if (!set->rules[i].def.prepared &&
		    (set->rules[i].broken || write_rule(&b, set, i) == -1))
			goto out;
	h.sum = mix(0, b.data + sizeof(h), b.len - sizeof(h));
	memcpy(b.data, &h, sizeof(h));
	if (b.len < SIZE_LIMIT && (path = cache_path(dir, true)) != NULL)
		(void)file_write_atomic(path, b.data, b.len, 0600, NULL);
out:
	buf_fini(&b);
	free(path);
}
