/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_supervisor_proc.c - processes as /proc shows them, the sweep over them,
 * environments, and the held port.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/json.h"
#include "supervisor/agent.h"
#include "supervisor/envp.h"
#include "supervisor/port.h"
#include "supervisor/proc.h"
#include "unit.h"

extern char **environ;

START_TEST(own_process)
{
	struct proc_stat st, again;

	prctl(PR_SET_NAME, "itself");
	ck_assert_int_eq(proc_read_stat(getpid(), &st), 0);
	ck_assert_int_eq(st.pid, getpid());
	ck_assert_int_eq(st.ppid, getppid());
	ck_assert_int_eq(st.state, 'R');
	ck_assert_str_eq(st.comm, "itself");
	ck_assert_uint_gt(st.starttime, 0);
	ck_assert_int_eq(proc_read_stat(getpid(), &again), 0);
	ck_assert_uint_eq(st.starttime, again.starttime);
	ck_assert(proc_is_alive(getpid(), st.starttime));
	ck_assert(!proc_is_alive(getpid(), st.starttime + 1));
	ck_assert_int_eq(proc_read_stat(0x3fffffff, &again), -1);
	ck_assert(!proc_is_alive(0x3fffffff, 1));
}
END_TEST

/* What a process calls itself must not shift the fields behind it. */
START_TEST(names_with_parentheses_and_blanks)
{
	static const char *const names[] = { "a) R 1 (b c", ")))", "(", " ",
	    "x) Z 1 1 1", "sixteen_letters" };
	struct proc_stat before, st;
	size_t i;

	ck_assert_int_eq(proc_read_stat(getpid(), &before), 0);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		ck_assert_int_eq(prctl(PR_SET_NAME, names[i]), 0);
		ck_assert_int_eq(proc_read_stat(getpid(), &st), 0);
		ck_assert_str_eq(st.comm, names[i]);
		ck_assert_int_eq(st.state, 'R');
		ck_assert_int_eq(st.ppid, before.ppid);
		ck_assert_uint_eq(st.starttime, before.starttime);
	}
}
END_TEST

START_TEST(zombies_are_not_alive)
{
	struct proc_stat st;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &(siginfo_t){0},
	    WEXITED | WNOWAIT), 0);
	ck_assert_int_eq(proc_read_stat(pid, &st), 0);
	ck_assert_int_eq(st.state, 'Z');
	ck_assert(!proc_is_alive(pid, st.starttime));
	waitpid(pid, NULL, 0);
	ck_assert_int_eq(proc_read_stat(pid, &st), -1);
}
END_TEST

/* A program that waits for its standard input to end, with this environment. */
struct sleeper {
	pid_t	pid;
	int	gate;
};

/* It has spoken when this returns: in the middle of execve() the environment of
 * a process reads as empty. */
static struct sleeper
sleeper_start(const char *const *env)
{
	char *const argv[] = { (char *)(uintptr_t)"sh", (char *)(uintptr_t)"-c",
	    (char *)(uintptr_t)"echo; read x; exit 0", NULL };
	posix_spawn_file_actions_t fa;
	int in[2], out[2];
	struct sleeper s;
	char c;

	ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, in[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&fa, out[1], STDOUT_FILENO);
	ck_assert_int_eq(posix_spawnp(&s.pid, "sh", &fa, NULL, argv,
	    (char *const *)(uintptr_t)env), 0);
	posix_spawn_file_actions_destroy(&fa);
	close(in[0]);
	close(out[1]);
	ck_assert_int_eq(read(out[0], &c, 1), 1);
	close(out[0]);
	s.gate = in[1];
	return s;
}

static int
sleeper_end(struct sleeper *s)
{
	int status = 0;

	close(s->gate);
	ck_assert_int_eq(waitpid(s->pid, &status, 0), s->pid);
	return status;
}

