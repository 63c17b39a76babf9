/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_torch_write.c - files written from memory: whole by our own check,
 * in every layout; what cannot be written is refused and leaves nothing.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint_fixture.h"
#include "checkpoint/holdfast-checkpoint.h"
#include "checkpoint/torch_write.h"
#include "unit.h"

static const uint64_t three[] = { 3 }, none[] = { 0, 4 }, square[] = { 2, 2 };
static const float values[] = { 1, 2, 3, 4 };

static struct torch_entry
tensor(const char *name, unsigned dtype, unsigned ndim, const uint64_t *shape,
    const void *data, uint64_t bytes)
{
	return (struct torch_entry){ .kind = TORCH_TENSOR, .dtype = dtype,
	    .name = name, .name_len = strlen(name), .ndim = ndim, .shape = shape,
	    .data = data, .bytes = bytes };
}

static struct torch_entry
integer(const char *name, int64_t value)
{
	return (struct torch_entry){ .kind = TORCH_INT, .name = name,
	    .name_len = strlen(name), .integer = value };
}

/* Every kind of value, names that need care. */
static size_t
make_all(struct torch_entry *e)
{
	size_t n = 0;
	unsigned d;

	e[n++] = integer("step", 42);
	e[n++] = integer("large", INT64_MIN);
	e[n++] = tensor("model/a.weight", HOLDFAST_CHECKPOINT_F32, 2, square,
	    values, 16);
	e[n++] = tensor("model/empty", HOLDFAST_CHECKPOINT_F32, 2, none, NULL, 0);
	e[n++] = tensor("model/scalar", HOLDFAST_CHECKPOINT_F64, 0, NULL, values, 8);
	e[n++] = tensor("model/\"quoted\"\nline \xc3\xa9", HOLDFAST_CHECKPOINT_F32, 1,
	    three, values, 12);
	for (d = 1; torch_dtype_size(d) > 0; d++) {
		static char names[64][16];

		snprintf(names[d], sizeof(names[d]), "types/%u", d);
		e[n++] = tensor(names[d], d, 1, three, "\1\1\1\1\1\1\1\1\1\1\1\1\1"
		    "\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1"
		    "\1\1\1\1\1", 3 * torch_dtype_size(d));
	}
	ck_assert_uint_eq(d, 21);
	e[n] = integer("values/real", 0);
	e[n].kind = TORCH_FLOAT;
	e[n++].real = 0.1;
	e[n] = integer("values/yes", 1);
	e[n++].kind = TORCH_BOOL;
	e[n] = integer("values/none", 0);
	e[n++].kind = TORCH_NONE;
	e[n] = integer("values/text", 0);
	e[n].kind = TORCH_TEXT;
	e[n].data = "caf\xc3\xa9";
	e[n++].bytes = 5;
	e[n] = integer("values/bytes", 0);
	e[n].kind = TORCH_BYTES;
	e[n].data = "\0\x7f\x80\xff";
	e[n++].bytes = 4;
	return n;
}

START_TEST(test_all_kinds)
{
	/* plain, and with 64-bit fields where they are not needed */
	static const uint64_t froms[] = { 0, 1, 512 };
	struct torch_write_options o = { .separator = '/' };
	struct torch_entry e[64];
	const char *path = unit_path(unit_dir(), "step42.pt");
	struct checkpoint c;
	struct err err = {0};
	struct stat st;
	uint64_t size;
	size_t i, n = make_all(e);

	for (i = 0; i < 3; i++) {
		o.zip64_from = froms[i];
		ck_assert_msg(torch_write(path, e, n, &o, &size, &err) == 0, "%s",
		    err.text);
		ck_assert_int_eq(stat(path, &st), 0);
		ck_assert_uint_eq((uint64_t)st.st_size, size);
		fixture_check(&c, path, false);
		ck_assert_msg(c.report.state == HOLDFAST_CHECKPOINT_VALID, "%s",
		    c.report.reason);
		ck_assert_int_eq(checkpoint_step(&c), 42);
		checkpoint_fini(&c);
		unlink(path);
	}
}
END_TEST

/* What is in the file is what was in memory: a NaN is found under its name, a byte
 * that was changed later is noticed. */
START_TEST(test_contents)
{
	static float bad[3] = { 1, NAN, 2 };
	struct torch_entry e = tensor("model/w", HOLDFAST_CHECKPOINT_F32, 1, three,
	    bad, 12);
	const char *path = unit_path(unit_dir(), "a.pt");
	struct torch_write_options o = { .separator = '/' };
	char why[300], *at;
	const char *data;
	size_t len;

	ck_assert_int_eq(torch_write(path, &e, 1, &o, NULL, NULL), 0);
	ck_assert_int_eq(fixture_state(path, why, sizeof(why)),
	    HOLDFAST_CHECKPOINT_NON_FINITE);
	ck_assert_msg(strstr(why, "model/w") != NULL, "%s", why);
	unlink(path);
	e.data = values;
	ck_assert_int_eq(torch_write(path, &e, 1, &o, NULL, NULL), 0);
	data = unit_read(path, &len);
	at = memmem(data, len, values, 12);
	ck_assert_ptr_nonnull(at);
	ck_assert_uint_eq((size_t)(at - data) % 64, 0);
	at[0] ^= 1;
	unit_write(path, data, len);
	ck_assert_int_eq(fixture_state(path, why, sizeof(why)),
	    HOLDFAST_CHECKPOINT_CORRUPT);
}
END_TEST

