/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_start.c - begins an attempt on this node: holds the port, opens the
 * outputs, starts the reaper and hands it the command.
 *
 * Reads the start order (launch.c writes it): {attempt, argv, cwd, count, rank0,
 * log_dir, tee, env, env_default, port_name}.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/child.h"
#include "common/json.h"
#include "supervisor/agent_attempt.h"
#include "supervisor/envp.h"
#include "supervisor/port.h"
#include "supervisor/reaper.h"

/* Puts sources on their targets in two steps, so that none overwrites another
 * that is still needed. */
static int
spawn_reaper(struct attempt *at, int sock, int *outputs, char **envp,
    struct err *err)
{
	char *const argv[] = { (char *)(uintptr_t)"holdfast",
	    (char *)(uintptr_t)"reaper", NULL };
	int base = REAPER_OUTPUT_FD + at->count + 1, i, fd, rc;
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	sigset_t none;

	posix_spawn_file_actions_init(&fa);
	posix_spawnattr_init(&attr);
	sigemptyset(&none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK |
	    POSIX_SPAWN_SETSID);
	posix_spawnattr_setsigmask(&attr, &none);
	for (i = -1; i < at->count; i++) {
		int *src = i < 0 ? &sock : &outputs[i];

		fd = fcntl(*src, F_DUPFD_CLOEXEC, base);
		close(*src);
		*src = fd;
		posix_spawn_file_actions_adddup2(&fa, fd, i < 0 ?
		    REAPER_SOCKET_FD : REAPER_OUTPUT_FD + i);
	}
	rc = posix_spawn(&at->reaper_pid, CHILD_SELF, &fa, &attr, argv, envp);
	posix_spawn_file_actions_destroy(&fa);
	posix_spawnattr_destroy(&attr);
	close(sock);
	for (i = 0; i < at->count; i++) {
		close(outputs[i]);
		outputs[i] = -1;
	}
	if (rc == 0)
		return 0;
	errno = rc;
	return err_errno(err, "cannot start the reaper");
}

static int
open_outputs(struct attempt *at, const cJSON *order, int *write_fds,
    struct err *err)
{
	const char *dir = json_str(order, "log_dir", "."), *tee;
	char path[PATH_MAX], rank[16];
	bool show;
	int i;

	tee = json_str(order, "tee", "none");
	for (i = 0; i < at->count; i++) {
		if (at->rank0 < 0) {
			snprintf(path, sizeof(path), "%s/%s.log", dir,
			    at->agent->node);
			show = strcmp(tee, "none") != 0;
		} else {
			snprintf(path, sizeof(path), "%s/rank%05d.log", dir,
			    at->rank0 + i);
			snprintf(rank, sizeof(rank), ",%d,", at->rank0 + i);
			show = strcmp(tee, "all") == 0 ||
			    strstr(tee, rank) != NULL;
		}
		if (output_new(at->agent, at, at->number,
		    at->rank0 < 0 ? -1 : at->rank0 + i, path, show,
		    &write_fds[i], &at->outputs[i], err) == -1)
			return -1;
	}
	snprintf(path, sizeof(path), "%s/%s.exits", dir, at->agent->node);
	return writer_open(at->agent->writer, path, &at->exits, err);
}

static int
send_spawn(struct attempt *at, const cJSON *order, struct err *err)
{
	cJSON *m = wire_message("spawn");

	cJSON_AddItemToObject(m, "argv",
	    cJSON_Duplicate(cJSON_GetObjectItem(order, "argv"), true));
	json_add_text(m, "cwd", json_str(order, "cwd", "/"));
	json_add_text(m, "error_dir", json_str(order, "log_dir", NULL));
	json_add_int(m, "count", at->count);
	json_add_int(m, "rank0", at->rank0);
	if (wire_send(at->reaper, m) == -1)
		return err_set(err, ERR_LIMIT, "the command is too long");
	return 0;
}

static char **
build_environment(struct attempt *at, const cJSON *order)
{
	cJSON *set = cJSON_Duplicate(cJSON_GetObjectItem(order, "env"), true);
	const char *name = json_str(order, "port_name", NULL);
	char text[16], **envp;

	if (name != NULL && at->port_fd != -1) {
		snprintf(text, sizeof(text), "%d", at->port);
		json_add_text(set, name, text);
	}
	envp = envp_new(set, cJSON_GetObjectItem(order, "env_default"));
	cJSON_Delete(set);
	return envp;
}

static struct attempt *
attempt_new(struct agent *a, const cJSON *order, struct err *err)
{
	struct attempt *at = calloc(1, sizeof(*at));
	int64_t count = json_int(order, "count", 0);

	if (at == NULL || count < 1 || count > 4096) {
		err_set(err, ERR_FORMAT, "a start order for no process");
		free(at);
		return NULL;
	}
	at->agent = a;
	at->number = (int)json_int(order, "attempt", 0);
	at->count = (int)count;
	at->rank0 = (int)json_int(order, "rank0", -1);
	at->port_fd = -1;
	at->proof = "none";
	at->mains = calloc((size_t)count, sizeof(*at->mains));
	at->outputs = calloc((size_t)count, sizeof(struct output *));
	if (at->mains == NULL || at->outputs == NULL ||
	    attempt_make_timers(at, err) == -1 || watch_new(at, err) == -1) {
		attempt_free(at);
		return NULL;
	}
	return at;
}

int
attempt_start(struct agent *a, const cJSON *order, struct err *err)
{
	struct attempt *at = attempt_new(a, order, err);
	int *write_fds = NULL, pair[2] = { -1, -1 }, rc = -1, i;
	char **envp = NULL;

	if (at == NULL)
		return -1;
	if ((write_fds = calloc((size_t)at->count, sizeof(int))) == NULL) {
		err_memory(err);
		goto out;
	}
	for (i = 0; i < at->count; i++)
		write_fds[i] = -1;
	if (json_str(order, "port_name", NULL) != NULL &&
	    (at->port_fd = port_hold(&at->port, err)) == -1)
		goto out;
	if (staging_prepare(a, json_str(order, "resume", NULL), err) == -1 ||
	    open_outputs(at, order, write_fds, err) == -1)
		goto out;
	kernel_begin(at, json_str(order, "log_dir", "."));
	if ((envp = build_environment(at, order)) == NULL) {
		err_memory(err);
		goto out;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == -1) {
		err_errno(err, "cannot make a socket pair");
		goto out;
	}
	if (wire_new(a->loop, pair[0], attempt_report, attempt_reaper_lost, at,
	    &at->reaper, err) == -1) {
		close(pair[0]);
		close(pair[1]);
		goto out;
	}
	if (spawn_reaper(at, pair[1], write_fds, envp, err) == -1 ||
	    send_spawn(at, order, err) == -1)
		goto out;
	a->attempt = at;
	a->last_attempt = at->number;
	at = NULL;
	rc = 0;
out:
	for (i = 0; at != NULL && write_fds != NULL && i < at->count; i++)
		if (write_fds[i] != -1)
			close(write_fds[i]);
	attempt_free(at);
	free(write_fds);
	envp_free(envp);
	return rc;
}