START_TEST(settings_match_as_a_whole)
{
	const char *env[] = { "PATH=/bin", "RUN=abc1", "XRUN=abc", "EMPTY=",
	    "LAST=end", NULL };
	struct sleeper s = sleeper_start(env);
	char value[8];

	ck_assert_int_eq(proc_has_env(s.pid, "RUN=abc1"), PROC_ENV_YES);
	ck_assert_int_eq(proc_has_env(s.pid, "RUN=abc"), PROC_ENV_NO);
	ck_assert_int_eq(proc_has_env(s.pid, "RUN=abc12"), PROC_ENV_NO);
	ck_assert_int_eq(proc_has_env(s.pid, "UN=abc1"), PROC_ENV_NO);
	ck_assert_int_eq(proc_has_env(s.pid, "PATH=/bin"), PROC_ENV_YES);
	ck_assert_int_eq(proc_has_env(s.pid, "LAST=end"), PROC_ENV_YES);
	ck_assert_int_eq(proc_has_env(s.pid, "EMPTY="), PROC_ENV_YES);
	ck_assert_int_eq(proc_has_env(0x3fffffff, "RUN=abc1"), PROC_ENV_NO);
	ck_assert_int_eq(proc_read_env(s.pid, "RUN", value, sizeof(value)), 0);
	ck_assert_str_eq(value, "abc1");
	ck_assert_int_eq(proc_read_env(s.pid, "EMPTY", value, sizeof(value)), 0);
	ck_assert_str_eq(value, "");
	ck_assert_int_eq(proc_read_env(s.pid, "RUN", value, 5), 0);
	ck_assert_int_eq(proc_read_env(s.pid, "RUN", value, 4), -1);
	ck_assert_int_eq(proc_read_env(s.pid, "RU", value, sizeof(value)), -1);
	ck_assert_int_eq(proc_read_env(s.pid, "NONE", value, sizeof(value)), -1);
	sleeper_end(&s);
}
END_TEST

START_TEST(empty_environment)
{
	const char *env[] = { NULL };
	struct sleeper s = sleeper_start(env);
	char value[8];

	ck_assert_int_eq(proc_has_env(s.pid, "RUN=abc"), PROC_ENV_NO);
	ck_assert_int_eq(proc_read_env(s.pid, "RUN", value, sizeof(value)), -1);
	sleeper_end(&s);
}
END_TEST

START_TEST(list_holds_all)
{
	struct proc_stat *list = NULL;
	bool self = false, one = false;
	size_t n = 0, i;

	ck_assert_int_eq(proc_list(&list, &n), 0);
	for (i = 0; i < n; i++) {
		self = self || list[i].pid == getpid();
		one = one || list[i].pid == getppid();
	}
	ck_assert(self && one);
	free(list);
}
END_TEST

START_TEST(boot_id_is_a_uuid)
{
	char a[PROC_BOOT_ID_MAX], b[PROC_BOOT_ID_MAX], wchan[PROC_WCHAN_MAX];

	proc_read_boot_id(a);
	proc_read_boot_id(b);
	ck_assert_str_eq(a, b);
	ck_assert_uint_eq(strlen(a), 36);
	proc_read_wchan(getpid(), wchan);
	ck_assert_str_eq(wchan, "");
	proc_read_wchan(0x3fffffff, wchan);
	ck_assert_str_eq(wchan, "");
}
END_TEST

struct swept {
	int	alive, killed, unreadable, again;
};

/* The sweep as the agent does it: a process that has started nothing, to which a
 * stray without the variable has fallen. */
static struct swept
sweep_in_a_process(const struct run_spec *spec)
{
	struct swept r = { 0 };
	int fds[2], status;
	pid_t pid, stray;

	ck_assert_int_eq(pipe(fds), 0);
	if ((pid = fork()) == 0) {
		/* It may have the variable itself. */
		setenv("HOLDFAST_RUN_ID", spec->run_id, 1);
		if ((stray = fork()) == 0)
			for (;;)
				pause();
		r.alive = sweep_pass(spec, &r.killed, &r.unreadable);
		if (waitpid(stray, &status, 0) != stray || !WIFSIGNALED(status))
			_exit(1);
		do
			r.again = sweep_pass(spec, &status, &r.unreadable);
		while (r.again != 0);
		_exit(write(fds[1], &r, sizeof(r)) != sizeof(r));
	}
	ck_assert_int_eq(read(fds[0], &r, sizeof(r)), sizeof(r));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	close(fds[0]);
	close(fds[1]);
	return r;
}

