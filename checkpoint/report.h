/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - what was found out about one checkpoint or one file of it.
 *
 * A check says everything it finds; the report keeps the worst state and the
 * first reason given for it.
 */
#ifndef HOLDFAST_CHECKPOINT_REPORT_H
#define HOLDFAST_CHECKPOINT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/holdfast-checkpoint.h"

#define REPORT_UNKNOWN	HOLDFAST_CHECKPOINT_UNKNOWN

/* Longest tensor or record name quoted in a reason, in bytes. */
#define REPORT_NAME_MAX	160

enum report_checksum {
	REPORT_CHECKSUM_UNKNOWN,	/* nothing was looked at */
	REPORT_CHECKSUM_NONE,		/* the format or the file carries none */
	REPORT_CHECKSUM_CRC32,
	REPORT_CHECKSUM_XXH128,		/* of its manifest */
	REPORT_CHECKSUM_MIXED		/* some of its files do */
};

struct report {
	enum holdfast_checkpoint_state	 state;
	char				*reason;	/* owned; NULL: none said */
	char				*note;		/* owned; of valid ones */
	int64_t				 step;		/* REPORT_UNKNOWN */
	enum report_checksum		 checksum;
	uint64_t			 nonfinite_tensors;
	uint64_t			 nonfinite_values;
	uint64_t			 bytes_read;	/* of tensor data */
	bool				 contents_read;	/* a full check ran */
};

void	report_init(struct report *);
void	report_fini(struct report *);

/* Records a finding; control bytes in the text become '?'. */
void	report_say(struct report *, enum holdfast_checkpoint_state,
	    const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* A remark that changes no state ("no checksum"); the first one stays. */
void	report_note(struct report *, const char *fmt, ...)
	    __attribute__((format(printf, 2, 3)));

/* Adds what was found about one file; its name goes in front of the reason
 * unless it is NULL. */
void	report_merge(struct report *into, const struct report *from,
	    const char *name);

/* Worse than VALID and UNVERIFIED: checking further makes no sense. */
bool	report_is_bad(const struct report *);

#endif
