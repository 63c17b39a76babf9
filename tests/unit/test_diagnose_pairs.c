/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_pairs.c - the engine against the slow truth: which lines each
 * shipped rule matches by PCRE2 alone, with no scanner, no guard taken off, no
 * templates, no threads; at each level of the scanner.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/ahead.h"
#include "diagnose/digits.h"
#include "diagnose/event.h"
#include "diagnose/guard.h"
#include "diagnose/match.h"
#include "rule_fixture.h"
#include "unit.h"

static const char *const levels[] = { "scalar", "avx2", "vbmi" };
#define LEVELS	(sizeof(levels) / sizeof(levels[0]))

/* A sample of some rule; those that teach prefixes are left out, since what they
 * do to other lines is not a matter of pairs. */
static const char *
random_sample(const struct rule_set *set)
{
	for (;;) {
		const struct rule_def *d =
		    &set->rules[unit_random((unsigned)set->count)].def;
		const char *const *list = unit_random(3) ? d->examples :
		    d->counterexamples;
		size_t n = 0;

		while (list != NULL && list[n] != NULL)
			n++;
		if (n == 0)
			continue;
		n = unit_random((unsigned)n);
		if (strstr(list[n], "Traceback") != NULL ||
		    strpbrk(list[n], "\r\033") != NULL)
			continue;
		return list[n];
	}
}

static void
put(struct buf *b, const char *text, size_t len)
{
	ck_assert_int_eq(buf_append(b, text, len), 0);
}

static void
put_text(struct buf *b, const char *text)
{
	put(b, text, strlen(text));
}

/* Digits change, letters lose their case, a byte goes wrong, an end is cut. */
static void
put_mutated(struct buf *b, const char *sample)
{
	size_t at = b->len, len = strlen(sample), i;

	if (unit_random(6) == 0)
		len = unit_random((unsigned)len + 1);
	put(b, sample, len);
	for (i = at; i < b->len; i++) {
		char *c = &b->data[i];

		if (*c >= '0' && *c <= '9' && unit_random(3) == 0)
			*c = (char)('0' + unit_random(10));
		else if (*c != '\n' && unit_random(200) == 0)
			*c = (char)(0x20 + unit_random(200));
		else if (unit_random(150) == 0)
			*c ^= *c >= 'a' && *c <= 'z' ? 0x20 : 0;
	}
}

static void
put_line(struct buf *b, const struct rule_set *set)
{
	static const char *const prefixes[] = {
		"", "", "", "12: ", "[rank3]: ", "[default0]:[rank0]: ",
		"2026-01-31 03:12:41,641 ERROR ", "node7: ", "\"", "# ", "    raise ",
		"Jan 31 03:12:41 node9 kernel: ", "[  123.456789] ", "| "
	};
	static const char *const healthy[] = {
		" iteration 120/ 5000 | lm loss: 3.1 | number of nan iterations:   0 |",
		"{'loss': 1.25, 'epoch': 0.1}",
		"NCCL INFO Connected all rings", "", " ", "errors=0"
	};

	put_text(b, prefixes[unit_random(sizeof(prefixes) /
	    sizeof(prefixes[0]))]);
	if (unit_random(4) == 0)
		put_text(b, healthy[unit_random(sizeof(healthy) /
		    sizeof(healthy[0]))]);
	else
		put_mutated(b, random_sample(set));
	if (unit_random(8) == 0)
		put_mutated(b, random_sample(set));
	put_text(b, "\n");
}

struct plain {
	pcre2_code	*match;
	pcre2_code	*unless;
};

static pcre2_code *
compile(const char *pattern)
{
	PCRE2_SIZE at;
	int code;
	pcre2_code *p;

	if (pattern == NULL)
		return NULL;
	p = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
	    PCRE2_NEVER_UTF, &code, &at, NULL);
	ck_assert_ptr_nonnull(p);
	ck_assert_int_eq(pcre2_jit_compile(p, PCRE2_JIT_COMPLETE), 0);
	return p;
}

static bool
matches(const pcre2_code *p, const char *text, size_t len)
{
	static pcre2_match_data *data;

	if (data == NULL)
		data = pcre2_match_data_create(64, NULL);
	return pcre2_match(p, (PCRE2_SPTR)text, len, 0, 0, data, NULL) >= 0;
}

/* The guard asks where the text of a rule begins, which PCRE2 alone does not
 * tell: to it, what may stand before is part of the match. */
