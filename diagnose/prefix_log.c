/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefix_log.c - prefixes that loggers and the kernel put in front of lines.
 */
#include <ctype.h>
#include <string.h>

#include "diagnose/prefix.h"
#include "diagnose/time_text.h"

/* ISO time, bare or in brackets, with what loggers put behind it. */
size_t
prefix_time(struct cursor *c)
{
	size_t open = left(c) > 0 && (*c->p == '[' || *c->p == '('), n;
	int64_t t;

	n = line_parse_time(c->p + open, left(c) - open, &t);
	if (n == 0)
		return 0;
	if (c->out->time_ns == LINE_NO_TIME)
		c->out->time_ns = t;
	n += open;
	if (open) {
		if (n >= left(c) || (c->p[n] != ']' && c->p[n] != ')'))
			return 0;
		n++;
	}
	if (n < left(c) && c->p[n] == ':')
		n++;
	n = one_space(c, n);
	if (left(c) > n + 2 && (memcmp(c->p + n, "| ", 2) == 0 ||
	    memcmp(c->p + n, "- ", 2) == 0))
		n += 2;
	return n;
}

/* "12:13:46 " or "[12:13:46] " */
size_t
prefix_clock(struct cursor *c)
{
	size_t open = left(c) > 0 && *c->p == '[', n;
	int seconds, ns;

	n = time_of_day(c->p + open, left(c) - open, &seconds, &ns);
	if (n == 0)
		return 0;
	n += open;
	if (n >= left(c) || c->p[n] != (open ? ']' : ' '))
		return 0;
	return one_space(c, n + open);
}

/* "[03/17/23 20:03:12] ", "03/17/2023 20:03:12 - " */
size_t
prefix_us_time(struct cursor *c)
{
	size_t open = left(c) > 0 && *c->p == '[', n;
	const char *p = c->p + open;
	int v, seconds, ns;

	if (left(c) < 18 + open || p[2] != '/' || p[5] != '/' ||
	    !time_two_digits(p, 1, 12, &v) || !time_two_digits(p + 3, 1, 31, &v))
		return 0;
	n = 6 + digits(p + 6, c->end, &v);
	if ((n != 8 && n != 10) || n + 9 > left(c) - open || p[n] != ' ')
		return 0;
	n++;
	if ((v = (int)time_of_day(p + n, left(c) - open - n, &seconds, &ns)) == 0)
		return 0;
	n += (size_t)v + open;
	if (open && n < left(c) && c->p[n] == ']')
		n++;
	n = one_space(c, n);
	if (left(c) > n + 2 && memcmp(c->p + n, "- ", 2) == 0)
		n += 2;
	return n;
}

/* syslog: "Nov 30 12:00:00 host proc[123]: " */
size_t
prefix_syslog(struct cursor *c)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	const char *p = c->p, *host, *colon;
	char name[4] = "";
	int seconds, ns;
	size_t n;

	if (left(c) < 17 || p[3] != ' ' || p[6] != ' ')
		return 0;
	memcpy(name, p, 3);
	if (strstr(months, name) == NULL ||
	    (n = time_of_day(p + 7, left(c) - 7, &seconds, &ns)) == 0)
		return 0;
	n = one_space(c, n + 7);
	host = c->p + n;
	while (n < left(c) && c->p[n] != ' ')
		n++;
	if (n == left(c))
		return n;
	c->out->node = host;
	c->out->node_len = (size_t)(c->p + n - host);
	prefix_mix_key(c, host, c->out->node_len);
	n = one_space(c, n);
	/* The program name has no space in it. */
	colon = memchr(c->p + n, ':', left(c) - n);
	if (colon != NULL && colon - (c->p + n) < 48 &&
	    memchr(c->p + n, ' ', (size_t)(colon - (c->p + n))) == NULL)
		n = one_space(c, (size_t)(colon + 1 - c->p));
	return n;
}

/* dmesg: "[  123.456789] ", "[  +0.000316] ", and -T: "[Sat Jan 31 ..] " */
size_t
prefix_kernel(struct cursor *c)
{
	const char *close;
	size_t n = 1, k;
	int v;

	if (left(c) < 5 || *c->p != '[')
		return 0;
	while (n < left(c) && (c->p[n] == ' ' || c->p[n] == '+'))
		n++;
	k = digits(c->p + n, c->end, &v);
	if (k > 0 && n + k < left(c) && c->p[n + k] == '.') {
		n += k + 1;
		k = digits(c->p + n, c->end, &v);
		if (k >= 1 && n + k < left(c) && c->p[n + k] == ']')
			return one_space(c, n + k + 1);
		return 0;
	}
	close = memchr(c->p, ']', left(c) < 30 ? left(c) : 30);
	if (close != NULL && close - c->p == 25 && c->p[4] == ' ' &&
	    c->p[8] == ' ' && c->p[14] == ':' && c->p[17] == ':')
		return one_space(c, 26);
	return 0;
}

