/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_watch.c - what the ranks of this node do while nothing is heard of them.
 *
 * Decides nothing.  Reads /proc, and that only when no step has come for a while (no
 * output, where none is known); emits a note "watch" every few seconds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/json.h"
#include "diagnose/progress.h"
#include "supervisor/agent_attempt.h"
#include "supervisor/hang.h"

#define SILENT_TICKS	3		/* then /proc is looked at */
#define NOTE_ROOM	(1u << 18)
#define IDLE_PERCENT	3		/* of a core, and no more: idle */
#define IO_BYTES	(1u << 20)	/* a second, of a rank: work */
#define LINES_BACK	20		/* that may say what is done */
#define RANKS_MAX	1024

struct watch {
	struct attempt		*attempt;
	struct loop_timer	*tick;
	int64_t			 every_ms;
	struct watch_rank	*ranks;
	size_t			 n;		/* 0: not found yet */
	int64_t			 sampled_ns;	/* 0: not lately */
	int64_t			 elapsed_ns;	/* between the last two */
	uint64_t		 seen_bytes;	/* of all outputs */
	int64_t			 step;		/* the newest, JSON_UNKNOWN before */
	int64_t			 step_ns;	/* when it was first seen; 0 */
	bool			 known, idle, io;
};

/* The processes of an attempt, with the rank that each belongs to. */
struct census {
	struct proc_stat	*list;
	size_t			 n;
	int			*owner;		/* index into ranks, -1 */
};

/* Upwards until a rank is met; bounded, for the list is no snapshot. */
static int
find_owner(const struct watch *w, const struct census *c,
    const struct proc_stat *st)
{
	size_t k;
	int up;

	for (up = 0; st != NULL && up < 64; up++) {
		for (k = 0; k < w->n; k++)
			if (w->ranks[k].pid == st->pid)
				return (int)k;
		st = proc_find(c->list, c->n, st->ppid);
	}
	return -1;
}

static void
add_rank(struct watch *w, int rank, const struct proc_stat *st,
    struct output *output)
{
	struct watch_rank *r;

	if (w->n == RANKS_MAX)
		return;
	r = reallocarray(w->ranks, w->n + 1, sizeof(*r));
	if (r == NULL)
		return;
	w->ranks = r;
	w->ranks[w->n++] = (struct watch_rank){ .rank = rank, .pid = st->pid,
	    .starttime = st->starttime, .output = output, .state = '?',
	    .cpu = -1 };
}

/* A launcher's ranks are what it started with RANK set; their own children inherit
 * that.  A process in the kernel's hands (D) is not asked: its memory may be locked. */
static void
find_workers(struct watch *w, const struct census *c)
{
	pid_t launcher = w->attempt->mains[0].pid;
	char text[16];
	size_t i;

	for (i = 0; i < c->n; i++)
		if (c->list[i].ppid == launcher && c->list[i].state != 'D' &&
		    proc_read_env(c->list[i].pid, "RANK", text, sizeof(text)) == 0)
			add_rank(w, (int)strtol(text, NULL, 10), &c->list[i], NULL);
}

static void
find_mains(struct watch *w, const struct census *c)
{
	const struct attempt *at = w->attempt;
	const struct proc_stat *st;
	int i;

	for (i = 0; i < at->count; i++)
		if (!at->mains[i].over &&
		    (st = proc_find(c->list, c->n, at->mains[i].pid)) != NULL)
			add_rank(w, at->rank0 + i, st, at->outputs[i]);
}

static void
take_rank(struct watch *w, struct watch_rank *r, const struct census *c, size_t k)
{
	uint64_t ticks = 0, io = 0, bytes;
	int64_t hz = sysconf(_SC_CLK_TCK);
	const struct proc_stat *st;
	size_t i;

	for (i = 0; i < c->n; i++)
		if (c->owner[i] == (int)k) {
			ticks += c->list[i].cpu;
			if (proc_read_io(c->list[i].pid, &bytes) == 0)
				io += bytes;
		}
	r->cpu = -1;
	r->state = '?';
	r->wchan[0] = '\0';
	if ((st = proc_find(c->list, c->n, r->pid)) != NULL &&
	    st->starttime == r->starttime) {
		r->state = st->state;
		proc_read_wchan(r->pid, r->wchan);
	}
	/* A child that ended took its part with it: then nothing is known. */
	if (r->sampled && ticks >= r->ticks && w->elapsed_ns > 0)
		r->cpu = (int)((int64_t)(ticks - r->ticks) * 100 * NS_PER_S / hz /
		    w->elapsed_ns);
	w->known = w->known && r->cpu != -1;
	w->idle = w->idle && r->cpu != -1 && r->cpu <= IDLE_PERCENT;
	w->io = w->io || (r->sampled && io > r->io && w->elapsed_ns > 0 &&
	    (int64_t)(io - r->io) / (w->elapsed_ns / NS_PER_MS + 1) >
	    IO_BYTES / 1000);
	r->ticks = ticks;
	r->io = io;
	r->sampled = true;
}

