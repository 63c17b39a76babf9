/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefix_log.c - prefixes that loggers of programs put in front of lines.
 *
 * glog and absl, Python's logging in its usual formats, loguru, rich, Hydra,
 * Hugging Face, NeMo, MMEngine, DeepSpeed, fairseq, Composer, vLLM, log4j, XLA.
 */
#include <ctype.h>
#include <string.h>

#include "diagnose/prefix.h"
#include "diagnose/time_text.h"

/* glog: "[E909 09:55:46.996672294 ProcessGroupNCCL.cpp:1709] ",
 * "E0227 17:39:41.510000 293816 site-packages/x.py:732] ", "[W socket.cpp:401] ",
 * with the year as "E20260227". */
static bool
glog_time(struct cursor *c, size_t *n, size_t count, int v)
{
	struct line_time when;
	int month, day, year = 0;
	size_t k;

	if (count == 8) {
		year = v / 10000;
		v %= 10000;
	}
	if (!time_read_month_day(v, &month, &day))
		return false;
	k = time_read_clock(c->p + *n, left(c) - *n, &when);
	if (k == 0)
		return false;
	when.ns += time_of_date(year, month, day);
	when.clock = year ? CLOCK_DATE : CLOCK_NO_YEAR;
	prefix_set_time(c, &when);
	*n += k;
	return true;
}

size_t
prefix_glog(struct cursor *c)
{
	size_t open = left(c) > 0 && *c->p == '[', n = open;
	const char *close;
	char level;
	size_t k;
	int v;

	if (left(c) < open + 8 || strchr("IWEFC", c->p[n]) == NULL)
		return 0;
	level = c->p[n++];
	k = digits(c->p + n, c->end, &v);
	if ((k > 4 && k != 8) || (k == 0 && !open && c->p != c->timed))
		return 0;
	n += k;
	if (n >= left(c) || c->p[n] != ' ')
		return 0;
	n++;
	if (k > 0 && !glog_time(c, &n, k, v))
		return 0;
	close = memchr(c->p + n, ']', left(c) - n < 240 ? left(c) - n : 240);
	if (close == NULL || memchr(c->p + n, ':', (size_t)(close - c->p) - n) == NULL)
		return 0;
	c->out->level = level == 'I' ? LEVEL_INFO : level == 'W' ? LEVEL_WARN :
	    LEVEL_ERROR;
	n = one_space(c, (size_t)(close + 1 - c->p));
	/* "[0/0] " of torch._inductor is part of the text; "[c10d] " goes. */
	if (has_at(c, n, "[c10d] "))
		n += 7;
	return n;
}

struct level_word {
	const char	*word;
	enum line_level	 level;
};

static const struct level_word levels[] = {
	{ "ERROR", LEVEL_ERROR }, { "CRITICAL", LEVEL_ERROR },
	{ "FATAL", LEVEL_ERROR }, { "WARNING", LEVEL_WARN },
	{ "WARN", LEVEL_WARN }, { "INFO", LEVEL_INFO },
	{ "DEBUG", LEVEL_INFO }, { "TRACE", LEVEL_INFO }, { NULL, LEVEL_NONE }
};

static const struct level_word *
level_at(const struct cursor *c, size_t n)
{
	const struct level_word *w;

	for (w = levels; w->word != NULL; w++)
		if (has_at(c, n, w->word))
			return w;
	return NULL;
}

/* The name of a source file with its line: "train.py:12", "mod:func:12", with what
 * stands around its end; 0 when there is none. */
static size_t
location(const struct cursor *c, size_t n, const char *end)
{
	size_t from = n, k;
	int colons = 0, line;
	bool digit = false;

	if (n >= left(c) || isdigit((unsigned char)c->p[n]))
		return 0;
	while ((k = prefix_word(c, n, "._-/<>")) > 0) {
		digit = digits(c->p + n, c->end, &line) == k;
		n += k;
		if (n < left(c) && c->p[n] == ':') {
			colons++;
			n++;
			continue;
		}
		break;
	}
	if (n == from || n - from > 200 || colons == 0)
		return 0;
	if (!digit && colons < 2)
		return 0;
	return has_at(c, n, end) ? n + strlen(end) - from : 0;
}

/* "[file.py:12] ", "[file.py:12:func] ", and behind a time or a level "file.py:12] ",
 * "file.py:12 in func -- " (InternEvo), "mod:func:12 - " (loguru). */
size_t
prefix_location(struct cursor *c)
{
	bool after = c->out->when.clock != CLOCK_NONE ||
	    c->out->level != LEVEL_NONE;
	const char *dashes;
	size_t n;

	if (left(c) < 5)
		return 0;
	if (*c->p == '[') {
		n = location(c, 1, "] ");
		if (n == 0 || memchr(c->p, '.', n) == NULL)
			return 0;
		return has_at(c, n + 1, "- ") ? n + 3 : n + 1;
	}
	if (!after || !isalpha((unsigned char)*c->p))
		return 0;
	if ((n = location(c, 0, "] ")) > 0 || (n = location(c, 0, " - ")) > 0)
		return n;
	if ((n = location(c, 0, " in ")) == 0)
		return 0;
	dashes = memmem(c->p, left(c) < 200 ? left(c) : 200, " -- ", 4);
	return dashes ? (size_t)(dashes + 4 - c->p) : 0;
}

