/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loggen.c - writes the log of a training run that never was, for benchmarks.
 *
 *   loggen [-e PER_MILLION] [-p label|local|none] [-d SAMPLES [-b TIMES]] BYTES SEED
 *
 * Reads SAMPLES, one message a line.  Emits the log to standard output and
 * "LINES ERROR-LINES" to standard error.  The same arguments give the same log.
 * With -d every line is an error: a sample with other numbers from another rank,
 * said by TIMES ranks in a row.  Otherwise the given share of lines is.
 *
 * The formats are those of common trainers and libraries.  Healthy lines are full
 * of words that alarm: "errors=0", "timeout", "nan iterations", "retrying".
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RANKS		512u
#define RANKS_A_NODE	8u
#define WRITE_MAX	8192u
#define LINE_ROOM	4096u	/* longest line, with its prefix */
#define STEP_LINES	300u	/* about so many lines a step */
#define FIRST_SECOND	1749600000	/* 2025-06-11 */

enum prefix { PREFIX_LABEL, PREFIX_LOCAL, PREFIX_NONE };

struct kind {
	unsigned	 weight;
	const char	*text;	/* see put_field() */
};

static const struct kind healthy[] = {
	{ 150, " [%T] iteration %8s/  480000 | consumed samples: %9c | elapsed "
	  "time per iteration (ms): 1%n3.%n1 | throughput per GPU "
	  "(TFLOP/s/GPU): 4%n2.%n1 | learning rate: %n1.%n6E-05 | global batch "
	  "size:  1024 | lm loss: 2.%n6E+00 | loss scale: 1.0 | grad norm: "
	  "0.%n3 | number of skipped iterations:   0 | number of nan "
	  "iterations:   0 |" },
	{ 60, "[%T] [INFO] [logging.py:107:log_dist] [Rank %r] step=%s, skipped=0, "
	  "lr=[0.0002%n4], mom=[[0.9, 0.95]]" },
	{ 50, "[titan] %T - root - INFO - step: %6s  loss:  2.%n4  grad_norm:  "
	  "0.%n4  memory: %n2.%n2GiB(8%n1.%n2%%)  tps: 7,%n3  tflops: 3%n2.%n2  "
	  "mfu: 3%n1.%n2%%" },
	{ 40, "{'loss': 2.%n4, 'grad_norm': 0.%n9, 'learning_rate': 1.%n6e-05, "
	  "'epoch': 0.%n2}" },
	{ 40, "Epoch 0:  %n2%%|####      | %s/480000 [1%n1:%M:%M<2%n2:%M:%M,  "
	  "1.%n2s/it, v_num=%n1, train/loss=2.%n3, train/lr=1.%n2e-5]" },
	{ 30, "%T DEBUG telemetry rank=%r host=%h step=%s fwd_ms=%n3.%n1 "
	  "bwd_ms=%n3.%n1 comm_wait_ms=%n2.%n1 stalls=0 errors=0 dropped=0 "
	  "timeout_s=1800 oom_retries=0 nan=0 inf=0" },
	{ 24, "(min, max) time across ranks (ms):    forward-backward "
	  "...............................: (1%n3.%n2, 1%n3.%n2)    optimizer "
	  "......................................: (%n2.%n2, %n2.%n2)" },
	{ 22, "%h:%p:%p [%l] NCCL INFO Channel %n2/0 : %r[%l] -> %R[%L] via "
	  "P2P/CUMEM" },
	{ 22, "%h:%p:%p [%l] NCCL INFO Channel %n2/1 : %r[%l] -> %R[%L] [receive] "
	  "via NET/IB/%n1/GDRDMA" },
	{ 8, "%h:%p:%p [%l] NCCL INFO Trees [0] %R/-1/-1->%r->%R [1] "
	  "%R/%R/-1->%r->-1" },
	{ 8, "%h:%p:%p [%l] NCCL INFO comm 0x%x rank %r nRanks 512 nNodes 64 "
	  "localRanks 8 localRank %l MNNVL 0" },
	{ 6, "%h:%p:%p [%l] NCCL INFO NCCL_IB_TIMEOUT set by environment to 2%n1." },
	{ 6, "%h:%p:%p [%l] NCCL INFO TORCH_NCCL_ASYNC_ERROR_HANDLING set by "
	  "environment to 1." },
	{ 6, "%h:%p:%p [%l] NCCL INFO ncclCommInitRankConfig comm 0x%x rank %r nranks "
	  "512 cudaDev %l nvmlDev %l busId %n1b000 commId 0x%x - Init COMPLETE" },
	{ 5, "%h:%p:%p [%l] NCCL INFO comm 0x%x rank %r - Destroy COMPLETE" },
	{ 24, "loader[%l] %T shard part-%n5.tar.zst: %n4 samples in %n1.%n2 s, "
	  "cache hit, corrupt 0, retries 0, failed 0" },
	{ 16, "[Rank %r] (after %s iterations) memory (MB) | allocated: %n5.%n2 | "
	  "max allocated: 6%n4.%n2 | reserved: 7%n4.0 | max reserved: 7%n4.0" },
	{ 14, "DEBUG:filelock:Lock 14%n9 acquired on /cache/hub/.locks/%x.lock" },
	{ 12, "DEBUG:urllib3.connectionpool:https://objects.example:443 \"GET "
	  "/corpus/part-%n5.idx HTTP/1.1\" 200 %n6" },
	{ 12, "gpu%l %T temp=6%n1C hbm=7%n1C power=6%n2W sm=9%n1%% ecc_sbe=%n1 "
	  "ecc_dbe=0 xid=0 nvlink_crc=0 throttle=none" },
	{ 10, "saving checkpoint at iteration %7s to /store/llm/run%n2/ckpt in "
	  "torch_dist format" },
	{ 10, "  successfully saved checkpoint from iteration %7s to "
	  "/store/llm/run%n2/ckpt [ t 1/8, p 1/4 ]" },
	{ 8, " validation loss at iteration %s on validation set | lm loss value: "
	  "2.%n6E+00 | lm loss PPL: 1.%n6E+01 | " },
	{ 8, "I%G %p torch/distributed/checkpoint/filesystem.py:%n3] wrote "
	  "__%r_%n1.distcp, %n7 bytes, no errors" },
	{ 8, "V%G %p torch/_dynamo/guards.py:%n4] [%n1/%n1] GUARDS: cache hit, 0 "
	  "recompiles, cause: none" },
	{ 6, "/opt/venv/lib/python3.11/site-packages/torch/%m.py:%n3: FutureWarning: "
	  "this argument is deprecated and will raise an error in a later release" },
	{ 6, "/opt/venv/lib/python3.11/site-packages/torch/%m.py:%n3: UserWarning: "
	  "lr_scheduler.step() was called before optimizer.step()" },
	{ 4, "  warnings.warn(" },
	{ 4, "[W socket.cpp:6%n2] [c10d] The client socket has timed out after "
	  "%n2s while trying to connect to (%H, 29500); retrying." },
	{ 4, "WARNING:gcs:upload of events.%n5 took %n1.%n1 s, slower than the soft "
	  "limit, will not be retried" },
	{ 4, "health: node %h passed (gpu 8/8, ib 8/8, nvlink ok, kernel errors none, "
	  "failed units 0)" },
	{ 3, "Waiting for %n2 of 512 ranks at the barrier, timeout in 5%n2 s" },
	{ 3, "{\"event\":\"heartbeat\",\"rank\":%r,\"step\":%s,\"state\":\"healthy\","
	  "\"last_error\":null,\"restarts\":0,\"killed\":0}" },
	{ 3, "  %m ........................................................ %n3" },
};

