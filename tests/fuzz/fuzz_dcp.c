/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_dcp.c - any bytes as the .metadata of a distributed checkpoint, beside a file
 * of 64 bytes that it may name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/checkpoint.h"
#include "fuzz_file.h"

int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/holdfast-fuzz-dcp.XXXXXX";
static char metadata[64], shard[64];

static void
clean(void)
{
	unlink(metadata);
	unlink(shard);
	rmdir(dir);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct checkpoint_options opts = { .threads = 1 };
	static const uint8_t bytes[64] = { 'P', 'K', 3, 4 };
	struct checkpoint c;

	if (metadata[0] == '\0') {
		if (mkdtemp(dir) == NULL)
			abort();
		snprintf(metadata, sizeof(metadata), "%s/.metadata", dir);
		snprintf(shard, sizeof(shard), "%s/__0_0.distcp", dir);
		fuzz_put(shard, bytes, sizeof(bytes));
		atexit(clean);
	}
	fuzz_put(metadata, data, size);
	if (checkpoint_look(&c, dir) == 0)
		(void)checkpoint_check(&c, 1, &opts, NULL, NULL, NULL);
	checkpoint_fini(&c);
	return 0;
}
