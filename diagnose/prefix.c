/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefix.c - recognises the prefixes of log lines.
 *
 * Each reader looks at the front of what is left and says how many bytes of
 * prefix stand there (0: none).  Formats: srun --label, torchrun --tee and
 * [rankN]:, mpirun --tag-output, Ray, pdsh, Determined, Lightning, glog, Python
 * logging, syslog and journalctl, docker and kubectl --timestamps, dmesg, tqdm.
 */
#include <ctype.h>
#include <string.h>

#include "diagnose/prefix.h"

#define ROUNDS_MAX	14

typedef size_t	(*prefix_fn)(struct cursor *);

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

	if (c->out->rank == rank)
		return;
	c->out->rank = rank;
	for (i = 0; i < 4; i++)
		tag[i] = (char)(rank >> (8 * i));
	prefix_mix_key(c, "rank", 4);
	prefix_mix_key(c, tag, 4);
}

/* "[rank3]: ", "[rank: 3] ", "[Rank 3] ", "[default0]:", "[1,26]<stdout>:" */
static size_t
prefix_bracket_rank(struct cursor *c)
{
	static const char *const names[] = {
		"[rank", "[Rank", "[RANK", "[default", "[trainer", "[worker", "["
	};
	size_t i, n = 0, k;
	bool local;
	int v, job;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (has(c, names[i]))
			break;
	if (i == sizeof(names) / sizeof(names[0]))
		return 0;
	n = strlen(names[i]);
	local = names[i][1] == 'd' || names[i][1] == 't' || names[i][1] == 'w';
	if (names[i][1] == '\0') {
		/* mpirun --tag-output */
		k = digits(c->p + n, c->end, &job);
		if (k == 0 || n + k >= left(c) || c->p[n + k] != ',')
			return 0;
		n += k + 1;
	} else {
		while (n < left(c) && strchr(":= ", c->p[n]) != NULL)
			n++;
	}
	k = digits(c->p + n, c->end, &v);
	n += k;
	if (k == 0 || k > 6 || n >= left(c) || c->p[n] != ']')
		return 0;
	n++;
	if (local) {
		c->out->local_rank = v;
		prefix_mix_key(c, c->p, n);
	} else {
		prefix_set_rank(c, v);
	}
	for (i = 0; i < 2; i++) {
		const char *tag = i ? "<stderr>" : "<stdout>";

		if (left(c) - n >= 8 && memcmp(c->p + n, tag, 8) == 0)
			n += 8;
	}
	if (n < left(c) && c->p[n] == ':')
		n++;
	n = one_space(c, n);
	if (left(c) - n >= 3 && memcmp(c->p + n, "|| ", 3) == 0)
		n += 3;
	return n;
}

/* c10d: "[PG ID 0 PG GUID 0(default_pg) Rank 12] ", "[PG 1 Rank 3] " */
static size_t
prefix_process_group(struct cursor *c)
{
	const char *close, *p;
	int v;

	if (!has(c, "[PG "))
		return 0;
	close = memchr(c->p, ']', left(c) < 160 ? left(c) : 160);
	if (close == NULL)
		return 0;
	p = memmem(c->p, (size_t)(close - c->p), "Rank ", 5);
	if (p != NULL && digits(p + 5, close, &v) > 0)
		prefix_set_rank(c, v);
	return one_space(c, (size_t)(close + 1 - c->p));
}

/* Ray: "(Name pid=123, ip=10.0.0.1) " */
static size_t
prefix_ray(struct cursor *c)
{
	const char *close, *p;
	size_t n;

	if (left(c) < 10 || *c->p != '(')
		return 0;
	close = memchr(c->p, ')', left(c) < 120 ? left(c) : 120);
	if (close == NULL ||
	    memmem(c->p, (size_t)(close - c->p), "pid=", 4) == NULL)
		return 0;
	prefix_mix_key(c, c->p, (size_t)(close - c->p));
	p = memmem(c->p, (size_t)(close - c->p), "ip=", 3);
	if (p != NULL && p > c->p && p[-1] == ' ') {
		c->out->node = p + 3;
		c->out->node_len = (size_t)(close - p - 3);
	}
	n = one_space(c, (size_t)(close + 1 - c->p));
	return n;
}

