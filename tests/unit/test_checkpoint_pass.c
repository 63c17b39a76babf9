/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_pass.c - the one pass finds what separate loops over the bytes find,
 * wherever ranges, blocks and units begin and end, and in however many threads.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>

#include "unit.h"
#include "checkpoint_fixture.h"

#define BYTES	(PASS_UNIT + PASS_UNIT / 2 + 4321)
#define RANGES	200

static uint8_t *bytes;
static char *dir, *path;

static void
setup(void)
{
	uint64_t x = 88172645463325252ull;
	size_t i;

	bytes = malloc(BYTES);
	ck_assert_ptr_nonnull(bytes);
	for (i = 0; i < BYTES; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		/* no exponent of any type is all ones */
		bytes[i] = (uint8_t)x & 0x37;
	}
	dir = fixture_dir();
	path = fixture_path(dir, "bytes");
}

static void
teardown(void)
{
	free(path);
	fixture_remove(dir);
	free(bytes);
}

/* Ranges of odd sizes with gaps between them; the first unit's end is inside one. */
static void
make_ranges(struct pass_ranges *ranges)
{
	static const enum scan_elem elems[] = { SCAN_F64, SCAN_F32, SCAN_BF16,
	    SCAN_F16, SCAN_F8_E4M3, SCAN_NONE };
	uint64_t at = 3;
	size_t i;

	for (i = 0; i < RANGES; i++) {
		struct pass_range r = { .offset = at, .length = 1 + i * i * 37 %
		    (INPUT_BLOCK * 2 + 11), .elem = elems[i % 6],
		    .want_crc = i % 5 != 4 };

		ck_assert_int_eq(pass_add(ranges, &r), 0);
		at += r.length + i % 7;
	}
	ck_assert_uint_lt(at, PASS_UNIT);
	ck_assert_int_eq(pass_add(ranges, &(struct pass_range){ .offset = at,
	    .length = BYTES - at - 1, .elem = SCAN_F64, .want_crc = true }), 0);
}

static void *
help(void *crew)
{
	crew_help(crew);
	return NULL;
}

static void
run(struct pass_ranges *ranges, struct pass_digests *d, int threads)
{
	struct crew crew;
	struct check check = { .crew = &crew, .digests = d };
	struct report r;
	struct input in;
	pthread_t helper;

	report_init(&r);
	crew_init(&crew);
	crew.working = (size_t)threads;
	check.block = malloc(PASS_BLOCK);
	ck_assert_ptr_nonnull(check.block);
	ck_assert_int_eq(input_open(&in, path, &r), 0);
	if (threads > 1)
		ck_assert_int_eq(pthread_create(&helper, NULL, help, &crew), 0);
	ck_assert_int_eq(pass_run(&in, ranges, &check, &r), 0);
	crew_help(&crew);
	if (threads > 1)
		pthread_join(helper, NULL);
	input_close(&in);
	free(check.block);
	crew_fini(&crew);
	report_fini(&r);
}

static void
check_all(int threads, bool whole)
{
	struct pass_digests d = { .chunk_size = 1u << 20, .want_whole = whole };
	struct pass_ranges ranges = {0};
	XXH128_hash_t want;
	size_t i, n;

	make_ranges(&ranges);
	fixture_write(path, bytes, BYTES);
	run(&ranges, &d, threads);
	for (i = 0; i < ranges.n; i++) {
		const struct pass_range *r = &ranges.list[i];

		ck_assert(!r->hit);
		if (r->want_crc)
			ck_assert_uint_eq(r->crc, crc32_z(0, bytes + r->offset,
			    r->length));
	}
	ck_assert(d.done);
	ck_assert_uint_eq(d.n_chunks, (BYTES + d.chunk_size - 1) / d.chunk_size);
	for (i = 0; i < d.n_chunks; i++) {
		n = BYTES - i * d.chunk_size < d.chunk_size ?
		    BYTES - i * d.chunk_size : d.chunk_size;
		want = XXH3_128bits(bytes + i * d.chunk_size, n);
		ck_assert(digest_equal(d.chunks[i],
		    (struct digest){ want.high64, want.low64 }));
	}
	want = XXH3_128bits(bytes, BYTES);
	ck_assert(!whole || digest_equal(d.whole,
	    (struct digest){ want.high64, want.low64 }));
	free(d.chunks);
	pass_ranges_fini(&ranges);
}

