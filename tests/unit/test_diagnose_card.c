/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_card.c - whatever is in a verdict, its card is small, harmless and
 * says the telling part; and no card is evidence.
 */
#include <check.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/card.h"
#include "diagnose/causes.h"
#include "diagnose/quote.h"
#include "diagnose/rule_load.h"
#include "unit.h"

/* What a hostile or clumsy log may hold. */
static const char nasty[] = "\033[31m\033]0;title\a\r\b\177 \xc2\x9b" "2J "
    "\xe2\x80\xae" "desrever \xff\xfe \xe4\xb8\xad\xe6\x96\x87 \t\1 "
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

static char *
text(size_t len)
{
	char *p = malloc(len + 1);
	size_t i;

	ck_assert_ptr_nonnull(p);
	for (i = 0; i < len; i++)
		p[i] = unit_random(3) == 0 ? nasty[unit_random(sizeof(nasty) - 1)] :
		    unit_random(7) == 0 ? ' ' : (char)('a' + unit_random(26));
	p[len] = '\0';
	return p;
}

static char *
maybe_text(size_t most)
{
	return unit_random(4) == 0 ? NULL : text(unit_random((unsigned)most) + 1);
}

static void
make_lists(struct verdict *v)
{
	size_t i;

	v->echo_count = unit_random(VERDICT_ECHOES + 1);
	v->echo_ranks = unit_random(100000);
	for (i = 0; i < v->echo_count; i++) {
		v->echoes[i].reason = strdup("rendezvous_timeout");
		v->echoes[i].ranks = unit_random(3) * 50000;
		v->echoes[i].lines = 1 + unit_random(3) * 500000u;
	}
	v->suspect_count = unit_random(VERDICT_SUSPECTS + 1);
	for (i = 0; i < v->suspect_count; i++) {
		v->suspects[i].node = maybe_text(70);
		v->suspects[i].why = maybe_text(300);
		v->suspects[i].rank = (int)unit_random(3) - 1;
	}
	v->alternative_count = unit_random(VERDICT_ALTERNATIVES + 1);
	for (i = 0; i < v->alternative_count; i++) {
		v->alternatives[i].reason = strdup("version_incompatibility");
		v->alternatives[i].confidence = unit_random(100) / 100.0;
	}
	v->missing_count = unit_random(4);
	v->missing = calloc(4, sizeof(*v->missing));
	for (i = 0; i < v->missing_count; i++)
		v->missing[i] = text(1 + unit_random(300));
}

static void
make_verdict(struct verdict *v)
{
	static const char *const stages[] = { NULL, "startup", "load", "training",
	    "checkpoint" };
	struct verdict_root *r = &v->root;

	memset(v, 0, sizeof(*v));
	v->status = unit_random(4);
	v->category = strdup("infrastructure");
	v->reason = strdup("version_incompatibility");
	v->what = maybe_text(400);
	v->advice = maybe_text(900);
	v->confidence = unit_random(101) / 100.0;
	v->action = unit_random(ACTION_TEST_NODES + 1);
	v->action_node = maybe_text(70);
	v->stage = stages[unit_random(5)];
	v->step = unit_random(2) ? -1 : 1000000000000;
	v->bytes = unit_random(5) * 123456789012ull;
	v->files = unit_random(200000);
	v->lines = unit_random(2) ? 0 : 123456789;
	make_lists(v);
	v->has_root = unit_random(5) > 0;
	r->rank = (int)unit_random(3) - 1;
	if (!v->has_root)
		return;
	r->file = maybe_text(300);
	r->line = 1 + unit_random(2) * 4000000000ll;
	r->node = maybe_text(70);
	r->gpu = maybe_text(39);
	r->nic = maybe_text(31);
	v->same_ranks = unit_random(3) * 8000;
	r->text_len = unit_random(600);
	r->text = text(r->text_len);
	r->tell_from = unit_random((unsigned)r->text_len + 1);
	r->tell_to = r->tell_from +
	    unit_random((unsigned)(r->text_len - r->tell_from) + 1);
}

