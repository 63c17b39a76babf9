/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.c - walks Python tracebacks backwards.
 *
 * Knows the lines CPython prints: frames ("  File ...", code, ~~~^^^ marks),
 * "Traceback (most recent call last):", the two sentences that link chained
 * exceptions, the separators in a group of exceptions, "Exception ignored in", and
 * torch's "Original Traceback"; and what rich, IPython and loguru make of them.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/block.h"

#define LINES_MAX	600	/* looked at in all */
#define MESSAGE_MAX	16	/* lines of one exception's message */
#define CHAIN_MAX	12
#define FRAME_WITHIN	12	/* lines, behind the mark of a traceback */

enum shape {
	SHAPE_BLANK,
	SHAPE_FRAME,		/* "  File ...", indented code */
	SHAPE_TRACEBACK,
	SHAPE_LINK,		/* between two exceptions of a chain or group */
	SHAPE_IGNORED,
	SHAPE_OTHER
};

static bool
contains(const struct line *l, const char *text)
{
	size_t n = l->len < 400 ? l->len : 400;

	return memmem(l->text, n, text, strlen(text)) != NULL;
}

static bool
begins(const struct line *l, size_t i, const char *text)
{
	size_t n = strlen(text);

	return l->len - i >= n && memcmp(l->text + i, text, n) == 0;
}

/* Frames as rich, IPython and loguru draw them, from the first character on. */
static bool
is_drawn(const struct line *l, size_t i)
{
	static const char *const starts[] = {
		"\xe2\x94", "\xe2\x95",	/* boxes: U+2500 to U+257F */
		"> File \"", "----> ", "---> ", "Cell In[", "Input In [",
		"<ipython-input-", "File ~", "File /"
	};
	size_t k, n = l->len;

	for (k = 0; k < sizeof(starts) / sizeof(starts[0]); k++)
		if (begins(l, i, starts[k]))
			return true;
	while (n > i && isspace((unsigned char)l->text[n - 1]))
		n--;
	/* rich without Unicode; IPython's "~/t.py in f(x)" */
	if (n - i > 2 && ((l->text[i] == '|' && l->text[n - 1] == '|') ||
	    (l->text[i] == '+' && l->text[n - 1] == '+')))
		return true;
	return (l->text[i] == '~' || l->text[i] == '/') &&
	    contains(l, ".py in ");
}

static enum shape
shape_of(const struct line *l)
{
	size_t i = 0;

	while (i < l->len && (l->text[i] == ' ' || l->text[i] == '\t' ||
	    l->text[i] == '\r'))
		i++;
	if (i == l->len)
		return SHAPE_BLANK;
	if (contains(l, "Traceback (most recent call last)"))
		return SHAPE_TRACEBACK;
	if (contains(l, "During handling of the above exception") ||
	    contains(l, "exception was the direct cause") ||
	    contains(l, " terminated with the following error:"))
		return SHAPE_LINK;
	/* Between the members of an exception group. */
	if (begins(l, i, "+-+---") || begins(l, i, "+-----"))
		return l->text[l->len - 1] == '+' ? SHAPE_FRAME : SHAPE_LINK;
	if (contains(l, "Exception ignored in") ||
	    contains(l, "--- Logging error ---") ||
	    contains(l, "Error in atexit"))
		return SHAPE_IGNORED;
	if (contains(l, "Exception in thread"))
		return SHAPE_OTHER;
	if (i >= 2 || begins(l, i, "File \"") || is_drawn(l, i))
		return SHAPE_FRAME;
	return SHAPE_OTHER;
}

/* "  File ...", or what stands for it elsewhere; not the lines of code below. */
static bool
is_place(const struct line *l)
{
	size_t i = 0;

	while (i < l->len && (l->text[i] == ' ' || l->text[i] == '\t'))
		i++;
	return begins(l, i, "File \"") || (i < 2 && is_drawn(l, i));
}

/* What is remembered of a line beside its shape. */
enum {
	MARK_FILE = 1,		/* a frame with a file */
	MARK_SAVING = 2,	/* ... of saving a checkpoint */
	MARK_LOADING = 4,
	MARK_CAUGHT = 8		/* "X: Caught X in DataLoader worker process 0." */
};

