/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fingerprint.c - makes the print of a failure.
 *
 * Of the rule, or of the reason where several lines may tell the same; and of the
 * message without what another run changes: numbers, addresses, dates, names of nodes,
 * temporary files, all but the end of paths.  A message that says little is told apart
 * by the place in the code.
 */
#include <ctype.h>
#include <string.h>

#include "diagnose/fingerprint.h"

#define WORDS_MAX	200	/* of the normalised message */
#define SOURCE_MAX	600	/* bytes of the line */
#define SHORT_WORDS	48	/* such a message says little */

struct out {
	char	*p;
	size_t	 n, size;
};

static void
put(struct out *o, char c)
{
	/* One mark for a row of numbers, whatever stands between them. */
	if (c == '#' && o->n > 0 && o->p[o->n - 1] == '#')
		return;
	if (c == ' ' && (o->n == 0 || o->p[o->n - 1] == ' '))
		return;
	if (o->n < o->size)
		o->p[o->n++] = c;
}

static bool
word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool
path_char(char c)
{
	return word_char(c) || (c != '\0' && strchr("/.-+=@%~", c) != NULL);
}

/* A word of hexadecimal digits, as in addresses, hashes and identifiers. */
static bool
is_hex(const char *p, size_t n)
{
	bool digit = false;
	size_t i;

	for (i = 0; i < n; i++) {
		if (!isxdigit((unsigned char)p[i]))
			return false;
		digit |= isdigit((unsigned char)p[i]) != 0;
	}
	return n >= 8 && digit;
}

/* A word with its digits taken out; what is only digits, or hexadecimal, is one. */
static void
put_word(struct out *o, const char *p, size_t n)
{
	size_t i;

	if (is_hex(p, n) || (n > 2 && p[0] == '0' && (p[1] | 0x20) == 'x')) {
		put(o, '#');
		return;
	}
	for (i = 0; i < n; i++)
		put(o, isdigit((unsigned char)p[i]) ? '#' : p[i]);
}

static bool
is_temporary(const char *p, size_t n)
{
	static const char *const dirs[] = {
		"/tmp/", "/var/tmp/", "/dev/shm/", "/run/", "/scratch/", "/local/",
		"/proc/"
	};
	size_t i;

	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (n >= strlen(dirs[i]) &&
		    memcmp(p, dirs[i], strlen(dirs[i])) == 0)
			return true;
	return false;
}

/* The last two names of a path; of a temporary file only that it is one. */
static void
put_path(struct out *o, const char *p, size_t n)
{
	const char *from = p + n, *end = p + n;
	int slashes = 0;

	if (is_temporary(p, n)) {
		put(o, '/');
		put(o, '~');
		return;
	}
	while (from > p && slashes < 2)
		if (*--from == '/')
			slashes++;
	while (from < end) {
		const char *word = from;

		while (from < end && word_char(*from))
			from++;
		put_word(o, word, (size_t)(from - word));
		if (from < end)
			put(o, *from++);
	}
}

/* Behind a number: its unit, so that 2.00 GiB and 512.00 MiB are alike. */
static size_t
unit_length(const char *p, const char *end)
{
	static const char *const units[] = {
		"GiB", "MiB", "KiB", "TiB", "GB", "MB", "KB", "kB", "TB", "bytes",
		"milliseconds", "ms", "seconds", "us", "ns", "s", "B", "%"
	};
	const char *q = p;
	size_t i, n;

	while (q < end && *q == ' ')
		q++;
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		n = strlen(units[i]);
		if ((size_t)(end - q) >= n && memcmp(q, units[i], n) == 0 &&
		    (q + n == end || !word_char(q[n])))
			return (size_t)(q + n - p);
	}
	return 0;
}

/* The end of a run of numbers with what stands between them in dates, sizes, shapes
 * and addresses. */
static const char *
skip_numbers(const char *p, const char *end)
{
	const char *q = p, *r;

	for (;;) {
		while (q < end && isdigit((unsigned char)*q))
			q++;
		if (q < end && (*q | 0x20) == 'e' && q + 2 < end &&
		    (q[1] == '-' || q[1] == '+') && isdigit((unsigned char)q[2])) {
			q += 2;
			continue;
		}
		r = q;
		while (r < end && r - q < 3 && *r != '\0' &&
		    strchr(".,:x- /", *r) != NULL)
			r++;
		if (r == q || r == end || !isdigit((unsigned char)*r))
			return q + unit_length(q, end);
		q = r;
	}
}

/* A number that is a name: "status=12", "Xid (...): 79". */
static bool
is_code(const char *from, const char *p)
{
	static const char *const words[] = { "status=", "with error ", "): " };
	size_t i, n;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		n = strlen(words[i]);
		if ((size_t)(p - from) >= n && memcmp(p - n, words[i], n) == 0)
			return i < 2 || memmem(from, (size_t)(p - from), "Xid (",
			    5) != NULL;
	}
	return false;
}

/* PCI and Ethernet addresses, IPv6: groups of hexadecimal digits between colons. */
static size_t
address_length(const char *p, const char *end)
{
	size_t n = 0, colons = 0, group = 0;
	bool digit = false;

	for (; p + n < end && (isxdigit((unsigned char)p[n]) || p[n] == ':'); n++) {
		if (p[n] == ':') {
			colons++;
			group = 0;
			continue;
		}
		digit |= isdigit((unsigned char)p[n]) != 0;
		if (++group > 8)
			return 0;
	}
	while (n > 0 && p[n - 1] == ':') {
		n--;
		colons--;
	}
	if (!digit || colons == 0 || (p + n < end && word_char(p[n])))
		return 0;
	return p + n + 1 < end && p[n] == '.' && isdigit((unsigned char)p[n + 1]) ?
	    n + 2 : n;
}

