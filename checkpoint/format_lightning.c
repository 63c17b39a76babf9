/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_lightning.c - Lightning's NAME.ckpt/ of sharded strategies: a distributed
 * checkpoint and meta.pt (FSDP, ModelParallel), or checkpoint/ as DeepSpeed writes it
 * and latest.  Single .ckpt files are torch.save files and no matter of this.
 * Source: lightning/pytorch/strategies/{fsdp,deepspeed}.py.
 */
#include <inttypes.h>
#include <string.h>

#include "checkpoint/folder.h"
#include "checkpoint/peek.h"

#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE

static bool
is_dcp(const struct item *it)
{
	return names_has(&it->names, ".metadata") ||
	    folder_find(it, "__", ".distcp");
}

static bool
has_deepspeed(const struct item *it)
{
	return names_has(&it->names, "checkpoint") &&
	    folder_is_dir(it->path, "checkpoint") &&
	    (names_has(&it->names, "latest") ||
	    names_has(&it->names, "zero_to_fp32.py"));
}

static bool
recognise(const struct item *it)
{
	return it->is_dir && ((is_dcp(it) &&
	    (names_has(&it->names, "meta.pt") ||
	    name_ends_with(it->name, ".ckpt"))) ||
	    (name_ends_with(it->name, ".ckpt") && has_deepspeed(it)));
}

/* meta.pt holds what is not sharded; it is written last. */
static void
check_meta(const struct item *it, struct parts *parts, struct report *r)
{
	int64_t named = strstr(it->name, "step=") != NULL ?
	    name_folder_step(it->name) : REPORT_UNKNOWN, step;
	struct peek peek;

	if (!names_has(&it->names, "meta.pt")) {
		report_say(r, INCOMPLETE, "no meta.pt: the save did not finish");
		return;
	}
	if (folder_is_dir(it->path, "meta.pt"))
		report_say(r, INCOMPLETE, "meta.pt is a folder, not a file");
	folder_add(it, "meta.pt", parts);
	if (peek_open(&peek, it->path, "meta.pt") == 0) {
		step = peek_int(&peek, "global_step", REPORT_UNKNOWN);
		if (step != REPORT_UNKNOWN && named != REPORT_UNKNOWN &&
		    step != named)
			report_say(r, INCOMPLETE, "meta.pt is of step %" PRId64
			    ", the folder's name of %" PRId64, step, named);
		r->step = step;
	}
	peek_fini(&peek);
}

static void
complete(const struct item *it, struct parts *parts, struct report *r)
{
	if (is_dcp(it)) {
		dcp_complete(it, NULL, parts, r);
		check_meta(it, parts, r);
		return;
	}
	if (!names_has(&it->names, "latest"))
		report_say(r, INCOMPLETE, "no latest: the save did not finish");
	folder_add_files(it, NULL, parts, r);
	if (parts->n == 0)
		report_say(r, INCOMPLETE, "holds no checkpoint file");
}

const struct format format_lightning = {
	.name = "lightning",
	.recognise = recognise,
	.complete = complete
};
