/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.c - decides which checkpoint is copied, when, and what may go from the fast
 * directory afterwards.
 *
 * A checkpoint is copied when its format calls it complete, all its bytes were
 * read and found good, and nothing in it changed while that was done.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/stage.h"
#include "checkpoint/stage_copy.h"
#include "checkpoint/stage_judged.h"
#include "checkpoint/stage_lock.h"
#include "checkpoint/stage_manifest.h"
#include "checkpoint/stage_nodes.h"
#include "checkpoint/stage_notes.h"
#include "checkpoint/stage_publish.h"

#define TRASH_PREFIX	".trash-"

struct stage {
	struct stage_options	 o;
	char			*incoming;	/* TO/.incoming */
	int			 lock_fd[2];
	struct stage_copy	 copy;
	struct judged_list	 judged;
	struct notes		 notes;
};

int
stage_open(const struct stage_options *o, struct stage **out, struct err *err)
{
	struct stage *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return err_memory(err);
	s->o = *o;
	s->lock_fd[0] = s->lock_fd[1] = -1;
	if (file_mkdirs(o->from, 0700, err) == -1 ||
	    file_mkdirs(o->to, 0777, err) == -1)
		goto fail;
	if (file_is_same(o->from, o->to)) {
		err_set(err, ERR_USAGE, "%s is both the fast and the durable "
		    "directory", o->to);
		goto fail;
	}
	if ((s->incoming = file_join(o->to, STAGE_INCOMING)) == NULL) {
		err_memory(err);
		goto fail;
	}
	if (file_mkdirs(s->incoming, 0777, err) == -1 ||
	    stage_lock_take(o->from, &s->lock_fd[0], err) == -1 ||
	    (o->nodes <= 1 &&
	    (stage_lock_take(s->incoming, &s->lock_fd[1], err) == -1 ||
	    publish_recover(s->incoming, o->to, err) == -1)) ||
	    (o->nodes > 1 && nodes_clear(s->incoming, o->node, err) == -1) ||
	    stage_copy_init(&s->copy, o->bytes_per_s, o->cancel, err) == -1)
		goto fail;
	*out = s;
	return 0;
fail:
	stage_close(s);
	return -1;
}

void
stage_close(struct stage *s)
{
	size_t i;

	if (s == NULL)
		return;
	stage_copy_fini(&s->copy);
	notes_fini(&s->notes);
	judged_fini(&s->judged);
	free(s->incoming);
	for (i = 0; i < 2; i++)
		if (s->lock_fd[i] != -1)
			close(s->lock_fd[i]);
	free(s);
}

static void
tell(struct stage *s, enum stage_kind kind, const char *name,
    const struct checkpoint *c, const char *why, int64_t ms)
{
	struct stage_event e = { .kind = kind, .name = name, .why = why,
	    .step = c != NULL ? checkpoint_step(c) : REPORT_UNKNOWN, .ms = ms };

	if (c != NULL && c->size_bytes != REPORT_UNKNOWN)
		e.bytes = (uint64_t)c->size_bytes;
	if (s->o.tell != NULL)
		s->o.tell(s->o.tell_arg, &e);
}

static const char *
name_in(const struct stage *s, const struct checkpoint *c)
{
	return file_inside(s->o.from, c->path);
}

static struct judged *
find_judged(struct stage *s, const struct checkpoint *c)
{
	return judged_find(&s->judged, name_in(s, c), c);
}

static bool
is_judged(struct stage *s, const struct checkpoint *c, enum judged_as what)
{
	const struct judged *j = find_judged(s, c);

	return j != NULL && j->what == what;
}

static void
judge(struct stage *s, const struct checkpoint *c, enum judged_as what)
{
	judged_set(&s->judged, name_in(s, c), c, what);
}

/* What is gone from FROM need not be remembered. */
static void
forget(struct stage *s, const struct checkpoints *cs)
{
	size_t i;

	judged_begin(&s->judged);
	for (i = 0; i < cs->n; i++)
		judged_keep(&s->judged, name_in(s, &cs->list[i]));
	judged_end(&s->judged);
}

static int
list(const struct stage *s, struct checkpoints *cs, struct err *err)
{
	return s->o.nodes > 1 ? nodes_list(cs, s->o.from, err) :
	    checkpoints_list(cs, s->o.from, err);
}

static bool
is_quiet(const struct stage *s, const struct checkpoint *c)
{
	int64_t now = clock_wall_ns(&clock_system);

	/* A file ends with what makes it whole. */
	return !c->is_dir || c->mtime_ns == REPORT_UNKNOWN ||
	    now - c->mtime_ns > s->o.quiet_ms * NS_PER_MS ||
	    c->mtime_ns > now;	/* a clock that was set back */
}

