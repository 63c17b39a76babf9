/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_writing.c - staging and manifests with each call that writes failing:
 * nothing half-done has a name that a trainer would take, nothing goes that is not whole
 * elsewhere, the reason is told, and the next try completes it.
 */
#include <stdint.h>

#include "common/file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/names.h"
#include "checkpoint/stage.h"
#include "checkpoint/stage_notes.h"
#include "writing_faults.h"

#define NEW_TRACKER	"{\"file\":\"step20\",\"step\":20}"
#define OLD_TRACKER	"{\"file\":\"step10.pt\",\"step\":9}"

/* FROM has a file, a folder and a tracker that names it; TO has another one of the
 * file's name. */
static void
build_stage(void)
{
	static const struct timespec past[2] = { { 1000000000, 1 },
	    { 1000000000, 1 } };

	new_dirs();
	fixture_good(in(from, "step10.pt"), 10);
	fixture_dcp(in(from, "step20"));
	fixture_text(from, "latest.json", NEW_TRACKER);
	fixture_good(in(to, "step10.pt"), 9);
	ck_assert_int_eq(utimensat(AT_FDCWD, in(to, "step10.pt"), past, 0), 0);
	fixture_text(to, "latest.json", OLD_TRACKER);
}

static char reasons[8000];
static unsigned durable;		/* times that one was called so */

static void
tell(void *arg, const struct stage_event *e)
{
	size_t n = strlen(reasons);

	(void)arg;
	if (e->kind == STAGE_DURABLE) {
		durable++;
		trusted_unsynced |= unsynced[e->name[4] - '0'];
	} else if (e->kind == STAGE_FAILED)
		snprintf(reasons + n, sizeof(reasons) - n, "%s\n", e->why);
}

/* One round, of an earlier stage that goes on or (NULL) a new one.  True when nothing
 * is to be tried again. */
static bool
run_stage(struct stage **s)
{
	struct stage_options o = { .from = from, .to = to, .tell = tell };
	struct stage_pass pass = {0};
	struct err err = {0};
	bool done;

	reasons[0] = '\0';
	done = (*s != NULL || stage_open(&o, s, &err) == 0) &&
	    stage_run(*s, &pass, &err) == 0 && pass.failed == 0;
	snprintf(reasons + strlen(reasons), sizeof(reasons) - strlen(reasons), "%s",
	    err.text);
	return done;
}

static bool
has_text(const char *dir, const char *name, const char *want)
{
	size_t len;

	return strcmp(unit_read(in(dir, name), &len), want) == 0;
}

static bool
is_left_over(const char *name, const char *base)
{
	return strncmp(name, base, strlen(base)) == 0 && name[strlen(base)] == '.';
}

/* All that has a name in TO is whole, and the tracker names what is there. */
static void
assert_target(const char *what)
{
	struct names names = {0};
	bool new_one;
	size_t i;

	new_one = is_whole(to, "step10.pt", 10);
	/* between the two renames, when it cannot be put back any more */
	ck_assert_msg(new_one || is_whole(to, "step10.pt", 9) ||
	    (fault.no_exchange && fault.stays && !has(to, "step10.pt") &&
	    is_whole(to, STAGE_INCOMING "/step10.pt%old", 9)), "%s", what);
	ck_assert_msg(!has(to, "step20") || is_whole(to, "step20", 20), "%s", what);
	ck_assert_msg(has_text(to, "latest.json", OLD_TRACKER) ||
	    (has_text(to, "latest.json", NEW_TRACKER) &&
	    is_whole(to, "step20", 20)), "%s", what);
	ck_assert_int_eq(names_read(&names, to), 0);
	for (i = 0; i < names.n; i++)
		ck_assert_msg(names.list[i][0] == '.' ||
		    strcmp(names.list[i], "step10.pt") == 0 ||
		    strcmp(names.list[i], "step20") == 0 ||
		    strcmp(names.list[i], "latest.json") == 0 ||
		    strcmp(names.list[i], "last") == 0 || (fault.stays &&
		    is_left_over(names.list[i], "latest.json")),
		    "%s: %s", what, names.list[i]);
	names_fini(&names);
	ck_assert_msg(is_whole(from, "step10.pt", 10) || new_one, "%s", what);
	ck_assert_msg(is_whole(from, "step20", 20) || is_whole(to, "step20", 20),
	    "%s", what);
	ck_assert_msg(!trusted_unsynced, "%s: durable before it was synced", what);
}

