/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml.c - builds a small tree from libyaml's events, with limits on depth and
 * size, duplicate keys refused.
 */
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "common/buf.h"
#include "common/file.h"
#include "common/text.h"
#include "common/yaml.h"

#define DEPTH_MAX	32
#define FILE_MAX	(16u << 20)

struct reader {
	const char	*name;
	const char	*data;
	yaml_parser_t	 parser;
	struct err	*err;
};

void
yaml_free(struct yaml *y)
{
	size_t i;

	if (y == NULL)
		return;
	for (i = 0; i < y->count; i++) {
		if (y->keys != NULL)
			yaml_free(y->keys[i]);
		yaml_free(y->items[i]);
	}
	free(y->keys);
	free(y->items);
	free(y->text);
	free(y);
}

static int
fail_at(struct reader *r, const yaml_mark_t *mark, const char *why)
{
	return err_set(r->err, ERR_FORMAT, "%s:%zu:%zu: %s", r->name,
	    mark->line + 1, mark->column + 1, why);
}

static int
next_event(struct reader *r, yaml_event_t *ev)
{
	yaml_mark_t at = {0};

	if (yaml_parser_parse(&r->parser, ev))
		return 0;
	/* Bytes that are no UTF-8: libyaml says their offset alone. */
	if (r->parser.error == YAML_READER_ERROR) {
		for (; at.index < r->parser.problem_offset; at.index++) {
			at.column++;
			if (r->data[at.index] == '\n') {
				at.line++;
				at.column = 0;
			}
		}
		return fail_at(r, &at, r->parser.problem);
	}
	return fail_at(r, &r->parser.problem_mark,
	    r->parser.problem ? r->parser.problem : "cannot be read");
}

static struct yaml *
node_new(struct reader *r, enum yaml_kind kind, const yaml_mark_t *mark)
{
	struct yaml *y = calloc(1, sizeof(*y));

	if (y == NULL) {
		err_memory(r->err);
		return NULL;
	}
	y->kind = kind;
	y->line = (int)mark->line + 1;
	y->column = (int)mark->column + 1;
	return y;
}

static int
node_add(struct reader *r, struct yaml *y, struct yaml *key,
    struct yaml *item)
{
	size_t n = y->count;
	struct yaml **p;

	if ((n & (n - 1)) == 0) {
		size_t cap = n ? n * 2 : 1;

		if ((p = realloc(y->items, cap * sizeof(*p))) == NULL)
			return err_memory(r->err);
		y->items = p;
		if (y->kind == YAML_MAP) {
			if ((p = realloc(y->keys, cap * sizeof(*p))) == NULL)
				return err_memory(r->err);
			y->keys = p;
		}
	}
	y->items[n] = item;
	if (y->kind == YAML_MAP)
		y->keys[n] = key;
	y->count++;
	return 0;
}

static struct yaml *read_node(struct reader *, const yaml_event_t *, int);

static struct yaml *
read_scalar(struct reader *r, const yaml_event_t *ev)
{
	struct yaml *y = node_new(r, YAML_SCALAR, &ev->start_mark);
	size_t len = ev->data.scalar.length;

	if (y == NULL)
		return NULL;
	if (memchr(ev->data.scalar.value, '\0', len) != NULL) {
		fail_at(r, &ev->start_mark, "NUL in a value");
		goto fail;
	}
	if ((y->text = malloc(len + 1)) == NULL) {
		err_memory(r->err);
		goto fail;
	}
	memcpy(y->text, ev->data.scalar.value, len);
	y->text[len] = '\0';
	y->quoted = ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	return y;
fail:
	yaml_free(y);
	return NULL;
}

/* Reads one value whose first event is still to come. */
static struct yaml *
read_next(struct reader *r, yaml_event_type_t end, int depth, bool *ended)
{
	struct yaml *y = NULL;
	yaml_event_t ev;

	*ended = false;
	if (next_event(r, &ev) == -1)
		return NULL;
	if (ev.type == end)
		*ended = true;
	else
		y = read_node(r, &ev, depth);
	yaml_event_delete(&ev);
	return y;
}

static struct yaml *
read_list(struct reader *r, const yaml_event_t *ev, int depth)
{
	struct yaml *y = node_new(r, YAML_LIST, &ev->start_mark), *item;
	bool ended;

	if (y == NULL)
		return NULL;
	for (;;) {
		item = read_next(r, YAML_SEQUENCE_END_EVENT, depth, &ended);
		if (ended)
			return y;
		if (item == NULL)
			break;
		if (node_add(r, y, NULL, item) == -1) {
			yaml_free(item);
			break;
		}
	}
	yaml_free(y);
	return NULL;
}

static int
check_key(struct reader *r, const struct yaml *map, const struct yaml *key)
{
	if (key->kind != YAML_SCALAR)
		return err_set(r->err, ERR_FORMAT,
		    "%s:%d:%d: a key must be a word", r->name, key->line,
		    key->column);
	if (yaml_get(map, key->text) != NULL)
		return err_set(r->err, ERR_FORMAT,
		    "%s:%d:%d: '%s' is given twice", r->name, key->line,
		    key->column, key->text);
	return 0;
}

static struct yaml *
read_map(struct reader *r, const yaml_event_t *ev, int depth)
{
	struct yaml *y = node_new(r, YAML_MAP, &ev->start_mark);
	struct yaml *key = NULL, *item = NULL;
	bool ended;

	if (y == NULL)
		return NULL;
	for (;;) {
		key = read_next(r, YAML_MAPPING_END_EVENT, depth, &ended);
		if (ended)
			return y;
		if (key == NULL || check_key(r, y, key) == -1)
			break;
		item = read_next(r, YAML_NO_EVENT, depth, &ended);
		if (item == NULL || node_add(r, y, key, item) == -1)
			break;
		key = item = NULL;
	}
	yaml_free(key);
	yaml_free(item);
	yaml_free(y);
	return NULL;
}