/* Larger than the block that is written at once, and many. */
START_TEST(test_large)
{
	static uint8_t data[3 * 1024 * 1024 + 17];
	static char names[10000][12];
	struct torch_entry *e = calloc(10001, sizeof(*e));
	const char *path = unit_path(unit_dir(), "a.pt");
	struct torch_write_options o = {0};
	uint64_t length = sizeof(data);
	char why[300];
	size_t i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 251);
	e[0] = tensor("large", HOLDFAST_CHECKPOINT_U8, 1, &length, data, length);
	for (i = 0; i < 10000; i++) {
		snprintf(names[i], sizeof(names[i]), "t%zu", i);
		e[i + 1] = tensor(names[i], HOLDFAST_CHECKPOINT_F32, 1, three,
		    values, 12);
	}
	ck_assert_int_eq(torch_write(path, e, 10001, &o, NULL, NULL), 0);
	ck_assert_msg(fixture_state(path, why, sizeof(why)) ==
	    HOLDFAST_CHECKPOINT_VALID, "%s", why);
	free(e);
}
END_TEST

/* n entries with this separator are refused with these words, and leave nothing. */
static void
refused(const struct torch_entry *e, size_t n, char separator, const char *words)
{
	struct torch_write_options o = { .separator = separator };
	const char *dir = unit_dir(), *path = unit_path(dir, "a.pt");
	struct err err = {0};

	ck_assert_int_eq(torch_write(path, e, n, &o, NULL, &err), -1);
	ck_assert_msg(strstr(err.text, words) != NULL, "%s", err.text);
	ck_assert_int_eq(unit_count(dir), 0);
}

START_TEST(test_refused)
{
	static const uint64_t huge[] = { UINT64_MAX, 2 }, wide[] = { 1ull << 62, 4 };
	static char deep[2 * TORCH_WRITE_DEPTH_MAX + 4];
	struct torch_entry e[3];
	struct err err = {0};
	size_t i;

	e[0] = tensor("a", HOLDFAST_CHECKPOINT_F32, 1, three, values, 11);
	refused(e, 1, '/', "the shape takes 12");
	e[0] = tensor("a", HOLDFAST_CHECKPOINT_F32, 2, huge, values, 8);
	refused(e, 1, '/', "too large");
	e[0] = tensor("a", HOLDFAST_CHECKPOINT_F32, 2, wide, values, 8);
	refused(e, 1, '/', "too large");
	e[0] = tensor("a", 21, 1, three, values, 12);
	refused(e, 1, '/', "no dtype");
	e[0] = tensor("a", 0, 1, three, values, 12);
	refused(e, 1, '/', "no dtype");
	e[0] = integer("a\xff", 1);
	refused(e, 1, '/', "not UTF-8");
	e[0] = integer("\xed\xa0\x80", 1);	/* a surrogate */
	refused(e, 1, '/', "not UTF-8");
	e[0] = integer("\xc0\xaf", 1);		/* '/', too long */
	refused(e, 1, '/', "not UTF-8");
	e[0] = e[1] = integer("m/a", 1);
	refused(e, 2, '/', "two entries");
	refused(e, 2, 0, "two entries");
	e[1] = integer("m/a/b", 1);
	refused(e, 2, '/', "two entries");
	e[2] = e[0];
	refused(e + 1, 2, '/', "two entries");
	for (i = 0; i < TORCH_WRITE_DEPTH_MAX + 1; i++)
		memcpy(deep + 2 * i, "a/", 2);
	deep[2 * i] = 'b';
	e[0] = integer(deep, 1);
	refused(e, 1, '/', "inside each other");
	e[0].kind = 99;
	refused(e, 1, 0, "unknown kind");
	/* what is there already stays */
	e[0] = integer("a", 1);
	ck_assert_int_eq(torch_write("/dev/null", e, 1,
	    &(struct torch_write_options){ 0 }, NULL, &err), -1);
	ck_assert_int_eq(access("/dev/null", W_OK), 0);
}
END_TEST

static void
add(TCase *c)
{
	tcase_add_test(c, test_all_kinds);
	tcase_add_test(c, test_contents);
	tcase_add_test(c, test_large);
	tcase_add_test(c, test_refused);
}

int
main(void)
{
	return unit_run("checkpoint_torch_write", add);
}
