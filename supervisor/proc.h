/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc.h - what /proc says about processes.
 *
 * A pid alone names nobody: pids are reused.  Who is meant is the pair of pid
 * and start time (field 22 of /proc/PID/stat, proc(5)), valid for one boot.
 */
#ifndef HOLDFAST_SUPERVISOR_PROC_H
#define HOLDFAST_SUPERVISOR_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_stat {
	pid_t		pid;
	pid_t		ppid;
	char		state;		/* R S D T Z ... */
	char		comm[17];
	int		threads;	/* of a leader that has ended (Z) too */
	uint64_t	starttime;	/* clock ticks since boot */
	uint64_t	cpu;		/* user and system time, clock ticks */
};

/* 0, or -1 when there is no such process (any more). */
int	proc_read_stat(pid_t pid, struct proc_stat *out);

/* The same of one thread of it. */
int	proc_read_thread(pid_t pid, pid_t tid, struct proc_stat *out);

/* True when this very process still runs; a zombie does not. */
bool	proc_is_alive(pid_t pid, uint64_t starttime);

/* Where in the kernel it waits, "" when it does not or that is hidden. */
#define PROC_WCHAN_MAX	64
void	proc_read_wchan(pid_t pid, char out[PROC_WCHAN_MAX]);

/* Bytes it has read and written so far, of files, pipes and sockets alike
 * (/proc/PID/io); 0, or -1 when that is hidden. */
int	proc_read_io(pid_t pid, uint64_t *bytes);

/* All processes visible in /proc, by ascending pid; the caller frees *out.  -1
 * when /proc cannot be read or memory is short. */
int	proc_list(struct proc_stat **out, size_t *count);

/* The entry of a pid in a list of proc_list(), or NULL. */
const struct proc_stat *proc_find(const struct proc_stat *list, size_t count,
	    pid_t pid);

/* Something that can still run: no zombie, or one whose other threads live. */
bool	proc_can_run(const struct proc_stat *);

/* Marks all descendants of a process in a list of proc_list(); mark has count
 * entries, false.  Returns how many of them can run. */
int	proc_mark_descendants(const struct proc_stat *list, size_t count,
	    pid_t ancestor, bool *mark);

/* Whether the environment a process was started with holds this "NAME=value". */
enum proc_env { PROC_ENV_NO, PROC_ENV_YES, PROC_ENV_UNREADABLE };
enum proc_env proc_has_env(pid_t pid, const char *setting);

/* The value of NAME in that environment, or -1 when absent, hidden or longer
 * than size. */
int	proc_read_env(pid_t pid, const char *name, char *out, size_t size);

/* The id of this boot, 36 characters; "unknown" when hidden. */
#define PROC_BOOT_ID_MAX	40
void	proc_read_boot_id(char out[PROC_BOOT_ID_MAX]);

#endif
