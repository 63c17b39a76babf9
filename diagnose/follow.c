/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow.c - the loop around logs that are still written.
 *
 * Reads files when inotify says so, and looks at them once a second besides:
 * network file systems tell nothing of what other nodes write.  Emits findings as
 * they come; which of them is the cause is only known at the end.
 */
#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/loop.h"
#include "diagnose/follow.h"
#include "diagnose/follow_file.h"

#define POLL_MS		1000	/* without inotify, findings come this late */
#define GATHER_MS	20	/* writes that come together are read together */
#define QUIET_MS	5000	/* after the job was ended */
#define ROUND_BYTES	((size_t)4 << 20)	/* of a file before others */
#define SHOWN_MAX	3	/* of one rule and file in REPEAT_NS */
#define REPEAT_NS	(10 * NS_PER_S)
#define GOT_OVER	2	/* steps behind a line that make it noise */

#define FILE_EVENTS	(IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF)
#define DIR_EVENTS	(IN_CREATE | IN_MOVED_TO)

/* How often a rule was told in one file. */
struct repeat {
	int64_t		 since_ns;
	uint64_t	 hidden;
	uint32_t	 shown;
};

struct followed {
	struct follow	*follow;
	struct follow_file file;
	struct loop_watch *watch;	/* of standard input */
	int		 file_wd, dir_wd;
	bool		 dirty;
	bool		 caught_up;	/* what comes now is new */
	bool		 ending;	/* the job is being ended, says its log */
	int		 steps;		/* completed since the last finding */
	int64_t		 last_step;
	struct repeat	*repeats;	/* per rule */
};

struct follow {
	const struct follow_options *o;
	struct loop	*loop;
	int		 inotify;	/* -1: poll only */
	struct followed	*files;
	size_t		 count;
	struct feed	*feed;
	struct loop_timer *poll, *gather, *quiet;
	struct finding_widths widths;
};

static enum finding_role
role_of(enum rule_role role)
{
	return role == ROLE_TEARDOWN ? FINDING_TEARDOWN :
	    role == ROLE_SYMPTOM ? FINDING_SYMPTOM : FINDING_CANDIDATE;
}

/* The time that a line has, else that of this moment, as a clock on the wall shows
 * it. */
static int64_t
time_of(const struct followed *f, const struct live_match *m)
{
	struct line line;
	time_t now = time(NULL);
	struct tm tm;

	line_parse(m->text, m->len, &line);
	if (line.when.clock != CLOCK_NONE && line.when.clock != CLOCK_BOOT)
		return line.when.ns;
	if (!f->caught_up)
		return LINE_NO_TIME;
	localtime_r(&now, &tm);
	return (now + tm.tm_gmtoff) * NS_PER_S;
}

static void
tell(const struct follow *w, const struct finding *f)
{
	char *text;

	if (!w->o->json) {
		finding_print(f, &w->widths, w->o->style, w->o->whole, stdout);
		return;
	}
	if ((text = verdict_finding_json(f)) != NULL)
		fputs(text, stdout);
	free(text);
}

/* Too many of the same: some are only counted. */
static bool
is_hidden(struct repeat *r, uint64_t *count)
{
	int64_t now = clock_mono_ns(&clock_system);

	if (r->shown > 0 && now - r->since_ns > REPEAT_NS)
		r->shown = 0;
	if (r->shown == SHOWN_MAX) {
		r->hidden++;
		return true;
	}
	if (r->shown++ == 0)
		r->since_ns = now;
	*count = r->hidden + 1;
	r->hidden = 0;
	return false;
}

/* A line behind which the job does not go on: ranks are being ended, or the
 * scheduler says that it took the nodes away. */
static bool
is_end(const struct rule *r)
{
	return r->def.role == ROLE_TEARDOWN || (r->reason != NULL &&
	    r->def.source == SOURCE_SCHEDULER &&
	    strcmp(r->reason->category, "external") == 0);
}

