/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_zip.c - every kind of damage to a torch.save archive gets its state;
 * no cut and no flipped bit crashes the reader or passes unseen where a checksum
 * stands guard.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_fixture.h"
#include "unit.h"

static char *dir, *path;
static float weights[80];
static const long numbers[5] = { 1, 2, 3, 4, 5 };
static struct fixture_tensor tensors[] = {
	{ "layer.weight", "FloatStorage", weights, sizeof(weights), 80 },
	{ "ids", "LongStorage", numbers, sizeof(numbers), 5 },
	{ "empty", "FloatStorage", "", 0, 0 },
};
static struct buf file;
static size_t at[8];

static void
set_up(void)
{
	size_t i;

	for (i = 0; i < 80; i++)
		weights[i] = (float)i / 7;
	dir = fixture_dir();
	path = fixture_path(dir, "step_42.pt");
	memset(&file, 0, sizeof(file));
	fixture_torch(&file, tensors, 3, 42, NULL, at);
}

static void
tear_down(void)
{
	buf_fini(&file);
	free(path);
	fixture_remove(dir);
}

static enum holdfast_checkpoint_state
state_of(const struct buf *b, char *text, size_t size)
{
	fixture_write(path, b->data, b->len);
	return fixture_state(path, text, size);
}

static void
expect(const struct buf *b, enum holdfast_checkpoint_state want,
    const char *words)
{
	char text[512];
	enum holdfast_checkpoint_state got = state_of(b, text, sizeof(text));

	ck_assert_msg(got == want, "%s instead of %s: %s",
	    holdfast_checkpoint_state_name(got),
	    holdfast_checkpoint_state_name(want), text);
	ck_assert_msg(words == NULL || strstr(text, words) != NULL,
	    "'%s' does not say '%s'", text, words);
}

START_TEST(good_ones)
{
	static const struct fixture_zip forms[] = {
		{ .align = 64 }, { .align = 0 }, { .align = 4096 },
		{ .zip64 = true, .align = 64 }, { .no_end64 = true },
		{ .no_descriptor = true }, { .no_crc = true, .align = 64 },
		{ .deflate = true }, { .deflate = true, .zip64 = true }
	};
	struct checkpoint c;
	struct buf b = {0};
	size_t i;

	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		buf_clear(&b);
		fixture_torch(&b, tensors, 3, 42, &forms[i], NULL);
		expect(&b, HOLDFAST_CHECKPOINT_VALID, NULL);
	}
	fixture_check(&c, path, false);
	ck_assert_int_eq(checkpoint_step(&c), 42);
	ck_assert_str_eq(checkpoint_format_name(&c), "torch_zip");
	checkpoint_fini(&c);
	buf_fini(&b);
}
END_TEST

START_TEST(cut_anywhere)
{
	struct buf b = file;

	for (b.len = 0; b.len < file.len; b.len++)
		ck_assert_msg(state_of(&b, NULL, 0) !=
		    HOLDFAST_CHECKPOINT_VALID, "cut at %zu is valid", b.len);
	expect(&file, HOLDFAST_CHECKPOINT_VALID, NULL);
}
END_TEST

/* Which bytes lie in the data of a record. */
static bool
in_data(size_t i)
{
	size_t pickle = at[0], r;
	const size_t sizes[] = { 0, sizeof(weights), sizeof(numbers), 0, 2 };

	/* data.pkl ends before its descriptor, which ends before record 1 */
	if (i >= pickle && i < pickle + 100)
		return true;
	for (r = 1; r < 5; r++)
		if (i >= at[r] && i < at[r] + sizes[r])
			return true;
	return false;
}

