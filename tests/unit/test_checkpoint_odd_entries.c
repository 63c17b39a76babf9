/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_odd_entries.c - what no trainer writes, in a save directory and inside
 * a checkpoint: nothing hangs, nothing goes, and the good one beside it is found, chosen
 * and copied.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "checkpoint_fixture.h"
#include "common/file.h"
#include "common/verb.h"
#include "checkpoint/action.h"
#include "checkpoint/manifest.h"
#include "checkpoint/names.h"
#include "checkpoint/stage.h"
#include "unit.h"

#define VALID	HOLDFAST_CHECKPOINT_VALID
#define DEPTH	60
#define MANY	2000

static char *top, *from, *to;

static void
set_up(void)
{
	top = fixture_dir();
	from = fixture_path(top, "fast");
	to = fixture_path(top, "durable");
	ck_assert_int_eq(mkdir(from, 0700), 0);
}

static void
tear_down(void)
{
	free(from);
	free(to);
	fixture_remove(top);
}

/* The names of what is made lie in dir, and look like a checkpoint of step 20. */
static void
make_fifo(const char *dir)
{
	ck_assert_int_eq(mkfifo(unit_path(dir, "step20.pt"), 0600), 0);
	ck_assert_int_eq(mkfifo(unit_path(dir, "latest"), 0600), 0);
	ck_assert_int_eq(mkfifo(unit_path(dir, ".metadata"), 0600), 0);
}

/* Only root may make one; a link to one is as bad. */
static void
make_device(const char *dir)
{
	if (mknod(unit_path(dir, "step20.pt"), S_IFCHR | 0600, 0x105) == -1)
		ck_assert_int_eq(symlink("/dev/zero", unit_path(dir, "step20.pt")),
		    0);
}

static void
make_link_to_device(const char *dir)
{
	ck_assert_int_eq(symlink("/dev/zero", unit_path(dir, "step20.pt")), 0);
	ck_assert_int_eq(symlink("/dev/zero", unit_path(dir, "latest")), 0);
	ck_assert_int_eq(symlink("/dev/tty", unit_path(dir, "step21.pt")), 0);
}

static void
make_socket(const char *dir)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = "step20.pt" };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* a path of any length */
	ck_assert_int_eq(chdir(dir), 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(chdir("/"), 0);
	close(fd);
}

static void
make_self_link(const char *dir)
{
	ck_assert_int_eq(symlink("step20.pt", unit_path(dir, "step20.pt")), 0);
	ck_assert_int_eq(symlink(".", unit_path(dir, "step21")), 0);
	ck_assert_int_eq(symlink("latest", unit_path(dir, "latest")), 0);
}

static void
make_dangling_link(const char *dir)
{
	ck_assert_int_eq(symlink("absent.pt", unit_path(dir, "step20.pt")), 0);
	ck_assert_int_eq(symlink("/absent/20", unit_path(dir, "step21")), 0);
	ck_assert_int_eq(symlink("absent", unit_path(dir, "latest")), 0);
}

static void
make_link_loop(const char *dir)
{
	ck_assert_int_eq(symlink("step21.pt", unit_path(dir, "step20.pt")), 0);
	ck_assert_int_eq(symlink("step20.pt", unit_path(dir, "step21.pt")), 0);
	ck_assert_int_eq(symlink("step23", unit_path(dir, "step22")), 0);
	ck_assert_int_eq(symlink("step22", unit_path(dir, "step23")), 0);
}

static void
make_newline(const char *dir)
{
	fixture_good(unit_path(dir, "step20\n.pt"), 20);
	fixture_good(unit_path(dir, "\nstep21.pt"), 21);
	fixture_write(unit_path(dir, "latest\n"), "step20\n.pt", 10);
}

static void
make_escape(const char *dir)
{
	fixture_good(unit_path(dir, "step20\033[31m\033]0;x\a.pt"), 20);
}

static void
make_not_utf8(const char *dir)
{
	fixture_good(unit_path(dir, "step20\xff\xc0\xaf.pt"), 20);
}

/* Nothing can be added to this name. */
static void
make_longest(const char *dir)
{
	char name[300];

	snprintf(name, sizeof(name), "step20_%0245d.pt", 7);
	ck_assert_uint_eq(strlen(name), 255);
	fixture_good(unit_path(dir, name), 20);
	ck_assert_int_eq(mkdir(unit_path(dir, "step21"), 0700), 0);
	snprintf(name, sizeof(name), "step21/%0252d.pt", 7);
	fixture_good(unit_path(dir, name), 21);
}