static bool
is_guarded(const struct rule *r, const struct line *line, const char *text,
    size_t len)
{
	size_t start = r->match != NULL && match_run(r->match, text, len) ==
	    MATCH_YES ? match_start(r->match) : 0;

	return rule_is_guarded(&r->def) &&
	    guard_check(line, text, len, start) != GUARD_NONE;
}

static bool
plain_matches(const struct plain *p, const struct rule *r, const char *text,
    size_t len)
{
	struct line line;

	line_parse(text, len, &line);
	if (line.ours || (p->unless != NULL && matches(p->unless, text, len)))
		return false;
	if (matches(p->match, line.text, line.len))
		return !is_guarded(r, &line, line.text, line.len);
	return line.len != len && matches(p->match, text, len) &&
	    !is_guarded(r, &line, text, len);
}

static void
compare_rule(struct rule_set *set, const struct feed *feed, size_t rule,
    const struct plain *p)
{
	const struct stream *s = &feed->streams[0];
	struct events ev = {0};
	size_t start = 0, end, found = 0;
	struct err err;

	ck_assert_int_eq(events_collect_rule(&ev, set, feed, 0, (uint32_t)rule,
	    &err), 0);
	for (; start < s->len && !ev.gave_up; start = end + 1) {
		const char *nl = memchr(s->data + start, '\n', s->len - start);
		bool got = found < ev.count && ev.list[found].start == start;

		end = (size_t)(nl - s->data);
		ck_assert_msg(got == plain_matches(p, &set->rules[rule],
		    s->data + start, end - start), "%s %s '%.*s'",
		    set->rules[rule].def.id, got ? "matches" : "misses",
		    (int)(end - start), s->data + start);
		found += got;
	}
	ck_assert(ev.gave_up || found == ev.count);
	events_fini(&ev);
}

#define ROUNDS	6
#define LINES	90	/* no more than are kept of one rule */

START_TEST(pairs_are_those_of_pcre2)
{
	struct rule_set *set;
	struct plain *plain;
	struct err err;
	int round, i;
	size_t r;

	setenv("HOLDFAST_SCAN", levels[_i], 1);
	set = rule_fixture_shipped();
	plain = calloc(set->count, sizeof(*plain));
	for (r = 0; r < set->count; r++) {
		plain[r].match = compile(set->rules[r].def.match);
		plain[r].unless = compile(set->rules[r].def.unless);
	}
	for (round = 0; round < ROUNDS; round++) {
		struct feed feed = {0};
		struct buf text = {0};

		for (i = 0; i < LINES; i++)
			put_line(&text, set);

		ck_assert_int_eq(feed_add_memory(&feed, "t", text.data,
		    text.len, &err), 0);
		for (r = 0; r < set->count; r++)
			if (set->rules[r].def.after == NULL)
				compare_rule(set, &feed, r, &plain[r]);
		feed_fini(&feed);
		buf_fini(&text);
	}
	for (r = 0; r < set->count; r++) {
		pcre2_code_free(plain[r].match);
		pcre2_code_free(plain[r].unless);
	}
	free(plain);
	rule_set_free(set);
}
END_TEST

static bool
on_hit(uint32_t literal, size_t start, void *arg)
{
	uint32_t *want = arg;

	if (literal == want[0] && start == want[1])
		want[2]++;
	return true;
}

static void
find_all(const struct scanner *s, const struct scan_literal *list, size_t count)
{
	char text[5 * SCAN_LITERAL_MAX];
	uint32_t i, k, at, pad;

	for (i = 0; i < count; i++)
		for (pad = 0; pad < 130; pad += 43) {
			uint32_t want[3] = { i, pad % 100, 0 };

			memset(text, '.', sizeof(text));
			at = want[1];
			memcpy(text + at, list[i].text, list[i].len);
			for (k = 0; list[i].fold && k < list[i].len; k += 2)
				if (text[at + k] >= 'a' && text[at + k] <= 'z')
					text[at + k] ^= 0x20;
			(void)scan_run(s, text, at + list[i].len + pad, on_hit,
			    want);
			ck_assert_msg(want[2] == 1, "'%s' at %u: %u times",
			    list[i].text, want[1], want[2]);
		}
}

START_TEST(every_literal_is_found)
{
	struct rule_set *set;

	setenv("HOLDFAST_SCAN", levels[_i], 1);
	set = rule_fixture_shipped();
	find_all(rule_set_scanner(set, SCANNER_ALL), set->literals,
	    set->literal_end[RULES_QUIET]);
	find_all(rule_set_scanner(set, SCANNER_LOUD), set->literals,
	    set->literal_end[RULES_LOUD]);
	rule_set_free(set);
}
END_TEST