static void
on_match(const struct live_match *m, void *arg)
{
	struct followed *f = arg;
	struct finding show = { .role = role_of(m->rule->def.role),
	    .time_ns = time_of(f, m), .file = f->file.path,
	    .line = (int64_t)m->line, .rank = m->rank, .rule = m->rule,
	    .reason = m->rule->reason, .text_len = m->len };

	if (m->rule->reason == NULL && m->rule->def.role != ROLE_TEARDOWN)
		return;
	follow_file_keep(&f->file, m);
	f->ending |= is_end(m->rule);
	f->steps = 0;
	if (is_hidden(&f->repeats[m->rule - f->follow->o->set->rules],
	    &show.count))
		return;
	snprintf(show.node, sizeof(show.node), "%s", m->node);
	snprintf(show.gpu, sizeof(show.gpu), "%s", m->gpu);
	if ((show.text = malloc(m->len + 1)) == NULL)
		return;
	show.text_len = line_strip_ansi(m->text, m->len, show.text);
	tell(f->follow, &show);
	free(show.text);
}

/* Steps behind a finding: the job got over it. */
static void
on_progress(const struct progress *p, uint64_t line, void *arg)
{
	struct followed *f = arg;

	(void)line;
	if (p->step >= 0 && p->step == f->last_step)
		return;
	f->last_step = p->step;
	if (++f->steps != GOT_OVER)
		return;
	f->ending = false;
	follow_file_forget(&f->file);
}

static void
watch_path(struct followed *f)
{
	struct follow *w = f->follow;
	char *copy;

	if (w->inotify == -1 || strcmp(f->file.path, "-") == 0)
		return;
	if (f->file_wd != -1)
		inotify_rm_watch(w->inotify, f->file_wd);
	f->file_wd = f->file.fd == -1 ? -1 :
	    inotify_add_watch(w->inotify, f->file.path, FILE_EVENTS);
	if (f->dir_wd == -1 && (copy = strdup(f->file.path)) != NULL) {
		f->dir_wd = inotify_add_watch(w->inotify, dirname(copy),
		    DIR_EVENTS);
		free(copy);
	}
}

/* Reads a share of a file; true when there may be more. */
static bool
read_share(struct followed *f)
{
	if (follow_file_read(&f->file, ROUND_BYTES) > 0)
		loop_timer_cancel(f->follow->quiet);
	if (!f->file.at_end && f->file.fd != -1)
		return true;
	f->caught_up |= f->file.fd != -1;
	if (!follow_file_check(&f->file))
		return false;
	watch_path(f);
	return true;
}

static void
service(struct follow *w, bool all)
{
	bool ending = false, more = false;
	size_t i;

	for (i = 0; i < w->count; i++) {
		struct followed *f = &w->files[i];

		if ((all || f->dirty) && f->watch == NULL)
			f->dirty = read_share(f);
		more |= f->dirty;
		ending |= f->ending;
	}
	if (fflush(stdout) != 0 || ferror(stdout)) {
		loop_stop(w->loop, -1);
		return;
	}
	if (more)
		loop_timer_set(w->gather, 0);
	if (!ending)
		loop_timer_cancel(w->quiet);
	else if (!loop_timer_pending(w->quiet))
		loop_timer_set(w->quiet, QUIET_MS);
}

static void
on_poll(void *arg)
{
	struct follow *w = arg;

	service(w, true);
	loop_timer_set(w->poll, POLL_MS + (int64_t)w->count);
}

static void
on_gather(void *arg)
{
	service(arg, false);
}

static void
on_quiet(void *arg)
{
	struct follow *w = arg;

	loop_stop(w->loop, 0);
}

static void
on_signal(const struct signalfd_siginfo *info, void *arg)
{
	struct follow *w = arg;

	(void)info;
	loop_stop(w->loop, 0);
}

static void
on_input(int fd, uint32_t events, void *arg)
{
	struct followed *f = arg;

	(void)fd;
	(void)events;
	f->caught_up = true;
	read_share(f);
	if (f->file.ended)
		loop_stop(f->follow->loop, 0);
	service(f->follow, false);
}

/* A write marks its file, a new name in a folder all files of that folder. */
static void
on_inotify(int fd, uint32_t events, void *arg)
{
	char block[16384] __attribute__((aligned(__alignof__(
	    struct inotify_event))));
	struct follow *w = arg;
	const struct inotify_event *e;
	ssize_t n;
	char *p;
	size_t i;

	(void)events;
	while ((n = read(fd, block, sizeof(block))) > 0)
		for (p = block; p < block + n; p += sizeof(*e) + e->len) {
			e = (const struct inotify_event *)(void *)p;
			for (i = 0; i < w->count; i++)
				w->files[i].dirty |= (e->mask & IN_Q_OVERFLOW) ||
				    e->wd == w->files[i].file_wd ||
				    e->wd == w->files[i].dir_wd;
		}
	if (!loop_timer_pending(w->gather))
		loop_timer_set(w->gather, GATHER_MS);
}

