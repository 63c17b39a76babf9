/* SPDX-License-Identifier: Apache-2.0 */
/*
 * card.c - says in this order: what, where, proof, echoes, what else it could be,
 * what to do, what could not be read.
 *
 * Reads a verdict, whose texts come from logs and are cleaned before they are
 * shown.  Each part of the card wants some rows; when all of them do not fit, those
 * give way whose loss costs a reader least.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "diagnose/card.h"
#include "diagnose/card_text.h"

#define COLUMNS_MIN	40
#define COLUMNS_MAX	100
#define MARGIN		10	/* "| label   " */
#define BOLD		"\033[1m"
#define DIM		"\033[2m"
#define RED		"\033[1;31m"
#define YELLOW		"\033[1;33m"
#define GREEN		"\033[1;32m"
#define PLAIN		"\033[0m"

static const struct {
	const char	*label;
	size_t		 most;	/* rows */
	size_t		 least;
	const char	*colour;
} parts[PART_COUNT] = {
	[PART_WHAT] = { NULL, 3, 2, BOLD },
	[PART_WHERE] = { "where", 2, 1, NULL },
	[PART_PROOF] = { "proof", 1, 1, NULL },
	[PART_QUOTE] = { "", 3, 1, NULL },
	[PART_ECHOES] = { "echoes", 2, 1, NULL },
	[PART_OR] = { "or", 1, 0, NULL },
	[PART_SUSPECTS] = { "suspect", 3, 1, NULL },
	[PART_READ] = { "read", 1, 1, NULL },
	[PART_DO] = { "do", 2, 1, BOLD },
	[PART_ADVICE] = { "", 4, 2, NULL },
	[PART_NEXT] = { "next", 6, 3, NULL },
	[PART_UNREAD] = { "unread", 2, 1, NULL }
};

/* Who gives up a row first. */
static const enum part yields[] = {
	PART_UNREAD, PART_QUOTE, PART_SUSPECTS, PART_ADVICE, PART_ECHOES,
	PART_SUSPECTS, PART_WHERE, PART_ADVICE, PART_QUOTE, PART_WHAT, PART_DO,
	PART_OR
};

struct card {
	struct card_text text;
	size_t		 rows[PART_COUNT];
};

struct card_style
card_style_of(int fd)
{
	struct card_style s = { .columns = CARD_COLUMNS };
	const char *plain = getenv("NO_COLOR");
	struct winsize size;

	if (!isatty(fd))
		return s;
	s.colour = plain == NULL || *plain == '\0';
	if (ioctl(fd, TIOCGWINSZ, &size) == -1 || size.ws_col == 0)
		return s;
	s.columns = size.ws_col < COLUMNS_MIN ? COLUMNS_MIN :
	    size.ws_col > COLUMNS_MAX ? COLUMNS_MAX : size.ws_col;
	return s;
}

static const char *
certainty(double x)
{
	return x >= 0.9 ? "very likely" : x >= 0.7 ? "likely" :
	    x >= 0.45 ? "possible" : "a guess";
}

/* Columns for the text of a part. */
static size_t
room_of(const struct card *c, enum part part)
{
	return parts[part].label != NULL ? c->text.room :
	    c->text.room + MARGIN - 2;
}

/* Where the next row begins; *n is the length of this one. */
static size_t
next_row(const struct buf *b, size_t at, size_t room, size_t *n)
{
	*n = quote_row(b->data + at, b->len - at, room);
	for (at += *n; at < b->len && b->data[at] == ' '; at++)
		;
	return at;
}

static size_t
count_rows(const struct buf *b, size_t room)
{
	size_t rows = 0, at = 0, n;

	for (; at < b->len; rows++)
		at = next_row(b, at, room, &n);
	return rows;
}

/* Rows per part, so that frame and parts fit the card. */
static void
share_rows(struct card *c)
{
	size_t i, all = 2;
	enum part p;

	for (i = 0; i < PART_COUNT; i++) {
		c->rows[i] = count_rows(&c->text.part[i], room_of(c, i));
		if (c->rows[i] > parts[i].most)
			c->rows[i] = parts[i].most;
		all += c->rows[i];
	}
	for (i = 0; all > CARD_ROWS && i < sizeof(yields) / sizeof(yields[0]); i++) {
		p = yields[i];
		if (c->rows[p] > parts[p].least) {
			c->rows[p]--;
			all--;
		}
	}
}

