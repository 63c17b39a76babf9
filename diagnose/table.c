/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c - reads torchelastic's failure tables, of one node or of many.
 *
 * A table tells the first failure that its agent saw, which may be an echo of one on
 * another node, or of one in the same second; so all entries of all tables count.
 */
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/table.h"

#define TABLE_BYTES	(1u << 20)	/* of one table, tracebacks included */
#define TABLE_LINES	6000
#define SEARCH_MAX	((size_t)256 << 20)
#define ENTRIES_MAX	65536
#define WINDOW		((size_t)16 << 20)	/* with tables of other nodes */
#define MESSAGE_MIN	12	/* a shorter text may stand anywhere */
#define FIELD_MAX	24		/* "  error_file" and its colon */

static const char mark_words[] = "Root Cause";

/* A line of the table, and its key when it has one. */
struct row {
	struct piece	 piece;
	struct line	 line;
	const char	*value;		/* NULL: no "key : value" */
	size_t		 len;
	char		 key[16];
};

static void
split(struct row *r)
{
	const char *p = r->line.text, *end = p + r->line.len, *colon;
	size_t n = r->line.len < FIELD_MAX ? r->line.len : FIELD_MAX, k = 0;

	r->value = NULL;
	r->key[0] = '\0';
	if (n < 6 || p[0] != ' ' || p[1] != ' ' || p[2] == ' ' ||
	    (colon = memchr(p, ':', n)) == NULL)
		return;
	for (p += 2; p < colon && *p != ' ' && k + 1 < sizeof(r->key); p++)
		r->key[k++] = *p;
	r->key[k] = '\0';
	for (; p < colon; p++)
		if (*p != ' ')
			return;
	r->value = colon + 1 < end && colon[1] == ' ' ? colon + 2 : colon + 1;
	r->len = (size_t)(end - r->value);
}

static bool
read_row(const struct stream *s, const struct line_styles *styles, size_t at,
    uint64_t key, struct row *r)
{
	size_t n;

	if (at >= s->len || !line_piece(s->data, s->len, at, 0, &r->piece))
		return false;
	n = r->piece.end - r->piece.start;
	line_parse(s->data + r->piece.start, n > 1024 ? 1024 : n, &r->line);
	line_styles_apply(styles, &r->line);
	r->value = NULL;
	r->key[0] = '\0';
	if (r->line.key == key)
		split(r);
	return true;
}

static int
leading_number(const char *p, size_t n, int def)
{
	size_t i = 0;
	int v = 0;
	bool minus = n > 0 && p[0] == '-';

	for (i = minus; i < n && i < 9 && p[i] >= '0' && p[i] <= '9'; i++)
		v = v * 10 + (p[i] - '0');
	return i == (size_t)minus ? def : minus ? -v : v;
}

static int
number_behind(const struct row *r, const char *words)
{
	const char *at = memmem(r->value, r->len, words, strlen(words));

	if (at == NULL)
		return -1;
	at += strlen(words);
	return leading_number(at, (size_t)(r->value + r->len - at), -1);
}

static struct table_entry *
add_entry(struct table_list *l, const struct event *mark, const struct row *r,
    struct err *err)
{
	struct table_entry *e;

	if (l->count == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 16;
		e = realloc(l->list, l->cap * sizeof(*e));
		if (e == NULL) {
			err_memory(err);
			return NULL;
		}
		l->list = e;
	}
	e = &l->list[l->count++];
	*e = (struct table_entry){ .stream = mark->stream, .key = mark->key,
	    .task = r->line.task, .begin = r->piece.start, .end = r->piece.end,
	    .line = r->piece.start, .rank = -1, .local_rank = -1,
	    .exitcode = INT_MIN, .pid = -1, .time_ns = LINE_NO_TIME,
	    .root = r->piece.start > mark->start };
	return e;
}