static void
make_deep(const char *dir)
{
	char path[400];
	int n, i;

	n = snprintf(path, sizeof(path), "%s/step20", dir);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	for (i = 0; i < DEPTH; i++) {
		n += snprintf(path + n, sizeof(path) - (size_t)n, "/d");
		ck_assert_int_eq(mkdir(path, 0700), 0);
	}
	snprintf(path + n, sizeof(path) - (size_t)n, "/model.pt");
	fixture_good(path, 20);
}

static void
make_many(const char *dir)
{
	char name[32];
	int i;

	for (i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), i % 4 == 0 ? "step%d.pt" : i % 4 == 1 ?
		    "step%d" : i % 4 == 2 ? "e%d" : "%d.tmp", 1000 + i);
		fixture_write(unit_path(dir, name), "x", i % 3 == 0);
	}
}

static const struct odd {
	const char	*name;
	void		(*make)(const char *dir);
	bool		 sound;		/* odd in its name alone */
} odds[] = {
	{ "fifo", make_fifo, false },
	{ "device", make_device, false },
	{ "link to a device", make_link_to_device, false },
	{ "socket", make_socket, false },
	{ "self-link", make_self_link, false },
	{ "dangling link", make_dangling_link, false },
	{ "link loop", make_link_loop, false },
	{ "newline", make_newline, true },
	{ "escape sequence", make_escape, true },
	{ "not UTF-8", make_not_utf8, true },
	{ "longest name", make_longest, true },
	{ "deep", make_deep, true },
	{ "many", make_many, false }
};
#define N_ODDS	(int)(sizeof(odds) / sizeof(odds[0]))

/* All below FROM with types and sizes, as a number that does not depend on the order. */
static uint64_t below;

static int
add_name(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	uint64_t h = 1469598103934665603u;	/* FNV-1a */
	const char *p;

	(void)flag;
	if (strstr(path, ".holdfast-") != NULL)		/* the lock */
		return 0;
	for (p = path; f->level > 0 && *p != '\0'; p++)
		h = (h ^ (unsigned char)*p) * 1099511628211u;
	below += h * (st->st_mode & S_IFMT) + (S_ISREG(st->st_mode) ?
	    (uint64_t)st->st_size : 0);
	return 0;
}

static uint64_t
picture_of(const char *dir)
{
	below = 0;
	ck_assert_int_eq(nftw(dir, add_name, 16, FTW_PHYS), 0);
	return below;
}

static const struct checkpoint *
named(const struct checkpoints *cs, const char *name)
{
	size_t i;

	for (i = 0; i < cs->n; i++)
		if (strcmp(file_inside(from, cs->list[i].path), name) == 0)
			return &cs->list[i];
	return NULL;
}

static void
find_all(const struct odd *o, const char *good)
{
	struct latest_options lo = { .before_step = REPORT_UNKNOWN, .threads = 1 };
	struct checkpoints cs = {0};
	struct err err = {0};
	long chosen;

	ck_assert_msg(checkpoints_list(&cs, from, &err) == 0, "%s: %s", o->name,
	    err.text);
	ck_assert_msg(named(&cs, good) != NULL, "%s", o->name);
	checkpoints_fini(&cs);
	ck_assert_msg(checkpoints_find(&cs, from, 1, &err) == 0, "%s: %s", o->name,
	    err.text);
	ck_assert_msg(named(&cs, good) != NULL &&
	    named(&cs, good)->report.state == VALID, "%s", o->name);
	ck_assert_msg(checkpoints_latest(&cs, &lo, &chosen, &err) == 0, "%s: %s",
	    o->name, err.text);
	ck_assert_msg(chosen >= 0 && cs.list[chosen].report.state == VALID &&
	    (o->sound || &cs.list[chosen] == named(&cs, good)), "%s: %s", o->name,
	    chosen < 0 ? "none" : cs.list[chosen].path);
	checkpoints_fini(&cs);
}

/* The verbs: whatever names hold, a terminal is not told. */
static void
show_all(const struct odd *odd)
{
	char *out = fixture_path(top, "out");
	struct buf text = {0};
	struct verb v = { .name = "checkpoint" };
	struct action_values o = { .quarantine = "never", .keep_last = 2,
	    .keep_newer_ms = -1, .before_step = -1, .dry_run = true,
	    .jobs = 1 };
	int i;

	ck_assert_ptr_nonnull(freopen(out, "w", stdout));
	for (i = 0; i < 2; i++) {
		o.json = i == 1;
		(void)action_list(&v, &o, 1, &from);
		(void)action_latest(&v, &o, 1, &from);
		(void)action_prune(&v, &o, 1, &from);
		(void)action_verify(&v, &o, 1, &from);
	}
	fflush(stdout);
	ck_assert_int_eq(file_read(out, 100 << 20, &text, NULL), 0);
	ck_assert_msg(text.len > 0 && memchr(text.data, '\033', text.len) == NULL &&
	    memchr(text.data, '\a', text.len) == NULL &&
	    memmem(text.data, text.len, "\n.pt", 4) == NULL, "%s: %s", odd->name,
	    text.data);
	buf_fini(&text);
	free(out);
}