/* Only the three kinds of value can carry an anchor or a tag. */
static bool
is_decorated(const yaml_event_t *ev)
{
	switch (ev->type) {
	case YAML_SCALAR_EVENT:
		return ev->data.scalar.anchor || ev->data.scalar.tag;
	case YAML_SEQUENCE_START_EVENT:
		return ev->data.sequence_start.anchor ||
		    ev->data.sequence_start.tag;
	case YAML_MAPPING_START_EVENT:
		return ev->data.mapping_start.anchor ||
		    ev->data.mapping_start.tag;
	default:
		return false;
	}
}

static struct yaml *
read_node(struct reader *r, const yaml_event_t *ev, int depth)
{
	if (depth >= DEPTH_MAX) {
		fail_at(r, &ev->start_mark, "nested too deeply");
		return NULL;
	}
	if (is_decorated(ev)) {
		fail_at(r, &ev->start_mark,
		    "anchors and tags are not supported");
		return NULL;
	}
	switch (ev->type) {
	case YAML_SCALAR_EVENT:
		return read_scalar(r, ev);
	case YAML_SEQUENCE_START_EVENT:
		return read_list(r, ev, depth + 1);
	case YAML_MAPPING_START_EVENT:
		return read_map(r, ev, depth + 1);
	case YAML_ALIAS_EVENT:
		fail_at(r, &ev->start_mark, "aliases are not supported");
		return NULL;
	default:
		fail_at(r, &ev->start_mark, "a value was expected");
		return NULL;
	}
}

/* "---" with nothing behind it is one empty plain scalar. */
static bool
is_nothing(const yaml_event_t *ev)
{
	return ev->type == YAML_SCALAR_EVENT && ev->data.scalar.length == 0 &&
	    ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	    !is_decorated(ev);
}

static struct yaml *
read_document(struct reader *r)
{
	struct yaml *y = NULL;
	yaml_event_t ev;

	for (;;) {
		if (next_event(r, &ev) == -1)
			return NULL;
		if (ev.type == YAML_STREAM_END_EVENT || is_nothing(&ev)) {
			y = node_new(r, YAML_MAP, &ev.start_mark);
			break;
		}
		if (ev.type != YAML_STREAM_START_EVENT &&
		    ev.type != YAML_DOCUMENT_START_EVENT) {
			y = read_node(r, &ev, 0);
			break;
		}
		yaml_event_delete(&ev);
	}
	yaml_event_delete(&ev);
	return y;
}

/* What follows the value must be the end: a second document, or text that
 * cannot be parsed, would otherwise be lost in silence. */
static int
check_end(struct reader *r)
{
	yaml_event_type_t type;
	yaml_event_t ev;

	do {
		if (next_event(r, &ev) == -1)
			return -1;
		type = ev.type;
		if (type == YAML_DOCUMENT_START_EVENT)
			fail_at(r, &ev.start_mark, "only one document is read");
		yaml_event_delete(&ev);
		if (type == YAML_DOCUMENT_START_EVENT)
			return -1;
	} while (type == YAML_DOCUMENT_END_EVENT);
	return 0;
}

int
yaml_read(const char *name, const char *data, size_t len, struct yaml **out,
    struct err *err)
{
	struct reader r = { .name = name, .data = data, .err = err };
	struct yaml *y;

	if (!yaml_parser_initialize(&r.parser))
		return err_memory(err);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)data,
	    len);
	y = read_document(&r);
	if (y != NULL && y->line > 0 && len > 0 && check_end(&r) == -1) {
		yaml_free(y);
		y = NULL;
	}
	yaml_parser_delete(&r.parser);
	if (y == NULL)
		return -1;
	*out = y;
	return 0;
}

int
yaml_read_file(const char *path, struct yaml **out, struct err *err)
{
	struct buf data = {0};
	int rc = -1;

	if (file_read(path, FILE_MAX, &data, err) == 0)
		rc = yaml_read(path, data.data ? data.data : "", data.len,
		    out, err);
	buf_fini(&data);
	return rc;
}

const struct yaml *
yaml_get(const struct yaml *map, const char *key)
{
	size_t i;

	if (map == NULL || map->kind != YAML_MAP)
		return NULL;
	for (i = 0; i < map->count; i++)
		if (strcmp(map->keys[i]->text, key) == 0)
			return map->items[i];
	return NULL;
}

const char *
yaml_text(const struct yaml *map, const char *key, const char *def)
{
	const struct yaml *v = yaml_get(map, key);

	return v != NULL && v->kind == YAML_SCALAR ? v->text : def;
}

int
yaml_check_keys(const char *name, const struct yaml *map,
    const char *const *known, struct err *err)
{
	size_t i, k;

	for (i = 0; i < map->count; i++) {
		const struct yaml *key = map->keys[i];
		struct text_nearest near = {0};

		for (k = 0; known[k] != NULL; k++) {
			if (strcmp(known[k], key->text) == 0)
				break;
			text_nearest_try(&near, key->text, known[k]);
		}
		if (known[k] != NULL)
			continue;
		return err_set(err, ERR_FORMAT,
		    "%s:%d:%d: unknown key '%s'%s%s%s", name, key->line,
		    key->column, key->text, near.best ? ", did you mean '" : "",
		    near.best ? near.best : "", near.best ? "'?" : "");
	}
	return 0;
}