/* Only processes of this run, by the whole id. */
START_TEST(sweep_ends_the_run_and_nothing_else)
{
	struct run_spec spec = { .run_id = (char *)(uintptr_t)"sweep.00ff" };
	const char *mine[] = { "A=1", "HOLDFAST_RUN_ID=sweep.00ff", NULL };
	const char *longer[] = { "HOLDFAST_RUN_ID=sweep.00ff1", NULL };
	const char *shorter[] = { "HOLDFAST_RUN_ID=sweep.00f", NULL };
	const char *other[] = { "NOT_HOLDFAST_RUN_ID=sweep.00ff", NULL };
	struct sleeper a, b, c, d, e;
	struct swept r;
	int status;

	a = sleeper_start(mine);
	b = sleeper_start(mine);
	c = sleeper_start(longer);
	d = sleeper_start(shorter);
	e = sleeper_start(other);
	r = sweep_in_a_process(&spec);
	ck_assert_int_eq(r.alive, 3);
	ck_assert_int_eq(r.killed, 3);
	status = sleeper_end(&a);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	status = sleeper_end(&b);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	ck_assert_int_eq(sleeper_end(&c), 0);
	ck_assert_int_eq(sleeper_end(&d), 0);
	ck_assert_int_eq(sleeper_end(&e), 0);
}
END_TEST

static const char *
value_of(char **envp, const char *name)
{
	const char *value = NULL;
	size_t n = strlen(name);

	for (; *envp != NULL; envp++) {
		if (strncmp(*envp, name, n) != 0 || (*envp)[n] != '=')
			continue;
		ck_assert_msg(value == NULL, "%s is there twice", name);
		value = *envp + n + 1;
	}
	return value ? value : "(absent)";
}

START_TEST(environments_are_set_removed_and_defaulted)
{
	char *own[] = { (char *)(uintptr_t)"KEPT=1", (char *)(uintptr_t)"SET=old",
	    (char *)(uintptr_t)"GONE=x", (char *)(uintptr_t)"SETTER=2",
	    (char *)(uintptr_t)"DEF=user", NULL };
	cJSON *set = cJSON_CreateObject(), *defaults = cJSON_CreateObject();
	char **saved = environ, **envp;

	json_add_text(set, "SET", "new=1");
	json_add_text(set, "ADDED", "");
	json_add_text(set, "GONE", NULL);
	json_add_text(set, "NEVER", NULL);
	json_add_text(defaults, "DEF", "ours");
	json_add_text(defaults, "DEF2", "ours");
	json_add_text(defaults, "SET", "default");
	environ = own;
	envp = envp_new(set, defaults);
	environ = saved;
	ck_assert_str_eq(value_of(envp, "KEPT"), "1");
	ck_assert_str_eq(value_of(envp, "SET"), "new=1");
	ck_assert_str_eq(value_of(envp, "SETTER"), "2");
	ck_assert_str_eq(value_of(envp, "ADDED"), "");
	ck_assert_str_eq(value_of(envp, "GONE"), "(absent)");
	ck_assert_str_eq(value_of(envp, "NEVER"), "(absent)");
	ck_assert_str_eq(value_of(envp, "DEF"), "user");
	ck_assert_str_eq(value_of(envp, "DEF2"), "ours");
	envp_free(envp);
	cJSON_Delete(set);
	cJSON_Delete(defaults);
	environ = own;
	envp = envp_new(NULL, NULL);
	environ = saved;
	ck_assert_str_eq(value_of(envp, "SET"), "old");
	ck_assert_ptr_null(envp[5]);
	envp_free(envp);
	envp_free(NULL);
}
END_TEST

