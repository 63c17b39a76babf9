/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_files.c - NaN and infinity in every dtype, safetensors, legacy
 * torch.save, and paths that are no files.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint_fixture.h"
#include "checkpoint/scan.h"
#include "unit.h"

#define VALID		HOLDFAST_CHECKPOINT_VALID
#define UNVERIFIED	HOLDFAST_CHECKPOINT_UNVERIFIED
#define NON_FINITE	HOLDFAST_CHECKPOINT_NON_FINITE
#define UNREADABLE	HOLDFAST_CHECKPOINT_UNREADABLE
#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE
#define CORRUPT		HOLDFAST_CHECKPOINT_CORRUPT

static char *dir;

static void
set_up(void)
{
	dir = fixture_dir();
}

static void
tear_down(void)
{
	fixture_remove(dir);
}

static void
expect(const char *name, enum holdfast_checkpoint_state want, const char *words)
{
	char *path = fixture_path(dir, name), text[512];
	enum holdfast_checkpoint_state got = fixture_state(path, text,
	    sizeof(text));

	ck_assert_msg(got == want, "%s: %s instead of %s: %s", name,
	    holdfast_checkpoint_state_name(got),
	    holdfast_checkpoint_state_name(want), text);
	ck_assert_msg(words == NULL || strstr(text, words) != NULL,
	    "%s: '%s' does not say '%s'", name, text, words);
	free(path);
}

static void
write_file(const char *name, const void *data, size_t len)
{
	char *path = fixture_path(dir, name);

	fixture_write(path, data, len);
	free(path);
}

/* Each dtype: its largest finite value, a NaN and an infinity (0: has none). */
static const struct {
	enum scan_elem	 elem;
	size_t		 size;
	uint64_t	 finite, nan, inf;
} kinds[] = {
	{ SCAN_F64, 8, 0x7fefffffffffffff, 0x7ff8000000000000,
	    0xfff0000000000000 },
	{ SCAN_F32, 4, 0x7f7fffff, 0x7fc00000, 0xff800000 },
	{ SCAN_BF16, 2, 0x7f7f, 0xffc0, 0x7f80 },
	{ SCAN_F16, 2, 0x7bff, 0x7e00, 0xfc00 },
	{ SCAN_F8_E4M3, 1, 0x7e, 0xff, 0 },
	{ SCAN_F8_E5M2, 1, 0x7b, 0x7e, 0x7c },
	{ SCAN_F8_FNUZ, 1, 0x7f, 0x80, 0 },
	{ SCAN_F8_E8M0, 1, 0xfe, 0xff, 0 }
};

START_TEST(scan_finds_each)
{
	uint8_t data[1024];
	size_t k, i, n;

	for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		n = 1000 / kinds[k].size;
		for (i = 0; i < n; i++)
			memcpy(data + i * kinds[k].size, &kinds[k].finite,
			    kinds[k].size);
		ck_assert_msg(!scan_any(kinds[k].elem, data, n * kinds[k].size),
		    "kind %zu: finite ones found", k);
		for (i = 0; i < n; i++) {
			struct scan_counts c = {0};
			uint8_t *at = data + i * kinds[k].size;
			bool nan, inf;

			memcpy(at, &kinds[k].nan, kinds[k].size);
			nan = scan_any(kinds[k].elem, data, n * kinds[k].size);
			scan_count(kinds[k].elem, data, n * kinds[k].size, &c);
			memcpy(at, &kinds[k].inf, kinds[k].size);
			inf = kinds[k].inf == 0 || scan_any(kinds[k].elem, data,
			    n * kinds[k].size);
			memcpy(at, &kinds[k].finite, kinds[k].size);
			if (!nan || !inf || c.nan != 1)
				ck_abort_msg("kind %zu, value %zu not found", k,
				    i);
		}
	}
}
END_TEST

