/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_stage.c - staging: what is copied, in which order, what is not, and
 * what a copy that was interrupted leaves.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint_fixture.h"
#include "common/file.h"
#include "checkpoint/stage.h"
#include "checkpoint/stage_copy.h"
#include "checkpoint/stage_notes.h"
#include "checkpoint/manifest.h"
#include "checkpoint/stage_offer.h"
#include "checkpoint/stage_publish.h"
#include "unit.h"

static const char *from, *to;
static char told[2000];		/* "durable NAME\n" and so on */

static void
tell(void *arg, const struct stage_event *e)
{
	static const char *const words[] = { "durable", "refused", "dropped",
	    "failed", "lost" };
	size_t n = strlen(told);

	(void)arg;
	snprintf(told + n, sizeof(told) - n, "%s %s\n", words[e->kind], e->name);
}

static struct stage_options
options(void)
{
	return (struct stage_options){ .from = from, .to = to, .keep = 1,
	    .tell = tell };
}

static void
set_up(void)
{
	const char *top = unit_dir();

	from = unit_path(top, "fast");
	to = unit_path(top, "durable");
	ck_assert_int_eq(mkdir(from, 0700), 0);
	told[0] = '\0';
}

/* A path of one of the two, to be used at once. */
static const char *
in(const char *dir, const char *name)
{
	static char paths[4][4200];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

static void
put(const char *dir, const char *name, const char *text)
{
	unit_write(in(dir, name), text, strlen(text));
}

static bool
has(const char *dir, const char *name)
{
	struct stat st;

	return lstat(in(dir, name), &st) == 0;
}

static const char *
text_in(const char *dir, const char *name)
{
	size_t len;

	return has(dir, name) ? unit_read(in(dir, name), &len) : "(absent)";
}

/* One round; what was told is in `told`. */
static struct stage_pass
run(const struct stage_options *o)
{
	struct stage_pass pass = {0};
	struct err err = {0};
	struct stage *s;

	told[0] = '\0';
	ck_assert_msg(stage_open(o, &s, &err) == 0, "%s", err.text);
	ck_assert_msg(stage_run(s, &pass, &err) == 0, "%s", err.text);
	stage_close(s);
	return pass;
}

static enum holdfast_checkpoint_state
state(const char *name)
{
	return fixture_state(in(to, name), NULL, 0);
}

START_TEST(complete_ones_are_copied)
{
	struct stage_options o = options();
	struct stage_pass pass;

	fixture_good(in(from, "step20.pt"), 20);
	fixture_good(in(from, "step10.pt"), 10);
	fixture_good(in(from, "step30.pt"), 30);
	ck_assert_int_eq(truncate(in(from, "step30.pt"), 200), 0);
	pass = run(&o);
	ck_assert_str_eq(told, "durable step10.pt\ndurable step20.pt\n"
	    "dropped step10.pt\n");
	ck_assert_uint_eq(pass.waiting, 1);
	ck_assert_int_eq(state("step10.pt"), HOLDFAST_CHECKPOINT_VALID);
	ck_assert_int_eq(state("step20.pt"), HOLDFAST_CHECKPOINT_VALID);
	ck_assert(!has(to, "step30.pt") && has(from, "step30.pt"));
	ck_assert(has(from, "step20.pt") && !has(from, "step10.pt"));
	ck_assert(has(to, ".step20.pt.holdfast-manifest.json"));
	/* The same again is not copied again, also by another process. */
	run(&o);
	ck_assert_str_eq(told, "");
}
END_TEST

/* Saved again under the same name, with other contents. */
START_TEST(new_contents_replace_old)
{
	struct stage_options o = options();
	struct stat before, after;

	fixture_good(in(from, "last.pt"), 10);
	run(&o);
	ck_assert_int_eq(stat(in(to, "last.pt"), &before), 0);
	ck_assert_int_eq(unlink(in(from, "last.pt")), 0);
	fixture_good(in(from, "last.pt"), 11);
	run(&o);
	ck_assert_str_eq(told, "durable last.pt\n");
	ck_assert_int_eq(stat(in(to, "last.pt"), &after), 0);
	ck_assert(before.st_ino != after.st_ino);
	ck_assert_int_eq(unit_count(in(to, STAGE_INCOMING)), 1);	/* lock */
}
END_TEST

START_TEST(broken_ones_stay)
{
	static const float bad[] = { 1, 0.0f / 0.0f, 2, 3 };
	const struct fixture_tensor t = { "w", "FloatStorage", bad, sizeof(bad), 4 };
	struct stage_options o = options();
	struct fixture_zip how = {0};
	struct buf b = {0};

	fixture_torch(&b, &t, 1, 10, &how, NULL);
	fixture_write(in(from, "step10.pt"), b.data, b.len);
	buf_fini(&b);
	ck_assert_int_eq(mkdir(in(from, "other"), 0700), 0);
	put(from, "other/x", "no checkpoint");
	put(from, "latest.json", "{\"file\":\"step10.pt\",\"step\":10}");
	run(&o);
	ck_assert_str_eq(told, "refused step10.pt\n");
	ck_assert(has(from, "step10.pt") && !has(to, "step10.pt"));
	ck_assert(!has(to, "latest.json"));
}
END_TEST

/* What names a checkpoint that is not durable stays as it was. */
START_TEST(trackers_come_last)
{
	struct stage_options o = options();

	fixture_good(in(from, "step10.pt"), 10);
	put(from, "latest.json", "{\"file\":\"step10.pt\",\"step\":10}");
	put(from, "notes.txt", "by hand");
	put(from, "empty.txt", "");
	ck_assert_int_eq(symlink("step10.pt", in(from, "last.pt")), 0);
	run(&o);
	ck_assert_str_eq(text_in(to, "latest.json"),
	    "{\"file\":\"step10.pt\",\"step\":10}");
	ck_assert_str_eq(text_in(to, "notes.txt"), "by hand");
	ck_assert(!has(to, "empty.txt") && has(to, "last.pt"));
	fixture_good(in(from, "step20.pt"), 20);
	ck_assert_int_eq(truncate(in(from, "step20.pt"), 100), 0);
	put(from, "latest.json", "{\"file\":\"step20.pt\",\"step\":20}");
	put(from, "notes.txt", "again");
	run(&o);
	ck_assert_str_eq(text_in(to, "latest.json"),
	    "{\"file\":\"step10.pt\",\"step\":10}");
	ck_assert_str_eq(text_in(to, "notes.txt"), "again");
}
END_TEST

/* A restart writes manifests in FROM; they neither make it another checkpoint nor stay
 * behind. */
START_TEST(manifests_of_from)
{
	struct stage_options o = options();
	static const char *const names[] = { "step10.pt", "step20", "step30.pt" };
	struct checkpoint c;
	size_t i;

	fixture_good(in(from, "step10.pt"), 10);
	ck_assert_int_eq(mkdir(in(from, "step20"), 0755), 0);
	fixture_good(in(from, "step20/model.pt"), 20);
	fixture_good(in(from, "step30.pt"), 30);
	o.keep = 3;
	run(&o);
	for (i = 0; i < 3; i++) {
		fixture_check(&c, in(from, names[i]), false);
		ck_assert_int_eq(manifest_write(&c, NULL, NULL, 0, NULL), 0);
		checkpoint_fini(&c);
	}
	o.keep = 1;
	run(&o);
	ck_assert_str_eq(told, "dropped step20\ndropped step10.pt\n");
	ck_assert(!has(from, ".step10.pt.holdfast-manifest.json") &&
	    has(from, ".step30.pt.holdfast-manifest.json"));
}
END_TEST

/* Whatever a link names, it goes only when that is the copy in TO. */
START_TEST(links_are_no_copies)
{
	struct stage_options o = options();
	int i;

	o.keep = 0;
	fixture_good(in(from, "step10.pt"), 10);
	ck_assert_int_eq(symlink("step20.pt", in(from, "step20.pt")), 0);
	ck_assert_int_eq(symlink("absent.pt", in(from, "step30.pt")), 0);
	ck_assert_int_eq(mkdir(to, 0755), 0);
	fixture_good(in(to, "elsewhere.pt"), 40);
	ck_assert_int_eq(symlink(in(to, "elsewhere.pt"),
	    in(from, "step40.pt")), 0);
	for (i = 0; i < 3; i++)
		run(&o);
	ck_assert(has(to, "step10.pt") && !has(to, "step20.pt"));
	ck_assert(has(from, "step20.pt") && has(from, "step30.pt") &&
	    has(from, "step40.pt"));
}
END_TEST

START_TEST(mentions)
{
	static const struct {
		const char	*text;
		const char	*name;
		int64_t		 step;
		bool		 want;
	} rows[] = {
		{ "20", "iter_0000020", 20, true },
		{ "200", "iter_0000020", 20, false },
		{ "120", "iter_0000020", 20, false },
		{ "0000020", "iter_0000020", 20, false },
		{ "iter_0000020\n", "iter_0000020", 20, true },
		{ "global_step20", "a/global_step20", -1, true },
		{ "global_step201", "a/global_step20", -1, false },
		{ "release", "iter_0000020", 20, false }
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct note n = {0};

		ck_assert_int_eq(buf_puts(&n.text, rows[i].text), 0);
		ck_assert_msg(notes_mention(&n, rows[i].name, rows[i].step) ==
		    rows[i].want, "%s", rows[i].text);
		buf_fini(&n.text);
	}
}
END_TEST

/* Half a copy of an earlier process, and an old one that was set aside. */
START_TEST(interrupted_copies_are_cleared)
{
	struct stage_options o = options();

	ck_assert_int_eq(mkdir(to, 0700), 0);
	ck_assert_int_eq(mkdir(in(to, STAGE_INCOMING), 0700), 0);
	put(to, STAGE_INCOMING "/step10.pt", "half");
	put(to, STAGE_INCOMING "/a%step20%old", "the old one");
	ck_assert_int_eq(mkdir(in(to, "a"), 0700), 0);
	put(to, STAGE_INCOMING "/step30.pt%old", "older");
	put(to, "step30.pt", "newer");
	run(&o);
	ck_assert_str_eq(text_in(to, "a/step20"), "the old one");
	ck_assert_str_eq(text_in(to, "step30.pt"), "newer");
	ck_assert_int_eq(unit_count(in(to, STAGE_INCOMING)), 1);
}
END_TEST

START_TEST(second_process_is_refused)
{
	struct stage_options o = options();
	struct stage *a, *b = NULL;
	struct err err = {0};

	ck_assert_int_eq(stage_open(&o, &a, &err), 0);
	ck_assert_int_eq(stage_open(&o, &b, &err), -1);
	ck_assert_int_eq(err.code, ERR_BUSY);
	stage_close(a);
	o.to = from;
	ck_assert_int_eq(stage_open(&o, &b, &err), -1);
	ck_assert_int_eq(err.code, ERR_USAGE);
}
END_TEST

/* Told to end: nothing half done is left in sight. */
START_TEST(cancelled)
{
	struct stage_options o = options();
	atomic_bool cancel = true;
	struct stage_pass pass = {0};
	struct err err = {0};
	struct stage *s;

	fixture_good(in(from, "step10.pt"), 10);
	o.cancel = &cancel;
	ck_assert_int_eq(stage_open(&o, &s, &err), 0);
	ck_assert_int_eq(stage_run(s, &pass, &err), -1);
	ck_assert_int_eq(err.code, ERR_BUSY);
	stage_close(s);
	ck_assert(!has(to, "step10.pt") && has(from, "step10.pt"));
	ck_assert_int_eq(unit_count(in(to, STAGE_INCOMING)), 1);
}
END_TEST

/* A disk that is full: what was there stays, and nothing half done. */
START_TEST(no_room)
{
	struct stage_options o = options();
	struct rlimit rl = { 100, 100 };
	struct stage_pass pass;

	fixture_good(in(from, "step10.pt"), 10);
	run(&o);
	ck_assert_str_eq(told, "durable step10.pt\n");
	fixture_good(in(from, "step20.pt"), 20);
	put(from, "latest.json", "{\"file\":\"step20.pt\",\"step\":20}");
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &rl), 0);
	pass = run(&o);
	ck_assert_str_eq(told, "failed step20.pt\n");
	ck_assert_uint_eq(pass.failed, 1);
	ck_assert(has(from, "step20.pt") && !has(to, "step20.pt"));
	ck_assert(!has(to, "latest.json"));
	ck_assert_int_eq(state("step10.pt"), HOLDFAST_CHECKPOINT_VALID);
	ck_assert_int_eq(unit_count(in(to, STAGE_INCOMING)), 1);
}
END_TEST

