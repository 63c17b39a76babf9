/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_fixture.c - a writer of torch.save archives, made to be able to write
 * wrong ones.
 */
#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "checkpoint_fixture.h"
#include "common/file.h"

static void
put(struct buf *b, const void *data, size_t len)
{
	/* no assertion: it would write to a file each time */
	if (buf_append(b, data, len) == -1)
		ck_abort_msg("out of memory");
}

static void
put_le(struct buf *b, uint64_t v, int bytes)
{
	uint8_t p[8];
	int i;

	for (i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> (8 * i));
	put(b, p, (size_t)bytes);
}

static void
put_text(struct buf *b, const char *text)
{
	put(b, "X", 1);
	put_le(b, strlen(text), 4);
	put(b, text, strlen(text));
}

static void
put_number(struct buf *b, long n)
{
	put(b, "J", 1);
	put_le(b, (uint64_t)n, 4);
}

static void
put_tensor(struct buf *b, const struct fixture_tensor *t, size_t key)
{
	char text[32];

	put(b, "ctorch._utils\n_rebuild_tensor_v2\n((", 35);
	put_text(b, "storage");
	ck_assert_int_eq(buf_printf(b, "ctorch\n%s\n", t->storage), 0);
	snprintf(text, sizeof(text), "%zu", key);
	put_text(b, text);
	put_text(b, "cpu");
	put_number(b, t->numel);
	put(b, "tQK\0", 4);			/* tuple, persistent id, offset 0 */
	put_number(b, t->numel);
	put(b, "\x85K\1\x85\x89", 5);		/* size, stride, no gradient */
	put(b, "ccollections\nOrderedDict\n)RtR", 29);
}

void
fixture_pickle(struct buf *b, const struct fixture_tensor *t, size_t n, long step)
{
	size_t i;

	put(b, "\x80\2}(", 4);
	if (step >= 0) {
		put_text(b, "step");
		put_number(b, step);
	}
	put_text(b, "model");
	put(b, "}(", 2);
	for (i = 0; i < n; i++) {
		put_text(b, t[i].name);
		put_tensor(b, &t[i], i);
	}
	put(b, "uu.", 3);
}

struct written {
	size_t		header, usize, csize;
	uint32_t	crc;
	bool		deflated, descriptor;
};

static void
put_data(struct buf *b, const struct fixture_record *r,
    const struct written *w)
{
	uLongf room = compressBound(r->size) + 64;
	uint8_t *out;
	z_stream z;

	if (!w->deflated) {
		put(b, r->data, r->size);
		return;
	}
	out = malloc(room);
	memset(&z, 0, sizeof(z));
	ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, -15, 8,
	    Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (uint8_t *)(uintptr_t)r->data;
	z.avail_in = (uInt)r->size;
	z.next_out = out;
	z.avail_out = (uInt)room;
	ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
	put(b, out, room - z.avail_out);
	deflateEnd(&z);
	free(out);
}

static void
put_local(struct buf *b, const struct fixture_record *r,
    const struct fixture_zip *o, struct written *w)
{
	size_t len = strlen(r->name), pad = 0, extra = o->zip64 ? 20 : 0;
	size_t start = b->len + 30 + len + extra + 4;
	size_t i;

	if (o->align != 0)
		pad = (o->align - start % o->align) % o->align;
	put_le(b, 0x04034b50, 4);
	put_le(b, 0, 2);
	put_le(b, w->descriptor ? 0x808 : 0x800, 2);
	put_le(b, w->deflated ? 8 : 0, 2);
	put_le(b, 0, 4);
	put_le(b, w->descriptor ? 0 : w->crc, 4);
	/* sizes without descriptor are only written for stored records */
	put_le(b, w->descriptor ? 0 : r->size, 4);
	put_le(b, w->descriptor ? 0 : r->size, 4);
	put_le(b, len, 2);
	put_le(b, extra + (o->align ? 4 + pad : 0), 2);
	put(b, r->name, len);
	if (o->zip64) {
		put_le(b, 1, 2);
		put_le(b, 16, 2);
		put_le(b, 0, 8);
		put_le(b, 0, 8);
	}
	if (o->align) {
		put(b, "FB", 2);
		put_le(b, pad, 2);
		for (i = 0; i < pad; i++)
			put(b, "Z", 1);
	}
}

static void
put_central(struct buf *b, const struct fixture_record *r,
    const struct fixture_zip *o, const struct written *w)
{
	put_le(b, 0x02014b50, 4);
	put_le(b, 0, 4);
	put_le(b, w->descriptor ? 0x808 : 0x800, 2);
	put_le(b, w->deflated ? 8 : 0, 2);
	put_le(b, 0, 4);
	put_le(b, w->crc, 4);
	put_le(b, o->zip64 ? UINT32_MAX : w->csize, 4);
	put_le(b, o->zip64 ? UINT32_MAX : w->usize, 4);
	put_le(b, strlen(r->name), 2);
	put_le(b, o->zip64 ? 28 : 0, 2);
	put_le(b, 0, 2);
	put_le(b, 0, 8);
	put_le(b, o->zip64 ? UINT32_MAX : w->header, 4);
	put(b, r->name, strlen(r->name));
	if (o->zip64) {
		put_le(b, 1, 2);
		put_le(b, 24, 2);
		put_le(b, w->usize, 8);
		put_le(b, w->csize, 8);
		put_le(b, w->header, 8);
	}
}