static char told[200000];

static void
tell(void *arg, const struct stage_event *e)
{
	static const char *const words[] = { "durable", "refused", "dropped",
	    "failed", "lost" };
	size_t n = strlen(told);

	(void)arg;
	ck_assert(e->kind == STAGE_DURABLE || (e->why != NULL && *e->why != '\0'));
	snprintf(told + n, sizeof(told) - n, "%s %s\n", words[e->kind], e->name);
}

static void
stage_all(const struct odd *o)
{
	struct stage_options so = { .from = from, .to = to, .keep = MANY,
	    .tell = tell };
	struct stage_pass pass = {0};
	struct err err = {0};
	struct stage *s;

	told[0] = '\0';
	ck_assert_msg(stage_open(&so, &s, &err) == 0, "%s", err.text);
	ck_assert_msg(stage_run(s, &pass, &err) == 0, "%s: %s", o->name, err.text);
	stage_close(s);
	ck_assert_ptr_null(strstr(told, "dropped"));
}

static int
check_copy(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)flag;
	(void)f;
	ck_assert_msg(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) ||
	    S_ISLNK(st->st_mode), "%s was copied", path);
	return 0;
}

/* Whatever has a checkpoint's name in TO is one. */
static void
check_target(const struct odd *o, const char *good)
{
	struct checkpoints cs = {0};
	char text[300];
	size_t i;

	ck_assert_msg(fixture_state(unit_path(to, good), text, sizeof(text)) ==
	    VALID, "%s: %s", o->name, text);
	ck_assert_int_eq(nftw(to, check_copy, 16, FTW_PHYS), 0);
	ck_assert_int_eq(checkpoints_list(&cs, to, NULL), 0);
	for (i = 0; i < cs.n; i++)
		ck_assert_msg(fixture_state(cs.list[i].path, text, sizeof(text)) ==
		    VALID, "%s: %s: %s", o->name, cs.list[i].path, text);
	ck_assert_msg(cs.n == 1 || o->sound, "%s: %zu", o->name, cs.n);
	checkpoints_fini(&cs);
}

START_TEST(beside_a_good_one)
{
	const struct odd *o = &odds[_i];
	uint64_t before;

	fixture_good(unit_path(from, "step10.pt"), 10);
	o->make(from);
	before = picture_of(from);
	find_all(o, "step10.pt");
	show_all(o);
	stage_all(o);
	ck_assert_msg(picture_of(from) == before, "%s: FROM changed", o->name);
	check_target(o, "step10.pt");
}
END_TEST

/* The folder may be refused; it is never copied in part. */
START_TEST(inside_a_folder)
{
	const struct odd *o = &odds[_i];
	char *folder = fixture_path(from, "step30");
	struct names names = {0};
	struct err err = {0};
	uint64_t before;

	fixture_good(unit_path(from, "step10.pt"), 10);
	ck_assert_int_eq(mkdir(folder, 0700), 0);
	fixture_good(unit_path(folder, "model.pt"), 30);
	o->make(folder);
	before = picture_of(from);
	ck_assert_msg(manifest_list(folder, true, &names, &err) == 0 ?
	    names_has(&names, "model.pt") : err.text[0] != '\0', "%s: %s",
	    o->name, err.text);
	names_fini(&names);
	find_all(&(struct odd){ .name = o->name, .sound = true }, "step10.pt");
	show_all(o);
	stage_all(o);
	ck_assert_msg(picture_of(from) == before, "%s: FROM changed", o->name);
	ck_assert_ptr_nonnull(strstr(told, "durable step10.pt\n"));
	ck_assert_msg(strstr(told, " step30\n") != NULL ||
	    access(unit_path(to, "step30"), F_OK) != 0, "%s: %s", o->name, told);
	ck_assert_int_eq(nftw(to, check_copy, 16, FTW_PHYS), 0);
	free(folder);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, beside_a_good_one, 0, N_ODDS);
	tcase_add_loop_test(t, inside_a_folder, 0, N_ODDS);
}

int
main(void)
{
	return unit_run("checkpoint_odd_entries", add_tests);
}