/* A round of one of two nodes. */
static struct stage_pass
run_node(const char *dir, const char *node)
{
	struct stage_options o = options();

	o.from = dir;
	o.nodes = 2;
	o.node = node;
	return run(&o);
}

/* Each has a part; who comes last publishes, and the other one learns it. */
START_TEST(parts_of_two_nodes)
{
	const char *other = unit_dir();
	struct stage_pass pass;

	ck_assert_int_eq(mkdir(in(from, "step10"), 0700), 0);
	ck_assert_int_eq(mkdir(in(other, "step10"), 0700), 0);
	fixture_good(in(from, "step10/rank0.pt"), 10);
	fixture_good(in(other, "step10/rank1.pt"), 10);
	put(from, "latest.json", "{\"file\":\"step10\",\"step\":10}");
	pass = run_node(from, "a");
	ck_assert_str_eq(told, "");
	ck_assert_uint_eq(pass.waiting, 1);
	ck_assert(!has(to, "step10") && !has(to, "latest.json"));
	pass = run_node(other, "b");
	ck_assert_str_eq(told, "durable step10\n");
	ck_assert_uint_eq(pass.waiting, 0);
	ck_assert_int_eq(state("step10/rank0.pt"), HOLDFAST_CHECKPOINT_VALID);
	ck_assert_int_eq(state("step10/rank1.pt"), HOLDFAST_CHECKPOINT_VALID);
	ck_assert_int_eq(unit_count(in(to, "step10")), 2);
	run_node(from, "a");
	ck_assert_str_eq(told, "");
	ck_assert(has(to, "latest.json"));
	/* Nothing but locks is left. */
	ck_assert(!has(to, STAGE_INCOMING "/step10"));
}
END_TEST

