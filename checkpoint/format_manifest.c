/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_manifest.c - a folder without a layout of its own, but with a manifest that
 * says what belongs to it.
 */
#include "checkpoint/folder.h"
#include "checkpoint/manifest.h"

static bool
recognise(const struct item *it)
{
	return it->is_dir && names_has(&it->names, MANIFEST_NAME);
}

/* What is missing or differs is said when the manifest is held against the files. */
static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	struct err err = {0};
	struct manifest m;
	struct part *p;
	size_t i;

	if (manifest_read(&m, it->path, true, &err) != MANIFEST_FOUND)
		report_say(r, HOLDFAST_CHECKPOINT_UNVERIFIED,
		    "manifest unusable: %s", err.text);
	r->step = m.step;
	for (i = 0; i < m.n && !parts->failed; i++) {
		p = parts_add(parts, it->path, m.files[i].path);
		if (p == NULL)
			parts->failed = true;
		else
			p->any_content = true;
	}
	manifest_fini(&m);
}

const struct format format_manifest = {
	.name = "manifest",
	.recognise = recognise,
	.complete = complete
};
