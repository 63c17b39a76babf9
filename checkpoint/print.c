/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.c - what the checkpoint verb shows.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/text.h"
#include "checkpoint/print.h"

#define PROGRESS_EVERY_NS	(200 * NS_PER_MS)
#define PROGRESS_AFTER_NS	NS_PER_S	/* short work shows none */

static const char structure_only[] =
    "structure is right, contents not read";

const char *
print_state(const struct checkpoint *c, bool structure_is_enough)
{
	if (c->report.state == HOLDFAST_CHECKPOINT_VALID &&
	    !c->report.contents_read && !structure_is_enough)
		return holdfast_checkpoint_state_name(
		    HOLDFAST_CHECKPOINT_UNVERIFIED);
	return holdfast_checkpoint_state_name(c->report.state);
}

static const char *
reason_of(const struct checkpoint *c, bool structure_is_enough)
{
	if (c->report.reason == NULL && !c->report.contents_read &&
	    !structure_is_enough)
		return structure_only;
	return c->report.reason;
}

static const char *
checksum_name(enum report_checksum checksum)
{
	switch (checksum) {
	case REPORT_CHECKSUM_NONE:
		return "none";
	case REPORT_CHECKSUM_CRC32:
		return "crc32";
	case REPORT_CHECKSUM_XXH128:
		return "xxh128";
	case REPORT_CHECKSUM_MIXED:
		return "some";
	case REPORT_CHECKSUM_UNKNOWN:
		break;
	}
	return NULL;
}

cJSON *
print_json(const struct checkpoint *c, bool structure_is_enough)
{
	const struct report *r = &c->report;
	cJSON *json = cJSON_CreateObject();

	if (json == NULL ||
	    json_add_text(json, "path", c->path) == -1 ||
	    json_add_text(json, "format", checkpoint_format_name(c)) == -1 ||
	    json_add_int(json, "step", checkpoint_step(c)) == -1 ||
	    json_add_text(json, "state", print_state(c, structure_is_enough))
	    == -1 ||
	    json_add_text(json, "reason", reason_of(c, structure_is_enough))
	    == -1 ||
	    json_add_text(json, "level", r->contents_read ? "full" :
	    "structure") == -1 ||
	    json_add_text(json, "checksum", checksum_name(r->checksum)) == -1 ||
	    json_add_text(json, "note", r->note) == -1 ||
	    json_add_int(json, "size", c->size_bytes) == -1 ||
	    (c->mtime_ns == REPORT_UNKNOWN ?
	    cJSON_AddNullToObject(json, "mtime") :
	    cJSON_AddNumberToObject(json, "mtime", (double)c->mtime_ns / 1e9))
	    == NULL ||
	    json_add_int(json, "nonfinite_tensors",
	    (int64_t)r->nonfinite_tensors) == -1 ||
	    json_add_int(json, "nonfinite_values",
	    (int64_t)r->nonfinite_values) == -1) {
		cJSON_Delete(json);
		return NULL;
	}
	return json;
}

int
print_json_line(cJSON *json)
{
	char *line = json != NULL ? json_line(json) : NULL;

	cJSON_Delete(json);
	if (line == NULL)
		return -1;
	fputs(line, stdout);
	fflush(stdout);
	free(line);
	return 0;
}

void
print_clean(FILE *f, const char *text)
{
	for (; *text != '\0'; text++)
		fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' :
		    *text, f);
}

static bool
use_colour(void)
{
	const char *no = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && (no == NULL || *no == '\0');
}

/* The state in its colour, padded to 10 columns. */
static void
put_state(const struct checkpoint *c, bool structure_is_enough)
{
	const char *name = print_state(c, structure_is_enough);
	const char *colour = strcmp(name, "valid") == 0 ? "32" :
	    strcmp(name, "unverified") == 0 ? "33" : "31";

	if (use_colour())
		printf("\033[%sm%-10s\033[0m", colour, name);
	else
		printf("%-10s", name);
}

