/* SPDX-License-Identifier: Apache-2.0 */
/*
 * card.c - says in this order: what, where, proof, echoes, what to do, how sure.
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "common/text.h"
#include "diagnose/card.h"

#define WIDTH		96
#define ECHOES_SHORT	3

static void
label(FILE *f, const char *name, bool colour)
{
	fprintf(f, "%s%-9s%s", colour ? "\033[2m" : "", name,
	    colour ? "\033[0m" : "");
}

/* Log text is foreign: no control character reaches the terminal. */
static void
put_text(FILE *f, const char *text, size_t len, size_t most)
{
	struct buf clean = {0};
	size_t i, n = 0;

	while (len > 0 && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	if (text_utf8_clean(text, len, &clean) == 0)
		for (i = 0; i < clean.len; i++) {
			unsigned char c = (unsigned char)clean.data[i];

			if ((c & 0xc0) != 0x80 && n++ == most) {
				fputs("...", f);
				break;
			}
			/* C0 and DEL; C1 controls are two bytes in UTF-8. */
			if (c == 0xc2 && i + 1 < clean.len &&
			    (unsigned char)clean.data[i + 1] < 0xa0) {
				i++;
				continue;
			}
			fputc(c < 0x20 || c == 0x7f ? ' ' : c, f);
		}
	buf_fini(&clean);
}

static void
put_where(const struct verdict *v, FILE *f)
{
	const char *sep = "";

	if (v->root.node != NULL) {
		put_text(f, v->root.node, strlen(v->root.node), 64);
		sep = ", ";
	}
	if (v->root.gpu != NULL) {
		fprintf(f, "%sGPU ", sep);
		put_text(f, v->root.gpu, strlen(v->root.gpu), 40);
		sep = ", ";
	}
	if (v->root.rank >= 0) {
		fprintf(f, "%srank %d", sep, v->root.rank);
		sep = ", ";
	}
	if (v->step >= 0) {
		char step[TEXT_SPAN_MAX];

		text_format_count(v->step, step);
		fprintf(f, "%sstep %s", sep, step);
		sep = ", ";
	}
	if (v->stage != NULL)
		fprintf(f, "%sduring %s", sep, v->stage);
	fputc('\n', f);
}

static void
put_echoes(const struct verdict *v, bool colour, bool all, FILE *f)
{
	size_t i, most = all ? v->symptom_count : ECHOES_SHORT;

	for (i = 0; i < v->symptom_count && i < most; i++) {
		label(f, i == 0 ? "echoes" : "", colour);
		fprintf(f, "%s (%" PRIu64 ") ", v->symptoms[i].reason,
		    v->symptoms[i].count);
		put_text(f, v->symptoms[i].file, strlen(v->symptoms[i].file), 60);
		fprintf(f, ":%" PRId64 "\n", v->symptoms[i].line);
	}
	if (i < v->symptom_count) {
		label(f, "", colour);
		fprintf(f, "and %zu more (--all)\n", v->symptom_count - i);
	}
}

static void
put_action(const struct verdict *v, bool colour, FILE *f)
{
	label(f, "action", colour);
	fputs(rule_action_name(v->action), f);
	if (v->action_node != NULL) {
		fputs(": ", f);
		put_text(f, v->action_node, strlen(v->action_node), 64);
	}
	fputc('\n', f);
	if (v->advice != NULL) {
		label(f, "advice", colour);
		put_text(f, v->advice, strlen(v->advice), 400);
		fputc('\n', f);
	}
}

static const char *
headline(const struct verdict *v)
{
	switch (v->status) {
	case VERDICT_NO_ERROR:
		return "No error found.";
	case VERDICT_UNDETERMINED:
		return "The cause could not be determined.";
	default:
		return v->what != NULL ? v->what : v->reason;
	}
}

void
card_print(const struct verdict *v, bool colour, bool all, FILE *f)
{
	size_t i, most = all ? v->missing_count : 2;

	fprintf(f, "%s%s%s\n", colour ? "\033[1m" : "", headline(v),
	    colour ? "\033[0m" : "");
	if (v->has_root) {
		label(f, "reason", colour);
		fprintf(f, "%s (%s), %s, %.0f %% sure\n", v->reason, v->category,
		    v->status == VERDICT_SYMPTOM_ONLY ? "only an echo is visible" :
		    v->status == VERDICT_UNDETERMINED ? "undetermined" :
		    "found in the log", 100 * v->confidence);
		label(f, "where", colour);
		put_where(v, f);
		label(f, "proof", colour);
		put_text(f, v->root.file, strlen(v->root.file), 120);
		fprintf(f, ":%" PRId64 "\n", v->root.line);
		label(f, "", colour);
		put_text(f, v->root.text, v->root.text_len, WIDTH);
		fputc('\n', f);
		put_echoes(v, colour, all, f);
		for (i = 0; all && i < v->alternative_count; i++) {
			label(f, i == 0 ? "or" : "", colour);
			fprintf(f, "%s (%.0f %%)\n", v->alternatives[i].reason,
			    100 * v->alternatives[i].confidence);
		}
		put_action(v, colour, f);
	}
	for (i = 0; i < v->missing_count && i < most; i++) {
		label(f, i == 0 ? "unread" : "", colour);
		put_text(f, v->missing[i], strlen(v->missing[i]), WIDTH);
		fputc('\n', f);
	}
	if (i < v->missing_count) {
		label(f, "", colour);
		fprintf(f, "and %zu more (--all)\n", v->missing_count - i);
	}
}
