/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_spec.h - what a run is: its command, its options, its places on disk.
 *
 * `holdfast run` resolves configuration, environment and command line once and
 * writes the result to run.json; supervisor, agent and a later run of the same
 * NAME read it from there.  The environment is never written.
 */
#ifndef HOLDFAST_SUPERVISOR_RUN_SPEC_H
#define HOLDFAST_SUPERVISOR_RUN_SPEC_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/opt.h"

/* Values of the options of `holdfast run` (rows in run_spec.c). */
struct run_options {
	const char	*name;
	const char	*nnodes;
	int64_t		 nproc_per_node;	/* 0: the command launches the ranks */
	const char	*config;
	const char	*state_dir;
	const char	*checkpoint_dir;
	const char	*stage;			/* SIZE[:DIR], see run_stage.h */
	int64_t		 stage_bandwidth;	/* bytes a second, 0: no limit */
	const char	*quarantine;		/* auto | never */
	const char	*max_restarts;		/* N[/WINDOW] */
	int64_t		 grace_ms;		/* TERM to KILL when asked to stop */
	int64_t		 failure_grace_ms;	/* the same after a failure */
	int64_t		 exit_timeout_ms;
	const char	*loss_spike;		/* FACTOR[/COUNT] */
	int64_t		 hang_timeout_ms;	/* ranks idle; 0: never */
	int64_t		 busy_timeout_ms;	/* processors busy, or in a phase */
	int64_t		 start_timeout_ms;	/* until the first step */
	int64_t		 backoff_ms;		/* first delay of a back-off */
	const char	*resume_args;
	const char	*tee;			/* all | none | ranks "0,3" */
	const char	*log_dir;
	const char	*rules;
	bool		 rules_lenient;
	bool		 fresh;
	bool		 take_over;
	bool		 dry_run;
	bool		 json;
};

extern const struct opt run_option_table[];

struct run_spec {
	char			*run_id;	/* NAME.16-hex-digits */
	char			*dir;		/* run directory, absolute */
	char			*socket_dir;	/* node-local, 0700 */
	char			*cwd;
	int			 argc;
	char			**argv;
	uint64_t		 born_ticks;	/* start time of the process that
						   made the run; 0 after a reboot */
	double			 spike_factor;	/* 0: no spike is seen */
	int64_t			 spike_count;
	int64_t			 restarts_max;	/* of max_restarts */
	int64_t			 window_ms;	/* 0: the whole campaign */
	struct run_options	 options;	/* texts owned by `texts` */
	void			*texts;
};

/* Makes a spec from resolved options; checks values that stand for more than
 * text (name, max-restarts, tee).  Creates nothing on disk. */
int	run_spec_new(const struct run_options *, int argc, char *const *argv,
	    struct run_spec **out, struct err *err);
void	run_spec_free(struct run_spec *);

/* DIR/run.json.  run_spec_load() returns 0, or -1; *missing is set when there is
 * no such file. */
int	run_spec_save(const struct run_spec *, struct err *err);
int	run_spec_load(const char *dir, struct run_spec **out, bool *missing,
	    struct err *err);

/* The same command line in the same working directory? */
bool	run_spec_same_command(const struct run_spec *, const struct run_spec *);

/* The command is itself a launcher (torchrun, deepspeed, accelerate, mpirun,
 * srun, python -m torch.distributed.run)? */
bool	run_spec_is_launcher(const struct run_spec *);

/* DIR/name; static per call site is not needed: the caller frees. */
char	*run_spec_path(const struct run_spec *, const char *name);

/* A path of the options, from the root: relative ones are below the working directory
 * of the run; "" for NULL. */
void	run_spec_absolute(const struct run_spec *, const char *path,
	    char out[PATH_MAX]);

/* Where runs live: options->state_dir, HOLDFAST_STATE_DIR or .holdfast. */
const char *run_spec_state_dir(const char *option);

/* Makes the node-local socket directory, or checks that it is ours alone. */
/* How often ranks are looked at. */
int64_t	run_spec_watch_ms(const struct run_spec *);
int	run_spec_make_socket_dir(const struct run_spec *, struct err *err);

#endif
