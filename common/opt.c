/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opt.c - reads options by their table: command line, configuration keys and
 * environment end in opt_set().
 */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/opt.h"
#include "common/text.h"

static const struct opt *
find_name(const struct opt *table, const char *name, size_t len)
{
	const struct opt *o;

	for (o = table; o->name != NULL; o++)
		if (strlen(o->name) == len && memcmp(o->name, name, len) == 0)
			return o;
	return NULL;
}

static int
unknown(const struct opt *table, const char *name, bool key, struct err *err)
{
	struct text_nearest near = {0};
	const struct opt *o;

	for (o = table; o->name != NULL; o++)
		if (!key || !o->cli_only)
			text_nearest_try(&near, name, o->name);
	if (near.best == NULL)
		return err_set(err, ERR_USAGE, "unknown option '--%s'", name);
	return err_set(err, ERR_USAGE,
	    "unknown option '--%s', did you mean '--%s'?", name, near.best);
}

static int
check_choice(const struct opt *o, const char *text, struct err *err)
{
	const char *p = o->choices;
	size_t n;

	for (; *p != '\0'; p += n + (p[n] != '\0')) {
		n = strcspn(p, " ");
		if (strlen(text) == n && memcmp(p, text, n) == 0)
			return 0;
	}
	return err_set(err, ERR_USAGE, "--%s takes one of: %s (not '%s')",
	    o->name, o->choices, text);
}

static int
store(const struct opt *o, void *values, const char *text, struct err *err)
{
	void *field = (char *)values + o->offset;
	long long most = o->least == 0 && o->most == 0 ? INT32_MAX : o->most;

	switch (o->type) {
	case OPT_FLAG:
		if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
			return err_set(err, ERR_USAGE,
			    "--%s takes true or false (not '%s')", o->name,
			    text);
		*(bool *)field = text[0] == 't';
		return 0;
	case OPT_CHOICE:
		if (check_choice(o, text, err) == -1)
			return -1;
		/* FALLTHROUGH */
	case OPT_TEXT:
		*(const char **)field = text;
		return 0;
	case OPT_INT:
		if (text_parse_int(text, o->least, most, field) == -1)
			return err_set(err, ERR_USAGE,
			    "--%s takes a number from %lld to %lld (not '%s')",
			    o->name, o->least, most, text);
		return 0;
	case OPT_DURATION:
		if (text_parse_duration(text, field) == -1)
			return err_set(err, ERR_USAGE,
			    "--%s takes a time such as 30s, 5m, 24h (not '%s')",
			    o->name, text);
		return 0;
	case OPT_SIZE:
		if (text_parse_size(text, field) == -1)
			return err_set(err, ERR_USAGE,
			    "--%s takes a size such as 512M, 4G (not '%s')",
			    o->name, text);
		return 0;
	}
	return err_set(err, ERR_USAGE, "--%s has no type", o->name);
}

int
opt_defaults(const struct opt *table, void *values, struct err *err)
{
	const struct opt *o;

	for (o = table; o->name != NULL; o++)
		if (o->def != NULL && store(o, values, o->def, err) == -1)
			return -1;
	return 0;
}

int
opt_set(const struct opt *table, void *values, const char *name,
    const char *text, struct err *err)
{
	const struct opt *o = find_name(table, name, strlen(name));

	if (o == NULL)
		return unknown(table, name, true, err);
	if (o->cli_only)
		return err_set(err, ERR_USAGE,
		    "'%s' can be given on the command line only", name);
	return store(o, values, text, err);
}

static int
parse_long(const struct opt *table, void *values, const char *word,
    const char *next, int *used, struct err *err)
{
	size_t len = strcspn(word, "=");
	const char *value = word[len] == '=' ? word + len + 1 : NULL;
	const struct opt *o = find_name(table, word, len);
	char name[80];

	*used = 1;
	if (o == NULL && value == NULL && strncmp(word, "no-", 3) == 0) {
		o = find_name(table, word + 3, len - 3);
		if (o != NULL && o->type == OPT_FLAG)
			return store(o, values, "false", err);
		o = NULL;
	}
	if (o == NULL) {
		snprintf(name, sizeof(name), "%.*s", (int)len, word);
		return unknown(table, name, false, err);
	}
	if (o->type == OPT_FLAG)
		return store(o, values, value ? value : "true", err);
	if (value == NULL) {
		if (next == NULL)
			return err_set(err, ERR_USAGE, "--%s needs a value",
			    o->name);
		value = next;
		*used = 2;
	}
	return store(o, values, value, err);
}

