/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefix_time.c - time stamps in front of lines, and what the loggers of the system
 * put beside them: syslog (RFC 3164, RFC 5424), the journal's output formats, dmesg
 * with and without its options.
 */
#include <ctype.h>
#include <string.h>

#include "diagnose/prefix.h"
#include "diagnose/time_text.h"

/* What separates a time from what follows. */
static size_t
separator(const struct cursor *c, size_t n)
{
	if (n < left(c) && c->p[n] == ':')
		n++;
	n = one_space(c, n);
	if (left(c) > n + 2 && (has_at(c, n, "| ") || has_at(c, n, "- ")))
		n += 2;
	return n;
}

/* A date, bare or in brackets, with what loggers put behind it. */
size_t
prefix_time(struct cursor *c)
{
	size_t open = left(c) > 0 && (*c->p == '[' || *c->p == '('), n;
	struct line_time when;

	n = time_read(c->p + open, left(c) - open, &when);
	if (n == 0)
		return 0;
	prefix_set_time(c, &when);
	n += open;
	if (open) {
		if (n >= left(c) || (c->p[n] != ']' && c->p[n] != ')'))
			return 0;
		n++;
	}
	n = separator(c, n);
	c->timed = c->p + n;
	/* docker and kubectl print Coordinated Universal Time. */
	return when.zoned && c->p == c->begin ? prefix_begin(c, n) : n;
}

/* A time in square brackets, or bare with one of `ends` behind it. */
static size_t
bare_time(struct cursor *c,
    size_t (*read)(const char *, size_t, struct line_time *), const char *ends)
{
	size_t open = left(c) > 0 && *c->p == '[', n;
	struct line_time when;

	n = read(c->p + open, left(c) - open, &when);
	if (n == 0)
		return 0;
	n += open;
	if (n >= left(c) || strchr(open ? "]" : ends, c->p[n]) == NULL ||
	    c->p[n] == '\0')
		return 0;
	prefix_set_time(c, &when);
	n = separator(c, n + open);
	c->timed = c->p + n;
	return n;
}

/* "12:13:46 " or "[12:13:46] " */
size_t
prefix_clock(struct cursor *c)
{
	return bare_time(c, time_read_clock, " ");
}

/* "1769829161.123 ", "[1769829161123] " */
size_t
prefix_epoch(struct cursor *c)
{
	return bare_time(c, time_read_epoch, " :\t");
}

/* RFC 5424 behind its time: "host app 123 ID - ", structured data in brackets. */
static size_t
rfc5424(struct cursor *c, size_t n)
{
	size_t field, k;

	for (field = 0; field < 4; field++) {
		k = prefix_word(c, n, "._-/@:");
		if (k == 0 || n + k >= left(c) || c->p[n + k] != ' ')
			return 0;
		if (field == 0 && c->p[n] != '-')
			prefix_set_node(c, c->p + n, k);
		n += k + 1;
	}
	if (has_at(c, n, "- "))
		return n + 2;
	if (n < left(c) && c->p[n] == '[') {
		const char *close = memmem(c->p + n, left(c) - n, "] ", 2);

		return close ? (size_t)(close + 2 - c->p) : 0;
	}
	return n;
}

/* "<14>1 TIME ...", "<6>" (dmesg -r), "kern  :err   : " (dmesg -x), the journal's
 * "MESSAGE=". */
size_t
prefix_priority(struct cursor *c)
{
	static const char *const facilities[] = {
		"kern", "user", "daemon", "syslog", "auth", "cron", "local"
	};
	struct line_time when;
	size_t n = 1, i, k;
	int v;

	if (c->p != c->begin)
		return 0;
	if (has(c, "MESSAGE="))
		return 8;
	if (left(c) > 4 && *c->p == '<') {
		k = digits(c->p + 1, c->end, &v);
		n += k;
		if (k == 0 || k > 3 || n >= left(c) || c->p[n] != '>')
			return 0;
		n++;
		if (!has_at(c, n, "1 ") || (k = time_read(c->p + n + 2,
		    left(c) - n - 2, &when)) == 0)
			return prefix_begin(c, n);
		prefix_set_time(c, &when);
		k = rfc5424(c, one_space(c, n + 2 + k));
		return prefix_begin(c, k ? k : n);
	}
	for (i = 0; i < sizeof(facilities) / sizeof(facilities[0]); i++)
		if (has(c, facilities[i]))
			break;
	if (i == sizeof(facilities) / sizeof(facilities[0]))
		return 0;
	n = spaces(c, prefix_word(c, 0, ""));
	if (n >= left(c) || c->p[n] != ':')
		return 0;
	k = prefix_word(c, n + 1, "");
	n = spaces(c, n + 1 + k);
	return k >= 3 && n < left(c) && c->p[n] == ':' ? one_space(c, n + 1) : 0;
}

