/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_sweep.c - finds processes of a run by HOLDFAST_RUN_ID in their
 * environment and kills them: the last resort when agent and reaper were
 * killed and nobody's child list can tell.
 *
 * A process of this user whose environment cannot be read is counted, never
 * claimed dead.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/agent.h"
#include "supervisor/proc.h"

static bool
is_mine(pid_t pid)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return stat(path, &st) == 0 && st.st_uid == geteuid();
}

static void
kill_one(const struct proc_stat *p, int *alive, int *killed)
{
	(*alive)++;
	if (kill(p->pid, SIGKILL) == 0)
		(*killed)++;
}

int
sweep_pass(const struct run_spec *spec, int *killed, int *unreadable)
{
	struct proc_stat *list;
	char setting[128];
	bool *mark;
	int alive = 0;
	size_t n, i;

	snprintf(setting, sizeof(setting), "HOLDFAST_RUN_ID=%s", spec->run_id);
	*unreadable = 0;
	if (proc_list(&list, &n) == -1)
		return -1;
	if ((mark = calloc(n + 1, sizeof(*mark))) == NULL) {
		free(list);
		return -1;
	}
	/* This process has no children of its own now: what hangs below it has
	 * fallen to it from a killed reaper, whatever its environment says. */
	proc_mark_descendants(list, n, getpid(), mark);
	for (i = 0; i < n; i++) {
		if (list[i].pid == getpid() || !proc_can_run(&list[i]))
			continue;
		if (mark[i]) {
			kill_one(&list[i], &alive, killed);
			continue;
		}
		switch (proc_has_env(list[i].pid, setting)) {
		case PROC_ENV_YES:
			kill_one(&list[i], &alive, killed);
			break;
		case PROC_ENV_UNREADABLE:
			/* What is older than the run is none of it. */
			if (list[i].starttime >= spec->born_ticks &&
			    is_mine(list[i].pid))
				(*unreadable)++;
			break;
		case PROC_ENV_NO:
			break;
		}
	}
	free(mark);
	free(list);
	return alive;
}
