/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rule_load.c - loads rule sets: the shipped one, a site's, or both.
 */
#include <stdlib.h>
#include <unistd.h>

#include "common/file.h"
#include "diagnose/rule_cache.h"
#include "diagnose/rule_load.h"

struct counter {
	rule_problem_fn	 problem;
	void		*arg;
	int		 count;
};

static void
count_problem(const char *text, void *arg)
{
	struct counter *c = arg;

	c->count++;
	if (c->problem != NULL)
		c->problem(text, c->arg);
}

static bool
is_store(const char *dir)
{
	char *path = file_join(dir, "reasons.yaml");
	bool yes = path != NULL && access(path, F_OK) == 0;

	free(path);
	return yes;
}

int
rule_load(const char *dir, rule_problem_fn problem, void *arg,
    struct rule_set **out, int *problems, struct err *err)
{
	struct counter count = { problem, arg, 0 };
	struct rule_set *set;
	bool cached;

	if (rule_set_new(&set, err) == -1)
		return -1;
	if (dir == NULL || !is_store(dir))
		if (rule_set_add_builtin(set, err) == -1)
			goto fail;
	if (dir != NULL &&
	    rule_read_dir(set, dir, count_problem, &count, err) == -1)
		goto fail;
	cached = dir != NULL && rule_cache_load(set, dir);
	if (rule_set_finish(set, count_problem, &count, err) == -1)
		goto fail;
	if (dir != NULL && !cached)
		rule_cache_store(set, dir);
	if (problems != NULL)
		*problems = count.count;
	*out = set;
	return 0;
fail:
	rule_set_free(set);
	return -1;
}
