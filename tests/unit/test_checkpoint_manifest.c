/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_manifest.c - what a manifest finds, and that one which may not speak
 * for a checkpoint makes it no worse.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"
#include "checkpoint_fixture.h"
#include "checkpoint/manifest.h"
#include "checkpoint/manifest_text.h"

#define VALID		HOLDFAST_CHECKPOINT_VALID
#define UNVERIFIED	HOLDFAST_CHECKPOINT_UNVERIFIED
#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE
#define CORRUPT		HOLDFAST_CHECKPOINT_CORRUPT
#define VALUES		8192		/* of a tensor of four bytes each */

static const char *folder, *file_a, *file_b, *plain;
static char long_text[65536];

/* One tensor of values that the seed tells. */
static void
write_tensor(const char *path, float seed)
{
	static float values[VALUES];
	char head[128];
	struct buf b = {0};
	uint64_t len;
	size_t i;

	for (i = 0; i < VALUES; i++)
		values[i] = seed + (float)i;
	snprintf(head, sizeof(head), "{\"w\":{\"dtype\":\"F32\",\"shape\":[%d],"
	    "\"data_offsets\":[0,%zu]}}", VALUES, sizeof(values));
	len = strlen(head);
	ck_assert_int_eq(buf_append(&b, &len, 8), 0);
	ck_assert_int_eq(buf_puts(&b, head), 0);
	ck_assert_int_eq(buf_append(&b, values, sizeof(values)), 0);
	fixture_write(path, b.data, b.len);
	buf_fini(&b);
}

/* mtime in seconds since 1970 */
static void
set_time(const char *path, long seconds)
{
	struct timespec t[2] = { { seconds, 5 }, { seconds, 5 } };

	ck_assert_int_eq(utimensat(AT_FDCWD, path, t, 0), 0);
}

/* Overwrites in place, and sets the time. */
static void
overwrite(const char *path, off_t at, const void *data, size_t len, long seconds)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	ck_assert_int_eq(pwrite(fd, data, len, at), (ssize_t)len);
	close(fd);
	set_time(path, seconds);
}

static void
check(struct checkpoint *c, const char *path, bool structure, bool trust)
{
	struct checkpoint_options o = { .structure_only = structure,
	    .trust_manifest = trust, .threads = 1 };
	struct err err = {0};

	ck_assert_int_eq(checkpoint_look(c, path), 0);
	ck_assert_int_eq(checkpoint_check(c, 1, &o, NULL, NULL, &err), 0);
}

static void
expect_at(const char *path, bool structure, enum holdfast_checkpoint_state want,
    const char *words)
{
	struct checkpoint c;
	const char *text;

	check(&c, path, structure, false);
	text = c.report.reason ? c.report.reason : c.report.note ? c.report.note :
	    "";
	ck_assert_msg(c.report.state == want, "%s instead of %s: %s",
	    holdfast_checkpoint_state_name(c.report.state),
	    holdfast_checkpoint_state_name(want), text);
	ck_assert_msg(strstr(text, words) != NULL, "'%s' does not say '%s'", text,
	    words);
	checkpoint_fini(&c);
}

static void
expect(const char *path, enum holdfast_checkpoint_state want, const char *words)
{
	expect_at(path, false, want, words);
}

static void
write_manifest(const char *path)
{
	struct checkpoint c;
	struct err err = {0};

	check(&c, path, false, false);
	ck_assert_msg(manifest_write(&c, NULL, NULL, 0, &err) == 0, "%s",
	    err.text);
	checkpoint_fini(&c);
}

static void
set_up(void)
{
	static char names[4][4096];
	const char *dir = unit_dir();

	snprintf(names[0], 4096, "%s/step_100", dir);
	snprintf(names[1], 4096, "%s/step_100/a.safetensors", dir);
	snprintf(names[2], 4096, "%s/step_100/b.safetensors", dir);
	snprintf(names[3], 4096, "%s/step_100/config.json", dir);
	folder = names[0];
	file_a = names[1];
	file_b = names[2];
	plain = names[3];
	ck_assert_int_eq(mkdir(folder, 0755), 0);
	write_tensor(file_a, 1);
	write_tensor(file_b, 2);
	fixture_write(plain, "{\"a\": 1}", 8);
	set_time(file_a, 1000);
	set_time(file_b, 1000);
	set_time(plain, 1000);
	write_manifest(folder);
}

START_TEST(whole_as_written)
{
	struct checkpoint c;

	check(&c, folder, false, false);
	ck_assert_int_eq(c.report.state, VALID);
	ck_assert_int_eq(c.report.checksum, REPORT_CHECKSUM_XXH128);
	ck_assert(c.report.contents_read);
	checkpoint_fini(&c);
	expect(folder, VALID, "every byte as in its manifest");
	expect_at(folder, true, VALID, "");
}
END_TEST