static void
fill_entry(struct table_entry *e, const struct row *r)
{
	if (strcmp(r->key, "time") == 0) {
		(void)line_parse_time(r->value, r->len, &e->time_ns);
	} else if (strcmp(r->key, "host") == 0) {
		size_t n = 0;

		while (n < r->len && n + 1 < sizeof(e->host) &&
		    r->value[n] > ' ')
			n++;
		memcpy(e->host, r->value, n);
		e->host[n] = '\0';
	} else if (strcmp(r->key, "rank") == 0) {
		e->rank = leading_number(r->value, r->len, -1);
		e->local_rank = number_behind(r, "(local_rank: ");
	} else if (strcmp(r->key, "exitcode") == 0) {
		e->exitcode = leading_number(r->value, r->len, INT_MIN);
		e->pid = number_behind(r, "(pid: ");
		e->line = r->piece.start;
	} else if (strcmp(r->key, "error_file") == 0) {
		e->told = r->len > 0 && r->value[0] != '<';
	} else if (strcmp(r->key, "traceback") == 0) {
		if (r->len > 9 && memcmp(r->value, "Traceback", 9) == 0)
			e->told = true;
	}
}

bool
table_is_mark(const struct stream *s, const struct event *e)
{
	return e->text >= e->start &&
	    e->text - e->start + sizeof(mark_words) <= e->len &&
	    memcmp(s->data + e->text, mark_words, sizeof(mark_words) - 1) == 0;
}

/* Where the table of a mark begins: its first entry of "Failures:". */
static size_t
find_begin(const struct stream *s, const struct line_styles *styles,
    const struct event *mark)
{
	struct piece p = { mark->start, mark->start };
	struct line l;
	int lines;

	for (lines = 0; lines < TABLE_LINES &&
	    mark->start - p.start < TABLE_BYTES; lines++) {
		if (!line_piece_before(s->data, p.start, &p))
			break;
		line_parse(s->data + p.start, p.end - p.start > 256 ? 256 :
		    p.end - p.start, &l);
		line_styles_apply(styles, &l);
		if (l.key != mark->key || l.len < 4)
			continue;
		if (memcmp(l.text, "Fail", 4) == 0)
			return p.start;
		if (memcmp(l.text, "====", 4) == 0)
			break;
	}
	return mark->start;
}

static int
read_one(struct table_list *l, const struct feed *feed,
    const struct line_styles *styles, const struct event *mark, struct err *err)
{
	const struct stream *s = &feed->streams[mark->stream];
	size_t at = find_begin(s, styles, mark);
	struct table_entry *e = NULL;
	bool behind;
	struct row r;
	int lines;

	for (lines = 0; lines < TABLE_LINES; lines++) {
		if (!read_row(s, styles, at, mark->key, &r))
			break;
		at = r.piece.end + 1;
		behind = r.piece.start > mark->start;
		if (r.line.key != mark->key)
			continue;
		if (behind && r.line.len >= 4 &&
		    (memcmp(r.line.text, "====", 4) == 0 ||
		    memcmp(r.line.text, "****", 4) == 0))
			break;
		if (r.line.len > 2 && r.line.text[0] == '-')
			e = NULL;
		if (strcmp(r.key, "time") == 0 && r.value != NULL &&
		    (e = add_entry(l, mark, &r, err)) == NULL)
			return -1;
		if (e == NULL)
			continue;
		e->end = r.piece.end;
		if (r.value != NULL)
			fill_entry(e, &r);
		if (at - mark->start > TABLE_BYTES && behind)
			break;
	}
	return 0;
}

int
table_read(struct table_list *l, const struct feed *feed,
    const struct line_styles *styles, const struct event *first, size_t *to,
    struct err *err)
{
	const struct stream *s = &feed->streams[first->stream];
	const char *at = s->data + first->start, *end;
	struct event mark = *first;
	struct piece p;
	struct line line;

	*to = s->len - first->start > WINDOW ? first->start + WINDOW : s->len;
	end = s->data + *to;
	while (l->count < ENTRIES_MAX && (at = memmem(at, (size_t)(end - at),
	    mark_words, sizeof(mark_words) - 1)) != NULL) {
		if (line_piece(s->data, s->len, (size_t)(at - s->data), 4096, &p)) {
			line_parse(s->data + p.start, p.end - p.start > 256 ? 256 :
			    p.end - p.start, &line);
			line_styles_apply(styles, &line);
			mark.start = p.start;
			mark.key = line.key;
			if (line.text == at &&
			    read_one(l, feed, styles, &mark, err) == -1)
				return -1;
		}
		at += sizeof(mark_words) - 1;
	}
	return 0;
}

