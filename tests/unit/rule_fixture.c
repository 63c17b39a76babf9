/* SPDX-License-Identifier: Apache-2.0 */
/* rule_fixture.c - makes the sets of rules that several tests use. */
#include <check.h>
#include <string.h>

#include "rule_fixture.h"

static struct rule_set *
new_set(void)
{
	struct rule_set *set = NULL;
	struct err err = {0};

	ck_assert_int_eq(rule_set_new(&set, &err), 0);
	return set;
}

static struct rule_set *
finish(struct rule_set *set)
{
	struct err err = {0};

	ck_assert_int_eq(rule_set_finish(set, NULL, NULL, &err), 0);
	return set;
}

struct rule_set *
rule_fixture_of(const char *name, const char *yaml)
{
	struct rule_set *set = new_set();

	ck_assert_int_eq(rule_read_text(set, name, yaml, strlen(yaml), NULL,
	    NULL), 0);
	return finish(set);
}

struct rule_set *
rule_fixture_shipped(void)
{
	struct rule_set *set = new_set();
	struct err err = {0};

	ck_assert_int_eq(rule_set_add_builtin(set, &err), 0);
	return finish(set);
}
