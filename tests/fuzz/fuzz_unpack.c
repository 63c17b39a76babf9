/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_unpack.c - any bytes as a file that is named: packed, UTF-16, or neither;
 * the first byte says which signature is put in front.  A libFuzzer target:
 *
 *	clang -fsanitize=fuzzer,address,undefined ... fuzz_unpack.c
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "diagnose/feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct {
		const char	*bytes;
		size_t		 len;
	} magic[] = {
		{ "", 0 }, { "\x1f\x8b\x08", 3 }, { "\x28\xb5\x2f\xfd", 4 },
		{ "\xfd" "7zXZ\0", 6 }, { "\xff\xfe", 2 }, { "\xfe\xff", 2 }
	};
	struct feed feed = {0};
	char path[64];
	size_t i, lines = 0;
	int fd;

	if (len == 0 || (fd = memfd_create("fuzz", MFD_CLOEXEC)) == -1)
		return 0;
	i = data[0] % (sizeof(magic) / sizeof(magic[0]));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, magic[i].bytes, magic[i].len) == (ssize_t)magic[i].len &&
	    write(fd, data + 1, len - 1) == (ssize_t)len - 1 &&
	    feed_add(&feed, path, NULL) == 0 && feed.count == 1) {
		for (i = 0; i < feed.streams[0].len; i++)
			lines += feed.streams[0].data[i] == '\n';
		if (stream_line(&feed.streams[0], i) != lines + 1)
			abort();
	}
	feed_fini(&feed);
	close(fd);
	return 0;
}