/* A part that is torn, or of a node that was interrupted, holds the others up. */
START_TEST(parts_that_are_missing)
{
	const char *other = unit_dir();

	ck_assert_int_eq(mkdir(in(from, "step10"), 0700), 0);
	ck_assert_int_eq(mkdir(in(other, "step10"), 0700), 0);
	fixture_good(in(from, "step10/rank0.pt"), 10);
	fixture_good(in(other, "step10/rank1.pt"), 10);
	ck_assert_int_eq(truncate(in(other, "step10/rank1.pt"), 300), 0);
	run_node(from, "a");
	run_node(other, "b");
	ck_assert_str_eq(told, "");
	ck_assert(!has(to, "step10"));
	/* What b had copied when it was killed does not count, and goes. */
	ck_assert_int_eq(mkdir(in(to, STAGE_INCOMING "/step10/.part-b"), 0700), 0);
	put(to, STAGE_INCOMING "/step10/.part-b/rank1.pt", "half");
	ck_assert_int_eq(unlink(in(other, "step10/rank1.pt")), 0);
	fixture_good(in(other, "step10/rank1.pt"), 10);
	run_node(from, "a");
	ck_assert(!has(to, "step10"));
	run_node(other, "b");
	ck_assert_str_eq(told, "durable step10\n");
	ck_assert_int_eq(state("step10/rank1.pt"), HOLDFAST_CHECKPOINT_VALID);
	/* A file is whole wherever it lies. */
	fixture_good(in(other, "step20.pt"), 20);
	run_node(other, "b");
	ck_assert_str_eq(told, "durable step20.pt\ndropped step10\n");
}
END_TEST