size_t
watch_look(struct watch *w, struct watch_rank **out)
{
	struct census c = {0};
	int64_t now = clock_mono_ns(&clock_system);
	size_t i;

	*out = NULL;
	if (proc_list(&c.list, &c.n) == -1)
		return 0;
	c.owner = calloc(c.n + 1, sizeof(*c.owner));
	if (w->n == 0 && w->attempt->rank0 >= 0)
		find_mains(w, &c);
	else if (w->n == 0)
		find_workers(w, &c);
	w->elapsed_ns = w->sampled_ns != 0 ? now - w->sampled_ns : 0;
	w->sampled_ns = now;
	w->known = w->idle = w->n > 0;
	w->io = false;
	for (i = 0; c.owner != NULL && i < c.n; i++)
		c.owner[i] = find_owner(w, &c, &c.list[i]);
	for (i = 0; c.owner != NULL && i < w->n; i++)
		take_rank(w, &w->ranks[i], &c, i);
	free(c.owner);
	free(c.list);
	*out = w->ranks;
	return w->n;
}

cJSON *
watch_describe(const struct watch_rank *r, int64_t now_ns)
{
	cJSON *json = cJSON_CreateObject();
	struct output_news news = { .step = JSON_UNKNOWN };
	char state[2] = { r->state, '\0' };

	if (r->output != NULL)
		output_tell(r->output, &news);
	json_add_int(json, "rank", r->rank >= 0 ? r->rank : JSON_UNKNOWN);
	json_add_int(json, "pid", r->pid);
	json_add_text(json, "state", state);
	json_add_text(json, "wchan", r->wchan[0] != '\0' ? r->wchan : NULL);
	json_add_int(json, "cpu", r->cpu >= 0 ? r->cpu : JSON_UNKNOWN);
	json_add_int(json, "silent_ms", news.heard_ns != 0 ? (now_ns -
	    news.heard_ns) / NS_PER_MS : JSON_UNKNOWN);
	json_add_int(json, "step", news.step);
	return json;
}

/* From the last line upwards: a step, or words that say what is done. */
static int
phase_of_tail(const struct output_news *news)
{
	const char *end = news->tail + news->tail_len, *p;
	struct progress progress;
	int i, phase;

	for (i = 0; i < LINES_BACK && end > news->tail; i++, end = p) {
		if (end[-1] == '\n' || end[-1] == '\r')
			end--;
		for (p = end; p > news->tail && p[-1] != '\n' && p[-1] != '\r'; p--)
			;
		if (progress_parse(p, (size_t)(end - p), &progress) &&
		    progress.step >= 0)
			return HANG_TRAINING;
		if ((phase = hang_phase_of(p, (size_t)(end - p))) != -1)
			return phase;
	}
	return -1;
}

/* The first output that tells counts: rank 0 says what is done. */
static void
read_outputs(struct watch *w, int64_t *heard_ns, int *phase)
{
	const struct attempt *at = w->attempt;
	struct output_news news;
	uint64_t bytes = 0;
	int i;

	*phase = -1;
	*heard_ns = 0;
	for (i = 0; i < at->count; i++) {
		if (at->outputs[i] == NULL)
			continue;
		output_tell(at->outputs[i], &news);
		bytes += news.bytes;
		if (news.heard_ns > *heard_ns)
			*heard_ns = news.heard_ns;
		if (news.step != JSON_UNKNOWN && (w->step == JSON_UNKNOWN ||
		    news.step > w->step)) {
			w->step = news.step;
			w->step_ns = clock_mono_ns(&clock_system);
		}
	}
	for (i = 0; bytes != w->seen_bytes && *phase == -1 && i < at->count; i++)
		if (at->outputs[i] != NULL) {
			output_tell(at->outputs[i], &news);
			*phase = phase_of_tail(&news);
		}
	w->seen_bytes = bytes;
}

static void
add_sample(struct watch *w, cJSON *m, int64_t now)
{
	struct watch_rank *ranks;
	size_t n, i;
	cJSON *list;

	n = watch_look(w, &ranks);
	cJSON_AddBoolToObject(m, "known", w->known);
	cJSON_AddBoolToObject(m, "idle", w->idle);
	cJSON_AddBoolToObject(m, "io", w->io);
	list = cJSON_AddArrayToObject(m, "ranks");
	for (i = 0; i < n; i++)
		cJSON_AddItemToArray(list, watch_describe(&ranks[i], now));
}

static void
on_tick(void *arg)
{
	struct watch *w = arg;
	struct attempt *at = w->attempt;
	int64_t now = clock_mono_ns(&clock_system), heard, news;
	cJSON *m;
	int phase;

	loop_timer_set(w->tick, w->every_ms);
	if (at->phase != PHASE_RUNNING || at->agent->supervisor == NULL)
		return;
	read_outputs(w, &heard, &phase);
	m = agent_message(at->agent, "watch", at->number);
	json_add_int(m, "silent_ms", heard != 0 ? (now - heard) / NS_PER_MS :
	    JSON_UNKNOWN);
	json_add_text(m, "phase", phase >= 0 ? hang_phase_name(phase) : NULL);
	/* A watchdog that talks is no progress. */
	news = w->step_ns != 0 ? w->step_ns : heard;
	if (news == 0 || now - news >= SILENT_TICKS * w->every_ms * NS_PER_MS)
		add_sample(w, m, now);
	else
		w->sampled_ns = 0;
	agent_note(at->agent, m, NOTE_ROOM);
}

int
watch_new(struct attempt *at, struct err *err)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return err_memory(err);
	w->attempt = at;
	w->every_ms = run_spec_watch_ms(at->agent->spec);
	w->step = JSON_UNKNOWN;
	at->watch = w;
	if (loop_timer_new(at->agent->loop, on_tick, w, &w->tick, err) == -1)
		return -1;
	loop_timer_set(w->tick, w->every_ms);
	return 0;
}

void
watch_free(struct watch *w)
{
	if (w == NULL)
		return;
	loop_timer_free(w->tick);
	free(w->ranks);
	free(w);
}
