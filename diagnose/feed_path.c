/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_path.c - rank and node from the path of one file.
 *
 * Reads the path as it was found below the directory that was named, or as it was
 * named itself.  What could mean something else stays unknown: a wrong node would
 * be excluded, a wrong rank blamed.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/feed_name.h"
#include "diagnose/feed_path.h"

/* Names of hosts that could be nothing else: with numbers in two places, or many
 * digits, or zeros in front.  "node16" in the middle of a name may be a count. */
#define HOST \
	"(?:(?:node|host|cn|gn|compute|dgx|hgx|gpunode|cnode)-?(?:0\\d+|\\d+-\\d+)" \
	"|nid\\d{4,}|gpu-\\d+-\\d+|ip(?:-\\d{1,3}){4}|[a-z]{1,2}\\d{2,}n\\d{2,}" \
	"|\\d{1,3}(?:\\.\\d{1,3}){3})"
/* ... when nothing else stands there. */
#define HOST_ALONE \
	"(?:" HOST "|(?:node|host|cn|gn|dgx|hgx|gpunode|cnode)-?\\d+)"
/* ... beside "dmesg": any word with letters and digits but these. */
#define HOST_KERNEL \
	"(?!(?:run|attempt|job|boot|exp|try|gpu|rank|part|log|test|v)[_-]?\\d)" \
	"(?=[a-z\\d-]*[a-z])(?=[a-z-]*\\d)[a-z\\d][a-z\\d-]*"
#define KERNEL		"(?:dmesg|kmsg|kern(?:el)?)"
#define EXTENSION	"(?:\\.(?:log|txt|out|err))"
#define DOMAIN		"(?:\\.[a-z][a-z\\d.-]*?)?"
#define NOT_AFTER(word)	"(?<!" word "[._-])"
#define NO_WORD_BEFORE	"(?<![a-z\\d])"
#define NO_WORD_BEHIND	"(?![a-z\\d])"

/* The first one that finds a rank, a local rank or a node gives it. */
static const char *const patterns[] = {
	/* Holdfast */
	"(?:^|/)(?<node>[^/]+)\\.(?:exits|kmsg)$",
	/* torch.distributed.run, --log-dir and --redirects */
	"(?:^|/)attempt_\\d+/(?<local>\\d{1,5})/(?:std(?:out|err)\\.log|error\\.json)$",
	/* mpirun --output-filename */
	"(?:^|/)(?:global_?)?rank[._-]?(?<rank>\\d{1,7})/(?:std)?(?:out|err)[^/]*$",
	/* NeMo, Lightning */
	"global_?rank[._=-]?(?<rank>\\d{1,7})" NO_WORD_BEHIND "[^/]*$",
	"local_?rank[._=-]?(?<local>\\d{1,5})" NO_WORD_BEHIND "[^/]*$",
	/* Others; but not those of LoRA, of parallel groups, of nodes. */
	"(?<![a-z])(?<!(?<![a-z])(?:lo|mp|tp|pp|dp|ep|cp|sp)[._-])"
	    NOT_AFTER("low") NOT_AFTER("lora") NOT_AFTER("node") NOT_AFTER("role")
	    NOT_AFTER("group") NOT_AFTER("local") NOT_AFTER("machine")
	    "rank[._=-]?(?<rank>\\d{1,7})" NO_WORD_BEHIND "[^/]*$",
	/* Slurm's %N.%t */
	"\\.(?<node>" HOST_ALONE ")\\.\\d+" EXTENSION "$",
	/* Kernel logs */
	"(?:^|/)" KERNEL "[._-](?<node>" HOST_KERNEL ")" DOMAIN EXTENSION "?$",
	"(?:^|/)(?<node>" HOST_KERNEL ")" DOMAIN "[._-]" KERNEL EXTENSION "?$",
	"(?:^|/)" KERNEL "[._-](?<node>" HOST ")" EXTENSION "?$",
	"(?:^|/)(?<node>" HOST ")[._-]" KERNEL EXTENSION "?$",
	/* Files and folders of one host */
	"(?:^|/)(?<node>" HOST_ALONE ")" DOMAIN "(?:" EXTENSION "$|/)",
	NO_WORD_BEFORE "(?<node>" HOST ")(?![a-z\\d-])[^/]*$"
};
#define PATTERNS	(sizeof(patterns) / sizeof(patterns[0]))