static int
marks_of(const struct line *l, enum shape shape)
{
	int marks = 0;

	if (shape == SHAPE_OTHER && contains(l, "Caught ") &&
	    contains(l, "worker"))
		return MARK_CAUGHT;
	if (shape != SHAPE_FRAME || !contains(l, "File \""))
		return 0;
	marks = MARK_FILE;
	if (!contains(l, "serialization.py") && !contains(l, "checkpoint"))
		return marks;
	if (contains(l, "save"))
		marks |= MARK_SAVING;
	if (contains(l, "load"))
		marks |= MARK_LOADING;
	return marks;
}

/* One line that was looked at. */
struct block_line {
	size_t		 behind;	/* where it was looked back from, 0 empty */
	size_t		 start;
	uint64_t	 key;
	uint32_t	 stream;
	uint8_t		 shape;
	uint8_t		 marks;
};

/* Lines that lie close together in a stream have slots of their own, as long as
 * they have SLOT_BYTES: LINES_MAX lines of 200 bytes. */
#define SLOTS		16384
#define SLOT_BYTES	8

struct block_lines {
	struct block_line list[SLOTS];
};

struct block_lines *
block_lines_new(void)
{
	return calloc(1, sizeof(struct block_lines));
}

void
block_lines_free(struct block_lines *lines)
{
	free(lines);
}

/* The line before an offset where a line starts; NULL when there is none. */
static const struct block_line *
line_before(struct block_lines *lines, const struct stream *s, uint32_t stream,
    const struct line_styles *styles, size_t behind)
{
	struct block_line *b = &lines->list[behind / SLOT_BYTES % SLOTS];
	struct piece p;
	struct line l;

	if (behind == 0 || (b->behind == behind && b->stream == stream))
		return behind == 0 ? NULL : b;
	if (!line_piece_before(s->data, behind, &p))
		return NULL;
	line_parse(s->data + p.start, p.end - p.start > 1024 ? 1024 :
	    p.end - p.start, &l);
	line_styles_apply(styles, &l);
	b->behind = behind;
	b->start = p.start;
	b->key = l.key;
	b->stream = stream;
	b->shape = (uint8_t)shape_of(&l);
	b->marks = (uint8_t)marks_of(&l, b->shape);
	return b;
}

/* On the way back from an event. */
struct walk {
	struct block	*out;
	int		 other;		/* lines of a message in a row */
	bool		 first;		/* no frame of this exception yet */
	/* The line read next belongs to the chain for sure; after a Traceback
	 * mark it does only if a linking sentence comes first. */
	bool		 linked;
};

static void
walk_link(struct walk *w, const struct block_line *l)
{
	w->out->depth++;
	w->out->begin = l->start;
	w->linked = w->first = true;
	w->other = 0;
}

static void
walk_frame(struct walk *w, const struct block_line *l)
{
	w->out->traceback = true;
	w->out->begin = l->start;
	w->out->saving |= (l->marks & MARK_SAVING) != 0;
	w->out->loading |= (l->marks & MARK_LOADING) != 0;
	if (l->marks & MARK_FILE) {
		if (w->out->frame == SIZE_MAX)
			w->out->frame = l->start;
		w->first = false;
	}
	w->other = 0;
}

/* Takes a line in; false where the chain ends. */
static bool
walk_line(struct walk *w, const struct block_line *l)
{
	struct block *out = w->out;

	if (!w->linked) {
		if (l->shape == SHAPE_IGNORED)
			out->ignored = true;
		if (l->shape != SHAPE_LINK && !(l->marks & MARK_CAUGHT))
			return false;
		walk_link(w, l);
		return true;
	}
	switch (l->shape) {
	case SHAPE_TRACEBACK:
		out->traceback = true;
		out->begin = l->start;
		w->linked = false;
		return true;
	case SHAPE_FRAME:
		walk_frame(w, l);
		return true;
	case SHAPE_LINK:
		walk_link(w, l);	/* excerpts lack the Traceback mark */
		return true;
	case SHAPE_IGNORED:
		out->ignored = true;
		return false;
	default:
		return ++w->other <= MESSAGE_MAX &&
		    (!out->traceback || out->depth > 0 || w->first);
	}
}

