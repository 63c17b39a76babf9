/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_config.c - reads holdfast.conf files, environment and command line into
 * struct run_options.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"
#include "common/yaml.h"
#include "supervisor/run_config.h"

#define FILES_MAX	3

struct run_config {
	struct yaml	*files[FILES_MAX];
	int		 count;
};

static int
take_key(const char *path, const struct yaml *key, const struct yaml *value,
    struct run_options *o, struct err *err)
{
	if (value->kind != YAML_SCALAR)
		return err_set(err, ERR_FORMAT, "%s:%d:%d: '%s' takes one value",
		    path, value->line, value->column, key->text);
	if (opt_set(run_option_table, o, key->text, value->text, err) == -1)
		return err_prefix(err, "%s:%d:%d", path, key->line, key->column);
	return 0;
}

/* A file that must exist is one the user named. */
static int
take_file(struct run_config *c, const char *path, bool must_exist,
    struct run_options *o, struct err *err)
{
	struct yaml *y;
	size_t i;

	if (!must_exist && access(path, F_OK) == -1 && errno == ENOENT)
		return 0;
	if (yaml_read_file(path, &y, err) == -1)
		return -1;
	c->files[c->count++] = y;
	if (y->kind != YAML_MAP)
		return err_set(err, ERR_FORMAT, "%s:1:1: keys and values were "
		    "expected", path);
	for (i = 0; i < y->count; i++)
		if (take_key(path, y->keys[i], y->items[i], o, err) == -1)
			return -1;
	return 0;
}

static int
take_files(struct run_config *c, const char *named, struct run_options *o,
    struct err *err)
{
	const char *home = getenv("HOME"), *xdg = getenv("XDG_CONFIG_HOME");
	char path[PATH_MAX];

	if (take_file(c, SYSCONFDIR "/holdfast/holdfast.conf", false, o,
	    err) == -1)
		return -1;
	if (xdg != NULL && *xdg == '/')
		snprintf(path, sizeof(path), "%s/holdfast/holdfast.conf", xdg);
	else
		snprintf(path, sizeof(path), "%s/.config/holdfast/holdfast.conf",
		    home ? home : "");
	if (take_file(c, path, false, o, err) == -1)
		return -1;
	return named == NULL ? 0 : take_file(c, named, true, o, err);
}

int
run_config_read(int argc, char *const *argv, struct run_options *options,
    int *first, struct run_config **out, struct err *err)
{
	struct run_config *c = calloc(1, sizeof(*c));
	struct run_options probe = {0};

	if (c == NULL)
		return err_memory(err);
	*options = (struct run_options){0};
	/* The command line is read twice: first for --config alone. */
	if (opt_parse(run_option_table, &probe, argc, argv, first, err) == -1 ||
	    opt_defaults(run_option_table, options, err) == -1 ||
	    take_files(c, probe.config, options, err) == -1 ||
	    opt_environment(run_option_table, options, err) == -1 ||
	    opt_parse(run_option_table, options, argc, argv, first, err) == -1) {
		run_config_free(c);
		return -1;
	}
	*out = c;
	return 0;
}

void
run_config_free(struct run_config *c)
{
	int i;

	if (c == NULL)
		return;
	for (i = 0; i < c->count; i++)
		yaml_free(c->files[i]);
	free(c);
}
