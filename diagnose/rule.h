/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rule.h - rules and reasons: what a line means and what its cause calls for.
 *
 * The shipped ones are a C table made at build time by mkrules.c from rules/ *.yaml;
 * others are read from YAML (holdfast-rules(5)).  A rule set owns both kinds,
 * and after rule_set_finish() the scanner over all their literals.
 */
#ifndef HOLDFAST_DIAGNOSE_RULE_H
#define HOLDFAST_DIAGNOSE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "diagnose/scan.h"

enum rule_role {
	ROLE_ROOT,	/* can be the cause */
	ROLE_EITHER,	/* cause or echo: order decides */
	ROLE_SYMPTOM,	/* an echo; only reported when nothing better is there */
	ROLE_TEARDOWN,	/* the job is being ended; what follows is aftermath */
	ROLE_CONFIRM,	/* a record of a cause, valid also after the teardown */
	ROLE_CONTEXT,	/* no cause; other rules refer to it */
	ROLE_BENIGN	/* looks bad and is not: no other rule counts on this line */
};

enum rule_source {
	SOURCE_ANY, SOURCE_RANK, SOURCE_KERNEL, SOURCE_LAUNCHER,
	SOURCE_SCHEDULER, SOURCE_NCCL
};

/* What a cause calls for (action.kind of the verdict). */
enum action_kind {
	ACTION_NONE, ACTION_STOP, ACTION_RESTART, ACTION_RESTART_EXCLUDING_NODE,
	ACTION_ROLLBACK, ACTION_BACKOFF_RETRY, ACTION_REQUEUE, ACTION_TEST_NODES
};

/* Names of the enums as users write them; -1 and NULL when there is none. */
const char *rule_role_name(enum rule_role);
int	rule_role_find(const char *name);
const char *rule_source_name(enum rule_source);
int	rule_source_find(const char *name);
const char *rule_action_name(enum action_kind);
int	rule_action_find(const char *name);

/* One row of reasons.yaml.  Strings are the table's or the rule set's. */
struct reason {
	const char	*name;
	const char	*category;	/* infrastructure, framework, ... */
	const char	*what;		/* one sentence */
	const char	*advice;	/* for the person on call */
	enum action_kind action;
	int		 rung;		/* 1 strongest .. 10; 0: by category */
};

/* One rule as written.  Lists end in NULL and may be NULL themselves. */
struct rule_def {
	const char	*id;
	const char	*reason;	/* NULL for teardown, context, benign */
	const char	*match;		/* PCRE2, bytes */
	const char	*unless;	/* PCRE2; the line must not match it */
	const char	*after;		/* id of a rule that matched shortly before */
	const char	*advice;	/* instead of the reason's */
	const char	*file;		/* where it was read */
	int		 line;
	int		 column;
	enum rule_role	 role;
	enum rule_source source;
	int		 action;	/* enum action_kind, -1: the reason's */
	int		 priority;	/* on one line and in one exception chain */
	int		 within;	/* lines between `after` and this */
	double		 confidence;	/* 0: by role */
	const char *const *hides;	/* reasons it explains */
	const char *const *cancels;	/* rules whose earlier lines it takes back */
	const char *const *examples;
	const char *const *counterexamples;
	/* One of them is in every match; ends in one without text. */
	const struct scan_literal *literals;
	bool		 blind;		/* treats all digits alike */
	bool		 prepared;	/* its names were resolved at build time */
	int		 reason_row;	/* ... its reason's place in the table */
	bool		 tail;		/* about step lines: see rule_group() */
};

struct rule {
	struct rule_def		 def;
	const struct reason	*reason;
	int			 after;		/* index, -1 none */
	struct match		*match;		/* compiled on first use */
	struct match		*unless;
	bool			 broken;	/* could not be compiled, or gives up */
	uint32_t		 given_up;	/* lines on which it hit a limit */
};

struct rule_set {
	struct rule	*rules;
	size_t		 count, cap;
	uint32_t	*by_id;		/* hash table of index + 1 */
	size_t		 by_id_size;	/* a power of two, at least twice count */
	struct reason	*reasons;
	size_t		 reason_count, reason_cap;
	/* Literals of all rules, by group, and where each group ends. */
	struct scan_literal *literals;
	uint32_t	*literal_rule;	/* the rule of each */
	size_t		 literal_end[3];
	struct scanner	*scanners[4];	/* on demand, see rule_set_scanner() */
	struct scan_sample *sample;	/* made when a rule needs it */
	int		 plan_passes;	/* see scan_plan() */
	unsigned	 threads;	/* 0: as many as are worth it; 1: none */
	void		**owned;	/* freed with the set */
	size_t		 owned_count, owned_cap;
	struct yaml	**docs;
	size_t		 doc_count, doc_cap;
};

