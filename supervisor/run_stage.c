/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_stage.c - from --stage SIZE[:DIR] to directories.
 *
 * The fast directory has a name that the next process for this run finds again, also
 * after the supervisor and the agent were killed.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/text.h"
#include "supervisor/run_stage.h"

#define MEMORY_DIR	"/dev/shm"
#define SIZE_TEXT_MAX	32

/* SIZE and DIR of the option; DIR may be NULL. */
static int
split(const char *text, int64_t *bytes, const char **dir)
{
	const char *colon = strchr(text, ':');
	size_t n = colon != NULL ? (size_t)(colon - text) : strlen(text);
	char size[SIZE_TEXT_MAX];

	*dir = colon != NULL ? colon + 1 : NULL;
	if (n >= sizeof(size) || (*dir != NULL && **dir != '/'))
		return -1;
	memcpy(size, text, n);
	size[n] = '\0';
	return text_parse_size(size, bytes) == -1 || *bytes <= 0 ? -1 : 0;
}

int
run_stage_check(const struct run_options *o, struct err *err)
{
	const char *dir;
	int64_t bytes;

	if (o->stage == NULL)
		return 0;
	if (split(o->stage, &bytes, &dir) == -1)
		return err_set(err, ERR_USAGE, "--stage takes SIZE or SIZE:DIR such "
		    "as 200G:/local/nvme, with an absolute DIR (not '%s')",
		    o->stage);
	if (o->checkpoint_dir == NULL)
		return err_set(err, ERR_USAGE, "--stage needs --checkpoint-dir: the "
		    "durable directory");
	return 0;
}

static int
check_ours(const char *dir, struct err *err)
{
	struct stat st;

	if (lstat(dir, &st) == -1)
		return err_errno(err, "cannot stat %s", dir);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & 022) != 0)
		return err_set(err, ERR_SYSTEM, "%s is not a directory of this "
		    "user alone; use --stage SIZE:DIR with another DIR", dir);
	return 0;
}

int
run_stage_make_fast(const struct run_stage *p, struct err *err)
{
	static const char memory[] = MEMORY_DIR "/";
	char parent[PATH_MAX], *slash;

	if (file_mkdirs(p->fast, 0700, err) == -1 ||
	    check_ours(p->fast, err) == -1)
		return -1;
	/* Made by this program, in a directory for all. */
	if (strncmp(p->fast, memory, sizeof(memory) - 1) != 0)
		return 0;
	snprintf(parent, sizeof(parent), "%s", p->fast);
	slash = strrchr(parent, '/');
	*slash = '\0';
	return strlen(parent) < sizeof(memory) ? 0 : check_ours(parent, err);
}

/* FNV-1a of the run directory: runs of one name in several state directories. */
static uint32_t
hash(const char *text)
{
	uint32_t h = 2166136261u;

	for (; *text != '\0'; text++)
		h = (h ^ (unsigned char)*text) * 16777619u;
	return h;
}

void
run_stage_places(const struct run_spec *s, struct run_stage *out)
{
	const struct run_options *o = &s->options;
	const char *dir = NULL;

	memset(out, 0, sizeof(*out));
	if (o->stage == NULL || split(o->stage, &out->bytes, &dir) == -1)
		return;
	out->on = true;
	if (dir != NULL)
		snprintf(out->fast, sizeof(out->fast), "%.3000s/%s-%08x", dir,
		    o->name, hash(s->dir));
	else
		snprintf(out->fast, sizeof(out->fast), MEMORY_DIR
		    "/holdfast-%u/%s-%08x", (unsigned)geteuid(), o->name,
		    hash(s->dir));
	run_spec_absolute(s, o->checkpoint_dir, out->durable);
	snprintf(out->link, sizeof(out->link), "%.4000s/stage", s->dir);
	snprintf(out->socket, sizeof(out->socket), "%s/snapshots",
	    s->socket_dir);
}
