/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_json.c - reads what log drivers and loggers write as JSON, one object per
 * line, and emits the lines that the program had printed.
 *
 * json-file of Docker ({"log":"...\n","stream":"stderr","time":"..."}, in pieces of
 * 16 KiB), Fluent Bit's with "kubernetes" in it, `journalctl -o json`
 * (systemd.journal-fields(7)), Cloud Logging's textPayload, python-json-logger and
 * structlog.  A text of several lines, as with a traceback in it, becomes as many.
 * What Holdfast wrote itself stays JSON: its records quote logs.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/clock.h"
#include "common/json.h"
#include "diagnose/feed_json.h"

#define SAMPLE_LINES	1000
#define SMALL		((size_t)16 << 20)
#define RECORD_MAX	((size_t)1 << 20)	/* longer lines stay as they are */
#define NAME_MAX_LEN	63
#define PENDING		((size_t)64 << 10)
#define RELEASE		((size_t)4 << 20)

struct record {
	cJSON		*object;
	const char	*node, *program, *level;
	char		 time[CLOCK_TEXT_MAX + 16];
	int		 rank, pid;	/* -1 unknown */
};

struct decoder {
	struct feed_spool *out;
	struct stream	*marks;
	struct buf	 text, prefix;	/* of one record */
	struct buf	 pending;	/* output not yet written */
	bool		 open;		/* the last piece did not end its line */
	uint64_t	 written;	/* newlines that were emitted */
};

static const cJSON *
first_of(const cJSON *o, const char *const *keys)
{
	const cJSON *found;

	for (; *keys != NULL; keys++)
		if ((found = cJSON_GetObjectItemCaseSensitive(o, *keys)) != NULL &&
		    !cJSON_IsNull(found))
			return found;
	return NULL;
}

/* A name that can stand in a prefix; NULL when it is none. */
static const char *
name_of(const cJSON *item)
{
	const char *s = cJSON_IsString(item) ? item->valuestring : "";
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || (s[n] && strchr("._-/@", s[n])))
		n++;
	return n > 0 && n <= NAME_MAX_LEN && s[n] == '\0' ? s : NULL;
}

/* The journal has bytes that are no text as a list of numbers. */
static int
read_text(const cJSON *item, struct buf *out)
{
	const cJSON *i;
	char c;

	if (cJSON_IsString(item))
		return buf_puts(out, item->valuestring);
	cJSON_ArrayForEach(i, item) {
		c = (char)(cJSON_IsNumber(i) ? i->valueint : '?');
		if (buf_append(out, &c, 1) == -1)
			return -1;
	}
	return 0;
}

/* Seconds since 1970, in any of the units that loggers count in. */
static void
print_epoch(double v, char out[CLOCK_TEXT_MAX])
{
	while (v > 1e11 && v < 1e20)
		v /= 1000;
	if (v >= 1e9 && v < 1e11)
		clock_format((int64_t)(v * 1e6) * 1000, out);
}

static void
read_time(const cJSON *item, struct record *r)
{
	const char *s = cJSON_IsString(item) ? item->valuestring : "";
	size_t n = strspn(s, "0123456789.");

	if (cJSON_IsNumber(item))
		print_epoch(item->valuedouble, r->time);
	else if (n > 9 && s[n] == '\0')
		print_epoch(strtod(s, NULL), r->time);
	else if (strlen(s) < sizeof(r->time) && isdigit((unsigned char)*s))
		snprintf(r->time, sizeof(r->time), "%s", s);
}

static const char *
read_level(const cJSON *item)
{
	/* syslog(3) */
	static const char *const numbers[] = {
		"CRITICAL", "CRITICAL", "CRITICAL", "ERROR", "WARNING", "INFO",
		"INFO", "DEBUG"
	};
	static const char *const names[][2] = {
		{ "err", "ERROR" }, { "error", "ERROR" }, { "crit", "CRITICAL" },
		{ "critical", "CRITICAL" }, { "alert", "CRITICAL" },
		{ "emergency", "CRITICAL" }, { "fatal", "FATAL" },
		{ "warn", "WARNING" }, { "warning", "WARNING" },
		{ "info", "INFO" }, { "notice", "INFO" }, { "debug", "DEBUG" },
		{ "trace", "DEBUG" }
	};
	const char *s = cJSON_IsString(item) ? item->valuestring : "";
	size_t i;

	if (*s >= '0' && *s <= '7' && s[1] == '\0')
		return numbers[*s - '0'];
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcasecmp(s, names[i][0]) == 0)
			return names[i][1];
	return NULL;
}

