/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_scan.c - the scanner against memmem(), and rules through the
 * scanner against PCRE2 on every line, on random and on hostile input.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "diagnose/event.h"
#include "diagnose/match.h"

static uint64_t seed = 0x853c49e6748fea9bull;

static unsigned
random_below(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 33) % n;
}

#define LITERALS	6
static struct scan_literal literals[LITERALS] = {
	{ .text = "abcd", .len = 4 }, { .text = "bcda", .len = 4 },
	{ .text = "aaaa", .len = 4 }, { .text = "abab", .len = 4, .fold = true },
	{ .text = "dcba abcd", .len = 9 },
	{ .text = "cc:d", .len = 4, .fold = true }
};

static const char *const levels[] = { "scalar", "avx2", "vbmi" };
#define LEVELS	(sizeof(levels) / sizeof(levels[0]))

static struct scanner *
make_scanner(struct scan_literal *list, size_t count)
{
	static const char text[] = "step 12 loss 0.25 abcd d c b a 1 2 3\n";
	struct scan_sample *sample;
	struct scanner *s = NULL;
	struct err err;

	ck_assert_int_eq(scan_sample_new(text, sizeof(text) - 1, &sample, &err), 0);
	ck_assert_int_eq(scan_plan(list, count, sample, 2, &err), 0);
	ck_assert_int_eq(scan_new(list, count, &s, &err), 0);
	scan_sample_free(sample);
	return s;
}

struct found {
	size_t	count[LITERALS];
	size_t	sum[LITERALS];
};

static bool
on_hit(uint32_t literal, size_t start, void *arg)
{
	struct found *f = arg;

	f->count[literal]++;
	f->sum[literal] += start * 31 + 7;
	return true;
}

static bool
stands(const struct scan_literal *l, const char *p)
{
	size_t n = strlen(l->text);

	return l->fold ? strncasecmp(p, l->text, n) == 0 :
	    memcmp(p, l->text, n) == 0;
}

static size_t
count_newlines(const char *data, size_t len)
{
	size_t n = 0;

	while (len > 0)
		n += data[--len] == '\n';
	return n;
}

static void
compare_scan(const struct scanner *s, const char *data, size_t len)
{
	struct found got = {0}, want = {0};
	size_t i, k;

	for (i = 0; i < len; i++)
		for (k = 0; k < LITERALS; k++)
			if (len - i >= strlen(literals[k].text) &&
			    stands(&literals[k], data + i))
				on_hit((uint32_t)k, i, &want);
	ck_assert_uint_eq(scan_run(s, data, len, on_hit, &got),
	    count_newlines(data, len));
	for (k = 0; k < LITERALS; k++) {
		ck_assert_uint_eq(got.count[k], want.count[k]);
		ck_assert_uint_eq(got.sum[k], want.sum[k]);
	}
}

START_TEST(scan_finds_what_memmem_finds)
{
	static const char alphabet[] = "abcdABCD: \n";
	struct scanner *s;
	char *data;
	size_t len, i;
	int round;

	/* A level the processor lacks is the one below it. */
	setenv("HOLDFAST_SCAN", levels[_i], 1);
	s = make_scanner(literals, LITERALS);
	for (round = 0; round < 2000; round++) {
		/* Exactly as long as the data: reading behind it is seen. */
		len = random_below(round % 10 ? 40 : 3000);
		data = malloc(len + 1);
		for (i = 0; i < len; i++)
			data[i] = alphabet[random_below(round % 3 ? 11 : 4)];
		compare_scan(s, data, len);
		free(data);
	}
	scan_free(s);
}
END_TEST

