/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_supervisor_lock.c - one live run per name.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/json.h"
#include "supervisor/lock.h"
#include "supervisor/proc.h"
#include "unit.h"

static const char *dir;
static bool freed;
static struct err err;

static int
acquire(bool take_over)
{
	err = (struct err){0};
	return lock_acquire(dir, take_over, &freed, &err);
}

static const char *
lock_path(void)
{
	return unit_path(dir, "lock");
}

/* A lock as somebody else would have left it, in a pid namespace or this one. */
static void
write_lock_of(const char *host, const char *boot_id, const char *ns, int pid,
    uint64_t starttime)
{
	char text[512], here[HOST_NAME_MAX + 1] = "", boot[PROC_BOOT_ID_MAX];
	char own_ns[64] = "";

	gethostname(here, sizeof(here) - 1);
	proc_read_boot_id(boot);
	ck_assert_int_gt(readlink("/proc/self/ns/pid", own_ns,
	    sizeof(own_ns) - 1), 0);
	snprintf(text, sizeof(text), "{\"host\":\"%s\",\"boot_id\":\"%s\","
	    "\"pid_ns\":\"%s\",\"pid\":%d,\"starttime\":%llu}\n",
	    host ? host : here, boot_id ? boot_id : boot, ns ? ns : own_ns, pid,
	    (unsigned long long)starttime);
	unit_write(lock_path(), text, strlen(text));
}

static void
write_lock(const char *host, const char *boot_id, int pid, uint64_t starttime)
{
	write_lock_of(host, boot_id, NULL, pid, starttime);
}

static uint64_t
start_of(pid_t pid)
{
	struct proc_stat st;

	ck_assert_int_eq(proc_read_stat(pid, &st), 0);
	return st.starttime;
}

static void
check_mine(void)
{
	const char *text = unit_read(lock_path(), NULL);
	cJSON *o = NULL;

	ck_assert_int_eq(json_parse(text, strlen(text), &o, NULL), 0);
	ck_assert_int_eq(json_int(o, "pid", 0), getpid());
	ck_assert_int_eq(json_int(o, "starttime", 0),
	    (int64_t)start_of(getpid()));
	ck_assert_uint_eq(strlen(json_str(o, "boot_id", "")), 36);
	cJSON_Delete(o);
	/* No temporary name is left. */
	ck_assert_int_eq(unit_count(dir), 1);
}

START_TEST(free_lock_is_taken_and_released)
{
	dir = unit_dir();
	ck_assert_int_eq(acquire(false), 0);
	ck_assert(!freed);
	check_mine();
	lock_release(dir);
	ck_assert_int_eq(unit_count(dir), 0);
	lock_release(dir);
	ck_assert_int_eq(acquire(false), 0);
	lock_release(dir);
}
END_TEST

START_TEST(live_holder_is_named)
{
	char pid[24];

	dir = unit_dir();
	write_lock(NULL, NULL, getppid(), start_of(getppid()));
	ck_assert_int_eq(acquire(true), -1);
	ck_assert_int_eq(err.code, ERR_BUSY);
	snprintf(pid, sizeof(pid), "pid %d ", getppid());
	ck_assert_msg(strstr(err.text, pid) != NULL, "%s", err.text);
	ck_assert(!freed);
	/* Not ours: neither release nor renewal takes it away. */
	lock_release(dir);
	ck_assert_int_eq(unit_count(dir), 1);
	/* This very process counts as well. */
	dir = unit_dir();
	ck_assert_int_eq(acquire(false), 0);
	ck_assert_int_eq(acquire(false), -1);
	ck_assert_int_eq(err.code, ERR_BUSY);
	lock_release(dir);
}
END_TEST

START_TEST(dead_holder_is_replaced)
{
	uint64_t starttime;
	int gate[2];
	pid_t pid;
	char c;

	dir = unit_dir();
	ck_assert_int_eq(pipe(gate), 0);
	if ((pid = fork()) == 0) {
		close(gate[1]);
		_exit(read(gate[0], &c, 1) != 0);
	}
	close(gate[0]);
	starttime = start_of(pid);
	write_lock(NULL, NULL, pid, starttime);
	ck_assert_int_eq(acquire(false), -1);
	/* A zombie holds nothing. */
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &(siginfo_t){0},
	    WEXITED | WNOWAIT), 0);
	ck_assert_int_eq(acquire(false), 0);
	ck_assert(freed);
	check_mine();
	lock_release(dir);
	close(gate[1]);
	waitpid(pid, NULL, 0);
	write_lock(NULL, NULL, pid, starttime);
	ck_assert_int_eq(acquire(false), 0);
	ck_assert(freed);
	lock_release(dir);
}
END_TEST

START_TEST(reused_pid_is_another_process)
{
	dir = unit_dir();
	write_lock(NULL, NULL, getppid(), start_of(getppid()) + 1);
	ck_assert_int_eq(acquire(false), 0);
	ck_assert(freed);
	lock_release(dir);
}
END_TEST

START_TEST(reboot_frees)
{
	dir = unit_dir();
	write_lock(NULL, "00000000-0000-0000-0000-000000000000", getppid(),
	    start_of(getppid()));
	ck_assert_int_eq(acquire(false), 0);
	ck_assert(freed);
	lock_release(dir);
}
END_TEST