static const cJSON *
time_of(const cJSON *o)
{
	static const char *const keys[] = {
		"time", "timestamp", "@timestamp", "ts", "asctime",
		"__REALTIME_TIMESTAMP", "datetime", NULL
	};

	return first_of(o, keys);
}

static const cJSON *
text_of(const cJSON *o)
{
	static const char *const keys[] = {
		"log", "message", "msg", "MESSAGE", "textPayload", "event", NULL
	};
	const cJSON *text = first_of(o, keys);

	return cJSON_IsString(text) || cJSON_IsArray(text) ? text : NULL;
}

/* What came with an exception; a logger may print it without a text. */
static const cJSON *
trace_of(const cJSON *o)
{
	static const char *const keys[] = {
		"exc_info", "exception", "exc_text", "stack_trace", "traceback", NULL
	};
	const cJSON *trace = first_of(o, keys);

	return cJSON_IsString(trace) ? trace : NULL;
}

static const cJSON *
level_of(const cJSON *o)
{
	static const char *const keys[] = {
		"level", "levelname", "severity", "log.level", "PRIORITY", NULL
	};

	return first_of(o, keys);
}

/* Told apart from data by what only a record has beside its text. */
static bool
is_record(const cJSON *o)
{
	return cJSON_IsObject(o) && (text_of(o) != NULL || trace_of(o) != NULL) &&
	    strncmp(json_str(o, "schema", ""), "holdfast.", 9) != 0 &&
	    (time_of(o) != NULL || trace_of(o) != NULL ||
	    read_level(level_of(o)) != NULL || cJSON_HasObjectItem(o, "stream"));
}

/* False when the line is no record; otherwise the object is the caller's. */
static bool
record_open(const char *line, size_t len, struct record *r)
{
	memset(r, 0, sizeof(*r));
	if (len < 2 || len > RECORD_MAX || *line != '{' ||
	    json_parse(line, len, &r->object, NULL) == -1)
		return false;
	if (is_record(r->object))
		return true;
	cJSON_Delete(r->object);
	return false;
}

static int
record_read(struct record *r, struct buf *text)
{
	static const char *const nodes[] = {
		"_HOSTNAME", "hostname", "host", "node", NULL
	};
	const cJSON *o = r->object, *trace = trace_of(o);
	const cJSON *pod = cJSON_GetObjectItemCaseSensitive(o, "kubernetes");

	read_time(time_of(o), r);
	r->level = read_level(level_of(o));
	r->node = name_of(first_of(o, nodes));
	if (r->node == NULL)
		r->node = name_of(cJSON_GetObjectItemCaseSensitive(pod, "host"));
	r->program = name_of(cJSON_GetObjectItemCaseSensitive(o,
	    "SYSLOG_IDENTIFIER"));
	r->rank = (int)json_int(o, "rank", -1);
	r->pid = atoi(json_str(o, "_PID", "-1"));
	buf_clear(text);
	if (text_of(o) != NULL && read_text(text_of(o), text) == -1)
		return -1;
	if (trace != NULL && text->len > 0 && buf_puts(text, "\n") == -1)
		return -1;
	return trace != NULL ? read_text(trace, text) : 0;
}

/* What each line of the record begins with, in forms that prefix.c reads. */
static int
make_prefix(const struct record *r, struct buf *out)
{
	int rc = 0;

	buf_clear(out);
	if (*r->time)
		rc |= buf_printf(out, "%s ", r->time);
	/* As syslog has it; 0 stands for no process. */
	if (r->node != NULL && *r->time && r->program != NULL &&
	    strcmp(r->program, "kernel") == 0)
		rc |= buf_printf(out, "%s kernel: ", r->node);
	else if (r->node != NULL && *r->time)
		rc |= buf_printf(out, "%s %s[%d]: ", r->node,
		    r->program ? r->program : "log", r->pid > 0 ? r->pid : 0);
	if (r->rank >= 0)
		rc |= buf_printf(out, "[rank%d]: ", r->rank);
	/* A level of the journal is the program's, not that of the line. */
	if (r->level != NULL && r->program == NULL)
		rc |= buf_printf(out, "%s: ", r->level);
	return rc;
}