/* One that lies here as a whole, or another node's part is not to be waited for. */
static bool
is_part(const struct stage *s, const struct checkpoint *c)
{
	return s->o.nodes > 1 && c->is_dir;
}

/* Brought once, it waits in TO for the others. */
static int
bring(struct stage *s, const struct checkpoint *c, const char *work,
    const char *place, struct err *err)
{
	int rc;

	if (!is_judged(s, c, JUDGED_BROUGHT)) {
		if (nodes_bring(&s->copy, c, work, s->o.node, err) == -1)
			return -1;
		judge(s, c, JUDGED_BROUGHT);
	}
	rc = nodes_publish(work, place, &s->o, err);
	return rc == -1 ? -1 : rc == 0;
}

/* 0 when it is durable, 1 when other nodes' parts are waited for, -1 on failure. */
static int
copy_one(struct stage *s, const struct checkpoint *c, struct err *err)
{
	const char *name = name_in(s, c);
	char *work = publish_incoming(s->incoming, name);
	char *place = file_join(s->o.to, name);
	int rc = -1;

	if (work == NULL || place == NULL) {
		err_memory(err);
		goto out;
	}
	if (is_part(s, c)) {
		rc = bring(s, c, work, place, err);
		goto out;
	}
	if (stage_remove(work, err) == -1)
		goto out;
	if (stage_copy_run(&s->copy, c->path, work, err) == -1 ||
	    publish_move(work, place, err) == -1) {
		/* Half a copy takes room that the next try needs; what a whole one
		 * has replaced stays until that is synced. */
		if (!publish_is_same(c->path, place))
			(void)stage_remove(work, NULL);
		goto out;
	}
	stage_manifest(&s->copy, c, place);
	rc = 0;
out:
	free(work);
	free(place);
	return rc;
}

static enum publish_there
look_there(struct stage *s, const struct checkpoint *c)
{
	char *place = file_join(s->o.to, name_in(s, c));
	enum publish_there there = place != NULL ? publish_look(c->path, place) :
	    PUBLISH_ABSENT;

	free(place);
	return there;
}

/* It is in TO by an earlier process, or a try of which only the last sync failed. */
static int
settle(struct stage *s, const struct checkpoint *c, struct err *err)
{
	char *work = publish_incoming(s->incoming, name_in(s, c));
	char *place = file_join(s->o.to, name_in(s, c));
	bool untold = is_judged(s, c, JUDGED_MOVED);
	int rc = work == NULL || place == NULL ? err_memory(err) :
	    publish_settle(is_part(s, c) ? NULL : work, place, err);

	free(work);
	free(place);
	if (rc == -1)
		return -1;
	judge(s, c, JUDGED_DURABLE);
	if (untold)
		tell(s, STAGE_DURABLE, name_in(s, c), c, NULL, 0);
	return 0;
}

/* Checks all of it; says why it is not to be copied, NULL when it is. */
static const char *
objection(struct checkpoint *c, bool is_part, struct stage_pass *pass,
    bool *final, struct err *err)
{
	struct checkpoint_options opts = { .threads = 1 };

	*final = false;
	if ((is_part ? nodes_check_part(c, err) : checkpoint_check(c, 1, &opts,
	    NULL, NULL, err)) == -1)
		return err->text;
	switch (c->report.state) {
	case HOLDFAST_CHECKPOINT_VALID:
		return NULL;
	case HOLDFAST_CHECKPOINT_UNVERIFIED:
		if (c->format != NULL || is_part)
			return NULL;
		break;
	case HOLDFAST_CHECKPOINT_INCOMPLETE:
		pass->waiting++;
		return "";
	case HOLDFAST_CHECKPOINT_UNREADABLE:
		return c->report.reason;
	default:
		break;
	}
	*final = true;
	return c->report.reason ? c->report.reason : "not recognised";
}

/* 0 when the next one may be looked at, -1 to end the round. */
static int
drain(struct stage *s, struct checkpoint *c, struct stage_pass *pass,
    struct err *err)
{
	int64_t start = clock_mono_ns(&clock_system);
	struct err why = {0};
	const char *text = NULL;
	enum publish_there there;
	bool final = false;
	int rc;