static void
put_step(int64_t step)
{
	char text[TEXT_SPAN_MAX] = "-";

	if (step != REPORT_UNKNOWN)
		text_format_count(step, text);
	printf("%12s", text);
}

void
print_verdict(const struct checkpoint *c, bool structure_is_enough)
{
	const char *reason = reason_of(c, structure_is_enough);

	put_state(c, structure_is_enough);
	put_step(checkpoint_step(c));
	fputs("  ", stdout);
	print_clean(stdout, c->path);
	if (reason != NULL || c->report.note != NULL) {
		fputs("  ", stdout);
		print_clean(stdout, reason != NULL ? reason : c->report.note);
	}
	putchar('\n');
	fflush(stdout);
}

static void
format_size(int64_t bytes, char out[TEXT_SPAN_MAX])
{
	static const char *const units[] = { "B", "KB", "MB", "GB", "TB", "PB" };
	double n = (double)bytes;
	size_t i = 0;

	if (bytes == REPORT_UNKNOWN) {
		snprintf(out, TEXT_SPAN_MAX, "-");
		return;
	}
	for (; n >= 1000 && i < 5; i++)
		n /= 1000;
	snprintf(out, TEXT_SPAN_MAX, i == 0 || n >= 100 ? "%.0f %s" : "%.1f %s",
	    n, units[i]);
}

void
print_table(const struct checkpoints *cs, int64_t now_ns)
{
	char size[TEXT_SPAN_MAX], age[TEXT_SPAN_MAX];
	size_t i;

	printf("%12s  %-12s %9s  %-14s %-10s %s\n", "STEP", "FORMAT", "SIZE",
	    "AGE", "STATE", "PATH, REASON");
	for (i = 0; i < cs->n; i++) {
		const struct checkpoint *c = &cs->list[i];
		const char *format = checkpoint_format_name(c);
		const char *reason = reason_of(c, false);

		format_size(c->size_bytes, size);
		snprintf(age, sizeof(age), "-");
		if (c->mtime_ns != REPORT_UNKNOWN)
			text_format_span((now_ns - c->mtime_ns) / NS_PER_MS, age);
		put_step(checkpoint_step(c));
		printf("  %-12s %9s  %-14s ", format ? format : "-", size, age);
		put_state(c, false);
		putchar(' ');
		print_clean(stdout, c->path);
		if (reason != NULL && reason != structure_only) {
			fputs("  ", stdout);
			print_clean(stdout, reason);
		}
		putchar('\n');
	}
}

void
print_progress_start(struct print_progress *p, const struct checkpoint *list,
    size_t n)
{
	size_t i;

	memset(p, 0, sizeof(*p));
	p->on = isatty(STDERR_FILENO);
	p->start_ns = clock_mono_ns(&clock_system);
	p->next_ns = p->start_ns + PROGRESS_AFTER_NS;
	for (i = 0; i < n; i++)
		if (list[i].size_bytes != REPORT_UNKNOWN)
			p->total += (uint64_t)list[i].size_bytes;
}

void
print_progress_add(void *progress, uint64_t bytes)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct print_progress *p = progress;
	int64_t now;
	double s;

	if (!p->on || pthread_mutex_trylock(&lock) != 0)
		return;
	now = clock_mono_ns(&clock_system);
	if (now >= p->next_ns) {
		p->next_ns = now + PROGRESS_EVERY_NS;
		s = (double)(now - p->start_ns) / 1e9;
		fprintf(stderr, "\r%.1f of %.1f GB, %.1f GB/s \033[K",
		    (double)bytes / 1e9, (double)p->total / 1e9,
		    (double)bytes / 1e9 / (s > 0 ? s : 1));
	}
	pthread_mutex_unlock(&lock);
}

void
print_progress_end(struct print_progress *p)
{
	if (p->on && p->next_ns > p->start_ns + PROGRESS_AFTER_NS)
		fputs("\r\033[K", stderr);
	p->on = false;
}
