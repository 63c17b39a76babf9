/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_pickle.c - the pickle reader: opcodes of all protocols, and bombs.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "checkpoint/pickle.h"
#include "checkpoint/torch.h"
#include "unit.h"

static struct pickle p;

static enum pickle_result
load(const char *bytes, size_t len)
{
	pickle_free(&p);
	return pickle_read(&p, bytes, len, NULL);
}

#define LOAD(text)	load(text, sizeof(text) - 1)

static void
set_up(void)
{
	memset(&p, 0, sizeof(p));
}

static void
tear_down(void)
{
	pickle_free(&p);
}

START_TEST(numbers)
{
	ck_assert_int_eq(LOAD("I42\n."), PICKLE_OK);
	ck_assert_int_eq(p.root.i, 42);
	ck_assert_int_eq(LOAD("I01\n."), PICKLE_OK);
	ck_assert_int_eq(p.root.kind, PICKLE_BOOL);
	ck_assert_int_eq(LOAD("L-7L\n."), PICKLE_OK);
	ck_assert_int_eq(p.root.i, -7);
	ck_assert_int_eq(LOAD("\x80\2J\xff\xff\xff\xff."), PICKLE_OK);
	ck_assert_int_eq(p.root.i, -1);
	ck_assert_int_eq(LOAD("\x80\2\x8a\2\0\xff."), PICKLE_OK);
	ck_assert_int_eq(p.root.i, -256);
	ck_assert_int_eq(LOAD("\x80\2\x8a\0."), PICKLE_OK);
	ck_assert_int_eq(p.root.i, 0);
	ck_assert_int_eq(LOAD("\x80\2\x8a\x09" "123456789."), PICKLE_OK);
	ck_assert_int_eq(p.root.kind, PICKLE_BIG);
	ck_assert_int_eq(LOAD("G\x3f\xf8\0\0\0\0\0\0."), PICKLE_OK);
	ck_assert(p.root.f == 1.5);
	ck_assert_int_eq(LOAD("F2.5\n."), PICKLE_OK);
	ck_assert(p.root.f == 2.5);
}
END_TEST

START_TEST(containers)
{
	const struct pickle_value *v;

	/* {'a': [1, 2], 'b': (True, None)} in protocol 4 with frames and memo */
	ck_assert_int_eq(LOAD("\x80\4\x95\x16\0\0\0\0\0\0\0}\x94(\x8c\1a\x94]"
	    "\x94(K\1K\2e\x8c\1b\x94\x88N\x86\x94u."), PICKLE_OK);
	v = pickle_get(&p.root, "a");
	ck_assert_ptr_nonnull(v);
	ck_assert_int_eq(v->kind, PICKLE_LIST);
	ck_assert_uint_eq(v->node->n, 2);
	ck_assert_int_eq(v->node->items[1].i, 2);
	v = pickle_get(&p.root, "b");
	ck_assert_int_eq(v->kind, PICKLE_TUPLE);
	ck_assert_int_eq(v->node->items[0].i, 1);
	ck_assert_ptr_null(pickle_get(&p.root, "c"));
	/* a later value of a key wins */
	ck_assert_int_eq(LOAD("}(\x8c\1aK\1\x8c\1aK\2u."), PICKLE_OK);
	ck_assert_int_eq(pickle_get(&p.root, "a")->i, 2);
	/* protocol 0: (dp0\nS'x'\nI1\ns. */
	ck_assert_int_eq(LOAD("(dp0\nVx\np1\nI1\ns."), PICKLE_OK);
	ck_assert_int_eq(pickle_get(&p.root, "x")->i, 1);
	/* a list that holds itself */
	ck_assert_int_eq(LOAD("]\x94h\0a."), PICKLE_OK);
	ck_assert_ptr_eq(p.root.node->items[0].node, p.root.node);
}
END_TEST

START_TEST(objects_are_not_made)
{
	ck_assert_int_eq(LOAD("cos\nsystem\n(X\4\0\0\0exittR."), PICKLE_OK);
	ck_assert_int_eq(p.root.kind, PICKLE_OBJECT);
	ck_assert(pickle_is_global(&p.root.node->object->callable, "os",
	    "system"));
	ck_assert_int_eq(LOAD("\x80\4\x8c\1m\x8c\1n\x93)\x81}\x8c\1kK\3sb."),
	    PICKLE_OK);
	ck_assert_int_eq(pickle_get(&p.root.node->object->state, "k")->i, 3);
	ck_assert_int_eq(LOAD("(im\nn\n."), PICKLE_OK);
	ck_assert_int_eq(p.root.kind, PICKLE_OBJECT);
	ck_assert_int_eq(LOAD("(cm\nn\nK\1o."), PICKLE_OK);
	ck_assert_uint_eq(p.root.node->object->args.node->n, 1);
}
END_TEST

