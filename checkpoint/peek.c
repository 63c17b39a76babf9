/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peek.c - opens a torch.save file for its object alone.
 */
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "checkpoint/peek.h"

int
peek_open(struct peek *peek, const char *dir, const char *name)
{
	const struct format *format;
	struct report quiet;
	struct input in;
	struct item it;
	char *path;
	int rc = -1;

	memset(peek, 0, sizeof(*peek));
	if ((path = file_join(dir, name)) == NULL)
		return -1;
	report_init(&quiet);
	if (item_look(&it, path, &quiet) == 0 && it.is_regular) {
		format = format_find(&it);
		if (input_open(&in, path, &quiet) == 0) {
			if (format == &format_torch_zip)
				rc = torch_zip_peek(&in, peek);
			else if (format == &format_torch_legacy)
				rc = torch_legacy_peek(&in, peek);
			input_close(&in);
		}
	}
	item_fini(&it);
	report_fini(&quiet);
	free(path);
	return rc;
}

void
peek_fini(struct peek *peek)
{
	pickle_free(&peek->pickle);
	buf_fini(&peek->bytes);
}

int64_t
peek_int(const struct peek *peek, const char *key, int64_t def)
{
	const struct pickle_value *v = pickle_get(&peek->pickle.root, key);

	return v != NULL && v->kind == PICKLE_INT ? v->i : def;
}
