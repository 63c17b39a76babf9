/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_name.c - what the path of a file says about it.
 *
 * Decides which files of a directory are logs, and what their path says about
 * rank and node: Holdfast's attempts/NNNN/{rank00017.log, NODE.log, NODE.exits,
 * NODE.kmsg}, torchrun's attempt_N/LOCALRANK/{stdout.log,stderr.log,error.json},
 * and names with "rank" and a number.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/feed_name.h"

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool
ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);

	return n >= k && strcmp(text + n - k, end) == 0;
}

/* The number behind "rank" with at most one of _ - . = between. */
static int
rank_in(const char *name)
{
	const char *p = name;

	while ((p = strcasestr(p, "rank")) != NULL) {
		p += 4;
		if (*p != '\0' && strchr("_-.=", *p) != NULL)
			p++;
		if (isdigit((unsigned char)*p) && strspn(p, "0123456789") < 8)
			return atoi(p);
	}
	return -1;
}

/* torchrun: ".../attempt_0/3/stderr.log" is local rank 3. */
static int
rank_of_dir(const char *name)
{
	const char *base = base_name(name), *p = base;

	if (p - name < 2)
		return -1;
	for (p--; p > name && p[-1] != '/'; p--)
		;
	if (!isdigit((unsigned char)*p) ||
	    strspn(p, "0123456789") != (size_t)(base - 1 - p) || base - p > 7)
		return -1;
	return strstr(name, "attempt_") != NULL ? atoi(p) : -1;
}

void
feed_name_describe(struct stream *s)
{
	const char *base = base_name(s->name);
	const char *dot = strrchr(base, '.');

	if (ends_with(base, ".exits"))
		s->kind = STREAM_EXITS;
	else if (ends_with(base, ".kmsg") || strncmp(base, "dmesg", 5) == 0)
		s->kind = STREAM_KERNEL;
	else if (strcmp(base, "error.json") == 0)
		s->kind = STREAM_ERROR;
	s->rank = rank_in(base);
	if (s->rank == -1)
		s->rank = rank_of_dir(s->name);
	if (dot != NULL && dot > base && (s->kind == STREAM_EXITS ||
	    ends_with(base, ".kmsg")))
		s->node = strndup(base, (size_t)(dot - base));
}

/* Files that are no logs, by name: weights, code, archives, Holdfast's own
 * records (which quote log lines). */
bool
feed_name_is_log(const char *name)
{
	static const char *const ends[] = {
		".pt", ".pth", ".bin", ".safetensors", ".ckpt", ".distcp", ".npy",
		".npz", ".zip", ".gz", ".zst", ".xz", ".bz2", ".tar", ".tgz", ".whl",
		".so", ".o", ".pyc", ".py", ".c", ".h", ".sh", ".yaml", ".yml",
		".jsonl", ".png", ".jpg", ".pdf", ".html", ".parquet", ".arrow",
		".idx", ".pkl", ".model", ".pickle", ".csv", ".tsv", ".md", ".toml",
		".db", ".sqlite", ".nsys-rep", ".sqsh", ".prom", ".sock"
	};
	const char *dot = strrchr(name, '.');
	size_t i;

	if (name[0] == '.' || strcmp(name, "lock") == 0 ||
	    strncmp(name, "events.out.tfevents", 19) == 0)
		return false;
	if (dot == NULL)
		return true;
	if (strcmp(dot, ".json") == 0)
		return strcmp(name, "error.json") == 0;
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (strcasecmp(dot, ends[i]) == 0)
			return false;
	return true;
}
