/* SPDX-License-Identifier: Apache-2.0 */
/*
 * card_text.c - the sentences of a card.
 *
 * Reads a verdict, whose texts come from logs and are cleaned here; emits one text
 * per part, empty where there is nothing to say.
 */
#include <inttypes.h>
#include <string.h>

#include "common/text.h"
#include "diagnose/card.h"
#include "diagnose/card_text.h"
#include "diagnose/quote.h"

#define ALTERNATIVE_MIN	0.1	/* less likely ones are not worth a row */

void
card_action(enum action_kind kind, const char *node, char out[CARD_ACTION_MAX])
{
	static const char *const words[] = {
		[ACTION_NONE] = "nothing",
		[ACTION_STOP] = "do not restart yet: it would fail the same way",
		[ACTION_RESTART] = "restart on the same nodes",
		[ACTION_RESTART_EXCLUDING_NODE] =
		    "restart without the faulty node; these logs do not name it",
		[ACTION_ROLLBACK] = "restart from an older checkpoint, "
		    "skip the data behind it",
		[ACTION_BACKOFF_RETRY] = "restart on the same nodes, "
		    "wait longer after each failure",
		[ACTION_REQUEUE] = "hand the job back to the scheduler",
		[ACTION_TEST_NODES] = "test the nodes against each other, "
		    "restart without one that fails"
	};

	if (kind == ACTION_RESTART_EXCLUDING_NODE && node != NULL)
		snprintf(out, CARD_ACTION_MAX, "restart, leave out %.100s", node);
	else
		snprintf(out, CARD_ACTION_MAX, "%s", words[kind]);
}

static void
add_foreign(struct buf *b, const char *text)
{
	if (text != NULL)
		quote_clean(text, strlen(text), NULL, b);
}

/* ", " before all but the first. */
static void
add_comma(struct buf *b)
{
	if (b->len > 0)
		buf_puts(b, ", ");
}

static void
add_place(struct buf *b, const char *kind, const char *name)
{
	struct buf clean = {0};

	add_foreign(&clean, name);
	if (clean.len > 0) {
		add_comma(b);
		buf_printf(b, "%s%s", kind, clean.data);
	}
	buf_fini(&clean);
}

static void
add_number(struct buf *b, uint64_t n)
{
	char digits[TEXT_SPAN_MAX];

	text_format_count((int64_t)n, digits);
	buf_puts(b, digits);
}

static void
add_count(struct buf *b, uint64_t n, const char *one, const char *many)
{
	add_number(b, n);
	buf_printf(b, " %s", n == 1 ? one : many);
}

static void
write_what(struct buf *b, const struct verdict *v)
{
	switch (v->status) {
	case VERDICT_NO_ERROR:
		buf_puts(b, v->bytes == 0 ? "The logs are empty." :
		    "Nothing in these logs says that training failed.");
		return;
	case VERDICT_UNDETERMINED:
		buf_puts(b, "Something went wrong, but nothing in these logs says "
		    "what.");
		return;
	default:
		add_foreign(b, v->what != NULL ? v->what : v->reason);
	}
	if (v->status == VERDICT_SYMPTOM_ONLY)
		buf_puts(b, " That is only an echo: its cause is not in these logs.");
}

static void
write_step(struct buf *b, const struct verdict *v)
{
	static const char *const stages[][2] = {
		{ "startup", "at startup" }, { "load", "while loading" },
		{ "training", "in training" },
		{ "checkpoint", "while saving a checkpoint" }
	};
	size_t i;

	if (v->step >= 0) {
		add_comma(b);
		buf_puts(b, "step ");
		add_number(b, (uint64_t)v->step);
	}
	for (i = 0; v->stage != NULL && i < sizeof(stages) / sizeof(stages[0]);
	    i++)
		if (strcmp(stages[i][0], v->stage) == 0) {
			add_comma(b);
			buf_puts(b, stages[i][1]);
		}
}

static void
write_where(struct buf *b, const struct verdict *v)
{
	const struct verdict_root *r = &v->root;

	add_place(b, "", r->node);
	add_place(b, "GPU ", r->gpu);
	add_place(b, "NIC ", r->nic);
	if (r->rank >= 0) {
		add_comma(b);
		buf_printf(b, "rank %d", r->rank);
	}
	if (r->rank >= 0 && v->same_ranks > 0) {
		buf_puts(b, " and ");
		add_count(b, v->same_ranks, "other rank", "other ranks");
	}
	write_step(b, v);
}

static void
write_proof(struct card_text *c, const struct verdict *v)
{
	struct buf file = {0};
	char at[32];
	size_t n;

	n = (size_t)snprintf(at, sizeof(at), ":%" PRId64, v->root.line);
	add_foreign(&file, v->root.file);
	if (file.len > 0)
		quote_cut(file.data, file.len, NULL, c->room - n,
		    &c->part[PART_PROOF]);
	buf_puts(&c->part[PART_PROOF], at);
	buf_fini(&file);
	if (v->root.text == NULL)
		return;
	c->telling = (struct quote_span){ v->root.tell_from, v->root.tell_to };
	quote_clean(v->root.text, v->root.text_len, &c->telling,
	    &c->part[PART_QUOTE]);
}

