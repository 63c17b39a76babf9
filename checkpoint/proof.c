/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof.c - what a manifest says about files, and whether it may say it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "checkpoint/proof.h"
#include "checkpoint/trouble.h"

#define CORRUPT		HOLDFAST_CHECKPOINT_CORRUPT
#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE
#define UNVERIFIED	HOLDFAST_CHECKPOINT_UNVERIFIED
#define NAME_MAX_SHOWN	REPORT_NAME_MAX

const char *
proof_path(const struct checkpoint *c, const struct part *p)
{
	const char *slash = strrchr(p->name, '/');

	return c->is_dir || slash == NULL ? p->name : slash + 1;
}

const struct manifest_file *
proof_entry(const struct proof *proof, const struct checkpoint *c,
    const struct part *p)
{
	return proof->found != MANIFEST_FOUND ? NULL :
	    manifest_find(&proof->m, proof_path(c, p));
}

/* Its files that the format does not speak of are read as well. */
static int
add_extra(struct proof *proof, const struct checkpoint *c)
{
	bool *known = calloc(proof->m.n + 1, sizeof(*known));
	const struct manifest_file *f;
	struct part *p;
	size_t i;

	if (known == NULL)
		return -1;
	for (i = 0; i < c->parts.n; i++) {
		f = manifest_find(&proof->m, proof_path(c, &c->parts.list[i]));
		if (f != NULL)
			known[f - proof->m.files] = true;
	}
	for (i = 0; i < proof->m.n; i++) {
		if (known[i])
			continue;
		p = parts_add(&proof->extra, c->path, proof->m.files[i].path);
		if (p == NULL) {
			free(known);
			return -1;
		}
		p->any_content = true;
	}
	free(known);
	return 0;
}

static int
keep_why(struct proof *proof, const struct err *err)
{
	proof->unreadable = trouble_is(err->errnum);
	return (proof->why = strdup(err->text)) == NULL ? -1 : 0;
}

int
proof_load(struct proof *proof, const struct checkpoint *c)
{
	struct err err = {0};

	memset(proof, 0, sizeof(*proof));
	/* a set of files has no place of its own for one */
	if (c->format != NULL && c->format->file_set)
		return 0;
	proof->found = manifest_read(&proof->m, c->path, c->is_dir, &err);
	if (proof->found == MANIFEST_UNUSABLE)
		return keep_why(proof, &err);
	if (proof->found == MANIFEST_ABSENT || !c->is_dir)
		return 0;
	if (manifest_list(c->path, true, &proof->names, &err) == -1) {
		proof->found = MANIFEST_UNUSABLE;
		return keep_why(proof, &err);
	}
	return add_extra(proof, c);
}

bool
proof_is_there(const struct proof *proof, const struct manifest_file *f)
{
	return names_has(&proof->names, f->path);
}

void
proof_fini(struct proof *proof)
{
	manifest_fini(&proof->m);
	parts_fini(&proof->extra);
	names_fini(&proof->names);
	free(proof->why);
}

/* The chunk was read into digests; read it again to see whether it holds zeroes. */
static bool
is_zero(const struct input *in, const struct check *check, uint64_t from,
    uint64_t to)
{
	struct input again = *in;
	struct report quiet;
	bool zero = true;
	size_t n, i;

	report_init(&quiet);
	for (; zero && from < to; from += n) {
		n = to - from < INPUT_BLOCK ? (size_t)(to - from) : INPUT_BLOCK;
		zero = input_read(&again, from, check->block, n, &quiet) == 0;
		for (i = 0; zero && i < n; i++)
			zero = check->block[i] == 0;
	}
	report_fini(&quiet);
	return zero;
}

static void
compare_chunks(struct proof_file *f, const struct input *in,
    const struct pass_digests *d, const struct check *check)
{
	const struct manifest_file *e = f->entry;
	size_t i, differ = 0;
	uint64_t from, to;

	for (i = 0; i < e->n_chunks && i < d->n_chunks; i++) {
		if (digest_equal(e->chunks[i], d->chunks[i]))
			continue;
		from = (uint64_t)i * e->chunk_size;
		to = e->size - from < e->chunk_size ? e->size :
		    from + e->chunk_size;
		if (differ++ == 0) {
			f->from = from;
			f->to = to;
		} else if (from == f->to) {
			f->to = to;
		}
		f->zeroed = f->zeroed || is_zero(in, check, from, to);
	}
	f->differs = differ > 0;
	f->wholly = differ * 2 > e->n_chunks;
}

