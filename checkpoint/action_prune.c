/* SPDX-License-Identifier: Apache-2.0 */
/*
 * action_prune.c - holdfast checkpoint prune DIR: groups the checkpoints of a save
 * directory by step, has prune.c decide, and removes: one rename to a trash folder beside
 * the save directory first, so that nothing half removed is ever seen in it.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/text.h"
#include "checkpoint/action.h"
#include "checkpoint/beside.h"
#include "checkpoint/print.h"
#include "checkpoint/prune.h"
#include "checkpoint/select.h"
#include "checkpoint/stage_copy.h"
#include "checkpoint/tracker.h"

#define TRASH_PREFIX	".trash-"
#define SPIKES_MAX	1000
#define STATE_MAX	((size_t)64 << 20)	/* bytes of a trainer_state.json */
#define VALID		HOLDFAST_CHECKPOINT_VALID

struct prune {
	const struct action_values	*o;
	const char			*dir;
	struct checkpoints		 cs;
	struct prune_step		*steps;
	size_t				 n;
	int64_t				*spikes;
	size_t				 n_spikes;
	const char			*refused;
	int64_t				 now_ns;
	uint64_t			 freed;
	struct err			*err;
};

/* "1000,2500" */
static int
read_spikes(struct prune *p, struct err *err)
{
	char *text, *word, *next;
	int64_t step;
	int rc = 0;

	if (p->o->spikes == NULL)
		return 0;
	if ((text = strdup(p->o->spikes)) == NULL ||
	    (p->spikes = calloc(SPIKES_MAX, sizeof(*p->spikes))) == NULL) {
		free(text);
		return err_memory(err);
	}
	for (next = text; rc == 0 && (word = strsep(&next, ",")) != NULL; )
		if (p->n_spikes == SPIKES_MAX ||
		    text_parse_int(word, 0, 1ll << 53, &step) == -1)
			rc = err_set(err, ERR_USAGE, "--before-spike takes steps "
			    "with commas between, not \"%s\"", p->o->spikes);
		else
			p->spikes[p->n_spikes++] = step;
	free(text);
	return rc;
}

static int
compare(const void *a, const void *b)
{
	const struct checkpoint *x = a, *y = b;
	int64_t s = checkpoint_step(x), t = checkpoint_step(y);

	return s != t ? (s > t ? -1 : 1) : strcmp(x->path, y->path);
}

/* The worst for a step of several files; what says "do not touch" comes first. */
static int
rank_of(enum holdfast_checkpoint_state state)
{
	switch (state) {
	case HOLDFAST_CHECKPOINT_VALID:
		return 0;
	case HOLDFAST_CHECKPOINT_INCOMPLETE:
		return 1;
	case HOLDFAST_CHECKPOINT_CORRUPT:
		return 2;
	case HOLDFAST_CHECKPOINT_UNVERIFIED:
		return 3;
	case HOLDFAST_CHECKPOINT_UNREADABLE:
		return 4;
	case HOLDFAST_CHECKPOINT_NON_FINITE:
		return 5;
	}
	return 3;
}

static void
add_to_step(struct prune *p, struct prune_step *s, const struct checkpoint *c,
    const struct names *targets)
{
	const char *name = select_name(p->dir, c->path);

	if (rank_of(c->report.state) > rank_of(s->state))
		s->state = c->report.state;
	if (c->mtime_ns == REPORT_UNKNOWN || p->now_ns - c->mtime_ns <
	    p->o->quiet_ms * NS_PER_MS)
		s->held = true;
	if (c->mtime_ns != REPORT_UNKNOWN && c->mtime_ns > s->mtime_ns)
		s->mtime_ns = c->mtime_ns;
	if (names_has(targets, name))
		s->pinned = true;
	s->n++;
}

/* Not "best.pt", nor a second copy, nor a snapshot that is overwritten in place. */
static bool
is_unnamed(const struct prune *p, const struct checkpoint *c)
{
	const char *name = select_name(p->dir, c->path);

	return strchr(name, '/') != NULL || tracker_is_copy(name) ||
	    (c->is_dir ? name_folder_step(name) : name_step(name)) ==
	    REPORT_UNKNOWN;
}

/* cs is sorted by step; what has no step in its name is a group of its own. */
static int
group(struct prune *p, const struct names *targets, struct err *err)
{
	struct prune_step *s = NULL;
	size_t i;
	bool unnamed;

	if ((p->steps = calloc(p->cs.n + 1, sizeof(*p->steps))) == NULL)
		return err_memory(err);
	for (i = 0; i < p->cs.n; i++) {
		const struct checkpoint *c = &p->cs.list[i];

		unnamed = is_unnamed(p, c);
		if (s == NULL || s->step != checkpoint_step(c) || s->unnamed ||
		    unnamed) {
			s = &p->steps[p->n++];
			s->step = checkpoint_step(c);
			s->first = i;
			s->mtime_ns = REPORT_UNKNOWN;
			s->state = VALID;
			s->unnamed = unnamed;
		}
		add_to_step(p, s, c, targets);
	}
	return 0;
}