START_TEST(scan_refuses_short_literals)
{
	struct scan_literal bad = { .text = "abc", .len = 3 };
	struct scan_sample *sample;
	struct scanner *s;
	struct err err;

	ck_assert_int_eq(scan_sample_new("", 0, &sample, &err), 0);
	ck_assert_int_eq(scan_plan(&bad, 1, sample, 0, &err), -1);
	ck_assert_int_eq(err.code, ERR_LIMIT);
	ck_assert_int_eq(scan_new(&bad, 1, &s, &err), -1);
	ck_assert_int_eq(err.code, ERR_LIMIT);
	/* Nor what nobody has planned. */
	bad = (struct scan_literal){ .text = "abcd", .len = 4 };
	ck_assert_int_eq(scan_new(&bad, 1, &s, &err), -1);
	ck_assert_int_eq(err.code, ERR_FORMAT);
	scan_sample_free(sample);
}
END_TEST

START_TEST(scan_ends_when_told)
{
	struct scan_literal one = { .text = "aaaa", .len = 4 };
	struct found f = {0};
	struct scanner *s = make_scanner(&one, 1);

	scan_run(s, "aaaaaaa", 7, on_hit, &f);
	ck_assert_uint_eq(f.count[0], 4);
	scan_run(s, "", 0, on_hit, &f);
	scan_run(s, "aaa", 3, on_hit, &f);
	ck_assert_uint_eq(f.count[0], 4);
	scan_free(s);
}
END_TEST

#define RULES	9
static const char *const patterns[RULES] = {
	"lost: (?:gpu|node) \\d+", "(?i)out of memory", "^boom\\b.*x$",
	"ab{2,3}c(?:ode|url) end", "err(?:or)?= ?[0-9]+ in", "x+yzzy",
	"(?<!no )fault at", "[Tt]imed out after", "(?:a|b|c)(?:1|2)-tail"
};

static struct rule_set *
make_set(void)
{
	static const struct reason reason = { "thing", "script", "w", "a",
	    ACTION_STOP, 0 };
	static char ids[RULES][8];
	struct rule_def d = { .reason = "thing", .file = "t", .action = -1 };
	struct rule_set *set;
	struct err err;
	size_t i;

	ck_assert_int_eq(rule_set_new(&set, &err), 0);
	ck_assert_int_eq(rule_set_add_reason(set, &reason, &err), 0);
	for (i = 0; i < RULES; i++) {
		snprintf(ids[i], sizeof(ids[i]), "r%zu", i);
		d.id = ids[i];
		d.match = patterns[i];
		d.priority = (int)i;	/* one winner a line, the same for both */
		ck_assert_int_eq(rule_set_add(set, &d, &err), 0);
	}
	ck_assert_int_eq(rule_set_finish(set, NULL, NULL, &err), 0);
	for (i = 0; i < set->count; i++)
		ck_assert(!set->rules[i].broken);
	return set;
}

/* Every line, every rule: the slow truth.  Sum of winner and position. */
static uint64_t
naive(struct match *const *m, const char *data, size_t len, size_t *lines)
{
	size_t start = 0, end;
	uint64_t sum = 0;
	int i;

	*lines = 0;
	for (; start < len; start = end + 1) {
		for (end = start; end < len && data[end] != '\n' &&
		    data[end] != '\r'; end++)
			;
		for (i = RULES - 1; i >= 0; i--)
			if (match_run(m[i], data + start, end - start) == MATCH_YES)
				break;
		if (i >= 0) {
			sum += (start + 1) * 1000003 + (uint64_t)i;
			++*lines;
		}
	}
	return sum;
}

static void
add_words(char *data, size_t *len, size_t room)
{
	static const char *const words[] = {
		"lost: gpu ", "lost: node 7", "OUT OF mem", "ory", "Out Of Memory",
		"boom", " x", "abbc", "abbbcode end", "url end", "err= 12 in",
		"error=3 in", "xxyzzy", "no fault at", "fault at", "Timed out",
		" after", "b2-tail", "a", "1", " ", "\n", "\n", "\r", "no ", "timed ",
		"0", "e", "\xff\xfe", "c1-tai"
	};
	const char *w = words[random_below(sizeof(words) / sizeof(words[0]))];

	if (*len + strlen(w) <= room) {
		memcpy(data + *len, w, strlen(w));
		*len += strlen(w);
	}
}

