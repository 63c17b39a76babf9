/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - multi-literal search by rare four-byte fragments.
 *
 * Decides nothing about lines or rules: it reads raw bytes and reports where a
 * literal stands.  Each literal is represented by the four of its bytes that
 * are rarest in healthy logs.  A 64 Kbit bitmap of hashed fragments, small
 * enough for the first-level cache, is asked at each position; only where it
 * says yes the literals of that fragment are compared.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/scan.h"

#define FRAGMENT	4
#define HASH_BITS	16
#define HASH_SIZE	(1u << HASH_BITS)

struct entry {
	uint32_t	fragment;	/* as read from the buffer */
	uint32_t	literal;
	uint8_t		offset;		/* of the fragment in the literal */
	uint8_t		len;
	bool		fold;
};

struct scanner {
	const struct scan_literal *literals;
	uint64_t	 bits[HASH_SIZE / 64];
	uint16_t	 first[HASH_SIZE / 16 + 1];	/* by the upper hash bits */
	struct entry	*entries;
	size_t		 count, cap;
};

static uint32_t
read_fragment(const char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t
hash(uint32_t v)
{
	return (v * 0x9e3779b1u) >> (32 - HASH_BITS);
}

/* How common a byte is in healthy training logs, roughly: small is rare. */
static unsigned
byte_cost(unsigned char c)
{
	static const unsigned char letters[26] = {
		/* a b c d e f g h i j k l m n o p q r s t u v w x y z */
		8, 6, 6, 6, 8, 6, 6, 6, 8, 6, 6, 8, 6, 8, 8, 6, 6, 8, 8, 8, 6, 6, 6,
		6, 6, 6
	};

	if (c >= 'a' && c <= 'z')
		return letters[c - 'a'];
	if (c >= 'A' && c <= 'Z')
		return 3;
	if (c >= '0' && c <= '9')
		return 9;
	switch (c) {
	case ' ':
		return 12;
	case '.': case ':': case ',': case '=': case '-': case '_': case '/':
	case '[': case ']': case '(': case ')': case '|':
		return 6;
	default:
		return 2;
	}
}

/* What healthy logs are made of, in the styles of the usual trainers.  A fragment
 * that occurs in it would be asked about on nearly every line. */
static const char healthy[] =
    " [2026-01-31 03:12:41,641] [INFO] [logging.py:68:log_dist] [Rank 0] step=10,"
    " skipped=0, lr=[0.05], mom=[(0.9, 0.999)] [timer.py:197:stop] epoch=0/micro"
    "_step=10/global_step=10, RunningAvgSamplesPerSec=3.0, CurrSamplesPerSec=2.1,"
    " MemAllocated=0.02GB, MaxMemAllocated=0.02GB rank_0 | INFO | __main__: - \n"
    " iteration      100/   1000 | consumed samples:   6400 | elapsed time per "
    "iteration (ms): 312.5 | throughput per GPU (TFLOP/s/GPU): 380.1 | learning "
    "rate: 1.000000E-05 | global batch size:  1024 | lm loss: 7.330000E+00 | loss "
    "scale: 1.0 | grad norm: 0.512 | params norm: 1.0 | number of skipped "
    "iterations:   0 | number of nan iterations:   0 | num zeros: 0.0 |\n"
    "time (ms) | forward-compute: backward-compute: batch-generator: optimizer: "
    "validation loss at iteration 100 | lm loss value: | lm loss PPL: memory (MB) "
    "allocated: max allocated: reserved: max reserved: saving checkpoint at "
    "iteration 100 to checkpoints/ successfully saved checkpoint\n"
    "{'loss': 1.25, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'epoch': 0.1} "
    "12%|##  | 12/100 [00:10<01:00,  2.00it/s, train_loss=1.5, v_num=0] s/it "
    "Epoch 0: Training: Validation: Loading checkpoint shards: Generating train "
    "split: examples/s Map: Downloading data files Tokenizing\n"
    "step: 10  loss:  7.12  memory: 12.3GiB(13%)  tps: 8,000  mfu: 40.1% "
    "iter 100: loss 2.3456, time 12.5ms, mfu 3.2% train_loss reduced_train_loss "
    "global_step: train_step_timing in s: samples tokens total_loss num_updates "
    "| epoch 027 | loss 6.343 | ppl 31.65 | wps 181313 | ups 0.4 | lr 0.0006 |\n"
    "node01:4711:4790 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read"
    " [send] via NET/IB/0/GDRDMA Trees [0] Ring 00 : Connected all rings trees "
    "comm 0x rank 3 nranks 16 cudaDev 3 busId 1a000 - Init COMPLETE NET/Socket : "
    "Using [0]eth0:10.0.0.1<0> Bootstrap : NCCL version NCCL_IB_TIMEOUT "
    "[default0]: [rank0]: torch.distributed torch/nn/modules/module.py UserWarning:"
    " FutureWarning: DeprecationWarning: warnings.warn( is deprecated. Please use "
    "instead. site-packages/transformers/trainer.py megatron/core/ deepspeed/ "
    "number of parameters on (tensor, pipeline) model parallel rank building GPT "
    "model ... node GPU memory usage data loader num_workers batch_size world_size "
    "MASTER_ADDR MASTER_PORT WORLD_SIZE errors=0 nodes host stderr stdout main ";

#define HEALTHY_BITS	14

static void
learn_healthy(uint64_t *bits)
{
	size_t i;
	uint32_t h;

	for (i = 0; i + FRAGMENT < sizeof(healthy); i++) {
		h = hash(read_fragment(healthy + i)) >> (HASH_BITS - HEALTHY_BITS);
		bits[h / 64] |= 1ull << (h % 64);
	}
}

static bool
is_healthy(const uint64_t *bits, const char *p)
{
	uint32_t h = hash(read_fragment(p)) >> (HASH_BITS - HEALTHY_BITS);

	return bits[h / 64] >> (h % 64) & 1;
}

static size_t
best_offset(const uint64_t *bits, const char *text, size_t len, bool fold)
{
	size_t i, k, best = 0;
	unsigned cost, least = ~0u;

	for (i = 0; i + FRAGMENT <= len; i++) {
		cost = is_healthy(bits, text + i) ? 5000 : 0;
		for (k = 0; k < FRAGMENT; k++) {
			unsigned c = byte_cost((unsigned char)text[i + k]);

			/* An any-case fragment is up to 16 fragments. */
			cost += c * c;
			if (fold && isalpha((unsigned char)text[i + k]))
				cost += 20;
		}
		if (cost < least) {
			least = cost;
			best = i;
		}
	}
	return best;
}

static int
add_entry(struct scanner *s, struct entry e, struct err *err)
{
	struct entry *p;

	if (s->count == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 256;
		p = realloc(s->entries, s->cap * sizeof(*p));
		if (p == NULL)
			return err_memory(err);
		s->entries = p;
	}
	s->entries[s->count++] = e;
	return 0;
}

/* One entry, or one per spelling of the fragment's letters. */
static int
add_literal(struct scanner *s, const uint64_t *bits, uint32_t index,
    struct err *err)
{
	const struct scan_literal *l = &s->literals[index];
	struct entry e = { .literal = index, .fold = l->fold };
	size_t len = strlen(l->text);
	unsigned spelling, k;
	char f[FRAGMENT];

	if (len < SCAN_LITERAL_MIN || len > SCAN_LITERAL_MAX)
		return err_set(err, ERR_LIMIT,
		    "literal '%.80s' is not %d to %d bytes long", l->text,
		    SCAN_LITERAL_MIN, SCAN_LITERAL_MAX);
	e.len = (uint8_t)len;
	e.offset = (uint8_t)best_offset(bits, l->text, len, l->fold);
	for (spelling = 0; spelling < 1u << FRAGMENT; spelling++) {
		for (k = 0; k < FRAGMENT; k++) {
			f[k] = l->text[e.offset + k];
			if (!(spelling >> k & 1))
				continue;
			if (!l->fold || !islower((unsigned char)f[k]))
				break;
			f[k] = (char)toupper((unsigned char)f[k]);
		}
		if (k < FRAGMENT)
			continue;
		e.fragment = read_fragment(f);
		if (add_entry(s, e, err) == -1)
			return -1;
	}
	return 0;
}

static int
compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	uint32_t hx = hash(x->fragment), hy = hash(y->fragment);

	if (hx != hy)
		return hx < hy ? -1 : 1;
	return x->literal < y->literal ? -1 : x->literal > y->literal;
}