/* With the time as it was, and with a later one. */
START_TEST(zeroes_and_flips)
{
	static const uint8_t zeroes[16384];
	struct stat st;
	long when;

	ck_assert_int_eq(stat(file_a, &st), 0);
	for (when = 1000; when <= 2000; when += 1000) {
		write_tensor(file_a, 1);
		overwrite(file_a, st.st_size - 16384, zeroes, 16384, when);
		expect(folder, CORRUPT, "a.safetensors: bytes ");
		expect(folder, CORRUPT, "but zeroes");
		write_tensor(file_a, 1);
		overwrite(file_a, 5000, "x", 1, when);
		expect(folder, CORRUPT, "a.safetensors: bytes 4096 to ");
		write_tensor(file_a, 1);
		set_time(file_a, when);
		expect(folder, VALID, "every byte");
	}
	overwrite(plain, 6, "2", 1, 1000);
	expect(folder, CORRUPT, "config.json: bytes 0 to 7");
}
END_TEST

START_TEST(shard_of_another_step)
{
	write_tensor(file_a, 7);
	expect(folder, CORRUPT, "of another save");
}
END_TEST

START_TEST(missing_added_and_other_sizes)
{
	char extra[4200];

	snprintf(extra, sizeof(extra), "%s/c.safetensors", folder);
	write_tensor(extra, 3);
	expect(folder, UNVERIFIED, "c.safetensors was added");
	expect_at(folder, true, UNVERIFIED, "c.safetensors was added");
	ck_assert_int_eq(unlink(extra), 0);
	snprintf(extra, sizeof(extra), "%s/notes.txt", folder);
	fixture_write(extra, "x", 1);
	expect(folder, VALID, "every byte");
	fixture_write(plain, "{}", 2);
	expect_at(folder, true, INCOMPLETE, "config.json has 2 bytes");
	ck_assert_int_eq(unlink(plain), 0);
	expect_at(folder, true, INCOMPLETE, "config.json is missing");
	/* a link is no longer the file that was saved */
	ck_assert_int_eq(symlink("/etc/passwd", plain), 0);
	expect(folder, INCOMPLETE, "config.json is missing");
	fixture_write(extra, "x", 1);
	ck_assert_int_eq(unlink(file_b), 0);
	expect(folder, INCOMPLETE, "b.safetensors is missing");
}
END_TEST

/* After a rollback the same step is saved into the same place. */
START_TEST(saved_anew)
{
	write_tensor(file_a, 11);
	write_tensor(file_b, 12);
	expect(folder, VALID, "manifest unusable: the files were saved anew");
	write_manifest(folder);
	expect(folder, VALID, "every byte");
}
END_TEST

START_TEST(one_file)
{
	const char *path = unit_path(unit_dir(), "step_7.safetensors");
	static const uint8_t zeroes[29000];

	write_tensor(path, 1);
	set_time(path, 1000);
	write_manifest(path);
	expect(path, VALID, "every byte");
	overwrite(path, 2900, zeroes, sizeof(zeroes), 2000);
	expect(path, CORRUPT, "but zeroes");
	overwrite(path, 2900, "abc", 3, 1000);
	expect(path, CORRUPT, "bytes");
	/* checksums of its own tell a later save from damage */
	path = unit_path(unit_dir(), "step_8.pt");
	fixture_good(path, 8);
	write_manifest(path);
	expect(path, VALID, "every byte");
	fixture_good(path, 9);
	set_time(path, 4000000000);
	expect(path, VALID, "manifest unusable: of step 8, this is step 9");
}
END_TEST