/* Site rules are planned around the shipped ones. */
START_TEST(site_literals_are_found)
{
	static char ids[400][16], patterns[400][64];
	struct rule_def d = { .reason = "runtime_error", .file = "t",
	    .action = -1, .role = ROLE_ROOT };
	struct rule_set *set = rule_fixture_shipped();
	struct err err;
	size_t i, before = set->literal_end[RULES_QUIET];

	for (i = 0; i < 400; i++) {
		snprintf(ids[i], sizeof(ids[i]), "site-%zu", i);
		snprintf(patterns[i], sizeof(patterns[i]),
		    "%sunit %zx of module %zu (?:failed|lost)",
		    i % 3 ? "" : "(?i)", i * 7919, i % 17);
		d.id = ids[i];
		d.match = patterns[i];
		ck_assert_int_eq(rule_set_add(set, &d, &err), 0);
	}
	ck_assert_int_eq(rule_set_finish(set, NULL, NULL, &err), 0);
	ck_assert_uint_gt(set->literal_end[RULES_QUIET], before + 399);
	find_all(rule_set_scanner(set, SCANNER_ALL), set->literals,
	    set->literal_end[RULES_QUIET]);
	rule_set_free(set);
}
END_TEST

/* Repeated lines, whose outcome is known from the first one, come to what each
 * comes to alone. */
START_TEST(repeated_lines_win_alike)
{
	struct rule_set *set = rule_fixture_shipped();
	uint32_t *want = calloc(set->count, sizeof(*want));
	struct line_memory memory = {
	    .last = calloc(set->count + 1, sizeof(*memory.last)) };
	struct events ev = {0};
	struct feed feed = {0};
	struct buf text = {0};
	size_t start, end, r;
	struct err err;
	int i, k;

	for (i = 0; i < 400; i++) {
		const char *sample = random_sample(set);

		for (k = (int)unit_random(12); k >= 0; k--) {
			char rank[32];

			snprintf(rank, sizeof(rank), "[rank%u]: ",
			    unit_random(90) + 10);
			put_text(&text, unit_random(2) ? rank : "");
			put_mutated(&text, sample);
			put_text(&text, "\n");
		}
	}
	ck_assert_int_eq(feed_add_memory(&feed, "t", text.data, text.len, &err),
	    0);
	ck_assert_int_eq(events_collect(&ev, set, &feed, 0, &err), 0);
	for (start = 0; start < text.len; start = end + 1) {
		struct rule *won;

		end = start + (size_t)((char *)memchr(text.data + start, '\n',
		    text.len - start) - (text.data + start));
		memory.line++;
		won = rule_set_match_line(set, text.data + start, end - start,
		    &memory, NULL);
		if (won != NULL && !won->def.tail)
			want[won - set->rules]++;
	}
	for (r = 0; r < set->count; r++)
		if (!set->rules[r].def.tail)
			ck_assert_msg(ev.matched[r] == want[r], "%s: %u, not %u",
			    set->rules[r].def.id, ev.matched[r], want[r]);
	events_fini(&ev);
	feed_fini(&feed);
	buf_fini(&text);
	free(memory.last);
	free(want);
	rule_set_free(set);
}
END_TEST

/* A quiet rule that knows one number is asked about each line, also where the
 * template of the line is known. */
START_TEST(quiet_rule_knows_its_number)
{
	static const struct rule_def defs[] = {
		{ .id = "seen", .reason = "runtime_error", .file = "t",
		  .match = "errors=\\d seen", .role = ROLE_ROOT, .action = -1 },
		{ .id = "seen-none", .file = "t", .match = "errors=0 seen",
		  .role = ROLE_BENIGN, .action = -1 }
	};
	const char *text = "errors=5 seen\nerrors=6 seen\nerrors=0 seen\n"
	    "errors=7 seen\n";
	struct rule_set *set = rule_fixture_shipped();
	struct events ev = {0};
	struct feed feed = {0};
	struct err err;
	size_t i;

	for (i = 0; i < 2; i++)
		ck_assert_int_eq(rule_set_add(set, &defs[i], &err), 0);
	ck_assert_int_eq(rule_set_finish(set, NULL, NULL, &err), 0);
	ck_assert_int_eq(feed_add_memory(&feed, "t", text, strlen(text), &err),
	    0);
	ck_assert_int_eq(events_collect(&ev, set, &feed, 0, &err), 0);
	ck_assert_uint_eq(ev.matched[rule_set_find(set, "seen")], 3);
	ck_assert_uint_eq(ev.matched[rule_set_find(set, "seen-none")], 1);
	events_fini(&ev);
	feed_fini(&feed);
	rule_set_free(set);
}
END_TEST