/* transformers loads the best one at the very end, by the path in the newest state. */
static int
add_best(const struct prune *p, struct names *targets, struct err *err)
{
	const char *best, *slash;
	struct buf text = {0};
	cJSON *json = NULL;
	char *path;
	size_t i;
	int rc = 0;

	for (i = 0; json == NULL && i < p->cs.n; i++) {
		if ((path = file_join(p->cs.list[i].path, "trainer_state.json"))
		    == NULL)
			return err_memory(err);
		buf_clear(&text);
		if (p->cs.list[i].is_dir && file_read(path, STATE_MAX, &text, NULL)
		    == 0 && text.len > 0)
			(void)json_parse(text.data, text.len, &json, NULL);
		free(path);
	}
	best = json != NULL ? json_str(json, "best_model_checkpoint", NULL) : NULL;
	if (best != NULL) {
		slash = strrchr(best, '/');
		if (names_add(targets, slash != NULL ? slash + 1 : best) == -1)
			rc = err_memory(err);
	}
	cJSON_Delete(json);
	buf_fini(&text);
	return rc;
}

static int
find(struct prune *p, struct err *err)
{
	struct names targets = {0};
	struct trackers ts = {0};
	size_t i;
	int rc = -1;

	if (checkpoints_find(&p->cs, p->dir, (int)p->o->jobs, err) == -1 ||
	    trackers_read(&ts, p->dir, err) == -1)
		goto out;
	for (i = 0; i < ts.n; i++)
		if (names_add(&targets, ts.list[i].target) == -1) {
			err_memory(err);
			goto out;
		}
	if (p->cs.n > 0)
		qsort(p->cs.list, p->cs.n, sizeof(*p->cs.list), compare);
	if (add_best(p, &targets, err) == -1)
		goto out;
	names_sort(&targets);
	rc = group(p, &targets, err);
out:
	trackers_fini(&ts);
	names_fini(&targets);
	return rc;
}

/* All files of the step, to the last byte. */
static int
verify(void *arg, struct prune_step *s)
{
	struct prune *p = arg;
	struct checkpoint_options opts = { .threads = (int)p->o->jobs };
	size_t i;

	for (i = s->first; i < s->first + s->n; i++) {
		struct checkpoint *c = &p->cs.list[i];

		if (c->report.state == VALID && !c->report.contents_read &&
		    checkpoint_check(c, 1, &opts, NULL, NULL, p->err) == -1)
			return -1;
		if (rank_of(c->report.state) > rank_of(s->state))
			s->state = c->report.state;
	}
	return 0;
}

static int
decide(struct prune *p)
{
	struct prune_policy policy = { .keep_last = p->o->keep_last,
	    .keep_every = p->o->keep_every, .keep_after_ns = REPORT_UNKNOWN,
	    .spikes = p->spikes, .n_spikes = p->n_spikes, .verify = verify,
	    .arg = p };

	if (p->o->keep_newer_ms != -1)
		policy.keep_after_ns = p->now_ns - p->o->keep_newer_ms * NS_PER_MS;
	return prune_decide(p->steps, p->n, &policy, &p->refused);
}

/* Moves it out in one step, then removes it. */
static int
remove_one(struct prune *p, const char *trash, const struct checkpoint *c,
    struct err *err)
{
	char *real = NULL, *to = NULL, *from = NULL;
	const char *name;
	int rc = -1;

	if ((real = beside_split(c->path, &name, err)) == NULL)
		return -1;
	if ((to = file_join(trash, name)) == NULL ||
	    (from = file_join(real, name)) == NULL) {
		err_memory(err);
		goto out;
	}
	if (beside_move(from, to, err) == -1) {
		/* the trainer's own retention was faster */
		rc = err->errnum == ENOENT ? 0 : -1;
		goto out;
	}
	if (c->size_bytes != REPORT_UNKNOWN)
		p->freed += (uint64_t)c->size_bytes;
	if (beside_follow(from, to, err) == 0)
		rc = stage_remove(to, err);
out:
	free(real);
	free(to);
	free(from);
	return rc;
}

/* From the oldest on. */
static int
remove_all(struct prune *p, struct err *err)
{
	char *trash = beside_path(p->dir, TRASH_PREFIX, "", err);
	size_t i, k;
	int rc;

	if (trash == NULL)
		return -1;
	rc = beside_make(p->dir, trash, err);
	/* What an earlier prune that was killed had moved out goes first. */
	if (rc == 0)
		rc = stage_remove_inside(trash, "", err);
	for (i = p->n; rc == 0 && i-- > 0; )
		for (k = 0; rc == 0 && p->steps[i].remove && k < p->steps[i].n;
		    k++)
			rc = remove_one(p, trash,
			    &p->cs.list[p->steps[i].first + k], err);
	if (rc == 0)
		rc = stage_remove_inside(trash, "", err); /* what lay beside */
	(void)rmdir(trash);
	free(trash);
	return rc;
}