static void
compare_rules(struct rule_set *set, struct match *const *m,
    const char *data, size_t len)
{
	struct events ev = {0};
	struct feed feed = {0};
	uint64_t want, got = 0;
	struct err err;
	size_t i, lines;

	want = naive(m, data, len, &lines);
	ck_assert_int_eq(feed_add_memory(&feed, "t", data, len, &err), 0);
	ck_assert_int_eq(events_collect(&ev, set, &feed, 0, &err), 0);
	for (i = 0; i < ev.count; i++)
		got += (ev.list[i].start + 1) * 1000003 +
		    (uint64_t)ev.list[i].rule->def.priority;
	ck_assert_uint_eq(ev.count, lines);
	ck_assert_uint_eq(got, want);
	events_fini(&ev);
	feed_fini(&feed);
}

START_TEST(rules_find_what_pcre2_finds)
{
	struct rule_set *set = make_set();
	struct match *m[RULES];
	char data[2000];
	struct err err;
	size_t len;
	int i, round;

	for (i = 0; i < RULES; i++)
		ck_assert_int_eq(match_new(patterns[i], &m[i], &err), 0);
	for (round = 0; round < 3000; round++) {
		len = 0;
		for (i = (int)random_below(120); i > 0; i--)
			add_words(data, &len, sizeof(data));
		compare_rules(set, m, data, len);
	}
	for (i = 0; i < RULES; i++)
		match_free(m[i]);
	rule_set_free(set);
}
END_TEST

/* A line of many megabytes without an end: its head counts, its rest does not,
 * and the next line is found. */
START_TEST(endless_line_is_bounded)
{
	struct rule_set *set = make_set();
	struct events ev = {0};
	struct feed feed = {0};
	size_t len = 20u << 20, i;
	char *data = malloc(len);
	struct err err;

	for (i = 0; i + 16 < len; i += 8)
		memcpy(data + i, "xxyzzy.\0", 8);
	memset(data + i, 'q', len - i);
	memcpy(data, "head xyzzy ", 11);
	memcpy(data + len - 14, "\nlost: node 3\n", 14);
	ck_assert_int_eq(feed_add_memory(&feed, "t", data, len, &err), 0);
	ck_assert_int_eq(events_collect(&ev, set, &feed, 0, &err), 0);
	ck_assert_uint_eq(ev.count, 2);
	ck_assert_uint_eq(ev.list[0].start, 0);
	ck_assert_uint_eq(ev.list[1].start, len - 13);
	events_fini(&ev);
	feed_fini(&feed);
	free(data);
	rule_set_free(set);
}
END_TEST

/* A rule that matches every line is counted in full and kept in part. */
START_TEST(many_events_are_counted)
{
	struct rule_set *set = make_set();
	struct events ev = {0};
	struct feed feed = {0};
	size_t n = 5000, i;
	char *data = malloc(n * 8);
	struct err err;

	for (i = 0; i < n; i++)
		memcpy(data + i * 8, "xyzzy..\n", 8);
	ck_assert_int_eq(feed_add_memory(&feed, "t", data, n * 8, &err), 0);
	ck_assert_int_eq(events_collect(&ev, set, &feed, 0, &err), 0);
	ck_assert_uint_eq(ev.count, EVENT_FIRST + EVENT_LAST);
	ck_assert_uint_eq(ev.list[0].start, 0);
	ck_assert_uint_eq(ev.list[ev.count - 1].start, (n - 1) * 8);
	ck_assert_uint_eq(ev.matched[rule_set_find(set, "r5")], n);
	events_fini(&ev);
	feed_fini(&feed);
	free(data);
	rule_set_free(set);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("diagnose_scan");
	TCase *t = tcase_create("all");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, scan_finds_what_memmem_finds, 0, LEVELS);
	tcase_add_test(t, scan_refuses_short_literals);
	tcase_add_test(t, scan_ends_when_told);
	tcase_add_test(t, rules_find_what_pcre2_finds);
	tcase_add_test(t, endless_line_is_bounded);
	tcase_add_test(t, many_events_are_counted);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
