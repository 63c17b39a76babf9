/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_echo.c - what is found by an index is what a search finds: chains of
 * exceptions, and who has a process number, in cases made at random.
 */
#include <limits.h>
#include <string.h>

#include "diagnose/confirm.h"
#include "diagnose/echo.h"
#include "unit.h"

#define CAUSES	60
#define STREAMS	2

static const struct reason reasons[] = {
	{ .name = "key_error", .category = "script" },
	{ .name = "value_error", .category = "script" }
};
static const struct rule rules[] = {
	{ .def = { .id = "a", .source = SOURCE_RANK } },
	{ .def = { .id = "b", .source = SOURCE_RANK, .priority = 1 } },
	{ .def = { .id = "k", .source = SOURCE_KERNEL } }
};
static char passed_on[] = "KeyError: Caught KeyError in DataLoader worker process 0.";
static char plain[] = "KeyError: 'a' and enough text to be as long as the other line";

static struct stream streams[STREAMS] = {
	{ .data = plain, .len = sizeof(plain) - 1 },
	{ .data = passed_on, .len = sizeof(passed_on) - 1 }
};
static const struct feed feed = { .streams = streams, .count = STREAMS };
static uint32_t seed;

static unsigned
any(unsigned below)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % below;
}

/* By stream, as a case has them. */
static void
make_causes(struct cause *list)
{
	static const char nodes[][4] = { "", "n1", "n2" };
	size_t far = any(1000) + 1;	/* so that places in a table collide */
	size_t i;

	memset(list, 0, CAUSES * sizeof(*list));
	for (i = 0; i < CAUSES; i++) {
		struct cause *p = &list[i];

		p->event = (struct event){ .rule = &rules[any(3)],
		    .stream = i * STREAMS / CAUSES, .len = 40, .text = 0,
		    .key = any(2) * far * 3, .pid = (int)any(6) - 1,
		    .rank = any(3) > 0 ? -1 : (int)i, .rank_is_task = any(5) == 0 };
		memcpy(p->event.node, nodes[any(3)], sizeof(nodes[0]));
		p->reason = &reasons[any(2)];
		p->block.begin = any(4) * far;
		p->rank_class = any(4) == 0 ? CLASS_SYMPTOM + 1 : 6;
		p->time_ns = LINE_NO_TIME;
		p->order = INT_MAX;
		p->echo = any(12) == 0;
	}
}

static bool
is_pair(const struct cause *a, const struct cause *b)
{
	return a->event.rule != &rules[2] && b->event.rule != &rules[2] &&
	    a->event.stream == b->event.stream &&
	    a->block.begin == b->block.begin && a->event.key == b->event.key;
}

static bool
yields(const struct cause *a, const struct cause *b)
{
	bool symptom = a->rank_class >= CLASS_SYMPTOM;

	if (symptom != (b->rank_class >= CLASS_SYMPTOM))
		return symptom;
	return b->event.rule->def.priority > a->event.rule->def.priority ||
	    (a->reason == b->reason && a->event.stream == 1);
}

/* Each with all behind it. */
static void
fold_slowly(struct cause *list)
{
	size_t i, k;

	for (i = 0; i < CAUSES; i++)
		for (k = i + 1; k < CAUSES && !list[i].echo; k++) {
			struct cause *a = &list[i], *b = &list[k];

			if (b->echo || !is_pair(a, b))
				continue;
			if (yields(a, b))
				a->echo = true;
			else
				b->echo = true;
		}
}

START_TEST(chains)
{
	struct cause list[CAUSES], slow[CAUSES];
	struct case_file c = { .feed = &feed, .causes = list, .count = CAUSES };
	struct err err = {0};
	size_t i;

	seed = (uint32_t)_i + 1;
	make_causes(list);
	memcpy(slow, list, sizeof(list));
	fold_slowly(slow);
	ck_assert_int_eq(echo_mark(&c, &err), 0);
	for (i = 0; i < CAUSES; i++)
		ck_assert_msg(list[i].echo == slow[i].echo, "candidate %zu", i);
}
END_TEST

/* The first of all that has the number and a rank. */
static void
rank_slowly(struct cause *list, size_t at)
{
	struct cause *p = &list[at];
	size_t i;

	if (p->event.rank != -1 || p->event.pid <= 0 || p->event.rule == &rules[2])
		return;
	for (i = 0; i < CAUSES; i++)
		if (list[i].event.pid == p->event.pid && list[i].event.rank >= 0 &&
		    !list[i].event.rank_is_task && !echo_other_node(p, &list[i])) {
			p->event.rank = list[i].event.rank;
			return;
		}
}

START_TEST(owners)
{
	struct cause list[CAUSES], slow[CAUSES];
	struct case_file c = { .feed = &feed, .causes = list, .count = CAUSES };
	struct err err = {0};
	size_t i;

	seed = (uint32_t)_i + 1;
	make_causes(list);
	memcpy(slow, list, sizeof(list));
	for (i = 0; i < CAUSES; i++)
		rank_slowly(slow, i);
	ck_assert_int_eq(confirm_join(&c, &err), 0);
	for (i = 0; i < CAUSES; i++)
		ck_assert_msg(list[i].event.rank == slow[i].event.rank,
		    "candidate %zu: %d, not %d", i, list[i].event.rank,
		    slow[i].event.rank);
}
END_TEST

/* Nobody knows the rank of a number until a GPU's record learns it. */
START_TEST(learnt)
{
	static const struct reason cuda = { .name = "cuda_error" };
	struct cause list[4];
	struct case_file c = { .feed = &feed, .causes = list, .count = 4 };
	struct err err = {0};
	size_t i;

	memset(list, 0, sizeof(list));
	for (i = 0; i < 4; i++) {
		list[i].event = (struct event){ .rule = &rules[0], .len = 40,
		    .pid = 5, .rank = -1 };
		list[i].reason = &reasons[0];
		list[i].time_ns = LINE_NO_TIME;
	}
	list[1].event.rule = &rules[2];
	list[1].event.gpu[0] = '0';
	list[2].event.pid = -1;
	list[2].event.rank = 3;
	list[2].reason = &cuda;
	ck_assert_int_eq(confirm_join(&c, &err), 0);
	ck_assert_int_eq(list[0].event.rank, -1);
	ck_assert_int_eq(list[1].event.rank, 3);
	ck_assert_int_eq(list[3].event.rank, 3);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_loop_test(t, chains, 0, 50);
	tcase_add_loop_test(t, owners, 0, 50);
	tcase_add_test(t, learnt);
}

int
main(void)
{
	return unit_run("diagnose/echo", add);
}
