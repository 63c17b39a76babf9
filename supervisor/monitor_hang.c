/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor_hang.c - an attempt that makes no progress: tells people of the suspicion,
 * and once it is certain, collects evidence from all ranks and raises the sign.
 *
 * Reads the agent's notes watch and evidence; emits the records suspicion and
 * evidence.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "supervisor/odd.h"
#include "supervisor/supervisor.h"

#define EVIDENCE_MS	30000
#define ANSWER_MS	(EVIDENCE_MS + 5000)	/* an agent that says nothing */
#define RANKS_MAX	4096

static int64_t
now_ns(void)
{
	return clock_mono_ns(&clock_system);
}

void
monitor_hang_begin(struct supervisor *s)
{
	const struct run_options *o = &s->spec->options;
	struct hang_limits limits = { .idle_ms = o->hang_timeout_ms,
	    .busy_ms = o->busy_timeout_ms, .start_ms = o->start_timeout_ms };

	hang_begin(&s->hang, &limits, &s->hang_learnt, now_ns());
	s->hang_asked = false;
	cJSON_Delete(s->hang_ranks);
	s->hang_ranks = NULL;
	loop_timer_set(s->hang_tick, run_spec_watch_ms(s->spec));
}

void
monitor_hang_step(struct supervisor *s, int64_t step)
{
	bool suspected = s->hang.state != HANG_NONE;

	/* Another supervisor's attempt, which is not taken over yet. */
	if (s->hang.learnt == NULL)
		return;
	hang_step(&s->hang, now_ns(), step);
	if (suspected && s->hang.state == HANG_NONE && !s->hang_asked) {
		supervisor_say(s, "attempt %d goes on at step %lld",
		    s->history.attempt, (long long)step);
		status_changed(s);
	}
}

/* The rank that differs, and how; -1 without a word when none does. */
static int
find_odd(const cJSON *ranks, int *pid, char why[ODD_WHY_MAX])
{
	size_t n = (size_t)cJSON_GetArraySize(ranks), k = 0;
	struct odd_rank *list;
	const cJSON *r;
	int rank = -1, i;

	why[0] = '\0';
	*pid = 0;
	if (n == 0 || n > RANKS_MAX || (list = calloc(n, sizeof(*list))) == NULL)
		return -1;
	cJSON_ArrayForEach(r, ranks)
		list[k++] = (struct odd_rank){
		    .state = *json_str(r, "state", "?"),
		    .cpu = json_int(r, "cpu", ODD_UNKNOWN),
		    .silent_ms = json_int(r, "silent_ms", ODD_UNKNOWN),
		    .step = json_int(r, "step", ODD_UNKNOWN),
		    .wchan = json_str(r, "wchan", NULL),
		    .frame = json_str(r, "frame", NULL) };
	if ((i = odd_find(list, n, why)) != -1) {
		r = cJSON_GetArrayItem(ranks, i);
		rank = (int)json_int(r, "rank", -1);
		*pid = (int)json_int(r, "pid", 0);
	}
	free(list);
	return rank;
}

/* ": rank 3 (pid 71) is stopped", or nothing. */
static int
describe_odd(const cJSON *ranks, char *out, size_t size)
{
	char why[ODD_WHY_MAX];
	int pid, rank = find_odd(ranks, &pid, why);

	out[0] = '\0';
	if (why[0] != '\0')
		snprintf(out, size, ": rank %d (pid %d) differs: %s", rank, pid,
		    why);
	return rank;
}

static void
journal_ranks(struct supervisor *s, const char *type, const char *text,
    const cJSON *note)
{
	cJSON *r = journal_record(type, s->history.attempt);

	json_add_text(r, "text", text);
	json_add_int(r, "step", s->progress.step);
	json_add_text(r, "phase", hang_phase_name(s->hang.phase));
	json_add_text(r, "dir", json_str(note, "dir", NULL));
	json_add_text(r, "tool", json_str(note, "tool", NULL));
	cJSON_AddItemToObject(r, "ranks", cJSON_Duplicate(note != NULL ?
	    cJSON_GetObjectItem(note, "ranks") : s->hang_ranks, true));
	journal_append(s->journal, r, NULL, NULL);
}