START_TEST(nan_in_a_tensor)
{
	float w[6] = { 1, NAN, 2, INFINITY, NAN, 3 };
	struct fixture_tensor t[2] = {
		{ "ok", "FloatStorage", "\0\0\0\0", 4, 1 },
		{ "bad", "FloatStorage", w, sizeof(w), 6 }
	};
	struct buf b = {0};

	fixture_torch(&b, t, 2, 5, NULL, NULL);
	write_file("step5.pt", b.data, b.len);
	expect("step5.pt", NON_FINITE,
	    "model/bad: 2 NaN, 1 infinite of 6 values");
	buf_fini(&b);
}
END_TEST

START_TEST(meant_infinities)
{
	float mask[4] = { 0, -INFINITY, 0, -INFINITY };
	float best = INFINITY, odd[2] = { 1, -INFINITY };
	struct fixture_tensor t[3] = {
		{ "attn.bias", "FloatStorage", mask, sizeof(mask), 4 },
		{ "best_loss", "FloatStorage", &best, sizeof(best), 1 },
		{ "weight", "FloatStorage", odd, sizeof(odd), 2 }
	};
	struct buf b = {0};

	fixture_torch(&b, t, 2, 5, NULL, NULL);
	write_file("a.pt", b.data, b.len);
	expect("a.pt", VALID, NULL);
	buf_clear(&b);
	fixture_torch(&b, t, 3, 5, NULL, NULL);
	write_file("b.pt", b.data, b.len);
	expect("b.pt", NON_FINITE, "model/weight: 0 NaN, 1 infinite");
	buf_fini(&b);
}
END_TEST

START_TEST(nan_in_each_storage)
{
	static const struct {
		const char	*storage;
		size_t		 kind;
	} rows[] = { { "DoubleStorage", 0 }, { "FloatStorage", 1 },
	    { "BFloat16Storage", 2 }, { "HalfStorage", 3 } };
	struct buf b = {0};
	size_t i;

	for (i = 0; i < 4; i++) {
		uint8_t data[64] = {0};
		size_t size = kinds[rows[i].kind].size;
		struct fixture_tensor t = { "w", rows[i].storage, data, 8 * size,
		    8 };

		memcpy(data + 5 * size, &kinds[rows[i].kind].nan, size);
		buf_clear(&b);
		fixture_torch(&b, &t, 1, 5, NULL, NULL);
		write_file("n.pt", b.data, b.len);
		expect("n.pt", NON_FINITE, "1 NaN, 0 infinite of 8");
	}
	buf_fini(&b);
}
END_TEST

/* A safetensors file of this header and n bytes of data. */
static void
write_safetensors(const char *header, const void *data, size_t n)
{
	struct buf b = {0};
	uint64_t len = strlen(header);

	ck_assert_int_eq(buf_append(&b, &len, 8), 0);
	ck_assert_int_eq(buf_puts(&b, header), 0);
	ck_assert_int_eq(buf_append(&b, data, n), 0);
	write_file("m.safetensors", b.data, b.len);
	buf_fini(&b);
}

START_TEST(safetensors)
{
	static const char one[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],"
	    "\"data_offsets\":[0,8]}}";
	float w[2] = { 1, 2 };

	write_safetensors(one, w, 8);
	expect("m.safetensors", VALID, NULL);
	w[1] = NAN;
	write_safetensors(one, w, 8);
	expect("m.safetensors", NON_FINITE, "a: 1 NaN");
	write_safetensors(one, w, 7);
	expect("m.safetensors", INCOMPLETE, "cut off");
	write_safetensors(one, "123456789", 9);
	expect("m.safetensors", CORRUPT, "1 bytes behind");
	write_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[3],"
	    "\"data_offsets\":[0,8]}}", w, 8);
	expect("m.safetensors", CORRUPT, "shape");
	write_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],"
	    "\"data_offsets\":[4,8]}}", w, 8);
	expect("m.safetensors", CORRUPT, "starts at 4");
	write_safetensors("{\"a\":{\"dtype\":\"I8\",\"shape\":[4],"
	    "\"data_offsets\":[0,4]},\"a\":{\"dtype\":\"I8\",\"shape\":[4],"
	    "\"data_offsets\":[4,8]}}", w, 8);
	expect("m.safetensors", CORRUPT, "two entries");
	write_safetensors("{\"a\":{\"dtype\":\"F31\",\"shape\":[2],"
	    "\"data_offsets\":[0,8]}}", w, 8);
	expect("m.safetensors", UNVERIFIED, "F31");
	write_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":"
	    "[4294967296,4294967296,4294967296],\"data_offsets\":[0,8]}}", w, 8);
	expect("m.safetensors", CORRUPT, "shape");
	write_safetensors("{\"a\":", w, 8);
	expect("m.safetensors", CORRUPT, "header");
	write_file("m.safetensors", "\xff\xff\xff\xff\xff\xff\xff\x7f{", 9);
	expect("m.safetensors", CORRUPT, "header of");
	write_file("m.safetensors", "\x80\0\0\0\0\0\0\0{", 9);
	expect("m.safetensors", INCOMPLETE, "inside its header");
	write_file("m.safetensors", "", 0);
	expect("m.safetensors", INCOMPLETE, "empty");
}
END_TEST

