/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_rules.c - any bytes as a file of rules; what of it is loaded is planned,
 * linted and matched against the file's own lines.  A literal that is taken for
 * required must be in each line its rule matches.  A libFuzzer target.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/event.h"
#include "diagnose/match.h"
#include "diagnose/rule_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool
has_literal(const struct rule_def *d, const char *text, size_t len)
{
	const struct scan_literal *l;
	size_t i, k;

	for (l = d->literals; l->text != NULL; l++)
		for (i = 0; i + l->len <= len; i++) {
			for (k = 0; k < l->len; k++) {
				char c = text[i + k];

				if (l->fold && c >= 'A' && c <= 'Z')
					c |= 0x20;
				if (c != l->text[k])
					break;
			}
			if (k == l->len)
				return true;
		}
	return false;
}

static void
check_rule(struct rule *r, const char *line, size_t len)
{
	if (r->broken || r->def.literals == NULL)
		return;
	if (r->match == NULL && match_new(r->def.match, &r->match, NULL) == -1)
		return;
	if (match_run(r->match, line, len) == MATCH_YES &&
	    !has_literal(&r->def, line, len))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *text = (const char *)data, *line, *nl;
	struct rule_set *set;
	size_t i, n;

	if (len > 4096 || rule_set_new(&set, NULL) == -1)
		return 0;
	(void)rule_read_text(set, "fuzz", text, len, NULL, NULL);
	if (rule_set_finish(set, NULL, NULL, NULL) == 0)
		for (line = text; line < text + len; line += n + 1) {
			nl = memchr(line, '\n', (size_t)(text + len - line));
			n = nl ? (size_t)(nl - line) :
			    (size_t)(text + len - line);
			(void)rule_set_match_line(set, line, n, NULL, NULL);
			for (i = 0; i < set->count; i++)
				check_rule(&set->rules[i], line, n);
		}
	rule_set_free(set);
	return 0;
}
