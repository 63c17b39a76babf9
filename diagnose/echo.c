/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo.c - finds the candidates that other candidates explain.
 *
 * Exceptions of one chain are one candidate: the most telling, then the first.  What
 * a rule says it hides is an echo, where the two can have to do with each other.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/echo.h"

#define HIDES_MAX	32
#define RECORD_NS	600000000000ll	/* a record is written within it */

/* A record of the kernel, the scheduler or the launcher is no exception, though
 * it may stand right behind one, where the rest of its message would. */
static bool
is_exception(const struct cause *a)
{
	enum rule_source s = a->event.rule->def.source;

	return !a->exit && s != SOURCE_KERNEL && s != SOURCE_SCHEDULER &&
	    s != SOURCE_LAUNCHER;
}

/* "KeyError: Caught KeyError in DataLoader worker process 0.", and "Exception:" alone
 * of torch.multiprocessing: only passed on. */
static bool
is_passed_on(const struct case_file *c, const struct cause *a)
{
	const struct event *e = &a->event;
	const char *data = c->feed->streams[e->stream].data;
	size_t n = e->text >= e->start && e->text - e->start < e->len ?
	    e->len - (e->text - e->start) : 0;

	return memmem(data + e->start, e->len, ": Caught ", 9) != NULL ||
	    (n >= 10 && n < 12 && memcmp(data + e->text, "Exception:", 10) == 0);
}

/* True when an earlier exception of a chain yields to a later one: a symptom to a
 * cause and never the other way round, equals by the priority of their rules. */
static bool
yields(const struct case_file *c, const struct cause *a, const struct cause *b)
{
	bool symptom = a->rank_class >= CLASS_SYMPTOM;

	if (symptom != (b->rank_class >= CLASS_SYMPTOM))
		return symptom;
	return b->event.rule->def.priority > a->event.rule->def.priority ||
	    (a->reason == b->reason && is_passed_on(c, a));
}

/* The chains met so far, each with what stays of it: a hash table. */
struct chains {
	struct cause	**list;
	size_t		 size;		/* a power of two */
};

/* Where the chain of an exception is, or is to be. */
static struct cause **
chain_of(const struct chains *t, const struct cause *a)
{
	size_t i = (size_t)((a->block.begin ^ a->event.key) *
	    0x9e3779b97f4a7c15ull >> 20) + a->event.stream;

	for (i &= t->size - 1; t->list[i] != NULL; i = (i + 1) & (t->size - 1))
		if (t->list[i]->event.stream == a->event.stream &&
		    t->list[i]->block.begin == a->block.begin &&
		    t->list[i]->event.key == a->event.key)
			break;
	return &t->list[i];
}

/* Of one chain the most telling exception stays, the first of equals that is not
 * only passed on. */
static int
fold_chains(struct case_file *c, struct err *err)
{
	struct chains t = { .size = 16 };
	struct cause **stays;
	size_t i;

	while (t.size < 2 * c->count)
		t.size *= 2;
	if ((t.list = calloc(t.size, sizeof(struct cause *))) == NULL)
		return err_memory(err);
	for (i = 0; i < c->count; i++) {
		struct cause *a = &c->causes[i];

		if (a->echo || !is_exception(a))
			continue;
		stays = chain_of(&t, a);
		if (*stays == NULL || yields(c, *stays, a)) {
			if (*stays != NULL)
				(*stays)->echo = true;
			*stays = a;
		} else {
			a->echo = true;
		}
	}
	free(t.list);
	return 0;
}

static bool
hides(const struct cause *a, const char *reason)
{
	const char *const *h = a->event.rule->def.hides;

	for (; h != NULL && *h != NULL; h++)
		if (strcmp(*h, reason) == 0)
			return true;
	return false;
}

bool
echo_is_local(const struct reason *r)
{
	static const char *const names[] = {
		"cuda_error", "cuda_illegal_access", "cuda_device_assert",
		"cublas_error", "cudnn_error", "gpu_oom", "gpu_unavailable",
		"gpu_fault", "native_crash", "process_killed", "dataloader_killed",
		"shm_exhausted", "os_error", "called_process_error"
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], r->name) == 0)
			return true;
	return false;
}

/* An address and a name may be of one node, and so may a name and its domain. */
bool
echo_other_node(const struct cause *a, const struct cause *b)
{
	const char *x = a->event.node, *y = b->event.node;
	size_t n = strcspn(x, ".");

	if (*x == '\0' || *y == '\0')
		return false;
	if (isdigit((unsigned char)*x) || isdigit((unsigned char)*y))
		return isdigit((unsigned char)*x) && isdigit((unsigned char)*y) &&
		    strcmp(x, y) != 0;
	return n != strcspn(y, ".") || memcmp(x, y, n) != 0;
}

bool
echo_possible(const struct cause *a, const struct cause *b)
{
	if (echo_is_local(b->reason) && echo_other_node(a, b))
		return false;
	return a->time_ns == LINE_NO_TIME || b->time_ns == LINE_NO_TIME ||
	    a->time_ns - b->time_ns < RECORD_NS;
}

/* One candidate stands for all of its rule and node: the first of them. */
static size_t
find_explainers(const struct case_file *c, struct cause **list)
{
	size_t i, k, n = 0;

	for (i = 0; i < c->count; i++) {
		struct cause *a = &c->causes[i];

		if (a->exit || a->echo || a->event.rule->def.hides == NULL)
			continue;
		for (k = 0; k < n; k++)
			if (list[k]->event.rule == a->event.rule &&
			    strcmp(list[k]->event.node, a->event.node) == 0)
				break;
		if (k == n)
			list[n++] = a;
		else if (cause_compare(a, list[k]) < 0)
			list[k] = a;
	}
	return n;
}

/* What a candidate that is no echo itself explains is an echo, unless it also
 * explains the explainer and came first. */
static void
hide(struct case_file *c, const struct cause *a)
{
	const struct reason *hidden[HIDES_MAX];
	const char *const *h = a->event.rule->def.hides;
	size_t n = 0, i, k;

	for (; *h != NULL && n < HIDES_MAX; h++)
		if ((hidden[n] = rule_set_reason(c->set, *h)) != NULL &&
		    hidden[n] != a->reason)
			n++;
	for (k = 0; k < c->count; k++) {
		struct cause *b = &c->causes[k];

		for (i = 0; i < n && hidden[i] != b->reason; i++)
			;
		if (i == n || b == a || b->echo || !echo_possible(a, b))
			continue;
		if (!b->exit && b->event.rule->def.hides != NULL &&
		    hides(b, a->reason->name) && cause_compare(b, a) < 0)
			continue;
		b->echo = true;
	}
}

int
echo_mark(struct case_file *c, struct err *err)
{
	struct cause **list = calloc(c->count + 1, sizeof(struct cause *));
	size_t i, n;

	if (list == NULL)
		return err_memory(err);
	if (fold_chains(c, err) == -1) {
		free(list);
		return -1;
	}
	n = find_explainers(c, list);
	for (i = 0; i < n; i++)
		if (!list[i]->echo)
			hide(c, list[i]);
	free(list);
	return 0;
}