/* Lines of one event are printed by one rank; each counts as an error line. */
static const char *const errors[] = {
	"Traceback (most recent call last):\n"
	"  File \"/opt/llm/train.py\", line %n3, in <module>\n"
	"    main(parse())\n"
	"  File \"/opt/llm/model/%m.py\", line %n3, in forward\n"
	"    h = self.mlp(self.norm(h))\n"
	"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %n1.%n2 GiB. "
	"GPU %l has a total capacity of 79.11 GiB of which %n3.%n2 MiB is free.",
	"Traceback (most recent call last):\n"
	"  File \"/opt/llm/data/%m.py\", line %n3, in __getitem__\n"
	"    return self.index[key]\n"
	"KeyError: 'doc_%n7'",
	"[rank%r]:[E%G ProcessGroupNCCL.cpp:632] [PG ID 0 PG GUID 0(default_pg) Rank "
	"%r] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=%n6, "
	"OpType=ALLREDUCE, NumelIn=%n8, NumelOut=%n8, Timeout(ms)=600000) ran for "
	"600%n3 milliseconds before timing out.",
	"%h:%p:%p [%l] misc/socket.cc:7%n1 NCCL WARN socketProgress: Connection "
	"closed by remote peer %H.cluster<%p>",
	"%h:%p:%p [%l] NCCL WARN NET/IB : Got completion from peer 10.%n2.%n2.%n1"
	"<%p> with status=12 opcode=0 len=0 vendor err 129 (Recv)",
	"[%n6.%n6] NVRM: Xid (PCI:0000:%n1b:00): 79, pid=%p, name=python3, GPU has "
	"fallen off the bus.",
	"[%n6.%n6] NVRM: Xid (PCI:0000:%n1b:00): 94, pid=%p, name=python3, Contained: "
	"SM (0x1). RST: No, D-RST: No",
	"RuntimeError: CUDA error: an illegal memory access was encountered",
	"OSError: [Errno 28] No space left on device: '/store/llm/run%n2/ckpt/%s'",
	"OSError: [Errno 5] Input/output error",
	"FileNotFoundError: [Errno 2] No such file or directory: '/data/part-%n5.idx'",
	"RuntimeError: DataLoader worker (pid %p) is killed by signal: Killed. ",
	"slurmstepd: error: Detected 1 oom_kill event in StepId=%n6.0. Some of the "
	"step tasks have been OOM Killed.",
	"slurmstepd: error: *** STEP %n6.0 ON %h CANCELLED AT 2025-06-11T1%n1:%M:%M "
	"DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
	"srun: error: %h: task %r: Exited with exit code 1",
	"ConnectionResetError: [Errno 104] Connection reset by peer",
	"terminate called after throwing an instance of 'c10::DistBackendError'",
	"AssertionError: expected %n4 tokens, got %n4",
};

