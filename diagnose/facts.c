/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facts.c - looks at the ends of a stream for steps and times.
 */
#include <math.h>
#include <string.h>

#include "diagnose/clock.h"
#include "diagnose/facts.h"
#include "diagnose/progress.h"

#define GRACE_BYTES	(64u << 10)
#define TAIL_MAX	(256u << 10)	/* searched for the last step line */
#define TIME_LINES	40		/* looked at for the first and last time */
#define LINE_MAX_LOOK	512
#define OLDER_NS	60000000000ll
#define HOLD_OUT_NS	600000000000ll	/* no scheduler's grace is longer */

void
facts_init(struct stream_facts *f)
{
	memset(f, 0, sizeof(*f));
	f->teardown = f->progress = f->progress_before = SIZE_MAX;
	f->step = -1;
	f->first_ns = f->last_ns = f->step_ns = LINE_NO_TIME;
}

static struct line_time
time_of(const struct stream *s, const struct piece *p)
{
	size_t n = p->end - p->start;
	struct line l;

	line_parse(s->data + p->start, n > LINE_MAX_LOOK ? LINE_MAX_LOOK : n, &l);
	return l.when;
}

static void
find_progress(const struct stream *s, struct stream_facts *f)
{
	size_t floor = s->len > TAIL_MAX ? s->len - TAIL_MAX : 0;
	struct piece p = { s->len, s->len };
	struct progress step;

	while (line_piece_before(s->data, p.start, &p) && p.start >= floor) {
		if (p.end - p.start < 8 ||
		    !progress_parse(s->data + p.start, p.end - p.start, &step))
			continue;
		if (f->progress == SIZE_MAX) {
			f->progress = p.start;
			f->step = step.step;
			f->finite = step.has_loss && isfinite(step.loss) &&
			    (!step.has_grad_norm || isfinite(step.grad_norm));
			f->step_time = time_of(s, &p);
		} else if (step.step < 0 || step.step != f->step) {
			f->progress_before = p.start;
			return;
		}
		if (f->step < 0)
			f->step = step.step;
	}
}

static void
find_times(const struct stream *s, struct stream_facts *f)
{
	struct piece p = { s->len, s->len };
	size_t at = 0;
	int lines;

	for (lines = 0; lines < TIME_LINES && at < s->len; lines++) {
		if (!line_piece(s->data, s->len, at, 0, &p))
			break;
		f->first = time_of(s, &p);
		if (f->first.clock != CLOCK_NONE)
			break;
		at = p.end + 1;
	}
	p.start = s->len;
	for (lines = 0; lines < TIME_LINES &&
	    line_piece_before(s->data, p.start, &p); lines++) {
		f->last = time_of(s, &p);
		if (f->last.clock != CLOCK_NONE)
			break;
	}
}

void
facts_read(struct stream_facts *f, const struct stream *s)
{
	if (s->kind == STREAM_LOG)
		find_progress(s, f);
	find_times(s, f);
}

/* How long after a line the last step was completed; 0 when no one says. */
static int64_t
step_after(const struct stream_facts *f, const struct event *e)
{
	const struct line_time *step = &f->step_time;
	int64_t when, then;

	if (step->clock < CLOCK_NO_DATE || e->when.clock < CLOCK_NO_DATE)
		return 0;
	when = clock_near(&e->when, step->clock == CLOCK_DATE ? step->ns :
	    LINE_NO_TIME);
	then = clock_near(step, e->when.clock == CLOCK_DATE ? e->when.ns :
	    LINE_NO_TIME);
	return when == LINE_NO_TIME || then == LINE_NO_TIME ? 0 : then - when;
}

/* Steps behind a line say that training got over it, unless they are older: logs of
 * several ranks in one file, one behind the other.  What a scheduler says is followed
 * by some steps while ranks still hold out; many, or later ones, are another attempt
 * that writes into the same file. */
bool
facts_got_over(const struct stream_facts *f, const struct event *e)
{
	int64_t after = step_after(f, e);

	if (f->progress_before == SIZE_MAX || f->progress_before < e->start ||
	    after < -OLDER_NS)
		return false;
	return e->rule->def.source != SOURCE_SCHEDULER || after > HOLD_OUT_NS ||
	    f->progress_before > e->start + GRACE_BYTES;
}

bool
facts_loss_stays_bad(const struct stream_facts *f, const struct event *e)
{
	const struct reason *r = e->rule->reason;

	return !f->finite && r != NULL && strncmp(r->name, "loss_", 5) == 0;
}
