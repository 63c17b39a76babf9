/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rule.c - holds rules and reasons, resolves their names, builds the scanner.
 */
#include <stdlib.h>
#include <string.h>

#include "common/yaml.h"
#include "diagnose/digits.h"
#include "diagnose/literal.h"
#include "diagnose/match.h"
#include "diagnose/rule.h"

static const char *const role_names[] = {
	"root", "either", "symptom", "teardown", "confirm", "context", "benign"
};
static const char *const source_names[] = {
	"any", "rank", "kernel", "launcher", "scheduler", "nccl"
};
static const char *const action_names[] = {
	"none", "stop", "restart", "restart_excluding_node", "rollback",
	"backoff_retry", "requeue", "test_nodes"
};

#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))

static int
find_name(const char *const *names, size_t count, const char *name)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return (int)i;
	return -1;
}

const char *
rule_role_name(enum rule_role r)
{
	return role_names[r];
}

int
rule_role_find(const char *name)
{
	return find_name(role_names, COUNT(role_names), name);
}

const char *
rule_source_name(enum rule_source s)
{
	return source_names[s];
}

int
rule_source_find(const char *name)
{
	return find_name(source_names, COUNT(source_names), name);
}

const char *
rule_action_name(enum action_kind k)
{
	return action_names[k];
}

int
rule_action_find(const char *name)
{
	return find_name(action_names, COUNT(action_names), name);
}

#define MARK_FILE	"built in"

/* The structure of logs that other rules may refer to with `after:`. */
static const struct rule_def marks[] = {
	{ .id = "traceback", .match = "Traceback \\(most recent call last\\)",
	  .role = ROLE_CONTEXT, .action = -1, .file = MARK_FILE },
	{ .id = "last-error", .match = "^Last error:", .role = ROLE_CONTEXT,
	  .action = -1, .file = MARK_FILE },
	{ .id = "elastic-root", .match = "^Root Cause \\(first observed failure\\)",
	  .role = ROLE_CONTEXT, .action = -1, .file = MARK_FILE },
};

bool
rule_is_mark(const struct rule_def *d)
{
	return strcmp(d->file, MARK_FILE) == 0;
}

int
rule_set_new(struct rule_set **out, struct err *err)
{
	struct rule_set *set = calloc(1, sizeof(*set));
	size_t i;

	if (set == NULL)
		return err_memory(err);
	for (i = 0; i < COUNT(marks); i++)
		if (rule_set_add(set, &marks[i], err) == -1) {
			rule_set_free(set);
			return -1;
		}
	*out = set;
	return 0;
}

static void
rule_fini(struct rule *r)
{
	match_free(r->match);
	match_free(r->unless);
}

static void
drop_scanners(struct rule_set *set)
{
	int i;

	for (i = 0; i < 4; i++)
		scan_free(set->scanners[i]);
	memset(set->scanners, 0, sizeof(set->scanners));
	free(set->literal_rule);
	free(set->literals);
	set->literal_rule = NULL;
	set->literals = NULL;
}

void
rule_set_free(struct rule_set *set)
{
	size_t i;

	if (set == NULL)
		return;
	for (i = 0; i < set->count; i++)
		rule_fini(&set->rules[i]);
	for (i = 0; i < set->owned_count; i++)
		free(set->owned[i]);
	for (i = 0; i < set->doc_count; i++)
		yaml_free(set->docs[i]);
	drop_scanners(set);
	scan_sample_free(set->sample);
	free(set->by_id);
	free(set->rules);
	free(set->reasons);
	free(set->owned);
	free(set->docs);
	free(set);
}

/* Room for so many items in an array of items of this size. */
static int
reserve(void *array, size_t count, size_t *cap, size_t size, struct err *err)
{
	void **a = array, *p;

	if (count <= *cap)
		return 0;
	if ((p = realloc(*a, count * size)) == NULL)
		return err_memory(err);
	*a = p;
	*cap = count;
	return 0;
}

/* Room for one more item behind count. */
static int
grow(void *array, size_t count, size_t *cap, size_t size, struct err *err)
{
	return count < *cap ? 0 :
	    reserve(array, *cap ? *cap * 2 : 64, cap, size, err);
}

