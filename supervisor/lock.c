/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.c - takes, renews and removes DIR/lock.  Reads the holder's pid and
 * start time from /proc; emits nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "supervisor/lock.h"
#include "supervisor/proc.h"

struct holder {
	char		host[HOST_NAME_MAX + 1];
	char		boot_id[PROC_BOOT_ID_MAX];
	char		pid_ns[64];	/* pids mean nothing in another one */
	pid_t		pid;
	uint64_t	starttime;
};

static void
holder_self(struct holder *h)
{
	struct proc_stat st;
	ssize_t n;

	*h = (struct holder){ .pid = getpid() };
	gethostname(h->host, sizeof(h->host) - 1);
	proc_read_boot_id(h->boot_id);
	n = readlink("/proc/self/ns/pid", h->pid_ns, sizeof(h->pid_ns) - 1);
	h->pid_ns[n > 0 ? n : 0] = '\0';
	if (proc_read_stat(h->pid, &st) == 0)
		h->starttime = st.starttime;
}

static int
holder_read(const char *path, struct holder *h, struct err *err)
{
	struct buf data = {0};
	cJSON *o = NULL;
	int rc = -1;

	*h = (struct holder){0};
	if (file_read(path, 4096, &data, err) == 0 &&
	    json_parse(data.data, data.len, &o, err) == 0) {
		snprintf(h->host, sizeof(h->host), "%s", json_str(o, "host", ""));
		snprintf(h->boot_id, sizeof(h->boot_id), "%s",
		    json_str(o, "boot_id", ""));
		snprintf(h->pid_ns, sizeof(h->pid_ns), "%s",
		    json_str(o, "pid_ns", ""));
		h->pid = (pid_t)json_int(o, "pid", 0);
		h->starttime = (uint64_t)json_int(o, "starttime", 0);
		rc = 0;
	}
	cJSON_Delete(o);
	buf_fini(&data);
	return rc;
}

/* The whole content arrives with the name: written aside, then linked. */
static int
holder_write(const char *path, const struct holder *h, struct err *err)
{
	char temp[PATH_MAX], text[512];
	int fd, n, rc = -1;

	n = snprintf(text, sizeof(text), "{\"host\":\"%s\",\"boot_id\":\"%s\","
	    "\"pid_ns\":\"%s\",\"pid\":%d,\"starttime\":%llu}\n", h->host, h->boot_id,
	    h->pid_ns, (int)h->pid, (unsigned long long)h->starttime);
	/* One name a host, and one writer a host at a time (lock_acquire()): what
	 * a killed one leaves is overwritten by the next. */
	snprintf(temp, sizeof(temp), "%.3800s.%.200s", path, h->host);
	fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd == -1)
		return err_errno(err, "cannot create %s", temp);
	if (write(fd, text, (size_t)n) != n || fsync(fd) == -1)
		err_errno(err, "cannot write %s", temp);
	else if (link(temp, path) == -1)
		err_errno(err, "cannot create %s", path);
	else
		rc = 0;
	close(fd);
	unlink(temp);
	return rc;
}

/* Age of the lease by the file system's clock: a new file's time against the
 * lock's, so that clocks of hosts do not matter. */
static int64_t
lease_age_ms(const char *path)
{
	char temp[PATH_MAX];
	struct stat lock, now;
	int fd;

	snprintf(temp, sizeof(temp), "%.*s.now", PATH_MAX - 8, path);
	fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd == -1 || fstat(fd, &now) == -1 || stat(path, &lock) == -1) {
		if (fd != -1)
			close(fd);
		return 0;
	}
	close(fd);
	unlink(temp);
	return (int64_t)(now.st_mtim.tv_sec - lock.st_mtim.tv_sec) * 1000;
}

/* True when the holder is surely gone. */
static bool
holder_is_dead(const char *path, const struct holder *h,
    const struct holder *self, bool take_over, struct err *err)
{
	int64_t age;

	if (strcmp(h->host, self->host) == 0 &&
	    (strcmp(h->boot_id, self->boot_id) != 0 ||
	    strcmp(h->pid_ns, self->pid_ns) == 0)) {
		/* A reboot ended everything that ran on this host. */
		if (strcmp(h->boot_id, self->boot_id) != 0)
			return true;
		if (!proc_is_alive(h->pid, h->starttime))
			return true;
		err_set(err, ERR_BUSY, "the run is alive: held by pid %d on %s "
		    "(holdfast status shows it, holdfast stop ends it)",
		    (int)h->pid, h->host);
		return false;
	}
	age = lease_age_ms(path);
	if (age > LOCK_LEASE_MS && take_over)
		return true;
	err_set(err, ERR_BUSY, "the run is held by pid %d on host %s, last seen "
	    "%lld s ago%s", (int)h->pid, h->host, (long long)age / 1000,
	    age > LOCK_LEASE_MS ? "; if its ranks are surely gone: --take-over" :
	    "");
	return false;
}

static int
acquire(const char *path, bool take_over, bool *freed, struct err *err)
{
	struct holder self, other;
	int tries;

	holder_self(&self);
	for (tries = 0; tries < 3; tries++) {
		if (holder_write(path, &self, err) == 0)
			return 0;
		if (errno != EEXIST)
			return -1;
		/* An unreadable lock is nobody's proof of death, but an empty
		 * or torn one cannot come from holder_write(). */
		if (holder_read(path, &other, err) == -1) {
			if (errno == ENOENT)
				continue;
			return err_prefix(err, "%s cannot be judged; remove it "
			    "when no rank lives", path);
		}
		if (!holder_is_dead(path, &other, &self, take_over, err))
			return -1;
		*freed = true;
		if (unlink(path) == -1 && errno != ENOENT)
			return err_errno(err, "cannot remove %s", path);
	}
	return -1;
}

int
lock_acquire(const char *dir, bool take_over, bool *freed, struct err *err)
{
	char path[PATH_MAX];
	int fd, rc;

	*freed = false;
	snprintf(path, sizeof(path), "%s/lock", dir);
	/* Two runs that find the same dead holder must not remove each other's
	 * new lock: judging and replacing is one step on this host. */
	if ((fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) == -1)
		return err_errno(err, "cannot open %s", dir);
	if (flock(fd, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK) {
		close(fd);
		return err_set(err, ERR_BUSY,
		    "another run of this name starts right now");
	}
	rc = acquire(path, take_over, freed, err);
	close(fd);
	return rc;
}

int
lock_renew(const char *dir, struct err *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/lock", dir);
	if (utimensat(AT_FDCWD, path, NULL, 0) == -1)
		return err_errno(err, "cannot renew %s", path);
	return 0;
}

void
lock_release(const char *dir)
{
	struct holder self, other;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/lock", dir);
	holder_self(&self);
	if (holder_read(path, &other, NULL) == 0 && other.pid == self.pid &&
	    other.starttime == self.starttime)
		unlink(path);
}
