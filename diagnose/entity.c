/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entity.c - finds the things that a line names, where its rule does not capture
 * them.
 */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "diagnose/entity.h"

static const char *
find(const char *p, const char *end, const char *words)
{
	return memmem(p, (size_t)(end - p), words, strlen(words));
}

static bool
word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool
copy(char *out, size_t size, const char *p, size_t n)
{
	if (n == 0 || n >= size)
		return false;
	memcpy(out, p, n);
	out[n] = '\0';
	return true;
}

int
entity_pid(const char *line, size_t len)
{
	static const char *const words[] = {
		"Killed process ", "Kill process ", "(pid: ", "(pid ", "pid=",
		"received by PID ", "with PID ", "PID: ", "pid ", "PID ",
		"Process "
	};
	const char *end = line + len, *at;
	size_t i;
	int v, k;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		at = find(line, end, words[i]);
		if (at == NULL || (at > line && word_char(at[-1]) &&
		    words[i][0] != '('))
			continue;
		at += strlen(words[i]);
		while (at < end && *at == '\'')
			at++;
		for (v = 0, k = 0; at < end && k < 8 &&
		    isdigit((unsigned char)*at); at++, k++)
			v = v * 10 + (*at - '0');
		if (k > 0 && (at == end || !word_char(*at)))
			return v;
	}
	return -1;
}

static bool
path_char(char c)
{
	return word_char(c) || (c != '\0' && strchr("/.-+=@%~#", c) != NULL);
}

/* One in quotes may hold anything; a bare one ends where it must. */
void
entity_path(const char *line, size_t len, char *out, size_t size)
{
	const char *end = line + len, *p, *q;

	out[0] = '\0';
	for (p = line; p < end; p++) {
		if (*p != '\'' && *p != '"')
			continue;
		for (q = p + 1; q < end && *q != *p && *q != '\n'; q++)
			;
		if (q < end && q - p > 2 && memchr(p + 1, '/',
		    (size_t)(q - p - 1)) != NULL && find(p, q, "://") == NULL &&
		    memchr(p + 1, ' ', (size_t)(q - p - 1)) == NULL &&
		    copy(out, size, p + 1, (size_t)(q - p - 1)))
			return;
		p = q < end ? q : p;
	}
	for (p = line; p < end; p++) {
		if (*p != '/' || (p > line && path_char(p[-1])) ||
		    (p > line && p[-1] == ':'))
			continue;
		for (q = p; q < end && path_char(*q); q++)
			;
		while (q > p && strchr(".:,", q[-1]) != NULL)
			q--;
		if (q - p > 2 && copy(out, size, p, (size_t)(q - p)))
			return;
		p = q;
	}
}

void
entity_nic(const char *line, size_t len, char *out, size_t size)
{
	static const char *const names[] = {
		"mlx5_", "mlx4_", "bnxt_re", "rdmap", "irdma", "efa_", "hns_", "ib",
		"eth", "ens", "enp", "eno", "bond", "roce", "hsn", "rocep"
	};
	const char *end = line + len, *p, *q;
	size_t i, n;

	out[0] = '\0';
	for (p = line; p < end; p++) {
		if (p > line && word_char(p[-1]))
			continue;
		for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			n = strlen(names[i]);
			if ((size_t)(end - p) <= n || memcmp(p, names[i], n) != 0 ||
			    !isdigit((unsigned char)p[n]))
				continue;
			for (q = p + n; q < end && isalnum((unsigned char)*q); q++)
				;
			if (copy(out, size, p, (size_t)(q - p)))
				return;
		}
	}
}

/* "0000:3b:00.0", "3b:00.0", "PCI:0000:3b:00"; "25:28:13" is a time. */
static size_t
pci_address(const char *p, const char *end)
{
	size_t n = 0, colons = 0, digits = 0, first = 0;

	while (p + n < end && (isxdigit((unsigned char)p[n]) ||
	    (p[n] == ':' && colons < 2))) {
		if (p[n] == ':') {
			if (digits != 2 && digits != 4 && digits != 8)
				return 0;
			if (colons++ == 0)
				first = digits;
			digits = 0;
		} else {
			digits++;
		}
		n++;
	}
	if (colons == 0 || digits != 2 || (colons == 2 && first == 2))
		return 0;
	if (p + n + 1 < end && p[n] == '.' && isdigit((unsigned char)p[n + 1]))
		return n + 2;
	return colons == 2 ? n : 0;
}

void
entity_gpu(const char *line, size_t len, char *out, size_t size)
{
	static const char *const words[] = {
		"GPU ", "cuda:", "device=cuda:", "CUDA device ", "GPU#", "GPU:"
	};
	const char *end = line + len, *p, *q;
	size_t i, n;

	out[0] = '\0';
	for (p = line; p < end; p++) {
		/* Behind a digit and a colon it is a time of day. */
		if (!isxdigit((unsigned char)*p) ||
		    (p > line && (word_char(p[-1]) || p[-1] == '.' ||
		    (p[-1] == ':' && p - line > 1 &&
		    isdigit((unsigned char)p[-2])))))
			continue;
		if ((n = pci_address(p, end)) > 0 && copy(out, size, p, n))
			return;
	}
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if ((p = find(line, end, words[i])) == NULL ||
		    (p > line && word_char(p[-1])))
			continue;
		p += strlen(words[i]);
		for (q = p; q < end && isdigit((unsigned char)*q); q++)
			;
		if (q - p <= 3 && (q == end || !word_char(*q)) &&
		    copy(out, size, p, (size_t)(q - p)))
			return;
	}
}
