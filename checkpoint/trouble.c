/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trouble.c - the first read error of each thread since it began to look.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/trouble.h"

static _Thread_local struct {
	unsigned	notes;
	int		errnum;		/* of the first */
	char		name[256];	/* last component of its path */
} trouble;

bool
trouble_is(int errnum)
{
	return errnum != 0 && errnum != ENOENT && errnum != ENOTDIR &&
	    errnum != ELOOP && errnum != ENAMETOOLONG;
}

void
trouble_begin(void)
{
	trouble.notes = 0;
}

void
trouble_note(const char *path)
{
	const char *slash = strrchr(path, '/');
	int errnum = errno;

	if (!trouble_is(errnum) || trouble.notes++ > 0)
		return;
	trouble.errnum = errnum;
	snprintf(trouble.name, sizeof(trouble.name), "%s", slash != NULL &&
	    slash[1] != '\0' ? slash + 1 : path);
	errno = errnum;
}

void
trouble_take_back(void)
{
	if (trouble.notes > 0)
		trouble.notes--;
}

bool
trouble_end(struct report *r)
{
	const char *text = strerror(trouble.errnum);

	if (trouble.notes == 0)
		return false;
	trouble.notes = 0;
	if (r->state == HOLDFAST_CHECKPOINT_UNREADABLE && r->reason != NULL &&
	    strstr(r->reason, text) != NULL)
		return true;
	free(r->reason);
	r->reason = NULL;
	r->state = HOLDFAST_CHECKPOINT_VALID;
	report_say(r, HOLDFAST_CHECKPOINT_UNREADABLE, "cannot read %s: %s",
	    trouble.name, text);
	return true;
}

int
trouble_error(struct err *err)
{
	if (trouble.notes == 0)
		return 0;
	trouble.notes = 0;
	errno = trouble.errnum;
	return err_errno(err, "cannot read %s", trouble.name);
}