static char *
print(const struct verdict *v, const struct card_style *style)
{
	char *out = NULL;
	size_t len;
	FILE *f = open_memstream(&out, &len);

	ck_assert_ptr_nonnull(f);
	card_print(v, style, f);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_uint_eq(strlen(out), len);
	return out;
}

/* One row: clean UTF-8, at most `columns` wide. */
static void
check_row(const char *row, size_t len, const struct card_style *style)
{
	struct buf clean = {0};

	ck_assert_int_eq(quote_clean(row, len, NULL, &clean), 0);
	if (!style->colour)
		ck_assert_msg(clean.len == len &&
		    memcmp(clean.data, row, len) == 0, "unclean: %.*s", (int)len,
		    row);
	ck_assert_msg(quote_columns(clean.data, clean.len) <=
	    (size_t)style->columns, "over %d columns: %s", style->columns,
	    clean.data);
	ck_assert(len > 0 && (row[0] == '|' || row[0] == '+'));
	buf_fini(&clean);
}

START_TEST(any_verdict_fits)
{
	struct card_style style = { false, 0 };
	struct verdict v;
	char *out, *row, *nl;
	int i, rows;

	ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
	for (i = 0; i < 4000; i++) {
		make_verdict(&v);
		style.columns = 40 + (int)unit_random(61);
		style.colour = i % 4 == 0;
		out = print(&v, &style);
		for (rows = 0, row = out; *row != '\0'; row = nl + 1, rows++) {
			ck_assert_ptr_nonnull(nl = strchr(row, '\n'));
			check_row(row, (size_t)(nl - row), &style);
		}
		ck_assert_msg(rows >= 4 && rows <= CARD_ROWS, "%d rows", rows);
		free(out);
		verdict_fini(&v);
	}
}
END_TEST

START_TEST(telling_part_stays)
{
	static const char part[] = "No space left on device";
	const struct card_style style = { false, CARD_COLUMNS };
	struct buf cut = {0};
	struct quote_span s;
	char line[500];
	size_t at, columns;

	for (at = 0; at + sizeof(part) < sizeof(line); at += 7) {
		memset(line, 'x', sizeof(line));
		for (s.from = 5; s.from < sizeof(line); s.from += 9)
			line[s.from] = ' ';
		memcpy(line + at, part, sizeof(part) - 1);
		line[sizeof(line) - 1] = 'E';
		for (columns = 40; columns < 200; columns += 10) {
			s = (struct quote_span){ at, at + sizeof(part) - 1 };
			buf_clear(&cut);
			ck_assert_int_eq(quote_cut(line, sizeof(line), &s, columns,
			    &cut), 0);
			ck_assert_uint_le(cut.len, columns);
			ck_assert_msg(strstr(cut.data, part) != NULL, "%s",
			    cut.data);
			/* both ends as well when there is room for them */
			if (columns >= 100 && at > 200 && at < 300) {
				ck_assert_int_eq(cut.data[0], 'x');
				ck_assert_int_eq(cut.data[cut.len - 1], 'E');
			}
		}
	}
	buf_fini(&cut);
	ck_assert_int_eq(style.columns, 80);
}
END_TEST

START_TEST(span_moves_with_its_text)
{
	static const char raw[] = "  \033[1mab\xff\033[0m \1CAUSE\2 tail ";
	struct quote_span s = { 0, 0 };
	struct buf b = {0};

	s.from = (size_t)(strstr(raw, "CAUSE") - raw);
	s.to = s.from + 5;
	buf_puts(&b, "before");
	ck_assert_int_eq(quote_clean(raw, sizeof(raw) - 1, &s, &b), 0);
	ck_assert_str_eq(b.data, "beforeab\xef\xbf\xbd CAUSE tail");
	ck_assert_int_eq(memcmp(b.data + 6 + s.from, "CAUSE", 5), 0);
	ck_assert_uint_eq(s.to - s.from, 5);
	buf_fini(&b);
}
END_TEST