	if (c->size_bytes != REPORT_UNKNOWN &&
	    (uint64_t)c->size_bytes > pass->largest)
		pass->largest = (uint64_t)c->size_bytes;
	if (is_judged(s, c, JUDGED_DURABLE) || is_judged(s, c, JUDGED_REFUSED))
		return 0;
	if (!is_quiet(s, c)) {
		pass->waiting++;
		pass->unquiet = true;
		return 0;
	}
	if ((there = look_there(s, c)) == PUBLISH_THERE && settle(s, c, &why) == -1)
		goto failed;
	if (there != PUBLISH_ABSENT)
		return 0;
	if (find_judged(s, c) == NULL)
		text = objection(c, is_part(s, c), pass, &final, &why);
	if (text != NULL) {
		if (final)
			judge(s, c, JUDGED_REFUSED);
		if (*text != '\0')
			tell(s, final ? STAGE_REFUSED : STAGE_FAILED,
			    name_in(s, c), c, text, 0);
		pass->failed += *text != '\0' && !final;
		return 0;
	}
	if ((rc = copy_one(s, c, &why)) == 1) {
		pass->waiting++;
		return 0;
	}
	if (rc == 0) {
		judge(s, c, JUDGED_DURABLE);
		tell(s, STAGE_DURABLE, name_in(s, c), c, NULL,
		    (clock_mono_ns(&clock_system) - start) / NS_PER_MS);
		return 0;
	}
	if (s->o.cancel != NULL && atomic_load(s->o.cancel)) {
		*err = why;
		return -1;
	}
	if (look_there(s, c) == PUBLISH_THERE)
		judge(s, c, JUDGED_MOVED);
failed:
	pass->failed++;
	tell(s, STAGE_FAILED, name_in(s, c), c, why.text, 0);
	return 0;
}

static bool
is_durable(struct stage *s, const struct checkpoint *c)
{
	return is_judged(s, c, JUDGED_DURABLE);
}

/* First out of sight, then gone: a removal that is interrupted leaves nothing that
 * looks like a checkpoint. */
static int
drop(struct stage *s, const struct checkpoint *c, const char *why,
    struct err *err)
{
	char *trash;
	int rc;

	if (asprintf(&trash, "%s/%s%lld", s->o.from, TRASH_PREFIX,
	    (long long)clock_wall_ns(&clock_system)) == -1)
		return err_memory(err);
	if (rename(c->path, trash) == -1)
		rc = errno == ENOENT ? 0 : err_errno(err, "cannot rename %s",
		    c->path);
	else if ((rc = stage_remove(trash, err)) == 0)
		tell(s, STAGE_DROPPED, name_in(s, c), c, why, 0);
	if (rc == 0)
		stage_manifest_drop(c);
	free(trash);
	return rc;
}

static void
drop_durable(struct stage *s, const struct checkpoints *cs, int64_t keep,
    struct stage_pass *pass)
{
	struct err err = {0};
	int64_t kept = 0;
	size_t i;

	/* what an earlier round could not remove */
	if (stage_remove_inside(s->o.from, TRASH_PREFIX, &err) == -1) {
		pass->failed++;
		tell(s, STAGE_FAILED, TRASH_PREFIX, NULL, err.text, 0);
	}
	for (i = 0; i < cs->n; i++) {	/* newest first */
		if (!is_durable(s, &cs->list[i]) || kept++ < keep)
			continue;
		if (drop(s, &cs->list[i], "durable", &err) == -1) {
			pass->failed++;
			tell(s, STAGE_FAILED, name_in(s, &cs->list[i]),
			    &cs->list[i], err.text, 0);
		}
	}
}

/* The trackers were read before the checkpoints were listed: what they name was
 * complete by then.  One that names what is not durable stays as it is in TO. */
static bool
may_write(struct stage *s, const struct note *n,
    const struct checkpoints *cs)
{
	size_t i;

	for (i = 0; i < cs->n; i++)
		if (!is_durable(s, &cs->list[i]) &&
		    notes_mention(n, name_in(s, &cs->list[i]),
		    checkpoint_step(&cs->list[i])))
			return false;
	return true;
}

static void
write_notes(struct stage *s, const struct checkpoints *cs,
    struct stage_pass *pass)
{
	struct err err = {0};
	bool any = false;
	size_t i;

	if (s->notes.unread != NULL) {
		pass->failed++;
		tell(s, STAGE_FAILED, s->notes.unread, NULL, s->notes.why.text, 0);
	}
	for (i = 0; i < cs->n; i++)
		any |= is_durable(s, &cs->list[i]);
	for (i = 0; i < s->notes.n; i++) {
		const struct note *n = &s->notes.list[i];

		/* what it names may be gone from here since it could not be written */
		if (may_write(s, n, cs) && (any || notes_are_due(n, s->o.to)) &&
		    notes_write(n, s->o.to, &err) == -1) {
			pass->failed++;
			tell(s, STAGE_FAILED, n->name, NULL, err.text, 0);
		}
	}
}

/* Before anything was staged, those of earlier runs tell what a save takes. */
static uint64_t
largest_durable(const struct stage *s)
{
	struct checkpoints cs = {0};
	uint64_t largest = 0;
	size_t i;

	if (checkpoints_list(&cs, s->o.to, NULL) == 0)
		for (i = 0; i < cs.n; i++)
			if (cs.list[i].size_bytes != REPORT_UNKNOWN &&
			    (uint64_t)cs.list[i].size_bytes > largest)
				largest = (uint64_t)cs.list[i].size_bytes;
	checkpoints_fini(&cs);
	return largest;
}