/* What cannot be copied fails, and nothing of it shows. */
START_TEST(odd_contents)
{
	static const char *const links[] = { "/etc/passwd", "../x", "a/../../x" };
	struct stage_copy c;
	struct err err = {0};
	const char *work;
	size_t i;

	ck_assert_int_eq(mkdir(to, 0700), 0);
	work = in(to, "work");
	ck_assert_int_eq(stage_copy_init(&c, 0, NULL, &err), 0);
	ck_assert_int_eq(mkdir(in(from, "c"), 0700), 0);
	ck_assert_int_eq(mkfifo(in(from, "c/fifo"), 0600), 0);
	ck_assert_int_eq(stage_copy_run(&c, in(from, "c"), work, &err), -1);
	ck_assert_int_eq(unlink(in(from, "c/fifo")), 0);
	for (i = 0; i < 3; i++) {
		work = in(to, "work");
		ck_assert_int_eq(stage_remove(work, &err), 0);
		ck_assert_int_eq(symlink(links[i], in(from, "c/link")), 0);
		ck_assert_int_eq(stage_copy_run(&c, in(from, "c"), work, &err),
		    -1);
		ck_assert_ptr_nonnull(strstr(err.text, "leads outside"));
		ck_assert_int_eq(unlink(in(from, "c/link")), 0);
	}
	work = in(to, "work");
	ck_assert_int_eq(stage_remove(work, &err), 0);
	put(from, "c/a\nb", "text");
	ck_assert_int_eq(symlink("a\nb", in(from, "c/link")), 0);
	ck_assert_int_eq(stage_copy_run(&c, in(from, "c"), work, &err), 0);
	ck_assert_uint_eq(c.n, 1);
	ck_assert_str_eq(c.files[0].name, "a\nb");
	ck_assert(publish_is_same(in(from, "c"), in(to, "work")));
	put(to, "work/a\nb", "other");
	ck_assert(!publish_is_same(in(from, "c"), in(to, "work")));
	stage_copy_fini(&c);
}
END_TEST

