/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_scan.c - cuts a stream into lines of bounded length, finds progress in
 * them, and reports it to the supervisor, not more often than it can be read.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "diagnose/progress.h"
#include "supervisor/agent.h"
#include "supervisor/agent_scan.h"

#define LINE_MAX_BYTES	8192
#define REPORT_EVERY_NS	(200 * NS_PER_MS)
#define NOTE_ROOM	(1u << 18)

struct agent_scan {
	struct agent	*agent;
	int		 attempt;
	int		 rank;
	char		*line;		/* LINE_MAX_BYTES */
	size_t		 len;
	int64_t		 last_step;
	int64_t		 interval;
	int64_t		 reported_ns;
};

int
agent_scan_new(struct agent *a, int attempt, int rank,
    struct agent_scan **out, struct err *err)
{
	struct agent_scan *s = calloc(1, sizeof(*s));

	if (s == NULL || (s->line = malloc(LINE_MAX_BYTES)) == NULL) {
		free(s);
		return err_memory(err);
	}
	s->agent = a;
	s->attempt = attempt;
	s->rank = rank;
	s->last_step = s->interval = JSON_UNKNOWN;
	*out = s;
	return 0;
}

void
agent_scan_free(struct agent_scan *s)
{
	if (s == NULL)
		return;
	free(s->line);
	free(s);
}

static void
report(struct agent_scan *s, const struct progress *p)
{
	cJSON *m = agent_message(s->agent, "progress", s->attempt);

	json_add_int(m, "rank", s->rank);
	if (p->step >= 0)
		json_add_int(m, "step", p->step);
	json_add_int(m, "interval", s->interval);
	if (p->has_loss && isfinite(p->loss))
		cJSON_AddNumberToObject(m, "loss", p->loss);
	cJSON_AddBoolToObject(m, "not_finite", p->has_loss &&
	    !isfinite(p->loss));
	if (p->has_step_ms && isfinite(p->step_ms))
		cJSON_AddNumberToObject(m, "step_ms", p->step_ms);
	agent_note(s->agent, m, NOTE_ROOM);
}

static void
take_line(struct agent_scan *s)
{
	int64_t now = clock_mono_ns(&clock_system);
	struct progress p;
	bool first, bad;

	if (!progress_parse(s->line, s->len, &p) || (p.bar && !p.has_loss))
		return;
	first = p.step >= 0 && s->last_step == JSON_UNKNOWN;
	bad = p.has_loss && !isfinite(p.loss);
	if (p.step >= 0) {
		if (!first && p.step > s->last_step)
			s->interval = p.step - s->last_step;
		s->last_step = p.step;
	}
	if (!first && !bad && now - s->reported_ns < REPORT_EVERY_NS)
		return;
	s->reported_ns = now;
	report(s, &p);
}

static void
end_line(struct agent_scan *s)
{
	if (s->len > 0)
		take_line(s);
	s->len = 0;
}

void
agent_scan_feed(struct agent_scan *s, const char *data, size_t len)
{
	const char *end = data + len, *p;
	size_t part, room;

	while (data < end) {
		/* A progress bar ends its lines with CR. */
		for (p = data; p < end && *p != '\n' && *p != '\r'; p++)
			;
		part = (size_t)(p - data);
		room = LINE_MAX_BYTES - s->len;
		if (part > room)
			part = room;
		memcpy(s->line + s->len, data, part);
		s->len += part;
		if (p == end)
			return;
		end_line(s);
		data = p + 1;
	}
}

void
agent_scan_end(struct agent_scan *s)
{
	end_line(s);
}
