/* SPDX-License-Identifier: Apache-2.0 */
/*
 * findings_print.c - findings for people: two rows each, the first in columns.
 */
#include <inttypes.h>
#include <string.h>

#include "common/clock.h"
#include "common/text.h"
#include "diagnose/findings.h"
#include "diagnose/quote.h"
#include "diagnose/summary.h"

#define PLACE_MAX	30	/* columns */
#define PLACE_LEAST	14
#define NAME_MOST	40	/* of a rule or reason */
#define TIMES_COLUMNS	8	/* "  x1,234" */
#define ROWS_MAX	2	/* of a quoted line */
#define QUOTE_LEAST	40	/* columns of one, though the rows be more */

/* As they stand in front of a row: at most 8 characters. */
static const struct {
	const char	*word;
	const char	*colour;
} labels[] = {
	[FINDING_CAUSE] = { "cause", "\033[1;31m" },
	[FINDING_SAME] = { "same", "\033[31m" },
	[FINDING_OTHER] = { "other", "\033[33m" },
	[FINDING_ECHO] = { "echo", NULL },
	[FINDING_LATE] = { "late", NULL },
	[FINDING_PASSED] = { "passed", "\033[2m" },
	[FINDING_TEARDOWN] = { "ending", "\033[36m" },
	[FINDING_BENIGN] = { "benign", "\033[2m" },
	[FINDING_UNCLEAR] = { "unclear", "\033[33m" },
	[FINDING_CANDIDATE] = { "maybe", "\033[31m" },
	[FINDING_SYMPTOM] = { "symptom", "\033[33m" }
};

static void
add_foreign(struct buf *b, const char *kind, const char *name)
{
	if (*name == '\0')
		return;
	buf_printf(b, "%s%s", b->len > 0 ? ", " : "", kind);
	quote_clean(name, strlen(name), NULL, b);
}

/* Findings that are shown as one: they stand one behind the other and differ only
 * in where they come from. */
struct group {
	const struct finding *first;
	size_t		 members;
	uint64_t	 lines;
};

static bool
is_alike(const struct finding *a, const struct finding *b)
{
	return a->role == b->role && a->rule == b->rule && a->reason == b->reason &&
	    a->role != FINDING_CAUSE;
}

static struct group
group_at(const struct findings *list, size_t i)
{
	struct group g = { &list->list[i], 0, 0 };

	for (; i < list->count && (g.members == 0 ||
	    is_alike(g.first, &list->list[i])); i++, g.members++)
		g.lines += list->list[i].count;
	return g;
}

static void
write_place(const struct group *g, struct buf *b)
{
	const struct finding *f = g->first;

	if (g->members > 1) {
		buf_printf(b, "%zu %s", g->members,
		    f->rank >= 0 ? "ranks" : "places");
		return;
	}
	add_foreign(b, "", f->node);
	add_foreign(b, "GPU ", f->gpu);
	if (f->rank >= 0)
		buf_printf(b, "%srank %d", b->len > 0 ? ", " : "", f->rank);
}

static const char *
rule_of(const struct finding *f)
{
	return f->rule != NULL ? f->rule->def.id : "exit record";
}

static const char *
reason_of(const struct finding *f)
{
	return f->reason != NULL ? f->reason->name : "-";
}

static void
write_time(const struct finding *f, bool date, char out[CLOCK_TEXT_MAX])
{
	char text[CLOCK_TEXT_MAX];
	size_t from = date ? 5 : 11;

	out[0] = '\0';
	if (f->time_ns == LINE_NO_TIME)
		return;
	clock_format(f->time_ns, text);
	if (strlen(text) != 24)		/* a year of another length */
		return;
	text[10] = ' ';
	snprintf(out, CLOCK_TEXT_MAX, "%.*s", (int)(19 - from), text + from);
}

static int
widest(int had, size_t columns, int most)
{
	int n = columns > (size_t)most ? most : (int)columns;

	return n > had ? n : had;
}

/* Takes columns from the place until a row fits: names have to stay whole. */
static void
shrink(struct finding_widths *w, int columns)
{
	int over = 10 + w->time + 2 + w->place + 2 + w->rule + 2 + w->reason +
	    w->times - columns;

	if (over > 0 && w->place > PLACE_LEAST)
		w->place = w->place - over > PLACE_LEAST ? w->place - over :
		    PLACE_LEAST;
}

static struct finding_widths
measure(const struct findings *list)
{
	struct finding_widths w = { 0, 0, 1, 1, 0, false };
	const int64_t day = 24 * 3600 * NS_PER_S;
	int64_t first = LINE_NO_TIME;
	struct buf place = {0};
	struct group g;
	size_t i;

	for (i = 0; i < list->count; i += g.members) {
		const struct finding *f = &list->list[i];

		g = group_at(list, i);
		if (f->time_ns != LINE_NO_TIME) {
			if (first == LINE_NO_TIME)
				first = f->time_ns;
			w.date |= f->time_ns / day != first / day;
			w.time = 8;
		}
		buf_clear(&place);
		write_place(&g, &place);
		if (place.len > 0)
			w.place = widest(w.place, quote_columns(place.data,
			    place.len), PLACE_MAX);
		if (g.lines > g.members)
			w.times = TIMES_COLUMNS;
		w.rule = widest(w.rule, strlen(rule_of(f)), NAME_MOST);
		w.reason = widest(w.reason, strlen(reason_of(f)),
		    NAME_MOST);
	}
	if (w.date)
		w.time = 14;
	buf_fini(&place);
	return w;
}

