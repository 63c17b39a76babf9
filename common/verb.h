/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb.h - a verb of the holdfast command as one row.
 *
 * Each verb lives in verb_NAME.c of its folder and ends in a const struct verb;
 * supervisor/main.c lists them.
 */
#ifndef HOLDFAST_COMMON_VERB_H
#define HOLDFAST_COMMON_VERB_H

#include <stdbool.h>

#include "common/err.h"
#include "common/opt.h"

/* Exit statuses (holdfast(1)). */
enum verb_exit {
	EXIT_OK = 0,
	EXIT_NEGATIVE = 1,	/* the answer is no, or a person is needed */
	EXIT_USAGE = 2,		/* usage, configuration, cannot read */
	EXIT_BUDGET = 3,	/* run: restart budget exhausted */
	EXIT_NODES = 4,		/* run: not enough healthy nodes */
	EXIT_REQUEUE = 75,	/* run: requeue me (EX_TEMPFAIL) */
	EXIT_SIGNALED = 128	/* run: plus the signal that was asked for */
};

struct verb {
	const char		*name;
	const char		*summary;	/* one line, for the list of verbs */
	const char		*operands;	/* synopsis behind the options */
	const char *const	*actions;	/* sub-verbs, NULL-terminated, or NULL */
	const struct opt	*opts;
	/* argv[0] is the verb's name; returns the exit status. */
	int			(*run)(const struct verb *, int argc, char **argv);
	bool			 internal;	/* not shown to people */
};

/* "usage: holdfast NAME ..." and the options, to stdout; returns EXIT_OK. */
int	verb_help(const struct verb *);

/* "holdfast NAME: text" to stderr; returns EXIT_USAGE. */
int	verb_fail(const struct verb *, const struct err *);

/* For verbs whose output matters: standard streams that are closed are opened on
 * /dev/null, so that no file takes their numbers, and SIGPIPE becomes an error of
 * writing.  Returns 0, or -1 with the error printed when there is no standard
 * output. */
int	verb_begin_output(const struct verb *);
/* Returns the status, or EXIT_USAGE with the error printed when not all of the
 * output could be written. */
int	verb_end_output(const struct verb *, int status);

/* Parses options in any order with defaults first; handles --help (prints,
 * and sets *done).  Returns 0, or -1 with the error already printed. */
int	verb_parse(const struct verb *, void *values, int argc, char **argv,
	    int *first, bool *done);

/* Finds the action word argv[first] among verb->actions; its index, or -1 with
 * the nearest right one already printed. */
int	verb_action(const struct verb *, int argc, char **argv, int first);

#endif