/* glog: "[E909 09:55:46.996672294 ProcessGroupNCCL.cpp:1709] ",
 * "E0227 17:39:41.510000 293816 site-packages/x.py:732] ", "[W socket.cpp:401] " */
size_t
prefix_glog(struct cursor *c)
{
	size_t open = left(c) > 0 && *c->p == '[', n = open;
	const char *close;
	int v, seconds, ns;
	char level;
	size_t k;

	if (left(c) < open + 8 || strchr("IWEFC", c->p[n]) == NULL)
		return 0;
	level = c->p[n++];
	k = digits(c->p + n, c->end, &v);
	if (k > 4 || (k == 0 && !open))
		return 0;
	n += k;
	if (n >= left(c) || c->p[n] != ' ')
		return 0;
	n++;
	if (k > 0 && time_of_day(c->p + n, left(c) - n, &seconds, &ns) == 0)
		return 0;
	close = memchr(c->p + n, ']', left(c) - n < 240 ? left(c) - n : 240);
	if (close == NULL || memchr(c->p + n, ':', (size_t)(close - c->p) - n) == NULL)
		return 0;
	c->out->level = level == 'I' ? LEVEL_INFO : level == 'W' ? LEVEL_WARN :
	    LEVEL_ERROR;
	n = one_space(c, (size_t)(close + 1 - c->p));
	/* "[0/0] " of torch._inductor is part of the text; "[c10d] " goes. */
	if (left(c) - n > 7 && memcmp(c->p + n, "[c10d] ", 7) == 0)
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
	{ "DEBUG", LEVEL_INFO }, { NULL, LEVEL_NONE }
};

/* Level words: "[ERROR] ", "ERROR:name:", "ERROR name: ", "ERROR    | mod:f:1 - ".
 * Only levels of errors are taken off: a warning keeps its word, so that a rule
 * for an exception does not take a logged one for a raised one. */
size_t
prefix_level(struct cursor *c)
{
	size_t open = left(c) > 0 && *c->p == '[', n = open, k;
	const struct level_word *w;

	for (w = levels; w->word != NULL; w++) {
		k = strlen(w->word);
		if (left(c) >= n + k && memcmp(c->p + n, w->word, k) == 0)
			break;
	}
	if (w->word == NULL)
		return 0;
	n += k;
	if (n >= left(c))
		return 0;
	if (open && c->p[n++] != ']')
		return 0;
	if (!open && c->p[n] != ':' && c->p[n] != ' ')
		return 0;
	if (c->out->level == LEVEL_NONE)
		c->out->level = w->level;
	if (w->level != LEVEL_ERROR)
		return 0;
	if (!open && c->p[n] == ':' && n + 1 < left(c) && c->p[n + 1] != ' ') {
		/* logging.basicConfig: "ERROR:logger.name:text" */
		for (k = n + 1; k < left(c) && (isalnum((unsigned char)c->p[k]) ||
		    c->p[k] == '.' || c->p[k] == '_' || c->p[k] == '-'); k++)
			;
		if (k < left(c) && k > n + 1 && c->p[k] == ':' &&
		    islower((unsigned char)c->p[n + 1]))
			return k + 1;
	}
	if (n < left(c) && c->p[n] == ':')
		n++;
	while (n < left(c) && c->p[n] == ' ')
		n++;
	if (left(c) - n > 2 && (memcmp(c->p + n, "| ", 2) == 0 ||
	    memcmp(c->p + n, "- ", 2) == 0))
		n += 2;
	return n;
}

/* "torch.distributed.elastic.multiprocessing.api: " or "name - " between a time
 * and a level. */
size_t
prefix_logger(struct cursor *c)
{
	size_t n = 0, k;
	const struct level_word *w;

	if (c->out->time_ns == LINE_NO_TIME || !isalpha((unsigned char)*c->p))
		return 0;
	while (n < left(c) && n < 100 && (isalnum((unsigned char)c->p[n]) ||
	    c->p[n] == '.' || c->p[n] == '_' || c->p[n] == '-'))
		n++;
	if (n == 0 || n >= left(c))
		return 0;
	k = n;
	if (c->p[k] == ':')
		k++;
	while (k < left(c) && (c->p[k] == ' ' || c->p[k] == '-' || c->p[k] == '|'))
		k++;
	if (k == n)
		return 0;
	for (w = levels; w->word != NULL; w++) {
		size_t b = k < left(c) && c->p[k] == '[';

		if (left(c) - k >= strlen(w->word) + b &&
		    memcmp(c->p + k + b, w->word, strlen(w->word)) == 0)
			return k;
	}
	return 0;
}