START_TEST(flip_anywhere)
{
	enum holdfast_checkpoint_state state;
	size_t i, missed = 0;

	for (i = 0; i < file.len; i++) {
		file.data[i] ^= (char)(1 << (i % 8));
		state = state_of(&file, NULL, 0);
		if (in_data(i))
			ck_assert_msg(state == HOLDFAST_CHECKPOINT_CORRUPT,
			    "flip at %zu: %s", i,
			    holdfast_checkpoint_state_name(state));
		else if (state == HOLDFAST_CHECKPOINT_VALID)
			missed++;
		file.data[i] ^= (char)(1 << (i % 8));
	}
	/* padding, dates and version fields say nothing */
	ck_assert_uint_lt(missed, file.len / 4);
}
END_TEST

START_TEST(zeroed_data)
{
	memset(file.data + at[1] + 16, 0, 200);
	expect(&file, HOLDFAST_CHECKPOINT_CORRUPT, "data/0: CRC32");
}
END_TEST

START_TEST(zeroed_tail)
{
	memset(file.data + file.len - 700, 0, 700);
	expect(&file, HOLDFAST_CHECKPOINT_INCOMPLETE, "end of central directory");
}
END_TEST

START_TEST(all_zero)
{
	memset(file.data, 0, file.len);
	expect(&file, HOLDFAST_CHECKPOINT_CORRUPT, "zeroes");
}
END_TEST

START_TEST(trailing_bytes)
{
	ck_assert_int_eq(buf_append(&file, "garbage", 7), 0);
	expect(&file, HOLDFAST_CHECKPOINT_CORRUPT, "7 bytes behind");
}
END_TEST

START_TEST(head_overwritten)
{
	memset(file.data, 'x', 30);
	memcpy(file.data, "PK\3\4", 4);
	expect(&file, HOLDFAST_CHECKPOINT_CORRUPT, "local header");
}
END_TEST

START_TEST(hole)
{
	struct fixture_zip o = { .align = 64, .hole = 100 };
	struct buf b = {0};

	fixture_torch(&b, tensors, 3, 42, &o, NULL);
	expect(&b, HOLDFAST_CHECKPOINT_CORRUPT, "does not end where");
	buf_fini(&b);
}
END_TEST

/* The archive with record data/0 of `size` bytes, or without it. */
static void
with_record(struct buf *b, size_t size, bool skip)
{
	struct buf pickle = {0};
	struct fixture_zip o = { .align = 64 };
	struct fixture_record r[] = {
		{ .name = "archive/data.pkl" },
		{ .name = "archive/data/0", .data = weights, .size = size,
		    .skip = skip },
		{ .name = "archive/version", .data = "3\n", .size = 2 }
	};

	fixture_pickle(&pickle, tensors, 1, 42);
	r[0].data = pickle.data;
	r[0].size = pickle.len;
	fixture_zip(b, r, 3, &o, NULL);
	buf_fini(&pickle);
}

START_TEST(missing_and_short_records)
{
	struct buf b = {0};

	with_record(&b, sizeof(weights), false);
	expect(&b, HOLDFAST_CHECKPOINT_VALID, NULL);
	buf_clear(&b);
	with_record(&b, 0, true);
	expect(&b, HOLDFAST_CHECKPOINT_INCOMPLETE, "data/0 is missing");
	buf_clear(&b);
	with_record(&b, sizeof(weights) / 2, false);
	expect(&b, HOLDFAST_CHECKPOINT_CORRUPT, "its tensors need 320");
	buf_fini(&b);
}
END_TEST

START_TEST(no_crc_misses_no_structure)
{
	struct fixture_zip o = { .no_crc = true, .align = 64 };
	struct buf b = {0};

	fixture_torch(&b, tensors, 3, 42, &o, at);
	b.data[at[1]] ^= 1;
	expect(&b, HOLDFAST_CHECKPOINT_VALID, NULL);
	b.len -= 30;
	expect(&b, HOLDFAST_CHECKPOINT_INCOMPLETE, NULL);
	buf_fini(&b);
}
END_TEST