/* As torch.save(obj, f, _use_new_zipfile_serialization=False). */
static size_t
make_legacy(struct buf *b, int protocol)
{
	static const char magic[] = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8"
	    "\x50\x19.\x80\2M\xe9\3.\x80\2}.";
	char proto[2] = { '\x80', (char)protocol };
	static const float w[3] = { 1, 2, 3 };
	struct fixture_tensor t = { "w", "FloatStorage", w, sizeof(w), 3 };
	uint64_t n = 3;
	size_t data;

	ck_assert_int_eq(buf_append(b, proto, 2), 0);
	if (protocol >= 4)
		ck_assert_int_eq(buf_append(b, "\x95\x0d\0\0\0\0\0\0\0", 9), 0);
	ck_assert_int_eq(buf_append(b, magic, sizeof(magic) - 1), 0);
	fixture_pickle(b, &t, 1, 9);
	ck_assert_int_eq(buf_append(b, "\x80\2]X\1\0\0\0" "0a.", 11), 0);
	data = b->len;
	ck_assert_int_eq(buf_append(b, &n, 8), 0);
	ck_assert_int_eq(buf_append(b, w, sizeof(w)), 0);
	return data;
}

START_TEST(legacy)
{
	struct buf b = {0};
	float nan = NAN;
	size_t data, i;

	data = make_legacy(&b, _i);
	write_file("l.pt", b.data, b.len);
	expect("l.pt", VALID, NULL);
	for (i = 0; i < b.len; i++) {
		char *path = fixture_path(dir, "l.pt");

		fixture_write(path, b.data, i);
		if (fixture_state(path, NULL, 0) != INCOMPLETE)
			ck_abort_msg("cut at %zu is not incomplete", i);
		free(path);
	}
	memcpy(b.data + data + 8, &nan, 4);
	write_file("l.pt", b.data, b.len);
	expect("l.pt", NON_FINITE, "model/w: 1 NaN");
	b.data[data] = 2;
	write_file("l.pt", b.data, b.len);
	expect("l.pt", CORRUPT, "2 values, its tensors need 3");
	b.data[data] = 3;
	ck_assert_int_eq(buf_puts(&b, "x"), 0);
	write_file("l.pt", b.data, b.len);
	expect("l.pt", CORRUPT, "1 bytes behind");
	buf_fini(&b);
}
END_TEST

/* A whole module: the source text of its class is a persistent id, no storage. */
START_TEST(legacy_module)
{
	static const char object[] = "\x80\2(X\6\0\0\0module"
	    "cmodels\nNet\nX\6\0\0\0net.pyX\4\0\0\0passtQ.";
	struct buf b = {0};

	ck_assert_int_eq(buf_append(&b, "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20"
	    "\x6a\xa8\x50\x19.\x80\2M\xe9\3.\x80\2}.", 25), 0);
	ck_assert_int_eq(buf_append(&b, object, sizeof(object) - 1), 0);
	ck_assert_int_eq(buf_append(&b, "\x80\2].", 4), 0);
	write_file("l.pt", b.data, b.len);
	expect("l.pt", VALID, NULL);
	buf_fini(&b);
}
END_TEST

