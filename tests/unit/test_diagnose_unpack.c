/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_unpack.c - compressed logs: whole, joined, cut, damaged, too large;
 * UTF-16, and what is no text.
 */
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "common/buf.h"
#include "diagnose/feed.h"
#include "unit.h"

enum { GZ, ZSTD, XZ };

static const char *const suffixes[] = { "a.log.gz", "a.log.zst", "a.log.xz" };

static void
pack_gz(const char *data, size_t len, struct buf *out)
{
	z_stream z = {0};

	ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8,
	    Z_DEFAULT_STRATEGY), Z_OK);
	ck_assert_int_eq(buf_reserve(out, deflateBound(&z, len)), 0);
	z.next_in = (Bytef *)(uintptr_t)data;
	z.avail_in = (uInt)len;
	z.next_out = (Bytef *)out->data + out->len;
	z.avail_out = (uInt)(out->cap - out->len);
	ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
	out->len += z.total_out;
	deflateEnd(&z);
}

/* With a checksum, as zstd(1) writes it, and the length left open. */
static void
pack_zstd(const char *data, size_t len, int window_log, struct buf *out)
{
	ZSTD_CCtx *z = ZSTD_createCCtx();
	ZSTD_inBuffer in = { data, len, 0 };
	ZSTD_outBuffer packed = { 0 };

	ck_assert_ptr_nonnull(z);
	ck_assert_int_eq(buf_reserve(out, ZSTD_compressBound(len) + 1000), 0);
	packed.dst = out->data + out->len;
	packed.size = out->cap - out->len;
	ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
	ZSTD_CCtx_setParameter(z, ZSTD_c_windowLog, window_log);
	ZSTD_compressStream2(z, &packed, &in, ZSTD_e_flush);
	ck_assert_uint_eq(ZSTD_compressStream2(z, &packed, &in, ZSTD_e_end), 0);
	ck_assert_uint_eq(in.pos, len);
	out->len += packed.pos;
	ZSTD_freeCCtx(z);
}

/* Appends one member or frame. */
static void
pack(int how, const char *data, size_t len, struct buf *out)
{
	size_t n, at = 0;

	if (how == GZ) {
		pack_gz(data, len, out);
		return;
	}
	if (how == ZSTD) {
		pack_zstd(data, len, 0, out);
		return;
	}
	n = lzma_stream_buffer_bound(len);
	ck_assert_int_eq(buf_reserve(out, n), 0);
	ck_assert_int_eq(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, NULL,
	    (const uint8_t *)data, len, (uint8_t *)out->data + out->len, &at,
	    n), LZMA_OK);
	out->len += at;
}

/* Lines, of which little can be guessed from the others. */
static char *
lines(size_t len)
{
	char *data = malloc(len + 1);
	size_t i;

	ck_assert_ptr_nonnull(data);
	for (i = 0; i < len; i++)
		data[i] = i % 80 == 79 ? '\n' : (char)(' ' + unit_random(64));
	data[len] = '\0';
	return data;
}

static void
read_bytes(struct feed *f, const char *name, const char *data, size_t len)
{
	const char *path = unit_path(unit_dir(), name);
	struct err err = {0};

	unit_write(path, data, len);
	ck_assert_msg(feed_add(f, path, &err) == 0, "%s", err.text);
}

static void
expect(const struct feed *f, const char *data, size_t len)
{
	ck_assert_uint_eq(f->count, 1);
	ck_assert_uint_eq(f->streams[0].len, len);
	ck_assert_int_eq(memcmp(f->streams[0].data, data, len), 0);
}

static void
expect_missing(const struct feed *f, const char *why)
{
	ck_assert_uint_eq(f->missing_count, 1);
	ck_assert_msg(strstr(f->missing[0], why) != NULL, "%s: not %s",
	    f->missing[0], why);
}

