/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child.h - a foreign call in a child process with a deadline.
 *
 * The child gets its own process group, /dev/null or the given bytes as
 * standard input, and its output in bounded buffers.  At the deadline the
 * whole group is killed; a child that even SIGKILL does not end (a driver or
 * file system that hangs in the kernel) is left behind and reported as such,
 * so the caller never waits for it.
 */
#ifndef HOLDFAST_COMMON_CHILD_H
#define HOLDFAST_COMMON_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "common/loop.h"

struct child;

enum child_end {
	CHILD_EXITED,		/* code is its exit status */
	CHILD_SIGNALED,		/* code is the signal */
	CHILD_DEADLINE,		/* killed at the deadline */
	CHILD_STUCK		/* deadline, and SIGKILL had no effect in 1 s */
};

struct child_spec {
	const char *const	*argv;		/* argv[0] is looked up in PATH */
	const char *const	*envp;		/* NULL: the caller's */
	const void		*input;		/* bytes for standard input, or NULL */
	size_t			 input_len;
	int64_t			 deadline_ms;
	size_t			 output_max;	/* per stream; more is dropped */
};

struct child_result {
	enum child_end	 end;
	int		 code;
	bool		 truncated;	/* output_max was reached */
	struct buf	 out;		/* standard output */
	struct buf	 errors;	/* standard error */
};

/* The result is the loop's, valid during the call. */
typedef void	(*child_done_fn)(const struct child_result *, void *arg);

/* Starts it; done is called exactly once from the loop unless child_cancel()
 * came first. */
int	child_start(struct loop *, const struct child_spec *, child_done_fn,
	    void *arg, struct child **out, struct err *err);
/* Kills the group and forgets the child; done is not called. */
void	child_cancel(struct child *);

/* Path of the running program, good for child_spec.argv[0] even after the file
 * was replaced or removed. */
#define CHILD_SELF	"/proc/self/exe"

#endif
