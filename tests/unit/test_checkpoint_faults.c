/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_faults.c - select, quarantine and prune killed before each system call
 * that changes something, and with each such call failing: whatever happens, a trainer
 * resumes from a whole checkpoint, nothing is lost, and what was begun can be finished
 * or undone.
 *
 * The calls are replaced here, in front of the C library's.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint_fixture.h"
#include "common/file.h"
#include "checkpoint/beside.h"
#include "checkpoint/quarantine.h"
#include "checkpoint/select.h"
#include "unit.h"

#define NEVER		(-1)
#define KILL		0	/* in place of an errno */
#define CALLS_MAX	400

static long calls, fail_at = NEVER;
static int fail_errno;

/* True when this call is to fail. */
static bool
gate(void)
{
	if (fail_at == NEVER || calls++ != fail_at)
		return false;
	if (fail_errno == KILL)
		_exit(99);
	errno = fail_errno;
	return true;
}

int
renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
	return gate() ? -1 : (int)syscall(SYS_renameat2, a, from, b, to, flags);
}

#include "gated_calls.h"

int
fsync(int fd)
{
	return gate() ? -1 : (int)syscall(SYS_fsync, fd);
}

static char *top, *dir;

/* How a trainer lays out its save directory, and what it resumes from. */
struct layout {
	const char	*name;
	const char	*shape;		/* of a checkpoint's name */
	bool		 folders;
	const char	*tracker;	/* a text, a link or a copy; NULL: the largest */
	const char	*value;		/* of a text: %ld and the name; NULL: see below */
	bool		 is_link;
};
static const struct layout layouts[] = {
	{ "megatron", "iter_%07ld", true, "latest_checkpointed_iteration.txt",
	    "%ld", false },
	{ "deepspeed", "global_step%ld", true, "latest", "global_step%ld", false },
	{ "json", "step_%ld.pt", false, "latest.json",
	    "{\"file\": \"step_%ld.pt\"}", false },
	{ "largest", "checkpoint-%ld", true, NULL, NULL, false },
	{ "link", "epoch=0-step=%ld.ckpt", false, "last.ckpt", NULL, true },
	{ "copy", "epoch=0-step=%ld.ckpt", false, "last.ckpt", NULL, false },
	{ "fairseq", "checkpoint_1_%ld.pt", false, "checkpoint_last.pt", NULL,
	    false }
};
#define N_LAYOUTS	(int)(sizeof(layouts) / sizeof(layouts[0]))

static void
set_up(void)
{
	top = fixture_dir();
	dir = fixture_path(top, "ckpt");
	fail_at = NEVER;
}

