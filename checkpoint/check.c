/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - checks files, several at a time; says "corrupt" only when a second
 * read of the same unchanged file from the storage finds damage again.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/proof.h"
#include "checkpoint/trouble.h"

#define CORRUPT		HOLDFAST_CHECKPOINT_CORRUPT
#define UNREADABLE	HOLDFAST_CHECKPOINT_UNREADABLE

/* The digests of a file as a whole, unless the format's own pass found them along;
 * against those of its manifest. */
static void
finish_digests(struct input *in, const struct check *check, struct report *r,
    struct proof_file *proof)
{
	struct pass_ranges none = {0};
	struct pass_digests *d = check->digests;
	const struct manifest_file *entry = proof->entry;

	if (d != NULL && !d->done && (entry == NULL || in->size == entry->size) &&
	    !report_is_bad(r) && pass_run(in, &none, check, r) == -1)
		return;
	if (entry != NULL)
		proof_compare(proof, in, d, check);
}

static void
check_once(struct part *p, const struct check *check, bool again,
    struct report *r, struct proof_file *proof)
{
	const struct format *format = p->format;
	struct input in;
	struct item it;

	trouble_begin();
	if (item_look(&it, p->path, r) == -1)
		goto out;
	if (it.is_dir) {
		report_say(r, HOLDFAST_CHECKPOINT_UNVERIFIED,
		    "is a directory, not a file");
		goto out;
	}
	if (format == NULL && p->extents == NULL && !p->any_content &&
	    (format = format_find(&it)) == NULL)
		format = format_claimed(&it, r);
	if (report_is_bad(r) || input_open(&in, p->path, r) == -1)
		goto out;
	if (again)
		input_forget(&in);
	if (check->keep && check->digests->chunk_size == 0)
		check->digests->chunk_size = manifest_chunk_size(in.size);
	if (p->extents != NULL)
		torch_zip_check_extents(&in, p->extents, p->n_extents, check, r);
	else if (format != NULL)
		format->check(&in, check, r);
	finish_digests(&in, check, r, proof);
	if (!p->any_content)
		input_check_unchanged(&in, r);
	if (check->keep && check->digests->done) {
		p->kept_size = in.size;
		p->kept_mtime_ns = file_mtime_ns(&in.st);
	}
	input_close(&in);
out:
	(void)trouble_end(r);
	item_fini(&it);
}

static bool
is_wrong(const struct report *r, const struct proof_file *proof)
{
	return r->state == CORRUPT || proof->differs;
}

/* One read, with the digests that the manifest asks for, or that one needs. */
static void
check_digests(struct part *p, const struct check *base, bool again,
    struct report *r, struct proof_file *proof)
{
	const struct manifest_file *entry = proof->entry;
	struct pass_digests d = {0};
	struct check check = *base;

	*proof = (struct proof_file){ .entry = entry };
	check.keep = check.keep && !check.structure_only;
	if ((entry != NULL && !check.structure_only) || check.keep) {
		d.chunk_size = entry != NULL ? entry->chunk_size : 0;
		d.want_whole = d.chunk_size == 0 || check.keep;
		check.digests = &d;
	}
	check_once(p, &check, again, r, proof);
	if (check.keep) {
		free(p->kept.chunks);
		p->kept = d;
	} else {
		free(d.chunks);
	}
}

static void
check_part(struct part *p, const struct check *check, struct report *r,
    struct proof_file *proof)
{
	struct proof_file first_proof;
	struct report second;
	struct check silent = *check;

	if (proof->missing)
		return;
	check_digests(p, check, false, r, proof);
	if (!is_wrong(r, proof))
		return;
	first_proof = *proof;
	silent.progress = NULL;
	report_init(&second);
	check_digests(p, &silent, true, &second, proof);
	if (!is_wrong(&second, proof)) {
		char *first = r->reason;

		r->reason = NULL;
		r->state = second.state;
		if (second.state < UNREADABLE)
			report_say(r, UNREADABLE, "two reads differ: the first one "
			    "said: %s", first != NULL ? first : first_proof.differs ?
			    "not as in its manifest" : "corrupt");
		else
			report_merge(r, &second, NULL);
		free(first);
	}
	report_fini(&second);
}

struct pool {
	struct checkpoint		*list;
	size_t				 n;
	const struct checkpoint_options	*opts;
	/* part i of checkpoint c is task first[c] + i */
	size_t				*first;
	struct report			*reports;	/* one a task */
	struct proof_file		*proof_files;	/* one a task */
	struct proof			*proofs;	/* one a checkpoint */
	size_t				 n_tasks;
	atomic_size_t			 next;
	_Atomic uint64_t		 bytes;
	pthread_mutex_t			 lock;
	pthread_cond_t			 changed;
	size_t				*left;		/* tasks of each checkpoint */
	struct crew			 crew;
};

static void
pool_progress(void *arg, uint64_t bytes)
{
	struct pool *pool = arg;
	uint64_t total = atomic_fetch_add(&pool->bytes, bytes) + bytes;

	pool->opts->progress(pool->opts->progress_arg, total);
}

