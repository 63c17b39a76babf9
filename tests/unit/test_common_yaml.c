/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_common_yaml.c - trees, and what is refused at which place.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/yaml.h"
#include "unit.h"

#define LENGTH(a)	((int)(sizeof(a) / sizeof((a)[0])))

static struct yaml *
read_text(const char *text)
{
	struct err err = {0};
	struct yaml *y = NULL;

	ck_assert_msg(yaml_read("f", text, strlen(text), &y, &err) == 0,
	    "'%s': %s", text, err.text);
	return y;
}

START_TEST(tree_knows_kinds_and_places)
{
	struct yaml *y = read_text("# one\na: 1\nb: [x, 'y']\n\nc:\n"
	    "    d: \"\"\n");
	const struct yaml *b = yaml_get(y, "b"), *c = yaml_get(y, "c");

	ck_assert_int_eq(y->kind, YAML_MAP);
	ck_assert_uint_eq(y->count, 3);
	ck_assert_str_eq(yaml_text(y, "a", "-"), "1");
	ck_assert_int_eq(y->keys[0]->line, 2);
	ck_assert_int_eq(b->kind, YAML_LIST);
	ck_assert_uint_eq(b->count, 2);
	ck_assert_str_eq(b->items[1]->text, "y");
	ck_assert(b->items[1]->quoted && !b->items[0]->quoted);
	ck_assert_int_eq(b->items[1]->line, 3);
	ck_assert_int_eq(b->items[1]->column, 8);
	ck_assert_int_eq(c->keys[0]->line, 6);
	ck_assert_int_eq(c->keys[0]->column, 5);
	ck_assert_str_eq(yaml_text(c, "d", "-"), "");
	ck_assert_str_eq(yaml_text(y, "b", "-"), "-");
	ck_assert_str_eq(yaml_text(y, "absent", "-"), "-");
	ck_assert_ptr_null(yaml_get(b, "x"));
	ck_assert_ptr_null(yaml_get(NULL, "x"));
	yaml_free(y);
	yaml_free(NULL);
}
END_TEST

static const char *const empty[] = { "", "\n\n", "# nothing\n", "---\n",
    "--- # nothing\n...\n" };

START_TEST(empty_text_is_an_empty_map)
{
	struct yaml *y = read_text(empty[_i]);

	ck_assert_int_eq(y->kind, YAML_MAP);
	ck_assert_uint_eq(y->count, 0);
	yaml_free(y);
}
END_TEST

static const struct {
	const char	*text;
	size_t		 len;		/* 0: to the NUL */
	const char	*want;		/* the text begins so */
} refused[] = {
	{ "a: 1\nb: 2\na: 3\n", 0, "f:3:1: 'a' is given twice" },
	{ "x:\n  a: 1\n  'a': 3\n", 0, "f:3:3: 'a' is given twice" },
	{ "a: 1\nb: *x\n", 0, "f:2:4: aliases are not supported" },
	{ "a: &x 1\n", 0, "f:1:4: anchors and tags are not supported" },
	{ "a: &x [1]\n", 0, "f:1:4: anchors and tags are not supported" },
	{ "a: &x {b: 1}\n", 0, "f:1:4: anchors and tags are not supported" },
	{ "a: !!int 1\n", 0, "f:1:4: anchors and tags are not supported" },
	{ "a: !mine [1]\n", 0, "f:1:4: anchors and tags are not supported" },
	{ "&x a: 1\n", 0, "f:1:1: anchors and tags are not supported" },
	{ "[a]: 1\n", 0, "f:1:1: a key must be a word" },
	{ "a: \"b\\0c\"\n", 0, "f:1:4: NUL in a value" },
	{ "\"a\\0\": c\n", 0, "f:1:1: NUL in a value" },
	{ "a: b\0c\n", 7, "f:" },
	{ "a: \xff\n", 0, "f:" },
	{ "a: [1, 2\nb: 3\n", 0, "f:2:" },
	{ "a: 1\n\tb: 2\n", 0, "f:2:" },
	{ "a: 1\n- b\n", 0, "f:2:1: " },
	{ "a: \"open\n", 0, "f:" },
	{ "a: 1\n---\nb: 2\n", 0, "f:2:1: only one document is read" },
	{ "a: 1\n...\n---\n", 0, "f:3:1: only one document is read" },
	{ "a: 1\n...\n]\n", 0, "f:3:" },
	{ "%YAML 9.9\n---\na: 1\n", 0, "f:1:" }
};