void
table_fini(struct table_list *l)
{
	free(l->list);
	memset(l, 0, sizeof(*l));
}

const struct table_entry *
table_at(const struct table_list *l, uint32_t stream, size_t at)
{
	size_t i;

	for (i = 0; i < l->count; i++)
		if (l->list[i].stream == stream && l->list[i].begin <= at &&
		    at < l->list[i].end)
			return &l->list[i];
	return NULL;
}

const struct table_entry *
table_of_process(const struct table_list *l, uint32_t stream, int pid,
    int local_rank)
{
	const struct table_entry *found = NULL;
	size_t i;

	for (i = 0; i < l->count; i++) {
		const struct table_entry *e = &l->list[i];

		if (e->stream != stream)
			continue;
		if (pid > 0 && e->pid == pid)
			return e;
		if (local_rank < 0 || e->local_rank != local_rank)
			continue;
		if (found != NULL && found->rank != e->rank)
			return NULL;
		found = e;
	}
	return found;
}

const struct table_entry *
table_of_message(struct table_list *l, const struct stream *s,
    uint32_t stream, const char *text, size_t len)
{
	const struct table_entry *found = NULL;
	size_t i;

	for (; len > 0 && *text == ' '; text++)
		len--;
	while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\r'))
		len--;
	if (len < MESSAGE_MIN || l->searched > SEARCH_MAX)
		return NULL;
	for (i = 0; i < l->count; i++) {
		const struct table_entry *e = &l->list[i];

		if (e->stream != stream)
			continue;
		l->searched += e->end - e->begin;
		if (memmem(s->data + e->begin, e->end - e->begin, text,
		    len) == NULL)
			continue;
		if (found != NULL && found->rank != e->rank)
			return NULL;
		found = e;
	}
	return found;
}

const struct table_entry *
table_of_crash(const struct table_list *l, uint32_t stream)
{
	static const int signals[] = { SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE };
	const struct table_entry *found = NULL;
	size_t i, k;

	for (i = 0; i < l->count; i++) {
		const struct table_entry *e = &l->list[i];

		for (k = 0; k < sizeof(signals) / sizeof(signals[0]); k++)
			if (e->exitcode == -signals[k] ||
			    e->exitcode == 128 + signals[k])
				break;
		if (k == sizeof(signals) / sizeof(signals[0]) ||
		    e->stream != stream)
			continue;
		if (found != NULL && found->rank != e->rank)
			return NULL;
		found = e;
	}
	return found;
}

const struct table_entry *
table_of_task(const struct table_list *l, uint32_t stream, int task)
{
	size_t i;

	for (i = 0; i < l->count && task >= 0; i++)
		if (l->list[i].stream == stream && l->list[i].task == task)
			return &l->list[i];
	return NULL;
}

static int64_t
first_second(const struct table_list *l)
{
	int64_t first = LINE_NO_TIME;
	size_t i;

	for (i = 0; i < l->count; i++)
		if (l->list[i].time_ns != LINE_NO_TIME &&
		    (first == LINE_NO_TIME || l->list[i].time_ns < first))
			first = l->list[i].time_ns;
	return first;
}

bool
table_is_first(const struct table_list *l, int rank)
{
	int64_t first = first_second(l);
	size_t i;

	for (i = 0; i < l->count && rank >= 0; i++)
		if (l->list[i].rank == rank && (first == LINE_NO_TIME ?
		    l->list[i].root : l->list[i].time_ns == first))
			return true;
	return false;
}

int
table_order(const struct table_list *l, int rank)
{
	int64_t when = LINE_NO_TIME;
	size_t i;
	int n = 0;

	for (i = 0; i < l->count && rank >= 0; i++)
		if (l->list[i].rank == rank)
			when = l->list[i].time_ns;
	if (when == LINE_NO_TIME)
		return -1;
	for (i = 0; i < l->count; i++)
		n += l->list[i].time_ns != LINE_NO_TIME &&
		    l->list[i].time_ns < when;
	return n;
}