static int
add_step(cJSON *array, const struct prune *p, const struct prune_step *s)
{
	size_t i;

	for (i = s->first; i < s->first + s->n; i++) {
		const struct checkpoint *c = &p->cs.list[i];
		cJSON *json = cJSON_CreateObject();

		if (json == NULL || !cJSON_AddItemToArray(array, json)) {
			cJSON_Delete(json);
			return -1;
		}
		if (json_add_text(json, "path", c->path) == -1 ||
		    json_add_int(json, "step", s->step) == -1 ||
		    json_add_text(json, "state", print_state(c, s->remove)) ==
		    -1 || json_add_int(json, "size", c->size_bytes) == -1 ||
		    json_add_text(json, "why", s->why) == -1)
			return -1;
	}
	return 0;
}

static int
print(const struct prune *p)
{
	cJSON *json = cJSON_CreateObject(), *removed, *kept;
	size_t i;

	if (json == NULL || json_add_text(json, "dir", p->dir) == -1 ||
	    cJSON_AddBoolToObject(json, "dry_run", p->o->dry_run) == NULL ||
	    json_add_text(json, "refused", p->refused) == -1 ||
	    json_add_int(json, "freed", (int64_t)p->freed) == -1 ||
	    (removed = cJSON_AddArrayToObject(json, "removed")) == NULL ||
	    (kept = cJSON_AddArrayToObject(json, "kept")) == NULL)
		goto fail;
	for (i = 0; i < p->n; i++)
		if (add_step(p->steps[i].remove ? removed : kept, p, &p->steps[i])
		    == -1)
			goto fail;
	return print_json_line(json);
fail:
	cJSON_Delete(json);
	return -1;
}

static void
show(const struct prune *p)
{
	const char *removed = p->o->dry_run ? "would remove" : "removed";
	size_t i, k, n_removed = 0;

	for (i = 0; i < p->n; i++) {
		const struct prune_step *s = &p->steps[i];
		char step[TEXT_SPAN_MAX] = "-";

		if (s->step != REPORT_UNKNOWN)
			text_format_count(s->step, step);
		n_removed += s->remove;
		for (k = s->first; k < s->first + s->n; k++) {
			const struct checkpoint *c = &p->cs.list[k];

			printf("%-12s %11s  %-10s ", s->remove ? removed : "kept",
			    step, holdfast_checkpoint_state_name(c->report.state));
			print_clean(stdout, select_name(p->dir, c->path));
			if (s->why != NULL)
				printf("  %s", s->why);
			putchar('\n');
		}
	}
	if (p->refused != NULL)
		printf("nothing is removed: %s; look with `holdfast checkpoint list "
		    "--full'\n", p->refused);
	else
		printf("%s %zu of %zu steps, %.1f MB\n", removed, n_removed, p->n,
		    (double)p->freed / 1e6);
}

static void
count(struct prune *p)
{
	size_t i, k;

	for (i = 0; i < p->n; i++)
		for (k = 0; p->steps[i].remove && k < p->steps[i].n; k++) {
			int64_t size =
			    p->cs.list[p->steps[i].first + k].size_bytes;

			p->freed += size > 0 ? (uint64_t)size : 0;
		}
}

int
action_prune(const struct verb *v, const struct action_values *o, int n,
    char **paths)
{
	struct err err = {0};
	struct prune p = { .o = o, .dir = paths[0], .err = &err,
	    .now_ns = clock_wall_ns(&clock_system) };
	int rc = EXIT_USAGE;

	(void)n;
	if (o->keep_last == -1)
		err_set(&err, ERR_USAGE, "prune: say how many valid steps to keep: "
		    "--keep-last K");
	else if (o->keep_last < PRUNE_LAST_LEAST)
		err_set(&err, ERR_USAGE, "prune: --keep-last %" PRId64 ": keep at "
		    "least %d, since the newest may be damaged by the time it is "
		    "needed", o->keep_last, PRUNE_LAST_LEAST);
	else if (read_spikes(&p, &err) == 0 && find(&p, &err) == 0 &&
	    decide(&p) == 0) {
		rc = p.refused != NULL ? EXIT_NEGATIVE : EXIT_OK;
		if (o->dry_run)
			count(&p);
		else if (p.refused == NULL && remove_all(&p, &err) == -1)
			rc = EXIT_USAGE;
		if (rc != EXIT_USAGE && !o->json)
			show(&p);
		else if (rc != EXIT_USAGE && print(&p) == -1)
			rc = action_fail_memory(v);
	}
	if (rc == EXIT_USAGE && err.code != ERR_NONE)
		verb_fail(v, &err);
	free(p.spikes);
	free(p.steps);
	checkpoints_fini(&p.cs);
	return rc;
}