/* All is in TO, and the room in FROM is given back. */
static bool
is_staged(void)
{
	struct names names = {0};
	bool done = is_whole(to, "step10.pt", 10) && is_whole(to, "step20", 20) &&
	    has_text(to, "latest.json", NEW_TRACKER);
	size_t i;

	ck_assert_int_eq(names_read(&names, from), 0);
	for (i = 0; i < names.n; i++)
		done = done && (strcmp(names.list[i], "latest.json") == 0 ||
		    strcmp(names.list[i], ".holdfast-stage.lock") == 0);
	names_fini(&names);
	return done && unit_count(in(to, STAGE_INCOMING)) == 1;	/* its lock */
}

/* Call k fails; then again without, by the same process or a new one. */
static bool
stage_fails(long k, int which, bool same_process)
{
	struct stage *s = NULL;
	const char *what;
	bool reached, done;

	build_stage();
	durable = 0;
	set_fault(k, which);
	done = run_stage(&s);
	reached = end_fault();
	what = fault_name(k);
	assert_target(what);
	ck_assert_msg(!done || is_staged(), "%s: not all is done", what);
	ck_assert_msg(done || strstr(reasons, strerror(fault.errnum)) != NULL,
	    "%s: told '%s'", what, reasons);
	if (!same_process) {
		stage_close(s);
		s = NULL;
	}
	ck_assert_msg(run_stage(&s), "%s: again: %s", what, reasons);
	assert_target(what);
	ck_assert_msg(is_staged(), "%s: again", what);
	ck_assert_msg(!same_process || durable == 2, "%s: %u times durable", what,
	    durable);
	stage_close(s);
	old_dirs();
	return reached;
}

START_TEST(staging)
{
	long k;

	fault.no_exchange = _i >= N_FAULTS;
	for (k = 0; stage_fails(k, _i % N_FAULTS, k % 2 == 0); k++)
		;
	ck_assert_int_gt(k, 20);
}
END_TEST

/* One round of a node; the options as above. */
static void
run_node(const char *dir, const char *node)
{
	struct stage_options o = { .from = dir, .to = to, .tell = tell, .nodes = 2,
	    .node = node };
	struct stage_pass pass = {0};
	struct err err = {0};
	struct stage *s = NULL;

	if (stage_open(&o, &s, &err) == 0)
		(void)stage_run(s, &pass, &err);
	stage_close(s);
	snprintf(reasons + strlen(reasons), sizeof(reasons) - strlen(reasons), "%s",
	    err.text);
}

static bool
has_both_parts(const char *dir)
{
	return is_whole(dir, "step10/rank0.pt", 10) &&
	    is_whole(dir, "step10/rank1.pt", 10);
}

/* The call fails for the second of two nodes, which publishes. */
static bool
node_fails(long k, int which)
{
	const char *what;
	bool reached;
	char *other;

	new_dirs();
	other = fixture_path(top, "other");
	fixture_mkdirs(in(from, "step10"));
	fixture_mkdirs(in(other, "step10"));
	fixture_good(in(from, "step10/rank0.pt"), 10);
	fixture_good(in(other, "step10/rank1.pt"), 10);
	run_node(from, "a");
	reasons[0] = '\0';
	set_fault(k, which);
	run_node(other, "b");
	reached = end_fault();
	what = fault_name(k);
	ck_assert_msg(!has(to, "step10") || has_both_parts(to), "%s", what);
	ck_assert_msg((is_whole(from, "step10/rank0.pt", 10) &&
	    is_whole(other, "step10/rank1.pt", 10)) || has_both_parts(to), "%s",
	    what);
	ck_assert_msg(has_both_parts(to) || !reached ||
	    strstr(reasons, strerror(fault.errnum)) != NULL, "%s: told '%s'", what,
	    reasons);
	run_node(other, "b");
	run_node(from, "a");
	ck_assert_msg(has_both_parts(to), "%s: again: %s", what, reasons);
	ck_assert_msg(!has(from, "step10") && !has(other, "step10"),
	    "%s: again: not given back: %s", what, reasons);
	ck_assert_msg(!has(to, STAGE_INCOMING "/step10"), "%s: left over", what);
	free(other);
	old_dirs();
	return reached;
}

START_TEST(two_nodes)
{
	static const int which[] = { 0, 1, 4, 9 };
	long k;

	for (k = 0; node_fails(k, which[_i]); k++)
		;
	ck_assert_int_gt(k, 15);
}
END_TEST