static int
parse_short(const struct opt *table, void *values, const char *word,
    const char *next, int *used, struct err *err)
{
	const struct opt *o;

	*used = 1;
	for (; *word != '\0'; word++) {
		for (o = table; o->name != NULL; o++)
			if (o->letter == *word)
				break;
		if (o->name == NULL)
			return err_set(err, ERR_USAGE, "unknown option '-%c'",
			    *word);
		if (o->type == OPT_FLAG) {
			if (store(o, values, "true", err) == -1)
				return -1;
			continue;
		}
		if (word[1] != '\0')
			return store(o, values, word + 1, err);
		if (next == NULL)
			return err_set(err, ERR_USAGE, "-%c needs a value",
			    *word);
		*used = 2;
		return store(o, values, next, err);
	}
	return 0;
}

static int
parse_one(const struct opt *table, void *values, const char *word,
    const char *next, int *used, struct err *err)
{
	if (word[1] == '-')
		return parse_long(table, values, word + 2, next, used, err);
	return parse_short(table, values, word + 1, next, used, err);
}

int
opt_parse(const struct opt *table, void *values, int argc, char *const *argv,
    int *first, struct err *err)
{
	int i = 1, used;

	while (i < argc && argv[i][0] == '-' && argv[i][1] != '\0') {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (parse_one(table, values, argv[i],
		    i + 1 < argc ? argv[i + 1] : NULL, &used, err) == -1)
			return -1;
		i += used;
	}
	*first = i;
	return 0;
}

int
opt_parse_mixed(const struct opt *table, void *values, int argc, char **argv,
    int *first, struct err *err)
{
	char **sorted = calloc((size_t)argc + 1, sizeof(*sorted));
	int i, used, head = 0, tail = 0, rc = -1;
	bool raw = false;

	if (sorted == NULL)
		return err_memory(err);
	/* Options go to the front in place; operands wait in `sorted`. */
	for (i = 1; i < argc; i += used) {
		used = 1;
		if (raw || argv[i][0] != '-' || argv[i][1] == '\0') {
			sorted[tail++] = argv[i];
			continue;
		}
		if (strcmp(argv[i], "--") == 0) {
			raw = true;
			argv[++head] = argv[i];
			continue;
		}
		if (parse_one(table, values, argv[i],
		    i + 1 < argc ? argv[i + 1] : NULL, &used, err) == -1)
			goto out;
		argv[++head] = argv[i];
		if (used == 2)
			argv[++head] = argv[i + 1];
	}
	memcpy(argv + head + 1, sorted, (size_t)tail * sizeof(*sorted));
	*first = head + 1;
	rc = 0;
out:
	free(sorted);
	return rc;
}

int
opt_environment(const struct opt *table, void *values, struct err *err)
{
	const struct opt *o;
	const char *value;
	char name[80];
	size_t i, n;

	for (o = table; o->name != NULL; o++) {
		if (o->cli_only)
			continue;
		n = (size_t)snprintf(name, sizeof(name), "HOLDFAST_%s", o->name);
		for (i = 9; i < n && i < sizeof(name); i++)
			name[i] = name[i] == '-' ? '_' :
			    (char)toupper((unsigned char)name[i]);
		if ((value = getenv(name)) == NULL || *value == '\0')
			continue;
		if (store(o, values, value, err) == -1)
			return err_prefix(err, "%s in the environment", name);
	}
	return 0;
}

void
opt_print(const struct opt *table, FILE *f)
{
	const struct opt *o;
	char left[80], letter[8];

	for (o = table; o->name != NULL; o++) {
		letter[0] = '\0';
		if (o->letter != 0)
			snprintf(letter, sizeof(letter), "-%c, ", o->letter);
		snprintf(left, sizeof(left), "%4s--%s%s%s", letter, o->name,
		    o->arg ? " " : "", o->arg ? o->arg : "");
		fprintf(f, "  %-30s %s", left, o->help);
		if (o->def != NULL && strcmp(o->def, "false") != 0)
			fprintf(f, " (%s)", o->def);
		fputc('\n', f);
	}
}
