/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opt.h - command line options as rows of one table per verb.
 *
 * The same rows give parsing, --help, configuration keys (key = long name),
 * environment names (HOLDFAST_ + long name in capitals, - becomes _) and
 * completion; a test holds them against the man page.
 */
#ifndef HOLDFAST_COMMON_OPT_H
#define HOLDFAST_COMMON_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/err.h"

enum opt_type {
	OPT_FLAG,	/* bool; --name, --no-name */
	OPT_TEXT,	/* const char *, borrowed from argv or a struct yaml */
	OPT_INT,	/* int64_t, least..most of the row */
	OPT_DURATION,	/* int64_t milliseconds */
	OPT_SIZE,	/* int64_t bytes */
	OPT_CHOICE	/* const char *, one of the row's space-separated choices */
};

struct opt {
	const char	*name;		/* long name; NULL ends the table */
	char		 letter;	/* short name or 0 */
	enum opt_type	 type;
	size_t		 offset;	/* of the field in the values struct */
	const char	*arg;		/* its name in help, e.g. "DIR" */
	const char	*help;		/* one line */
	const char	*def;		/* default as written by a user, or NULL */
	const char	*choices;	/* OPT_CHOICE */
	long long	 least, most;	/* OPT_INT; both 0: 0..2^31-1 */
	bool		 cli_only;	/* no configuration key, no environment */
};

/* Writes the defaults of the table into the values struct. */
int	opt_defaults(const struct opt *, void *values, struct err *err);

/* Sets one option by name, as from a configuration file. */
int	opt_set(const struct opt *, void *values, const char *name,
	    const char *text, struct err *err);

/* Parses argv[1..]; stops at the first operand or after "--".  *first is the
 * index of the first operand.  Errors are ERR_USAGE and name the nearest right
 * option. */
int	opt_parse(const struct opt *, void *values, int argc,
	    char *const *argv, int *first, struct err *err);

/* As opt_parse(), but lets options stand behind operands: those are moved to
 * the end of argv in order. */
int	opt_parse_mixed(const struct opt *, void *values, int argc, char **argv,
	    int *first, struct err *err);

/* Takes HOLDFAST_* from the environment. */
int	opt_environment(const struct opt *, void *values, struct err *err);

/* The rows as help text. */
void	opt_print(const struct opt *, FILE *);

#endif