static void
diagnose(struct rule_set *set, const char *log, struct verdict *v)
{
	struct feed feed = {0};

	memset(v, 0, sizeof(*v));
	ck_assert_int_eq(feed_add_memory(&feed, "log", log, strlen(log), NULL), 0);
	ck_assert_int_eq(causes_find(set, &feed, v, NULL), 0);
	feed_fini(&feed);
}

static void
card_is_no_evidence(struct rule_set *set, const struct verdict *v)
{
	static const int widths[] = { 40, 80, 100 };
	struct card_style style = { false, 0 };
	struct verdict again;
	char *out;
	size_t i;

	for (i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		style.columns = widths[i];
		out = print(v, &style);
		diagnose(set, out, &again);
		ck_assert_msg(again.status == VERDICT_NO_ERROR,
		    "card is taken for %s:\n%s", again.reason, out);
		verdict_fini(&again);
		free(out);
	}
}

/* The first sample of every shipped rule becomes a card. */
START_TEST(card_is_not_diagnosed)
{
	struct rule_set *set = NULL;
	struct verdict v;
	int cards = 0;
	size_t i;

	ck_assert_int_eq(rule_load(NULL, NULL, NULL, &set, NULL, NULL), 0);
	for (i = 0; i < set->count; i++) {
		const char *const *samples = set->rules[i].def.examples;

		if (samples == NULL || samples[0] == NULL)
			continue;
		diagnose(set, samples[0], &v);
		if (v.has_root) {
			card_is_no_evidence(set, &v);
			cards++;
		}
		verdict_fini(&v);
	}
	ck_assert_int_gt(cards, 150);
	/* A bar that a prefix reader takes off, row and all. */
	diagnose(set, "  5%|#   | 10/200 [00:09<25:28:13,  1.0s/it]x.cu:1: f: block: "
	    "[1,0,0], thread: [0,0,0] Assertion `a < b` failed.\n", &v);
	ck_assert_str_eq(v.reason, "cuda_device_assert");
	ck_assert_ptr_null(v.root.gpu);
	card_is_no_evidence(set, &v);
	verdict_fini(&v);
	rule_set_free(set);
}
END_TEST

START_TEST(says_what_counts)
{
	static const char log[] =
	    "iteration 1/ 9 | lm loss: 2.0 |\n"
	    "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
	    "20.00 MiB. GPU 0 has a total capacity of 79.15 GiB\n"
	    "[rank1]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, "
	    "remote process exited or there was a network error, NCCL version 2\n"
	    "[rank2]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, "
	    "remote process exited or there was a network error, NCCL version 2\n";
	const struct card_style style = { false, CARD_COLUMNS };
	struct rule_set *set = NULL;
	struct verdict v;
	char *out;

	ck_assert_int_eq(rule_load(NULL, NULL, NULL, &set, NULL, NULL), 0);
	diagnose(set, log, &v);
	out = print(&v, &style);
	ck_assert_ptr_nonnull(strstr(out, "gpu_oom, framework"));
	ck_assert_ptr_nonnull(strstr(out,
	    "| where   GPU 0, rank 0, step 1, in training\n"));
	ck_assert_ptr_nonnull(strstr(out, "| proof   log:2\n"));
	ck_assert_ptr_nonnull(strstr(out,
	    "| echoes  2 ranks: nccl_remote_error (2)\n"));
	ck_assert_ptr_nonnull(strstr(out, "| do      do not restart yet"));
	free(out);
	verdict_fini(&v);
	diagnose(set, "", &v);
	out = print(&v, &style);
	ck_assert_ptr_nonnull(strstr(out, "The logs are empty."));
	free(out);
	verdict_fini(&v);
	rule_set_free(set);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_test(t, any_verdict_fits);
	tcase_add_test(t, telling_part_stays);
	tcase_add_test(t, span_moves_with_its_text);
	tcase_add_test(t, card_is_not_diagnosed);
	tcase_add_test(t, says_what_counts);
}

int
main(void)
{
	return unit_run("diagnose/card", add);
}
