/* SPDX-License-Identifier: Apache-2.0 */
/*
 * card.c - an incident as a boxed card: what, where, proof, echoes, what happens
 * next, and what the person on call has to do.
 *
 * Logs are foreign bytes: control characters never reach the terminal.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/json.h"
#include "common/text.h"
#include "diagnose/rule.h"
#include "supervisor/supervisor.h"

#define WIDTH	100	/* columns, frame included */
#define INDENT	"|         "

/* Appends text with control characters made visible, at most `most` bytes. */
static void
put_clean(struct buf *b, const char *text, size_t most)
{
	struct buf utf8 = {0};
	size_t i;

	text_utf8_clean(text, strnlen(text, most), &utf8);
	for (i = 0; i < utf8.len; i++)
		if ((unsigned char)utf8.data[i] < 0x20 || utf8.data[i] == 0x7f)
			utf8.data[i] = ' ';
	buf_append(b, utf8.data ? utf8.data : "", utf8.len);
	buf_fini(&utf8);
}

static void
put_rule(struct buf *b, const char *title)
{
	size_t had = b->len;

	buf_puts(b, title);
	while (b->len - had < WIDTH)
		buf_puts(b, "-");
	buf_puts(b, "\n");
}

/* "| label   text", broken at blanks, continued under the text. */
static void
put_field(struct buf *b, const char *label, const char *text)
{
	size_t room = WIDTH - sizeof(INDENT) + 1, len, cut;
	bool first = true;

	while (*text != '\0') {
		len = strlen(text);
		cut = len;
		if (len > room) {
			for (cut = room; cut > room / 2 && text[cut] != ' ';
			    cut--)
				;
			if (text[cut] != ' ')
				cut = room;
		}
		buf_printf(b, "| %-8s%.*s\n", first ? label : "", (int)cut, text);
		text += cut;
		while (*text == ' ')
			text++;
		first = false;
	}
}

static void
put_title(struct buf *b, const struct incident *in)
{
	char title[128], step[TEXT_SPAN_MAX] = "", when[CLOCK_TEXT_MAX];

	clock_format(in->sign.wall_ns, when);
	if (in->sign.step != JSON_UNKNOWN)
		text_format_count(in->sign.step, step);
	snprintf(title, sizeof(title), "+- incident %d - attempt %d%s%s - %.8s ",
	    in->number, in->attempt, step[0] ? " - step " : "", step, when + 11);
	put_rule(b, title);
}

/* "rank 2, node n1, GPU 0000:3b:00.0 (97 %)" */
static void
format_place(const cJSON *v, char *out, size_t size)
{
	const cJSON *root = cJSON_GetObjectItem(v, "root");
	int64_t rank = json_int(root, "rank", -1);
	const char *node = json_str(root, "node", NULL);
	const char *gpu = json_str(root, "gpu", NULL);
	int n = 0;

	out[0] = '\0';
	if (rank >= 0)
		n += snprintf(out + n, size - (size_t)n, "rank %lld, ",
		    (long long)rank);
	if (node != NULL)
		n += snprintf(out + n, size - (size_t)n, "%.64s, ", node);
	if (gpu != NULL)
		n += snprintf(out + n, size - (size_t)n, "GPU %.40s, ", gpu);
	if (n >= 2)
		n -= 2;
	snprintf(out + n, size - (size_t)n, "%s(%.0f %%)", n ? " " : "",
	    100 * json_num(v, "confidence", 0));
}

/* The reason in plain words, as reasons.yaml has it. */
static const char *
reason_what(const char *name)
{
	size_t i;

	for (i = 0; i < reason_builtin_count; i++)
		if (strcmp(reason_builtin[i].name, name) == 0)
			return reason_builtin[i].what;
	return NULL;
}

static void
put_cause(struct buf *b, const struct incident *in)
{
	const char *what = reason_what(in->verdict.reason);
	const cJSON *v = in->verdict.json;
	struct buf line = {0};
	char place[256];

	format_place(v, place, sizeof(place));
	buf_printf(&line, "| %s", what ? what : in->verdict.reason);
	if (line.len + strlen(place) + 2 > WIDTH)
		buf_puts(&line, "\n|");
	while (line.len + strlen(place) < WIDTH && strchr(line.data, '\n') ==
	    NULL)
		buf_puts(&line, " ");
	buf_printf(b, "%s%s%s\n", line.data, strchr(line.data, '\n') ? " " : "",
	    place);
	buf_fini(&line);
}