static const char *const modules[] = {
	"nn/modules/module", "optim/lr_scheduler", "utils/checkpoint",
	"distributed/fsdp/api", "utils/data/dataloader", "autograd/graph",
	"nn/parallel/replicas", "distributed/c10d_logger"
};

#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))

struct gen {
	uint64_t	 random[2];
	char		 buf[1 << 18];
	size_t		 used;
	uint64_t	 bytes, lines, error_lines;
	enum prefix	 prefix;
	unsigned	 rank;
	unsigned	 step;
	unsigned	 ms;
	time_t		 second;
	char		 stamp[40];	/* of the second, as in %T */
	char		 glog[40];	/* ... as in %G */
	char		**samples;
	size_t		 sample_count;
};

/* xoroshiro128+ (Blackman and Vigna). */
static uint64_t
next_random(struct gen *g)
{
	uint64_t a = g->random[0], b = g->random[1], sum = a + b;

	b ^= a;
	g->random[0] = (a << 24 | a >> 40) ^ b ^ b << 16;
	g->random[1] = b << 37 | b >> 27;
	return sum;
}

static unsigned
below(struct gen *g, unsigned n)
{
	return (unsigned)((next_random(g) >> 32) * n >> 32);
}

static void
put(struct gen *g, const char *text, size_t len)
{
	memcpy(g->buf + g->used, text, len);
	g->used += len;
}

static void
put_text(struct gen *g, const char *text)
{
	put(g, text, strlen(text));
}

static void
put_number(struct gen *g, unsigned long v, unsigned width, char fill)
{
	char text[24];
	unsigned n = sizeof(text);

	do
		text[--n] = (char)('0' + v % 10);
	while ((v /= 10) > 0);
	while (sizeof(text) - n < width)
		text[--n] = fill;
	put(g, text + n, sizeof(text) - n);
}

static void
put_digits(struct gen *g, unsigned count)
{
	uint64_t r = next_random(g);

	for (; count > 0; count--, r >>= 4)
		g->buf[g->used++] = (char)('0' + ((r & 15) * 10 >> 4));
}

static void
put_hex(struct gen *g)
{
	uint64_t r = next_random(g);
	int i;

	for (i = 0; i < 12; i++, r >>= 4)
		g->buf[g->used++] = "0123456789abcdef"[r & 15];
}

static void
put_node(struct gen *g, unsigned rank)
{
	put_text(g, "node");
	put_number(g, rank / RANKS_A_NODE, 4, '0');
}

