/* SPDX-License-Identifier: Apache-2.0 */
/*
 * findings.c - lists what the rules found, each with its part in the case.
 *
 * Reads the events and candidates of a case whose cause is chosen.  Lines that
 * repeat each other are one entry.  Lines without a time of their own take that of
 * the last line before them that has one, so that streams can be laid side by side;
 * a stream without any times comes behind the others.
 */
#include <stdlib.h>
#include <string.h>

#include "diagnose/clock.h"
#include "diagnose/confirm.h"
#include "diagnose/findings.h"
#include "diagnose/summary.h"

#define TEXT_MAX	600	/* of a quoted line, as in the verdict */
#define BACK_LINES	48	/* looked at for a time before a line */
#define BACK_BYTES	(64u << 10)

static const char *const role_names[] = {
	"cause", "same", "other", "echo", "late", "passed", "teardown", "benign",
	"unclear", "candidate", "symptom"
};

const char *
finding_role_name(enum finding_role r)
{
	return role_names[r];
}

/* A line on its way to become a finding. */
struct place {
	const struct event *event;
	const struct cause *cause;	/* NULL: no candidate */
	enum finding_role role;
	int64_t		 time_ns;
	uint64_t	 count;
};

struct place_list {
	struct place	*list;
	size_t		 count;
	const struct case_file *c;
	const struct cause *w;
	const struct rule *only;
	struct clock_near near;
	const struct cause **sorted;	/* candidates by stream and position */
};