void
proof_compare(struct proof_file *f, const struct input *in,
    const struct pass_digests *d, const struct check *check)
{
	const struct manifest_file *e = f->entry;

	f->looked_at = true;
	f->size = in->size;
	f->newer = file_mtime_ns(&in->st) > e->mtime_ns;
	f->other_size = in->size != e->size;
	if (f->other_size || d == NULL || !d->done)
		return;
	if (e->chunk_size != 0) {
		compare_chunks(f, in, d, check);
	} else if (!digest_equal(d->whole, e->whole)) {
		f->differs = f->wholly = true;
		f->to = e->size;
		f->zeroed = is_zero(in, check, e->size / 2, e->size);
	}
}

/* All files of the format were written after those the manifest knows, the largest is
 * another one, and none is a damaged one: a later save took their place.  A file whose
 * own checksums are right was written by a trainer, not by damage. */
static bool
is_of_older_save(const struct checkpoint *c, const struct proof_file *files)
{
	bool sound = c->report.checksum == REPORT_CHECKSUM_CRC32 &&
	    c->report.contents_read && !report_is_bad(&c->report);
	const struct proof_file *largest = NULL;
	size_t i;

	for (i = 0; i < c->parts.n; i++) {
		const struct proof_file *f = &files[i];

		if (f->entry == NULL || !f->looked_at)
			continue;
		if (!f->newer || (!sound && f->differs &&
		    (!f->wholly || f->zeroed)))
			return false;
		/* one that its format finds whole at another size was saved so */
		if (f->other_size && c->parts.list[i].any_content &&
		    f->size < f->entry->size)
			return false;
		if (largest == NULL || f->size > largest->size)
			largest = f;
	}
	return largest != NULL && (largest->differs || largest->other_size);
}

static void
set_note(struct report *r, const char *what, const char *detail)
{
	free(r->note);
	r->note = NULL;
	report_note(r, "%s%s", what, detail);
}

static void
say_file(const struct proof *proof, const struct proof_file *f, struct report *r)
{
	const char *path = f->entry->path, *when = proof->m.created;

	if (f->missing)
		report_say(r, INCOMPLETE, "%.*s is missing, its manifest lists it",
		    NAME_MAX_SHOWN, path);
	else if (f->other_size)
		report_say(r, f->size < f->entry->size ? INCOMPLETE : CORRUPT,
		    "%.*s has %" PRIu64 " bytes, its manifest says %" PRIu64,
		    NAME_MAX_SHOWN, path, f->size, f->entry->size);
	else if (f->differs)
		report_say(r, CORRUPT, "%.*s: bytes %" PRIu64 " to %" PRIu64
		    " are not those of its manifest of %s%s", NAME_MAX_SHOWN,
		    path, f->from, f->to - 1, when, f->zeroed ? ", but zeroes" :
		    f->wholly ? ": damaged, or of another save" : "");
}

/* Files that came later: another world's shard would be loaded with the rest. */
static void
find_added(const struct proof *proof, struct checkpoint *c)
{
	const struct names *names = &proof->names;
	size_t i;

	for (i = 0; i < names->n; i++)
		if (manifest_find(&proof->m, names->list[i]) == NULL &&
		    name_is_checkpoint_file(names->list[i]))
			report_say(&c->report, UNVERIFIED, "%s was added, its "
			    "manifest does not list it", names->list[i]);
}

static void
set_unusable(const struct proof *proof, struct checkpoint *c, const char *why)
{
	set_note(&c->report, "manifest unusable: ", why);
	if (c->format == &format_manifest)
		report_say(&c->report, proof->unreadable ?
		    HOLDFAST_CHECKPOINT_UNREADABLE : UNVERIFIED,
		    "manifest unusable: %s", why);
}

void
proof_conclude(const struct proof *proof, struct checkpoint *c,
    const struct proof_file *files, size_t n, bool structure_only)
{
	int64_t step = checkpoint_step(c);
	bool all = true;
	char why[96];
	size_t i;

	if (proof->found == MANIFEST_UNUSABLE)
		set_unusable(proof, c, proof->why);
	if (proof->found != MANIFEST_FOUND)
		return;
	if (proof->m.step != REPORT_UNKNOWN && step != REPORT_UNKNOWN &&
	    proof->m.step != step) {
		snprintf(why, sizeof(why), "of step %" PRId64 ", this is step %"
		    PRId64, proof->m.step, step);
		set_unusable(proof, c, why);
		return;
	}
	if (is_of_older_save(c, files)) {
		set_unusable(proof, c, "the files were saved anew since");
		return;
	}
	for (i = 0; i < n; i++) {
		if (files[i].entry != NULL)
			say_file(proof, &files[i], &c->report);
		all = all && files[i].entry != NULL && files[i].looked_at;
	}
	find_added(proof, c);
	if (structure_only || !all || c->report.state > UNVERIFIED)
		return;
	if (c->format == &format_manifest)
		c->report.contents_read = true;
	c->report.checksum = REPORT_CHECKSUM_XXH128;
	if (c->report.state != UNVERIFIED)
		set_note(&c->report, "every byte as in its manifest of ",
		    proof->m.created);
}