/* Whatever byte of it is damaged, it is not the checkpoint that suffers. */
START_TEST(damaged_manifest)
{
	char *path = manifest_path(folder, true);
	size_t len, i;

	memcpy(long_text, unit_read(path, &len), sizeof(long_text));
	ck_assert_uint_lt(len, sizeof(long_text));
	for (i = 0; i < len; i += len / 61 + 1) {
		long_text[i] ^= 0x04;
		fixture_write(path, long_text, len);
		expect(folder, VALID, "manifest unusable: ");
		long_text[i] ^= 0x04;
	}
	for (i = 0; i < len; i += len / 31 + 1) {
		fixture_write(path, long_text, i);
		expect(folder, VALID, "manifest unusable: ");
	}
	fixture_write(path, long_text, len);
	expect(folder, VALID, "every byte");
	unlink(path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	expect(folder, VALID, "manifest unusable: no regular file");
	unlink(path);
	ck_assert_int_eq(symlink("/dev/zero", path), 0);
	expect(folder, VALID, "manifest unusable: no regular file");
	free(path);
}
END_TEST

/* Sealed as it should be, with these files. */
static void
forge(const char *files, long step)
{
	char *path = manifest_path(folder, true);
	struct buf b = {0};

	ck_assert_int_eq(buf_printf(&b, "{\"schema\":\"%s\",\"step\":%ld,"
	    "\"verify\":{\"level\":\"full\",\"state\":\"valid\"},\"files\":[%s]",
	    MANIFEST_SCHEMA, step, files), 0);
	ck_assert_int_eq(manifest_seal(&b), 0);
	fixture_write(path, b.data, b.len);
	buf_fini(&b);
	free(path);
}

#define ENTRY(path, size, more)						\
	"{\"path\":\"" path "\",\"size\":" size ",\"mtime_ns\":\"1\","	\
	"\"ino\":\"1\",\"xxh128\":\"00000000000000000000000000000000\"" more "}"

START_TEST(hostile_manifest)
{
	static const char *const files[] = {
		ENTRY("../../etc/passwd", "1", ""), ENTRY("/etc/passwd", "1", ""),
		ENTRY("a/../../b", "1", ""), ENTRY("", "1", ""),
		ENTRY("a//b", "1", ""), ENTRY(".", "1", ""),
		ENTRY("a.safetensors", "-1", ""), ENTRY("a.safetensors", "1e300", ""),
		ENTRY("a.safetensors", "9223372036854775807", ""),
		ENTRY("a.safetensors", "\"x\"", ""),
		ENTRY("a.safetensors", "9007199254740992",
		    ",\"chunk_size\":512,\"chunks\":[]"),
		ENTRY("a.safetensors", "1", ",\"chunk_size\":3,\"chunks\":[]"),
		ENTRY("a.safetensors", "1", ",\"chunk_size\":-512,\"chunks\":[]"),
		ENTRY("a.safetensors", "1", ",\"chunk_size\":4294967296,"
		    "\"chunks\":[]"),
		ENTRY("a.safetensors", "1", ",\"chunk_size\":512,\"chunks\":[7]"),
		ENTRY("a.safetensors", "1", "") "," ENTRY("a.safetensors", "1", ""),
		"7", "{}", "null", "{\"path\":\"x\"}"
	};
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		forge(files[i], 100);
		expect(folder, VALID, "manifest unusable: ");
	}
	forge(ENTRY("a.safetensors", "1", ""), 99);
	expect(folder, VALID, "manifest unusable: of step 99");
}
END_TEST

START_TEST(full_check_is_spared)
{
	struct checkpoint c;

	check(&c, folder, false, true);
	ck_assert_int_eq(c.report.state, VALID);
	ck_assert(c.report.contents_read);
	ck_assert_uint_eq(c.report.bytes_read, 0);
	ck_assert_ptr_nonnull(strstr(c.report.note, "unchanged since"));
	checkpoint_fini(&c);
	/* another time alone makes it read again, nothing worse */
	set_time(file_b, 1001);
	check(&c, folder, false, true);
	ck_assert_int_eq(c.report.state, VALID);
	ck_assert_uint_gt(c.report.bytes_read, 0);
	checkpoint_fini(&c);
	overwrite(file_b, 5000, "x", 1, 1001);
	check(&c, folder, false, true);
	ck_assert_int_eq(c.report.state, CORRUPT);
	checkpoint_fini(&c);
}
END_TEST

START_TEST(only_of_valid_ones)
{
	struct checkpoint c;
	struct err err = {0};

	check(&c, folder, true, false);
	ck_assert_int_eq(manifest_write(&c, NULL, NULL, 0, &err), -1);
	checkpoint_fini(&c);
	/* changed between the check and the manifest */
	check(&c, folder, false, false);
	overwrite(file_a, 5000, "x", 1, 4000000000);
	ck_assert_int_eq(manifest_write(&c, NULL, NULL, 0, &err), -1);
	ck_assert_int_eq(err.code, ERR_BUSY);
	checkpoint_fini(&c);
}
END_TEST

START_TEST(known_digests_are_taken)
{
	struct manifest_file known = { .path = (char []){ "a.safetensors" },
	    .mtime_ns = 1000000000005, .whole = { 1, 2 } };
	struct checkpoint c;
	struct manifest m;
	struct err err = {0};
	struct stat st;

	ck_assert_int_eq(stat(file_a, &st), 0);
	known.size = (uint64_t)st.st_size;
	check(&c, folder, false, false);
	ck_assert_int_eq(manifest_write(&c, NULL, &known, 1, &err), 0);
	ck_assert_int_eq(manifest_read(&m, folder, true, &err), MANIFEST_FOUND);
	ck_assert_uint_eq(m.n, 3);
	ck_assert(digest_equal(manifest_find(&m, "a.safetensors")->whole,
	    known.whole));
	ck_assert_uint_eq(manifest_find(&m, "a.safetensors")->chunk_size, 0);
	ck_assert_uint_gt(manifest_find(&m, "b.safetensors")->n_chunks, 0);
	manifest_fini(&m);
	checkpoint_fini(&c);
	expect(folder, CORRUPT, "a.safetensors");
}
END_TEST