/* All sizes, by the heap and by a file, in one member and in several. */
START_TEST(whole)
{
	static const size_t lens[] = { 0, 1, 79, 8192, 70000, 1 << 20,
	    (1 << 20) + 1, 5000000 };
	size_t i, k, cut;
	int how;

	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		char *data = lines(lens[i]);

		for (how = GZ; how <= XZ; how++) {
			struct buf packed = {0};
			struct feed f = {0};

			/* It takes its time. */
			if (how == XZ && lens[i] > 1 << 20 && _i != 3)
				continue;
			for (k = cut = 0; k < (size_t)_i; k++) {
				size_t n = k + 1 == (size_t)_i ? lens[i] - cut :
				    (lens[i] - cut) / 3;

				pack(how, data + cut, n, &packed);
				cut += n;
			}
			read_bytes(&f, suffixes[how], packed.data, packed.len);
			ck_assert_uint_eq(f.missing_count, 0);
			expect(&f, data, lens[i]);
			ck_assert(f.streams[0].mapped == (lens[i] > 1 << 20));
			feed_fini(&f);
			buf_fini(&packed);
		}
		free(data);
	}
}
END_TEST

/* Packed by one program after the other; not without end. */
START_TEST(packed_twice)
{
	struct buf packed = {0}, again = {0};
	char *data = lines(70000);
	int depth;

	pack(ZSTD, data, 70000, &packed);
	for (depth = 2; depth < 5; depth++) {
		struct feed f = {0};

		pack(GZ, packed.data, packed.len, &again);
		read_bytes(&f, "a.log.zst.gz", again.data, again.len);
		if (depth < 4)
			expect(&f, data, 70000);
		else
			expect_missing(&f, "packed more than");
		feed_fini(&f);
		buf_fini(&packed);
		packed = again;
		again = (struct buf){0};
	}
	buf_fini(&packed);
	free(data);
}
END_TEST

/* They share a file; one that fails in between leaves no gap in another. */
START_TEST(several)
{
	size_t lens[] = { 1500000, 1200001, 2000000, 3000, 1100000 }, i;
	char *data[5];
	struct feed f = {0};

	for (i = 0; i < 5; i++) {
		struct buf packed = {0};

		data[i] = lines(lens[i]);
		pack(GZ, data[i], lens[i], &packed);
		/* Of the second one the end is missing. */
		read_bytes(&f, "a.gz", packed.data, packed.len - 9 * (i == 1));
		buf_fini(&packed);
	}
	expect_missing(&f, "truncated");
	ck_assert_uint_eq(f.count, 5);
	for (i = 0; i < 5; i++) {
		const struct stream *s = &f.streams[i];

		ck_assert(s->len == lens[i] || (i == 1 && s->len < lens[i] &&
		    s->len > lens[i] / 2));
		ck_assert_int_eq(memcmp(s->data, data[i], s->len), 0);
		free(data[i]);
	}
	feed_fini(&f);
}
END_TEST

/* Every kind of text between members: bits that a decoder read ahead are given
 * back. */
START_TEST(members_of_every_length)
{
	struct buf packed = {0}, all = {0};
	struct feed f = {0};
	char *data = lines(3000);
	size_t i;

	for (i = 0; i < 300; i++) {
		size_t n = i < 40 ? i : unit_random(3000);

		pack(GZ, data, n, &packed);
		buf_append(&all, data, n);
	}
	/* As a tape has it. */
	buf_append(&packed, "\0\0\0\0\0\0\0", 7);
	read_bytes(&f, "a", packed.data, packed.len);
	ck_assert_uint_eq(f.missing_count, 0);
	expect(&f, all.data, all.len);
	feed_fini(&f);
	buf_fini(&packed);
	buf_fini(&all);
	free(data);
}
END_TEST

START_TEST(cut_or_damaged)
{
	size_t len = 1000000, at;
	char *data = lines(len);
	int how;

	for (how = GZ; how <= XZ; how++) {
		struct buf packed = {0};
		struct feed f = {0};

		pack(how, data, len, &packed);
		read_bytes(&f, suffixes[how], packed.data, packed.len - 1000);
		expect_missing(&f, "truncated; what came before is read");
		ck_assert_uint_gt(f.streams[0].len, len / 2);
		expect(&f, data, f.streams[0].len);
		feed_fini(&f);
		/* A byte in the middle: some of it, and the reason. */
		packed.data[packed.len / 2] ^= 0x55;
		packed.data[packed.len / 2 + 1] ^= 0x55;
		read_bytes(&f, suffixes[how], packed.data, packed.len);
		ck_assert_uint_eq(f.missing_count, 1);
		ck_assert_uint_eq(f.count, 1);
		for (at = 0; at < f.streams[0].len / 4; at++)
			ck_assert_int_eq(f.streams[0].data[at], data[at]);
		feed_fini(&f);
		/* Only the header. */
		read_bytes(&f, suffixes[how], packed.data, 7);
		ck_assert_uint_eq(f.count, 0);
		expect_missing(&f, "truncated");
		feed_fini(&f);
		buf_fini(&packed);
	}
	free(data);
}
END_TEST

