/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - checked reading and clean writing of JSON through cJSON.
 */
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/json.h"
#include "common/text.h"

int
json_parse(const char *text, size_t len, cJSON **out, struct err *err)
{
	const char *end = NULL;
	cJSON *v;

	v = cJSON_ParseWithLengthOpts(text, len, &end, false);
	if (v == NULL)
		return err_set(err, ERR_FORMAT, "not JSON at byte %zu",
		    end ? (size_t)(end - text) : 0);
	while (end < text + len && (*end == ' ' || *end == '\n' ||
	    *end == '\r' || *end == '\t'))
		end++;
	if (end != text + len) {
		err_set(err, ERR_FORMAT, "bytes after the JSON value at byte %zu",
		    (size_t)(end - text));
		cJSON_Delete(v);
		return -1;
	}
	*out = v;
	return 0;
}

const char *
json_str(const cJSON *object, const char *key, const char *def)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsString(v) ? v->valuestring : def;
}

double
json_num(const cJSON *object, const char *key, double def)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsNumber(v) ? v->valuedouble : def;
}

int64_t
json_int(const cJSON *object, const char *key, int64_t def)
{
	double d = json_num(object, key, 0.5);

	/* Outside +-2^53 a double is no exact integer, so it is not taken for one. */
	if (!(d >= -9007199254740992.0 && d <= 9007199254740992.0) ||
	    d != (double)(int64_t)d)
		return def;
	return (int64_t)d;
}

bool
json_bool(const cJSON *object, const char *key, bool def)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsBool(v) ? cJSON_IsTrue(v) : def;
}

int
json_add_bytes(cJSON *object, const char *key, const char *data, size_t len)
{
	struct buf clean = {0};
	int rc = -1;

	if (text_utf8_clean(data, len, &clean) == 0 &&
	    cJSON_AddStringToObject(object, key, clean.data) != NULL)
		rc = 0;
	buf_fini(&clean);
	return rc;
}

int
json_add_text(cJSON *object, const char *key, const char *text)
{
	if (text == NULL)
		return cJSON_AddNullToObject(object, key) ? 0 : -1;
	return json_add_bytes(object, key, text, strlen(text));
}

int
json_add_item(cJSON *list, const char *text)
{
	cJSON *holder = cJSON_CreateObject();
	int rc = -1;

	if (holder != NULL && json_add_text(holder, "x", text) == 0 &&
	    cJSON_AddItemToArray(list, cJSON_DetachItemFromObject(holder, "x")))
		rc = 0;
	cJSON_Delete(holder);
	return rc;
}

int
json_add_int(cJSON *object, const char *key, int64_t value)
{
	if (value == JSON_UNKNOWN)
		return cJSON_AddNullToObject(object, key) ? 0 : -1;
	return cJSON_AddNumberToObject(object, key, (double)value) ? 0 : -1;
}

char *
json_line(const cJSON *value)
{
	char *text = cJSON_PrintUnformatted(value), *line;
	size_t n;

	if (text == NULL)
		return NULL;
	n = strlen(text);
	if ((line = realloc(text, n + 2)) == NULL) {
		free(text);
		return NULL;
	}
	line[n] = '\n';
	line[n + 1] = '\0';
	return line;
}