/* All sizes around blocks and sectors, and the digest of what was copied. */
START_TEST(bytes_arrive)
{
	static const size_t sizes[] = { 0, 1, 511, 4096, 4097, SINK_BLOCK - 1,
	    SINK_BLOCK, SINK_BLOCK + 1, 3 * SINK_BLOCK + 12345 };
	char *data = malloc(4 * SINK_BLOCK);
	struct stage_copy c;
	struct err err = {0};
	struct buf b = {0};
	size_t i, k;

	for (k = 0; k < 4 * SINK_BLOCK; k++)
		data[k] = (char)unit_random(256);
	ck_assert_int_eq(mkdir(to, 0700), 0);
	ck_assert_int_eq(stage_copy_init(&c, 0, NULL, &err), 0);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		fixture_write(in(from, "x"), data, sizes[i]);
		ck_assert_msg(stage_copy_run(&c, in(from, "x"), in(to, "x"), &err)
		    == 0, "%s", err.text);
		ck_assert_uint_eq(c.files[0].size, sizes[i]);
		ck_assert(XXH128_isEqual(c.files[0].digest,
		    XXH3_128bits(data, sizes[i])));
		buf_clear(&b);
		ck_assert_int_eq(file_read(in(to, "x"), 1 << 30, &b, &err), 0);
		ck_assert_uint_eq(b.len, sizes[i]);
		ck_assert(b.len == 0 || memcmp(b.data, data, b.len) == 0);
		ck_assert_int_eq(unlink(in(to, "x")), 0);
	}
	buf_fini(&b);
	free(data);
	stage_copy_fini(&c);
}
END_TEST

