/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rule_read.c - rules and reasons from YAML (holdfast-rules(5)).
 *
 * A wrong rule costs that rule, a file that is no YAML costs that file; each
 * problem is told with its place and the rest is loaded.
 */
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/file.h"
#include "common/text.h"
#include "common/yaml.h"
#include "diagnose/rule.h"

#define FILE_SIZE_MAX	(16u << 20)

struct reading {
	struct rule_set	*set;
	const char	*name;		/* owned by the set */
	rule_problem_fn	 problem;
	void		*arg;
	int		 problems;
};

static const char *const rule_keys[] = {
	"id", "reason", "role", "source", "match", "unless", "hides", "cancels",
	"action",
	"examples", "counterexamples", "after", "within", "priority", "tail",
	"confidence", "advice", NULL
};

static const char *const reason_keys[] = {
	"reason", "category", "what", "action", "advice", "rung", NULL
};

static const char *const categories[] = {
	"infrastructure", "framework", "script", "external", "meta", NULL
};

static void
tell(struct reading *rd, const char *text)
{
	rd->problems++;
	if (rd->problem != NULL)
		rd->problem(text, rd->arg);
}

static void __attribute__((format(printf, 3, 4)))
tell_at(struct reading *rd, const struct yaml *y, const char *fmt, ...)
{
	struct err text = {0};
	char why[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	err_set(&text, ERR_FORMAT, "%s:%d:%d: %s", rd->name, y->line,
	    y->column, why);
	tell(rd, text.text);
}

/* A list of words as a NULL-terminated array owned by the set.  One scalar is
 * a list of one.  False after a problem. */
static bool
get_list(struct reading *rd, const struct yaml *map, const char *key,
    const char *const **out)
{
	const struct yaml *v = yaml_get(map, key);
	size_t i, n = v == NULL ? 0 : v->kind == YAML_SCALAR ? 1 : v->count;
	const char **list;

	*out = NULL;
	if (v == NULL)
		return true;
	if (v->kind == YAML_MAP) {
		tell_at(rd, v, "'%s' must be a list", key);
		return false;
	}
	list = calloc(n + 1, sizeof(*list));
	if (rule_set_own(rd->set, list, NULL) == -1)
		return false;
	for (i = 0; i < n; i++) {
		const struct yaml *item = v->kind == YAML_SCALAR ? v : v->items[i];

		if (item->kind != YAML_SCALAR) {
			tell_at(rd, item, "items of '%s' must be texts", key);
			return false;
		}
		list[i] = item->text;
	}
	*out = list;
	return true;
}

/* A scalar member; NULL when absent. *ok turns false after a problem. */
static const char *
get_text(struct reading *rd, const struct yaml *map, const char *key,
    bool *ok)
{
	const struct yaml *v = yaml_get(map, key);

	if (v == NULL)
		return NULL;
	if (v->kind == YAML_SCALAR && v->text[0] != '\0')
		return v->text;
	tell_at(rd, v, "'%s' must be a text", key);
	*ok = false;
	return NULL;
}

/* A word of a fixed set, through its find function. */
static int
get_word(struct reading *rd, const struct yaml *map, const char *key,
    int (*find)(const char *), int def, bool *ok)
{
	const char *text = get_text(rd, map, key, ok);
	int n;

	if (text == NULL)
		return def;
	if ((n = find(text)) == -1) {
		tell_at(rd, yaml_get(map, key), "'%s' is no %s", text, key);
		*ok = false;
	}
	return n;
}

static int
get_number(struct reading *rd, const struct yaml *map, const char *key,
    int least, int most, int def, bool *ok)
{
	const char *text = get_text(rd, map, key, ok);
	int64_t n;

	if (text == NULL)
		return def;
	if (text_parse_int(text, least, most, &n) == 0)
		return (int)n;
	tell_at(rd, yaml_get(map, key), "'%s' must be a number from %d to %d",
	    key, least, most);
	*ok = false;
	return def;
}

static bool
get_flag(struct reading *rd, const struct yaml *map, const char *key, bool *ok)
{
	const char *text = get_text(rd, map, key, ok);

	if (text == NULL || strcmp(text, "false") == 0)
		return false;
	if (strcmp(text, "true") == 0)
		return true;
	tell_at(rd, yaml_get(map, key), "'%s' must be true or false", key);
	*ok = false;
	return false;
}

static double
get_share(struct reading *rd, const struct yaml *map, const char *key,
    bool *ok)
{
	const char *text = get_text(rd, map, key, ok);
	char *end;
	double x;

	if (text == NULL)
		return 0;
	x = strtod(text, &end);
	if (end != text && *end == '\0' && x > 0 && x <= 1)
		return x;
	tell_at(rd, yaml_get(map, key), "'%s' must be above 0, at most 1", key);
	*ok = false;
	return 0;
}

/* A site rule may replace a shipped one; two of one store are a mistake.
 * Only rules that were read here have no literals yet. */
static bool
is_duplicate(struct reading *rd, const struct yaml *y, const char *id)
{
	int at = rule_set_find(rd->set, id);
	const struct rule_def *d;

	if (at == -1 || rd->set->rules[at].def.literals != NULL)
		return false;
	d = &rd->set->rules[at].def;
	tell_at(rd, y, "rule '%s' is there already (%s:%d)", id, d->file,
	    d->line);
	return true;
}

static void
read_rule(struct reading *rd, const struct yaml *y)
{
	struct rule_def d = { .file = rd->name };
	struct err err = {0};
	bool ok = true;

	if (yaml_check_keys(rd->name, y, rule_keys, &err) == -1) {
		tell(rd, err.text);
		return;
	}
	d.line = y->line;
	d.column = y->column;
	d.id = get_text(rd, y, "id", &ok);
	d.match = get_text(rd, y, "match", &ok);
	d.reason = get_text(rd, y, "reason", &ok);
	d.unless = get_text(rd, y, "unless", &ok);
	d.after = get_text(rd, y, "after", &ok);
	d.advice = get_text(rd, y, "advice", &ok);
	d.role = (enum rule_role)get_word(rd, y, "role", rule_role_find,
	    ROLE_ROOT, &ok);
	d.source = (enum rule_source)get_word(rd, y, "source",
	    rule_source_find, SOURCE_ANY, &ok);
	d.action = get_word(rd, y, "action", rule_action_find, -1, &ok);
	d.priority = get_number(rd, y, "priority", -100, 100, 0, &ok);
	d.tail = get_flag(rd, y, "tail", &ok);
	d.within = get_number(rd, y, "within", 1, 10000, 20, &ok);
	d.confidence = get_share(rd, y, "confidence", &ok);
	ok &= get_list(rd, y, "hides", &d.hides);
	ok &= get_list(rd, y, "cancels", &d.cancels);
	ok &= get_list(rd, y, "examples", &d.examples);
	ok &= get_list(rd, y, "counterexamples", &d.counterexamples);
	if (ok && (d.id == NULL || d.match == NULL)) {
		tell_at(rd, y, "a rule needs an id and a match");
		return;
	}
	if (ok && yaml_get(y, "role") == NULL) {
		tell_at(rd, y, "rule '%s' needs a role", d.id);
		return;
	}
	if (ok && is_duplicate(rd, y, d.id))
		return;
	if (ok && rule_set_add(rd->set, &d, &err) == -1)
		tell(rd, err.text);
}

static bool
is_category(const char *name)
{
	size_t i;

	for (i = 0; categories[i] != NULL; i++)
		if (name != NULL && strcmp(categories[i], name) == 0)
			return true;
	return false;
}

static void
read_reason(struct reading *rd, const struct yaml *y)
{
	struct err err = {0};
	struct reason r = {0};
	bool ok = true;

	if (yaml_check_keys(rd->name, y, reason_keys, &err) == -1) {
		tell(rd, err.text);
		return;
	}
	r.name = get_text(rd, y, "reason", &ok);
	r.category = get_text(rd, y, "category", &ok);
	r.what = get_text(rd, y, "what", &ok);
	r.advice = get_text(rd, y, "advice", &ok);
	r.action = (enum action_kind)get_word(rd, y, "action",
	    rule_action_find, ACTION_NONE, &ok);
	r.rung = get_number(rd, y, "rung", 1, 10, 0, &ok);
	if (!ok)
		return;
	if (r.name == NULL || r.what == NULL || r.advice == NULL ||
	    yaml_get(y, "action") == NULL || !is_category(r.category))
		tell_at(rd, y, "a reason needs reason, category (one of "
		    "infrastructure, framework, script, external, meta), what, "
		    "action and advice");
	else if (rule_set_add_reason(rd->set, &r, &err) == -1)
		tell(rd, err.text);
}

static int
keep_doc(struct rule_set *set, struct yaml *doc)
{
	size_t cap = set->doc_cap ? set->doc_cap * 2 : 8;
	struct yaml **p;

	if (set->doc_count == set->doc_cap) {
		if ((p = realloc(set->docs, cap * sizeof(*p))) == NULL)
			return -1;
		set->docs = p;
		set->doc_cap = cap;
	}
	set->docs[set->doc_count++] = doc;
	return 0;
}

int
rule_read_text(struct rule_set *set, const char *name, const char *text,
    size_t len, rule_problem_fn problem, void *arg)
{
	struct reading rd = { set, NULL, problem, arg, 0 };
	char *copy = strdup(name);
	struct err err = {0};
	struct yaml *doc;
	size_t i;

	if (rule_set_own(set, copy, &err) == -1) {
		tell(&rd, err.text);
		return rd.problems;
	}
	rd.name = copy;
	if (yaml_read(name, text, len, &doc, &err) == -1) {
		tell(&rd, err.text);
		return rd.problems;
	}
	if (keep_doc(set, doc) == -1) {
		yaml_free(doc);
		tell(&rd, "out of memory");
		return rd.problems;
	}
	if (doc->kind == YAML_MAP && doc->count == 0)
		return 0;
	if (doc->kind != YAML_LIST) {
		tell_at(&rd, doc, "a list of rules or reasons was expected");
		return rd.problems;
	}
	for (i = 0; i < doc->count; i++) {
		const struct yaml *y = doc->items[i];

		if (y->kind != YAML_MAP)
			tell_at(&rd, y, "a rule was expected");
		else if (yaml_get(y, "id") == NULL && yaml_get(y, "category"))
			read_reason(&rd, y);
		else
			read_rule(&rd, y);
	}
	return rd.problems;
}

int
rule_read_file(struct rule_set *set, const char *path, rule_problem_fn problem,
    void *arg)
{
	struct buf data = {0};
	struct err err = {0};
	int n = 1;

	if (file_read(path, FILE_SIZE_MAX, &data, &err) == -1) {
		if (problem != NULL)
			problem(err.text, arg);
	} else {
		n = rule_read_text(set, path, data.data ? data.data : "",
		    data.len, problem, arg);
	}
	buf_fini(&data);
	return n;
}

static int
is_yaml(const struct dirent *d)
{
	const char *dot = strrchr(d->d_name, '.');

	return d->d_name[0] != '.' && dot != NULL &&
	    (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

/* A rule of a stranger could say anything of any job. */
static int
check_owner(const char *path, struct err *err)
{
	struct stat st;

	if (stat(path, &st) == -1)
		return err_errno(err, "cannot read rules in %s", path);
	if (st.st_mode & S_IWOTH)
		return err_set(err, ERR_USAGE, "%s: anyone may write to it, so its "
		    "rules are not used (chmod o-w)", path);
	return 0;
}

static int
read_named(struct rule_set *set, const char *path, rule_problem_fn problem,
    void *arg)
{
	struct err err = {0};

	if (check_owner(path, &err) == 0)
		return rule_read_file(set, path, problem, arg);
	if (problem != NULL)
		problem(err.text, arg);
	return 1;
}

int
rule_read_dir(struct rule_set *set, const char *dir, rule_problem_fn problem,
    void *arg, struct err *err)
{
	struct dirent **names;
	int i, pass, n, problems = 0;

	if (check_owner(dir, err) == -1)
		return -1;
	if ((n = scandir(dir, &names, is_yaml, alphasort)) == -1)
		return err_errno(err, "cannot read rules in %s", dir);
	if (n == 0)
		err_set(err, ERR_FORMAT, "no *.yaml in %s", dir);
	/* Reasons first, so that rules can name them. */
	for (pass = 0; pass < 2; pass++) {
		for (i = 0; i < n; i++) {
			bool reasons = strcmp(names[i]->d_name, "reasons.yaml") == 0;
			char *path;

			if (reasons != (pass == 0))
				continue;
			path = file_join(dir, names[i]->d_name);
			if (path != NULL)
				problems += read_named(set, path, problem, arg);
			free(path);
		}
	}
	for (i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return n == 0 ? -1 : problems;
}
