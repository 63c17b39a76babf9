/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_lock.c - a file in the directory, locked as long as the process lives.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/file.h"
#include "checkpoint/stage_lock.h"

int
stage_lock_take(const char *dir, int *out, struct err *err)
{
	char *path = file_join(dir, STAGE_LOCK_NAME);
	int fd;

	if (path == NULL)
		return err_memory(err);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd == -1)
		err_errno(err, "cannot open %s", path);
	free(path);
	if (fd == -1)
		return -1;
	/* A file system without locks cannot keep others away; the lock of the
	 * other directory does. */
	if (flock(fd, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK) {
		close(fd);
		return err_set(err, ERR_BUSY, "%s is staged by another process",
		    dir);
	}
	*out = fd;
	return 0;
}
