/* SPDX-License-Identifier: Apache-2.0 */
/*
 * role.c - posix_spawn of this program under an internal verb.  Its own session
 * keeps signals of the terminal away: they are forwarded by the run parent.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <unistd.h>

#include "common/child.h"
#include "supervisor/role.h"

extern char **environ;

int
role_start(const char *role, const char *dir, const char *argument,
    int output_fd, pid_t *out, struct err *err)
{
	const char *argv[] = { "holdfast", role, dir, argument, NULL };
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	sigset_t none;
	int rc;

	posix_spawn_file_actions_init(&fa);
	posix_spawnattr_init(&attr);
	sigemptyset(&none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK |
	    POSIX_SPAWN_SETSID);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawn_file_actions_addopen(&fa, STDIN_FILENO, "/dev/null",
	    O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&fa, output_fd, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&fa, output_fd, STDERR_FILENO);
	rc = posix_spawn(out, CHILD_SELF, &fa, &attr,
	    (char *const *)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	posix_spawnattr_destroy(&attr);
	if (rc == 0)
		return 0;
	errno = rc;
	return err_errno(err, "cannot start the %s", role);
}