static void
put_proof(struct buf *b, const cJSON *v)
{
	const cJSON *root = cJSON_GetObjectItem(v, "root");
	const char *file = json_str(root, "file", NULL);
	const char *text = json_str(root, "text", NULL);
	struct buf line = {0};

	if (text == NULL)
		return;
	if (file != NULL) {
		put_clean(&line, file, 200);
		buf_printf(&line, ":%lld  ",
		    (long long)json_int(root, "line", 0));
	}
	while (*text == ' ' || *text == '\t')
		text++;
	put_clean(&line, text, 300);
	put_field(b, "proof", line.data ? line.data : "");
	buf_fini(&line);
}

static void
put_echoes(struct buf *b, const cJSON *v)
{
	const cJSON *s, *list = cJSON_GetObjectItem(v, "symptoms");
	struct buf line = {0};
	int n = 0;

	cJSON_ArrayForEach(s, list) {
		if (strcmp(json_str(s, "reason", "unknown"), "unknown") == 0)
			continue;
		if (n++ == 5) {
			buf_puts(&line, ", ...");
			break;
		}
		buf_printf(&line, "%s%s (%lld)", n > 1 ? ", " : "",
		    json_str(s, "reason", "?"),
		    (long long)json_int(s, "count", 1));
	}
	if (line.len > 0)
		put_field(b, "echoes", line.data);
	buf_fini(&line);
}

/* "restarting in 5 s from the checkpoint of step 6 (valid), 9 more restarts in
 * the budget" */
static void
put_restart(struct buf *b, const struct incident *in, const char *state)
{
	const struct decision *d = &in->decision;
	const struct selection *sel = &in->selection;
	char span[TEXT_SPAN_MAX];
	struct buf line = {0};

	text_format_span(d->delay_ms, span);
	buf_printf(&line, "restarting %s%s", d->delay_ms ? "in " : "now",
	    d->delay_ms ? span : "");
	if (d->before_step != JSON_UNKNOWN)
		buf_printf(&line, " from a checkpoint before step %lld",
		    (long long)d->before_step);
	else if (sel->result == SELECTION_FOUND && sel->step != JSON_UNKNOWN)
		buf_printf(&line, " from the checkpoint of step %lld (%s)",
		    (long long)sel->step, state);
	else if (sel->result == SELECTION_FOUND)
		buf_printf(&line, " from a checkpoint (%s)", state);
	else if (sel->result == SELECTION_NONE)
		buf_puts(&line, " from the beginning: there is no checkpoint yet");
	else if (sel->result == SELECTION_ALL_BAD)
		buf_puts(&line, " from the beginning: no checkpoint is usable");
	buf_printf(&line, ", %lld more restart%s in the budget",
	    (long long)d->budget_left, d->budget_left == 1 ? "" : "s");
	put_field(b, "next", line.data);
	buf_fini(&line);
}

static void
put_next(struct buf *b, const struct incident *in, const char *state)
{
	const struct selection *sel = &in->selection;
	struct buf line = {0};

	if (in->decision.kind == DECISION_RESTART) {
		put_restart(b, in, state);
		put_field(b, "", in->decision.why);
	} else {
		buf_printf(&line, "stopped. %s", in->decision.why);
		put_field(b, "next", line.data);
		buf_fini(&line);
	}
	if (sel->skipped > 0) {
		buf_printf(&line, "%d newer checkpoint%s skipped as unusable",
		    sel->skipped, sel->skipped == 1 ? "" : "s");
		put_field(b, "", line.data);
		buf_fini(&line);
	}
}

static void
put_advice(struct buf *b, const struct incident *in)
{
	const char *advice = json_str(in->verdict.json, "advice", NULL);
	struct buf line = {0};

	if (in->decision.kind == DECISION_RESTART)
		buf_puts(&line, "nothing now. ");
	if (advice != NULL)
		put_clean(&line, advice, 400);
	put_field(b, "you", line.len > 0 ? line.data : "see the logs");
	buf_fini(&line);
}

char *
card_format(const struct incident *in, const struct supervisor *s)
{
	struct buf b = {0};

	put_title(&b, in);
	put_cause(&b, in);
	put_proof(&b, in->verdict.json);
	put_echoes(&b, in->verdict.json);
	put_next(&b, in, json_str(s->selection.json, "state", "valid"));
	put_advice(&b, in);
	put_rule(&b, "+");
	return buf_steal(&b);
}