int
rule_set_own(struct rule_set *set, void *memory, struct err *err)
{
	if (memory == NULL)
		return err_memory(err);
	if (grow(&set->owned, set->owned_count, &set->owned_cap,
	    sizeof(*set->owned), err) == -1) {
		free(memory);
		return -1;
	}
	set->owned[set->owned_count++] = memory;
	return 0;
}

/* The slot of an id in the table, or the empty one where it belongs. */
static uint32_t *
id_slot(const struct rule_set *set, const char *id)
{
	uint32_t h = 2166136261u;	/* FNV-1a */
	const char *p;

	for (p = id; *p != '\0'; p++)
		h = (h ^ (unsigned char)*p) * 16777619u;
	for (;; h++) {
		uint32_t *s = &set->by_id[h & (set->by_id_size - 1)];

		if (*s == 0 || strcmp(set->rules[*s - 1].def.id, id) == 0)
			return s;
	}
}

/* Makes the table anew, with room for `count` rules. */
static int
index_ids(struct rule_set *set, size_t count, struct err *err)
{
	size_t size = 64, i;

	while (size < 4 * count)
		size *= 2;
	free(set->by_id);
	set->by_id = calloc(size, sizeof(*set->by_id));
	if (set->by_id == NULL) {
		set->by_id_size = 0;
		return err_memory(err);
	}
	set->by_id_size = size;
	for (i = 0; i < set->count; i++)
		*id_slot(set, set->rules[i].def.id) = (uint32_t)i + 1;
	return 0;
}

int
rule_set_find(const struct rule_set *set, const char *id)
{
	return set->by_id_size == 0 ? -1 : (int)*id_slot(set, id) - 1;
}

const struct reason *
rule_set_reason(const struct rule_set *set, const char *name)
{
	size_t i;

	for (i = 0; i < set->reason_count; i++)
		if (strcmp(set->reasons[i].name, name) == 0)
			return &set->reasons[i];
	return NULL;
}

int
rule_set_add(struct rule_set *set, const struct rule_def *def,
    struct err *err)
{
	int at;

	if (2 * (set->count + 1) > set->by_id_size &&
	    index_ids(set, set->count + 1, err) == -1)
		return -1;
	at = rule_set_find(set, def->id);
	if (at == -1) {
		if (grow(&set->rules, set->count, &set->cap,
		    sizeof(*set->rules), err) == -1)
			return -1;
		at = (int)set->count++;
		set->rules[at] = (struct rule){ .def = *def, .after = -1 };
		*id_slot(set, def->id) = (uint32_t)at + 1;
		return 0;
	}
	rule_fini(&set->rules[at]);
	set->rules[at] = (struct rule){ .def = *def, .after = -1 };
	return 0;
}

int
rule_set_add_reason(struct rule_set *set, const struct reason *r,
    struct err *err)
{
	size_t i;

	for (i = 0; i < set->reason_count; i++)
		if (strcmp(set->reasons[i].name, r->name) == 0) {
			set->reasons[i] = *r;
			return 0;
		}
	if (grow(&set->reasons, set->reason_count, &set->reason_cap,
	    sizeof(*set->reasons), err) == -1)
		return -1;
	set->reasons[set->reason_count++] = *r;
	return 0;
}

int
rule_set_add_builtin(struct rule_set *set, struct err *err)
{
	size_t i;

	if (reserve(&set->rules, set->count + rule_builtin_count, &set->cap,
	    sizeof(*set->rules), err) == -1)
		return -1;
	for (i = 0; i < reason_builtin_count; i++)
		if (rule_set_add_reason(set, &reason_builtin[i], err) == -1)
			return -1;
	/* Ids of the table are unique (mkrules checks), so no search is needed
	 * but for the marks, which stand first in both. */
	for (i = 0; i < rule_builtin_count; i++) {
		if (i < set->count &&
		    strcmp(set->rules[i].def.id, rule_builtin[i].id) == 0) {
			set->rules[i].def = rule_builtin[i];
			continue;
		}
		set->rules[set->count++] =
		    (struct rule){ .def = rule_builtin[i], .after = -1 };
	}
	return index_ids(set, set->count, err);
}

