/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefix_rank.c - prefixes that say which process printed a line: of launchers,
 * container runtimes and collectors of output.
 */
#include <ctype.h>
#include <string.h>

#include "diagnose/prefix.h"

/* "<stderr>:" of mpirun and horovodrun, with "[host:pid]" or not. */
static size_t
channel_tag(const struct cursor *c, size_t n)
{
	if (has_at(c, n, "<stdout>") || has_at(c, n, "<stderr>") ||
	    has_at(c, n, "<stddiag>"))
		n += (size_t)((const char *)memchr(c->p + n, '>', left(c) - n) -
		    (c->p + n)) + 1;
	return n;
}

/* Open MPI's "[1,26]<stdout>:", SageMaker's "[1,mpirank:3,algo-1]<stderr>:",
 * horovodrun's "[3]<stderr>:". */
static size_t
mpi_tag(struct cursor *c)
{
	const char *host, *close;
	size_t k, n;
	int v;

	k = digits(c->p + 1, c->end, &v);
	n = 1 + k;
	if (k == 0 || k > 6 || n >= left(c))
		return 0;
	if (c->p[n] == ',') {
		if (has_at(c, ++n, "mpirank:"))
			n += 8;
		k = digits(c->p + n, c->end, &v);
		n += k;
		if (k == 0 || k > 6 || n >= left(c))
			return 0;
		if (c->p[n] == ',') {
			host = c->p + n + 1;
			k = prefix_word(c, n + 1, ".-_");
			n += k + 1;
			prefix_set_node(c, host, k);
		}
	} else if (channel_tag(c, n + 1) == n + 1) {
		return 0;
	}
	if (n >= left(c) || c->p[n] != ']')
		return 0;
	prefix_set_rank(c, v);
	n = channel_tag(c, n + 1);
	if (has_at(c, n, "[") && (close = memchr(c->p + n, ']',
	    left(c) - n < 80 ? left(c) - n : 80)) != NULL && close + 1 < c->end &&
	    close[1] == ':')
		n = (size_t)(close + 1 - c->p);
	if (n < left(c) && c->p[n] == ':')
		n++;
	return one_space(c, n);
}

/* "[rank3]: ", "[rank: 3] ", "[Rank 3] ", "[default0]:", "[rank3][Thread]: " */
size_t
prefix_bracket_rank(struct cursor *c)
{
	static const char *const names[] = {
		"[rank", "[Rank", "[RANK", "[default", "[trainer", "[worker",
		"[local_rank", "[global_rank"
	};
	const char *close;
	size_t i, n, k;
	bool local;
	int v;

	if (left(c) < 3 || *c->p != '[')
		return 0;
	if (at_digit(c->p + 1, c->end))
		return mpi_tag(c);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (has(c, names[i]))
			break;
	if (i == sizeof(names) / sizeof(names[0]))
		return 0;
	n = strlen(names[i]);
	local = strchr("dtwl", names[i][1]) != NULL;
	while (n < left(c) && strchr(":=_ -", c->p[n]) != NULL && c->p[n] != '\0')
		n++;
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
	n = channel_tag(c, n);
	if (has_at(c, n, "[MainThread]") || has_at(c, n, "[Thread-")) {
		close = memchr(c->p + n, ']', left(c) - n);
		n = close ? (size_t)(close + 1 - c->p) : n;
	}
	if (n < left(c) && c->p[n] == ':')
		n++;
	n = one_space(c, n);
	if (has_at(c, n, "|| "))
		n += 3;
	return n;
}

/* "Rank 3: ", "rank=3 | ", Composer's "rank3[81][MainThread]: " */
size_t
prefix_rank_word(struct cursor *c)
{
	size_t n = 4, k;
	int v;

	if (left(c) < 7 || strncasecmp(c->p, "rank", 4) != 0)
		return 0;
	if (strchr(" =_", c->p[n]) != NULL && c->p[n] != '\0')
		n++;
	k = digits(c->p + n, c->end, &v);
	n += k;
	if (k == 0 || k > 6 || n >= left(c))
		return 0;
	if (c->p[n] == '[') {
		const char *end = memmem(c->p + n, left(c) - n < 60 ?
		    left(c) - n : 60, "]: ", 3);

		if (end == NULL)
			return 0;
		prefix_set_rank(c, v);
		return (size_t)(end + 3 - c->p);
	}
	if (!has_at(c, n, ": ") && !has_at(c, n, " | ") && !has_at(c, n, "] "))
		return 0;
	prefix_set_rank(c, v);
	return n + (c->p[n] == ' ' ? 3 : 2);
}

/* c10d: "[PG ID 0 PG GUID 0(default_pg) Rank 12] ", "[PG 1 Rank 3] ".  The rank is
 * that within the group: the global one only in the default group. */
