/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - makes the start order of an attempt.
 *
 * Decides the environment of the ranks (what torchrun would set, so that its
 * scripts run unchanged) and puts the chosen checkpoint into the command.  No
 * shell is involved: arguments stay arguments.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/snapshot_wire.h"
#include "common/buf.h"
#include "common/json.h"
#include "supervisor/run_stage.h"
#include "supervisor/supervisor.h"

struct places {
	const char	*checkpoint;	/* "" when there is none */
	char		 step[24];
	char		 attempt[16];
	const char	*checkpoint_dir;
	const char	*run_dir;
	const char	*socket;	/* for snapshots, or NULL */
};

static const char *
placeholder(const struct places *p, const char *name, size_t len)
{
	static const char *const names[] = { "checkpoint", "step", "attempt",
	    "checkpoint_dir", "run_dir" };
	const char *values[] = { p->checkpoint, p->step, p->attempt,
	    p->checkpoint_dir, p->run_dir };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
			return values[i];
	return NULL;
}

/* Replaces {holdfast.NAME}; other braces stay as they are. */
static char *
substitute(const char *word, const struct places *p)
{
	static const char lead[] = "{holdfast.";
	const char *open, *name, *close, *value;
	struct buf out = {0};

	while ((open = strstr(word, lead)) != NULL) {
		name = open + sizeof(lead) - 1;
		close = strchr(name, '}');
		value = close == NULL ? NULL :
		    placeholder(p, name, (size_t)(close - name));
		if (value == NULL) {
			buf_append(&out, word, (size_t)(name - word));
			word = name;
			continue;
		}
		buf_append(&out, word, (size_t)(open - word));
		buf_puts(&out, value);
		word = close + 1;
	}
	buf_puts(&out, word);
	return buf_steal(&out);
}

static void
add_word(cJSON *argv, const char *word, const struct places *p)
{
	char *text = substitute(word, p);

	if (text != NULL)
		cJSON_AddItemToArray(argv, cJSON_CreateString(text));
	free(text);
}

/* Splits at blanks; '...' and "..." keep them.  Nothing else is special. */
static void
add_words(cJSON *argv, const char *text, const struct places *p)
{
	struct buf word = {0};
	bool some = false;
	char quote = 0;

	for (; *text != '\0'; text++) {
		if (quote != 0) {
			if (*text == quote)
				quote = 0;
			else
				buf_append(&word, text, 1);
		} else if (*text == '\'' || *text == '"') {
			quote = *text;
			some = true;
		} else if (*text == ' ' || *text == '\t' || *text == '\n') {
			if (some)
				add_word(argv, word.data ? word.data : "", p);
			buf_clear(&word);
			some = false;
		} else {
			buf_append(&word, text, 1);
			some = true;
		}
	}
	if (some)
		add_word(argv, word.data ? word.data : "", p);
	buf_fini(&word);
}

static cJSON *
build_argv(const struct supervisor *s, const struct places *p)
{
	cJSON *argv = cJSON_CreateArray();
	int i;

	for (i = 0; i < s->spec->argc; i++)
		add_word(argv, s->spec->argv[i], p);
	if (s->spec->options.resume_args != NULL &&
	    s->selection.result == SELECTION_FOUND)
		add_words(argv, s->spec->options.resume_args, p);
	return argv;
}

static void
set_int(cJSON *env, const char *name, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	json_add_text(env, name, text);
}

static void
set_holdfast(const struct supervisor *s, const struct places *p, cJSON *env)
{
	const struct selection *sel = &s->selection;
	const char *dir = s->spec->options.checkpoint_dir;
	int64_t skip_to = s->incident.sign.step;

	json_add_text(env, "HOLDFAST_RUN_ID", s->spec->run_id);
	json_add_text(env, "HOLDFAST_RUN_DIR", s->spec->dir);
	json_add_text(env, "HOLDFAST_ATTEMPT", p->attempt);
	if (dir != NULL)
		json_add_text(env, "HOLDFAST_CHECKPOINT_DIR", p->checkpoint_dir);
	/* null takes a variable away: nothing of an earlier attempt, or of an
	 * outer run, may reach this one. */
	json_add_text(env, SNAPSHOT_SOCKET_ENV, p->socket);
	if (sel->result == SELECTION_FOUND) {
		json_add_text(env, "HOLDFAST_RESUME_FROM", sel->path);
		if (sel->step != JSON_UNKNOWN)
			set_int(env, "HOLDFAST_RESUME_STEP", sel->step);
		else
			cJSON_AddNullToObject(env, "HOLDFAST_RESUME_STEP");
	} else {
		cJSON_AddNullToObject(env, "HOLDFAST_RESUME_FROM");
		cJSON_AddNullToObject(env, "HOLDFAST_RESUME_STEP");
	}
	if (s->history.decision.before_step != JSON_UNKNOWN &&
	    s->history.phase == ATTEMPT_DECIDED) {
		set_int(env, "HOLDFAST_SKIP_FROM",
		    sel->result == SELECTION_FOUND &&
		    sel->step != JSON_UNKNOWN ? sel->step : 0);
		if (skip_to == JSON_UNKNOWN)
			skip_to = s->history.decision.before_step;
		set_int(env, "HOLDFAST_SKIP_TO", skip_to + 1);
	} else {
		cJSON_AddNullToObject(env, "HOLDFAST_SKIP_FROM");
		cJSON_AddNullToObject(env, "HOLDFAST_SKIP_TO");
	}
}