int
stage_run(struct stage *s, struct stage_pass *pass, struct err *err)
{
	struct checkpoints cs = {0};
	size_t i;
	int rc = -1;

	*pass = (struct stage_pass){ .largest = pass->largest > 0 ?
	    pass->largest : largest_durable(s),
	    .started_ns = clock_wall_ns(&clock_system) };
	notes_fini(&s->notes);
	if (notes_read(&s->notes, s->o.from, pass->started_ns -
	    s->o.quiet_ms * NS_PER_MS, err) == -1 ||
	    list(s, &cs, err) == -1)
		goto out;
	for (i = cs.n; i > 0; i--)
		if (drain(s, &cs.list[i - 1], pass, err) == -1)
			goto out;
	forget(s, &cs);
	pass->unquiet |= s->notes.young;
	write_notes(s, &cs, pass);
	drop_durable(s, &cs, s->o.keep, pass);
	rc = 0;
out:
	checkpoints_fini(&cs);
	return rc;
}

static bool
is_older(const char *path, int64_t since_ns)
{
	struct stat st;

	return lstat(path, &st) == 0 && file_mtime_ns(&st) < since_ns;
}

/* Temporary files of saves that were cut short, and earlier trash. */
static int
drop_temporary(struct stage *s, int64_t since_ns, struct err *err)
{
	struct names names = {0};
	char *path;
	size_t i;
	int rc = 0;

	if (names_read(&names, s->o.from) == -1)
		rc = err_errno(err, "cannot read %s", s->o.from);
	for (i = 0; rc == 0 && i < names.n; i++) {
		const char *name = names.list[i];

		if (strncmp(name, TRASH_PREFIX, strlen(TRASH_PREFIX)) != 0 &&
		    (name[0] == '.' || !name_is_temporary(name)))
			continue;
		if ((path = file_join(s->o.from, name)) == NULL)
			rc = err_memory(err);
		else if (is_older(path, since_ns) && (rc = stage_remove(path, err)) == 0)
			tell(s, STAGE_DROPPED, name, NULL, "never finished", 0);
		free(path);
	}
	names_fini(&names);
	return rc;
}

int
stage_drop_unfinished(struct stage *s, int64_t since_ns, struct err *err)
{
	struct checkpoint_options opts = { .structure_only = true, .threads = 1 };
	struct checkpoints cs = {0};
	struct checkpoint *c;
	size_t i;
	int rc = -1;

	if (list(s, &cs, err) == -1)
		goto out;
	for (i = 0; i < cs.n; i++) {
		c = &cs.list[i];
		if (checkpoint_check(c, 1, &opts, NULL, NULL, err) == -1)
			goto out;
		if (c->report.state == HOLDFAST_CHECKPOINT_INCOMPLETE &&
		    c->mtime_ns < since_ns &&
		    drop(s, c, "never finished", err) == -1)
			goto out;
	}
	rc = drop_temporary(s, since_ns, err);
out:
	checkpoints_fini(&cs);
	return rc;
}

/* What stands in TO as well, and what only staging needs. */
static int
clear(struct stage *s, struct err *err)
{
	char *lock = file_join(s->o.from, STAGE_LOCK_NAME), *path;
	size_t i;
	int rc = 0;

	notes_fini(&s->notes);
	if (lock == NULL)
		return err_memory(err);
	if (notes_read(&s->notes, s->o.from, INT64_MAX, err) == -1)
		rc = -1;
	for (i = 0; rc == 0 && i < s->notes.n; i++) {
		if (!notes_stand(&s->notes.list[i], s->o.to))
			continue;
		if ((path = file_join(s->o.from, s->notes.list[i].name)) == NULL)
			rc = err_memory(err);
		else
			rc = stage_remove(path, err);
		free(path);
	}
	/* Whatever else lies there stays, and the directory with it. */
	unlink(lock);
	rmdir(s->o.from);
	free(lock);
	return rc;
}

int
stage_finish(struct stage *s, struct err *err)
{
	struct stage_pass pass = {0};
	struct checkpoints cs = {0};
	size_t i, left = 0;
	int rc = -1;

	if (list(s, &cs, err) == -1)
		goto out;
	drop_durable(s, &cs, 0, &pass);
	for (i = 0; i < cs.n; i++)
		left += !is_durable(s, &cs.list[i]);
	rc = left > 0 || pass.failed > 0 ? 0 : clear(s, err);
out:
	checkpoints_fini(&cs);
	return rc;
}