START_TEST(test_one_thread)
{
	check_all(1, true);
}
END_TEST

START_TEST(test_two_threads)
{
	check_all(2, false);
}
END_TEST

static void
put(uint64_t at, const uint8_t value[8])
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	ck_assert_int_eq(pwrite(fd, value, 8, (off_t)at), 8);
	close(fd);
}

/* A value that is not finite at every place where a piece of work ends. */
START_TEST(test_value_across_a_border)
{
	static const uint64_t borders[] = { INPUT_BLOCK, PASS_UNIT,
	    PASS_UNIT + INPUT_BLOCK, 16384, BYTES };
	static const uint8_t nan64[8] = { 1, 0, 0, 0, 0, 0, 0xf8, 0x7f };
	struct pass_ranges ranges = {0};
	size_t i, back;

	fixture_write(path, bytes, BYTES);
	for (i = 0; i < sizeof(borders) / sizeof(borders[0]); i++)
		for (back = 1; back <= 8; back++) {
			uint64_t at = borders[i] - back;

			if (at + 8 > BYTES)
				continue;
			put(at, nan64);
			/* its values begin at `at' modulo 8 */
			ck_assert_int_eq(pass_add(&ranges, &(struct pass_range){
			    .offset = at % 8, .elem = SCAN_F64,
			    .length = (BYTES - at % 8) / 8 * 8 }), 0);
			run(&ranges, NULL, 1);
			ck_assert_msg(ranges.list[0].hit, "at %zu of %zu", back, i);
			pass_ranges_fini(&ranges);
			put(at, bytes + at);
		}
}
END_TEST

/* All bodies of the hash agree with the library, in pieces of any size. */
START_TEST(test_digest_bodies)
{
	const struct digest_body *bodies[] = { &digest_plain, &digest_avx2,
	    &digest_avx512 };
	bool here[] = { true, false, false };
	XXH128_hash_t want;
	size_t i, n, at, len;
	struct digest d;
	XXH3_state_t *state = XXH3_createState();

#ifdef __x86_64__
	here[1] = __builtin_cpu_supports("avx2");
	here[2] = __builtin_cpu_supports("avx512f");
#endif
	for (i = 0; i < 3; i++)
		for (len = 0; here[i] && len < 5000; len = len * 2 + 1) {
			bodies[i]->reset(state);
			for (at = 0; at < len; at += n) {
				n = at % 67 + 1 < len - at ? at % 67 + 1 :
				    len - at;
				bodies[i]->add(state, bytes + at, n);
			}
			want = XXH3_128bits(bytes, len);
			d = bodies[i]->end(state);
			ck_assert(digest_equal(d, (struct digest){ want.high64,
			    want.low64 }));
		}
	XXH3_freeState(state);
}
END_TEST

START_TEST(test_digest_text)
{
	struct digest d = { 0x0123456789abcdefull, 0xfedcba9876543210ull }, e;
	char text[DIGEST_TEXT_MAX];

	digest_format(d, text);
	ck_assert_str_eq(text, "0123456789abcdeffedcba9876543210");
	ck_assert(digest_parse(text, &e) && digest_equal(d, e));
	text[31] = 'G';
	ck_assert(!digest_parse(text, &e));
	ck_assert(!digest_parse("", &e));
	ck_assert(!digest_parse("0123456789abcdeffedcba98765432100", &e));
	ck_assert(!digest_parse("0123456789ABCDEFfedcba9876543210", &e));
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, test_one_thread);
	tcase_add_test(t, test_two_threads);
	tcase_add_test(t, test_value_across_a_border);
	tcase_add_test(t, test_digest_bodies);
	tcase_add_test(t, test_digest_text);
}

int
main(void)
{
	return unit_run("checkpoint pass", add);
}
