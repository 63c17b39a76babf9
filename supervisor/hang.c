/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hang.c - see hang.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/clock.h"
#include "common/text.h"
#include "supervisor/hang.h"

#define GAPS_MIN	8	/* fewer say nothing of a percentile */
/* Times the median: a p99 is that of saves and evaluations which the log does not
 * announce as soon as they are one gap in a hundred. */
#define SUSPECT_TIMES	3
#define CERTAIN_TIMES	10
#define LONGEST_TIMES	2	/* what once took long and ended well */
#define TALKING_TIMES	4
#define LATE_TIMES	3	/* a check that comes so late was held up itself */

void
hang_begin(struct hang *h, const struct hang_limits *limits,
    struct hang_learnt *learnt, int64_t now_ns)
{
	*h = (struct hang){ .limits = *limits, .learnt = learnt,
	    .step = INT64_MIN, .begun_ns = now_ns, .output_ns = now_ns,
	    .checked_ns = now_ns };
}

static int64_t
later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Since when nothing is known to have moved on.  Of a trainer whose steps nobody can
 * read, any output will do. */
static int64_t
last_news(const struct hang *h)
{
	return later(later(h->begun_ns, h->step_ns),
	    h->step_ns != 0 ? h->phase_ns : later(h->phase_ns, h->output_ns));
}

/* How long the phase that ends took, from the last step or the start on. */
static void
learn(struct hang *h, int64_t now_ns)
{
	struct hang_learnt *l = h->learnt;
	int64_t since = h->step_ns != 0 ? h->step_ns : h->begun_ns;
	int64_t ms = (now_ns - since) / NS_PER_MS;

	if (h->phase == HANG_TRAINING)
		l->gaps_ms[l->n_gaps++ % HANG_GAPS] = ms;
	l->longest_ms[h->phase] = later(l->longest_ms[h->phase], ms);
}

void
hang_step(struct hang *h, int64_t now_ns, int64_t step)
{
	h->output_ns = now_ns;
	if (h->step != INT64_MIN && step <= h->step)
		return;
	learn(h, now_ns);
	h->step = step;
	h->step_ns = now_ns;
	h->phase = HANG_TRAINING;
	h->phase_ns = 0;
	h->idle_ns = 0;
	h->state = HANG_NONE;
}

void
hang_output(struct hang *h, int64_t now_ns)
{
	h->output_ns = now_ns;
}

void
hang_announce(struct hang *h, int64_t now_ns, enum hang_phase phase)
{
	h->output_ns = h->phase_ns = now_ns;
	/* What is done before the first step is starting up, but for compiling. */
	if (h->step_ns != 0 || phase == HANG_COMPILE)
		h->phase = phase;
}

void
hang_take(struct hang *h, int64_t now_ns, const struct hang_sample *s)
{
	if (s->io)
		h->io_ns = now_ns;
	if (!s->known || !s->idle || s->io)
		h->idle_ns = 0;
	else if (h->idle_ns == 0)
		h->idle_ns = now_ns;
}

static int
compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int64_t
hang_percentile_ms(const struct hang_learnt *l, int p)
{
	int64_t sorted[HANG_GAPS];
	size_t n = l->n_gaps < HANG_GAPS ? l->n_gaps : HANG_GAPS;

	if (n < GAPS_MIN)
		return 0;
	memcpy(sorted, l->gaps_ms, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare);
	return sorted[(n - 1) * (size_t)p / 100];
}

/* Nothing may move for so long while all ranks are idle. */
static int64_t
idle_limit_ms(const struct hang *h)
{
	const struct hang_learnt *l = h->learnt;
	int64_t longest = LONGEST_TIMES * l->longest_ms[h->phase];
	int64_t median = hang_percentile_ms(l, 50);

	switch (h->phase) {
	case HANG_STARTUP:
	case HANG_COMPILE:
		return later(h->limits.start_ms, longest);
	case HANG_TRAINING:
		/* Too few steps to know what is usual: ranks may wait long for
		 * what others prepare. */
		return later(later(median == 0 ? later(h->limits.busy_ms,
		    h->limits.idle_ms) : h->limits.idle_ms, longest),
		    CERTAIN_TIMES * median);
	default:
		return later(later(h->limits.busy_ms, h->limits.idle_ms), longest);
	}
}