static void
set_age(int seconds)
{
	struct timespec times[2];

	clock_gettime(CLOCK_REALTIME, &times[0]);
	times[0].tv_sec -= seconds;
	times[1] = times[0];
	ck_assert_int_eq(utimensat(AT_FDCWD, lock_path(), times, 0), 0);
}

/* Another host: expired and asked for, both. */
START_TEST(other_host_is_respected)
{
	dir = unit_dir();
	write_lock("elsewhere", NULL, 4711, 1);
	ck_assert_int_eq(acquire(false), -1);
	ck_assert_int_eq(err.code, ERR_BUSY);
	ck_assert_ptr_nonnull(strstr(err.text, "pid 4711 on host elsewhere"));
	ck_assert_ptr_null(strstr(err.text, "--take-over"));
	ck_assert_int_eq(acquire(true), -1);
	set_age(LOCK_LEASE_MS / 1000 + 10);
	ck_assert_int_eq(acquire(false), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "--take-over"));
	/* A renewal starts the lease again. */
	ck_assert_int_eq(lock_renew(dir, NULL), 0);
	ck_assert_int_eq(acquire(true), -1);
	set_age(LOCK_LEASE_MS / 1000 + 10);
	ck_assert_int_eq(acquire(true), 0);
	ck_assert(freed);
	check_mine();
	lock_release(dir);
}
END_TEST

/* Pids of another container mean nothing here: it is as another host, but for a
 * reboot, which ended both. */
START_TEST(other_pid_namespace_is_respected)
{
	dir = unit_dir();
	write_lock_of(NULL, NULL, "pid:[1]", 0x3fffffff, 1);
	ck_assert_int_eq(acquire(true), -1);
	ck_assert_int_eq(err.code, ERR_BUSY);
	set_age(LOCK_LEASE_MS / 1000 + 10);
	ck_assert_int_eq(acquire(false), -1);
	ck_assert_int_eq(acquire(true), 0);
	ck_assert(freed);
	lock_release(dir);
	write_lock_of(NULL, "00000000-0000-0000-0000-000000000000", "pid:[1]",
	    0x3fffffff, 1);
	ck_assert_int_eq(acquire(false), 0);
	lock_release(dir);
}
END_TEST

START_TEST(unreadable_lock_is_no_proof_of_death)
{
	static const char *const texts[] = { "", "nonsense\n", "{\"host\":" };
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		dir = unit_dir();
		unit_write(lock_path(), texts[i], strlen(texts[i]));
		ck_assert_int_eq(acquire(true), -1);
		ck_assert_ptr_nonnull(strstr(err.text, "cannot be judged"));
		ck_assert_int_eq(unit_count(dir), 1);
	}
}
END_TEST

START_TEST(two_starts_at_once)
{
	int fd;

	dir = unit_dir();
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	ck_assert_int_eq(acquire(false), -1);
	ck_assert_int_eq(err.code, ERR_BUSY);
	close(fd);
	ck_assert_int_eq(acquire(false), 0);
	lock_release(dir);
}
END_TEST

/* Of many that find the same dead holder exactly one gets the lock. */
START_TEST(one_of_many_wins)
{
	int gate[2], stay[2], answer[2], i, won = 0;
	bool taken;
	char c;

	dir = unit_dir();
	write_lock(NULL, NULL, 1, 999999999999ULL);
	ck_assert_int_eq(pipe(gate) + pipe(stay) + pipe(answer), 0);
	for (i = 0; i < 16; i++) {
		if (fork() != 0)
			continue;
		close(gate[1]);
		close(stay[1]);
		if (read(gate[0], &c, 1) != 0)
			_exit(2);
		c = lock_acquire(dir, false, &taken, NULL) == 0 ? 'y' : 'n';
		if (write(answer[1], &c, 1) != 1)
			_exit(2);
		/* The winner lives until the others have tried. */
		_exit(read(stay[0], &c, 1) != 0);
	}
	close(gate[1]);
	for (i = 0; i < 16; i++) {
		ck_assert_int_eq(read(answer[0], &c, 1), 1);
		won += c == 'y';
	}
	close(stay[1]);
	while (waitpid(-1, NULL, 0) > 0)
		;
	ck_assert_int_eq(won, 1);
	ck_assert_int_eq(unit_count(dir), 1);
}
END_TEST

START_TEST(missing_folder)
{
	dir = "/no/such/folder";
	ck_assert_int_eq(acquire(false), -1);
	ck_assert_ptr_nonnull(strstr(err.text, dir));
	ck_assert_int_eq(lock_renew(dir, &err), -1);
	lock_release(dir);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_test(t, free_lock_is_taken_and_released);
	tcase_add_test(t, live_holder_is_named);
	tcase_add_test(t, dead_holder_is_replaced);
	tcase_add_test(t, reused_pid_is_another_process);
	tcase_add_test(t, reboot_frees);
	tcase_add_test(t, other_host_is_respected);
	tcase_add_test(t, other_pid_namespace_is_respected);
	tcase_add_test(t, unreadable_lock_is_no_proof_of_death);
	tcase_add_test(t, two_starts_at_once);
	tcase_add_test(t, one_of_many_wins);
	tcase_add_test(t, missing_folder);
}

int
main(void)
{
	return unit_run("supervisor_lock", add);
}