START_TEST(trailing_bytes)
{
	struct buf packed = {0};
	struct feed f = {0};
	int how;

	for (how = GZ; how <= XZ; how++) {
		packed.len = 0;
		pack(how, "one line\n", 9, &packed);
		buf_puts(&packed, "not packed\n..");
		read_bytes(&f, suffixes[how], packed.data, packed.len);
		expect(&f, "one line\n", 9);
		expect_missing(&f, how == XZ ? "damaged" : "of another kind");
		feed_fini(&f);
	}
	buf_fini(&packed);
}
END_TEST

/* What would need more memory than a decoder gets, and more room than TMPDIR has. */
START_TEST(bounds)
{
	struct feed f = {0};
	struct buf packed = {0};
	char *data;

	pack_zstd("a line\n", 7, 28, &packed);
	read_bytes(&f, "a.zst", packed.data, packed.len);
	ck_assert_uint_eq(f.count, 0);
	expect_missing(&f, "needs more than 128 MiB");
	feed_fini(&f);
	buf_fini(&packed);

	data = lines(2 << 20);
	pack(GZ, data, 2 << 20, &packed);
	setenv("TMPDIR", "/nowhere", 1);
	read_bytes(&f, "a.gz", packed.data, packed.len);
	expect_missing(&f, "cannot keep it in /nowhere");
	/* What stayed on the heap is there. */
	expect(&f, data, f.streams[0].len);
	ck_assert_uint_gt(f.streams[0].len, 500000);
	feed_fini(&f);
	buf_fini(&packed);
	free(data);
}
END_TEST

/* Too large for TMPDIR: the end stays, and its lines keep their numbers. */
START_TEST(end_is_kept)
{
	static const size_t maxima[] = { 1200000, 1700000, 3000000 };
	size_t i, len = 5000000;
	struct buf packed = {0};
	char *data = lines(len);

	pack(ZSTD, data, len, &packed);
	for (i = 0; i < 3; i++) {
		struct feed f = { .spool_max = maxima[i] };
		const struct stream *s;

		read_bytes(&f, "a.zst", packed.data, packed.len);
		expect_missing(&f, "MiB were not kept");
		ck_assert_uint_eq(f.count, 1);
		s = &f.streams[0];
		ck_assert_uint_le(s->len, maxima[i]);
		ck_assert_uint_gt(s->len, maxima[i] / 3);
		ck_assert_int_eq(memcmp(s->data, data + len - s->len, s->len), 0);
		ck_assert_uint_eq(stream_line(s, s->len - 1), (len - 1) / 80 + 1);
		ck_assert_uint_eq(stream_lines(s), (len - 1) / 80 + 1);
		feed_fini(&f);
	}
	free(data);
	buf_fini(&packed);
}
END_TEST

START_TEST(not_read)
{
	struct feed f = {0};

	read_bytes(&f, "a.bz2", "BZh91AY&SY123", 13);
	expect_missing(&f, "bzip2 is not read: unpack it");
	feed_fini(&f);
	read_bytes(&f, "a.journal", "LPKSHHRH....", 12);
	expect_missing(&f, "journalctl");
	feed_fini(&f);
	/* The name does not matter. */
	read_bytes(&f, "a.gz", "plain text\n", 11);
	expect(&f, "plain text\n", 11);
	feed_fini(&f);
}
END_TEST

static void
put_utf16(struct buf *out, unsigned unit, bool big)
{
	char bytes[2] = { (char)(big ? unit >> 8 : unit),
	    (char)(big ? unit : unit >> 8) };

	buf_append(out, bytes, 2);
}

