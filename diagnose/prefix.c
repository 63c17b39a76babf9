/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefix.c - recognises the prefixes of log lines.
 *
 * Each reader looks at the front of what is left and says how many bytes of
 * prefix stand there (0: none); prefix_rank.c, prefix_log.c and prefix_time.c have
 * most of them.  They are tried until none finds anything, so prefixes may stand in
 * any order.
 */
#include <ctype.h>
#include <string.h>

#include "diagnose/prefix.h"

#define ROUNDS_MAX	14
#define LEVEL_MAX	24	/* bytes of a level with what surrounds it */

/* FNV-1a; who printed a line is told by the prefixes that name someone. */
void
prefix_mix_key(struct cursor *c, const char *p, size_t n)
{
	uint64_t h = c->out->key ? c->out->key : 0xcbf29ce484222325ull;
	size_t i;

	for (i = 0; i < n; i++)
		h = (h ^ (unsigned char)p[i]) * 0x100000001b3ull;
	c->out->key = h ? h : 1;
}

void
prefix_set_rank(struct cursor *c, int rank)
{
	char tag[16];
	int i;

	c->out->rank_is_task = false;
	if (c->out->rank == rank)
		return;
	c->out->rank = rank;
	for (i = 0; i < 4; i++)
		tag[i] = (char)(rank >> (8 * i));
	prefix_mix_key(c, "rank", 4);
	prefix_mix_key(c, tag, 4);
}

void
prefix_set_node(struct cursor *c, const char *name, size_t n)
{
	c->out->node = name;
	c->out->node_len = n;
	prefix_mix_key(c, name, n);
}

void
prefix_set_time(struct cursor *c, const struct line_time *when)
{
	if (when->clock > c->out->when.clock)
		c->out->when = *when;
}

size_t
prefix_word(const struct cursor *c, size_t at, const char *more)
{
	size_t n = at;

	while (n < left(c) && (isalnum((unsigned char)c->p[n]) ||
	    (c->p[n] != '\0' && strchr(more, c->p[n]) != NULL)))
		n++;
	return n - at;
}

const char *
prefix_behind(const struct cursor *c, size_t n, const char *key)
{
	const char *at = memmem(c->p, n, key, strlen(key));

	return at ? at + strlen(key) : NULL;
}

/* A progress bar in front of other text: " 45%|####   | 7/16 [00:01<00:02, 1s/it]" */
static size_t
prefix_bar(struct cursor *c)
{
	size_t n = left(c) < 400 ? left(c) : 400;
	const char *bar, *open, *close, *less;

	if (c->p != c->begin)
		return 0;
	bar = memchr(c->p, '%', n);
	while (bar != NULL && (bar + 1 == c->end || bar[1] != '|'))
		bar = memchr(bar + 1, '%', n - (size_t)(bar + 1 - c->p));
	if (bar == NULL)
		return 0;
	n = left(c) < 1200 ? left(c) : 1200;
	open = memmem(bar, n - (size_t)(bar - c->p), " [", 2);
	if (open == NULL)
		return 0;
	close = memchr(open, ']', n - (size_t)(open - c->p));
	if (close == NULL)
		return 0;
	less = memchr(open, '<', (size_t)(close - open));
	if (less == NULL && memmem(open, (size_t)(close - open), "it", 2) == NULL)
		return 0;
	/* Alone on the line it is the text. */
	return close + 1 < c->end ? (size_t)(close + 1 - c->p) : 0;
}

/* ECMA-48 colours at the front of a line, also when the escape got lost. */
static size_t
prefix_ansi(struct cursor *c)
{
	size_t n = 2;

	if (left(c) > 3 && c->p[0] == '[' && at_digit(c->p + 1, c->end)) {
		while (n < left(c) && n < 12 && (at_digit(c->p + n, c->end) ||
		    c->p[n] == ';'))
			n++;
		return n < left(c) && c->p[n] == 'm' ? n + 1 : 0;
	}
	if (left(c) < 3 || c->p[0] != '\033' || c->p[1] != '[')
		return 0;
	while (n < left(c) && (isdigit((unsigned char)c->p[n]) || c->p[n] == ';'))
		n++;
	return n < left(c) && c->p[n] >= 0x40 && c->p[n] <= 0x7e ? n + 1 : 0;
}

/* JSON of an error handler and of log drivers: `    "message": "`,
 * `{"message": {"message": "`, `{"log":"`, `{"MESSAGE":"`; logfmt: `... msg="`. */
static size_t
prefix_json(struct cursor *c)
{
	static const char *const keys[] = {
		"\"message\":", "\"log\":", "\"msg\":", "\"MESSAGE\":"
	};
	size_t n = 0, i, k;

	if (has(c, "time=\"") || has(c, "level=") || has(c, "ts=")) {
		const char *at = prefix_behind(c, left(c) < 160 ? left(c) : 160,
		    " msg=\"");

		return at ? (size_t)(at - c->p) : 0;
	}
	while (n < left(c) && (c->p[n] == ' ' || c->p[n] == '{'))
		n++;
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		k = strlen(keys[i]);
		while (has_at(c, n, keys[i])) {
			n = spaces(c, n + k);
			if (n >= left(c))
				return 0;
			if (c->p[n] == '"')
				return n + 1;
			if (c->p[n] != '{')
				return 0;
			n++;
		}
	}
	return 0;
}