static void
advance(struct gen *g)
{
	struct tm tm;

	g->ms += below(g, 7);
	if (g->ms < 1000 && g->stamp[0] != '\0')
		return;
	g->ms %= 1000;
	g->second++;
	gmtime_r(&g->second, &tm);
	strftime(g->stamp, sizeof(g->stamp), "%Y-%m-%d %H:%M:%S", &tm);
	strftime(g->glog, sizeof(g->glog), "%m%d %H:%M:%S", &tm);
}

/* T, G: time; s: step, c: samples so far; r, l, h: rank, its local one and its node;
 * R, L, H: of another rank; p: pid; x: hex; m: module; M: minutes or seconds; n:
 * random digits. */
static void
put_field(struct gen *g, char field, unsigned width)
{
	unsigned other = (g->rank + 1 + below(g, 32)) % RANKS;

	switch (field) {
	case 'T':
	case 'G':
		put_text(g, field == 'T' ? g->stamp : g->glog);
		put_text(g, field == 'T' ? "," : ".");
		put_number(g, g->ms, 3, '0');
		if (field == 'G')
			put_digits(g, 3);
		break;
	case 's':
		put_number(g, g->step, width, ' ');
		break;
	case 'c':
		put_number(g, g->step * 1024ul, width, ' ');
		break;
	case 'r':
	case 'R':
		put_number(g, field == 'r' ? g->rank : other, 0, ' ');
		break;
	case 'l':
	case 'L':
		put_number(g, (field == 'l' ? g->rank : other) % RANKS_A_NODE, 0,
		    ' ');
		break;
	case 'h':
	case 'H':
		put_node(g, field == 'h' ? g->rank : other);
		break;
	case 'p':
		put_number(g, 20000 + g->rank * 37 + below(g, 16), 0, ' ');
		break;
	case 'x':
		put_hex(g);
		break;
	case 'M':
		put_number(g, below(g, 60), 2, '0');
		break;
	case 'm':
		put_text(g, modules[below(g, COUNT(modules))]);
		break;
	default:
		g->buf[g->used++] = field;
	}
}

static void
put_prefix(struct gen *g)
{
	if (g->prefix == PREFIX_LABEL) {
		put_number(g, g->rank, 3, ' ');
		put_text(g, ": ");
	} else if (g->prefix == PREFIX_LOCAL) {
		put_text(g, "[default");
		put_number(g, g->rank % RANKS_A_NODE, 0, ' ');
		put_text(g, "]:");
	}
}

/* Prints the text's fields, each line of it behind the prefix; returns the number of
 * lines. */
static unsigned
put_lines(struct gen *g, const char *text)
{
	unsigned lines = 1, width;

	put_prefix(g);
	for (; *text != '\0'; text++) {
		if (*text == '\n') {
			g->buf[g->used++] = '\n';
			put_prefix(g);
			lines++;
		} else if (*text != '%') {
			g->buf[g->used++] = *text;
		} else if (*++text == 'n') {
			put_digits(g, (unsigned)(*++text - '0'));
		} else {
			width = *text >= '0' && *text <= '9' ?
			    (unsigned)(*text++ - '0') : 0;
			put_field(g, *text, width);
		}
	}
	g->buf[g->used++] = '\n';
	return lines;
}

/* Long numbers (pids, ports, sizes, counters) differ from line to line; short ones
 * mean something (error numbers, signals), and so do years. */
static void
put_sample(struct gen *g, const char *text)
{
	size_t n;

	put_prefix(g);
	while (*text != '\0') {
		n = strspn(text, "0123456789");
		if (n >= 4 && text[n] != '-') {
			put_digits(g, (unsigned)n);
			text += n;
		} else {
			n = n > 0 ? n : strcspn(text, "0123456789");
			put(g, text, n);
			text += n;
		}
	}
	g->buf[g->used++] = '\n';
}

/* In small writes, as logs come: pages of the cache would be larger, and faster to map,
 * after large ones. */
static int
flush(struct gen *g)
{
	size_t at, n;

	for (at = 0; at < g->used; at += n) {
		n = g->used - at < WRITE_MAX ? g->used - at : WRITE_MAX;
		if (write(STDOUT_FILENO, g->buf + at, n) != (ssize_t)n)
			return -1;
	}
	g->bytes += g->used;
	g->used = 0;
	return 0;
}

/* Room for one more event; false when all is written. */
static int
make_room(struct gen *g, uint64_t bytes)
{
	if (g->used > sizeof(g->buf) - 8 * LINE_ROOM && flush(g) == -1)
		return -1;
	return g->bytes + g->used < bytes;
}

