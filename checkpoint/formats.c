/* SPDX-License-Identifier: Apache-2.0 */
/*
 * formats.c - the table of formats, and what a path looks like at first sight.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "checkpoint/format.h"
#include "checkpoint/trouble.h"

/* Folder formats from the most telling layout to the least. */
static const struct format *const formats[] = {
	&format_torch_zip,
	&format_torch_legacy,
	&format_safetensors,
	&format_pickle,
	&format_lightning,
	&format_megatron_dist,
	&format_dcp,
	&format_nemo,
	&format_hf_trainer,
	&format_accelerate,
	&format_deepspeed,
	&format_deepspeed_universal,
	&format_megatron_legacy,
	&format_internevo,
	&format_orbax,
	&format_hf_model,
	&format_snapshot,
	&format_folder,
	&format_fairseq,
	&format_nvrx,
	&format_manifest,
	NULL
};

int
item_look(struct item *it, const char *path, struct report *r)
{
	const char *slash = strrchr(path, '/');
	struct input in;
	struct stat st;
	int seen;

	memset(it, 0, sizeof(*it));
	it->path = path;
	it->name = slash != NULL && slash[1] != '\0' ? slash + 1 : path;
	if ((seen = stat(path, &st)) == -1 && trouble_is(errno)) {
		trouble_note(path);
		report_say(r, HOLDFAST_CHECKPOINT_UNREADABLE, "cannot stat: %s",
		    strerror(errno));
		/* by its name, as nothing else tells */
		it->is_dir = !name_is_checkpoint_file(it->name);
		return -1;
	}
	if (seen == 0 && S_ISDIR(st.st_mode)) {
		it->is_dir = true;
		if (names_read(&it->names, path) == -1) {
			report_say(r, HOLDFAST_CHECKPOINT_UNREADABLE,
			    "cannot read the directory: %s", strerror(errno));
			return -1;
		}
		return 0;
	}
	if (input_open(&in, path, r) == -1)
		return -1;
	it->is_regular = true;
	it->size = in.size;
	it->head_len = in.size < FORMAT_HEAD_MAX ? (size_t)in.size :
	    FORMAT_HEAD_MAX;
	if (input_read(&in, 0, it->head, it->head_len, r) == -1)
		it->head_len = 0;
	input_close(&in);
	return report_is_bad(r) ? -1 : 0;
}

void
item_fini(struct item *it)
{
	names_fini(&it->names);
}

static const struct format *
find(const struct item *it, bool inside, bool set)
{
	size_t i;

	for (i = 0; formats[i] != NULL; i++)
		if (formats[i]->file_set == set &&
		    (!inside || formats[i]->inside) && formats[i]->recognise(it))
			return formats[i];
	return NULL;
}

const struct format *
format_find(const struct item *it)
{
	return find(it, false, false);
}

const struct format *
format_find_inside(const struct item *it)
{
	return find(it, true, false);
}

const struct format *
format_find_set(const struct item *it)
{
	return it->is_regular ? find(it, false, true) : NULL;
}

int
formats_enumerate(const char *dir, struct names *names)
{
	struct names found = {0};
	size_t i;

	for (i = 0; formats[i] != NULL; i++) {
		if (formats[i]->enumerate == NULL)
			continue;
		if (formats[i]->enumerate(dir, names, &found) == -1) {
			names_fini(&found);
			return -1;
		}
		if (found.n > 0) {
			names_fini(names);
			*names = found;
			break;
		}
	}
	return 0;
}

static bool
starts_with(const struct item *it, const char *bytes, size_t n)
{
	return it->head_len >= n && memcmp(it->head, bytes, n) == 0;
}

const struct format *
format_claimed(const struct item *it, struct report *r)
{
	const struct format *format = &format_torch_zip;
	size_t i = 0;

	if (name_ends_with(it->name, ".safetensors"))
		format = &format_safetensors;
	else if (name_is_pickle(it->name))
		format = &format_pickle;
	else if (!name_is_checkpoint_file(it->name))
		format = NULL;
	if (it->size == 0) {
		report_say(r, format ? HOLDFAST_CHECKPOINT_INCOMPLETE :
		    HOLDFAST_CHECKPOINT_UNVERIFIED, "the file is empty");
		return format;
	}
	if (name_ends_with(it->name, ".distcp")) {
		report_say(r, HOLDFAST_CHECKPOINT_UNVERIFIED,
		    "a part of a distributed checkpoint: verify its folder");
		return NULL;
	}
	while (i < it->head_len && it->head[i] == 0)
		i++;
	if (format == &format_safetensors) {
		/* its own check says what is wrong */
		return format;
	}
	if (format != NULL && it->size < 4) {
		report_say(r, HOLDFAST_CHECKPOINT_INCOMPLETE,
		    "cut off inside its first bytes");
		return format;
	}
	if (format == NULL || format == &format_pickle ||
	    name_ends_with(it->name, ".bin") ||
	    starts_with(it, "\x28\xb5\x2f\xfd", 4) ||	/* zstd */
	    starts_with(it, "\x1f\x8b", 2) ||		/* gzip */
	    starts_with(it, "\xfd" "7zXZ", 5) || it->head[0] == 0x80) {
		report_say(r, i == it->head_len && format ?
		    HOLDFAST_CHECKPOINT_CORRUPT : HOLDFAST_CHECKPOINT_UNVERIFIED,
		    i == it->head_len ? "the file begins with zeroes" :
		    "not a checkpoint file that is known (begins with %02x%02x)",
		    it->head[0], it->head_len > 1 ? it->head[1] : 0);
		return i == it->head_len ? format : NULL;
	}
	if (i == it->head_len)
		report_say(r, HOLDFAST_CHECKPOINT_CORRUPT,
		    "the file begins with zeroes");
	else
		report_say(r, HOLDFAST_CHECKPOINT_CORRUPT,
		    "neither a zip nor a legacy torch.save file (begins with "
		    "%02x%02x%02x%02x)", it->head[0], it->head[1], it->head[2],
		    it->head[3]);
	return format;
}

struct part *
parts_add(struct parts *parts, const char *dir, const char *name)
{
	struct part *p;
	size_t cap;

	if (parts->n == parts->cap) {
		cap = parts->cap ? parts->cap * 2 : 16;
		p = reallocarray(parts->list, cap, sizeof(*p));
		if (p == NULL)
			return NULL;
		parts->list = p;
		parts->cap = cap;
	}
	p = &parts->list[parts->n];
	memset(p, 0, sizeof(*p));
	p->path = dir != NULL ? file_join(dir, name) : strdup(name);
	p->name = strdup(name);
	if (p->path == NULL || p->name == NULL) {
		free(p->path);
		free(p->name);
		return NULL;
	}
	parts->n++;
	return p;
}

void
parts_remove(struct parts *parts, size_t i)
{
	free(parts->list[i].path);
	free(parts->list[i].name);
	free(parts->list[i].extents);
	parts->n--;
	memmove(&parts->list[i], &parts->list[i + 1],
	    (parts->n - i) * sizeof(*parts->list));
}

void
parts_fini(struct parts *parts)
{
	size_t i;

	for (i = 0; i < parts->n; i++) {
		free(parts->list[i].path);
		free(parts->list[i].name);
		free(parts->list[i].extents);
		free(parts->list[i].kept.chunks);
	}
	free(parts->list);
	memset(parts, 0, sizeof(*parts));
}