/* The checkpoint of a task. */
static size_t
owner(const struct pool *pool, size_t task)
{
	size_t lo = 0, hi = pool->n - 1, mid;

	while (lo < hi) {
		mid = lo + (hi - lo + 1) / 2;
		if (pool->first[mid] <= task)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}

/* Its own parts, then those that only its manifest knows. */
static struct part *
part_of(const struct pool *pool, size_t c, size_t i)
{
	struct parts *parts = &pool->list[c].parts;

	return i < parts->n ? &parts->list[i] :
	    &pool->proofs[c].extra.list[i - parts->n];
}

static void *
pool_work(void *arg)
{
	struct pool *pool = arg;
	struct check check = { .structure_only = pool->opts->structure_only,
	    .keep = pool->opts->keep_digests, .crew = &pool->crew };
	size_t task, c;

	if (posix_memalign((void **)&check.block, 4096, PASS_BLOCK) != 0)
		check.block = NULL;
	if (pool->opts->progress != NULL) {
		check.progress = pool_progress;
		check.progress_arg = pool;
	}
	while ((task = atomic_fetch_add(&pool->next, 1)) < pool->n_tasks) {
		c = owner(pool, task);
		if (check.block == NULL)
			report_say(&pool->reports[task],
			    HOLDFAST_CHECKPOINT_UNVERIFIED, "out of memory");
		else
			check_part(part_of(pool, c, task - pool->first[c]), &check,
			    &pool->reports[task], &pool->proof_files[task]);
		pthread_mutex_lock(&pool->lock);
		if (--pool->left[c] == 0)
			pthread_cond_broadcast(&pool->changed);
		pthread_mutex_unlock(&pool->lock);
	}
	free(check.block);
	crew_help(&pool->crew);
	return NULL;
}

/* All parts of a checkpoint are checked: one report out of theirs. */
static void
merge(struct pool *pool, size_t index)
{
	struct checkpoint *c = &pool->list[index];
	bool many = c->is_dir || (c->format != NULL && c->format->file_set);
	const struct proof *proof = &pool->proofs[index];
	size_t i, first = pool->first[index], n = pool->first[index + 1] - first;

	for (i = 0; i < n; i++) {
		const struct report *r = &pool->reports[first + i];
		const char *name = part_of(pool, index, i)->name;

		report_merge(&c->report, r, many ? name : NULL);
		if (!many || c->format == NULL || !c->format->same_step ||
		    r->step == REPORT_UNKNOWN)
			continue;
		if (c->report.step == REPORT_UNKNOWN)
			c->report.step = r->step;
		else if (c->report.step != r->step)
			report_say(&c->report, HOLDFAST_CHECKPOINT_INCOMPLETE,
			    "%s is of step %lld, others of step %lld", name,
			    (long long)r->step, (long long)c->report.step);
	}
	/* one apart is a matter of where a trainer begins to count */
	if (c->name_step != REPORT_UNKNOWN && c->report.step != REPORT_UNKNOWN &&
	    llabs(c->name_step - c->report.step) > 1 && c->format != NULL &&
	    c->format->named_step)
		report_say(&c->report, HOLDFAST_CHECKPOINT_INCOMPLETE, "its name "
		    "tells %lld, its contents step %lld", (long long)c->name_step,
		    (long long)c->report.step);
	else if (c->name_step != REPORT_UNKNOWN &&
	    c->report.step != REPORT_UNKNOWN &&
	    llabs(c->name_step - c->report.step) > 1)
		report_note(&c->report, "its name tells %lld, its contents step "
		    "%lld", (long long)c->name_step, (long long)c->report.step);
	if (!proof->stands)
		proof_conclude(proof, c, &pool->proof_files[first], n,
		    pool->opts->structure_only);
}

/* What is known to be bad is not read, nor what a manifest still stands for. */
static int
plan_tasks(struct pool *pool, size_t i)
{
	struct checkpoint *c = &pool->list[i];
	struct proof *proof = &pool->proofs[i];

	pool->first[i] = pool->n_tasks;
	if (report_is_bad(&c->report))
		return 0;
	if (proof_load(proof, c) == -1)
		return -1;
	if (pool->opts->trust_manifest && !pool->opts->structure_only &&
	    proof->found == MANIFEST_FOUND &&
	    manifest_stands(&proof->m, c->path, c->is_dir)) {
		proof->stands = true;
		c->report.contents_read = true;
		free(c->report.note);
		c->report.note = NULL;
		report_note(&c->report, "found valid on %s, unchanged since",
		    proof->m.created);
		return 0;
	}
	pool->left[i] = c->parts.n + proof->extra.n;
	pool->n_tasks += pool->left[i];
	return 0;
}

static void
find_entries(struct pool *pool)
{
	struct proof_file *f = pool->proof_files;
	size_t i, k;

	for (i = 0; i < pool->n; i++)
		for (k = 0; k < pool->left[i]; k++, f++) {
			const struct checkpoint *c = &pool->list[i];

			f->entry = proof_entry(&pool->proofs[i], c,
			    part_of(pool, i, k));
			if (f->entry == NULL || !c->is_dir ||
			    proof_is_there(&pool->proofs[i], f->entry))
				continue;
			/* what is missing of its parts, the format says */
			f->missing = f->looked_at = k >= c->parts.n ||
			    c->format == &format_manifest;
			f->entry = f->missing ? f->entry : NULL;
		}
}

static int
pool_init(struct pool *pool)
{
	size_t i;

	crew_init(&pool->crew);
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->changed, NULL);
	pool->first = calloc(pool->n + 1, sizeof(*pool->first));
	pool->left = calloc(pool->n + 1, sizeof(*pool->left));
	pool->proofs = calloc(pool->n + 1, sizeof(*pool->proofs));
	if (pool->first == NULL || pool->left == NULL || pool->proofs == NULL)
		return -1;
	for (i = 0; i < pool->n; i++)
		if (plan_tasks(pool, i) == -1)
			return -1;
	pool->first[pool->n] = pool->n_tasks;
	pool->reports = calloc(pool->n_tasks + 1, sizeof(*pool->reports));
	pool->proof_files = calloc(pool->n_tasks + 1,
	    sizeof(*pool->proof_files));
	if (pool->reports == NULL || pool->proof_files == NULL)
		return -1;
	find_entries(pool);
	for (i = 0; i < pool->n_tasks; i++)
		report_init(&pool->reports[i]);
	return 0;
}