/* srun --label: "12: ", " 3: "; only at the front of a line. */
static size_t
prefix_srun(struct cursor *c)
{
	size_t n = 0, k;
	int v;

	if (c->p != c->begin)
		return 0;
	while (n < left(c) && n < 6 && c->p[n] == ' ')
		n++;
	k = digits(c->p + n, c->end, &v);
	n += k;
	if (k == 0 || k > 6 || n >= left(c) || c->p[n] != ':')
		return 0;
	n++;
	if (n < left(c) && c->p[n] != ' ')
		return 0;
	prefix_set_rank(c, v);
	return one_space(c, n);
}

/* pdsh, clush: "node7: "; a word that ends in a digit and is no counter. */
static size_t
prefix_pdsh(struct cursor *c)
{
	static const char *const counters[] = {
		"step", "epoch", "iter", "rank", "layer", "batch", "gpu", "cuda",
		"slurmstepd", "worker", "process", "nvidia-nvswitch", "error",
		"trial", "stage", "fold", "shard", "block", "head", "top", "acc"
	};
	size_t n = 0, i;

	if (c->p != c->begin || !isalpha((unsigned char)*c->p))
		return 0;
	while (n < left(c) && n < 64 && (isalnum((unsigned char)c->p[n]) ||
	    c->p[n] == '-' || c->p[n] == '.' || c->p[n] == '_'))
		n++;
	if (n < 2 || n + 1 >= left(c) || c->p[n] != ':' || c->p[n + 1] != ' ' ||
	    !isdigit((unsigned char)c->p[n - 1]))
		return 0;
	for (i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		if (n >= strlen(counters[i]) &&
		    strncasecmp(c->p, counters[i], strlen(counters[i])) == 0)
			return 0;
	c->out->node = c->p;
	c->out->node_len = n;
	prefix_mix_key(c, c->p, n);
	return n + 2;
}

/* "[81223] " of mpiexec and others: names a writer, not always a rank. */
static size_t
prefix_number(struct cursor *c)
{
	size_t k;
	int v;

	if (left(c) < 4 || *c->p != '[')
		return 0;
	k = digits(c->p + 1, c->end, &v);
	if (k == 0 || k > 7 || k + 2 >= left(c) || c->p[k + 1] != ']' ||
	    (c->p[k + 2] != ' ' && c->p[k + 2] != ':'))
		return 0;
	prefix_mix_key(c, c->p, k + 2);
	if (c->p[k + 2] == ':' && k + 3 < left(c) && c->p[k + 3] != ' ')
		return k + 3;
	return c->p[k + 2] == ':' ? one_space(c, k + 3) : k + 3;
}

/* "name.node03.log [stderr] ", "stdout F " of the Kubernetes runtime */
static size_t
prefix_channel(struct cursor *c)
{
	static const char *const marks[] = {
		"[stderr] ", "[stdout] ", "stdout F ", "stderr F "
	};
	size_t i, n = 0;

	while (n < left(c) && n < 80 && c->p == c->begin &&
	    (isalnum((unsigned char)c->p[n]) || strchr("._-", c->p[n])) &&
	    c->p[n] != '\0')
		n++;
	if (n > 0 && n < left(c) && c->p[n] == ' ')
		n++;
	else
		n = 0;
	for (i = 0; i < 4; i++) {
		size_t k = strlen(marks[i]);

		if (left(c) >= n + k && memcmp(c->p + n, marks[i], k) == 0)
			return n + k;
		if (left(c) >= k && memcmp(c->p, marks[i], k) == 0)
			return k;
	}
	return 0;
}

/* Determined, CI runners: "fa88a9df [rank=1] || ", "[task 2025-..] [train] " */
static size_t
prefix_task(struct cursor *c)
{
	size_t n = 0;

	if (has(c, "[task "))
		return 6;
	if (has(c, "] [train] "))
		return 10;
	while (n < left(c) && n < 12 && isxdigit((unsigned char)c->p[n]))
		n++;
	if (n == 8 && left(c) > n + 7 && (memcmp(c->p + n, " [rank=", 7) == 0))
		return n + 1;
	if (n == 8 && left(c) > n + 4 && memcmp(c->p + n, " || ", 4) == 0)
		return n + 4;
	return 0;
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

/* ECMA-48 colours at the front of a line. */
static size_t
prefix_ansi(struct cursor *c)
{
	size_t n = 2;

	if (left(c) < 3 || c->p[0] != '\033' || c->p[1] != '[')
		return 0;
	while (n < left(c) && (isdigit((unsigned char)c->p[n]) || c->p[n] == ';'))
		n++;
	return n < left(c) && c->p[n] >= 0x40 && c->p[n] <= 0x7e ? n + 1 : 0;
}

/* docker compose: "trainer-1  | "; kubectl --prefix: "[pod/train-0/main] " */
static size_t
prefix_container(struct cursor *c)
{
	const char *close;
	size_t n = 0;

	if (has(c, "[pod/")) {
		close = memchr(c->p, ']', left(c) < 160 ? left(c) : 160);
		if (close == NULL)
			return 0;
		prefix_mix_key(c, c->p, (size_t)(close - c->p));
		return one_space(c, (size_t)(close + 1 - c->p));
	}
	while (n < left(c) && n < 64 && (isalnum((unsigned char)c->p[n]) ||
	    c->p[n] == '-' || c->p[n] == '_' || c->p[n] == '.'))
		n++;
	if (c->p != c->begin || n < 3 || !isdigit((unsigned char)c->p[n - 1]) ||
	    (c->p[n - 2] != '-' && c->p[n - 2] != '_'))
		return 0;
	close = c->p + n;
	while (n < left(c) && c->p[n] == ' ')
		n++;
	if (n + 1 >= left(c) || close == c->p + n || c->p[n] != '|')
		return 0;
	prefix_mix_key(c, c->p, (size_t)(close - c->p));
	return one_space(c, n + 1);
}

/* JSON of an error handler: `    "message": "`, `{"message": {"message": "` */
static size_t
prefix_json(struct cursor *c)
{
	static const char key[] = "\"message\": ";
	size_t n = 0, k = sizeof(key) - 1;

	while (n < left(c) && (c->p[n] == ' ' || c->p[n] == '{'))
		n++;
	while (left(c) - n > k + 1 && memcmp(c->p + n, key, k) == 0) {
		n += k;
		if (c->p[n] == '"')
			return n + 1;
		if (c->p[n] != '{')
			return 0;
		n++;
	}
	return 0;
}

static const prefix_fn readers[] = {
	prefix_ansi, prefix_container, prefix_json, prefix_bar, prefix_srun,
	prefix_time, prefix_kernel, prefix_bracket_rank,
	prefix_process_group, prefix_glog, prefix_ray, prefix_level,
	prefix_logger, prefix_clock, prefix_us_time, prefix_number,
	prefix_syslog, prefix_pdsh, prefix_channel, prefix_task
};

void
line_parse(const char *data, size_t len, struct line *out)
{
	struct cursor c = { data, data + len, data, out };
	size_t i, n, round;

	memset(out, 0, sizeof(*out));
	out->rank = out->local_rank = -1;
	out->time_ns = LINE_NO_TIME;
	for (round = 0; round < ROUNDS_MAX && c.p < c.end; round++) {
		for (n = 0, i = 0; n == 0 &&
		    i < sizeof(readers) / sizeof(readers[0]); i++)
			n = readers[i](&c);
		if (n == 0)
			break;
		c.p += n > left(&c) ? left(&c) : n;
	}
	out->text = c.p;
	out->len = left(&c);
	out->ours = has(&c, "| proof ") || has(&c, "| echoes ") ||
	    has(&c, "+- incident ") || has(&c, "holdfast: ");
}