START_TEST(utf16)
{
	static const char text[] =
	    "RuntimeError: \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 \xef\xbf\xbd|\n";
	static const unsigned odd[] = { 0xe4, ' ', 0x20ac, ' ', 0xd83d, 0xde00,
	    ' ', 0xd83d, '|', '\n' };
	bool big = _i & 1, mark = _i & 2, large = _i & 4;
	size_t i, k, times = large ? 60000 : 3;
	struct buf b = {0}, want = {0};
	struct feed f = {0};

	if (mark)
		put_utf16(&b, 0xfeff, big);
	for (k = 0; k < times; k++) {
		/* Much of it ASCII, as in a log. */
		for (i = 0; i < 100; i++)
			put_utf16(&b, 'x', big);
		for (i = 0; i < strlen("RuntimeError: "); i++)
			put_utf16(&b, (unsigned char)text[i], big);
		for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
			put_utf16(&b, odd[i], big);
		for (i = 0; i < 100; i++)
			buf_puts(&want, "x");
		buf_puts(&want, text);
	}
	/* Half a character at the end. */
	buf_append(&b, "x", 1);
	buf_puts(&want, "\xef\xbf\xbd");
	read_bytes(&f, "a.log", b.data, b.len);
	expect(&f, want.data, want.len);
	ck_assert_uint_eq(f.missing_count, 0);
	feed_fini(&f);
	buf_fini(&b);
	buf_fini(&want);
}
END_TEST

START_TEST(byte_order_mark)
{
	static char large[20000] = "\xef\xbb\xbf" "Traceback\n";
	struct feed f = {0};

	memset(large + 13, 'x', sizeof(large) - 13);
	read_bytes(&f, "a.log", "\xef\xbb\xbfText\n", 8);
	expect(&f, "Text\n", 5);
	feed_fini(&f);
	read_bytes(&f, "a.log", large, sizeof(large));
	expect(&f, large + 3, sizeof(large) - 3);
	stream_release(&f.streams[0], 0, f.streams[0].len);
	expect(&f, large + 3, sizeof(large) - 3);
	ck_assert_uint_eq(stream_line(&f.streams[0], 9), 1);
	ck_assert_uint_eq(stream_line(&f.streams[0], 10), 2);
	feed_fini(&f);
}
END_TEST

static char odd_bytes[20000];

/* Found in a folder it is passed over and listed, named it is scanned. */
static void
check_binary(size_t len, bool binary)
{
	const char *dir = unit_dir(), *path = unit_path(dir, "a.log");
	struct feed f = {0};

	unit_write(path, odd_bytes, len);
	ck_assert_int_eq(feed_add(&f, dir, NULL), 0);
	ck_assert_uint_eq(f.count, !binary);
	if (binary)
		expect_missing(&f, "a.log: binary");
	feed_fini(&f);
	ck_assert_int_eq(feed_add(&f, path, NULL), 0);
	expect(&f, odd_bytes, len);
	feed_fini(&f);
}

START_TEST(binary)
{
	size_t i, n = sizeof(odd_bytes);

	for (i = 0; i < n; i++)
		odd_bytes[i] = (char)unit_random(256);
	check_binary(n, true);
	memset(odd_bytes, 0, n);
	check_binary(n, true);
	/* A hole before text, and behind it. */
	for (i = 0; i < n; i++)
		odd_bytes[i] = i < n / 2 ? '\0' : i % 50 ? 'x' : '\n';
	check_binary(n, false);
	for (i = 0; i < n; i++)
		odd_bytes[i] = i >= n / 2 ? '\0' : i % 50 ? 'x' : '\n';
	check_binary(n, false);
	/* Latin-1, colours, a progress bar. */
	for (i = 0; i < n; i++)
		odd_bytes[i] = "\xe4\xf6\033[1m \r\b\t|"[i % 11];
	check_binary(n, false);
	check_binary(5, false);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_loop_test(t, whole, 1, 4);
	tcase_add_test(t, packed_twice);
	tcase_add_test(t, several);
	tcase_add_test(t, members_of_every_length);
	tcase_add_test(t, cut_or_damaged);
	tcase_add_test(t, trailing_bytes);
	tcase_add_test(t, bounds);
	tcase_add_test(t, end_is_kept);
	tcase_add_test(t, not_read);
	tcase_add_loop_test(t, utf16, 0, 8);
	tcase_add_test(t, byte_order_mark);
	tcase_add_test(t, binary);
}

int
main(void)
{
	return unit_run("unpack", add_tests);
}