size_t
fingerprint_words(const char *text, size_t len, char *out, size_t size)
{
	const char *p = text, *end = text + len, *q;
	struct out o = { out, 0, size };
	size_t n;

	while (p < end && o.n < size) {
		for (q = p; q < end && path_char(*q); q++)
			;
		if (q - p > 2 && memchr(p, '/', (size_t)(q - p)) != NULL &&
		    !isdigit((unsigned char)*p)) {
			put_path(&o, p, (size_t)(q - p));
			p = q;
		} else if (isdigit((unsigned char)*p) && is_code(text, p)) {
			for (; p < end && isdigit((unsigned char)*p); p++)
				put(&o, (char)('A' + (*p - '0')));
		} else if (isxdigit((unsigned char)*p) &&
		    (n = address_length(p, end)) > 0) {
			put(&o, '#');
			p += n;
		} else if (isdigit((unsigned char)*p)) {
			for (q = p; q < end && word_char(*q); q++)
				;
			put(&o, '#');
			if (is_hex(p, (size_t)(q - p)) ||
			    (q - p > 2 && p[0] == '0' && (p[1] | 0x20) == 'x'))
				p = q;
			else
				p = skip_numbers(p, end);
		} else if (word_char(*p)) {
			for (q = p; q < end && word_char(*q); q++)
				;
			put_word(&o, p, (size_t)(q - p));
			p = q;
		} else {
			put(&o, isspace((unsigned char)*p) ? ' ' : *p);
			p++;
		}
	}
	while (o.n > 0 && o.p[o.n - 1] == ' ')
		o.n--;
	return o.n;
}

static uint64_t
mix(uint64_t h, const char *p, size_t n)
{
	size_t i;

	/* FNV-1a; the length keeps parts apart. */
	for (i = 0; i < n; i++)
		h = (h ^ (unsigned char)p[i]) * 0x100000001b3ull;
	return (h ^ n) * 0x100000001b3ull;
}

/* Reasons that many lines tell, none of which says more than the others. */
static bool
is_told_by_many(const struct cause *w)
{
	static const char *const names[] = {
		"gpu_oom", "host_oom", "process_killed", "nccl_timeout",
		"nccl_remote_error", "nccl_system_error", "hang", "gpu_lost",
		"gpu_ecc_error", "job_time_limit", "job_preempted", "job_cancelled",
		"node_failure", "rendezvous_timeout", "port_in_use"
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(w->reason->name, names[i]) == 0)
			return true;
	return false;
}

/* The message: behind the prefixes, and behind what NCCL puts before it. */
static size_t
find_message(const struct stream *s, const struct event *e, char *text)
{
	size_t n = e->len < SOURCE_MAX ? e->len : SOURCE_MAX;
	struct line line;
	const char *at;

	n = line_strip_ansi(s->data + e->start, n, text);
	line_parse(text, n, &line);
	at = memmem(line.text, line.len, "NCCL WARN ", 10);
	if (at != NULL) {
		line.len -= (size_t)(at + 10 - line.text);
		line.text = at + 10;
	}
	memmove(text, line.text, line.len);
	return line.len;
}

/* Names of nodes are words of their own. */
static size_t
blank_node(char *text, size_t n, const char *node)
{
	size_t k = strlen(node);
	char *at;

	while (k > 1 && (at = memmem(text, n, node, k)) != NULL) {
		memmove(at + 1, at + k, (size_t)(text + n - (at + k)));
		*at = '@';
		n -= k - 1;
	}
	return n;
}

/* File and function of the innermost frame: '  File "/a/b.py", line 3, in main'. */
static uint64_t
mix_frame(uint64_t h, const struct stream *s, size_t frame)
{
	const char *p = s->data + frame, *end = s->data + s->len, *q, *slash;

	end = memchr(p, '\n', (size_t)(end - p));
	if (end == NULL || (p = memmem(p, (size_t)(end - p), "File \"", 6)) == NULL)
		return h;
	p += 6;
	q = memchr(p, '"', (size_t)(end - p));
	if (q == NULL)
		return h;
	slash = memrchr(p, '/', (size_t)(q - p));
	h = mix(h, slash ? slash + 1 : p, (size_t)(q - (slash ? slash + 1 : p)));
	p = memmem(q, (size_t)(end - q), ", in ", 5);
	return p != NULL ? mix(h, p + 5, (size_t)(end - p - 5)) : h;
}

void
fingerprint_make(const struct case_file *c, const struct cause *w,
    char out[FINGERPRINT_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	const struct stream *s = &c->feed->streams[w->event.stream];
	const char *id = w->exit || is_told_by_many(w) ? w->reason->name :
	    w->event.rule->def.id;
	char text[SOURCE_MAX], words[WORDS_MAX];
	uint64_t h = mix(0xcbf29ce484222325ull, id, strlen(id));
	size_t n;
	int i;

	if (!w->exit && !is_told_by_many(w)) {
		n = find_message(s, &w->event, text);
		n = blank_node(text, n, w->event.node);
		n = fingerprint_words(text, n, words, sizeof(words));
		h = mix(h, words, n);
		if (n < SHORT_WORDS && w->block.frame != SIZE_MAX)
			h = mix_frame(h, s, w->block.frame);
	}
	for (i = 0; i < 16; i++)
		out[i] = digits[h >> (60 - 4 * i) & 15];
	out[16] = '\0';
}