static void
report(rule_problem_fn problem, void *arg, struct rule *r, const char *what,
    const char *name)
{
	struct err text = {0};

	r->broken = true;
	if (problem == NULL)
		return;
	err_set(&text, ERR_FORMAT, "%s:%d:%d: rule '%s': %s%s%s%s", r->def.file,
	    r->def.line, r->def.column, r->def.id, what, name ? " '" : "",
	    name ? name : "", name ? "'" : "");
	problem(text.text, arg);
}

/* Literals of a rule that was not prepared by mkrules. */
static int
extract(struct rule_set *set, struct rule *r, rule_problem_fn problem,
    void *arg, struct err *err)
{
	struct literal_set lits;
	struct scan_literal *list;
	struct err why = {0};
	size_t i;

	if (set->sample == NULL && scan_sample_new(sample_builtin,
	    sample_builtin_len, &set->sample, err) == -1)
		return -1;
	if (literal_extract(r->def.match, set->sample, &lits, &why) == -1) {
		report(problem, arg, r, why.text, NULL);
		return 0;
	}
	list = calloc(lits.count + 1, sizeof(*list));
	if (rule_set_own(set, list, err) == -1)
		goto fail;
	for (i = 0; i < lits.count; i++) {
		list[i] = (struct scan_literal){ .text = lits.texts[i],
		    .len = (uint8_t)strlen(lits.texts[i]), .fold = lits.fold };
		lits.texts[i] = NULL;
		if (rule_set_own(set, (void *)(uintptr_t)list[i].text,
		    err) == -1)
			goto fail;
	}
	r->def.literals = list;
	r->def.blind = digits_are_alike(r->def.match) &&
	    (r->def.unless == NULL || digits_are_alike(r->def.unless));
	literal_fini(&lits);
	return 0;
fail:
	literal_fini(&lits);
	return -1;
}

/* What mkrules resolved stands, unless a site store moved it. */
static bool
is_resolved(const struct rule_set *set, const struct rule *r)
{
	return r->def.prepared && r->def.after == NULL &&
	    r->def.reason != NULL &&
	    (size_t)r->def.reason_row < set->reason_count &&
	    strcmp(set->reasons[r->def.reason_row].name, r->def.reason) == 0;
}

static int
resolve(struct rule_set *set, struct rule *r, rule_problem_fn problem,
    void *arg, struct err *err)
{
	bool needs = r->def.role != ROLE_TEARDOWN &&
	    r->def.role != ROLE_CONTEXT && r->def.role != ROLE_BENIGN;
	size_t i;

	r->reason = NULL;
	if (is_resolved(set, r)) {
		r->reason = &set->reasons[r->def.reason_row];
		return 0;
	}
	if (r->def.reason != NULL) {
		r->reason = rule_set_reason(set, r->def.reason);
		if (r->reason == NULL)
			report(problem, arg, r, "unknown reason", r->def.reason);
	} else if (needs) {
		report(problem, arg, r, "needs a reason", NULL);
	}
	for (i = 0; r->def.hides != NULL && r->def.hides[i] != NULL; i++)
		if (rule_set_reason(set, r->def.hides[i]) == NULL)
			report(problem, arg, r, "hides an unknown reason",
			    r->def.hides[i]);
	for (i = 0; r->def.cancels != NULL && r->def.cancels[i] != NULL; i++)
		if (rule_set_find(set, r->def.cancels[i]) == -1)
			report(problem, arg, r, "cancels an unknown rule",
			    r->def.cancels[i]);
	r->after = -1;
	if (r->def.after != NULL) {
		r->after = rule_set_find(set, r->def.after);
		if (r->after == -1)
			report(problem, arg, r, "is after an unknown rule",
			    r->def.after);
	}
	if (r->def.literals == NULL)
		return extract(set, r, problem, arg, err);
	return 0;
}

enum rule_group
rule_group(const struct rule *r)
{
	if (r->def.role == ROLE_BENIGN && r->def.cancels == NULL)
		return RULES_QUIET;
	return r->def.tail ? RULES_TAIL : RULES_LOUD;
}