void
block_find(struct block_lines *seen, const struct stream *s,
    const struct line_styles *styles, const struct event *e, struct block *out)
{
	struct walk w = { .out = out, .first = true, .linked = true };
	const struct block_line *l;
	size_t at = e->start;
	int lines;

	*out = (struct block){ .begin = e->start, .frame = SIZE_MAX };
	for (lines = 0; lines < LINES_MAX && out->depth < CHAIN_MAX; lines++) {
		if ((l = line_before(seen, s, e->stream, styles, at)) == NULL)
			return;
		at = l->start;
		if (l->key == e->key && l->shape != SHAPE_BLANK &&
		    !walk_line(&w, l))
			return;
	}
}

/* "RuntimeError: text", "torch.cuda.OutOfMemoryError", "KeyboardInterrupt" */
static bool
is_exception(const struct line *l)
{
	static const char *const ends[] = {
		"Error", "Exception", "Interrupt", "Exit", "Failure", "Fault",
		"Timeout", "Iteration", "Abort", "Warning", "Cancelled"
	};
	size_t i = 0, last = 0, k, n;
	bool lower = false;

	while (i < l->len && (isalnum((unsigned char)l->text[i]) ||
	    l->text[i] == '_' || l->text[i] == '.')) {
		lower |= islower((unsigned char)l->text[i]) != 0;
		if (l->text[i] == '.')
			last = i + 1;
		i++;
	}
	if (i < 4 || last >= i || !isalpha((unsigned char)l->text[0]) || !lower)
		return false;
	if (!isupper((unsigned char)l->text[last]) && last == 0)
		return false;
	if (i < l->len && l->text[i] == ':')
		return i + 1 == l->len || l->text[i + 1] == ' ';
	for (k = 0; i == l->len && k < sizeof(ends) / sizeof(ends[0]); k++) {
		n = strlen(ends[k]);
		if (i - last >= n && memcmp(l->text + i - n, ends[k], n) == 0)
			return true;
	}
	return false;
}

/* What holds exceptions is none itself: a group, and "Exception:" alone, by which
 * torch.multiprocessing passes on that of a process. */
static bool
is_holder(const struct line *l)
{
	return begins(l, 0, "ExceptionGroup: ") ||
	    begins(l, 0, "BaseExceptionGroup: ") ||
	    (begins(l, 0, "Exception:") && l->len < 12);
}

/* The next line of the mark's writer; false at the end of the stream. */
static bool
next_line(const struct stream *s, const struct line_styles *styles,
    const struct event *mark, size_t *at, struct piece *out, struct line *line)
{
	int lines;

	for (lines = 0; lines < LINES_MAX; lines++) {
		const char *nl = memchr(s->data + *at, '\n', s->len - *at);

		if (nl == NULL || (size_t)(nl + 1 - s->data) >= s->len)
			return false;
		*at = (size_t)(nl + 1 - s->data);
		if (!line_piece(s->data, s->len, *at, 0, out))
			return false;
		line_parse(s->data + out->start, out->end - out->start > 4096 ?
		    4096 : out->end - out->start, line);
		line_styles_apply(styles, line);
		if (line->key == mark->key)
			return true;
	}
	return false;
}

bool
block_is_real(const struct stream *s, const struct line_styles *styles,
    const struct event *mark)
{
	static const char words[] = "Traceback (most recent call last)";
	const char *at = memmem(s->data + mark->start, mark->len, words,
	    sizeof(words) - 1);
	size_t from = mark->start + mark->len;
	struct piece p;
	struct line line;
	int lines = 0;

	/* Quoted, in source or documentation. */
	if (at != NULL && at > s->data + mark->start &&
	    strchr("\"'`\t", at[-1]) != NULL)
		return false;
	while (lines < FRAME_WITHIN &&
	    next_line(s, styles, mark, &from, &p, &line)) {
		enum shape shape = shape_of(&line);

		if (shape == SHAPE_BLANK)
			continue;
		if (is_place(&line))
			return true;
		lines++;
	}
	/* The log ends with the mark. */
	return lines == 0;
}

bool
block_exception(const struct stream *s, const struct line_styles *styles,
    const struct event *mark, struct piece *out, struct line *line)
{
	size_t at = mark->start + mark->len;

	while (next_line(s, styles, mark, &at, out, line))
		switch (shape_of(line)) {
		case SHAPE_FRAME:
		case SHAPE_BLANK:
			continue;
		case SHAPE_OTHER:
			return is_exception(line) && !is_holder(line);
		default:
			return false;
		}
	return false;
}