/* What pickle.dump() wrote, one object or two. */
START_TEST(raw_pickle)
{
	static const char two[] = "\x80\4}\x94X\1\0\0\0wK\1s.\x80\2]q\0.";
	const size_t len = sizeof(two) - 1, first = 14;
	static const char joblib[] =
	    "\x80\4cjoblib.numpy_pickle\nA\nX\xff\xff\xff";
	char zeroes[64] = {0}, bytes[128];
	size_t i;

	write_file("s.pkl", two, len);
	expect("s.pkl", VALID, NULL);
	for (i = 2; i < len; i++) {
		write_file("s.pkl", two, i);
		if (i == first)
			expect("s.pkl", VALID, NULL);
		else if (i == first + 1)
			expect("s.pkl", UNVERIFIED, "1 bytes behind");
		else
			expect("s.pkl", INCOMPLETE, "cut off");
	}
	memcpy(bytes, two, 9);
	memset(bytes + 9, 0, 64);
	write_file("s.pkl", bytes, 73);
	expect("s.pkl", CORRUPT, "ends in zeroes");
	write_file("s.pkl", zeroes, sizeof(zeroes));
	expect("s.pkl", CORRUPT, "begins with zeroes");
	write_file("s.pickle", "", 0);
	expect("s.pickle", INCOMPLETE, "empty");
	/* raw bytes between the opcodes, as joblib has them */
	write_file("s.pkl", joblib, sizeof(joblib));
	expect("s.pkl", UNVERIFIED, "joblib");
	write_file("s.pkl", "(dp0\n.", 7);
	expect("s.pkl", UNVERIFIED, "not a checkpoint");
}
END_TEST

START_TEST(no_files)
{
	char *path = fixture_path(dir, "fifo.pt");
	char *link = fixture_path(dir, "loop.pt");
	char *nowhere = fixture_path(dir, "nowhere.pt");
	char *sub = fixture_path(dir, "folder");

	ck_assert_int_eq(mkfifo(path, 0600), 0);
	expect("fifo.pt", UNVERIFIED, "FIFO");
	ck_assert_int_eq(symlink("loop.pt", link), 0);
	expect("loop.pt", UNREADABLE, "symbolic links");
	ck_assert_int_eq(symlink("gone.pt", nowhere), 0);
	expect("nowhere.pt", INCOMPLETE, "gone.pt");
	expect("absent.pt", UNREADABLE, "No such file");
	ck_assert_int_eq(mkdir(sub, 0700), 0);
	expect("folder", UNVERIFIED, "layout");
	expect("../../../../dev/zero", UNVERIFIED, "character device");
	write_file("notes.txt", "hello", 5);
	expect("notes.txt", UNVERIFIED, "not a checkpoint");
	write_file("notes.pt", "hello", 5);
	expect("notes.pt", CORRUPT, "neither a zip");
	free(path);
	free(link);
	free(nowhere);
	free(sub);
}
END_TEST

START_TEST(unreadable_is_not_corrupt)
{
	char *path = fixture_path(dir, "step1.pt");

	fixture_good(path, 1);
	ck_assert_int_eq(chmod(path, 0), 0);
	/* root reads everything */
	if (geteuid() == 0) {
		ck_assert_int_eq(seteuid(65534), 0);
		ck_assert(access(path, F_OK) == 0 || errno == EACCES);
	}
	expect("step1.pt", UNREADABLE, "ermission denied");
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
	free(path);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, scan_finds_each);
	tcase_add_test(t, nan_in_a_tensor);
	tcase_add_test(t, meant_infinities);
	tcase_add_test(t, nan_in_each_storage);
	tcase_add_test(t, safetensors);
	tcase_add_loop_test(t, legacy, 2, 6);
	tcase_add_test(t, legacy_module);
	tcase_add_test(t, raw_pickle);
	tcase_add_test(t, no_files);
	tcase_add_test(t, unreadable_is_not_corrupt);
}

int
main(void)
{
	return unit_run("checkpoint_files", add_tests);
}