/* All that a reader sees of windows, as one number. */
static uint64_t
sum_windows(struct rule_set *set, const struct feed *feed, unsigned threads,
    uint32_t skip)
{
	struct ahead_window w;
	struct ahead *a;
	uint64_t sum = 14695981039346656037ull;
	struct err err;
	uint32_t i;
	size_t k, at;

	ck_assert_int_eq(ahead_new(rule_set_scanner(set, SCANNER_LOUD),
	    rule_set_scanner(set, SCANNER_TAIL), feed, 0, (uint32_t)feed->count,
	    threads, &a, &err), 0);
	for (i = 0; i < feed->count; i++) {
		if (i == skip)
			continue;
		at = 0;
		while (ahead_next(a, i, &w)) {
			ck_assert(!w.failed);
			ck_assert_uint_eq(w.from, at);
			at = w.to;
			sum = (sum ^ w.newlines ^ w.count << 20) * 1099511628211u;
			for (k = 0; k < w.count; k++)
				sum = (sum ^ (w.hits[k].start + w.from)) *
				    1099511628211u + w.hits[k].literal;
		}
		ck_assert_uint_eq(at, feed->streams[i].kind == STREAM_EXITS ? 0 :
		    feed->streams[i].len);
	}
	ahead_free(a);
	return sum;
}

START_TEST(threads_find_the_same)
{
	static const char *const names[] = { "a.log", "n.exits", "b.log", "c.log",
	    "d.log" };
	struct rule_set *set = rule_fixture_shipped();
	struct feed feed = {0};
	struct buf text[5] = {{0}};
	struct err err;
	uint64_t want;
	unsigned t;
	int i, k;

	for (i = 0; i < 5; i++) {
		for (k = 0; k < (i == 3 ? 0 : 9000); k++)
			put_line(&text[i], set);
		put(&text[i], "no end", 6);
		ck_assert_int_eq(feed_add_memory(&feed, names[i], text[i].data,
		    text[i].len, &err), 0);
	}
	want = sum_windows(set, &feed, 0, UINT32_MAX);
	for (t = 1; t <= 4; t++)
		ck_assert_uint_eq(sum_windows(set, &feed, t, UINT32_MAX), want);
	want = sum_windows(set, &feed, 0, 2);
	ck_assert_uint_eq(sum_windows(set, &feed, 3, 2), want);
	feed_fini(&feed);
	for (i = 0; i < 5; i++)
		buf_fini(&text[i]);
	rule_set_free(set);
}
END_TEST

static const struct {
	const char	*pattern;
	bool		 alike;
} digit_rows[] = {
	{ "rank \\d+ of \\w+", true }, { "[0-9a-f]+: [^0-9]*x", true },
	{ "(?<gpu>[\\d.:]+){2,3}", true }, { "[\\w.]{1,80}$", true },
	{ "a{b}", true }, { "\\x27[^\\x27\"]*", true }, { "(?i)oom", true },
	{ "(?<=x)y(?!z)", true }, { "[[:xdigit:]]+", true },
	{ "exit code 1", false }, { "[1-9]\\d*", false }, { "[^0]", false },
	{ "(a)\\1", false }, { "\\x31", false }, { "[\\x30]", false },
	{ "a{1,b}", false }, { "(?1)", false }, { "(*ACCEPT)", false },
	{ "[0-8]", false }, { "\\Q9\\E", false }, { "[a", false },
	{ "x\\", false }, { "(?(1)a)", false }
};

START_TEST(patterns_that_tell_digits_apart)
{
	ck_assert_msg(digits_are_alike(digit_rows[_i].pattern) ==
	    digit_rows[_i].alike, "'%s'", digit_rows[_i].pattern);
}
END_TEST

static void
add(TCase *t)
{
	tcase_set_timeout(t, 300);
	tcase_add_loop_test(t, pairs_are_those_of_pcre2, 0, LEVELS);
	tcase_add_loop_test(t, every_literal_is_found, 0, LEVELS);
	tcase_add_test(t, site_literals_are_found);
	tcase_add_test(t, repeated_lines_win_alike);
	tcase_add_test(t, quiet_rule_knows_its_number);
	tcase_add_test(t, threads_find_the_same);
	tcase_add_loop_test(t, patterns_that_tell_digits_apart, 0,
	    (int)(sizeof(digit_rows) / sizeof(digit_rows[0])));
}

int
main(void)
{
	return unit_run("diagnose_pairs", add);
}
