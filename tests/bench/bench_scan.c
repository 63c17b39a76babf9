/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_scan.c - how fast the scanner reads a log, against reading it at all.
 *
 *   bench_scan [-n ROUNDS] LOG [NAME=RULES-DIR]...
 *   bench_scan -t LOG
 *
 * Windows, scanners and threads are those of `diagnose' (ahead.h): the shipped rules
 * in one and in two threads, then those of each directory as well, by its name, in
 * one; at each level that the processor has.  Emits a JSON object a row and round, with
 * the time of touching the mapped log right before.  Fails when levels or threads find
 * different literals.  With -t it touches the log and ends: the limit for processes.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/json.h"
#include "diagnose/ahead.h"
#include "diagnose/rule_load.h"

#define GIVE_BACK	((size_t)8 << 20)	/* as in collect.c */
#define SETS_MAX	8
#define LEVELS		3
#define THREADS_MAX	2u
#define TOUCH_LANES	4

/* A register of any vector unit; compilers split it where it is too wide. */
typedef uint64_t touch_lane __attribute__((vector_size(32), aligned(1)));

struct time_spent {
	double	wall_s, cpu_s;
};

struct rules {
	const char	*name;
	struct rule_set	*set[LEVELS];	/* NULL: the processor has no such level */
	bool		 known;		/* what it finds: */
	uint64_t	 sum, hits;
};

struct part {
	const char	*data;
	size_t		 len;
	uint64_t	 sum;
};

static double
read_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static struct time_spent
now(void)
{
	return (struct time_spent){ read_clock(CLOCK_MONOTONIC),
	    read_clock(CLOCK_PROCESS_CPUTIME_ID) };
}

static struct time_spent
since(struct time_spent start)
{
	struct time_spent t = now();

	return (struct time_spent){ t.wall_s - start.wall_s,
	    t.cpu_s - start.cpu_s };
}

static void *
touch_part(void *arg)
{
	struct part *p = arg;
	touch_lane sum[TOUCH_LANES] = {0};
	size_t i = 0, k;

	for (; i + sizeof(sum) <= p->len; i += sizeof(sum))
		for (k = 0; k < TOUCH_LANES; k++)
			sum[k] ^= *(const touch_lane *)(p->data + i +
			    k * sizeof(sum[0]));
	for (k = 1; k < TOUCH_LANES; k++)
		sum[0] ^= sum[k];
	for (; i < p->len; i++)
		sum[0][0] ^= (unsigned char)p->data[i];
	p->sum = sum[0][0] ^ sum[0][1] ^ sum[0][2] ^ sum[0][3];
	return NULL;
}

/* Maps the file, reads each byte in so many threads, unmaps it. */
static int
touch(const char *path, unsigned threads, struct time_spent *out)
{
	struct time_spent start = now();
	struct part parts[THREADS_MAX];
	pthread_t others[THREADS_MAX];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	unsigned i;
	size_t len;
	char *p;

	if (fd == -1)
		return -1;
	if (fstat(fd, &st) == -1 || st.st_size == 0) {
		close(fd);
		return -1;
	}
	len = (size_t)st.st_size;
	p = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return -1;
	(void)madvise(p, len, MADV_SEQUENTIAL);
	for (i = 0; i < threads; i++)
		parts[i] = (struct part){ p + len / threads * i,
		    i + 1 < threads ? len / threads :
		    len - len / threads * i, 0 };
	for (i = 1; i < threads; i++)
		if (pthread_create(&others[i], NULL, touch_part, &parts[i]) != 0)
			abort();
	touch_part(&parts[0]);
	for (i = 1; i < threads; i++)
		pthread_join(others[i], NULL);
	munmap(p, len);
	*out = since(start);
	return 0;
}

/* Reads all windows of the log as collect.c does, adding up what is found. */
static int
scan(struct rule_set *set, const struct feed *feed, unsigned threads,
    struct rules *found, struct time_spent *out, struct err *err)
{
	const struct scanner *tail = rule_set_scanner(set, SCANNER_TAIL);
	const struct scanner *rest = rule_set_scanner(set, SCANNER_LOUD);
	struct time_spent start;
	struct ahead_window w;
	struct ahead *a;
	size_t i, given = 0;
	uint32_t stream;

	if (tail == NULL || rest == NULL)
		return err_memory(err);
	start = now();
	if (ahead_new(rest, tail, feed, 0, (uint32_t)feed->count,
	    threads > 1 ? threads : 0, &a, err) == -1)
		return -1;
	for (stream = 0; stream < feed->count; stream++, given = 0)
		while (ahead_next(a, stream, &w)) {
			if (w.failed) {
				ahead_free(a);
				return err_memory(err);
			}
			for (i = 0; i < w.count; i++)
				found->sum += (w.hits[i].literal + 1) *
				    (w.from + w.hits[i].start + 1);
			found->sum += w.newlines;
			found->hits += w.count;
			if (w.to - given >= GIVE_BACK) {
				stream_release(&feed->streams[stream], given,
				    w.to);
				given = w.to;
			}
		}
	ahead_free(a);
	*out = since(start);
	return 0;
}

static void
print_row(int round, const char *rules, const char *level, unsigned threads,
    uint64_t hits, size_t bytes, struct time_spent t, struct time_spent limit)
{
	cJSON *o = cJSON_CreateObject();
	char *line;

	json_add_int(o, "round", round);
	json_add_text(o, "rules", rules);
	json_add_text(o, "level", level);
	json_add_int(o, "threads", threads);
	json_add_int(o, "bytes", (int64_t)bytes);
	json_add_int(o, "hits", (int64_t)hits);
	cJSON_AddNumberToObject(o, "cpu_s", t.cpu_s);
	cJSON_AddNumberToObject(o, "wall_s", t.wall_s);
	cJSON_AddNumberToObject(o, "touch_cpu_s", limit.cpu_s);
	cJSON_AddNumberToObject(o, "touch_wall_s", limit.wall_s);
	if ((line = json_line(o)) != NULL)
		fputs(line, stdout);
	free(line);
	cJSON_Delete(o);
}

/* One row: a set of rules at one level, in one or more threads. */
static int
run_row(int round, const char *path, struct rules *r, int level,
    unsigned threads, const struct feed *feed, struct err *err)
{
	const char *name = scan_level_name((enum scan_level)level);
	struct rules found = { .name = r->name };
	struct time_spent t = {0}, limit;
	size_t bytes = 0, i;

	for (i = 0; i < feed->count; i++)
		bytes += feed->streams[i].len;
	if (touch(path, threads, &limit) == -1)
		return err_errno(err, "cannot touch %s", path);
	if (scan(r->set[level], feed, threads, &found, &t, err) == -1)
		return -1;
	print_row(round, r->name, name, threads, found.hits, bytes, t, limit);
	if (r->known && r->sum != found.sum)
		return err_set(err, ERR_FORMAT, "%s rules, %s, %u threads: not "
		    "the literals that were found before", r->name, name,
		    threads);
	r->known = true;
	r->sum = found.sum;
	return 0;
}

/* Everything once, so that a busy machine is busy for all of it. */
static int
run_round(int round, const char *path, const struct feed *feed,
    struct rules *rules, size_t count, struct err *err)
{
	unsigned threads;
	size_t i;
	int level;

	for (i = 0; i < count; i++)
		for (level = LEVELS - 1; level >= 0; level--)
			for (threads = 1; threads <= (i ? 1 : THREADS_MAX);
			    threads++)
				if (rules[i].set[level] != NULL &&
				    run_row(round, path, &rules[i], level,
				    threads, feed, err) == -1)
					return -1;
	return 0;
}

static void
on_problem(const char *text, void *arg)
{
	(void)arg;
	fprintf(stderr, "bench_scan: %s\n", text);
}

static int
load(struct rules *r, const char *dir, struct err *err)
{
	const struct scanner *rest;
	int level, problems;

	for (level = 0; level < LEVELS; level++) {
		setenv("HOLDFAST_SCAN",
		    scan_level_name((enum scan_level)level), 1);
		if (rule_load(dir, on_problem, NULL, &r->set[level], &problems,
		    err) == -1)
			return -1;
		/* Made now, while the level is asked for. */
		rest = rule_set_scanner(r->set[level], SCANNER_LOUD);
		if (rest == NULL || (int)scan_level(rest) != level) {
			rule_set_free(r->set[level]);
			r->set[level] = NULL;
		}
	}
	return 0;
}

static int
bench(int rounds, int argc, char **argv)
{
	struct rules rules[SETS_MAX] = {{ .name = "shipped" }};
	struct feed feed = {0};
	struct err err = {0};
	int i, level, rc = -1;
	size_t count = 1;
	char *dir;

	if (load(&rules[0], NULL, &err) == -1)
		goto out;
	for (i = 1; i < argc && count < SETS_MAX; i++, count++) {
		if ((dir = strchr(argv[i], '=')) != NULL)
			*dir++ = '\0';
		rules[count].name = argv[i];
		if (load(&rules[count], dir, &err) == -1)
			goto out;
	}
	if (feed_add(&feed, argv[0], &err) == -1 || feed_settle(&feed, &err) == -1)
		goto out;
	for (i = 0; i < rounds; i++)
		if (run_round(i + 1, argv[0], &feed, rules, count, &err) == -1)
			goto out;
	rc = 0;
out:
	if (rc == -1)
		fprintf(stderr, "bench_scan: %s\n", err.text);
	for (i = 0; i < SETS_MAX; i++)
		for (level = 0; level < LEVELS; level++)
			rule_set_free(rules[i].set[level]);
	feed_fini(&feed);
	return rc;
}

int
main(int argc, char **argv)
{
	struct time_spent t;
	bool only_touch = false;
	int c, rounds = 5;

	while ((c = getopt(argc, argv, "n:t")) != -1)
		if (c == 't')
			only_touch = true;
		else if (c != 'n' || (rounds = atoi(optarg)) < 1)
			break;
	if (c != -1 || optind == argc) {
		fprintf(stderr, "usage: bench_scan [-n ROUNDS] LOG "
		    "[NAME=RULES-DIR]...\n       bench_scan -t LOG\n");
		return 2;
	}
	if (only_touch)
		return touch(argv[optind], 1, &t) == 0 ? 0 : 2;
	return bench(rounds, argc - optind, argv + optind) == 0 ? 0 : 2;
}