int
scan_new(const struct scan_literal *literals, size_t count,
    struct scanner **out, struct err *err)
{
	struct scanner *s = calloc(1, sizeof(*s));
	uint64_t bits[(1u << HEALTHY_BITS) / 64] = {0};
	size_t i, b;

	if (s == NULL)
		return err_memory(err);
	learn_healthy(bits);
	s->literals = literals;
	for (i = 0; i < count; i++)
		if (add_literal(s, bits, (uint32_t)i, err) == -1)
			goto fail;
	if (s->count > UINT16_MAX) {
		err_set(err, ERR_LIMIT, "too many literals");
		goto fail;
	}
	if (s->count > 0)
		qsort(s->entries, s->count, sizeof(*s->entries), compare);
	for (i = 0, b = 0; b <= HASH_SIZE / 16; b++) {
		while (i < s->count &&
		    hash(s->entries[i].fragment) / 16 < b)
			i++;
		s->first[b] = (uint16_t)i;
	}
	for (i = 0; i < s->count; i++) {
		uint32_t h = hash(s->entries[i].fragment);

		s->bits[h / 64] |= 1ull << (h % 64);
	}
	*out = s;
	return 0;
fail:
	scan_free(s);
	return -1;
}

void
scan_free(struct scanner *s)
{
	if (s == NULL)
		return;
	free(s->entries);
	free(s);
}

static bool
equal_fold(const char *text, const char *literal, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		char c = text[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c | 0x20);
		if (c != literal[i])
			return false;
	}
	return true;
}

static bool
report(const struct scanner *s, const char *data, size_t len, size_t pos,
    uint32_t h, scan_hit_fn hit, void *arg)
{
	uint32_t v = read_fragment(data + pos);
	size_t i;

	for (i = s->first[h / 16]; i < s->first[h / 16 + 1]; i++) {
		const struct entry *e = &s->entries[i];
		const char *text = s->literals[e->literal].text;
		size_t start = pos - e->offset;

		if (e->fragment != v || pos < e->offset || len - start < e->len)
			continue;
		if (e->fold ? !equal_fold(data + start, text, e->len) :
		    memcmp(data + start, text, e->len) != 0)
			continue;
		if (!hit(e->literal, start, arg))
			return false;
	}
	return true;
}

void
scan_run(const struct scanner *s, const char *data, size_t len,
    scan_hit_fn hit, void *arg)
{
	size_t pos;
	uint32_t h;

	if (s->count == 0 || len < FRAGMENT)
		return;
	for (pos = 0; pos + FRAGMENT <= len; pos++) {
		h = hash(read_fragment(data + pos));
		if (!(s->bits[h / 64] >> (h % 64) & 1))
			continue;
		if (!report(s, data, len, pos, h, hit, arg))
			return;
	}
}
