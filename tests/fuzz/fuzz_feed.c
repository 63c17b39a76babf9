/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_feed.c - any bytes as the log of a rank, as exits of a node, and as a live
 * stream in chunks; and what is printed of them.  A libFuzzer target:
 *
 *	clang -fsanitize=fuzzer,address,undefined ... fuzz_feed.c
 *
 * The first byte says what the rest is, and how it is cut.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/text.h"
#include "diagnose/causes.h"
#include "diagnose/explain.h"
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

/* A card is small and clean, whatever the log holds. */
static void
check_text(const char *text, size_t len, size_t rows_max)
{
	struct buf clean = {0};
	size_t i, rows = 0;

	for (i = 0; i < len; i++) {
		if (text[i] == '\n')
			rows++;
		else if ((unsigned char)text[i] < 0x20)
			abort();
	}
	if (rows > rows_max || text_utf8_clean(text, len, &clean) == -1 ||
	    clean.len != len)
		abort();
	buf_fini(&clean);
}

static void
check_json(char *text)
{
	cJSON *o = NULL;

	if (text == NULL || json_parse(text, strlen(text), &o, NULL) == -1)
		abort();
	check_text(text, strlen(text), 1);
	cJSON_Delete(o);
	free(text);
}

static void
print_all(struct rule_set *set, const struct feed *feed,
    const struct verdict *v, const struct findings *all, size_t pick)
{
	const struct card_style style = { false, 40 + (int)(pick % 61) };
	const struct explain_options how = { &style, pick & 1, pick & 2 };
	char *out = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&out, &len);

	if (f == NULL)
		return;
	card_print(v, &style, f);
	fflush(f);
	check_text(out, len, CARD_ROWS);
	findings_print(all, &style, pick & 1, f);
	(void)explain_rule(&how, set, &set->rules[pick % set->count], feed, f,
	    NULL);
	fclose(f);
	check_text(out, len, SIZE_MAX);
	free(out);
}

static void
run_causes(struct rule_set *set, const char *name, const char *data,
    size_t len, size_t pick)
{
	struct findings all = {0};
	const struct causes_extra extra = { .findings = &all };
	struct feed feed = {0};
	struct verdict v = {0};

	if (feed_add_memory(&feed, name, data, len, NULL) == 0 &&
	    causes_find_all(set, &feed, &extra, &v, NULL) == 0) {
		check_json(verdict_json_all(&v, &all));
		print_all(set, &feed, &v, &all, pick);
	}
	verdict_fini(&v);
	findings_fini(&all);
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
	run_causes(set, names[bytes[0] % 3], data, len - 1,
	    bytes[0] * 257u + len);
	run_live(set, data, len - 1, bytes[0] % 61u + 1);
	return 0;
}