/* A check that keeps the digests; nothing is read again for the manifest, so that what
 * changes in between, time and size apart, is found later. */
static void
check_keeping(struct checkpoint *c, const char *path, const char *file)
{
	struct checkpoint_options o = { .keep_digests = true,
	    .trust_manifest = true, .threads = 1 };
	struct err err = {0};
	struct stat st;

	set_time(file, 1000);
	ck_assert_int_eq(checkpoint_look(c, path), 0);
	ck_assert_int_eq(checkpoint_check(c, 1, &o, NULL, NULL, &err), 0);
	ck_assert_int_eq(c->report.state, VALID);
	ck_assert(manifest_is_due(c));
	ck_assert_int_eq(stat(file, &st), 0);
	overwrite(file, st.st_size / 2, "\1\2\3\4", 4, 1000);
	ck_assert_msg(manifest_write(c, NULL, NULL, 0, &err) == 0, "%s",
	    err.text);
	checkpoint_fini(c);
	expect(path, CORRUPT, "");
	/* It stands for what it knows: nothing is read, nothing is due. */
	ck_assert_int_eq(checkpoint_look(c, path), 0);
	ck_assert_int_eq(checkpoint_check(c, 1, &o, NULL, NULL, &err), 0);
	ck_assert(!manifest_is_due(c));
	checkpoint_fini(c);
}

START_TEST(kept_digests_are_taken)
{
	const char *one = unit_path(unit_dir(), "step_7.safetensors");
	char dcp[4096], piece[4200], path[4200];
	struct checkpoint c;

	/* without them it is not due, and all is read again */
	check(&c, folder, false, false);
	ck_assert(!manifest_is_due(&c));
	checkpoint_fini(&c);
	write_tensor(one, 7);
	check_keeping(&c, one, one);
	snprintf(dcp, sizeof(dcp), "%s/dcp", unit_dir());
	snprintf(path, sizeof(path), "%s/", dcp);
	fixture_mkdirs(path);
	fixture_dcp(dcp);
	snprintf(piece, sizeof(piece), "%s/__0_0.distcp", dcp);
	check_keeping(&c, dcp, piece);
	/* another save came: the old manifest is unusable, a new one due */
	write_tensor(file_a, 3);
	write_tensor(file_b, 4);
	set_time(file_a, 2000);
	set_time(file_b, 2000);
	snprintf(path, sizeof(path), "%s/.holdfast-manifest.json", folder);
	ck_assert_int_eq(unlink(path), 0);
	check_keeping(&c, folder, file_a);
}
END_TEST

START_TEST(folder_of_no_format)
{
	const char *any = unit_path(unit_dir(), "any");
	char inside[4200];
	struct checkpoint c;
	struct err err = {0};

	ck_assert_int_eq(mkdir(any, 0755), 0);
	snprintf(inside, sizeof(inside), "%s/state", any);
	fixture_write(inside, "1234567890", 10);
	set_time(inside, 1000);
	ck_assert_int_eq(checkpoint_look(&c, any), 0);
	ck_assert_int_eq(manifest_write(&c, NULL, NULL, 0, &err), 0);
	checkpoint_fini(&c);
	expect(any, VALID, "every byte");
	overwrite(inside, 3, "x", 1, 1000);
	expect(any, CORRUPT, "state: bytes 0 to 9");
	unlink(inside);
	expect(any, INCOMPLETE, "state is missing");
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, NULL);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, whole_as_written);
	tcase_add_test(t, zeroes_and_flips);
	tcase_add_test(t, shard_of_another_step);
	tcase_add_test(t, missing_added_and_other_sizes);
	tcase_add_test(t, saved_anew);
	tcase_add_test(t, one_file);
	tcase_add_test(t, damaged_manifest);
	tcase_add_test(t, hostile_manifest);
	tcase_add_test(t, full_check_is_spared);
	tcase_add_test(t, only_of_valid_ones);
	tcase_add_test(t, known_digests_are_taken);
	tcase_add_test(t, kept_digests_are_taken);
	tcase_add_test(t, folder_of_no_format);
}

int
main(void)
{
	return unit_run("checkpoint manifest", add);
}
