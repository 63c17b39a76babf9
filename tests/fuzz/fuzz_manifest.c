/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_manifest.c - any bytes as a manifest, with the seal that makes them one, in a
 * folder that has nothing else to say what belongs to it, and beside a file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "checkpoint/manifest_text.h"
#include "fuzz_file.h"

int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char top[] = "/tmp/holdfast-fuzz-manifest.XXXXXX";
static char dir[64], file[64], of_dir[128], of_file[128], one[128];

static void
clean(void)
{
	unlink(of_dir);
	unlink(of_file);
	unlink(one);
	unlink(file);
	rmdir(dir);
	rmdir(top);
}

static void
prepare(void)
{
	static const uint8_t bytes[1000] = { 1, 2, 3 };

	if (mkdtemp(top) == NULL)
		abort();
	snprintf(dir, sizeof(dir), "%s/d", top);
	snprintf(file, sizeof(file), "%s/f.pt", top);
	snprintf(of_dir, sizeof(of_dir), "%s/%s", dir, MANIFEST_NAME);
	snprintf(of_file, sizeof(of_file), "%s/.f.pt%s", top, MANIFEST_NAME);
	snprintf(one, sizeof(one), "%s/one", dir);
	if (mkdir(dir, 0700) == -1)
		abort();
	fuzz_put(one, bytes, sizeof(bytes));
	fuzz_put(file, bytes, sizeof(bytes));
	atexit(clean);
}

static void
check(const char *path)
{
	struct checkpoint_options opts = { .threads = 1, .trust_manifest = true };
	struct checkpoint c;
	int i;

	for (i = 0; i < 2; i++) {
		if (checkpoint_look(&c, path) == 0)
			(void)checkpoint_check(&c, 1, &opts, NULL, NULL, NULL);
		checkpoint_fini(&c);
		opts.trust_manifest = false;
	}
}

/* Paths are what the format promises: relative, inside, each of them once. */
static void
look_into(const struct manifest *m)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		if (!manifest_is_safe(m->files[i].path) ||
		    manifest_find(m, m->files[i].path) != &m->files[i])
			abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf text = {0};
	struct manifest m;

	if (dir[0] == '\0')
		prepare();
	/* as it is, and sealed */
	if (manifest_parse(&m, (const char *)data, size, NULL) == 0)
		look_into(&m);
	manifest_fini(&m);
	if (buf_append(&text, data, size) == -1 || manifest_seal(&text) == -1)
		abort();
	fuzz_put(of_dir, text.data, text.len);
	fuzz_put(of_file, text.data, text.len);
	buf_fini(&text);
	if (manifest_read(&m, dir, true, NULL) == MANIFEST_FOUND)
		look_into(&m);
	manifest_fini(&m);
	check(dir);
	check(file);
	return 0;
}