static void
pool_fini(struct pool *pool)
{
	size_t i;

	for (i = 0; pool->reports != NULL && i < pool->n_tasks; i++)
		report_fini(&pool->reports[i]);
	for (i = 0; pool->proofs != NULL && i < pool->n; i++)
		proof_fini(&pool->proofs[i]);
	free(pool->reports);
	free(pool->proof_files);
	free(pool->proofs);
	free(pool->first);
	free(pool->left);
	pthread_mutex_destroy(&pool->lock);
	pthread_cond_destroy(&pool->changed);
	crew_fini(&pool->crew);
}

/* What threads can share: files, and the units of large ones. */
static size_t
count_work(const struct pool *pool)
{
	size_t i, n = pool->n_tasks;

	for (i = 0; !pool->opts->structure_only && i < pool->n; i++)
		if (pool->left[i] > 0 && pool->list[i].size_bytes > 0)
			n += (size_t)((uint64_t)pool->list[i].size_bytes /
			    PASS_UNIT);
	return n;
}

static int
thread_count(const struct checkpoint_options *opts, size_t tasks)
{
	long n = opts->threads > 0 ? opts->threads :
	    sysconf(_SC_NPROCESSORS_ONLN);

	if (opts->threads <= 0 && n > 4)
		n = 4;
	if (n > CHECKPOINT_THREADS_MAX)
		n = CHECKPOINT_THREADS_MAX;
	if (n < 1 || tasks <= 1)
		n = 1;
	return (size_t)n > tasks ? (int)(tasks ? tasks : 1) : (int)n;
}

/* The crew waits for all that count as working, so they count before they run. */
static int
start_threads(struct pool *pool, pthread_t *threads, int want)
{
	int made;

	if (want < 2)
		return 0;
	pool->crew.working = (size_t)want;
	for (made = 0; made < want; made++)
		if (pthread_create(&threads[made], NULL, pool_work, pool) != 0)
			break;
	pthread_mutex_lock(&pool->crew.lock);
	pool->crew.working -= (size_t)(want - made);
	pthread_cond_broadcast(&pool->crew.changed);
	pthread_mutex_unlock(&pool->crew.lock);
	return made;
}

int
checkpoint_check(struct checkpoint *list, size_t n,
    const struct checkpoint_options *opts,
    void (*done)(void *, struct checkpoint *), void *done_arg, struct err *err)
{
	struct pool pool = { .list = list, .n = n, .opts = opts };
	pthread_t threads[CHECKPOINT_THREADS_MAX];
	int want, made, rc = -1;
	size_t i;

	if (n == 0)
		return 0;
	if (pool_init(&pool) == -1) {
		err_memory(err);
		goto out;
	}
	want = thread_count(opts, count_work(&pool));
	made = start_threads(&pool, threads, want);
	if (made == 0) {
		pool.crew.working = 1;
		pool_work(&pool);
	}
	for (i = 0; i < n; i++) {
		pthread_mutex_lock(&pool.lock);
		while (pool.left[i] > 0)
			pthread_cond_wait(&pool.changed, &pool.lock);
		pthread_mutex_unlock(&pool.lock);
		if (!report_is_bad(&list[i].report))
			merge(&pool, i);
		if (done != NULL)
			done(done_arg, &list[i]);
	}
	while (made-- > 0)
		pthread_join(threads[made], NULL);
	rc = 0;
out:
	pool_fini(&pool);
	return rc;
}
