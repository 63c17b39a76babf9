/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_hs.c - Hyperscan or Vectorscan on a log, for comparison; built where
 * configure finds libhs.
 *
 *   bench_hs PATTERNS LOG
 *
 * Reads one pattern a line; those that the library refuses are left out.  Scans the
 * mapped log in blocks that end at line ends, which it is fastest with: it is slower
 * on one large block, since a pattern with `.+' stays alive to the end.  Emits one
 * JSON object: patterns used and refused, seconds of compiling and scanning, matches.
 */
#include <fcntl.h>
#include <hs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/json.h"

#define BLOCK		((size_t)64 << 10)
#define PATTERNS_MAX	4096

struct patterns {
	char		*text[PATTERNS_MAX];
	unsigned	 id[PATTERNS_MAX], flags[PATTERNS_MAX];
	unsigned	 count, refused;
};

static double
cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static int
read_patterns(const char *path, struct patterns *p)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t cap = 0;

	if (f == NULL)
		return -1;
	while (p->count < PATTERNS_MAX && getline(&line, &cap, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		p->id[p->count] = p->count;
		p->flags[p->count] = HS_FLAG_MULTILINE | HS_FLAG_ALLOWEMPTY;
		p->text[p->count++] = line;
		line = NULL;
		cap = 0;
	}
	free(line);
	fclose(f);
	return 0;
}

/* Drops what the library refuses, one pattern at a time; *spent is the time of the
 * last try, which has none of those. */
static hs_database_t *
compile(struct patterns *p, double *spent)
{
	hs_compile_error_t *e;
	hs_database_t *db;
	int bad;

	while (p->count > 0) {
		*spent = cpu_s();
		if (hs_compile_multi((const char *const *)p->text, p->flags, p->id,
		    p->count, HS_MODE_BLOCK, NULL, &db, &e) == HS_SUCCESS) {
			*spent = cpu_s() - *spent;
			return db;
		}
		bad = e->expression;
		if (bad < 0)
			fprintf(stderr, "bench_hs: %s\n", e->message);
		hs_free_compile_error(e);
		if (bad < 0)
			return NULL;
		free(p->text[bad]);
		p->text[bad] = p->text[--p->count];
		p->refused++;
	}
	return NULL;
}

static int
on_match(unsigned id, unsigned long long from, unsigned long long to,
    unsigned flags, void *arg)
{
	(void)id;
	(void)from;
	(void)to;
	(void)flags;
	++*(unsigned long long *)arg;
	return 0;
}

static int
scan(const hs_database_t *db, const char *path, unsigned long long *matches)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = -1;
	hs_scratch_t *scratch = NULL;
	size_t at, len, n;
	struct stat st;
	const char *nl;
	char *data;

	if (fd == -1)
		return -1;
	if (fstat(fd, &st) == -1 || st.st_size == 0) {
		close(fd);
		return -1;
	}
	len = (size_t)st.st_size;
	data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (data == MAP_FAILED)
		return -1;
	if (hs_alloc_scratch(db, &scratch) != HS_SUCCESS)
		goto out;
	for (at = 0; at < len; at += n) {
		n = len - at < BLOCK ? len - at : BLOCK;
		if (n == BLOCK && (nl = memrchr(data + at, '\n', n)) != NULL)
			n = (size_t)(nl + 1 - (data + at));
		if (hs_scan(db, data + at, (unsigned)n, 0, scratch, on_match,
		    matches) != HS_SUCCESS)
			goto out;
	}
	rc = 0;
out:
	hs_free_scratch(scratch);
	munmap(data, len);
	return rc;
}

static void
print(const struct patterns *p, double compile, double scanning,
    unsigned long long matches)
{
	cJSON *o = cJSON_CreateObject();
	char *line;

	json_add_text(o, "version", hs_version());
	json_add_int(o, "patterns", p->count);
	json_add_int(o, "refused", p->refused);
	cJSON_AddNumberToObject(o, "compile_s", compile);
	cJSON_AddNumberToObject(o, "cpu_s", scanning);
	json_add_int(o, "matches", (int64_t)matches);
	if ((line = json_line(o)) != NULL)
		fputs(line, stdout);
	free(line);
	cJSON_Delete(o);
}

int
main(int argc, char **argv)
{
	unsigned long long matches = 0;
	static struct patterns p;
	hs_database_t *db = NULL;
	double start, compiling;
	int rc = 2;

	if (argc != 3) {
		fprintf(stderr, "usage: bench_hs PATTERNS LOG\n");
		return 2;
	}
	if (read_patterns(argv[1], &p) == -1 ||
	    (db = compile(&p, &compiling)) == NULL) {
		fprintf(stderr, "bench_hs: %s: no usable pattern\n", argv[1]);
		goto out;
	}
	start = cpu_s();
	if (scan(db, argv[2], &matches) == -1) {
		fprintf(stderr, "bench_hs: cannot scan %s\n", argv[2]);
		goto out;
	}
	print(&p, compiling, cpu_s() - start, matches);
	rc = 0;
out:
	hs_free_database(db);
	while (p.count > 0)
		free(p.text[--p.count]);
	return rc;
}