START_TEST(unfinished_ones_are_dropped)
{
	struct stage_options o = options();
	struct err err = {0};
	struct stage *s;

	fixture_good(in(from, "step10.pt"), 10);
	fixture_good(in(from, "step20.pt"), 20);
	ck_assert_int_eq(truncate(in(from, "step20.pt"), 200), 0);
	put(from, "step30.pt.tmp", "x");
	ck_assert_int_eq(stage_open(&o, &s, &err), 0);
	/* Younger than the end of the attempt: somebody is writing it. */
	ck_assert_int_eq(stage_drop_unfinished(s, 1, &err), 0);
	ck_assert(has(from, "step20.pt") && has(from, "step30.pt.tmp"));
	ck_assert_int_eq(stage_drop_unfinished(s, INT64_MAX, &err), 0);
	ck_assert(has(from, "step10.pt"));
	ck_assert(!has(from, "step20.pt") && !has(from, "step30.pt.tmp"));
	stage_close(s);
}
END_TEST

/* At the end the room is given back, unless something would be lost. */
START_TEST(finish)
{
	struct stage_options o = options();
	struct stage_pass pass = {0};
	struct err err = {0};
	struct stage *s;

	fixture_good(in(from, "step10.pt"), 10);
	fixture_good(in(from, "step20.pt"), 20);
	put(from, "latest.json", "{\"file\":\"step20.pt\",\"step\":20}");
	ck_assert_int_eq(stage_open(&o, &s, &err), 0);
	ck_assert_int_eq(stage_finish(s, &err), 0);
	ck_assert(has(from, "step10.pt") && has(from, "step20.pt"));
	ck_assert_int_eq(stage_run(s, &pass, &err), 0);
	ck_assert_int_eq(stage_finish(s, &err), 0);
	stage_close(s);
	ck_assert_int_eq(access(from, F_OK), -1);
	ck_assert_int_eq(state("step20.pt"), HOLDFAST_CHECKPOINT_VALID);
}
END_TEST

/* A trainer that looks by itself finds the durable one. */
START_TEST(offer)
{
	struct stage_options o = options();
	struct err err = {0};

	ck_assert_int_eq(mkdir(to, 0700), 0);
	fixture_good(in(to, "step10.pt"), 10);
	put(to, "latest.json", "{\"file\":\"step10.pt\",\"step\":10}");
	ck_assert_int_eq(stage_offer(from, to, in(to, "step10.pt"), &err), 0);
	ck_assert_int_eq(fixture_state(in(from, "step10.pt"), NULL, 0),
	    HOLDFAST_CHECKPOINT_VALID);
	ck_assert_str_eq(text_in(from, "latest.json"),
	    "{\"file\":\"step10.pt\",\"step\":10}");
	/* It is no copy, so there is nothing to bring back. */
	run(&o);
	ck_assert_str_eq(told, "");
	ck_assert_int_eq(stage_offer(from, to, "/elsewhere/x.pt", &err), 0);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, NULL);
	tcase_add_test(t, complete_ones_are_copied);
	tcase_add_test(t, new_contents_replace_old);
	tcase_add_test(t, broken_ones_stay);
	tcase_add_test(t, trackers_come_last);
	tcase_add_test(t, manifests_of_from);
	tcase_add_test(t, links_are_no_copies);
	tcase_add_test(t, mentions);
	tcase_add_test(t, interrupted_copies_are_cleared);
	tcase_add_test(t, second_process_is_refused);
	tcase_add_test(t, cancelled);
	tcase_add_test(t, no_room);
	tcase_add_test(t, parts_of_two_nodes);
	tcase_add_test(t, parts_that_are_missing);
	tcase_add_test(t, odd_contents);
	tcase_add_test(t, bytes_arrive);
	tcase_add_test(t, unfinished_ones_are_dropped);
	tcase_add_test(t, finish);
	tcase_add_test(t, offer);
}

int
main(void)
{
	return unit_run("checkpoint_stage", add_tests);
}
