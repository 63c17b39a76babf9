/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb.c - what all verbs share: help, usage errors, option parsing.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"
#include "common/verb.h"

int
verb_help(const struct verb *v)
{
	size_t i;

	printf("usage: holdfast %s [options]", v->name);
	for (i = 0; v->actions != NULL && v->actions[i] != NULL; i++)
		printf("%s%s", i ? "|" : " ", v->actions[i]);
	if (v->operands != NULL)
		printf(" %s", v->operands);
	printf("\n%s\n\noptions:\n", v->summary);
	if (v->opts != NULL)
		opt_print(v->opts, stdout);
	printf("  %-30s %s\n", "-h, --help", "print this text");
	printf("\nmore: man holdfast-%s\n", v->name);
	return EXIT_OK;
}

int
verb_fail(const struct verb *v, const struct err *err)
{
	fprintf(stderr, "holdfast %s: %s\n", v->name, err->text);
	return EXIT_USAGE;
}

int
verb_begin_output(const struct verb *v)
{
	bool closed[3];
	struct err err;
	int fd;

	for (fd = 0; fd < 3; fd++) {
		closed[fd] = fcntl(fd, F_GETFD) == -1 && errno == EBADF;
		if (closed[fd] && open("/dev/null", O_RDWR) != fd)
			return -1;
	}
	signal(SIGPIPE, SIG_IGN);
	if (!closed[STDOUT_FILENO])
		return 0;
	err_set(&err, ERR_USAGE, "standard output is closed");
	verb_fail(v, &err);
	return -1;
}

int
verb_end_output(const struct verb *v, int status)
{
	struct err err;

	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	if (errno != 0)
		err_errno(&err, "cannot write the output");
	else
		err_set(&err, ERR_SYSTEM, "cannot write the output");
	return verb_fail(v, &err);
}

static bool
asks_help(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

int
verb_parse(const struct verb *v, void *values, int argc, char **argv,
    int *first, bool *done)
{
	struct err err = {0};

	*done = asks_help(argc, argv);
	if (*done) {
		verb_help(v);
		return 0;
	}
	if (opt_defaults(v->opts, values, &err) == -1 ||
	    opt_environment(v->opts, values, &err) == -1 ||
	    opt_parse_mixed(v->opts, values, argc, argv, first, &err) == -1) {
		verb_fail(v, &err);
		return -1;
	}
	return 0;
}

int
verb_action(const struct verb *v, int argc, char **argv, int first)
{
	struct text_nearest near = {0};
	size_t i;

	if (first >= argc) {
		fprintf(stderr, "holdfast %s: which action? one of:", v->name);
		for (i = 0; v->actions[i] != NULL; i++)
			fprintf(stderr, " %s", v->actions[i]);
		fputc('\n', stderr);
		return -1;
	}
	for (i = 0; v->actions[i] != NULL; i++) {
		if (strcmp(v->actions[i], argv[first]) == 0)
			return (int)i;
		text_nearest_try(&near, argv[first], v->actions[i]);
	}
	fprintf(stderr, "holdfast %s: unknown action '%s'%s%s%s\n", v->name,
	    argv[first], near.best ? ", did you mean '" : "",
	    near.best ? near.best : "", near.best ? "'?" : "");
	return -1;
}
