/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match.c - PCRE2 in non-UTF mode with JIT when there is one.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

#include "diagnose/match.h"

/* pcre2api(3): counts of internal match() calls; a healthy rule needs a few
 * hundred on a line of 16 KiB. */
#define MATCH_LIMIT_STEPS	200000
#define MATCH_LIMIT_DEPTH	2000
#define MATCH_LIMIT_HEAP_KIB	4096

struct match {
	pcre2_code		*code;
	pcre2_match_data	*data;
	pcre2_match_context	*context;
	const char		*text;
};

int
match_new(const char *pattern, struct match **out, struct err *err)
{
	struct match *m = calloc(1, sizeof(*m));
	PCRE2_UCHAR why[120];
	PCRE2_SIZE at;
	int code;

	if (m == NULL)
		return err_memory(err);
	m->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
	    PCRE2_NEVER_UTF | PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
	if (m->code == NULL) {
		pcre2_get_error_message(code, why, sizeof(why));
		match_free(m);
		return err_set(err, ERR_FORMAT, "%s at offset %zu", why, at);
	}
	/* Without JIT it is slower, not wrong. */
	(void)pcre2_jit_compile(m->code, PCRE2_JIT_COMPLETE);
	m->data = pcre2_match_data_create_from_pattern(m->code, NULL);
	m->context = pcre2_match_context_create(NULL);
	if (m->data == NULL || m->context == NULL) {
		match_free(m);
		return err_memory(err);
	}
	pcre2_set_match_limit(m->context, MATCH_LIMIT_STEPS);
	pcre2_set_depth_limit(m->context, MATCH_LIMIT_DEPTH);
	pcre2_set_heap_limit(m->context, MATCH_LIMIT_HEAP_KIB);
	*out = m;
	return 0;
}

void
match_free(struct match *m)
{
	if (m == NULL)
		return;
	pcre2_match_context_free(m->context);
	pcre2_match_data_free(m->data);
	pcre2_code_free(m->code);
	free(m);
}

enum match_result
match_run(struct match *m, const char *text, size_t len)
{
	int rc;

	if (len > MATCH_LINE_MAX)
		len = MATCH_LINE_MAX;
	m->text = text;
	rc = pcre2_match(m->code, (PCRE2_SPTR)text, len, 0, 0, m->data,
	    m->context);
	if (rc >= 0)
		return MATCH_YES;
	return rc == PCRE2_ERROR_NOMATCH ? MATCH_NO : MATCH_LIMIT;
}

size_t
match_start(const struct match *m)
{
	return pcre2_get_ovector_pointer(m->data)[0];
}

const char *
match_group(const struct match *m, const char *name, size_t *len)
{
	const PCRE2_SIZE *v = pcre2_get_ovector_pointer(m->data);
	int n = pcre2_substring_number_from_name(m->code, (PCRE2_SPTR)name);
	uint32_t count = pcre2_get_ovector_count(m->data);

	if (n <= 0 || (uint32_t)n >= count || v[2 * n] == PCRE2_UNSET)
		return NULL;
	*len = v[2 * n + 1] - v[2 * n];
	return m->text + v[2 * n];
}