static void
suspect(struct supervisor *s)
{
	char odd[ODD_WHY_MAX + 64], text[INCIDENT_TEXT_MAX];

	(void)describe_odd(s->hang_ranks, odd, sizeof(odd));
	snprintf(text, sizeof(text), "%.200s%.300s", s->hang_why, odd);
	supervisor_say(s, "attempt %d: %s", s->history.attempt, text);
	journal_ranks(s, "suspicion", text, NULL);
	status_changed(s);
}

static void
raise_hang(struct supervisor *s, const cJSON *ranks)
{
	char odd[ODD_WHY_MAX + 64], text[INCIDENT_TEXT_MAX];
	int rank = describe_odd(ranks, odd, sizeof(odd));

	snprintf(text, sizeof(text), "%.200s%.300s", s->hang_why, odd);
	monitor_raise(s, SIGN_HANG, rank, text);
}

/* Stacks first: what is killed tells nothing any more. */
static void
collect_evidence(struct supervisor *s)
{
	char dir[PATH_MAX];
	cJSON *m;

	s->hang_asked = true;
	supervisor_say(s, "attempt %d: %s; collecting what its ranks do",
	    s->history.attempt, s->hang_why);
	snprintf(dir, sizeof(dir), "%.3000s/evidence/%04d", s->spec->dir,
	    s->history.attempt);
	m = link_order(s, "evidence");
	json_add_text(m, "dir", dir);
	json_add_int(m, "limit_ms", EVIDENCE_MS);
	link_send(s, m);
	loop_timer_set(s->hang_tick, ANSWER_MS);
}

void
monitor_hang_tick(void *arg)
{
	struct supervisor *s = arg;
	enum hang_state before = s->hang.state, state;
	int64_t every_ms = run_spec_watch_ms(s->spec);

	loop_timer_set(s->hang_tick, every_ms);
	if (s->state != STATE_TRAINING)
		return;
	if (s->hang_asked) {
		raise_hang(s, s->hang_ranks);	/* no answer came */
		return;
	}
	state = hang_check(&s->hang, now_ns(), every_ms * NS_PER_MS, s->hang_why);
	if (state == HANG_CERTAIN)
		collect_evidence(s);
	else if (state == HANG_SUSPECT && before == HANG_NONE)
		suspect(s);
}

static int
phase_find(const char *name)
{
	int p;

	for (p = 0; p < HANG_PHASES; p++)
		if (strcmp(hang_phase_name((enum hang_phase)p), name) == 0)
			return p;
	return -1;
}

/* Every few seconds from the agent; one of another attempt never counts. */
void
monitor_watch(struct supervisor *s, const cJSON *note)
{
	int64_t silent = json_int(note, "silent_ms", JSON_UNKNOWN);
	int phase = phase_find(json_str(note, "phase", ""));
	const cJSON *ranks = cJSON_GetObjectItem(note, "ranks");
	struct hang_sample sample = { .known = json_bool(note, "known", false),
	    .idle = json_bool(note, "idle", false),
	    .io = json_bool(note, "io", false) };

	if ((int)json_int(note, "attempt", 0) != s->history.attempt ||
	    s->state != STATE_TRAINING || s->hang.learnt == NULL)
		return;
	if (silent != JSON_UNKNOWN)
		hang_output(&s->hang, now_ns() - silent * NS_PER_MS);
	if (phase != -1 && phase != HANG_TRAINING)
		hang_announce(&s->hang, now_ns(), (enum hang_phase)phase);
	hang_take(&s->hang, now_ns(), &sample);
	cJSON_Delete(s->hang_ranks);
	s->hang_ranks = ranks != NULL ? cJSON_Duplicate(ranks, true) : NULL;
}

void
monitor_evidence(struct supervisor *s, const cJSON *note)
{
	if ((int)json_int(note, "attempt", 0) != s->history.attempt ||
	    s->state != STATE_TRAINING || !s->hang_asked)
		return;
	loop_timer_cancel(s->hang_tick);
	journal_ranks(s, "evidence", s->hang_why, note);
	supervisor_say(s, "what the ranks did is in %s", json_str(note, "dir", "?"));
	raise_hang(s, cJSON_GetObjectItem(note, "ranks"));
}
