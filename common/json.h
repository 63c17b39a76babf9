/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - what Holdfast needs on top of cJSON: checked reading with defaults,
 * and text made valid UTF-8 on the way out.
 *
 * cJSON objects stay inside the file that parses or prints them.
 */
#ifndef HOLDFAST_COMMON_JSON_H
#define HOLDFAST_COMMON_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* Parses exactly one JSON value in len bytes; the caller frees *out with
 * cJSON_Delete().  Trailing white space is fine, anything else an error. */
int	json_parse(const char *text, size_t len, cJSON **out, struct err *err);

/* Members of an object, or the default when absent or of another type.
 * Strings are borrowed from the object. */
const char *json_str(const cJSON *object, const char *key, const char *def);
int64_t	json_int(const cJSON *object, const char *key, int64_t def);
double	json_num(const cJSON *object, const char *key, double def);
bool	json_bool(const cJSON *object, const char *key, bool def);

/* Adds text as a string, null when text is NULL; bytes that are not UTF-8
 * become U+FFFD.  Return 0, or -1 when memory is short. */
int	json_add_text(cJSON *object, const char *key, const char *text);
int	json_add_bytes(cJSON *object, const char *key, const char *data,
	    size_t len);
/* As json_add_text(), at the end of a list. */
int	json_add_item(cJSON *list, const char *text);
/* Adds an integer; INT64_MIN (unknown) becomes null. */
int	json_add_int(cJSON *object, const char *key, int64_t value);
#define JSON_UNKNOWN	INT64_MIN

/* One line with a newline at its end, to be freed by the caller; NULL when
 * memory is short. */
char	*json_line(const cJSON *value);

#endif
