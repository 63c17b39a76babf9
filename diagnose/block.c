/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.c - walks Python tracebacks backwards.
 *
 * Knows the lines CPython prints: frames ("  File ...", code, ~~~^^^ marks),
 * "Traceback (most recent call last):", the two sentences that link chained
 * exceptions, "Exception ignored in", and torch's "Original Traceback".
 */
#include <ctype.h>
#include <string.h>

#include "diagnose/block.h"

#define LINES_MAX	600	/* looked at in all */
#define MESSAGE_MAX	16	/* lines of one exception's message */
#define CHAIN_MAX	12

enum shape {
	SHAPE_BLANK,
	SHAPE_FRAME,		/* "  File ...", indented code */
	SHAPE_TRACEBACK,
	SHAPE_HANDLING,		/* links two exceptions of a chain */
	SHAPE_IGNORED,
	SHAPE_OTHER
};

static bool
contains(const struct line *l, const char *text)
{
	size_t n = l->len < 400 ? l->len : 400;

	return memmem(l->text, n, text, strlen(text)) != NULL;
}

static enum shape
shape_of(const struct line *l)
{
	size_t i = 0;

	while (i < l->len && (l->text[i] == ' ' || l->text[i] == '\t'))
		i++;
	if (i == l->len)
		return SHAPE_BLANK;
	if (contains(l, "Traceback (most recent call last)"))
		return SHAPE_TRACEBACK;
	if (contains(l, "During handling of the above exception") ||
	    contains(l, "exception was the direct cause"))
		return SHAPE_HANDLING;
	if (contains(l, "Exception ignored in") ||
	    contains(l, "--- Logging error ---") ||
	    contains(l, "Error in atexit") ||
	    contains(l, "Exception in thread"))
		return contains(l, "Exception in thread") ? SHAPE_OTHER :
		    SHAPE_IGNORED;
	/* Rich draws its frames in boxes (U+2500..U+257F). */
	if (l->len - i > 2 && memcmp(l->text + i, "\xe2\x94", 2) == 0)
		return SHAPE_FRAME;
	if (l->len - i > 2 && memcmp(l->text + i, "\xe2\x95", 2) == 0)
		return SHAPE_FRAME;
	if (i >= 2 || (l->len - i > 6 && memcmp(l->text + i, "File \"", 6) == 0))
		return SHAPE_FRAME;
	return SHAPE_OTHER;
}

static void
note_frame(const struct line *l, struct block *b, bool first)
{
	static const char *const launchers[] = {
		"torch/distributed/run.py", "torch/distributed/launch",
		"torch/distributed/elastic/", "accelerate/commands/",
		"deepspeed/launcher", "runpy.py", "torch/multiprocessing/spawn.py"
	};
	size_t i;

	if (!contains(l, "File \""))
		return;
	if (contains(l, "serialization.py") || contains(l, "checkpoint")) {
		if (contains(l, "save"))
			b->saving = true;
		if (contains(l, "load"))
			b->loading = true;
	}
	if (!first)
		return;
	for (i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++)
		if (contains(l, launchers[i]))
			b->launcher = true;
}

void
block_find(const struct stream *s, const struct line_styles *styles,
    const struct event *e, struct block *out)
{
	struct piece p = { e->start, e->start };
	int lines, other = 0;
	bool linked = true, first = true;
	enum shape shape;
	struct line l;

	*out = (struct block){ .begin = e->start, .frame = SIZE_MAX };
	/* `linked`: the line read next belongs to the chain for sure; after a
	 * Traceback mark it does only if a linking sentence comes first. */
	for (lines = 0; lines < LINES_MAX && out->depth < CHAIN_MAX; lines++) {
		if (!line_piece_before(s->data, p.start, &p))
			break;
		line_parse(s->data + p.start, p.end - p.start > 1024 ? 1024 :
		    p.end - p.start, &l);
		line_styles_apply(styles, &l);
		if (l.key != e->key)
			continue;
		shape = shape_of(&l);
		if (shape == SHAPE_BLANK)
			continue;
		if (!linked) {
			if (shape == SHAPE_HANDLING) {
				out->depth++;
				linked = true;
				first = true;
				other = 0;
				out->begin = p.start;
				continue;
			}
			if (shape == SHAPE_IGNORED)
				out->ignored = true;
			/* "X: Caught X in DataLoader worker process 0." */
			if (shape == SHAPE_OTHER && contains(&l, "Caught ") &&
			    contains(&l, "worker")) {
				out->depth++;
				linked = true;
				first = true;
				other = 0;
				out->begin = p.start;
				continue;
			}
			break;
		}
		switch (shape) {
		case SHAPE_TRACEBACK:
			out->traceback = true;
			out->begin = p.start;
			linked = false;
			break;
		case SHAPE_FRAME:
			out->traceback = true;
			out->begin = p.start;
			note_frame(&l, out, first && out->depth == 0);
			if (contains(&l, "File \"")) {
				if (out->frame == SIZE_MAX)
					out->frame = p.start;
				first = false;
			}
			other = 0;
			break;
		case SHAPE_HANDLING:
			/* Excerpts lack the Traceback mark. */
			out->depth++;
			out->begin = p.start;
			first = true;
			other = 0;
			break;
		case SHAPE_IGNORED:
			out->ignored = true;
			return;
		default:
			if (++other > MESSAGE_MAX || (out->traceback && out->depth == 0
			    && !first))
				return;
			break;
		}
	}
}

/* "RuntimeError: text", "torch.cuda.OutOfMemoryError", "KeyboardInterrupt" */
static bool
is_exception(const struct line *l)
{
	size_t i = 0, last = 0;

	while (i < l->len && (isalnum((unsigned char)l->text[i]) ||
	    l->text[i] == '_' || l->text[i] == '.')) {
		if (l->text[i] == '.')
			last = i + 1;
		i++;
	}
	if (i < 4 || last >= i || !isalpha((unsigned char)l->text[0]))
		return false;
	if (!isupper((unsigned char)l->text[last]) && last == 0)
		return false;
	return i == l->len || (l->text[i] == ':' &&
	    (i + 1 == l->len || l->text[i + 1] == ' '));
}

bool
block_exception(const struct stream *s, const struct line_styles *styles,
    const struct event *mark, struct piece *out, struct line *line)
{
	size_t at = mark->start + mark->len;
	int lines;

	for (lines = 0; lines < LINES_MAX; lines++) {
		const char *nl = memchr(s->data + at, '\n', s->len - at);

		if (nl == NULL || (size_t)(nl + 1 - s->data) >= s->len)
			return false;
		at = (size_t)(nl + 1 - s->data);
		if (!line_piece(s->data, s->len, at, 0, out))
			return false;
		line_parse(s->data + out->start, out->end - out->start > 4096 ?
		    4096 : out->end - out->start, line);
		line_styles_apply(styles, line);
		if (line->key != mark->key)
			continue;
		switch (shape_of(line)) {
		case SHAPE_FRAME:
		case SHAPE_BLANK:
			continue;
		case SHAPE_OTHER:
			return is_exception(line);
		default:
			return false;
		}
	}
	return false;
}