START_TEST(two_records_of_one_name)
{
	struct fixture_zip o = { .align = 0 };
	struct fixture_record r[] = {
		{ .name = "a/data.pkl", .data = "\x80\2}.", .size = 4 },
		{ .name = "a/data/0", .data = "x", .size = 1 },
		{ .name = "a/data/0", .data = "y", .size = 1 }
	};
	struct buf b = {0};

	fixture_zip(&b, r, 3, &o, NULL);
	expect(&b, HOLDFAST_CHECKPOINT_CORRUPT, "two records");
	buf_clear(&b);
	r[2].name = "../data/0";
	fixture_zip(&b, r, 3, &o, NULL);
	expect(&b, HOLDFAST_CHECKPOINT_CORRUPT, "bad record name");
	buf_clear(&b);
	fixture_zip(&b, r + 1, 1, &o, NULL);
	expect(&b, HOLDFAST_CHECKPOINT_INCOMPLETE, "data.pkl is missing");
	buf_clear(&b);
	r[1].name = "a/page";
	fixture_zip(&b, r + 1, 1, &o, NULL);
	expect(&b, HOLDFAST_CHECKPOINT_UNVERIFIED, "without data.pkl");
	buf_fini(&b);
}
END_TEST

START_TEST(deflated_damage)
{
	struct fixture_zip o = { .deflate = true };
	struct buf b = {0};
	enum holdfast_checkpoint_state state;
	size_t i;

	fixture_torch(&b, tensors, 3, 42, &o, at);
	for (i = at[1]; i < at[2] - 60; i += 3) {
		b.data[i] ^= 4;
		state = state_of(&b, NULL, 0);
		ck_assert_msg(state == HOLDFAST_CHECKPOINT_CORRUPT,
		    "flip at %zu: %s", i, holdfast_checkpoint_state_name(state));
		b.data[i] ^= 4;
	}
	buf_fini(&b);
}
END_TEST

START_TEST(structure_reads_no_contents)
{
	struct checkpoint c;

	file.data[at[1]] ^= 1;
	fixture_write(path, file.data, file.len);
	fixture_check(&c, path, true);
	ck_assert_int_eq(c.report.state, HOLDFAST_CHECKPOINT_VALID);
	ck_assert(!c.report.contents_read);
	checkpoint_fini(&c);
}
END_TEST

START_TEST(views)
{
	/* numel in the view is more than the storage holds */
	struct fixture_tensor t = { "w", "FloatStorage", weights, 16, 4 };
	struct buf pickle = {0}, b = {0};
	struct fixture_zip o = { .align = 64 };
	struct fixture_record r[] = {
		{ .name = "archive/data.pkl" },
		{ .name = "archive/data/0", .data = weights, .size = 16 }
	};
	char *size;

	fixture_pickle(&pickle, &t, 1, 42);
	/* the second "J 4 0 0 0" is the size of the view */
	size = memmem(pickle.data, pickle.len, "tQK\0J\4", 6);
	ck_assert_ptr_nonnull(size);
	size[5] = 5;
	r[0].data = pickle.data;
	r[0].size = pickle.len;
	fixture_zip(&b, r, 2, &o, NULL);
	expect(&b, HOLDFAST_CHECKPOINT_CORRUPT, "model/w reaches behind");
	buf_fini(&pickle);
	buf_fini(&b);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, good_ones);
	tcase_add_test(t, cut_anywhere);
	tcase_add_test(t, flip_anywhere);
	tcase_add_test(t, zeroed_data);
	tcase_add_test(t, zeroed_tail);
	tcase_add_test(t, all_zero);
	tcase_add_test(t, trailing_bytes);
	tcase_add_test(t, head_overwritten);
	tcase_add_test(t, hole);
	tcase_add_test(t, missing_and_short_records);
	tcase_add_test(t, no_crc_misses_no_structure);
	tcase_add_test(t, two_records_of_one_name);
	tcase_add_test(t, deflated_damage);
	tcase_add_test(t, structure_reads_no_contents);
	tcase_add_test(t, views);
}

int
main(void)
{
	return unit_run("checkpoint_zip", add_tests);
}