/* The same while processors are busy.  Before the first step that is never enough: the
 * trainer may work and not tell; and much longer while the log goes on, perhaps with an
 * evaluation that has words of its own. */
static int64_t
busy_limit_ms(const struct hang *h, int64_t now_ns)
{
	int64_t idle = idle_limit_ms(h), limit;

	if (h->step_ns == 0)
		return INT64_MAX;
	limit = h->phase == HANG_TRAINING ? later(h->limits.busy_ms, idle) :
	    2 * idle;
	return now_ns - h->output_ns < h->limits.idle_ms * NS_PER_MS ?
	    TALKING_TIMES * limit : limit;
}

static int64_t
suspect_limit_ms(const struct hang *h)
{
	int64_t median = hang_percentile_ms(h->learnt, 50);
	int64_t least = HANG_SUSPECT_MS;

	if (h->phase != HANG_TRAINING || median == 0)
		return idle_limit_ms(h) / 2;
	if (h->limits.idle_ms > 0 && h->limits.idle_ms / 2 < least)
		least = h->limits.idle_ms / 2;
	return later(later(least, SUSPECT_TIMES * median),
	    h->learnt->longest_ms[HANG_TRAINING]);
}

static void
shift(int64_t *at, int64_t by, int64_t now)
{
	if (*at != 0)
		*at = *at + by < now ? *at + by : now;
}

/* Whoever was not looking must not conclude from what was not seen. */
static void
allow_for_delay(struct hang *h, int64_t now_ns, int64_t every_ns)
{
	int64_t late = now_ns - h->checked_ns - every_ns;

	h->checked_ns = now_ns;
	if (late < (LATE_TIMES - 1) * every_ns)
		return;
	shift(&h->begun_ns, late, now_ns);
	shift(&h->step_ns, late, now_ns);
	shift(&h->phase_ns, late, now_ns);
	shift(&h->output_ns, late, now_ns);
	shift(&h->io_ns, late, now_ns);
	shift(&h->idle_ns, late, now_ns);
}

static void
describe(const struct hang *h, int64_t now_ns, char why[HANG_WHY_MAX])
{
	char quiet[TEXT_SPAN_MAX], output[TEXT_SPAN_MAX], gap[TEXT_SPAN_MAX];
	int64_t p99 = hang_percentile_ms(h->learnt, 99);
	int n;

	text_format_span((now_ns - (h->step_ns != 0 ? h->step_ns : h->begun_ns)) /
	    NS_PER_MS, quiet);
	text_format_span((now_ns - h->output_ns) / NS_PER_MS, output);
	text_format_span(p99, gap);
	n = snprintf(why, HANG_WHY_MAX, "no step for %s", quiet);
	if (p99 > 0)
		n += snprintf(why + n, HANG_WHY_MAX - (size_t)n,
		    " (99 %% took at most %s)", gap);
	if (h->phase != HANG_TRAINING)
		n += snprintf(why + n, HANG_WHY_MAX - (size_t)n, " in %s",
		    hang_phase_name(h->phase));
	snprintf(why + n, HANG_WHY_MAX - (size_t)n, ", no output for %s, %s",
	    output, h->idle_ns != 0 ? "all ranks idle" : "processors busy");
}

/* Idle for most of the time; a sample now and then may see a watchdog at work. */
static bool
is_idle(const struct hang *h, int64_t now_ns, int64_t limit_ms)
{
	return h->idle_ns != 0 && now_ns - h->idle_ns >= limit_ms / 2 * NS_PER_MS;
}