/* "63 ranks: nccl_timeout (12), nccl_remote_error (51)" */
static void
write_echoes(struct buf *b, const struct verdict *v)
{
	const struct verdict_echo *e;
	size_t i, n = 0;

	for (i = 0; i < v->echo_count; i++) {
		e = &v->echoes[i];
		if (strcmp(e->reason, "unknown") == 0)
			continue;
		if (n == 0 && v->echo_ranks > 1) {
			add_count(b, v->echo_ranks, "rank", "ranks");
			buf_puts(b, ": ");
		}
		buf_printf(b, "%s%s (", n++ > 0 ? ", " : "", e->reason);
		if (v->echo_ranks > 1 && e->ranks > 0)
			add_number(b, e->ranks);
		else
			add_count(b, e->lines, "line", "lines");
		buf_puts(b, ")");
	}
}

static void
write_alternatives(struct buf *b, const struct verdict *v)
{
	size_t i;

	for (i = 0; i < v->alternative_count; i++) {
		if (v->alternatives[i].confidence < ALTERNATIVE_MIN)
			continue;
		add_comma(b);
		buf_printf(b, "%s (%.0f %%)", v->alternatives[i].reason,
		    100 * v->alternatives[i].confidence);
	}
}

/* Not the place of the root again. */
static bool
is_news(const struct verdict *v, const struct verdict_suspect *s)
{
	return s->node == NULL || v->root.node == NULL ||
	    strcmp(s->node, v->root.node) != 0 || s->rank != v->root.rank;
}

static void
write_suspects(struct buf *b, const struct verdict *v)
{
	struct buf why = {0};
	size_t i, more = 0;

	for (i = 0; i < v->suspect_count; i++) {
		const struct verdict_suspect *s = &v->suspects[i];

		if (s->why == NULL || !is_news(v, s))
			continue;
		if (b->len > 0) {
			more++;
			continue;
		}
		add_foreign(&why, s->why);
		if (why.len == 0)
			continue;
		add_place(b, "", s->node);
		buf_printf(b, "%s%s", b->len > 0 ? ": " : "", why.data);
	}
	if (more > 0)
		buf_printf(b, "; and %zu more (--all)", more);
	buf_fini(&why);
}

static void
write_read(struct buf *b, const struct verdict *v)
{
	static const char *const units[] = { "bytes", "KB", "MB", "GB", "TB" };
	double size = (double)v->bytes;
	size_t unit = 0;

	for (; size >= 999.5 && unit < 4; unit++)
		size /= 1000;
	add_count(b, v->files, "file", "files");
	buf_printf(b, unit > 0 && size < 9.95 ? ", %.1f %s" : ", %.0f %s", size,
	    units[unit]);
	buf_puts(b, ", ");
	add_count(b, v->lines, "line", "lines");
	if (v->step >= 0) {
		buf_puts(b, "; last step ");
		add_number(b, (uint64_t)v->step);
	} else {
		buf_puts(b, "; no training step");
	}
}

/* What else would help to find out. */
static void
write_next(struct buf *b, const struct verdict *v)
{
	if (v->status == VERDICT_UNDETERMINED)
		buf_puts(b, "See `holdfast diagnose --all'. More to look at would "
		    "help: ");
	else
		buf_puts(b, "If the job did fail, give more to look at: ");
	buf_puts(b, v->files == 1 ? "the folder with the logs of all ranks" :
	    "the log of the launcher");
	if (!v->has_kernel)
		buf_puts(b, ", the kernel log of the nodes (dmesg -T >NODE.kmsg)");
	buf_puts(b, ", what the scheduler says (sacct -j JOB).");
	if (v->status == VERDICT_UNDETERMINED)
		buf_puts(b, " To teach it a message of your own, see "
		    "holdfast-rules(5).");
}

static void
write_unread(struct buf *b, const struct verdict *v)
{
	if (v->missing_count == 0)
		return;
	add_foreign(b, v->missing[0]);
	if (v->missing_count > 1)
		buf_printf(b, "; and %zu more (--all)", v->missing_count - 1);
}

void
card_write(const struct verdict *v, struct card_text *c)
{
	char action[CARD_ACTION_MAX];

	write_what(&c->part[PART_WHAT], v);
	if (v->has_root) {
		write_where(&c->part[PART_WHERE], v);
		write_proof(c, v);
		write_echoes(&c->part[PART_ECHOES], v);
		write_alternatives(&c->part[PART_OR], v);
		write_suspects(&c->part[PART_SUSPECTS], v);
		card_action(v->action, v->action_node, action);
		add_foreign(&c->part[PART_DO], action);
		add_foreign(&c->part[PART_ADVICE], v->advice);
	} else {
		write_read(&c->part[PART_READ], v);
		write_next(&c->part[PART_NEXT], v);
	}
	write_unread(&c->part[PART_UNREAD], v);
}