static void
put_end(struct buf *b, size_t n, size_t at, const struct fixture_zip *o)
{
	size_t size = b->len - at, end64 = b->len;

	if (!o->no_end64) {
		put_le(b, 0x06064b50, 4);
		put_le(b, 44, 8);
		put_le(b, 0, 4);
		put_le(b, 0, 8);
		put_le(b, n, 8);
		put_le(b, n, 8);
		put_le(b, size, 8);
		put_le(b, at, 8);
		put_le(b, 0x07064b50, 4);
		put_le(b, 0, 4);
		put_le(b, end64, 8);
		put_le(b, 1, 4);
	}
	put_le(b, 0x06054b50, 4);
	put_le(b, 0, 4);
	put_le(b, n, 2);
	put_le(b, n, 2);
	put_le(b, size, 4);
	put_le(b, o->zip64 ? UINT32_MAX : at, 4);
	put_le(b, 0, 2);
}

void
fixture_zip(struct buf *b, const struct fixture_record *r, size_t n,
    const struct fixture_zip *o, size_t *at)
{
	struct written w[64];
	size_t i, start, count = 0, begin = b->len;

	ck_assert_uint_le(n, 64);
	ck_assert_uint_eq(begin, 0);
	memset(w, 0, sizeof(w));
	for (i = 0; i < n; i++) {
		if (r[i].skip)
			continue;
		if (count++ == 1 && o->hole > 0) {
			ck_assert_int_eq(buf_reserve(b, o->hole), 0);
			memset(b->data + b->len, 0, o->hole);
			b->len += o->hole;
		}
		w[i].header = b->len;
		w[i].usize = r[i].size;
		w[i].deflated = o->deflate && r[i].size > 0;
		w[i].descriptor = r[i].size > 0 && !o->no_descriptor;
		w[i].crc = o->no_crc ? 0 :
		    (uint32_t)crc32(0, r[i].data, (uInt)r[i].size);
		put_local(b, &r[i], o, &w[i]);
		start = b->len;
		if (at != NULL)
			at[i] = start;
		put_data(b, &r[i], &w[i]);
		w[i].csize = b->len - start;
		if (!w[i].descriptor)
			continue;
		put_le(b, 0x08074b50, 4);
		put_le(b, w[i].crc, 4);
		put_le(b, w[i].csize, o->zip64 ? 8 : 4);
		put_le(b, w[i].usize, o->zip64 ? 8 : 4);
	}
	start = b->len;
	for (i = 0; i < n; i++)
		if (!r[i].skip)
			put_central(b, &r[i], o, &w[i]);
	put_end(b, count, start, o);
}

void
fixture_torch(struct buf *b, const struct fixture_tensor *t, size_t n, long step,
    const struct fixture_zip *o, size_t *at)
{
	static const struct fixture_zip plain = { .align = 64 };
	struct fixture_record r[64];
	char names[64][40];
	struct buf pickle = {0};
	size_t i;

	ck_assert_uint_le(n + 2, 64);
	memset(r, 0, sizeof(r));
	fixture_pickle(&pickle, t, n, step);
	r[0].name = "archive/data.pkl";
	r[0].data = pickle.data;
	r[0].size = pickle.len;
	for (i = 0; i < n; i++) {
		snprintf(names[i], sizeof(names[i]), "archive/data/%zu", i);
		r[i + 1].name = names[i];
		r[i + 1].data = t[i].data;
		r[i + 1].size = t[i].size;
	}
	r[n + 1].name = "archive/version";
	r[n + 1].data = "3\n";
	r[n + 1].size = 2;
	fixture_zip(b, r, n + 2, o != NULL ? o : &plain, at);
	buf_fini(&pickle);
}

char *
fixture_dir(void)
{
	const char *tmp = getenv("TMPDIR");
	char *dir;

	/* in memory where possible: thousands of files are written */
	if (tmp == NULL)
		tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	ck_assert_int_ne(asprintf(&dir, "%s/holdfast-test.XXXXXX", tmp), -1);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	return dir;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void
fixture_remove(char *dir)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(dir);
}

char *
fixture_path(const char *dir, const char *name)
{
	char *path;

	ck_assert_int_ne(asprintf(&path, "%s/%s", dir, name), -1);
	return path;
}

void
fixture_write(const char *path, const void *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd == -1 || write(fd, data, len) != (ssize_t)len)
		ck_abort_msg("cannot write %s", path);
	close(fd);
}

