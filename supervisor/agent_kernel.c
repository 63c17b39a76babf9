/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_kernel.c - what the kernel of this node says while an attempt runs: Xids, the
 * out-of-memory killer, file systems, links, machine checks.
 *
 * Reads /dev/kmsg from the beginning of the attempt on (where the user may: see
 * kernel.dmesg_restrict); decides what belongs to this run; emits NODE.kernel.log beside
 * the output of the ranks, where `holdfast diagnose' looks.
 *
 * Format of a record: "PRIORITY,SEQUENCE,MICROSECONDS,FLAGS;TEXT\n KEY=VALUE\n..."
 * (Documentation/ABI/testing/dev-kmsg of the kernel).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/clock.h"
#include "common/log.h"
#include "supervisor/agent_attempt.h"

#define RECORD_MAX	8192	/* CONSOLE_EXT_LOG_MAX of the kernel */
#define BYTES_MAX	(4u << 20)	/* of an attempt */
#define WARNING		4	/* of the levels of syslog(3) */
#define DEPTH_MAX	64
#define HELD_MAX	(64u << 10)
#define HELD_NS		(5 * NS_PER_S)

struct kernel_log {
	struct attempt		*attempt;
	int			 fd;
	struct loop_watch	*watch;
	struct writer_file	*file;		/* NULL before the first record */
	char			 path[PATH_MAX];
	size_t			 bytes;
	/* the report of the out-of-memory killer, until it names its victim */
	struct buf		 held;
	int64_t			 held_ns;	/* since when; 0: none */
};

/* At a level that is no warning. */
static const char *const words[] = { "oom", "out of memory", "xid", "nvrm",
    "killed process", "segfault", "blocked for more than", "link is down",
    "link down", "i/o error", "hardware error", "not responding", NULL };

static bool
is_of_interest(int priority, const char *text)
{
	int i;

	if (priority >> 3 != 0)		/* another facility: not the kernel's */
		return false;
	if ((priority & 7) <= WARNING)
		return true;
	for (i = 0; words[i] != NULL; i++)
		if (strcasestr(text, words[i]) != NULL)
			return true;
	return false;
}

/* A main process, dead or alive, or one below this agent.  What is gone already is
 * nobody's: of a rank's children the rank tells. */
static bool
is_ours(const struct attempt *at, pid_t pid)
{
	struct proc_stat st;
	int depth, i;

	for (i = 0; i < at->count; i++)
		if (at->mains[i].pid == pid)
			return true;
	for (depth = 0; depth < DEPTH_MAX && pid > 1; depth++) {
		if (pid == at->reaper_pid || pid == getpid())
			return true;
		if (proc_read_stat(pid, &st) == -1)
			return false;
		pid = st.ppid;
	}
	return false;
}

/* The process that a line speaks of, or -1: "Killed process 12 (", "reaped process 12",
 * "python3[12]: segfault at", "traps: python3[12] general protection", "task python3:12
 * blocked for more than" (mm/oom_kill.c, arch/x86/mm/fault.c, arch/x86/kernel/traps.c,
 * kernel/hung_task.c of Linux). */
static pid_t
subject_of(const char *text)
{
	static const char *const verbs[] = { "killed process ", "kill process ",
	    "reaped process ", NULL };
	const char *p = NULL;
	int pid = -1, i;

	for (i = 0; p == NULL && verbs[i] != NULL; i++)
		p = strcasestr(text, verbs[i]);
	if (p != NULL)
		return sscanf(p, "%*s %*s %d", &pid) == 1 ? (pid_t)pid : -1;
	if (strstr(text, "]: segfault at") != NULL || strncmp(text, "traps: ", 7) == 0)
		p = strchr(text, '[');
	else if (strstr(text, " blocked for more than ") != NULL &&
	    (p = strstr(text, "task ")) != NULL)
		p = strchr(p, ':');
	return p != NULL && sscanf(p + 1, "%d", &pid) == 1 ? (pid_t)pid : -1;
}

static void
put(struct kernel_log *k, const char *line, size_t len)
{
	struct agent *a = k->attempt->agent;

	if (k->bytes > BYTES_MAX || (k->file == NULL && writer_open(a->writer,
	    k->path, &k->file, NULL) == -1))
		return;
	k->bytes += len;
	writer_append(k->file, line, len, NULL, NULL);
}

static void
let_go(struct kernel_log *k, bool write)
{
	if (write && k->held.len > 0)
		put(k, k->held.data, k->held.len);
	buf_clear(&k->held);
	k->held_ns = 0;
}

/* Nodes are shared, and cgroups have limits of their own: a report of a process that
 * is somebody else's is not ours, from its first line on. */
static void
take_line(struct kernel_log *k, const char *text, const char *line, size_t len)
{
	int64_t now = clock_mono_ns(&clock_system);
	pid_t pid = subject_of(text);

	if (k->held_ns != 0 && now - k->held_ns > HELD_NS)
		let_go(k, true);
	if (pid != -1) {
		bool ours = is_ours(k->attempt, pid);

		let_go(k, ours);
		if (ours)
			put(k, line, len);
	} else if (k->held_ns != 0 ||
	    strcasestr(text, "invoked oom-killer") != NULL) {
		k->held_ns = k->held_ns != 0 ? k->held_ns : now;
		if (k->held.len < HELD_MAX)
			buf_append(&k->held, line, len);
	} else {
		put(k, line, len);
	}
}

static void
take_record(struct kernel_log *k, char *record, size_t len)
{
	struct agent *a = k->attempt->agent;
	char when[CLOCK_TEXT_MAX], *text, line[RECORD_MAX + 128];
	int priority, n;

	record[len] = '\0';
	if ((text = strchr(record, ';')) == NULL ||
	    sscanf(record, "%d,", &priority) != 1)
		return;
	text++;
	text[strcspn(text, "\n")] = '\0';
	if (!is_of_interest(priority, text))
		return;
	clock_format(clock_wall_ns(&clock_system), when);
	n = snprintf(line, sizeof(line), "%s %s kernel: %s\n", when, a->node, text);
	take_line(k, text, line, (size_t)n);
}

static void
on_records(int fd, uint32_t events, void *arg)
{
	struct kernel_log *k = arg;
	char record[RECORD_MAX + 1];
	ssize_t n;

	(void)events;
	/* One record a read; EPIPE: some were overwritten before. */
	while ((n = read(fd, record, RECORD_MAX)) > 0 || (n == -1 && errno == EPIPE))
		if (n > 0)
			take_record(k, record, (size_t)n);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	loop_unwatch(k->watch);
	k->watch = NULL;
}

void
kernel_begin(struct attempt *at, const char *dir)
{
	struct kernel_log *k = calloc(1, sizeof(*k));
	struct err err = {0};

	if (k == NULL)
		return;
	k->attempt = at;
	at->kernel = k;
	k->fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (k->fd == -1 || lseek(k->fd, 0, SEEK_END) == -1) {
		log_info("kernel messages of this node are not seen: %s",
		    strerror(errno));
		return;
	}
	if (snprintf(k->path, sizeof(k->path), "%s/%s.kernel.log", dir,
	    at->agent->node) >= (int)sizeof(k->path) ||
	    loop_watch_fd(at->agent->loop, k->fd, EPOLLIN, on_records, k, &k->watch,
	    &err) == -1)
		log_warn("kernel messages of this node are not seen: %s", err.text);
}

void
kernel_catch_up(struct kernel_log *k)
{
	if (k == NULL || k->watch == NULL)
		return;
	on_records(k->fd, 0, k);
	let_go(k, true);
}

void
kernel_end(struct kernel_log *k)
{
	if (k == NULL)
		return;
	loop_unwatch(k->watch);
	if (k->fd != -1)
		close(k->fd);
	writer_close(k->file);
	buf_fini(&k->held);
	free(k);
}