/* NeMo: "[NeMo E 2026-01-31 03:12:41 module:123] ", with "rank:3" in it or not. */
size_t
prefix_nemo(struct cursor *c)
{
	struct line_time when;
	const char *close, *p;
	int v;

	if (!has(c, "[NeMo ") || left(c) < 30)
		return 0;
	close = memchr(c->p, ']', left(c) < 160 ? left(c) : 160);
	if (close == NULL || time_read(c->p + 8, (size_t)(close - c->p) - 8,
	    &when) == 0)
		return 0;
	prefix_set_time(c, &when);
	c->out->level = c->p[6] == 'E' || c->p[6] == 'C' ? LEVEL_ERROR :
	    c->p[6] == 'W' ? LEVEL_WARN : LEVEL_INFO;
	p = prefix_behind(c, (size_t)(close - c->p), "rank:");
	if (p != NULL && digits(p, close, &v) > 0)
		prefix_set_rank(c, v);
	return one_space(c, (size_t)(close + 1 - c->p));
}

/* "[ERROR|trainer.py:123] 2026-01-31 03:12:41,438 >> ", "[ERROR:swift] " */
static size_t
bracket_level(struct cursor *c, size_t n)
{
	struct line_time when;
	const char *close;
	size_t k;

	close = memchr(c->p + n, ']', left(c) - n < 120 ? left(c) - n : 120);
	if (close == NULL)
		return 0;
	n = one_space(c, (size_t)(close + 1 - c->p));
	k = time_read(c->p + n, left(c) - n, &when);
	if (k > 0 && has_at(c, n + k, " >> ")) {
		prefix_set_time(c, &when);
		n += k + 4;
	}
	return n;
}

/* Level words: "[ERROR] ", "ERROR:name:", "ERROR name: ", "ERROR    | mod:f:1 - ".
 * Only levels of errors are taken off: a warning keeps its word, so that a rule
 * for an exception does not take a logged one for a raised one. */
size_t
prefix_level(struct cursor *c)
{
	size_t open = left(c) > 0 && *c->p == '[', n = open, k;
	const struct level_word *w;

	if (left(c) == 0)
		return 0;
	if (open || *c->p == ' ')
		n = spaces(c, n);
	if (n > 40 || (!open && n > 0 && n < 8) || n >= left(c) ||
	    !isupper((unsigned char)c->p[n]) || (w = level_at(c, n)) == NULL)
		return 0;
	n += strlen(w->word);
	if (n >= left(c))
		return 0;
	if (open && (c->p[n] == '|' || c->p[n] == ':')) {
		if (c->out->level == LEVEL_NONE)
			c->out->level = w->level;
		return w->level == LEVEL_ERROR ? bracket_level(c, n) : 0;
	}
	if (open && c->p[n++] != ']')
		return 0;
	if (!open && c->p[n] != ':' && c->p[n] != ' ' && c->p[n] != '\t')
		return 0;
	if (c->out->level == LEVEL_NONE)
		c->out->level = w->level;
	if (w->level != LEVEL_ERROR)
		return 0;
	if (!open && c->p[n] == ':' && n + 1 < left(c) && c->p[n + 1] != ' ') {
		/* logging.basicConfig: "ERROR:logger.name:text" */
		k = n + 1 + prefix_word(c, n + 1, "._-");
		if (k < left(c) && k > n + 1 && c->p[k] == ':' &&
		    islower((unsigned char)c->p[n + 1]))
			return k + 1;
	}
	if (n < left(c) && c->p[n] == ':')
		n++;
	n = spaces(c, n);
	if (left(c) - n > 2 && (has_at(c, n, "| ") || has_at(c, n, "- ")))
		n += 2;
	return n;
}

/* A dotted name: of a logger, not of an exception ("ValueError: x"). */
static bool
is_logger(const struct cursor *c, size_t n)
{
	const char *dot = memrchr(c->p, '.', n);

	return dot != NULL && dot + 1 < c->p + n &&
	    islower((unsigned char)dot[1]);
}

/* "torch.distributed.elastic.multiprocessing.api: " or "name - " between a time
 * and a level; "[main] " of log4j's thread; "name | ", "a.b: " behind a level. */
size_t
prefix_logger(struct cursor *c)
{
	size_t open = left(c) > 0 && *c->p == '[', n, k;

	if (c->out->when.clock == CLOCK_NONE || left(c) < 4 ||
	    !isalpha((unsigned char)c->p[open]))
		return 0;
	n = open + prefix_word(c, open, "._-");
	if (n == open || n > 100 || n >= left(c))
		return 0;
	if (open && c->p[n++] != ']')
		return 0;
	k = n;
	if (k < left(c) && c->p[k] == ':')
		k++;
	while (k < left(c) && (c->p[k] == ' ' || c->p[k] == '-' || c->p[k] == '|'))
		k++;
	if (k == n && !(open && has_at(c, k, "[")))
		return 0;
	if (level_at(c, k + (k < left(c) && c->p[k] == '[')) != NULL)
		return k;
	if (c->out->level != LEVEL_ERROR || k >= left(c))
		return 0;
	/* Behind the level. */
	if (open)
		return k;
	return has_at(c, n, " | ") || has_at(c, n, " - ") ||
	    (is_logger(c, n) && has_at(c, n, ": ")) ? k : 0;
}
