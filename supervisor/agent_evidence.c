/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_evidence.c - what all ranks of this node are doing at the moment, before a
 * hung attempt is ended.
 *
 * Reads /proc, and stacks by py-spy or gdb where one of them is there.  Writes
 * DIR/rankNNNNN.txt; emits the note "evidence".  Nothing is waited for beyond the limit.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/child.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "supervisor/agent_attempt.h"

#define AT_ONCE		4	/* debuggers */
#define STACK_MAX	(256u << 10)
#define THREADS_MAX	64
#define FRAME_MAX	160
#define NOTE_ROOM	(1u << 20)

struct subject {
	struct evidence		*evidence;
	struct watch_rank	 rank;		/* a copy */
	struct child		*child;
	bool			 begun;		/* without a child then: done */
	char			 frame[FRAME_MAX];	/* innermost, "" unknown */
	struct buf		 text;
};

struct evidence {
	struct attempt		*attempt;
	char			 dir[PATH_MAX];
	const char		*tool;		/* "py-spy", "gdb" or NULL */
	int64_t			 end_ns;
	struct loop_timer	*limit;
	struct subject		*subjects;
	size_t			 n;
	bool			 told;
};

static void go_on(struct evidence *);

static bool
is_in_path(const char *name)
{
	const char *p = getenv("PATH"), *colon;
	char path[PATH_MAX];
	size_t len;

	for (; p != NULL && *p != '\0'; p = *colon != '\0' ? colon + 1 : colon) {
		colon = strchrnul(p, ':');
		len = (size_t)(colon - p);
		if (len > 0 && snprintf(path, sizeof(path), "%.*s/%s", (int)len, p,
		    name) < (int)sizeof(path) && access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* A small file of /proc; these do not wait for the memory of the process, as cmdline
 * and environ do. */
static void
add_file(struct buf *out, const char *title, const char *path)
{
	char text[4096];
	ssize_t n = -1;
	int fd;

	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) != -1) {
		n = read(fd, text, sizeof(text));
		close(fd);
	}
	buf_printf(out, "%s: ", title);
	if (n < 0)
		buf_printf(out, "(%s)\n", strerror(errno));
	else if (n == 0 || buf_append(out, text, (size_t)n) == -1 ||
	    text[n - 1] != '\n')
		buf_puts(out, "\n");
}

static void
add_threads(struct buf *out, pid_t pid)
{
	char path[80], wchan[PROC_WCHAN_MAX];
	struct proc_stat st;
	struct dirent *e;
	int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	if ((d = opendir(path)) == NULL)
		return;
	while ((e = readdir(d)) != NULL && n < THREADS_MAX) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

		if (tid <= 0 || proc_read_thread(pid, tid, &st) == -1)
			continue;
		proc_read_wchan(tid, wchan);
		buf_printf(out, "thread %d (%s): state %c, %llu ticks%s%s\n",
		    (int)tid, st.comm, st.state, (unsigned long long)st.cpu,
		    wchan[0] != '\0' ? ", in " : "", wchan);
		n++;
	}
	closedir(d);
}

static void
look_at(struct subject *s)
{
	const struct watch_rank *r = &s->rank;
	char now[CLOCK_TEXT_MAX], path[64];
	struct output_news news;

	clock_format(clock_wall_ns(&clock_system), now);
	buf_printf(&s->text, "%s rank %d, pid %d, state %c, %d %% of a core\n", now,
	    r->rank, (int)r->pid, r->state, r->cpu);
	snprintf(path, sizeof(path), "/proc/%d/wchan", (int)r->pid);
	add_file(&s->text, "waits in", path);
	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)r->pid);
	add_file(&s->text, "system call", path);
	snprintf(path, sizeof(path), "/proc/%d/stack", (int)r->pid);
	add_file(&s->text, "kernel stack", path);
	add_threads(&s->text, r->pid);
	if (r->output == NULL)
		return;
	output_tell(r->output, &news);
	buf_puts(&s->text, "\nlast output:\n");
	buf_append(&s->text, news.tail, news.tail_len);
}

/* The innermost frame of the main thread: py-spy indents it below the thread's line,
 * gdb calls the main thread 1 and its innermost frame #0. */
static void
find_frame(struct subject *s, const char *text)
{
	bool gdb = strcmp(s->evidence->tool, "gdb") == 0;
	const char *p = strstr(text, gdb ? "Thread 1 " : "MainThread"), *end;

	p = p != NULL ? strchr(p, '\n') : NULL;
	p = p != NULL && gdb ? strstr(p, "#0 ") : p;
	if (p == NULL)
		return;
	p += strspn(p, "\n #0123456789");
	if (gdb && strncmp(p, "x", 1) == 0 && (end = strstr(p, " in ")) != NULL)
		p = end + 4;
	/* Arguments differ from rank to rank. */
	end = p + strcspn(p, gdb ? "(\n" : "\n");
	while (end > p && end[-1] == ' ')
		end--;
	snprintf(s->frame, sizeof(s->frame), "%.*s", (int)(end - p), p);
}

static void
on_stack(const struct child_result *r, void *arg)
{
	struct subject *s = arg;

	s->child = NULL;
	buf_printf(&s->text, "\nstacks by %s:\n", s->evidence->tool);
	if (r->out.len > 0) {
		buf_append(&s->text, r->out.data, r->out.len);
		find_frame(s, r->out.data);
	} else {
		buf_printf(&s->text, "none: %.500s\n", r->errors.data != NULL ?
		    r->errors.data : "it said nothing");
	}
	go_on(s->evidence);
}