START_TEST(what_is_refused_has_a_place)
{
	size_t len = refused[_i].len ? refused[_i].len :
	    strlen(refused[_i].text);
	struct err err = {0};
	struct yaml *y = NULL;

	ck_assert_int_eq(yaml_read("f", refused[_i].text, len, &y, &err), -1);
	ck_assert_ptr_null(y);
	ck_assert_int_eq(err.code, ERR_FORMAT);
	ck_assert_msg(strncmp(err.text, refused[_i].want,
	    strlen(refused[_i].want)) == 0, "'%s': %s, wanted %s",
	    refused[_i].text, err.text, refused[_i].want);
	/* A place is always given: two numbers from 1 on. */
	ck_assert_msg(err.text[2] >= '1' && err.text[2] <= '9', "%s", err.text);
}
END_TEST

static int
read_deep(int depth, struct err *err)
{
	char text[4096];
	struct yaml *y = NULL;
	int rc;

	memset(text, '[', (size_t)depth);
	memset(text + depth, ']', (size_t)depth);
	rc = yaml_read("f", text, (size_t)depth * 2, &y, err);
	yaml_free(y);
	return rc;
}

START_TEST(depth_is_bounded)
{
	struct err err = {0};

	ck_assert_int_eq(read_deep(30, &err), 0);
	ck_assert_int_eq(read_deep(40, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "nested too deeply"));
	ck_assert_int_eq(read_deep(2000, &err), -1);
}
END_TEST

START_TEST(unknown_keys_are_named)
{
	static const char *const known[] = { "id", "reason", "match", NULL };
	struct yaml *y = read_text("id: a\n  \nraeson: b\n");
	struct err err = {0};

	ck_assert_int_eq(yaml_check_keys("f", y, known, &err), -1);
	ck_assert_str_eq(err.text,
	    "f:3:1: unknown key 'raeson', did you mean 'reason'?");
	yaml_free(y);
	y = read_text("quite-else: b\n");
	ck_assert_int_eq(yaml_check_keys("f", y, known, &err), -1);
	ck_assert_str_eq(err.text, "f:1:1: unknown key 'quite-else'");
	yaml_free(y);
	y = read_text("match: b\nid: c\n");
	ck_assert_int_eq(yaml_check_keys("f", y, known, &err), 0);
	yaml_free(y);
}
END_TEST

START_TEST(files_are_read)
{
	const char *dir = unit_dir(), *path = unit_path(dir, "conf");
	struct err err = {0};
	struct yaml *y = NULL;
	char want[5000];

	ck_assert_int_eq(yaml_read_file(path, &y, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, path));
	ck_assert_ptr_nonnull(strstr(err.text, "No such file"));
	unit_write(path, "a: 1\nb", 6);
	ck_assert_int_eq(yaml_read_file(path, &y, &err), -1);
	snprintf(want, sizeof(want), "%s:", path);
	ck_assert_int_eq(strncmp(err.text, want, strlen(want)), 0);
	unit_write(path, "", 0);
	ck_assert_int_eq(yaml_read_file(path, &y, &err), 0);
	ck_assert_int_eq(y->kind, YAML_MAP);
	yaml_free(y);
	ck_assert_int_eq(yaml_read_file(dir, &y, &err), -1);
}
END_TEST

/* Whatever the bytes are: a tree or an error with a place, no crash, no leak. */
START_TEST(random_bytes_do_no_harm)
{
	static const char *const parts[] = { "a", ":", " ", "\n", "- ", "[", "]",
	    "{", "}", ",", "'", "\"", "#", "|", ">", "&a", "*a", "!t", "%", "---",
	    "...", "?", "\t", "\\", "\xc3", "\xa9", "b: 1\n", "  ", "\r" };
	struct buf b = {0};
	struct yaml *y;
	struct err err;
	int round, n;

	for (round = 0; round < 20000; round++) {
		buf_clear(&b);
		for (n = (int)unit_random(24); n > 0; n--)
			ck_assert_int_eq(buf_puts(&b,
			    parts[unit_random(LENGTH(parts))]), 0);
		y = NULL;
		err = (struct err){0};
		if (yaml_read("f", b.data ? b.data : "", b.len, &y, &err) == 0)
			ck_assert_ptr_nonnull(y);
		else
			ck_assert_msg(strncmp(err.text, "f:", 2) == 0, "%s",
			    err.text);
		yaml_free(y);
	}
	buf_fini(&b);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_test(t, tree_knows_kinds_and_places);
	tcase_add_loop_test(t, empty_text_is_an_empty_map, 0, LENGTH(empty));
	tcase_add_loop_test(t, what_is_refused_has_a_place, 0, LENGTH(refused));
	tcase_add_test(t, depth_is_bounded);
	tcase_add_test(t, unknown_keys_are_named);
	tcase_add_test(t, files_are_read);
	tcase_add_test(t, random_bytes_do_no_harm);
}

int
main(void)
{
	return unit_run("common_yaml", add);
}