static int
write_dense(struct gen *g, uint64_t bytes, unsigned times)
{
	const char *sample;
	unsigned i;
	int more;

	do {
		sample = g->samples[below(g, (unsigned)g->sample_count)];
		for (i = 0; i < times; i++) {
			if ((more = make_room(g, bytes)) != 1)
				return more;
			g->rank = below(g, RANKS);
			put_sample(g, sample);
			g->lines++;
			g->error_lines++;
		}
	} while (true);
}

static const char *
choose_healthy(struct gen *g, unsigned sum)
{
	unsigned r = below(g, sum), i;

	for (i = 0; r >= healthy[i].weight; i++)
		r -= healthy[i].weight;
	return healthy[i].text;
}

static int
write_mixed(struct gen *g, uint64_t bytes, unsigned per_million)
{
	unsigned sum = 0, n;
	double next = 0, gap = per_million > 0 ? 1e6 / per_million : 0;
	size_t i;
	int more;

	for (i = 0; i < COUNT(healthy); i++)
		sum += healthy[i].weight;
	next = gap / 2;
	while ((more = make_room(g, bytes)) == 1) {
		advance(g);
		g->rank = below(g, RANKS);
		g->step += below(g, STEP_LINES) == 0;
		if (gap > 0 && (double)g->lines >= next) {
			n = put_lines(g, errors[below(g, COUNT(errors))]);
			g->error_lines += n;
			next += n * gap;
		} else {
			n = put_lines(g, choose_healthy(g, sum));
		}
		g->lines += n;
	}
	return more;
}

static int
read_samples(struct gen *g, const char *path)
{
	FILE *f = fopen(path, "re");
	char *line = NULL, **p;
	size_t cap = 0;
	ssize_t n;

	if (f == NULL)
		return -1;
	while ((n = getline(&line, &cap, f)) > 0) {
		if (line[n - 1] == '\n')
			line[--n] = '\0';
		if (n == 0 || n > (ssize_t)LINE_ROOM / 2)
			continue;
		p = reallocarray(g->samples, g->sample_count + 1, sizeof(*p));
		if (p == NULL)
			break;
		g->samples = p;
		if ((p[g->sample_count] = strdup(line)) == NULL)
			break;
		g->sample_count++;
	}
	free(line);
	fclose(f);
	if (g->sample_count == 0)
		errno = EINVAL;
	return g->sample_count > 0 ? 0 : -1;
}

static int
usage(void)
{
	fprintf(stderr, "usage: loggen [-e PER_MILLION] [-p label|local|none] "
	    "[-d SAMPLES [-b TIMES]] BYTES SEED\n");
	return 2;
}

static int
find_prefix(const char *name, enum prefix *out)
{
	static const char *const names[] = { "label", "local", "none" };
	size_t i;

	for (i = 0; i < COUNT(names); i++)
		if (strcmp(name, names[i]) == 0) {
			*out = (enum prefix)i;
			return 0;
		}
	return -1;
}

int
main(int argc, char **argv)
{
	static struct gen g;
	unsigned per_million = 0, times = 1;
	const char *samples = NULL;
	uint64_t bytes;
	int c, i;

	while ((c = getopt(argc, argv, "b:d:e:p:")) != -1)
		if (c == 'b')
			times = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'd')
			samples = optarg;
		else if (c == 'e')
			per_million = (unsigned)strtoul(optarg, NULL, 10);
		else if (c != 'p' || find_prefix(optarg, &g.prefix) == -1)
			return usage();
	if (argc - optind != 2 || times == 0)
		return usage();
	bytes = strtoull(argv[optind], NULL, 10);
	g.step = 1;
	g.second = FIRST_SECOND;
	g.random[0] = strtoull(argv[optind + 1], NULL, 10) *
	    0x9e3779b97f4a7c15ull + 1;
	g.random[1] = ~g.random[0];
	for (i = 0; i < 16; i++)
		(void)next_random(&g);
	if (samples != NULL && read_samples(&g, samples) == -1)
		goto fail;
	if ((samples != NULL ? write_dense(&g, bytes, times) :
	    write_mixed(&g, bytes, per_million)) == -1 || flush(&g) == -1)
		goto fail;
	fprintf(stderr, "%llu %llu\n", (unsigned long long)g.lines,
	    (unsigned long long)g.error_lines);
	return 0;
fail:
	fprintf(stderr, "loggen: %s\n", strerror(errno));
	return 2;
}