/* False for rules that only mark a place, which a line that mentions the matter
 * (guard.h) does as well. */
static inline bool
rule_is_guarded(const struct rule_def *d)
{
	return d->role != ROLE_BENIGN &&
	    (d->role != ROLE_CONTEXT || d->reason != NULL);
}

/* The shipped tables (rules_builtin.c, made by mkrules). */
extern const struct rule_def rule_builtin[];
extern const size_t rule_builtin_count;
extern const struct reason reason_builtin[];
extern const size_t reason_builtin_count;
/* The sample of healthy logs the shipped literals were chosen with. */
extern const char sample_builtin[];
extern const size_t sample_builtin_len;

/* An empty set with the marks of log structure the engine itself needs. */
int	rule_set_new(struct rule_set **out, struct err *err);
void	rule_set_free(struct rule_set *);
/* Adds the shipped reasons and rules. */
int	rule_set_add_builtin(struct rule_set *, struct err *err);
/* Adds one rule or reason; strings are borrowed.  A rule id or reason name
 * that is already there is replaced. */
int	rule_set_add(struct rule_set *, const struct rule_def *, struct err *err);
int	rule_set_add_reason(struct rule_set *, const struct reason *,
	    struct err *err);
/* Resolves names and builds the scanner.  Rules whose reason or `after` is
 * unknown, or that have no literal, are marked broken and told to `problem`. */
typedef void	(*rule_problem_fn)(const char *text, void *arg);
int	rule_set_finish(struct rule_set *, rule_problem_fn, void *arg,
	    struct err *err);

/* One of the marks that rule_set_new() adds, not of any store. */
bool	rule_is_mark(const struct rule_def *);
/* How many literals a rule has. */
size_t	rule_literal_count(const struct rule_def *);
/* A rule's literals in a finished set, where their plan is: as many as it has,
 * one after the other; NULL when it has none there. */
const struct scan_literal *rule_set_planned(const struct rule_set *,
	    size_t rule);

/* A pattern that hits the limits of match.h on so many lines is not tried again: it
 * would take hours where it takes effect. */
#define RULE_GIVEN_UP_MAX	64

/* Which rules are looked for where. */
enum rule_group {
	RULES_LOUD,	/* everywhere */
	/* In the last RULE_TAIL_BYTES of a stream: their literals are in each step
	 * line, and what steps are followed by is noise anyway. */
	RULES_TAIL,
	/* Benign, and takes nothing back: where another rule found something. */
	RULES_QUIET
};
#define RULE_TAIL_BYTES	((size_t)1 << 20)

enum rule_group rule_group(const struct rule *);

/* A scanner for the loud rules, for loud and tail rules, for the quiet ones alone
 * (add rule_set_quiet_base() to its literals), or for all; made when it is first
 * asked for, by one thread at a time; NULL without memory. */
enum rule_scanner { SCANNER_LOUD, SCANNER_TAIL, SCANNER_QUIET, SCANNER_ALL };
const struct scanner *rule_set_scanner(struct rule_set *, enum rule_scanner);
uint32_t rule_set_quiet_base(const struct rule_set *);

const struct reason *rule_set_reason(const struct rule_set *, const char *name);
/* Index of a rule, -1 when absent. */
int	rule_set_find(const struct rule_set *, const char *id);
/* Gives memory to the set, which frees it; frees it at once on failure. */
int	rule_set_own(struct rule_set *, void *memory, struct err *err);

/* rule_read.c: reads DIR/ *.yaml (reasons.yaml first) or one file.  Each problem
 * is one line "file:line:column: why" given to `problem`; what is right is
 * loaded.  Returns the number of problems, or -1 when the directory cannot be
 * read, or anyone may write to it. */
int	rule_read_dir(struct rule_set *, const char *dir, rule_problem_fn,
	    void *arg, struct err *err);
int	rule_read_file(struct rule_set *, const char *path, rule_problem_fn,
	    void *arg);
/* As rule_read_file() from memory; `name` stands in problems. */
int	rule_read_text(struct rule_set *, const char *name, const char *text,
	    size_t len, rule_problem_fn, void *arg);

#endif
