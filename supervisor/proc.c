/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc.c - reads /proc/PID/{stat,wchan,environ} and the boot id.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "supervisor/proc.h"

#define ENVIRON_MAX	(4u << 20)

static ssize_t
read_small(const char *path, char *out, size_t size)
{
	ssize_t n;
	int fd;

	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return -1;
	n = read(fd, out, size - 1);
	close(fd);
	if (n >= 0)
		out[n] = '\0';
	return n;
}

static int
read_stat(const char *path, pid_t pid, struct proc_stat *out)
{
	char text[1024], *open_paren, *p;
	unsigned long long starttime, user, system;
	int ppid;

	if (read_small(path, text, sizeof(text)) <= 0)
		return -1;
	/* comm may hold anything, parentheses and spaces included: the last
	 * ')' ends it. */
	open_paren = strchr(text, '(');
	p = strrchr(text, ')');
	if (open_paren == NULL || p == NULL || p < open_paren)
		return -1;
	if (sscanf(p + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu "
	    "%*d %*d %*d %*d %d %*d %llu", &out->state, &ppid, &user, &system,
	    &out->threads, &starttime) != 6)
		return -1;
	*p = '\0';
	snprintf(out->comm, sizeof(out->comm), "%.16s", open_paren + 1);
	out->pid = pid;
	out->ppid = ppid;
	out->starttime = starttime;
	out->cpu = user + system;
	return 0;
}

int
proc_read_stat(pid_t pid, struct proc_stat *out)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return read_stat(path, pid, out);
}

int
proc_read_thread(pid_t pid, pid_t tid, struct proc_stat *out)
{
	char path[80];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	return read_stat(path, tid, out);
}

int
proc_read_io(pid_t pid, uint64_t *bytes)
{
	unsigned long long in, out;
	char path[64], text[512];

	snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
	if (read_small(path, text, sizeof(text)) <= 0 ||
	    sscanf(text, "rchar: %llu wchar: %llu", &in, &out) != 2)
		return -1;
	*bytes = in + out;
	return 0;
}

bool
proc_is_alive(pid_t pid, uint64_t starttime)
{
	struct proc_stat st;

	return proc_read_stat(pid, &st) == 0 && st.starttime == starttime &&
	    st.state != 'Z' && st.state != 'X';
}

void
proc_read_wchan(pid_t pid, char out[PROC_WCHAN_MAX])
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/wchan", (int)pid);
	if (read_small(path, out, PROC_WCHAN_MAX) <= 0 || strcmp(out, "0") == 0)
		out[0] = '\0';
}

static int
compare_pids(const void *a, const void *b)
{
	pid_t x = ((const struct proc_stat *)a)->pid;
	pid_t y = ((const struct proc_stat *)b)->pid;

	return (x > y) - (x < y);
}

int
proc_list(struct proc_stat **out, size_t *count)
{
	struct proc_stat *list = NULL, *grown;
	size_t n = 0, cap = 0;
	struct dirent *e;
	DIR *d;

	if ((d = opendir("/proc")) == NULL)
		return -1;
	while ((e = readdir(d)) != NULL) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		if (n == cap) {
			cap = cap ? cap * 2 : 256;
			grown = realloc(list, cap * sizeof(*list));
			if (grown == NULL) {
				free(list);
				closedir(d);
				return -1;
			}
			list = grown;
		}
		if (proc_read_stat((pid_t)atoi(e->d_name), &list[n]) == 0)
			n++;
	}
	closedir(d);
	if (n > 0)
		qsort(list, n, sizeof(*list), compare_pids);
	*out = list;
	*count = n;
	return 0;
}

static int
read_environ(pid_t pid, struct buf *out)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return -1;
	do {
		if (buf_reserve(out, 16384) == -1) {
			n = -1;
			break;
		}
		n = read(fd, out->data + out->len, 16384);
		if (n > 0)
			out->len += (size_t)n;
	} while (n > 0 && out->len < ENVIRON_MAX);
	close(fd);
	return n == -1 ? -1 : 0;
}

bool
proc_can_run(const struct proc_stat *st)
{
	if (st->state == 'X')
		return false;
	return st->state != 'Z' || st->threads > 1;
}

const struct proc_stat *
proc_find(const struct proc_stat *list, size_t n, pid_t pid)
{
	struct proc_stat key = { .pid = pid };

	return bsearch(&key, list, n, sizeof(*list), compare_pids);
}

static bool
has_marked_parent(const struct proc_stat *list, size_t n, const bool *mark,
    pid_t ppid)
{
	const struct proc_stat *p = proc_find(list, n, ppid);

	return p != NULL && mark[p - list];
}

int
proc_mark_descendants(const struct proc_stat *list, size_t n, pid_t ancestor,
    bool *mark)
{
	bool changed = true;
	int count = 0;
	size_t i;

	while (changed) {
		changed = false;
		for (i = 0; i < n; i++) {
			if (mark[i] || (list[i].ppid != ancestor &&
			    !has_marked_parent(list, n, mark, list[i].ppid)))
				continue;
			mark[i] = changed = true;
			count += proc_can_run(&list[i]);
		}
	}
	return count;
}

/* Settings of the form NAME=value are separated by NUL; the last may lack one. */
static const char *
find_setting(const struct buf *env, const char *prefix, size_t len)
{
	const char *p = env->data, *end = env->data + env->len, *nul;

	while (p < end) {
		if ((size_t)(end - p) >= len && memcmp(p, prefix, len) == 0)
			return p;
		if ((nul = memchr(p, '\0', (size_t)(end - p))) == NULL)
			return NULL;
		p = nul + 1;
	}
	return NULL;
}

enum proc_env
proc_has_env(pid_t pid, const char *setting)
{
	enum proc_env result = PROC_ENV_NO;
	size_t len = strlen(setting);
	struct buf env = {0};
	const char *p;

	if (read_environ(pid, &env) == -1) {
		if (errno == EACCES || errno == EPERM)
			result = PROC_ENV_UNREADABLE;
	} else if (env.len > 0 &&
	    (p = find_setting(&env, setting, len)) != NULL &&
	    (p + len == env.data + env.len || p[len] == '\0')) {
		result = PROC_ENV_YES;
	}
	buf_fini(&env);
	return result;
}

int
proc_read_env(pid_t pid, const char *name, char *out, size_t size)
{
	size_t len = strlen(name), left, n;
	struct buf env = {0};
	const char *p;
	int rc = -1;

	if (read_environ(pid, &env) == -1 || env.len == 0)
		goto out;
	for (p = env.data; p < env.data + env.len; p += n + 1) {
		left = (size_t)(env.data + env.len - p);
		n = strnlen(p, left);
		if (n <= len || p[len] != '=' || memcmp(p, name, len) != 0)
			continue;
		if (n - len - 1 < size) {
			memcpy(out, p + len + 1, n - len - 1);
			out[n - len - 1] = '\0';
			rc = 0;
		}
		break;
	}
out:
	buf_fini(&env);
	return rc;
}

void
proc_read_boot_id(char out[PROC_BOOT_ID_MAX])
{
	ssize_t n = read_small("/proc/sys/kernel/random/boot_id", out,
	    PROC_BOOT_ID_MAX);

	if (n < 36)
		snprintf(out, PROC_BOOT_ID_MAX, "unknown");
	else
		out[36] = '\0';
}