size_t
rule_literal_count(const struct rule_def *d)
{
	size_t n = 0;

	while (d->literals != NULL && d->literals[n].text != NULL)
		n++;
	return n;
}

/* Each group lists its rules in their order. */
const struct scan_literal *
rule_set_planned(const struct rule_set *set, size_t rule)
{
	enum rule_group g = rule_group(&set->rules[rule]);
	size_t from = g > 0 ? set->literal_end[g - 1] : 0, mid;
	size_t to = set->literal_end[g], end = to;

	while (from < to) {
		mid = from + (to - from) / 2;
		if (set->literal_rule[mid] < rule)
			from = mid + 1;
		else
			to = mid;
	}
	return from < end && set->literal_rule[from] == rule ?
	    &set->literals[from] : NULL;
}

/* Appends the literals of a group of rules. */
static size_t
list_literals(struct rule_set *set, enum rule_group group, size_t n)
{
	const struct scan_literal *l;
	size_t i;

	for (i = 0; i < set->count; i++) {
		const struct rule *r = &set->rules[i];

		if (r->broken || rule_group(r) != group)
			continue;
		for (l = r->def.literals; l != NULL && l->text != NULL; l++) {
			set->literals[n] = *l;
			set->literal_rule[n++] = (uint32_t)i;
		}
	}
	return n;
}

/* Only what no build-time program has planned is planned now.  The groups have
 * fragments of their own: those of tail and quiet rules may be common. */
static int
plan_literals(struct rule_set *set, struct err *err)
{
	size_t i, g, from = 0;
	bool planned = true;

	for (i = 0; i < set->literal_end[RULES_QUIET]; i++)
		planned &= set->literals[i].planned;
	if (planned)
		return 0;
	for (g = 0; g < 3; from = set->literal_end[g++])
		if (scan_plan(set->literals + from, set->literal_end[g] - from,
		    set->sample, set->plan_passes, err) == -1)
			return -1;
	return 0;
}

static int
make_scanner(struct rule_set *set, enum rule_scanner which, struct err *err)
{
	static const enum rule_group last[] = {
		[SCANNER_LOUD] = RULES_LOUD, [SCANNER_TAIL] = RULES_TAIL,
		[SCANNER_QUIET] = RULES_QUIET, [SCANNER_ALL] = RULES_QUIET
	};
	size_t from = which == SCANNER_QUIET ? rule_set_quiet_base(set) : 0;

	return scan_new(set->literals + from, set->literal_end[last[which]] -
	    from, &set->scanners[which], err);
}

/* The one that every log needs, for its end, tells whether the literals fit. */
static int
build_scanner(struct rule_set *set, struct err *err)
{
	size_t i, n = 0;
	int g;

	for (i = 0; i < set->count; i++)
		n += rule_literal_count(&set->rules[i].def);
	drop_scanners(set);
	set->literals = calloc(n + 1, sizeof(*set->literals));
	set->literal_rule = calloc(n + 1, sizeof(*set->literal_rule));
	if (set->literals == NULL || set->literal_rule == NULL)
		return err_memory(err);
	for (n = 0, g = 0; g < 3; g++)
		set->literal_end[g] = n =
		    list_literals(set, (enum rule_group)g, n);
	if (plan_literals(set, err) == -1)
		return -1;
	return make_scanner(set, SCANNER_TAIL, err);
}

uint32_t
rule_set_quiet_base(const struct rule_set *set)
{
	return (uint32_t)set->literal_end[RULES_TAIL];
}

const struct scanner *
rule_set_scanner(struct rule_set *set, enum rule_scanner which)
{
	if (set->scanners[which] == NULL)
		(void)make_scanner(set, which, NULL);
	return set->scanners[which];
}

int
rule_set_finish(struct rule_set *set, rule_problem_fn problem, void *arg,
    struct err *err)
{
	size_t i;

	for (i = 0; i < set->count; i++)
		if (resolve(set, &set->rules[i], problem, arg, err) == -1)
			return -1;
	return build_scanner(set, err);
}