enum hang_state
hang_check(struct hang *h, int64_t now_ns, int64_t every_ns,
    char why[HANG_WHY_MAX])
{
	int64_t idle = idle_limit_ms(h), busy = busy_limit_ms(h, now_ns), quiet, io;

	allow_for_delay(h, now_ns, every_ns);
	quiet = (now_ns - last_news(h)) / NS_PER_MS;
	/* Files that grow are work. */
	io = h->io_ns != 0 ? (now_ns - h->io_ns) / NS_PER_MS : INT64_MAX;
	if (h->limits.idle_ms > 0 && quiet >= idle && io >= idle / 2 &&
	    (quiet >= busy || is_idle(h, now_ns, idle)))
		h->state = HANG_CERTAIN;
	else if (h->state == HANG_NONE && quiet >= suspect_limit_ms(h) &&
	    io >= suspect_limit_ms(h) / 2)
		h->state = HANG_SUSPECT;
	if (h->state != HANG_NONE)
		describe(h, now_ns, why);
	return h->state;
}

static const char *const phase_names[] = {
	[HANG_STARTUP] = "start-up", [HANG_TRAINING] = "training",
	[HANG_COMPILE] = "compiling", [HANG_EVALUATION] = "evaluation",
	[HANG_CHECKPOINT] = "saving", [HANG_SHUTDOWN] = "shutting down"
};

const char *
hang_phase_name(enum hang_phase p)
{
	return p < HANG_PHASES ? phase_names[p] : "?";
}

/* The first row whose words are in the line, case apart.  Megatron-LM training.py and
 * checkpointing.py, Hugging Face trainer.py, torchtitan checkpoint.py and train.py,
 * Lightning's progress bars, nanoGPT train.py, NeMo, DeepSpeed engine.py. */
static const struct {
	const char	*words;
	int		 phase;
} announcements[] = {
	/* done with it: steps come next */
	{ "successfully saved checkpoint", HANG_TRAINING },
	{ "finished saving", HANG_TRAINING },
	{ "checkpoint saved", HANG_TRAINING },
	{ "saved checkpoint", HANG_TRAINING },
	{ "saved in ", HANG_TRAINING },
	{ "validation loss at iteration", HANG_TRAINING },
	{ "eval_loss", HANG_TRAINING },
	{ "training completed", HANG_SHUTDOWN },
	{ "training finished", HANG_SHUTDOWN },
	{ "training is done", HANG_SHUTDOWN },
	{ "`trainer.fit` stopped", HANG_SHUTDOWN },
	{ "exiting program", HANG_SHUTDOWN },
	{ "saving checkpoint", HANG_CHECKPOINT },
	{ "saving the checkpoint", HANG_CHECKPOINT },
	{ "saving model", HANG_CHECKPOINT },
	{ "saving state", HANG_CHECKPOINT },
	{ "saving ", HANG_CHECKPOINT },
	{ "writing checkpoint", HANG_CHECKPOINT },
	{ "running evaluation", HANG_EVALUATION },
	{ "running validation", HANG_EVALUATION },
	{ "running prediction", HANG_EVALUATION },
	{ "evaluating", HANG_EVALUATION },
	{ "starting evaluation", HANG_EVALUATION },
	{ "starting validation", HANG_EVALUATION },
	{ "validation dataloader", HANG_EVALUATION },
	{ "validating", HANG_EVALUATION },
	{ "evaluate", HANG_EVALUATION },
	{ "[eval", HANG_EVALUATION },
	{ "eval step", HANG_EVALUATION },
	{ "validation:", HANG_EVALUATION },
	{ "compiling", HANG_COMPILE },
	{ "torch.compile", HANG_COMPILE },
	{ "autotune", HANG_COMPILE },
	{ "capturing cuda graph", HANG_COMPILE },
};

int
hang_phase_of(const char *line, size_t len)
{
	size_t i, at, n;

	for (i = 0; i < sizeof(announcements) / sizeof(announcements[0]); i++) {
		n = strlen(announcements[i].words);
		for (at = 0; at + n <= len; at++)
			if (strncasecmp(line + at, announcements[i].words, n) == 0)
				return announcements[i].phase;
	}
	return -1;
}