void
fixture_text(const char *dir, const char *name, const char *text)
{
	char *path = fixture_path(dir, name);

	fixture_write(path, text, strlen(text));
	free(path);
}

bool
fixture_has(const char *dir, const char *name)
{
	char *path = fixture_path(dir, name);
	struct stat st;
	bool is = lstat(path, &st) == 0;

	free(path);
	return is;
}

void
fixture_expect_text(const char *dir, const char *name, const char *want)
{
	char *path = fixture_path(dir, name);
	struct buf b = {0};

	ck_assert_int_eq(file_read(path, 4096, &b, NULL), 0);
	ck_assert_str_eq(b.data != NULL ? b.data : "", want);
	buf_fini(&b);
	free(path);
}

void
fixture_good(const char *path, long step)
{
	static const float data[4] = { 1, 2, 3, 4 };
	struct fixture_tensor t = { "w", "FloatStorage", data, sizeof(data), 4 };
	struct buf b = {0};

	fixture_torch(&b, &t, 1, step, NULL, NULL);
	fixture_write(path, b.data, b.len);
	buf_fini(&b);
}

void
fixture_safetensors(const char *path, const char *tensor)
{
	char header[128];
	struct buf b = {0};
	uint8_t size[8] = {0}, data[16] = {0};
	int n = snprintf(header, sizeof(header), "{\"%s\":{\"dtype\":\"F32\","
	    "\"shape\":[4],\"data_offsets\":[0,16]}}", tensor);

	size[0] = (uint8_t)n;
	buf_append(&b, size, sizeof(size));
	buf_append(&b, header, (size_t)n);
	buf_append(&b, data, sizeof(data));
	fixture_write(path, b.data, b.len);
	buf_fini(&b);
}

void
fixture_object(const char *path, const char *pickle)
{
	static const struct fixture_zip plain = { .align = 64 };
	struct fixture_record r[2] = {
		{ .name = "archive/data.pkl", .data = pickle,
		    .size = strlen(pickle) },
		{ .name = "archive/version", .data = "3\n", .size = 2 }
	};
	struct buf b = {0};

	fixture_zip(&b, r, 2, &plain, NULL);
	fixture_write(path, b.data, b.len);
	buf_fini(&b);
}

void
fixture_mkdirs(const char *path)
{
	struct err err = {0};

	if (file_mkdirs(path, 0700, &err) == -1)
		ck_abort_msg("%s", err.text);
}

void
fixture_dcp_metadata(const char *dir, size_t length, int pieces)
{
	char *path = fixture_path(dir, ".metadata");
	struct buf b = {0};
	int i;

	/* as CPython pickles a dataclass: NEWOBJ, a dict of attributes, BUILD */
	buf_puts(&b, "\x80\x04" "cm\nMetadata\n)\x81(dVstate_dict_metadata\n(dVw\n"
	    "cm\nTensorStorageMetadata\n)\x81(dVsize\nctorch\nSize\n((I8\nttRs"
	    "Vchunks\n(l");
	for (i = 0; i < 2; i++)
		buf_puts(&b, "cm\nChunkStorageMetadata\n)\x81(d"
		    "Vsizes\nctorch\nSize\n((I4\nttRsba");
	buf_puts(&b, "sbssVstorage_data\n(d");
	for (i = 0; i < pieces; i++)
		buf_printf(&b, "cm\nMetadataIndex\n)\x81(dVfqn\nVw\nsb"
		    "cm\n_StorageInfo\n)\x81(dVrelative_path\nV__%d_0.distcp\ns"
		    "Voffset\nI0\nsVlength\nI%zu\nsbs", i, length);
	buf_puts(&b, "sb.");
	fixture_write(path, b.data, b.len);
	buf_fini(&b);
	free(path);
}

void
fixture_dcp(const char *dir)
{
	char *one = fixture_path(dir, "__0_0.distcp");
	char *two = fixture_path(dir, "__1_0.distcp");
	struct stat st;

	fixture_mkdirs(dir);
	fixture_good(one, -1);
	fixture_good(two, -1);
	ck_assert_int_eq(stat(one, &st), 0);
	fixture_dcp_metadata(dir, (size_t)st.st_size, 2);
	free(one);
	free(two);
}

void
fixture_check(struct checkpoint *c, const char *path, bool structure_only)
{
	struct checkpoint_options opts = { .structure_only = structure_only,
	    .threads = 1 };

	if (checkpoint_look(c, path) == -1 ||
	    checkpoint_check(c, 1, &opts, NULL, NULL, NULL) == -1)
		ck_abort_msg("out of memory");
}

enum holdfast_checkpoint_state
fixture_state(const char *path, char *text, size_t size)
{
	struct checkpoint c;
	enum holdfast_checkpoint_state state;

	fixture_check(&c, path, false);
	state = c.report.state;
	if (text != NULL)
		snprintf(text, size, "%s", c.report.reason ? c.report.reason :
		    "");
	checkpoint_fini(&c);
	return state;
}
