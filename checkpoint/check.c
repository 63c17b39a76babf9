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

#include "checkpoint/checkpoint.h"

#define CORRUPT		HOLDFAST_CHECKPOINT_CORRUPT
#define UNREADABLE	HOLDFAST_CHECKPOINT_UNREADABLE

static bool
is_archive(const uint8_t *head)
{
	return memcmp(head, "PK\3\4", 4) == 0;
}

/* Archives inside a file, one after the other.  Tensors that are none are fine where
 * none is: other serialisers and transforms exist. */
static void
check_extents(const struct part *p, struct input *in, const struct check *check,
    struct report *r)
{
	static const uint8_t zeroes[16];
	uint8_t head[16];
	size_t i, archives = 0, others = 0;

	for (i = 0; i < p->n_extents && !report_is_bad(r); i++) {
		const struct extent *e = &p->extents[i];

		if (e->length < sizeof(head) || e->offset > in->size ||
		    e->length > in->size - e->offset)
			continue;
		if (input_read(in, e->offset, head, sizeof(head), r) == -1)
			return;
		if (is_archive(head)) {
			archives++;
			torch_zip_check_at(in, e->offset, e->length, check, r);
		} else if (memcmp(head, zeroes, sizeof(head)) == 0) {
			report_say(r, CORRUPT, "the item at byte %llu begins with "
			    "zeroes", (unsigned long long)e->offset);
		} else if (e->tensor) {
			others++;
		}
	}
	if (others > 0 && archives > 0)
		report_say(r, CORRUPT, "%zu of its items are no archives", others);
	else if (others > 0)
		report_say(r, HOLDFAST_CHECKPOINT_UNVERIFIED,
		    "holds items of a kind that is not known");
}

static void
check_once(const struct part *p, const struct check *check, bool again,
    struct report *r)
{
	const struct format *format = p->format;
	struct input in;
	struct item it;

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
	if (p->extents != NULL)
		check_extents(p, &in, check, r);
	else if (format != NULL)
		format->check(&in, check, r);
	if (!p->any_content)
		input_check_unchanged(&in, r);
	input_close(&in);
out:
	item_fini(&it);
}

static void
check_part(const struct part *p, const struct check *check, struct report *r)
{
	struct report second;
	struct check silent = *check;

	check_once(p, check, false, r);
	if (r->state != CORRUPT)
		return;
	silent.progress = NULL;
	report_init(&second);
	check_once(p, &silent, true, &second);
	if (second.state != CORRUPT) {
		char *first = r->reason;

		r->reason = NULL;
		r->state = second.state;
		if (second.state < UNREADABLE)
			report_say(r, UNREADABLE, "two reads differ: the first one "
			    "said: %s", first != NULL ? first : "corrupt");
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
	size_t				 n_tasks;
	atomic_size_t			 next;
	_Atomic uint64_t		 bytes;
	pthread_mutex_t			 lock;
	pthread_cond_t			 changed;
	size_t				*left;		/* tasks of each checkpoint */
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

static void *
pool_work(void *arg)
{
	struct pool *pool = arg;
	struct check check = { .structure_only = pool->opts->structure_only };
	size_t task, c;

	if (posix_memalign((void **)&check.block, 4096, INPUT_BLOCK) != 0)
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
			check_part(&pool->list[c].parts.list[task -
			    pool->first[c]], &check, &pool->reports[task]);
		pthread_mutex_lock(&pool->lock);
		if (--pool->left[c] == 0)
			pthread_cond_broadcast(&pool->changed);
		pthread_mutex_unlock(&pool->lock);
	}
	free(check.block);
	return NULL;
}

/* All parts of a checkpoint are checked: one report out of theirs. */
static void
merge(struct pool *pool, size_t index)
{
	struct checkpoint *c = &pool->list[index];
	bool many = c->is_dir || (c->format != NULL && c->format->file_set);
	size_t i;

	for (i = 0; i < c->parts.n; i++) {
		const struct report *r = &pool->reports[pool->first[index] + i];

		report_merge(&c->report, r, many ? c->parts.list[i].name :
		    NULL);
		if (!many || c->format == NULL || !c->format->same_step ||
		    r->step == REPORT_UNKNOWN)
			continue;
		if (c->report.step == REPORT_UNKNOWN)
			c->report.step = r->step;
		else if (c->report.step != r->step)
			report_say(&c->report, HOLDFAST_CHECKPOINT_INCOMPLETE,
			    "%s is of step %lld, others of step %lld",
			    c->parts.list[i].name, (long long)r->step,
			    (long long)c->report.step);
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
}

static int
pool_init(struct pool *pool)
{
	size_t i;

	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->changed, NULL);
	pool->first = calloc(pool->n + 1, sizeof(*pool->first));
	pool->left = calloc(pool->n + 1, sizeof(*pool->left));
	if (pool->first == NULL || pool->left == NULL)
		return -1;
	for (i = 0; i < pool->n; i++) {
		pool->first[i] = pool->n_tasks;
		/* what is known to be bad is not read */
		pool->left[i] = report_is_bad(&pool->list[i].report) ? 0 :
		    pool->list[i].parts.n;
		pool->n_tasks += pool->left[i];
	}
	pool->reports = calloc(pool->n_tasks + 1, sizeof(*pool->reports));
	if (pool->reports == NULL)
		return -1;
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
	free(pool->reports);
	free(pool->first);
	free(pool->left);
	pthread_mutex_destroy(&pool->lock);
	pthread_cond_destroy(&pool->changed);
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
	want = thread_count(opts, pool.n_tasks);
	/* one file needs no thread of its own */
	for (made = 0; pool.n_tasks > 1 && made < want; made++)
		if (pthread_create(&threads[made], NULL, pool_work, &pool) != 0)
			break;
	if (made == 0)
		pool_work(&pool);
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
