/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - writes log lines, text or JSON, with one write(2) each so that
 * lines of several processes do not mix.  Keeps errno.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"

static struct {
	int		 fd;
	const char	*program;
	bool		 json;
	enum log_level	 least;
	void		(*sink)(const char *line, size_t len, void *arg);
	void		*sink_arg;
} log_state = { STDERR_FILENO, "holdfast", false, LOG_INFO, NULL, NULL };

static const char *const level_names[] = { "debug", "info", "warn", "error" };

void
log_open(int fd, const char *program, bool json, enum log_level least)
{
	log_state.fd = fd;
	log_state.program = program;
	log_state.json = json;
	log_state.least = least;
}

void
log_sink(void (*fn)(const char *, size_t, void *), void *arg)
{
	log_state.sink = fn;
	log_state.sink_arg = arg;
}

void
log_open_environment(const char *program)
{
	const char *format = getenv("HOLDFAST_LOG");
	const char *level = getenv("HOLDFAST_LOG_LEVEL");
	enum log_level least = LOG_INFO;
	size_t i;

	for (i = 0; level != NULL && i <= LOG_ERROR; i++)
		if (strcmp(level, level_names[i]) == 0)
			least = (enum log_level)i;
	log_open(STDERR_FILENO, program, format != NULL &&
	    strcmp(format, "json") == 0, least);
}

static void
log_write(const char *line, size_t len)
{
	if (log_state.sink != NULL) {
		log_state.sink(line, len, log_state.sink_arg);
		return;
	}
	/* Nobody is left to be told when the log itself cannot be written. */
	if (write(log_state.fd, line, len) == -1)
		return;
}

static void
log_write_json(const char *when, enum log_level level, const char *text)
{
	cJSON *o = cJSON_CreateObject();
	char *line;

	json_add_text(o, "time", when);
	json_add_text(o, "level", level_names[level]);
	json_add_text(o, "program", log_state.program);
	json_add_text(o, "message", text);
	if ((line = json_line(o)) != NULL)
		log_write(line, strlen(line));
	free(line);
	cJSON_Delete(o);
}

void
log_msg(enum log_level level, const char *fmt, ...)
{
	char when[CLOCK_TEXT_MAX], text[1024], line[1200];
	int saved = errno, n;
	va_list ap;

	if (level < log_state.least)
		return;
	clock_format(clock_wall_ns(&clock_system), when);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (log_state.json) {
		log_write_json(when, level, text);
	} else {
		n = snprintf(line, sizeof(line), "%s %s %s: %s\n", when,
		    level_names[level], log_state.program, text);
		if (n > 0)
			log_write(line, (size_t)n);
	}
	errno = saved;
}
