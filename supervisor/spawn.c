/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn.c - fork, prepare, exec.  Called by the reaper, which has one thread,
 * so the child may use the whole C library.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/json.h"
#include "supervisor/spawn.h"

/* Under memory pressure a rank is a better victim than the shell, sshd or the
 * agent that explains its death. */
#define OOM_SCORE_ADJ	"500"

int
spawn_plan_read(const cJSON *order, struct spawn_plan *p, struct err *err)
{
	const cJSON *argv = cJSON_GetObjectItem(order, "argv"), *word;
	int n = cJSON_GetArraySize(argv), i = 0;

	*p = (struct spawn_plan){ 0 };
	p->cwd = json_str(order, "cwd", "/");
	p->error_dir = json_str(order, "error_dir", NULL);
	p->count = (int)json_int(order, "count", 0);
	p->rank0 = (int)json_int(order, "rank0", -1);
	if (n < 1 || p->count < 1 || p->count > 4096)
		return err_set(err, ERR_FORMAT, "a spawn order without command");
	if ((p->argv = calloc((size_t)n + 1, sizeof(*p->argv))) == NULL)
		return err_memory(err);
	cJSON_ArrayForEach(word, argv)
		p->argv[i++] = cJSON_IsString(word) ? word->valuestring :
		    (char *)(uintptr_t)"";
	return 0;
}

void
spawn_plan_fini(struct spawn_plan *p)
{
	free(p->argv);
	p->argv = NULL;
}

static void
set_number(const char *name, int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", value);
	setenv(name, text, 1);
}

/* The variables that differ between the ranks of a node; what they share is
 * already in the reaper's environment. */
static void
set_rank_environment(const struct spawn_plan *p, int i)
{
	char path[4096];

	if (p->rank0 < 0)
		return;
	set_number("RANK", p->rank0 + i);
	set_number("LOCAL_RANK", i);
	set_number("ROLE_RANK", p->rank0 + i);
	if (p->error_dir == NULL)
		return;
	snprintf(path, sizeof(path), "%s/rank%05d.error.json", p->error_dir,
	    p->rank0 + i);
	setenv("TORCHELASTIC_ERROR_FILE", path, 1);
}

static void
raise_oom_score(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd == -1)
		return;
	/* Raising is always allowed; where it is not, nothing is lost. */
	if (write(fd, OOM_SCORE_ADJ, sizeof(OOM_SCORE_ADJ) - 1) == -1) {
		close(fd);
		return;
	}
	close(fd);
}

static void
reset_signals(void)
{
	sigset_t none;
	int i;

	for (i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the child: never returns.  A failure goes to report_fd as errno. */
static void
child_exec(const struct spawn_plan *p, int i, int output_fd, int report_fd,
    pid_t parent)
{
	int null_fd, errnum;

	setsid();
	/* If the reaper is killed, its ranks must not live on unowned. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	/* Where Yama forbids it otherwise, for stacks of a hung rank. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	raise_oom_score();
	set_rank_environment(p, i);
	null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (chdir(p->cwd) == 0 && null_fd != -1 &&
	    dup2(null_fd, STDIN_FILENO) != -1 &&
	    dup2(output_fd, STDOUT_FILENO) != -1 &&
	    dup2(output_fd, STDERR_FILENO) != -1) {
		reset_signals();
		execvp(p->argv[0], p->argv);
	}
	errnum = errno;
	if (write(report_fd, &errnum, sizeof(errnum)) == -1)
		_exit(126);
	_exit(127);
}

int
spawn_main(const struct spawn_plan *p, int i, int output_fd, pid_t *out,
    struct err *err)
{
	pid_t parent = getpid(), pid;
	int report[2], errnum = 0;
	ssize_t n;

	if (pipe2(report, O_CLOEXEC) == -1)
		return err_errno(err, "cannot make a pipe");
	if ((pid = fork()) == -1) {
		err_errno(err, "cannot fork");
		close(report[0]);
		close(report[1]);
		return -1;
	}
	if (pid == 0)
		child_exec(p, i, output_fd, report[1], parent);
	close(report[1]);
	do
		n = read(report[0], &errnum, sizeof(errnum));
	while (n == -1 && errno == EINTR);
	close(report[0]);
	if (n == 0) {
		*out = pid;
		return 0;
	}
	waitpid(pid, NULL, 0);
	errno = errnum;
	return err_errno(err, "cannot start %s", p->argv[0]);
}