static int
by_position(const void *a, const void *b)
{
	const struct cause *const *p = a, *const *q = b;
	const struct event *x = &(*p)->event, *y = &(*q)->event;

	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static const struct cause *
find_cause(const struct place_list *l, const struct event *e)
{
	const struct cause key = { .event = *e }, *at = &key;
	const struct cause **found;

	found = bsearch(&at, l->sorted, l->c->count, sizeof(*l->sorted),
	    by_position);
	return found != NULL && (*found)->event.rule == e->rule ? *found : NULL;
}

static enum finding_role
role_of_cause(const struct place_list *l, const struct cause *a)
{
	if (a == l->w)
		return FINDING_CAUSE;
	if (a->reason == l->w->reason && !a->late && !a->exit)
		return FINDING_SAME;
	if (a->exit || summary_is_echo(a, l->w))
		return a->late && !a->echo ? FINDING_LATE : FINDING_ECHO;
	return a->late ? FINDING_LATE : FINDING_OTHER;
}

/* Of lines that became no candidate; false when they are no finding at all. */
static bool
role_of_event(const struct place_list *l, const struct event *e,
    enum finding_role *role)
{
	const struct stream_facts *f = &l->c->facts[e->stream];

	switch (e->rule->def.role) {
	case ROLE_TEARDOWN:
		*role = FINDING_TEARDOWN;
		return true;
	case ROLE_BENIGN:
		*role = FINDING_BENIGN;
		return true;
	case ROLE_CONTEXT:
		*role = FINDING_UNCLEAR;
		return l->w == NULL && strcmp(e->rule->def.id, "traceback") == 0;
	default:
		*role = (f->progress_before != SIZE_MAX &&
		    f->progress_before > e->start) ||
		    confirm_got_over_later(l->c, e) ? FINDING_PASSED :
		    FINDING_BENIGN;
		return e->rule->reason != NULL;
	}
}

static void
add_place(struct place_list *l, const struct event *e, const struct cause *a,
    enum finding_role role)
{
	if (l->only == NULL || e->rule == l->only)
		l->list[l->count++] = (struct place){ e, a, role,
		    a != NULL ? a->time_ns : clock_time(&l->near, l->c,
		    e->stream, &e->when), 1 };
}

static int
gather(struct place_list *l, struct err *err)
{
	const struct case_file *c = l->c;
	const struct cause *a;
	enum finding_role role;
	size_t i;

	l->list = calloc(c->events.count + c->count + 1, sizeof(*l->list));
	l->sorted = calloc(c->count + 1, sizeof(*l->sorted));
	if (l->list == NULL || l->sorted == NULL)
		return err_memory(err);
	for (i = 0; i < c->count; i++)
		l->sorted[i] = &c->causes[i];
	qsort(l->sorted, c->count, sizeof(*l->sorted), by_position);
	for (i = 0; i < c->events.count; i++) {
		const struct event *e = &c->events.list[i];

		if ((a = find_cause(l, e)) != NULL)
			add_place(l, &a->event, a, role_of_cause(l, a));
		else if (role_of_event(l, e, &role))
			add_place(l, e, NULL, role);
	}
	/* Those that no rule of the set found. */
	for (i = 0; i < c->count; i++) {
		a = &c->causes[i];
		if (a->event.rule < c->set->rules ||
		    a->event.rule >= c->set->rules + c->set->count)
			add_place(l, &a->event, a, role_of_cause(l, a));
	}
	return 0;
}

static int
compare(size_t a, size_t b)
{
	return a < b ? -1 : a > b;
}

/* Repeated ones side by side. */
static int
by_kind(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int d;

	if ((d = compare(x->event->stream, y->event->stream)) != 0 ||
	    (d = strcmp(x->event->rule->def.id, y->event->rule->def.id)) != 0 ||
	    (d = (x->event->rank > y->event->rank) -
	    (x->event->rank < y->event->rank)) != 0 ||
	    (d = (int)x->role - (int)y->role) != 0)
		return d;
	return compare(x->event->start, y->event->start);
}

static void
fold_repeated(struct place_list *l)
{
	size_t i, n = 0;

	if (l->count == 0)
		return;
	qsort(l->list, l->count, sizeof(*l->list), by_kind);
	for (i = 1; i < l->count; i++) {
		struct place *p = &l->list[n], *q = &l->list[i];

		if (p->event->stream == q->event->stream &&
		    p->event->rule == q->event->rule &&
		    p->event->rank == q->event->rank && p->role == q->role)
			p->count += q->count;
		else
			l->list[++n] = *q;
	}
	l->count = n + 1;
}

static int
by_stream(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int d = compare(x->event->stream, y->event->stream);

	return d != 0 ? d : compare(x->event->start, y->event->start);
}

/* The time of the nearest line before one. */
static int64_t
time_before(const struct place_list *l, const struct event *e)
{
	const struct stream *s = &l->c->feed->streams[e->stream];
	struct piece p = { e->start, e->start };
	struct line line;
	int i;

	for (i = 0; i < BACK_LINES && p.start > 0 &&
	    e->start - p.start < BACK_BYTES; i++) {
		if (!line_piece_before(s->data, p.start, &p))
			break;
		line_parse(s->data + p.start,
		    p.end - p.start > 512 ? 512 : p.end - p.start, &line);
		if (line.when.clock != CLOCK_NONE)
			return clock_time(&l->near, l->c, e->stream, &line.when);
	}
	return LINE_NO_TIME;
}

/* Gives times to those without one, rising along each stream. */
static void
set_times(struct place_list *l)
{
	int64_t last = LINE_NO_TIME;
	size_t i, k;

	qsort(l->list, l->count, sizeof(*l->list), by_stream);
	for (i = 0; i < l->count; i++) {
		struct place *p = &l->list[i];
		const struct stream *s = &l->c->feed->streams[p->event->stream];

		if (i == 0 || p->event->stream != p[-1].event->stream)
			last = LINE_NO_TIME;
		if (p->time_ns == LINE_NO_TIME && s->kind != STREAM_EXITS)
			p->time_ns = time_before(l, p->event);
		if (p->time_ns < last)
			p->time_ns = last;
		/* The first time of a stream also counts for what is before. */
		for (k = i; last == LINE_NO_TIME && k > 0 &&
		    p->time_ns != LINE_NO_TIME &&
		    l->list[k - 1].event->stream == p->event->stream; k--)
			l->list[k - 1].time_ns = p->time_ns;
		last = p->time_ns;
	}
}

static int
by_time(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if ((x->time_ns == LINE_NO_TIME) != (y->time_ns == LINE_NO_TIME))
		return x->time_ns == LINE_NO_TIME ? 1 : -1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return by_stream(a, b);
}

static int
fill_one(struct finding *f, const struct place_list *l, const struct place *p,
    struct err *err)
{
	struct stream *s = &l->c->feed->streams[p->event->stream];
	const struct event *e = p->event;
	size_t len = e->len > TEXT_MAX ? TEXT_MAX : e->len;

	*f = (struct finding){ .role = p->role, .time_ns = p->time_ns,
	    .file = s->name, .count = p->count, .rank = e->rank,
	    .line = (int64_t)stream_line(s, e->start),
	    .rule = p->cause != NULL && p->cause->exit ? NULL : e->rule,
	    .reason = p->cause != NULL ? p->cause->reason : e->rule->reason };
	memcpy(f->node, e->node, sizeof(f->node));
	memcpy(f->gpu, e->gpu, sizeof(f->gpu));
	if (f->node[0] == '\0' && s->node != NULL &&
	    strlen(s->node) < sizeof(f->node))
		memcpy(f->node, s->node, strlen(s->node) + 1);
	if (f->rank == -1)
		f->rank = s->rank;
	if ((f->text = malloc(len + 1)) == NULL)
		return err_memory(err);
	f->text_len = line_strip_ansi(s->data + e->start, len, f->text);
	stream_release(s, e->start, e->start + len);
	return 0;
}

/* Which of them are listed when there are too many: the first ones, and the
 * cause. */
static size_t
choose(struct place_list *l)
{
	size_t i;

	if (l->count <= FINDINGS_MAX)
		return l->count;
	for (i = FINDINGS_MAX; i < l->count; i++)
		if (l->list[i].role == FINDING_CAUSE) {
			struct place cause = l->list[i];

			l->list[i] = l->list[FINDINGS_MAX - 1];
			l->list[FINDINGS_MAX - 1] = cause;
		}
	return FINDINGS_MAX;
}

/* Lines of loud rules that neither the list nor the events hold. */
static uint64_t
count_unlisted(const struct place_list *l, size_t listed)
{
	const struct events *ev = &l->c->events;
	uint64_t all = 0;
	size_t i;

	for (i = 0; ev->matched != NULL && i < l->c->set->count; i++)
		all += ev->matched[i];
	all = all > ev->count ? all - ev->count : 0;
	for (i = listed; i < l->count; i++)
		all += l->list[i].count;
	return all;
}

int
findings_fill(struct findings *out, const struct case_file *c,
    const struct cause *w, struct err *err)
{
	struct place_list l = { .c = c, .w = w, .only = out->only };
	size_t i, n;
	int rc = -1;

	clock_near_init(&l.near, c);
	if (gather(&l, err) == -1)
		goto out;
	if (out->only == NULL) {
		set_times(&l);
		fold_repeated(&l);
	}
	qsort(l.list, l.count, sizeof(*l.list), by_time);
	n = choose(&l);
	out->unlisted = count_unlisted(&l, n);
	if ((out->list = calloc(n + 1, sizeof(*out->list))) == NULL) {
		err_memory(err);
		goto out;
	}
	for (i = 0; i < n; i++) {
		if (fill_one(&out->list[i], &l, &l.list[i], err) == -1)
			goto out;
		out->count++;
	}
	rc = 0;
out:
	free(l.list);
	free(l.sorted);
	return rc;
}

void
findings_fini(struct findings *f)
{
	size_t i;

	for (i = 0; i < f->count; i++)
		free(f->list[i].text);
	free(f->list);
	memset(f, 0, sizeof(*f));
}
