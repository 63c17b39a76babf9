/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_zip.c - any bytes as a checkpoint file of whatever format they look like.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checkpoint/checkpoint.h"

int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct checkpoint_options opts = { .threads = 1 };
	static int fd = -1;
	static char path[64];
	struct checkpoint c;

	if (fd == -1) {
		fd = memfd_create("step_1.pt", 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	if (ftruncate(fd, 0) == -1 || pwrite(fd, data, size, 0) !=
	    (ssize_t)size)
		abort();
	if (checkpoint_look(&c, path) == 0)
		(void)checkpoint_check(&c, 1, &opts, NULL, NULL, NULL);
	checkpoint_fini(&c);
	return 0;
}
