/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict.h - what went wrong, in the form of schema holdfast.verdict/1.
 */
#ifndef HOLDFAST_DIAGNOSE_VERDICT_H
#define HOLDFAST_DIAGNOSE_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "diagnose/rule.h"

enum verdict_status {
	VERDICT_DIAGNOSED,	/* the cause is known */
	VERDICT_SYMPTOM_ONLY,	/* only echoes are visible */
	VERDICT_NO_ERROR,	/* nothing went wrong in these logs */
	VERDICT_UNDETERMINED
};

/* A place in a log. */
struct verdict_root {
	char		*rule;		/* NULL: no rule, an exit status */
	char		*file;
	int64_t		 line;		/* 1-based */
	char		*text;
	size_t		 text_len;	/* bytes; may hold NUL */
	int		 rank;		/* -1 unknown */
	char		*node;		/* NULL unknown */
	char		*gpu;		/* PCI address, or its index */
	char		*nic;
	char		*path;
	int		 pid;		/* -1 unknown */
	size_t		 tell_from;	/* the part of text that the rule matched; */
	size_t		 tell_to;	/* both 0: none */
};

struct verdict_symptom {
	char		*reason;
	char		*rule;
	char		*file;
	int64_t		 line;
	uint64_t	 count;		/* lines */
	uint32_t	 ranks;		/* that say so, 0 unknown */
};

/* All symptoms of one reason. */
struct verdict_echo {
	char		*reason;
	uint64_t	 lines;
	uint32_t	 ranks;		/* 0 unknown */
};

struct verdict_suspect {
	char		*node;
	int		 rank;		/* -1 unknown */
	char		*why;
};

struct verdict_alternative {
	char		*reason;
	double		 confidence;
};

#define VERDICT_SYMPTOMS	16
#define VERDICT_ECHOES	8
#define VERDICT_SUSPECTS	8
#define VERDICT_ALTERNATIVES	4

struct verdict {
	enum verdict_status	 status;
	char			*category;
	char			*reason;
	char			*what;
	char			*advice;
	double			 confidence;
	enum action_kind	 action;
	char			*action_node;	/* NULL: no node named */
	bool			 has_root;
	struct verdict_root	 root;
	struct verdict_symptom	 symptoms[VERDICT_SYMPTOMS];
	size_t			 symptom_count;
	struct verdict_echo	 echoes[VERDICT_ECHOES];
	size_t			 echo_count;
	uint32_t		 echo_ranks;	/* that only echo, 0 unknown */
	uint32_t		 same_ranks;	/* others that say what root says */
	struct verdict_suspect	 suspects[VERDICT_SUSPECTS];
	size_t			 suspect_count;
	struct verdict_alternative alternatives[VERDICT_ALTERNATIVES];
	size_t			 alternative_count;
	const char		*stage;		/* startup, training, ..., NULL */
	int64_t			 step;		/* -1 unknown */
	char			 fingerprint[17];
	char			**missing;	/* evidence that could not be read */
	size_t			 missing_count;
	uint64_t		 files;		/* that were looked at */
	uint64_t		 bytes;
	uint64_t		 lines;
	bool			 has_kernel;	/* a kernel log was among them */
};

const char *verdict_status_name(enum verdict_status);
void	verdict_fini(struct verdict *);
/* One JSON object on one line, for the caller to free; NULL without memory. */
char	*verdict_json(const struct verdict *);
/* ... with an array "findings". */
struct findings;
char	*verdict_json_all(const struct verdict *, const struct findings *);
/* One of them by itself, with a schema. */
struct finding;
char	*verdict_finding_json(const struct finding *);

#endif
