/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.h - finds many literals in a buffer of bytes.
 *
 * One pass over the raw bytes, no splitting into lines.  Each literal is searched
 * by four of its bytes, its fragment; few fragments that are rare in healthy
 * logs cover all literals (scan_plan.c), so the speed does not depend on their
 * number.
 */
#ifndef HOLDFAST_DIAGNOSE_SCAN_H
#define HOLDFAST_DIAGNOSE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* Shorter literals cannot be searched. */
#define SCAN_LITERAL_MIN	4
#define SCAN_LITERAL_MAX	64

/* Fragments share buckets, 8 to a group, a bit of a byte each: one group costs a
 * set of tables, one bucket more lets fewer wrong positions pass.  Exact: where
 * whole bytes are looked up (AVX-512 VBMI); nibble: where their halves are
 * (AVX2). */
#define SCAN_GROUPS_EXACT	4
#define SCAN_GROUPS_NIBBLE	4
#define SCAN_BUCKETS_EXACT	(8 * SCAN_GROUPS_EXACT)
#define SCAN_BUCKETS_NIBBLE	(8 * SCAN_GROUPS_NIBBLE)

struct scan_literal {
	const char	*text;	/* bytes, without NUL inside; lower case if fold */
	uint8_t		 len;
	bool		 fold;	/* ASCII letters of the buffer match in any case */
	/* The plan: set by scan_plan(), or when the shipped rules are built. */
	bool		 planned;
	bool		 any_case;	/* its fragment is searched in any case */
	uint8_t		 offset;	/* of the fragment in the text */
	uint8_t		 exact;		/* its buckets */
	uint8_t		 nibble;
};

/* What healthy logs are made of; tells rare fragments from common ones. */
struct scan_sample;

int	scan_sample_new(const char *text, size_t len, struct scan_sample **out,
	    struct err *err);
void	scan_sample_free(struct scan_sample *);
/* How often the rarest fragment of a text is to be expected in the sample; a
 * text shorter than SCAN_LITERAL_MIN is everywhere. */
double	scan_sample_cost(const struct scan_sample *, const char *text,
	    size_t len, bool fold);

/* Plans the literals that are not planned yet, around those that are.  `passes`
 * rounds of improvement: some at build time, none at run time.  ERR_LIMIT for
 * a literal that is too short or too long. */
int	scan_plan(struct scan_literal *, size_t count,
	    const struct scan_sample *, int passes, struct err *err);

/* Ways to search, by what the processor has.  HOLDFAST_SCAN=scalar|avx2|vbmi
 * asks for a lower one than the best. */
enum scan_level { SCAN_SCALAR, SCAN_AVX2, SCAN_VBMI };

enum scan_level scan_level_best(void);
const char *scan_level_name(enum scan_level);

struct scanner;

/* Literals must be planned; they and their texts are borrowed for the life of the
 * scanner.  Read only afterwards: threads may share it. */
int	scan_new(const struct scan_literal *, size_t count,
	    struct scanner **out, struct err *err);
void	scan_free(struct scanner *);
enum scan_level scan_level(const struct scanner *);

/* An occurrence.  They come in order of the position of the fragments, so those
 * of one line come together but not sorted by start.  Returns false to end the
 * scan. */
typedef bool	(*scan_hit_fn)(uint32_t literal, size_t start, void *arg);

/* Reports every occurrence of every literal; returns the number of newlines (of
 * no use when the scan was ended). */
size_t	scan_run(const struct scanner *, const char *data, size_t len,
	    scan_hit_fn, void *arg);

#endif
