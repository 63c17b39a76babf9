/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_life.c - decides whether a run lives, from its journal, its sockets and
 * the environments of all processes.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/verb.h"
#include "supervisor/history.h"
#include "supervisor/journal.h"
#include "supervisor/proc.h"
#include "supervisor/run_life.h"
#include "supervisor/wire.h"

static bool
answers(const struct run_spec *s, const char *name)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", s->socket_dir, name);
	if ((fd = wire_connect(path, NULL)) == -1)
		return false;
	close(fd);
	return true;
}

static bool
has_process(const struct run_spec *s)
{
	struct proc_stat *list;
	char setting[128];
	bool found = false;
	size_t n, i;

	snprintf(setting, sizeof(setting), "HOLDFAST_RUN_ID=%s", s->run_id);
	if (proc_list(&list, &n) == -1)
		return true;	/* unknown is not gone */
	for (i = 0; i < n && !found; i++)
		found = list[i].pid != getpid() && proc_can_run(&list[i]) &&
		    proc_has_env(list[i].pid, setting) == PROC_ENV_YES;
	free(list);
	return found;
}

static int
read_history(const struct run_spec *s, struct history *h, struct err *err)
{
	char path[PATH_MAX];

	history_init(h);
	snprintf(path, sizeof(path), "%.4000s/journal.jsonl", s->dir);
	return journal_read(path, h, NULL, err);
}

int
run_life_read(const struct run_spec *s, enum run_life *out, struct err *err)
{
	struct history h;

	if (read_history(s, &h, err) == -1)
		return -1;
	if (answers(s, "control") || answers(s, "agent") || has_process(s))
		*out = RUN_LIVES;
	else if (h.campaign == 0 || h.ended)
		*out = RUN_ENDED;
	else
		*out = RUN_BROKEN_OFF;
	return 0;
}

int
run_life_campaign(const struct run_spec *s)
{
	struct history h;

	if (read_history(s, &h, NULL) == -1 || h.campaign == 0)
		return 0;
	return h.ended ? h.campaign : h.campaign - 1;
}

int
run_life_close(const struct run_spec *s, struct err *err)
{
	struct history h;
	char path[PATH_MAX], *line;
	cJSON *r;
	int fd, rc = -1;

	if (read_history(s, &h, err) == -1)
		return -1;
	r = journal_record("end", h.attempt);
	json_add_int(r, "code", EXIT_NEGATIVE);
	json_add_text(r, "state", "stopped");
	json_add_text(r, "why", "it broke off; another command was started");
	json_add_int(r, "seq", h.seq + 1);
	line = json_line(r);
	cJSON_Delete(r);
	snprintf(path, sizeof(path), "%.4000s/journal.jsonl", s->dir);
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	/* A torn last line would swallow the record; the empty line is skipped. */
	if (line == NULL || fd == -1 || write(fd, "\n", 1) != 1 ||
	    write(fd, line, strlen(line)) != (ssize_t)strlen(line))
		err_errno(err, "cannot write %s", path);
	else
		rc = 0;
	if (fd != -1)
		close(fd);
	free(line);
	return rc;
}
