/* SPDX-License-Identifier: Apache-2.0 */
/*
 * findings.h - everything the rules found in a case, in order of time, with the
 * part that each line has in it.
 */
#ifndef HOLDFAST_DIAGNOSE_FINDINGS_H
#define HOLDFAST_DIAGNOSE_FINDINGS_H

#include <stdint.h>
#include <stdio.h>

#include "diagnose/card.h"
#include "diagnose/cause.h"

enum finding_role {
	FINDING_CAUSE,		/* the root of the verdict */
	FINDING_SAME,		/* says what the root says, elsewhere or again */
	FINDING_OTHER,		/* could be the cause, and is not taken for it */
	FINDING_ECHO,		/* what the cause, or another line, explains */
	FINDING_LATE,		/* came after the job began to be ended */
	FINDING_PASSED,		/* training completed more steps behind it */
	FINDING_TEARDOWN,	/* the job is being ended */
	FINDING_BENIGN,		/* harmless, ignored by the program, or taken back */
	FINDING_UNCLEAR,	/* a traceback whose end no one knows */
	/* while a log is followed, before there is a verdict: */
	FINDING_CANDIDATE,	/* could be the cause */
	FINDING_SYMPTOM		/* an echo, unless nothing better comes */
};

/* One line, or several of the same rule, rank and part in one stream. */
struct finding {
	enum finding_role	 role;
	int64_t			 time_ns;	/* LINE_NO_TIME unknown; may be
						 * that of a line before it */
	const char		*file;		/* the feed's */
	int64_t			 line;		/* of the first one, from 1 */
	uint64_t		 count;
	int			 rank;		/* -1 unknown */
	char			 node[EVENT_NODE_MAX];	/* "" unknown */
	char			 gpu[EVENT_GPU_MAX];
	const struct rule	*rule;		/* NULL: an exit record */
	const struct reason	*reason;	/* NULL: none */
	char			*text;
	size_t			 text_len;
};

/* At most so many are listed; of one rule and stream, at most as many lines as
 * struct events keeps. */
#define FINDINGS_MAX	4096

struct findings {
	const struct rule *only;	/* given: each line of this rule alone */
	struct finding	*list;
	size_t		 count;
	uint64_t	 unlisted;	/* lines that the limits left out */
};

const char *finding_role_name(enum finding_role);

/* w is the chosen candidate, or NULL.  Fills a zeroed list; rules, reasons and
 * names are borrowed from the case. */
int	findings_fill(struct findings *, const struct case_file *,
	    const struct cause *w, struct err *err);
void	findings_fini(struct findings *);

/* For people: a row of columns and a row with the place and the quoted line, which
 * is not cut when `whole`. */
void	findings_print(const struct findings *, const struct card_style *,
	    bool whole, FILE *);

/* The widths of the columns, which one printed by itself needs as well. */
struct finding_widths {
	int	time, place, rule, reason, times;
	bool	date;		/* not all are of one day */
};
void	finding_print(const struct finding *, const struct finding_widths *,
	    const struct card_style *, bool whole, FILE *);

#endif