static void
start_stack(struct subject *s, int64_t left_ms)
{
	const char *tool = s->evidence->tool;
	char pid[16];
	const char *spy[] = { "py-spy", "dump", "--pid", pid, NULL };
	const char *gdb[] = { "gdb", "-nx", "-batch", "-p", pid, "-ex",
	    "set pagination off", "-ex", "thread apply all bt 40", "-ex", "py-bt",
	    NULL };
	struct child_spec spec = { .deadline_ms = left_ms,
	    .output_max = STACK_MAX };
	struct err err = {0};

	s->begun = true;
	/* A debugger would wait for it as well. */
	if (tool == NULL || strchr("DT?", s->rank.state) != NULL) {
		buf_printf(&s->text, "\nno stacks: %s\n", tool == NULL ?
		    "neither py-spy nor gdb is in PATH" :
		    "the process is stopped, in the kernel, or gone");
		return;
	}
	snprintf(pid, sizeof(pid), "%d", (int)s->rank.pid);
	spec.argv = strcmp(tool, "gdb") == 0 ? gdb : spy;
	if (child_start(s->evidence->attempt->agent->loop, &spec, on_stack, s,
	    &s->child, &err) == -1)
		buf_printf(&s->text, "\nno stacks: %s\n", err.text);
}

static void
write_down(struct subject *s)
{
	struct evidence *e = s->evidence;
	struct writer_file *f;
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/rank%05d.txt", e->dir, s->rank.rank) >=
	    (int)sizeof(path) || writer_open(e->attempt->agent->writer, path, &f,
	    NULL) == -1)
		return;
	writer_append(f, s->text.data, s->text.len, NULL, NULL);
	writer_close(f);
}

static void
tell(struct evidence *e)
{
	struct agent *a = e->attempt->agent;
	int64_t now = clock_mono_ns(&clock_system);
	cJSON *m, *list, *one;
	size_t i;

	if (e->told)
		return;
	e->told = true;
	loop_timer_cancel(e->limit);
	m = agent_message(a, "evidence", e->attempt->number);
	json_add_text(m, "dir", e->dir);
	json_add_text(m, "tool", e->tool);
	list = cJSON_AddArrayToObject(m, "ranks");
	for (i = 0; i < e->n; i++) {
		struct subject *s = &e->subjects[i];

		if (s->child != NULL) {
			child_cancel(s->child);
			s->child = NULL;
			buf_puts(&s->text, "\nno stacks: no time was left\n");
		}
		one = watch_describe(&s->rank, now);
		json_add_text(one, "frame", s->frame[0] != '\0' ? s->frame : NULL);
		cJSON_AddItemToArray(list, one);
		write_down(s);
	}
	agent_note(a, m, NOTE_ROOM);
}

static void
go_on(struct evidence *e)
{
	int64_t left = (e->end_ns - clock_mono_ns(&clock_system)) / NS_PER_MS;
	size_t i, running = 0, done = 0;

	for (i = 0; i < e->n; i++)
		running += e->subjects[i].child != NULL;
	for (i = 0; i < e->n; i++) {
		struct subject *s = &e->subjects[i];

		if (!s->begun && running < AT_ONCE && left > 0) {
			start_stack(s, left);
			running += s->child != NULL;
		}
		done += s->begun && s->child == NULL;
	}
	if (done == e->n)
		tell(e);
}

static void
on_limit(void *arg)
{
	tell(arg);
}

void
evidence_start(struct attempt *at, const char *dir, int64_t limit_ms)
{
	struct evidence *e;
	struct watch_rank *ranks;
	struct err err = {0};
	size_t i, n;

	if (dir == NULL || at->phase != PHASE_RUNNING || limit_ms <= 0 ||
	    (at->evidence != NULL && !at->evidence->told))
		return;
	evidence_free(at->evidence);
	if ((at->evidence = e = calloc(1, sizeof(*e))) == NULL)
		return;
	e->attempt = at;
	snprintf(e->dir, sizeof(e->dir), "%s", dir);
	e->tool = is_in_path("py-spy") ? "py-spy" : is_in_path("gdb") ? "gdb" : NULL;
	e->end_ns = clock_mono_ns(&clock_system) + limit_ms * NS_PER_MS;
	n = watch_look(at->watch, &ranks);
	e->subjects = calloc(n + 1, sizeof(*e->subjects));
	if (e->subjects == NULL || loop_timer_new(at->agent->loop, on_limit, e,
	    &e->limit, &err) == -1)
		return;
	e->n = n;
	for (i = 0; i < n; i++) {
		e->subjects[i].evidence = e;
		e->subjects[i].rank = ranks[i];
		look_at(&e->subjects[i]);
	}
	loop_timer_set(e->limit, limit_ms);
	go_on(e);
}

void
evidence_free(struct evidence *e)
{
	size_t i;

	if (e == NULL)
		return;
	for (i = 0; i < e->n; i++) {
		child_cancel(e->subjects[i].child);
		buf_fini(&e->subjects[i].text);
	}
	loop_timer_free(e->limit);
	free(e->subjects);
	free(e);
}