/* A socket bound to the port; -1 with errno. */
static int
bind_to(int family, int port, bool reuse, bool listens)
{
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6,
	    .sin6_port = htons((uint16_t)port) };
	struct sockaddr_in a4 = { .sin_family = AF_INET,
	    .sin_port = htons((uint16_t)port) };
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, rc;

	if (fd == -1)
		return -1;
	if (reuse)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	rc = family == AF_INET ?
	    bind(fd, (struct sockaddr *)&a4, sizeof(a4)) :
	    bind(fd, (struct sockaddr *)&a6, sizeof(a6));
	if (rc == 0 && (!listens || listen(fd, 1) == 0))
		return fd;
	close(fd);
	return -1;
}

START_TEST(held_port_can_be_listened_on)
{
	static const int families[] = { AF_INET, AF_INET6 };
	int port = 0, fd = port_hold(&port, NULL), l, c, i;

	ck_assert_int_ne(fd, -1);
	ck_assert_int_gt(port, 1023);
	for (i = 0; i < 2; i++) {
		l = bind_to(families[i], port, true, true);
		if (l == -1 && families[i] == AF_INET6 && errno == EAFNOSUPPORT)
			continue;
		ck_assert_msg(l != -1, "%s", strerror(errno));
		/* Two listeners there are not. */
		ck_assert_int_eq(bind_to(families[i], port, true, true), -1);
		ck_assert_int_eq(errno, EADDRINUSE);
		close(l);
	}
	/* Without SO_REUSEADDR nobody gets it. */
	c = bind_to(AF_INET, port, false, false);
	ck_assert_int_eq(c, -1);
	ck_assert_int_eq(errno, EADDRINUSE);
	close(fd);
	c = bind_to(AF_INET, port, false, false);
	ck_assert_int_ne(c, -1);
	close(c);
}
END_TEST

#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE	51	/* linux/in.h, since Linux 6.3 */
#endif

/* The kernel is asked for any port out of a range of just this one. */
START_TEST(held_port_is_nobodys_ephemeral_port)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int port = 0, fd = port_hold(&port, NULL), one = 1, reuse, s, rc;
	uint32_t range = (uint32_t)port << 16 | (uint32_t)port;

	for (reuse = 0; reuse < 2; reuse++) {
		s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (reuse)
			setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one,
			    sizeof(one));
		rc = setsockopt(s, IPPROTO_IP, IP_LOCAL_PORT_RANGE, &range,
		    sizeof(range));
		if (rc == 0) {
			rc = bind(s, (struct sockaddr *)&any, sizeof(any));
			ck_assert_int_eq(rc, -1);
			ck_assert_int_eq(errno, EADDRINUSE);
		}
		close(s);
	}
	close(fd);
}
END_TEST

START_TEST(held_ports_differ)
{
	int fds[50], ports[50], i, k;

	for (i = 0; i < 50; i++) {
		fds[i] = port_hold(&ports[i], NULL);
		ck_assert_int_ne(fds[i], -1);
		for (k = 0; k < i; k++)
			ck_assert_int_ne(ports[i], ports[k]);
	}
	for (i = 0; i < 50; i++)
		close(fds[i]);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_test(t, own_process);
	tcase_add_test(t, names_with_parentheses_and_blanks);
	tcase_add_test(t, zombies_are_not_alive);
	tcase_add_test(t, settings_match_as_a_whole);
	tcase_add_test(t, empty_environment);
	tcase_add_test(t, list_holds_all);
	tcase_add_test(t, boot_id_is_a_uuid);
	tcase_add_test(t, sweep_ends_the_run_and_nothing_else);
	tcase_add_test(t, environments_are_set_removed_and_defaulted);
	tcase_add_test(t, held_port_can_be_listened_on);
	tcase_add_test(t, held_port_is_nobodys_ephemeral_port);
	tcase_add_test(t, held_ports_differ);
}

int
main(void)
{
	return unit_run("supervisor_proc", add);
}