static bool
is_daemon(const char *p, size_t n)
{
	static const char *const names[] = {
		"kernel", "systemd", "slurmd", "slurmstepd", "slurmctld", "kubelet",
		"containerd", "dockerd", "nvidia-fabricmanager", "nv-hostengine",
		"nvidia-persistenced", "sshd", "CRON", "mcelog", "rasdaemon"
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == n && memcmp(names[i], p, n) == 0)
			return true;
	return false;
}

/* "host proc[123]: " behind a time.  Behind syslog's own form of it any program
 * counts, behind others only one with its number, or a well-known one, since loggers
 * of programs print words there too. */
size_t
prefix_host_program(struct cursor *c)
{
	bool syslog = c->out->when.clock == CLOCK_NO_YEAR, number = false;
	size_t n, k, at;
	int pid = -1;

	if (c->p != c->timed || c->out->node != NULL)
		return 0;
	n = prefix_word(c, 0, ".-_");
	if (n == 0 || n > 63 || n >= left(c) || c->p[n] != ' ')
		return 0;
	at = n + 1;
	k = prefix_word(c, at, "._-/@");
	if (k == 0 || k > 48 || at + k >= left(c))
		return 0;
	if (c->p[at + k] == '[') {
		size_t d = digits(c->p + at + k + 1, c->end, &pid);

		number = d > 0 && at + k + 1 + d < left(c) &&
		    c->p[at + k + 1 + d] == ']';
		if (!number)
			return 0;
		if (at + k + d + 2 >= left(c) || c->p[at + k + d + 2] != ':')
			return 0;
		k += d + 2;
	}
	if (c->p[at + k] != ':')
		return 0;
	if (!number && !is_daemon(c->p + at, k) &&
	    (!syslog || !isalpha((unsigned char)c->p[at]) ||
	    has_at(c, at, "NVRM:")))
		return 0;
	prefix_set_node(c, c->p, n);
	if (number && pid > 0)
		c->out->pid = pid;
	return prefix_begin(c, one_space(c, at + k + 1));
}

/* dmesg: "[  123.456789] ", "[  +0.000316] ", with "[    T12] " of the caller. */
size_t
prefix_kernel(struct cursor *c)
{
	struct line_time when = { 0, CLOCK_BOOT, false };
	size_t n = 1, k;
	bool delta;
	int v, us;

	if (left(c) < 5 || *c->p != '[')
		return 0;
	while (n < left(c) && (c->p[n] == ' ' || c->p[n] == '+'))
		n++;
	delta = c->p[n - 1] == '+';
	k = digits(c->p + n, c->end, &v);
	if (k == 0 || n + k >= left(c) || c->p[n + k] != '.')
		return 0;
	n += k + 1;
	k = digits(c->p + n, c->end, &us);
	if (k < 1 || n + k >= left(c) || c->p[n + k] != ']')
		return 0;
	when.ns = v * 1000000000ll + (k == 6 ? us * 1000ll : 0);
	if (!delta)
		prefix_set_time(c, &when);
	n += k + 1;
	if (has_at(c, n, "[") && left(c) > n + 3) {
		k = spaces(c, n + 1);
		if (k < left(c) && (c->p[k] == 'T' || c->p[k] == 'C') &&
		    at_digit(c->p + k + 1, c->end)) {
			k += 1 + digits(c->p + k + 1, c->end, &v);
			if (k < left(c) && c->p[k] == ']')
				n = k + 1;
		}
	}
	return one_space(c, n);
}