static int
start_file(struct follow *w, struct followed *f, const char *path,
    struct err *err)
{
	const struct live_calls calls = { on_match, on_progress, f };
	struct stat st;
	bool in;

	f->follow = w;
	f->file_wd = f->dir_wd = -1;
	f->last_step = -1;
	f->repeats = calloc(w->o->set->count + 1, sizeof(*f->repeats));
	if (f->repeats == NULL)
		return err_memory(err);
	in = strcmp(path, "-") == 0;
	if (in && fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode))
		return err_set(err, ERR_USAGE, "standard input is a file: "
		    "give its name to follow it");
	if (!in && stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return err_set(err, ERR_USAGE, "cannot follow %s: it is no file",
		    path);
	if (follow_file_init(&f->file, path, w->o->set, &calls, w->feed, err) == -1)
		return -1;
	if (in)
		return loop_watch_fd(w->loop, STDIN_FILENO, EPOLLIN, on_input, f,
		    &f->watch, err);
	follow_file_check(&f->file);
	if (f->file.fd == -1)
		fprintf(stderr, "holdfast diagnose: waiting for %s\n", path);
	watch_path(f);
	return 0;
}

static int
start(struct follow *w, char *const *paths, size_t count, struct err *err)
{
	static const int ends[] = { SIGINT, SIGTERM, 0 };
	struct loop_watch *watch;
	size_t i;

	if (loop_new(&w->loop, err) == -1 ||
	    loop_timer_new(w->loop, on_poll, w, &w->poll, err) == -1 ||
	    loop_timer_new(w->loop, on_gather, w, &w->gather, err) == -1 ||
	    loop_timer_new(w->loop, on_quiet, w, &w->quiet, err) == -1 ||
	    loop_watch_signals(w->loop, ends, on_signal, w, &watch, err) == -1)
		return -1;
	w->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->inotify != -1 && loop_watch_fd(w->loop, w->inotify, EPOLLIN,
	    on_inotify, w, &watch, err) == -1)
		return -1;
	if ((w->files = calloc(count, sizeof(*w->files))) == NULL)
		return err_memory(err);
	for (i = 0; i < count; i++) {
		w->count++;
		if (start_file(w, &w->files[i], paths[i], err) == -1)
			return -1;
	}
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "holdfast diagnose: following; Ctrl-C ends it "
		    "with the verdict\n");
	loop_timer_set(w->poll, 0);
	return 0;
}

static void
stop(struct follow *w)
{
	size_t i;

	for (i = 0; i < w->count; i++) {
		if (w->files[i].file.path != NULL)
			follow_file_fini(&w->files[i].file);
		free(w->files[i].repeats);
	}
	free(w->files);
	if (w->inotify != -1)
		close(w->inotify);
	loop_free(w->loop);
}

/* What was there before the signal is part of it; a second signal ends us. */
static int
finish(struct follow *w, const struct causes_extra *extra, struct verdict *v,
    struct err *err)
{
	sigset_t ends;
	size_t i;
	int input;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &ends, NULL);
	if (isatty(STDERR_FILENO))
		fputc('\n', stderr);	/* behind the ^C of the terminal */
	for (input = 1; input >= 0; input--)
		for (i = 0; i < w->count; i++)
			if (follow_file_is_input(&w->files[i].file) == input &&
			    follow_file_feed(&w->files[i].file, w->feed,
			    err) == -1)
				return -1;
	if (feed_settle(w->feed, err) == -1)
		return -1;
	return causes_find_all(w->o->set, w->feed, extra, v, err);
}

int
follow_run(const struct follow_options *o, char *const *paths, size_t count,
    const struct causes_extra *extra, struct feed *feed, struct verdict *v,
    struct err *err)
{
	struct follow w = { .o = o, .feed = feed, .inotify = -1,
	    .widths = { .time = 8, .place = 12, .rule = 24 } };
	int rc = -1;

	if (start(&w, paths, count, err) == 0 &&
	    loop_run(w.loop, err) == 0)
		rc = finish(&w, extra, v, err);
	else if (ferror(stdout))
		err_set(err, ERR_SYSTEM, "cannot write the output");
	stop(&w);
	return rc;
}