/* Cuts a text or fills it up. */
static void
put_column(const char *text, size_t len, int width, FILE *f)
{
	struct buf cut = {0};
	size_t n;

	if (width == 0)
		return;
	quote_cut(text, len, NULL, (size_t)width, &cut);
	n = quote_columns(cut.data, cut.len);
	fprintf(f, "%s%*s", cut.data, n < (size_t)width ? width - (int)n + 2 : 2,
	    "");
	buf_fini(&cut);
}

static size_t
count_rows(const struct buf *b, size_t room)
{
	size_t rows = 0, at = 0;

	for (; at < b->len; rows++) {
		at += quote_row(b->data + at, b->len - at, room);
		for (; at < b->len && b->data[at] == ' '; at++)
			;
	}
	return rows;
}

/* The quoted line behind its place, cut until both fit their rows. */
static void
add_quote(struct buf *b, const struct buf *quote,
    const struct quote_span *tell, size_t room)
{
	size_t place = b->len, columns = ROWS_MAX * room;

	buf_append(b, quote->data, quote->len);
	for (; columns > QUOTE_LEAST && count_rows(b, room) > ROWS_MAX;
	    columns -= 4) {
		b->len = place;
		quote_cut(quote->data, quote->len, tell, columns, b);
	}
}

/* "rank00003.log:12: the line" */
static void
put_quote(const struct finding *fi, const struct card_style *style, bool whole,
    FILE *f)
{
	struct quote_span tell = summary_telling(fi->rule, fi->text,
	    fi->text_len);
	size_t room = (size_t)style->columns - 10, at, n;
	struct buf b = {0}, quote = {0};

	quote_clean(fi->file, strlen(fi->file), NULL, &b);
	buf_printf(&b, ":%" PRId64 ": ", fi->line);
	quote_clean(fi->text, fi->text_len, &tell, &quote);
	if (quote.len > 0 && whole)
		buf_append(&b, quote.data, quote.len);
	else if (quote.len > 0)
		add_quote(&b, &quote, &tell, room);
	for (at = 0; at < b.len; at += n) {
		for (; b.data[at] == ' '; at++)
			;
		n = whole ? b.len - at : quote_row(b.data + at, b.len - at, room);
		fprintf(f, "|         %.*s\n", (int)n, b.data + at);
	}
	buf_fini(&b);
	buf_fini(&quote);
}

static void
print_group(const struct group *g, const struct finding_widths *w,
    const struct card_style *style, bool whole, FILE *f)
{
	const struct finding *fi = g->first;
	const char *paint = style->colour ? labels[fi->role].colour : NULL;
	char when[TEXT_SPAN_MAX > CLOCK_TEXT_MAX ? TEXT_SPAN_MAX : CLOCK_TEXT_MAX];
	struct buf place = {0};

	write_time(fi, w->date, when);
	write_place(g, &place);
	fprintf(f, "| %s%-8s%s", paint ? paint : "", labels[fi->role].word,
	    paint ? "\033[0m" : "");
	put_column(when, strlen(when), w->time, f);
	put_column(place.data ? place.data : "", place.len, w->place, f);
	put_column(rule_of(fi), strlen(rule_of(fi)), w->rule, f);
	fprintf(f, "%s", reason_of(fi));
	if (g->lines > g->members) {
		text_format_count((int64_t)g->lines, when);
		fprintf(f, "%*s  x%s", w->reason > (int)strlen(reason_of(fi)) ?
		    w->reason - (int)strlen(reason_of(fi)) : 0, "", when);
	}
	fputc('\n', f);
	put_quote(fi, style, whole, f);
	buf_fini(&place);
}

void
finding_print(const struct finding *fi, const struct finding_widths *w,
    const struct card_style *style, bool whole, FILE *f)
{
	const struct group g = { fi, 1, fi->count };

	print_group(&g, w, style, whole, f);
}

void
findings_print(const struct findings *list, const struct card_style *style,
    bool whole, FILE *f)
{
	struct finding_widths w = measure(list);
	char title[80], count[TEXT_SPAN_MAX];
	struct group g;
	size_t i;

	text_format_count((int64_t)list->count, count);
	snprintf(title, sizeof(title), " %s finding%s%s ", count,
	    list->count == 1 ? "" : "s", list->count > 1 ? ", by time" : "");
	card_put_rule(title, NULL, style, f);
	shrink(&w, style->columns);
	for (i = 0; i < list->count; i += g.members) {
		g = group_at(list, i);
		print_group(&g, &w, style, whole, f);
	}
	if (list->unlisted > 0) {
		text_format_count((int64_t)list->unlisted, count);
		fprintf(f, "| and %s more lines of these rules\n", count);
	}
	card_put_rule("", NULL, style, f);
}