/* A tracker that cannot be read: the round failed, or all of it is done. */
static bool
tracker_is_not_read(const char *name, long k)
{
	struct stage *s = NULL;
	const char *what;
	bool reached, done;

	build_stage();
	ck_assert_int_eq(symlink("step20", in(from, "last")), 0);
	set_read_fault(from, name, k, ESTALE);
	done = run_stage(&s);
	reached = end_read_fault();
	what = fault_name(k);
	ck_assert_msg(!done || (has_text(to, "latest.json", NEW_TRACKER) &&
	    has(to, "last")), "%s, %s: passed over", name, what);
	ck_assert_msg(done || strstr(reasons, strerror(ESTALE)) != NULL,
	    "%s, %s: told '%s'", name, what, reasons);
	assert_target(what);
	ck_assert_msg(run_stage(&s), "%s, %s: again: %s", name, what, reasons);
	ck_assert(has_text(to, "latest.json", NEW_TRACKER) && has(to, "last"));
	stage_close(s);
	old_dirs();
	return reached;
}

START_TEST(trackers_are_not_read)
{
	static const char *const names[] = { "latest.json", "last" };
	long k;

	for (k = 0; tracker_is_not_read(names[_i], k); k++)
		ck_assert_int_lt(k, 100);
	ck_assert_int_gt(k, 1);
}
END_TEST

/* The first one that cannot be read is named, the others are taken. */
START_TEST(other_trackers_are_taken)
{
	struct notes notes;
	struct err err = {0};

	build_stage();
	fixture_text(from, "notes.txt", "by hand");
	set_read_fault(from, "latest.json", ALWAYS, EIO);
	ck_assert_int_eq(notes_read(&notes, from, INT64_MAX, &err), 0);
	ck_assert(end_read_fault());
	ck_assert_uint_eq(notes.n, 1);
	ck_assert_str_eq(notes.list[0].name, "notes.txt");
	ck_assert_str_eq(notes.unread, "latest.json");
	ck_assert_ptr_nonnull(strstr(notes.why.text, strerror(EIO)));
	notes_fini(&notes);
	old_dirs();
}
END_TEST

/* Of a file, or of a folder; the one that stands there is of other contents. */
static bool
manifest_fails(const char *name, long k, int which)
{
	bool folder = name_is_checkpoint_file(name) == false, reached;
	struct manifest m = {0};
	struct checkpoint c;
	struct err err = {0};
	char *path;
	const char *what;
	int rc, left;

	new_dirs();
	path = fixture_path(to, name);
	if (folder)
		fixture_dcp(path);
	else
		fixture_good(path, 10);
	fixture_check(&c, path, false);
	left = unit_count(folder ? path : to) + 1;
	set_fault(k, which);
	rc = manifest_write(&c, NULL, NULL, 0, &err);
	reached = end_fault();
	what = fault_name(k);
	ck_assert_msg(rc == 0 || strstr(err.text, strerror(fault.errnum)) != NULL,
	    "%s: %s", what, err.text);
	ck_assert_msg(fixture_state(path, NULL, 0) == VALID, "%s", what);
	ck_assert_msg(fault.stays || unit_count(folder ? path : to) <= left, "%s",
	    what);
	if (manifest_read(&m, path, folder, &err) == MANIFEST_ABSENT)
		ck_assert_msg(rc == -1, "%s: no manifest", what);
	else
		ck_assert_msg(manifest_stands(&m, path, folder), "%s", what);
	manifest_fini(&m);
	ck_assert_msg(manifest_write(&c, NULL, NULL, 0, &err) == 0, "%s: %s", what,
	    err.text);
	ck_assert_int_eq(manifest_read(&m, path, folder, &err), MANIFEST_FOUND);
	ck_assert(manifest_stands(&m, path, folder));
	manifest_fini(&m);
	checkpoint_fini(&c);
	free(path);
	old_dirs();
	return reached;
}

START_TEST(manifests)
{
	long k;

	for (k = 0; manifest_fails("step10.pt", k, _i); k++)
		;
	ck_assert_int_gt(k, 5);
	for (k = 0; manifest_fails("step20", k, _i); k++)
		;
	ck_assert_int_gt(k, 7);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_loop_test(t, staging, 0, 2 * N_FAULTS);
	tcase_add_loop_test(t, two_nodes, 0, 4);
	tcase_add_loop_test(t, trackers_are_not_read, 0, 2);
	tcase_add_test(t, other_trackers_are_taken);
	tcase_add_loop_test(t, manifests, 0, N_FAULTS);
}

int
main(void)
{
	return unit_run("checkpoint_writing", add_tests);
}