START_TEST(malformed)
{
	ck_assert_int_eq(LOAD(""), PICKLE_TRUNCATED);
	ck_assert_int_eq(LOAD("."), PICKLE_MALFORMED);
	ck_assert_int_eq(LOAD("K"), PICKLE_TRUNCATED);
	ck_assert_int_eq(LOAD("K\1"), PICKLE_TRUNCATED);
	ck_assert_int_eq(LOAD("X\xff\xff\xff\xffhi."), PICKLE_TRUNCATED);
	ck_assert_int_eq(LOAD("\x8d\xff\xff\xff\xff\xff\xff\xff\xffhi."),
	    PICKLE_TRUNCATED);
	ck_assert_int_eq(LOAD("R."), PICKLE_MALFORMED);
	ck_assert_int_eq(LOAD("t."), PICKLE_MALFORMED);
	ck_assert_int_eq(LOAD("e."), PICKLE_MALFORMED);
	ck_assert_int_eq(LOAD("(."), PICKLE_MALFORMED);
	ck_assert_int_eq(LOAD("(\x85."), PICKLE_MALFORMED);
	ck_assert_int_eq(LOAD("}(K\1u."), PICKLE_MALFORMED);
	ck_assert_int_eq(LOAD("K\1K\2K\3s."), PICKLE_MALFORMED);
	ck_assert_int_eq(LOAD("h\5."), PICKLE_MALFORMED);
	ck_assert_int_eq(LOAD("N\x93."), PICKLE_MALFORMED);
	ck_assert_int_eq(LOAD("K\1K\2b."), PICKLE_MALFORMED);
	ck_assert_int_eq(LOAD("\xff."), PICKLE_MALFORMED);
	ck_assert_int_eq(LOAD("\x82\1."), PICKLE_UNSUPPORTED);
	ck_assert_int_eq(LOAD("\x80\6N."), PICKLE_UNSUPPORTED);
}
END_TEST

/* n times `text`, behind `before` and in front of `after`. */
static enum pickle_result
load_many(const char *before, const char *text, size_t n, const char *after)
{
	struct buf b = {0};
	enum pickle_result rc;
	size_t i;

	ck_assert_int_eq(buf_puts(&b, before), 0);
	/* an assertion writes to a file each time: not a million of them */
	for (i = 0; i < n; i++)
		if (buf_puts(&b, text) == -1)
			ck_abort_msg("out of memory");
	ck_assert_int_eq(buf_puts(&b, after), 0);
	pickle_free(&p);
	rc = pickle_read(&p, b.data, b.len, NULL);
	ck_assert_uint_le(p.memory, PICKLE_MEMORY_MAX);
	buf_fini(&b);
	return rc;
}

START_TEST(bombs)
{
	struct torch_model m;
	struct report r;

	/* deep nesting: ((((... is read, and walked without deep recursion */
	report_init(&r);
	ck_assert_int_eq(load_many("N", "\x85", 200000, "."), PICKLE_OK);
	ck_assert_int_eq(torch_collect(&m, &p, &r), 0);
	torch_free(&m);
	report_fini(&r);
	/* marks, nodes and stack without end */
	ck_assert_int_eq(load_many("", "(", 4000000, "."), PICKLE_LIMIT);
	ck_assert_int_eq(load_many("", "]", 4000000, "."), PICKLE_LIMIT);
	ck_assert_int_eq(load_many("", "N", 4000000, "."), PICKLE_LIMIT);
	/* a huge memo index, and a list grown through the memo */
	ck_assert_int_eq(LOAD("Nr\xff\xff\xff\x7f."), PICKLE_LIMIT);
	ck_assert_int_eq(load_many("]q", "", 0, ""), PICKLE_TRUNCATED);
	ck_assert_int_eq(load_many("]\x94", "(hN", 0, "N."), PICKLE_OK);
	/* persistent ids without end */
	ck_assert_int_eq(load_many("", "NQ0", 2000000, "N."), PICKLE_LIMIT);
}
END_TEST

START_TEST(long_lists_of_numbers)
{
	ck_assert_int_eq(load_many("](", "K\1", 500000, "e."), PICKLE_OK);
	ck_assert_uint_eq(p.root.node->n, PICKLE_LIST_NUMBERS_MAX);
}
END_TEST

START_TEST(steps)
{
	ck_assert_int_eq(LOAD("}(X\4\0\0\0stepK\7X\5\0\0\0epochK\1u."),
	    PICKLE_OK);
	ck_assert_int_eq(torch_step(&p.root), 7);
	ck_assert_int_eq(LOAD("}X\x9\0\0\0iterationK\x8s."), PICKLE_OK);
	ck_assert_int_eq(torch_step(&p.root), 8);
	ck_assert_int_eq(LOAD("}X\5\0\0\0epochK\1s."), PICKLE_OK);
	ck_assert_int_eq(torch_step(&p.root), REPORT_UNKNOWN);
	ck_assert_int_eq(LOAD("}X\4\0\0\0stepJ\xff\xff\xff\xffs."), PICKLE_OK);
	ck_assert_int_eq(torch_step(&p.root), REPORT_UNKNOWN);
	ck_assert_int_eq(LOAD("K\1."), PICKLE_OK);
	ck_assert_int_eq(torch_step(&p.root), REPORT_UNKNOWN);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, numbers);
	tcase_add_test(t, containers);
	tcase_add_test(t, objects_are_not_made);
	tcase_add_test(t, malformed);
	tcase_add_test(t, bombs);
	tcase_add_test(t, long_lists_of_numbers);
	tcase_add_test(t, steps);
}

int
main(void)
{
	return unit_run("checkpoint_pickle", add_tests);
}