/* The variables of torchrun's workers (torch/distributed/elastic/agent/server/
 * local_elastic_agent.py); those that differ by rank are set at spawn. */
static void
set_native(const struct supervisor *s, cJSON *env)
{
	int64_t world = s->count;

	set_int(env, "WORLD_SIZE", world);
	set_int(env, "LOCAL_WORLD_SIZE", world);
	set_int(env, "ROLE_WORLD_SIZE", world);
	json_add_text(env, "ROLE_NAME", "default");
	set_int(env, "GROUP_RANK", 0);
	set_int(env, "GROUP_WORLD_SIZE", 1);
	json_add_text(env, "MASTER_ADDR", "127.0.0.1");
	set_int(env, "TORCHELASTIC_RESTART_COUNT", s->history.restarts);
	set_int(env, "TORCHELASTIC_MAX_RESTARTS", s->spec->restarts_max);
	json_add_text(env, "TORCHELASTIC_RUN_ID", s->spec->run_id);
	json_add_text(env, "TORCHELASTIC_USE_AGENT_STORE", "False");
}

/* torchrun reads the defaults of its options from PET_* (torch/distributed/
 * argparse_util.py). */
static void
set_wrapper(const struct supervisor *s, const char *log_dir, cJSON *defaults)
{
	char dir[PATH_MAX];

	(void)s;
	snprintf(dir, sizeof(dir), "%.4000s/torchelastic", log_dir);
	json_add_text(defaults, "PET_TEE", "3");
	json_add_text(defaults, "PET_LOG_DIR", dir);
	json_add_text(defaults, "PET_MAX_RESTARTS", "0");
	json_add_text(defaults, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE",
	    "[rank${rank}]: ");
}

/* "0,3" becomes ",0,3," so that a rank can be found as ",3,". */
static void
add_tee(cJSON *order, const char *tee)
{
	struct buf list = {0};

	if (strcmp(tee, "all") == 0 || strcmp(tee, "none") == 0)
		json_add_text(order, "tee", tee);
	else if (buf_printf(&list, ",%s,", tee) == 0)
		json_add_text(order, "tee", list.data);
	buf_fini(&list);
}

/* Quotes and control characters grow in JSON, so only the text itself tells. */
static bool
fits_frame(const cJSON *order)
{
	char *text = cJSON_PrintUnformatted(order);
	bool fits = text != NULL && strlen(text) <= WIRE_FRAME_MAX;

	free(text);
	return fits;
}

cJSON *
launch_order(struct supervisor *s, int attempt, struct err *err)
{
	const struct run_options *o = &s->spec->options;
	char dir[PATH_MAX], save_dir[PATH_MAX], base[PATH_MAX];
	bool native = o->nproc_per_node > 0;
	struct run_stage stage;
	struct places p = { .checkpoint = "", .run_dir = s->spec->dir };
	cJSON *order = link_order(s, "start"), *env, *defaults;

	if (order == NULL) {
		err_memory(err);
		return NULL;
	}
	cJSON_DeleteItemFromObject(order, "attempt");
	json_add_int(order, "attempt", attempt);
	run_spec_absolute(s->spec, o->checkpoint_dir, save_dir);
	run_stage_places(s->spec, &stage);
	p.checkpoint_dir = stage.on ? stage.link : save_dir;
	p.socket = stage.on ? stage.socket : NULL;
	snprintf(p.attempt, sizeof(p.attempt), "%d", attempt);
	if (s->selection.result == SELECTION_FOUND) {
		p.checkpoint = s->selection.path;
		json_add_text(order, "resume", s->selection.path);
		if (s->selection.step != JSON_UNKNOWN)
			snprintf(p.step, sizeof(p.step), "%lld",
			    (long long)s->selection.step);
	}
	run_spec_absolute(s->spec, o->log_dir, base);
	snprintf(dir, sizeof(dir), "%.3000s/attempts/%04d",
	    o->log_dir ? base : s->spec->dir, attempt);
	json_add_text(order, "log_dir", dir);
	json_add_text(order, "cwd", s->spec->cwd);
	json_add_int(order, "count", s->count);
	json_add_int(order, "rank0", native ? 0 : -1);
	add_tee(order, o->tee);
	cJSON_AddItemToObject(order, "argv", build_argv(s, &p));
	env = cJSON_AddObjectToObject(order, "env");
	defaults = cJSON_AddObjectToObject(order, "env_default");
	set_holdfast(s, &p, env);
	json_add_text(defaults, "PYTHONUNBUFFERED", "1");
	if (native) {
		set_native(s, env);
		json_add_text(defaults, "OMP_NUM_THREADS", "1");
		json_add_text(order, "port_name", "MASTER_PORT");
	} else {
		set_wrapper(s, dir, defaults);
		if (getenv("PET_MASTER_PORT") == NULL)
			json_add_text(order, "port_name", "PET_MASTER_PORT");
	}
	if (!fits_frame(order)) {
		err_set(err, ERR_LIMIT, "the command with its resume arguments "
		    "is too long for a start order");
		cJSON_Delete(order);
		return NULL;
	}
	return order;
}
