/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_log.c - reads the stacks of NCCL's result codes and its lines about GPUs.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/nccl_log.h"

#define NEAR_LINES	60
#define BEHIND_LINES	12
#define MAP_BYTES	((size_t)32 << 20)	/* communicators are made early */

/* "NCCL INFO misc/socket.cc:535 -> 6": false for other lines. */
static bool
is_frame(const char *p, size_t n, struct nccl_origin *o)
{
	const char *end = p + n, *at = memmem(p, n, "NCCL INFO ", 10), *q, *slash;
	size_t k;

	if (at == NULL)
		return false;
	at += 10;
	for (q = at; q < end && *q != ':' && *q != ' '; q++)
		;
	if (q == end || *q != ':' || q == at)
		return false;
	slash = memrchr(at, '/', (size_t)(q - at));
	at = slash ? slash + 1 : at;
	k = (size_t)(q - at);
	for (q++; q < end && isdigit((unsigned char)*q); q++)
		;
	if (end - q < 5 || memcmp(q, " -> ", 4) != 0 ||
	    !isdigit((unsigned char)q[4]) || k >= sizeof(o->file))
		return false;
	o->result = q[4] - '0';
	memcpy(o->file, at, k);
	o->file[k] = '\0';
	return true;
}

/* The way back behind an offset: its first line. */
static bool
find_behind(const struct stream *s, size_t at, struct nccl_origin *o)
{
	struct piece p;
	int lines;

	for (lines = 0; lines < BEHIND_LINES && at < s->len; lines++) {
		if (!line_piece(s->data, s->len, at, 65536, &p))
			return false;
		if (p.end > p.start && is_frame(s->data + p.start,
		    p.end - p.start, o))
			return true;
		at = p.end + 1;
	}
	return false;
}

bool
nccl_find_origin(const struct stream *s, size_t at, struct nccl_origin *out)
{
	struct piece p = { at, at };
	struct nccl_origin o;
	bool found = false;
	int lines;

	if (find_behind(s, at, out))
		return true;
	for (lines = 0; lines < NEAR_LINES; lines++) {
		if (!line_piece_before(s->data, p.start, &p))
			break;
		if (p.end - p.start < 2)
			continue;
		if (is_frame(s->data + p.start, p.end - p.start, &o)) {
			*out = o;
			found = true;
		} else if (found) {
			break;
		}
	}
	return found;
}

const char *
nccl_reason_of_file(const char *file)
{
	static const struct {
		const char *file, *reason;
	} files[] = {
		{ "net_ib.cc", "network_ib_error" }, { "ibvwrap.cc",
		  "network_ib_error" }, { "p2p_plugin.c", "network_ib_error" },
		{ "socket.cc", "network_error" }, { "net_socket.cc",
		  "network_error" }, { "socket.h", "network_error" },
		{ "shmutils.cc", "shm_exhausted" }, { "shm.cc", "shm_exhausted" },
		{ "nvls.cc", "nvlink_error" }, { "cudawrap.cc", "cuda_error" },
		{ "alloc.h", "gpu_oom" }
	};
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (strcmp(files[i].file, file) == 0)
			return files[i].reason;
	return NULL;
}

/* "0000:4e:00.0" and "4e:00" as NCCL prints them: domain, bus, device, function. */
static bool
bus_id(const char *gpu, unsigned long *id)
{
	unsigned long part[3] = {0}, function = 0;
	const char *p = gpu;
	char *end;
	int n = 0;

	if (strncmp(p, "PCI:", 4) == 0)
		p += 4;
	for (; n < 3; n++) {
		part[n] = strtoul(p, &end, 16);
		if (end == p)
			return false;
		p = end;
		if (*p != ':') {
			n++;
			break;
		}
		p++;
	}
	if (n < 2)
		return false;
	if (*p == '.')
		function = strtoul(p + 1, &end, 16);
	if (n == 2)
		*id = part[0] << 12 | part[1] << 4 | function;
	else
		*id = part[0] << 20 | part[1] << 12 | part[2] << 4 | function;
	return true;
}

static long
number_behind(const char *p, size_t n, const char *words, int base)
{
	const char *at = memmem(p, n, words, strlen(words));
	char text[20] = "", *end;
	size_t k;
	long v;

	if (at == NULL)
		return -1;
	at += strlen(words);
	for (k = 0; at < p + n && k + 1 < sizeof(text) &&
	    isalnum((unsigned char)*at); k++)
		text[k] = *at++;
	v = strtol(text, &end, base);
	return end == text ? -1 : v;
}

/* What a line about a communicator is asked for, and what was found so far. */
struct wanted {
	const char	*node;		/* by GPU: "" any */
	unsigned long	 id;
	int		 by_rank;	/* by rank, -1: by GPU */
	long		 size;		/* of the communicator found */
	int		 rank;		/* -1 none, -2 several */
	char		*out;		/* the node */
	size_t		 out_size;
};

/* The largest communicator's rank is the global one. */
static void
read_comm(const char *p, size_t n, struct wanted *w)
{
	long bus = number_behind(p, n, " busId ", 16);
	long ranks = number_behind(p, n, " nranks ", 10);
	long r = number_behind(p, n, " rank ", 10);
	struct line line;

	if (bus < 0 || r < 0 || r > 10000000 || ranks < w->size)
		return;
	line_parse(p, n, &line);
	if (w->by_rank >= 0) {
		if (r != w->by_rank || line.node == NULL ||
		    line.node_len >= w->out_size)
			return;
		memcpy(w->out, line.node, line.node_len);
		w->out[line.node_len] = '\0';
		w->size = ranks;
		return;
	}
	if ((unsigned long)bus != w->id || (*w->node != '\0' &&
	    line.node != NULL && (line.node_len != strlen(w->node) ||
	    memcmp(line.node, w->node, line.node_len) != 0)))
		return;
	if (ranks == w->size && w->rank != (int)r)
		w->rank = -2;	/* another node has a GPU there, too */
	else if (ranks > w->size)
		w->rank = (int)r;
	w->size = ranks;
}

static void
read_comms(const struct case_file *c, struct wanted *w)
{
	size_t i, n;

	for (i = 0; i < c->feed->count; i++) {
		const struct stream *s = &c->feed->streams[i];
		const char *p = s->data, *end, *at;
		struct piece line;

		if (s->kind != STREAM_LOG)
			continue;
		end = p + (s->len < MAP_BYTES ? s->len : MAP_BYTES);
		while ((at = memmem(p, (size_t)(end - p), " busId ", 7)) != NULL) {
			p = at + 7;
			if (!line_piece(s->data, s->len, (size_t)(at - s->data),
			    4096, &line))
				continue;
			n = line.end - line.start;
			read_comm(s->data + line.start, n < 1024 ? n : 1024, w);
		}
		stream_release(s, 0, s->len);
	}
}

int
nccl_rank_of_gpu(const struct case_file *c, const char *node, const char *gpu)
{
	struct wanted w = { .node = node, .by_rank = -1, .rank = -1 };

	if (!bus_id(gpu, &w.id))
		return -1;
	read_comms(c, &w);
	return w.rank < 0 ? -1 : w.rank;
}

void
nccl_node_of_rank(const struct case_file *c, int rank, char *out, size_t size)
{
	struct wanted w = { .by_rank = rank, .out = out, .out_size = size };

	out[0] = '\0';
	if (rank >= 0)
		read_comms(c, &w);
}
