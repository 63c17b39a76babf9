/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.h - what stands in front of the text of a log line: rank, node, time,
 * level.
 *
 * Launchers, log collectors and loggers put prefixes in front of a line, often
 * several.  They are taken off one by one, nothing is copied.
 */
#ifndef HOLDFAST_DIAGNOSE_LINE_H
#define HOLDFAST_DIAGNOSE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_NO_TIME	INT64_MIN

enum line_level { LEVEL_NONE, LEVEL_INFO, LEVEL_WARN, LEVEL_ERROR };

/* What a printed time says. */
enum line_clock {
	CLOCK_NONE,
	CLOCK_BOOT,		/* since the kernel started */
	CLOCK_NO_DATE,		/* since midnight */
	CLOCK_NO_YEAR,		/* since the beginning of a leap year */
	CLOCK_DATE		/* since 1970 */
};

struct line_time {
	int64_t		 ns;
	enum line_clock	 clock;
	bool		 zoned;		/* in UTC; else as printed, read as UTC */
};

struct line {
	const char	*text;		/* behind the prefixes, in the given bytes */
	size_t		 len;
	int		 rank;		/* global rank, -1 unknown */
	int		 local_rank;	/* -1 unknown */
	int		 task;		/* srun's label, -1 none */
	bool		 rank_is_task;	/* no other prefix told the rank */
	const char	*node;		/* NULL unknown */
	size_t		 node_len;
	int		 device;	/* index of the GPU, -1 unknown */
	int		 pid;		/* -1 unknown */
	int64_t		 time_ns;	/* of a whole date, LINE_NO_TIME unknown */
	struct line_time when;
	enum line_level	 level;
	uint64_t	 key;		/* same key, same writer; 0 unknown */
	bool		 ours;		/* a line of Holdfast's own output */
};

/* Takes the prefixes off one line (without its newline). */
void	line_parse(const char *data, size_t len, struct line *out);

/* Prefixes no reader knows, learnt from what stands before a "Traceback (most
 * recent call last)": lines of the same shape, digits for digits, have it taken
 * off as well.  A zeroed one knows nothing. */
#define LINE_STYLES_MAX	8
#define LINE_STYLE_LEN	80
struct line_styles {
	size_t	count;
	struct {
		size_t	len;
		char	text[LINE_STYLE_LEN];
	} list[LINE_STYLES_MAX];
};

/* True when the line taught something new. */
bool	line_styles_learn(struct line_styles *, const struct line *);
void	line_styles_apply(const struct line_styles *, struct line *);

/* Copies a line without ANSI escape sequences; out holds at least len bytes.
 * Returns the new length. */
size_t	line_strip_ansi(const char *data, size_t len, char *out);

/* A time with its whole date; 0 and no change when there is none, otherwise its
 * length. */
size_t	line_parse_time(const char *data, size_t len, int64_t *time_ns);

/* A piece of a stream: text between line ends, or after a carriage return
 * (progress bars draw over themselves). */
struct piece {
	size_t	start;
	size_t	end;		/* without its end mark */
};

/* Finds the piece that holds offset `at`; looks back at most `back` bytes and
 * returns false when no start is found there.  It ends at line_end(). */
bool	line_piece(const char *data, size_t len, size_t at, size_t back,
	    struct piece *out);
/* The next line end or carriage return from `at` on, or 64 KiB further. */
size_t	line_end(const char *data, size_t len, size_t at);
/* The piece before one that starts at `start`; false at the beginning. */
bool	line_piece_before(const char *data, size_t start, struct piece *out);

#endif