/* The quoted line, cut in the middle until it fits its rows: wrapping at words
 * takes some room. */
static void
cut_quote(struct card *c)
{
	struct buf *b = &c->text.part[PART_QUOTE], cut = {0};
	size_t rows = c->rows[PART_QUOTE], columns = rows * c->text.room;

	while (rows > 0 && columns > c->text.room / 2 &&
	    count_rows(b, c->text.room) > rows) {
		buf_clear(&cut);
		if (quote_cut(b->data, b->len, &c->text.telling, columns,
		    &cut) == -1)
			break;
		columns -= 4;
		c->rows[PART_QUOTE] = count_rows(&cut, c->text.room);
		if (c->rows[PART_QUOTE] > rows)
			continue;
		buf_fini(b);
		*b = cut;
		return;
	}
	c->rows[PART_QUOTE] = rows;
	buf_fini(&cut);
}

static void
put_part(const struct card *c, enum part part, bool colour, FILE *f)
{
	const struct buf *b = &c->text.part[part];
	const char *label = parts[part].label, *paint = parts[part].colour;
	size_t row, at = 0, n, next, room = room_of(c, part);
	bool cut;

	for (row = 0; row < c->rows[part]; row++, at = next) {
		next = next_row(b, at, room, &n);
		cut = row + 1 == c->rows[part] && next < b->len;
		if (cut)
			n = quote_row(b->data + at, b->len - at, room - 4);
		if (label == NULL)
			fputs("| ", f);
		else
			fprintf(f, "| %s%-8s%s", colour ? DIM : "",
			    row == 0 ? label : "", colour ? PLAIN : "");
		fprintf(f, "%s%.*s%s%s\n", colour && paint ? paint : "", (int)n,
		    b->data + at, cut ? " ..." : "",
		    colour && paint ? PLAIN : "");
	}
}

void
card_put_rule(const char *title, const char *paint,
    const struct card_style *style, FILE *f)
{
	size_t columns = (size_t)style->columns, at, n = strlen(title);

	if (quote_columns(title, n) + 2 >= columns)
		n = quote_row(title, n, columns - 3);
	paint = style->colour && paint != NULL ? paint : "";
	fprintf(f, "+-%s%.*s%s", paint, (int)n, title, *paint ? PLAIN : "");
	for (at = quote_columns(title, n) + 2; at < columns; at++)
		fputc('-', f);
	fputc('\n', f);
}

static void
put_title(const struct verdict *v, const struct card_style *style, FILE *f)
{
	char title[160];

	switch (v->status) {
	case VERDICT_NO_ERROR:
		snprintf(title, sizeof(title), " diagnosis: no error found ");
		break;
	case VERDICT_UNDETERMINED:
		snprintf(title, sizeof(title), " diagnosis: undetermined ");
		break;
	default:
		snprintf(title, sizeof(title), " diagnosis: %.32s, %.20s - %s "
		    "(%.0f %%) ", v->reason, v->category,
		    v->status == VERDICT_SYMPTOM_ONLY ? "only an echo" :
		    certainty(v->confidence), 100 * v->confidence);
	}
	card_put_rule(title, v->status == VERDICT_NO_ERROR ? GREEN :
	    v->status == VERDICT_DIAGNOSED ? RED : YELLOW, style, f);
}

void
card_print(const struct verdict *v, const struct card_style *style, FILE *f)
{
	struct card c = { .text.room = (size_t)style->columns - MARGIN };
	enum part i;

	card_write(v, &c.text);
	share_rows(&c);
	cut_quote(&c);
	put_title(v, style, f);
	for (i = 0; i < PART_COUNT; i++)
		put_part(&c, i, style->colour, f);
	card_put_rule("", NULL, style, f);
	for (i = 0; i < PART_COUNT; i++)
		buf_fini(&c.text.part[i]);
}
