/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_safetensors.c - any bytes as the header of a safetensors file, with the length
 * in front that makes it one, and as the shard that an index names.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/hf_index.h"

int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct checkpoint_options opts = { .threads = 1 };
	static int fd = -1;
	static char path[64];
	struct names names = {0};
	struct checkpoint c;
	uint64_t len = 2;
	size_t i;

	if (fd == -1) {
		fd = memfd_create("model.safetensors", 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	/* the header ends at the last brace, what follows is data */
	for (i = 0; i < size; i++)
		if (data[i] == '}')
			len = i + 1;
	if (ftruncate(fd, 0) == -1 ||
	    pwrite(fd, &len, sizeof(len), 0) != sizeof(len) ||
	    pwrite(fd, data, size, sizeof(len)) != (ssize_t)size)
		abort();
	if (checkpoint_look(&c, path) == 0)
		(void)checkpoint_check(&c, 1, &opts, NULL, NULL, NULL);
	checkpoint_fini(&c);
	(void)safetensors_names(path, &names);
	names_fini(&names);
	return 0;
}