static int
flush(struct decoder *d, struct err *err)
{
	int rc = feed_spool_write(d->out, d->pending.data, d->pending.len, err);

	buf_clear(&d->pending);
	return rc;
}

/* The lines of the decoder's text, all of which are line `number` of the input. */
static int
emit(struct decoder *d, bool ends, uint64_t number, struct err *err)
{
	const char *p = d->text.data, *end = p + d->text.len, *next;
	struct buf *out = &d->pending;
	int rc = 0;

	do {
		next = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
		if (!d->open) {
			if (d->written != number && stream_mark(d->marks,
			    d->out->len + out->len, number, err) == -1)
				return -1;
			d->written = number;
			rc |= buf_append(out, d->prefix.data, d->prefix.len);
		}
		d->open = next == NULL && !ends;
		rc |= buf_append(out, p, (size_t)((next ? next : end) - p));
		if (!d->open) {
			rc |= buf_append(out, "\n", 1);
			d->written++;
		}
		p = next ? next + 1 : end;
	} while (p < end);
	if (rc != 0)
		return err_memory(err);
	return out->len < PENDING ? 0 : flush(d, err);
}

static int
decode_line(struct decoder *d, const char *line, size_t len, uint64_t number,
    struct err *err)
{
	struct record r;
	bool ends = true;
	int rc = 0;

	if (!record_open(line, len, &r)) {
		buf_clear(&d->prefix);
		buf_clear(&d->text);
		if (buf_append(&d->text, line, len) == -1)
			return err_memory(err);
		return emit(d, true, number, err);
	}
	if (record_read(&r, &d->text) == -1 || make_prefix(&r, &d->prefix) == -1)
		rc = err_memory(err);
	/* Docker cuts a long line into pieces; the last one has the newline. */
	if (cJSON_HasObjectItem(r.object, "log") && d->text.len > 0)
		ends = d->text.data[d->text.len - 1] == '\n';
	while (d->text.len > 0 && strchr("\r\n", d->text.data[d->text.len - 1]))
		d->text.data[--d->text.len] = '\0';
	cJSON_Delete(r.object);
	return rc == 0 ? emit(d, ends, number, err) : -1;
}

/* One record is enough in a log that costs little to copy; a large one is to have
 * many. */
bool
feed_json_is_log(const struct stream *s)
{
	const char *p = s->data, *end = s->data + s->len, *next;
	size_t lines = 0, records = 0;
	struct record r;

	if (s->kind != STREAM_LOG && s->kind != STREAM_KERNEL)
		return false;
	for (; p < end && lines < SAMPLE_LINES; p = next + 1, lines++) {
		next = memchr(p, '\n', (size_t)(end - p) < RECORD_MAX ?
		    (size_t)(end - p) : RECORD_MAX);
		if (next == NULL && (size_t)(end - p) > RECORD_MAX)
			break;
		if (next == NULL)
			next = end;
		if (*p == '{' && record_open(p, (size_t)(next - p), &r)) {
			records++;
			cJSON_Delete(r.object);
		}
	}
	return records > 0 && (s->len < SMALL || 4 * records >= lines);
}

int
feed_json_decode(const struct stream *s, struct feed_spool *out,
    struct stream *marks, struct err *err)
{
	struct decoder d = { .out = out, .marks = marks };
	const char *p = s->data, *end = s->data + s->len, *next;
	size_t at, released = 0;
	uint64_t number = s->lines_before;
	int rc = 0;

	for (; p < end && rc == 0; p = next + 1, number++) {
		if ((next = memchr(p, '\n', (size_t)(end - p))) == NULL)
			next = end;
		rc = decode_line(&d, p, (size_t)(next - p), number, err);
		at = (size_t)(next - s->data);
		if (at > released + RELEASE) {
			stream_release(s, released, at);
			released = at;
		}
	}
	if (rc == 0)
		rc = flush(&d, err);
	if (rc == 0 && d.open)
		rc = feed_spool_write(out, "\n", 1, err);
	if (stream_mark(marks, out->len, number, NULL) == -1 && rc == 0)
		rc = err_memory(err);
	marks->renumbered = true;
	buf_fini(&d.pending);
	buf_fini(&d.text);
	buf_fini(&d.prefix);
	return rc;
}