/* Megatron: " [2026-01-31 03:12:41] iteration ..." */
static size_t
prefix_indented_time(struct cursor *c)
{
	struct cursor at = *c;
	size_t n;

	if (!has(c, " ["))
		return 0;
	at.p++;
	if ((n = prefix_time(&at)) == 0)
		return 0;
	c->timed = at.timed;
	return n + 1;
}

/* Bars that an exception group draws before the lines of its members. */
static size_t
prefix_group_bar(struct cursor *c)
{
	size_t n = spaces(c, 0), k;

	if (n < 2 || n >= left(c))
		return 0;
	if (c->p[n] == '|')
		return n + 1 < left(c) ? one_space(c, n + 1) : 0;
	if (c->p[n] != '+')
		return 0;
	if (has_at(c, n, "+ Exception Group Traceback"))
		return n + 2;
	for (k = n + 1; k < left(c) && (c->p[k] == '-' || c->p[k] == '+'); k++)
		;
	return k - n > 8 && k == left(c) ? k : 0;
}

/* What a prefix can begin with, so that most readers need not be asked. */
enum {
	LETTER = 1, DIGIT = 2, SPACE = 4, BRACKET = 8, PAREN = 16, OTHER = 32,
	ANY = 63
};

static const struct {
	size_t	(*read)(struct cursor *);
	int	first;
} readers[] = {
	{ prefix_ansi, BRACKET | OTHER },
	{ prefix_container, LETTER | DIGIT | BRACKET },
	{ prefix_json, LETTER | SPACE | OTHER },
	{ prefix_bar, ANY },
	{ prefix_srun, DIGIT | SPACE },
	{ prefix_priority, LETTER | OTHER },
	{ prefix_time, LETTER | DIGIT | BRACKET | PAREN },
	{ prefix_indented_time, SPACE },
	{ prefix_host_program, LETTER | DIGIT },
	{ prefix_kernel, BRACKET },
	{ prefix_bracket_rank, BRACKET },
	{ prefix_process_group, BRACKET },
	{ prefix_glog, LETTER | BRACKET },
	{ prefix_nemo, BRACKET },
	{ prefix_ray, PAREN },
	{ prefix_level, LETTER | SPACE | BRACKET },
	{ prefix_logger, LETTER | BRACKET },
	{ prefix_location, LETTER | BRACKET },
	{ prefix_clock, DIGIT | BRACKET },
	{ prefix_epoch, DIGIT | BRACKET },
	{ prefix_rank_word, LETTER },
	{ prefix_number, BRACKET },
	{ prefix_host_pid, LETTER | BRACKET },
	{ prefix_ascend, LETTER | PAREN },
	{ prefix_pdsh, LETTER },
	{ prefix_channel, LETTER | DIGIT | BRACKET },
	{ prefix_task, LETTER | DIGIT | BRACKET | OTHER },
	{ prefix_group_bar, SPACE }
};

static int
first_of(char c)
{
	if (isalpha((unsigned char)c))
		return LETTER;
	if (isdigit((unsigned char)c))
		return DIGIT;
	return c == ' ' || c == '\t' ? SPACE : c == '[' ? BRACKET :
	    c == '(' ? PAREN : OTHER;
}

static size_t
take_prefix(struct cursor *c)
{
	int first = first_of(*c->p);
	size_t i, n;

	for (i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
		if ((readers[i].first & first) &&
		    (n = readers[i].read(c)) > 0)
			return n > left(c) ? left(c) : n;
	return 0;
}

/* Rows of Holdfast's cards and pages quote logs: they are no log. */
static bool
is_our_row(const struct cursor *c)
{
	static const char *const rows[] = {
		"| proof   ", "| echoes  ", "|         ", "| where   ", "| or      ",
		"| suspect ", "| unread  ", "+- incident ", "+- diagnosis: ",
		"holdfast: ", "{\"schema\":\"holdfast.",
		"| cause   ", "| same    ", "| other   ", "| echo    ",
		"| late    ", "| passed  ", "| ending  ", "| benign  ",
		"| unclear ", "| maybe   ", "| symptom ", "| match   ",
		"| unless  ", "| literal ", "| sample  ", "| not     "
	};
	size_t i;

	if (*c->p != '|' && *c->p != '+' && *c->p != 'h' && *c->p != '{')
		return false;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (has(c, rows[i]))
			return true;
	return false;
}

/* A row that another program passed on stands behind that program's prefixes, or
 * behind a level that stays with the text ("INFO |         "), and may quote what
 * was itself taken for a prefix (a progress bar): each place counts up to a level's
 * length behind the prefixes. */
static bool
is_ours(const char *line, const struct cursor *c)
{
	struct cursor at = *c;
	size_t text = left(c) < LEVEL_MAX ? left(c) : LEVEL_MAX;

	for (at.p = line; at.p < c->p + text; at.p++)
		if (is_our_row(&at))
			return true;
	return false;
}

void
line_parse(const char *data, size_t len, struct line *out)
{
	struct cursor c = { data, data + len, data, NULL, out };
	size_t n, round;

	memset(out, 0, sizeof(*out));
	out->rank = out->local_rank = out->task = out->device = out->pid = -1;
	for (round = 0; round < ROUNDS_MAX && c.p < c.end; round++) {
		if ((n = take_prefix(&c)) == 0)
			break;
		c.p += n;
	}
	out->time_ns = out->when.clock == CLOCK_DATE ? out->when.ns :
	    LINE_NO_TIME;
	out->text = c.p;
	out->len = left(&c);
	out->ours = len > 0 && is_ours(data, &c);
}