static void
tear_down(void)
{
	free(dir);
	fixture_remove(top);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static char *
path_of(const struct layout *l, long step)
{
	char name[64];

	snprintf(name, sizeof(name), l->shape, step);
	return fixture_path(dir, name);
}

static void
write_tracker(const struct layout *l, long step)
{
	char *path, text[128], name[64];

	if (l->tracker == NULL)
		return;
	path = fixture_path(dir, l->tracker);
	snprintf(name, sizeof(name), l->shape, step);
	if (l->is_link)
		ck_assert_int_eq(symlink(name, path), 0);
	else if (l->value == NULL)
		fixture_good(path, step);
	else {
		snprintf(text, sizeof(text), l->value, step);
		fixture_write(path, text, strlen(text));
	}
	free(path);
}
#pragma GCC diagnostic pop

static void
add(const struct layout *l, long step, bool good)
{
	char *path = path_of(l, step), *file = path;

	if (l->folders) {
		ck_assert_int_eq(mkdir(path, 0700), 0);
		file = fixture_path(path, "model.pt");
	}
	fixture_good(file, step);
	if (!good)
		ck_assert_int_eq(truncate(file, 100), 0);
	if (file != path)
		free(file);
	free(path);
}

/* 10, 30 and 40 are whole, 20 is not; the trainer would go on from 40. */
static void
build(const struct layout *l)
{
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	add(l, 10, true);
	add(l, 20, false);
	add(l, 30, true);
	add(l, 40, true);
	write_tracker(l, 40);
}

static bool
is_whole(const char *path)
{
	return access(path, F_OK) == 0 &&
	    fixture_state(path, NULL, 0) == HOLDFAST_CHECKPOINT_VALID;
}

/* The step that a path holds, if it is whole, by its name or its contents. */
static long
step_at(const char *path)
{
	struct checkpoint c;
	long step = -1;

	if (is_whole(path)) {
		fixture_check(&c, path, false);
		step = (long)checkpoint_step(&c);
		checkpoint_fini(&c);
	}
	return step;
}

/* What a trainer of this layout would go on from; -1: nothing that it can load. */
static long
resumes_from(const struct layout *l)
{
	struct buf text = {0};
	char *path, *p;
	long step, i, found = -1;

	if (l->tracker == NULL) {
		for (i = 40; i > 0 && found == -1; i -= 10) {
			path = path_of(l, i);
			if (access(path, F_OK) == 0)
				found = is_whole(path) ? i : -2;
			free(path);
		}
		return found;
	}
	path = fixture_path(dir, l->tracker);
	if (l->value == NULL) {
		step = step_at(path);
		free(path);
		return step;
	}
	ck_assert_int_eq(file_read(path, 4096, &text, NULL), 0);
	free(path);
	ck_assert_ptr_nonnull(p = strpbrk(text.data, "0123456789"));
	step = strtol(p, NULL, 10);
	buf_fini(&text);
	path = path_of(l, step);
	if (!is_whole(path))
		step = -1;
	free(path);
	return step;
}

static void
assert_resumes(const struct layout *l, long call)
{
	long step = resumes_from(l);

	ck_assert_msg(step > 0, "%s, call %ld: resumes from %ld", l->name, call,
	    step);
}

/* All names below dir with their contents, as one text. */
static struct buf picture;

static void
add_to_picture(const char *path)
{
	struct buf text = {0};
	struct stat st;
	char to[256];
	ssize_t n;

	ck_assert_int_eq(lstat(path, &st), 0);
	/* what a killed process leaves of a file it was writing */
	if (S_ISREG(st.st_mode) && path[strlen(path) - 7] == '.' &&
	    strchr(path, '=') == NULL && !name_is_checkpoint_file(path))
		return;
	if (path[strlen(dir)] == '/' && path[strlen(dir) + 1] == '.')
		return;
	buf_printf(&picture, "%s %o ", path, st.st_mode & S_IFMT);
	if (S_ISLNK(st.st_mode) && (n = readlink(path, to, sizeof(to))) > 0)
		buf_append(&picture, to, (size_t)n);
	else if (S_ISREG(st.st_mode) && file_read(path, 1 << 20, &text, NULL)
	    == 0 && text.len > 0)
		buf_append(&picture, text.data, text.len);
	buf_fini(&text);
	buf_puts(&picture, "\n");
}

static int
compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int
add_name(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	return st == NULL || f == NULL || flag < 0 ? -1 :
	    buf_printf(&picture, "%s\n", path);
}

/* Sorted by path, so that the order of readdir does not matter. */
static struct buf
take_picture(void)
{
	struct buf names = {0}, out;
	char *list[256], *line, *next;
	size_t n = 0, i;

	ck_assert_int_eq(nftw(dir, add_name, 8, FTW_PHYS), 0);
	names = picture;
	picture = (struct buf){0};
	for (next = names.data; (line = strsep(&next, "\n")) != NULL; )
		if (*line != '\0' && n < 256)
			list[n++] = line;
	qsort(list, n, sizeof(*list), compare_lines);
	for (i = 0; i < n; i++)
		add_to_picture(list[i]);
	buf_fini(&names);
	out = picture;
	picture = (struct buf){0};
	return out;
}

static void
assert_same_picture(const struct buf *a, const char *what, long k)
{
	struct buf b = take_picture();

	ck_assert_msg(a->len == b.len && memcmp(a->data, b.data, a->len) == 0,
	    "%s %ld: not as before:\n%s\n%s", what, k, a->data, b.data);
	buf_fini(&b);
}

static int
do_select(long step, struct err *err)
{
	struct checkpoints cs = {0};
	struct select_plan p = {0};
	bool member[16];
	int rc = -1;

	memset(err, 0, sizeof(*err));
	if (checkpoints_find(&cs, dir, 1, err) == 0 && cs.n <= 16 &&
	    select_members(&cs, dir, step, member) > 0 &&
	    select_plan(&p, dir, &cs, member, err) == 0)
		rc = select_apply(&p, err);
	select_fini(&p);
	checkpoints_fini(&cs);
	return rc;
}

static int
do_undo(struct err *err)
{
	struct select_plan p = {0};
	int rc;

	memset(err, 0, sizeof(*err));
	rc = select_undo(&p, dir, false, err);
	select_fini(&p);
	return rc;
}

enum action { SELECT, UNDO, QUARANTINE };

static int
do_action(enum action action, struct err *err)
{
	struct checkpoints cs = {0};
	char *to = NULL;
	size_t i;
	int rc = -1;

	if (action == SELECT)
		return do_select(10, err);
	if (action == UNDO)
		return do_undo(err);
	memset(err, 0, sizeof(*err));
	/* the broken one */
	if (checkpoints_find(&cs, dir, 1, err) == 0)
		for (i = 0; i < cs.n; i++)
			if (cs.list[i].name_step == 20)
				rc = quarantine_move(dir, &cs.list[i], &to, err);
	free(to);
	checkpoints_fini(&cs);
	return rc;
}

/* Runs the action in a child whose call number k fails or is its last.  Returns its
 * status: 0 done, 1 failed, 99 killed; *reached tells whether there is such a call. */
static int
with_fault(enum action action, long k, int errnum, bool *reached)
{
	struct err err;
	int status, rc;
	pid_t pid = fork();

	ck_assert_int_ne(pid, -1);
	if (pid == 0) {
		calls = 0;
		fail_at = k;
		fail_errno = errnum;
		rc = do_action(action, &err);
		/* an error says what to do, or at least what it was */
		if (rc == -1 && err.text[0] == '\0')
			_exit(98);
		_exit((calls > k ? 0 : 10) + (rc == 0 ? 0 : 1));
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	status = WEXITSTATUS(status);
	ck_assert_int_ne(status, 98);
	*reached = status < 10 || status == 99;
	return status == 99 ? 99 : status % 10;
}

static void
undo_all(void)
{
	struct err err;
	int i = 0;

	while (do_undo(&err) == 0)
		ck_assert_int_lt(i++, 10);
	ck_assert_msg(strstr(err.text, "nothing to undo") != NULL, "%s", err.text);
}

START_TEST(select_and_undo)
{
	const struct layout *l = &layouts[_i];
	struct buf before;
	struct err err;
	char *path;

	build(l);
	before = take_picture();
	ck_assert_int_eq(resumes_from(l), 40);
	ck_assert_msg(do_select(10, &err) == 0, "%s: %s", l->name, err.text);
	ck_assert_int_eq(resumes_from(l), 10);
	path = path_of(l, 20);
	ck_assert_int_ne(access(path, F_OK), 0);
	free(path);
	/* once more changes nothing */
	ck_assert_int_eq(do_select(10, &err), 0);
	ck_assert_msg(do_undo(&err) == 0, "%s: %s", l->name, err.text);
	assert_same_picture(&before, l->name, 0);
	ck_assert_int_eq(do_undo(&err), -1);
	path = beside_path(dir, "", SELECT_SUFFIX, NULL);
	ck_assert_int_ne(access(path, F_OK), 0);
	free(path);
	/* two, and back again in order */
	ck_assert_int_eq(do_select(30, &err), 0);
	ck_assert_int_eq(resumes_from(l), 30);
	ck_assert_int_eq(do_select(10, &err), 0);
	ck_assert_int_eq(resumes_from(l), 10);
	ck_assert_int_eq(do_undo(&err), 0);
	ck_assert_int_eq(resumes_from(l), 30);
	ck_assert_int_eq(do_undo(&err), 0);
	assert_same_picture(&before, l->name, 0);
	buf_fini(&before);
}
END_TEST

/* Killed before each call of select, or of undo: resumed from something whole; a second
 * select ends it, and the undos lead back to the beginning. */
static void
kill_at_each_call(const struct layout *l, enum action action)
{
	struct buf before;
	struct err err;
	bool reached = true;
	long k;

	build(l);
	before = take_picture();
	for (k = 0; reached; k++) {
		ck_assert_int_lt(k, CALLS_MAX);
		if (action == UNDO)
			ck_assert_int_eq(do_select(10, &err), 0);
		with_fault(action, k, KILL, &reached);
		assert_resumes(l, k);
		if (action == SELECT && k % 2 == 0) {
			ck_assert_msg(do_select(10, &err) == 0, "%s %ld: %s",
			    l->name, k, err.text);
			ck_assert_int_eq(resumes_from(l), 10);
		}
		undo_all();
		assert_same_picture(&before, l->name, k);
	}
	ck_assert_int_gt(k, 5);
	buf_fini(&before);
}

START_TEST(select_killed)
{
	kill_at_each_call(&layouts[_i], SELECT);
}
END_TEST

START_TEST(undo_killed)
{
	kill_at_each_call(&layouts[_i], UNDO);
}
END_TEST

/* Each call fails once: all is as before, or all is done. */
START_TEST(select_fails)
{
	static const int errnums[] = { ENOSPC, EROFS, EACCES, EDQUOT, EXDEV, EIO };
	const struct layout *l = &layouts[_i];
	struct buf before;
	bool reached = true;
	int status;
	long k;

	build(l);
	before = take_picture();
	for (k = 0; reached; k++) {
		ck_assert_int_lt(k, CALLS_MAX);
		status = with_fault(SELECT, k, errnums[k % 6], &reached);
		ck_assert_msg(resumes_from(l) == (status == 0 ? 10 : 40),
		    "%s, call %ld: status %d, resumes from %ld", l->name, k, status,
		    resumes_from(l));
		undo_all();
		assert_same_picture(&before, l->name, k);
	}
	buf_fini(&before);
}
END_TEST

/* The checkpoint is in one of the two places, whole, and in the quarantine only with
 * its reason. */
START_TEST(quarantine_fails)
{
	static const int errnums[] = { KILL, ENOSPC, EROFS, EACCES, EDQUOT, EXDEV,
	    EIO };
	const struct layout *l = &layouts[3];
	char *from, *to, *reason, *back;
	struct err err;
	bool reached, moved;
	int status;
	long k;
	size_t e;

	build(l);
	from = path_of(l, 20);
	to = fixture_path(top, "ckpt.quarantine/checkpoint-20");
	reason = fixture_path(top, "ckpt.quarantine/checkpoint-20.json");
	for (e = 0; e < sizeof(errnums) / sizeof(errnums[0]); e++)
		for (k = 0, reached = true; reached; k++) {
			ck_assert_int_lt(k, CALLS_MAX);
			status = with_fault(QUARANTINE, k, errnums[e], &reached);
			moved = access(from, F_OK) != 0;
			ck_assert_msg(!moved || (access(to, F_OK) == 0 &&
			    access(reason, F_OK) == 0), "%d %ld", errnums[e], k);
			/* failed without a move: nothing new is left */
			if (status == 1 && !moved)
				ck_assert_msg(access(reason, F_OK) != 0, "%d %ld",
				    errnums[e], k);
			if (moved) {
				ck_assert_msg(quarantine_undo(to, &back, &err) == 0,
				    "%s", err.text);
				free(back);
			}
			ck_assert_int_eq(access(from, F_OK), 0);
			(void)unlink(reason);
		}
	free(from);
	free(to);
	free(reason);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_set_timeout(t, 300);
	tcase_add_loop_test(t, select_and_undo, 0, N_LAYOUTS);
	tcase_add_loop_test(t, select_killed, 0, N_LAYOUTS);
	tcase_add_loop_test(t, undo_killed, 0, N_LAYOUTS);
	tcase_add_loop_test(t, select_fails, 0, N_LAYOUTS);
	tcase_add_test(t, quarantine_fails);
}

int
main(void)
{
	return unit_run("checkpoint_faults", add_tests);
}
