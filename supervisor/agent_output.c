/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_output.c - carries the output of one main process: byte for byte into
 * its log file, in part to the terminal, and past the scanner.
 *
 * Both streams of a process share one pipe, so their order in the file is the
 * order of the writes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/clock.h"
#include "common/json.h"
#include "supervisor/agent.h"
#include "supervisor/agent_scan.h"

#define CHUNK		65536
#define PIPE_SIZE	(1 << 20)
#define TEE_LINE_MAX	8192
#define TAIL_MAX	4096
#define TEE_ROOM	(1u << 20)

struct output {
	struct agent		*agent;
	struct attempt		*attempt;
	int			 number;	/* of the attempt */
	int			 rank;		/* -1: a launcher */
	int			 fd;
	struct loop_watch	*watch;
	struct writer_file	*log;
	struct agent_scan	*scan;
	bool			 tee;
	uint64_t		 tee_dropped;
	int64_t			 heard_ns;
	uint64_t		 bytes;
	char			 tail[TAIL_MAX];
	size_t			 tail_len;
	struct buf		 tee_buf;
};

/* Sends whole lines; what the connection has no room for is dropped and the
 * loss told with the next text that fits. */
static void
tee_send(struct output *o, size_t len)
{
	cJSON *m = agent_message(o->agent, "tee", o->number);

	json_add_int(m, "rank", o->rank);
	json_add_bytes(m, "text", o->tee_buf.data, len);
	json_add_int(m, "dropped", (int64_t)o->tee_dropped);
	if (wire_send_lossy(o->agent->supervisor, m, TEE_ROOM))
		o->tee_dropped = 0;
	else
		o->tee_dropped += len;
	buf_consume(&o->tee_buf, len);
}

static void
tee_feed(struct output *o, const char *data, size_t len)
{
	const char *nl;
	size_t part;

	while (len > 0) {
		part = len < TEE_LINE_MAX ? len : TEE_LINE_MAX;
		if (buf_append(&o->tee_buf, data, part) == -1)
			return;
		data += part;
		len -= part;
		nl = memrchr(o->tee_buf.data, '\n', o->tee_buf.len);
		if (nl != NULL)
			tee_send(o, (size_t)(nl - o->tee_buf.data) + 1);
		if (o->tee_buf.len >= TEE_LINE_MAX)
			tee_send(o, o->tee_buf.len);
	}
}

/* The last bytes, for who asks what a rank said before it fell silent. */
static void
keep_tail(struct output *o, const char *data, size_t len)
{
	size_t keep;

	o->heard_ns = clock_mono_ns(&clock_system);
	o->bytes += len;
	if (len > TAIL_MAX) {
		data += len - TAIL_MAX;
		len = TAIL_MAX;
	}
	keep = o->tail_len + len > TAIL_MAX ? TAIL_MAX - len : o->tail_len;
	memmove(o->tail, o->tail + o->tail_len - keep, keep);
	memcpy(o->tail + keep, data, len);
	o->tail_len = keep + len;
}

void
output_tell(const struct output *o, struct output_news *news)
{
	*news = (struct output_news){ .heard_ns = o->heard_ns,
	    .bytes = o->bytes, .tail = o->tail, .tail_len = o->tail_len,
	    .step = agent_scan_step(o->scan) };
}

static void
output_end(struct output *o)
{
	loop_unwatch(o->watch);
	o->watch = NULL;
	close(o->fd);
	o->fd = -1;
	if (o->tee && o->tee_buf.len > 0)
		tee_send(o, o->tee_buf.len);
	agent_scan_end(o->scan);
	attempt_output_ended(o->attempt);
}

static void
on_output(int fd, uint32_t events, void *arg)
{
	struct output *o = arg;
	char chunk[CHUNK];
	ssize_t n;

	(void)events;
	n = read(fd, chunk, sizeof(chunk));
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		output_end(o);
		return;
	}
	writer_append(o->log, chunk, (size_t)n, NULL, NULL);
	keep_tail(o, chunk, (size_t)n);
	agent_scan_feed(o->scan, chunk, (size_t)n);
	if (o->tee)
		tee_feed(o, chunk, (size_t)n);
}

int
output_new(struct agent *a, struct attempt *at, int number, int rank,
    const char *path, bool tee, int *write_fd, struct output **out,
    struct err *err)
{
	struct output *o = calloc(1, sizeof(*o));
	int fds[2];

	if (o == NULL)
		return err_memory(err);
	*o = (struct output){ .agent = a, .attempt = at, .number = number,
	    .rank = rank, .tee = tee, .fd = -1 };
	if (pipe2(fds, O_CLOEXEC) == -1) {
		err_errno(err, "cannot make a pipe");
		free(o);
		return -1;
	}
	/* A larger pipe is a favour to the ranks; the default works too. */
	fcntl(fds[0], F_SETPIPE_SZ, PIPE_SIZE);
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	o->fd = fds[0];
	if (agent_scan_new(a, number, rank, &o->scan, err) == -1 ||
	    writer_open(a->writer, path, &o->log, err) == -1 ||
	    loop_watch_fd(a->loop, o->fd, EPOLLIN, on_output, o, &o->watch,
	    err) == -1) {
		close(fds[1]);
		output_free(o);
		return -1;
	}
	*write_fd = fds[1];
	*out = o;
	return 0;
}

void
output_flush(struct output *o)
{
	agent_scan_report(o->scan);
}

bool
output_ended(const struct output *o)
{
	return o->fd == -1;
}

void
output_free(struct output *o)
{
	if (o == NULL)
		return;
	loop_unwatch(o->watch);
	if (o->fd != -1)
		close(o->fd);
	writer_close(o->log);
	agent_scan_free(o->scan);
	buf_fini(&o->tee_buf);
	free(o);
}