size_t
prefix_process_group(struct cursor *c)
{
	const char *close, *p;
	size_t n;
	int v;

	if (!has(c, "[PG "))
		return 0;
	close = memchr(c->p, ']', left(c) < 200 ? left(c) : 200);
	if (close == NULL)
		return 0;
	n = (size_t)(close - c->p);
	p = prefix_behind(c, n, "Rank ");
	if (p != NULL && digits(p, close, &v) > 0 && c->out->rank == -1 &&
	    (has(c, "[PG 0") || has(c, "[PG ID 0") ||
	    prefix_behind(c, n, "default_pg") != NULL))
		prefix_set_rank(c, v);
	return one_space(c, n + 1);
}

/* Ray: "(Name pid=123, ip=10.0.0.1) ", "(raylet, ip=10.0.0.1) "; SkyPilot:
 * "(worker1, rank=1, pid=123, ip=10.0.0.1) " */
size_t
prefix_ray(struct cursor *c)
{
	const char *close, *p;
	size_t n, k;
	int v;

	if (left(c) < 10 || *c->p != '(')
		return 0;
	close = memchr(c->p, ')', left(c) < 160 ? left(c) : 160);
	if (close == NULL)
		return 0;
	n = (size_t)(close - c->p);
	p = prefix_behind(c, n, "pid=");
	if (p == NULL && !has(c, "(raylet") && !has(c, "(autoscaler") &&
	    !has(c, "(gcs_server"))
		return 0;
	if (p != NULL && digits(p, close, &v) > 0)
		c->out->pid = v;
	prefix_mix_key(c, c->p, n);
	p = prefix_behind(c, n, " rank=");
	if (p != NULL && digits(p, close, &v) > 0)
		prefix_set_rank(c, v);
	p = prefix_behind(c, n, " ip=");
	if (p != NULL) {
		k = prefix_word(c, (size_t)(p - c->p), ".-_:");
		prefix_set_node(c, p, k);
	}
	/* Ray colours it, and the escape may have got lost. */
	n++;
	k = n + (n < left(c) && c->p[n] == '\033');
	if (has_at(c, k, "[0m"))
		n = k + 3;
	return one_space(c, n);
}

/* srun --label: "12: ", " 3: "; only at the front of a line. */
size_t
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
	c->out->task = v;
	c->out->rank_is_task = true;
	return one_space(c, n);
}

/* The name of a machine: it ends in a digit, or its first label does and the others
 * are those of a domain. */
static bool
is_host(const char *p, size_t n)
{
	static const char *const domains[] = {
		".local", ".internal", ".cluster", ".com", ".net", ".org", ".edu",
		".lan", ".svc", ".int"
	};
	size_t i, k;

	if (memmem(p, n, ".so.", 4) != NULL || memmem(p, n, ".py", 3) != NULL)
		return false;
	if (isdigit((unsigned char)p[n - 1]))
		return true;
	for (i = 0; i < n; i++)
		if (isupper((unsigned char)p[i]))
			return false;
	for (i = 0; i < sizeof(domains) / sizeof(domains[0]); i++) {
		k = strlen(domains[i]);
		if (n > k && memcmp(p + n - k, domains[i], k) == 0)
			return true;
	}
	return false;
}

/* pdsh, clush, DeepSpeed: "node7: ", "worker-1: "; no counter. */
size_t
prefix_pdsh(struct cursor *c)
{
	static const char *const counters[] = {
		"step", "epoch", "iter", "rank", "layer", "batch", "gpu", "cuda",
		"slurmstepd", "worker", "process", "nvidia-nvswitch", "error",
		"trial", "stage", "fold", "shard", "block", "head", "top", "acc",
		"phase", "round", "attempt", "test", "case", "line", "frame", "loss"
	};
	size_t n, i, k;

	if (c->p != c->begin || !isalpha((unsigned char)*c->p))
		return 0;
	n = prefix_word(c, 0, "-._");
	if (n < 2 || n > 63 || !has_at(c, n, ": ") || !is_host(c->p, n))
		return 0;
	for (i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		k = strlen(counters[i]);
		/* "worker-1" is a host, "worker1" and "worker 1" are not. */
		if (n >= k && strncasecmp(c->p, counters[i], k) == 0 &&
		    !(c->p[k] == '-' && strcmp(counters[i], "worker") == 0))
			return 0;
	}
	prefix_set_node(c, c->p, n);
	return n + 2;
}

/* "[81223] " of mpiexec and others: names a writer, not always a rank. */
size_t
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

/* NCCL: "node7:8716:8790 [0] "; Open MPI, UCX: "[node7:411] ", "[node7:411:0:411] " */
size_t
prefix_host_pid(struct cursor *c)
{
	size_t open = left(c) > 0 && *c->p == '[', host, n, k;
	int pid, v;

	if (left(c) < 8)
		return 0;
	host = prefix_word(c, open, ".-_");
	if (host < 2 || host > 63 || !isalpha((unsigned char)c->p[open]))
		return 0;
	n = spaces(c, open + host);
	if (n >= left(c) || c->p[n] != ':')
		return 0;
	k = digits(c->p + n + 1, c->end, &pid);
	n += k + 1;
	if (k == 0 || n >= left(c))
		return 0;
	while (has_at(c, spaces(c, n), ":")) {
		n = spaces(c, n) + 1;
		n += digits(c->p + n, c->end, &v);
	}
	if (open) {
		if (!has_at(c, n, "] "))
			return 0;
		n += 2;
	} else {
		if (!has_at(c, n, " ["))
			return 0;
		k = digits(c->p + n + 2, c->end, &v);
		n += k + 2;
		if (k == 0 || k > 3 || !has_at(c, n, "] "))
			return 0;
		c->out->device = v;
		n += 2;
	}
	if (c->out->node == NULL) {
		c->out->node = c->p + open;
		c->out->node_len = host;
	}
	c->out->pid = pid;
	return n;
}