static const char number_pattern[] =
	"(?:(?:^|[/._-])(?:log|out|err|output|stdout|stderr|task|proc|process)[._-]?"
	    "|\\.(?<host>" HOST_ALONE ")\\.)(?<number>\\d{1,6})" EXTENSION "?$";

static pcre2_code *codes[PATTERNS], *number_code;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static pcre2_code *
compile_one(const char *pattern)
{
	PCRE2_SIZE at;
	int why;

	return pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
	    PCRE2_CASELESS | PCRE2_NEVER_UTF, &why, &at, NULL);
}

static void
compile(void)
{
	size_t i;

	for (i = 0; i < PATTERNS; i++)
		codes[i] = compile_one(patterns[i]);
	number_code = compile_one(number_pattern);
}

/* Where a named group of a match is; false when it is not set. */
static bool
group_place(const pcre2_code *code, pcre2_match_data *m, const char *name,
    size_t *at, size_t *len)
{
	const PCRE2_SIZE *v = pcre2_get_ovector_pointer(m);
	int n = pcre2_substring_number_from_name(code, (PCRE2_SPTR)name);

	if (n <= 0 || v[2 * n] == PCRE2_UNSET)
		return false;
	*at = v[2 * n];
	*len = v[2 * n + 1] - v[2 * n];
	return true;
}

/* A named group of a match, in a new string; NULL when it is not set. */
static char *
group(const pcre2_code *code, pcre2_match_data *m, const char *subject,
    const char *name)
{
	size_t at, len;

	return group_place(code, m, name, &at, &len) ?
	    strndup(subject + at, len) : NULL;
}

static void
take_number(const pcre2_code *code, pcre2_match_data *m, const char *subject,
    const char *name, int *out)
{
	char *text = group(code, m, subject, name);

	if (text != NULL && *out == -1)
		*out = atoi(text);
	free(text);
}

static bool
ends_with(const char *text, size_t n, const char *end)
{
	size_t k = strlen(end);

	return n >= k && memcmp(text + n - k, end, k) == 0;
}

static enum stream_kind
kind_of(const char *base, size_t n)
{
	if (ends_with(base, n, ".exits"))
		return STREAM_EXITS;
	if (strcmp(base, "error.json") == 0)
		return STREAM_ERROR;
	if (memmem(base, n, "dmesg", 5) != NULL ||
	    memmem(base, n, "kmsg", 4) != NULL || strncmp(base, "kern.", 5) == 0)
		return STREAM_KERNEL;
	return STREAM_LOG;
}

void
feed_path_describe(struct stream *s)
{
	const char *base = feed_name_base(s->name);
	pcre2_match_data *m;
	struct feed_part part;
	size_t i, len;

	feed_name_part(base, &part);
	len = (size_t)(base - s->name) + part.stem;
	s->kind = kind_of(base, part.stem);
	pthread_once(&once, compile);
	if ((m = pcre2_match_data_create(8, NULL)) == NULL)
		return;
	for (i = 0; i < PATTERNS; i++) {
		if (codes[i] == NULL || pcre2_match(codes[i],
		    (PCRE2_SPTR)s->name, len, 0, 0, m, NULL) <= 0)
			continue;
		take_number(codes[i], m, s->name, "rank", &s->rank);
		take_number(codes[i], m, s->name, "local", &s->local_rank);
		if (s->node == NULL)
			s->node = group(codes[i], m, s->name, "node");
	}
	pcre2_match_data_free(m);
}

bool
feed_path_number(const char *path, size_t len, struct feed_number *out)
{
	pcre2_match_data *m = pcre2_match_data_create(8, NULL);
	bool found;

	*out = (struct feed_number){ .len = 0 };
	pthread_once(&once, compile);
	found = m != NULL && number_code != NULL && pcre2_match(number_code,
	    (PCRE2_SPTR)path, len, 0, 0, m, NULL) > 0 &&
	    group_place(number_code, m, "number", &out->at, &out->len);
	if (found)
		(void)group_place(number_code, m, "host", &out->host_at,
		    &out->host_len);
	pcre2_match_data_free(m);
	return found;
}
