/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_run.c - runs a command a few times and says what it cost.
 *
 *   bench_run [-c CPU,...] [-n TIMES] COMMAND...
 *
 * A small process of its own: what starts a child gives it its memory and its time
 * to copy page tables.  Emits one JSON object: lists of seconds on the clock and of
 * seconds of processor time, the largest resident size, the worst exit status and
 * the first bytes of the last output (which goes to a file in memory: grep works
 * less when it writes to /dev/null).
 */
#include <errno.h>
#include <sched.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/json.h"

#define OUTPUT_MAX	200	/* of a child, in the result */
#define TIMES_MAX	1000

extern char **environ;

struct cost {
	double	wall_s[TIMES_MAX], cpu_s[TIMES_MAX];
	long	rss_kb;
	int	status;
};

static double
seconds(struct timeval tv)
{
	return (double)tv.tv_sec + 1e-6 * (double)tv.tv_usec;
}

static double
now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static int
pin(const char *list)
{
	cpu_set_t set;
	char *end;
	long cpu;

	CPU_ZERO(&set);
	do {
		cpu = strtol(list, &end, 10);
		if (end == list || cpu < 0 || cpu >= CPU_SETSIZE)
			return -1;
		CPU_SET(cpu, &set);
		list = end + 1;
	} while (*end == ',');
	return *end == '\0' ? sched_setaffinity(0, sizeof(set), &set) : -1;
}

static int
run(char **argv, int out, struct cost *c, int i)
{
	posix_spawn_file_actions_t fa;
	struct rusage ru;
	double start;
	int status, rc;
	pid_t pid;

	if (ftruncate(out, 0) == -1 || lseek(out, 0, SEEK_SET) == -1)
		return -1;
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, out, STDOUT_FILENO);
	start = now_s();
	rc = posix_spawnp(&pid, argv[0], &fa, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	if (rc != 0) {
		errno = rc;
		return -1;
	}
	if (wait4(pid, &status, 0, &ru) == -1)
		return -1;
	c->wall_s[i] = now_s() - start;
	c->cpu_s[i] = seconds(ru.ru_utime) + seconds(ru.ru_stime);
	if (ru.ru_maxrss > c->rss_kb)
		c->rss_kb = ru.ru_maxrss;
	status = WIFEXITED(status) ? WEXITSTATUS(status) :
	    128 + WTERMSIG(status);
	if (status > c->status)
		c->status = status;
	return 0;
}

static int
print(const struct cost *c, int times, int out)
{
	char text[OUTPUT_MAX + 1];
	ssize_t n = pread(out, text, OUTPUT_MAX, 0);
	cJSON *o = cJSON_CreateObject();
	char *line;

	text[n > 0 ? n : 0] = '\0';
	cJSON_AddItemToObject(o, "wall_s",
	    cJSON_CreateDoubleArray(c->wall_s, times));
	cJSON_AddItemToObject(o, "cpu_s",
	    cJSON_CreateDoubleArray(c->cpu_s, times));
	json_add_int(o, "rss_kb", c->rss_kb);
	json_add_int(o, "status", c->status);
	json_add_text(o, "output", text);
	if ((line = json_line(o)) != NULL)
		fputs(line, stdout);
	cJSON_Delete(o);
	free(line);
	return line != NULL && fflush(stdout) == 0 ? 0 : -1;
}

int
main(int argc, char **argv)
{
	static struct cost cost;
	int c, i, out, times = 1;

	while ((c = getopt(argc, argv, "+c:n:")) != -1)
		if (c == 'n')
			times = atoi(optarg);
		else if (c != 'c' || pin(optarg) == -1)
			break;
	if (c != -1 || optind == argc || times < 1 || times > TIMES_MAX) {
		fprintf(stderr, "usage: bench_run [-c CPU,...] [-n TIMES] "
		    "COMMAND...\n");
		return 2;
	}
	if ((out = memfd_create("output", MFD_CLOEXEC)) == -1)
		goto fail;
	for (i = 0; i < times; i++)
		if (run(argv + optind, out, &cost, i) == -1)
			goto fail;
	if (print(&cost, times, out) == 0)
		return 0;
fail:
	fprintf(stderr, "bench_run: %s: %s\n", argv[optind], strerror(errno));
	return 2;
}
