/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_cache.c - the plan of site rules is found again, and only for
 * the rules it was made of.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "diagnose/event.h"
#include "diagnose/rule_cache.h"
#include "diagnose/rule_load.h"
#include "unit.h"

#define RULES	40

static char home[200], store[300], plan[600];

static void
write_rules(const char *word)
{
	struct buf b = {0};
	char path[400];
	struct err err;
	int i;

	for (i = 0; i < RULES; i++)
		ck_assert_int_eq(buf_printf(&b, "- id: site-%d\n  reason: "
		    "runtime_error\n  role: root\n  match: 'unit %d %s (?:lost|"
		    "gone)'\n", i, i, word), 0);
	snprintf(path, sizeof(path), "%s/site.yaml", store);
	ck_assert_int_eq(file_write_atomic(path, b.data, b.len, 0600, &err), 0);
	buf_fini(&b);
}

static void
setup(void)
{
	struct err err;

	snprintf(home, sizeof(home), "%s", unit_dir());
	snprintf(store, sizeof(store), "%s/rules", home);
	ck_assert_int_eq(file_mkdirs(store, 0700, &err), 0);
	setenv("XDG_CACHE_HOME", home, 1);
	write_rules("is");
}

static void
find_plan(void)
{
	char dir[300];
	struct dirent *e;
	DIR *d;

	snprintf(dir, sizeof(dir), "%s/holdfast", home);
	d = opendir(dir);
	ck_assert_ptr_nonnull(d);
	plan[0] = '\0';
	while ((e = readdir(d)) != NULL)
		if (strstr(e->d_name, ".plan") != NULL)
			snprintf(plan, sizeof(plan), "%s/%s", dir, e->d_name);
	closedir(d);
	ck_assert(plan[0] != '\0');
}

/* Loads and finds; what the rules say never depends on the cache. */
static void
load_and_match(void)
{
	const char *line = "unit 7 is gone";
	struct rule_set *set;
	struct rule *won;
	struct err err;
	int problems;

	ck_assert_int_eq(rule_load(store, NULL, NULL, &set, &problems, &err), 0);
	ck_assert_int_eq(problems, 0);
	won = rule_set_match_line(set, line, strlen(line), NULL, NULL);
	ck_assert_ptr_nonnull(won);
	ck_assert_str_eq(won->def.id, "site-7");
	rule_set_free(set);
}

/* Whether the file is taken for the rules as they stand. */
static bool
is_taken(void)
{
	struct rule_set *set;
	struct err err;
	bool yes;

	ck_assert_int_eq(rule_set_new(&set, &err), 0);
	ck_assert_int_eq(rule_set_add_builtin(set, &err), 0);
	ck_assert_int_eq(rule_read_dir(set, store, NULL, NULL, &err), 0);
	yes = rule_cache_load(set, store);
	rule_set_free(set);
	return yes;
}

START_TEST(plan_is_found_again)
{
	ck_assert(!is_taken());
	load_and_match();
	ck_assert(is_taken());
	load_and_match();
	write_rules("was");
	ck_assert(!is_taken());
	write_rules("is");
	ck_assert(is_taken());
}
END_TEST

START_TEST(foreign_plan_is_refused)
{
	load_and_match();
	find_plan();
	ck_assert_int_eq(chmod(plan, 0622), 0);
	ck_assert(!is_taken());
	ck_assert_int_eq(chmod(plan, 0600), 0);
	ck_assert(is_taken());
	if (geteuid() == 0) {
		ck_assert_int_eq(chown(plan, 12345, 12345), 0);
		ck_assert(!is_taken());
	}
	load_and_match();
}
END_TEST

START_TEST(rules_of_anyone_are_refused)
{
	struct rule_set *set;
	char path[400];
	struct err err;
	int problems;

	snprintf(path, sizeof(path), "%s/site.yaml", store);
	ck_assert_int_eq(chmod(path, 0602), 0);
	ck_assert_int_eq(rule_load(store, NULL, NULL, &set, &problems, &err), 0);
	ck_assert_int_eq(problems, 1);
	ck_assert_int_eq(rule_set_find(set, "site-7"), -1);
	rule_set_free(set);
	ck_assert_int_eq(chmod(path, 0600), 0);
	ck_assert_int_eq(chmod(store, 01777), 0);
	ck_assert_int_eq(rule_load(store, NULL, NULL, &set, NULL, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "anyone may write to it"));
	ck_assert_int_eq(chmod(store, 0770), 0);
	load_and_match();
}
END_TEST

/* Each byte may be wrong, the file may end anywhere. */
START_TEST(damaged_plan_is_refused)
{
	struct buf b = {0};
	struct err err;
	size_t i;

	load_and_match();
	find_plan();
	ck_assert_int_eq(file_read(plan, 1 << 20, &b, &err), 0);
	for (i = 0; i < b.len; i += 1 + b.len / 97) {
		b.data[i] ^= 0x41;
		ck_assert_int_eq(file_write_atomic(plan, b.data, b.len, 0600,
		    &err), 0);
		ck_assert_msg(!is_taken(), "byte %zu", i);
		b.data[i] ^= 0x41;
		ck_assert_int_eq(file_write_atomic(plan, b.data, i, 0600, &err),
		    0);
		ck_assert_msg(!is_taken(), "cut at %zu", i);
	}
	load_and_match();
	ck_assert(is_taken());
	buf_fini(&b);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, plan_is_found_again);
	tcase_add_test(t, foreign_plan_is_refused);
	tcase_add_test(t, rules_of_anyone_are_refused);
	tcase_add_test(t, damaged_plan_is_refused);
}

int
main(void)
{
	return unit_run("diagnose_cache", add);
}
