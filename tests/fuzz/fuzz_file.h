/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_file.h - files for fuzz targets of formats that are read from a folder.
 */
#ifndef HOLDFAST_TESTS_FUZZ_FILE_H
#define HOLDFAST_TESTS_FUZZ_FILE_H

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* Replaces the contents; a target that cannot write tests nothing. */
static inline void
fuzz_put(const char *path, const void *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd == -1 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
}

#endif