/* "name.node03.log [stderr] ", "stdout F " of the Kubernetes runtime */
size_t
prefix_channel(struct cursor *c)
{
	static const char *const marks[] = {
		"[stderr] ", "[stdout] ", "stdout F ", "stderr F ", "stdout P ",
		"stderr P "
	};
	size_t i, n = 0;

	if (c->p == c->begin)
		n = prefix_word(c, 0, "._-");
	if (n > 0 && n < left(c) && n < 80 && c->p[n] == ' ')
		n++;
	else
		n = 0;
	for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		if (has_at(c, n, marks[i]))
			return prefix_begin(c, n + strlen(marks[i]));
		if (has(c, marks[i]))
			return prefix_begin(c, strlen(marks[i]));
	}
	return 0;
}

/* Determined, CI runners: "fa88a9df [rank=1] || ", "[task 2025-..] [train] ",
 * "##[error]"; torchtitan: "[titan] " before a time. */
size_t
prefix_task(struct cursor *c)
{
	size_t n = 0;

	if (has(c, "[task "))
		return 6;
	if (has(c, "] [train] "))
		return 10;
	if (has(c, "##[error]"))
		return 9;
	if (has(c, "[titan] "))
		return 8;
	while (n < left(c) && n < 12 && isxdigit((unsigned char)c->p[n]))
		n++;
	if (n == 8 && has_at(c, n, " [rank="))
		return n + 1;
	if (n == 8 && has_at(c, n, " || "))
		return n + 4;
	return 0;
}

/* docker compose: "trainer-1  | ", "trainer  | "; kubectl --prefix:
 * "[pod/train-0/main] " */
size_t
prefix_container(struct cursor *c)
{
	const char *close;
	size_t n, end;

	if (has(c, "[pod/")) {
		close = memchr(c->p, ']', left(c) < 200 ? left(c) : 200);
		if (close == NULL)
			return 0;
		prefix_mix_key(c, c->p, (size_t)(close - c->p));
		return prefix_begin(c, one_space(c, (size_t)(close + 1 - c->p)));
	}
	if (c->p != c->begin || !isalnum((unsigned char)*c->p))
		return 0;
	n = prefix_word(c, 0, "-_.");
	end = spaces(c, n);
	if (n < 2 || n > 63 || end == n || end + 1 >= left(c) || c->p[end] != '|')
		return 0;
	/* Of a table's first cell a number of the instance is told, or blanks. */
	if ((!isdigit((unsigned char)c->p[n - 1]) || (c->p[n - 2] != '-' &&
	    c->p[n - 2] != '_')) && (end - n < 2 ||
	    memchr(c->p + end + 1, '|', left(c) - end - 1) != NULL))
		return 0;
	prefix_mix_key(c, c->p, n);
	return prefix_begin(c, one_space(c, end + 1));
}

/* CANN: "HCCL(123,python3):2026-...", torch_npu: "(PID:123, Device:0, RankID:3) " */
size_t
prefix_ascend(struct cursor *c)
{
	const char *close, *p;
	size_t n, k;
	int v;

	if (has(c, "(PID:")) {
		close = memchr(c->p, ')', left(c) < 80 ? left(c) : 80);
		if (close == NULL)
			return 0;
		n = (size_t)(close - c->p);
		if (digits(c->p + 5, close, &v) > 0)
			c->out->pid = v;
		p = prefix_behind(c, n, "Device:");
		if (p != NULL && digits(p, close, &v) > 0)
			c->out->device = v;
		p = prefix_behind(c, n, "RankID:");
		if (p != NULL && digits(p, close, &v) > 0)
			prefix_set_rank(c, v);
		return one_space(c, n + 1);
	}
	n = 0;
	while (n < left(c) && n < 16 && (isupper((unsigned char)c->p[n]) ||
	    c->p[n] == '_'))
		n++;
	if (n < 2 || n >= left(c) || c->p[n] != '(')
		return 0;
	k = digits(c->p + n + 1, c->end, &v);
	n += k + 1;
	if (k == 0 || n >= left(c) || c->p[n] != ',')
		return 0;
	close = memmem(c->p + n, left(c) - n < 60 ? left(c) - n : 60, "):", 2);
	if (close == NULL || !at_digit(close + 2, c->end))
		return 0;
	c->out->pid = v;
	return (size_t)(close + 2 - c->p);
}
