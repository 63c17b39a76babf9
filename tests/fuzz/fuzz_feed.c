/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_feed.c - any bytes as the log of a rank, as exits of a node, and as a live
 * stream in chunks.  A libFuzzer target:
 *
 *	clang -fsanitize=fuzzer,address,undefined ... fuzz_feed.c
 *
 * The first byte says what the rest is, and how it is cut.
 */
#include <stdint.h>
#include <stdlib.h>

#include "diagnose/causes.h"
#include "diagnose/live.h"
#include "diagnose/rule_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void
on_match(const struct live_match *m, void *arg)
{
	(void)arg;
	if (m->len > LIVE_HEAD_MAX)
		abort();
}

static void
on_progress(const struct progress *p, uint64_t line, void *arg)
{
	(void)p;
	(void)line;
	(void)arg;
}

static void
run_live(struct rule_set *set, const char *data, size_t len, size_t cut)
{
	const struct live_calls calls = { on_match, on_progress, NULL };
	struct live *live;
	size_t n;

	if (live_new(set, &calls, &live, NULL) == -1)
		return;
	for (; len > 0; data += n, len -= n) {
		n = len < cut ? len : cut;
		live_feed(live, data, n);
	}
	live_flush(live);
	live_free(live);
}

static void
run_causes(struct rule_set *set, const char *name, const char *data,
    size_t len)
{
	struct feed feed = {0};
	struct verdict v = {0};

	if (feed_add_memory(&feed, name, data, len, NULL) == 0 &&
	    causes_find(set, &feed, &v, NULL) == 0)
		free(verdict_json(&v));
	verdict_fini(&v);
	feed_fini(&feed);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const char *const names[] = { "x.log", "n1.exits", "n1.kmsg" };
	static struct rule_set *set;
	const char *data = (const char *)bytes + 1;

	if (set == NULL && rule_load(NULL, NULL, NULL, &set, NULL, NULL) == -1)
		abort();
	if (len == 0)
		return 0;
	run_causes(set, names[bytes[0] % 3], data, len - 1);
	run_live(set, data, len - 1, bytes[0] % 61u + 1);
	return 0;
}
