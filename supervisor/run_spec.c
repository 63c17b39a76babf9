/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_spec.c - the options of `holdfast run` as a table, and run.json.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/json.h"
#include "common/text.h"
#include "supervisor/history.h"
#include "supervisor/proc.h"
#include "supervisor/run_spec.h"
#include "supervisor/run_stage.h"

#define NPROC_MAX	4096
#define TEE_MAX		4000
/* sun_path less the longest name in the directory */
#define WATCH_MS	5000
#define SPIKE_COUNT	20
#define WATCH_MIN_MS	200
#define SOCKET_DIR_MAX	(107 - (int)sizeof("/agent.lock"))

#define O(field) offsetof(struct run_options, field)

const struct opt run_option_table[] = {
	{ "name", 0, OPT_TEXT, O(name), "NAME",
	    "name of the run, [A-Za-z0-9._-]{1,64}", .def = "default" },
	{ "nproc-per-node", 0, OPT_INT, O(nproc_per_node), "P",
	    "start P ranks of the command on this node (0: the command launches them)",
	    .def = "0", .least = 0, .most = NPROC_MAX },
	{ "nnodes", 0, OPT_TEXT, O(nnodes), "N",
	    "number of nodes; only 1 so far", .def = "1" },
	{ "checkpoint-dir", 0, OPT_TEXT, O(checkpoint_dir), "DIR",
	    "where the trainer saves; checked before each restart" },
	{ "stage", 0, OPT_TEXT, O(stage), "SIZE[:DIR]",
	    "saves go to memory, or DIR, up to SIZE, and from there to checkpoint-dir" },
	{ "stage-bandwidth", 0, OPT_SIZE, O(stage_bandwidth), "SIZE",
	    "bytes a second that copying staged checkpoints may take; 0: no limit",
	    .def = "0" },
	{ "resume-args", 0, OPT_TEXT, O(resume_args), "ARGS",
	    "arguments added to the command when there is a checkpoint" },
	{ "quarantine", 0, OPT_CHOICE, O(quarantine), "WHEN",
	    "move corrupt checkpoints out of the save directory: auto or never",
	    .def = "auto", .choices = "auto never" },
	{ "max-restarts", 0, OPT_TEXT, O(max_restarts), "N[/WINDOW]",
	    "restart budget", .def = "10/24h" },
	{ "backoff", 0, OPT_DURATION, O(backoff_ms), "TIME",
	    "first delay after connection, storage and rendezvous failures",
	    .def = "5s" },
	{ "grace", 0, OPT_DURATION, O(grace_ms), "TIME",
	    "from SIGTERM to SIGKILL when the run is asked to stop", .def = "30s" },
	{ "failure-grace", 0, OPT_DURATION, O(failure_grace_ms), "TIME",
	    "from SIGTERM to SIGKILL for the other ranks after a failure",
	    .def = "5s" },
	{ "exit-timeout", 0, OPT_DURATION, O(exit_timeout_ms), "TIME",
	    "for the other ranks after the first one has ended well", .def = "300s" },
	{ "hang-timeout", 0, OPT_DURATION, O(hang_timeout_ms), "TIME",
	    "without a step while all ranks are idle: a hang; 0: none is ended",
	    .def = "300s" },
	{ "busy-timeout", 0, OPT_DURATION, O(busy_timeout_ms), "TIME",
	    "the same while processors are busy, or in an evaluation or a save",
	    .def = "30m" },
	{ "start-timeout", 0, OPT_DURATION, O(start_timeout_ms), "TIME",
	    "the same until the first step", .def = "30m" },
	{ "loss-spike", 0, OPT_TEXT, O(loss_spike), "FACTOR[/COUNT]",
	    "so many losses in a row above FACTOR times their level: go back; 0: "
	    "never", .def = "2/20" },
	{ "tee", 0, OPT_TEXT, O(tee), "RANKS",
	    "output shown on the terminal: 0, all, none or a list such as 0,3",
	    .def = "0" },
	{ "state-dir", 0, OPT_TEXT, O(state_dir), "DIR",
	    "where runs are kept (HOLDFAST_STATE_DIR or .holdfast)" },
	{ "log-dir", 0, OPT_TEXT, O(log_dir), "DIR",
	    "output of the ranks here instead of the run directory" },
	{ "rules", 0, OPT_TEXT, O(rules), "DIR",
	    "site rules in addition to the shipped ones" },
	{ "rules-lenient", 0, OPT_FLAG, O(rules_lenient), NULL,
	    "start although a rule file has errors", .def = "false" },
	{ "config", 0, OPT_TEXT, O(config), "FILE",
	    "read this configuration file too", .cli_only = true },
	{ "fresh", 0, OPT_FLAG, O(fresh), NULL,
	    "forget all earlier attempts of NAME", .def = "false",
	    .cli_only = true },
	{ "take-over", 0, OPT_FLAG, O(take_over), NULL,
	    "take a lock whose lease has expired on another host",
	    .def = "false", .cli_only = true },
	{ "dry-run", 'n', OPT_FLAG, O(dry_run), NULL,
	    "check everything, start nothing", .def = "false", .cli_only = true },
	{ "json", 0, OPT_FLAG, O(json), NULL,
	    "print journal records instead of text", .def = "false" },
	{ .name = NULL }
};

#undef O

const char *
run_spec_state_dir(const char *option)
{
	const char *env;

	if (option != NULL)
		return option;
	env = getenv("HOLDFAST_STATE_DIR");
	return env != NULL && *env != '\0' ? env : ".holdfast";
}

int64_t
run_spec_watch_ms(const struct run_spec *s)
{
	int64_t ms = s->options.hang_timeout_ms / 10;

	if (ms == 0 || ms > WATCH_MS)
		return WATCH_MS;
	return ms < WATCH_MIN_MS ? WATCH_MIN_MS : ms;
}

char *
run_spec_path(const struct run_spec *s, const char *name)
{
	return file_join(s->dir, name);
}

void
run_spec_absolute(const struct run_spec *s, const char *path, char out[PATH_MAX])
{
	if (path == NULL)
		out[0] = '\0';
	else if (path[0] == '/')
		snprintf(out, PATH_MAX, "%s", path);
	else
		snprintf(out, PATH_MAX, "%s/%s", s->cwd, path);
}

/* N or N/WINDOW */
static int
parse_budget(struct run_spec *s, struct err *err)
{
	const char *text = s->options.max_restarts, *slash = strchr(text, '/');
	char number[24];

	snprintf(number, sizeof(number), "%.*s",
	    slash ? (int)(slash - text) : (int)strlen(text), text);
	/* The history keeps the times of so many. */
	if (text_parse_int(number, 0, HISTORY_RESTARTS_MAX,
	    &s->restarts_max) == -1 ||
	    (slash != NULL && (text_parse_duration(slash + 1,
	    &s->window_ms) == -1 || s->window_ms == 0)))
		return err_set(err, ERR_USAGE, "--max-restarts takes N or "
		    "N/WINDOW such as 10/24h (not '%s')", text);
	return 0;
}

/* FACTOR or FACTOR/COUNT */
static int
parse_spike(struct run_spec *s, struct err *err)
{
	const char *text = s->options.loss_spike;
	char *end;

	s->spike_count = SPIKE_COUNT;
	s->spike_factor = strtod(text, &end);
	if (end == text || (*end != '\0' && *end != '/') ||
	    !(s->spike_factor == 0 || (s->spike_factor > 1 &&
	    s->spike_factor <= 1e6)) || (*end == '/' &&
	    text_parse_int(end + 1, 1, 100000, &s->spike_count) == -1))
		return err_set(err, ERR_USAGE, "--loss-spike takes FACTOR[/COUNT] "
		    "such as 2/20, with a FACTOR above 1, or 0 (not '%s')", text);
	return 0;
}

static int
check_tee(const char *text, struct err *err)
{
	if (strcmp(text, "all") == 0 || strcmp(text, "none") == 0)
		return 0;
	if (strlen(text) > TEE_MAX)
		return err_set(err, ERR_USAGE, "--tee: more than %d characters; "
		    "use all", TEE_MAX);
	if (*text == '\0' || strspn(text, "0123456789,") != strlen(text))
		return err_set(err, ERR_USAGE, "--tee takes all, none or ranks "
		    "such as 0,3 (not '%s')", text);
	return 0;
}

/* Quotes in --resume-args must close; nothing else is special there. */
static int
check_quotes(const char *text, struct err *err)
{
	char quote = 0;
	const char *p;

	for (p = text ? text : ""; *p != '\0'; p++) {
		if (quote == 0 && (*p == '\'' || *p == '"'))
			quote = *p;
		else if (*p == quote)
			quote = 0;
	}
	return quote == 0 ? 0 : err_set(err, ERR_USAGE,
	    "--resume-args: a quote is not closed: %s", text);
}

static int
check_options(struct run_spec *s, struct err *err)
{
	if (!text_is_name(s->options.name))
		return err_set(err, ERR_USAGE, "--name takes 1 to 64 of "
		    "[A-Za-z0-9._-], no dot first (not '%s')", s->options.name);
	if (strcmp(s->options.nnodes, "1") != 0)
		return err_set(err, ERR_USAGE,
		    "--nnodes %s: more than one node is not implemented yet",
		    s->options.nnodes);
	if (s->options.nproc_per_node < 0 ||
	    s->options.nproc_per_node > NPROC_MAX)
		return err_set(err, ERR_USAGE, "--nproc-per-node takes 0 to %d",
		    NPROC_MAX);
	if (run_stage_check(&s->options, err) == -1 ||
	    check_tee(s->options.tee, err) == -1 ||
	    check_quotes(s->options.resume_args, err) == -1 ||
	    parse_spike(s, err) == -1)
		return -1;
	return parse_budget(s, err);
}

/* All texts of the spec live in one JSON object: the options by name, so that
 * they outlive argv and the configuration tree. */
static int
keep_texts(struct run_spec *s, const struct run_options *from, struct err *err)
{
	cJSON *texts = cJSON_CreateObject(), *item;
	const struct opt *o;
	const char *value;

	s->texts = texts;
	s->options = *from;
	for (o = run_option_table; o->name != NULL; o++) {
		if (o->type != OPT_TEXT && o->type != OPT_CHOICE)
			continue;
		value = *(const char *const *)((const char *)from + o->offset);
		if (value == NULL)
			continue;
		item = cJSON_AddStringToObject(texts, o->name, value);
		if (item == NULL)
			return err_memory(err);
		*(const char **)((char *)&s->options + o->offset) =
		    item->valuestring;
	}
	return 0;
}

static int
keep_command(struct run_spec *s, int argc, char *const *argv, struct err *err)
{
	size_t total = 0;
	int i;

	if ((s->argv = calloc((size_t)argc + 1, sizeof(*s->argv))) == NULL)
		return err_memory(err);
	for (i = 0; i < argc; i++) {
		total += strlen(argv[i]) + 1;
		if ((s->argv[i] = strdup(argv[i])) == NULL)
			return err_memory(err);
		s->argc = i + 1;
	}
	/* It travels to the agent in one frame. */
	if (total > 32768)
		return err_set(err, ERR_LIMIT,
		    "the command is longer than 32768 bytes");
	return 0;
}

static int
find_places(struct run_spec *s, struct err *err)
{
	const char *state = run_spec_state_dir(s->options.state_dir);
	const char *run_time = getenv("HOLDFAST_RUNTIME_DIR");
	char cwd[PATH_MAX];
	struct proc_stat self;
	uint64_t random;
	int rc;

	if (getcwd(cwd, sizeof(cwd)) == NULL)
		return err_errno(err, "cannot find the working directory");
	if (state[0] == '/')
		rc = asprintf(&s->dir, "%s/%s", state, s->options.name);
	else
		rc = asprintf(&s->dir, "%s/%s/%s", cwd, state, s->options.name);
	if (rc == -1 || (s->cwd = strdup(cwd)) == NULL)
		return err_memory(err);
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return err_errno(err, "cannot get random bytes");
	if (asprintf(&s->run_id, "%s.%016llx", s->options.name,
	    (unsigned long long)random) == -1)
		return err_memory(err);
	if (run_time != NULL && *run_time != '\0')
		rc = asprintf(&s->socket_dir, "%s%s%s/%016llx",
		    run_time[0] == '/' ? "" : cwd, run_time[0] == '/' ? "" : "/",
		    run_time, (unsigned long long)random);
	else
		rc = asprintf(&s->socket_dir, "/tmp/holdfast-%u/%016llx",
		    (unsigned)geteuid(), (unsigned long long)random);
	if (rc != -1 && strlen(s->socket_dir) > SOCKET_DIR_MAX)
		return err_set(err, ERR_USAGE, "HOLDFAST_RUNTIME_DIR is too long "
		    "for a socket: %s has more than %d characters",
		    s->socket_dir, SOCKET_DIR_MAX);
	if (proc_read_stat(getpid(), &self) == 0)
		s->born_ticks = self.starttime;
	return rc == -1 ? err_memory(err) : 0;
}

int
run_spec_new(const struct run_options *options, int argc, char *const *argv,
    struct run_spec **out, struct err *err)
{
	struct run_spec *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return err_memory(err);
	if (keep_texts(s, options, err) == -1 ||
	    keep_command(s, argc, argv, err) == -1 ||
	    check_options(s, err) == -1 || find_places(s, err) == -1) {
		run_spec_free(s);
		return -1;
	}
	*out = s;
	return 0;
}

void
run_spec_free(struct run_spec *s)
{
	int i;

	if (s == NULL)
		return;
	for (i = 0; s->argv != NULL && i < s->argc; i++)
		free(s->argv[i]);
	free(s->argv);
	free(s->run_id);
	free(s->dir);
	free(s->socket_dir);
	free(s->cwd);
	cJSON_Delete(s->texts);
	free(s);
}

static cJSON *
options_to_json(const struct run_options *options)
{
	cJSON *o = cJSON_CreateObject();
	const struct opt *row;

	for (row = run_option_table; row->name != NULL; row++) {
		const void *field = (const char *)options + row->offset;

		switch (row->type) {
		case OPT_FLAG:
			cJSON_AddBoolToObject(o, row->name, *(const bool *)field);
			break;
		case OPT_TEXT:
		case OPT_CHOICE:
			json_add_text(o, row->name, *(const char *const *)field);
			break;
		default:
			json_add_int(o, row->name, *(const int64_t *)field);
			break;
		}
	}
	return o;
}

int
run_spec_save(const struct run_spec *s, struct err *err)
{
	cJSON *root = cJSON_CreateObject(), *argv;
	char *path = run_spec_path(s, "run.json"), *text = NULL;
	char boot_id[PROC_BOOT_ID_MAX];
	int i, rc = -1;

	json_add_text(root, "schema", "holdfast.run/1");
	json_add_text(root, "run_id", s->run_id);
	json_add_text(root, "socket_dir", s->socket_dir);
	json_add_text(root, "cwd", s->cwd);
	json_add_int(root, "born_ticks", (int64_t)s->born_ticks);
	proc_read_boot_id(boot_id);
	json_add_text(root, "boot_id", boot_id);
	argv = cJSON_AddArrayToObject(root, "argv");
	for (i = 0; i < s->argc; i++)
		cJSON_AddItemToArray(argv, cJSON_CreateString(s->argv[i]));
	cJSON_AddItemToObject(root, "options", options_to_json(&s->options));
	if (path == NULL || (text = json_line(root)) == NULL)
		err_memory(err);
	else
		rc = file_write_atomic(path, text, strlen(text), 0600, err);
	cJSON_Delete(root);
	free(path);
	free(text);
	return rc;
}

static int
options_from_json(const cJSON *o, struct run_options *out, struct err *err)
{
	const struct opt *row;

	*out = (struct run_options){0};
	if (opt_defaults(run_option_table, out, err) == -1)
		return -1;
	for (row = run_option_table; row->name != NULL; row++) {
		void *field = (char *)out + row->offset;

		switch (row->type) {
		case OPT_FLAG:
			*(bool *)field = json_bool(o, row->name, false);
			break;
		case OPT_TEXT:
		case OPT_CHOICE:
			*(const char **)field = json_str(o, row->name,
			    *(const char **)field);
			break;
		default:
			*(int64_t *)field = json_int(o, row->name,
			    *(int64_t *)field);
			break;
		}
	}
	return 0;
}

static int
spec_from_json(const cJSON *root, const char *dir, struct run_spec *s,
    struct err *err)
{
	const cJSON *argv = cJSON_GetObjectItem(root, "argv"), *item;
	const char *id = json_str(root, "run_id", NULL);
	const char *sockets = json_str(root, "socket_dir", NULL);
	const char *cwd = json_str(root, "cwd", NULL);
	struct run_options options;
	char boot_id[PROC_BOOT_ID_MAX];
	char **words;
	int n = 0, rc = -1;

	if (id == NULL || sockets == NULL || cwd == NULL ||
	    cJSON_GetArraySize(argv) < 1)
		return err_set(err, ERR_FORMAT, "a member is missing");
	words = calloc((size_t)cJSON_GetArraySize(argv), sizeof(*words));
	if (words == NULL)
		return err_memory(err);
	cJSON_ArrayForEach(item, argv)
		words[n++] = cJSON_IsString(item) ? item->valuestring :
		    (char *)(uintptr_t)"";
	if (options_from_json(cJSON_GetObjectItem(root, "options"), &options,
	    err) == 0 && keep_texts(s, &options, err) == 0 &&
	    keep_command(s, n, words, err) == 0 && check_options(s, err) == 0)
		rc = 0;
	free(words);
	if (rc == -1)
		return -1;
	proc_read_boot_id(boot_id);
	if (strcmp(boot_id, json_str(root, "boot_id", "")) == 0)
		s->born_ticks = (uint64_t)json_int(root, "born_ticks", 0);
	s->run_id = strdup(id);
	s->socket_dir = strdup(sockets);
	s->cwd = strdup(cwd);
	s->dir = strdup(dir);
	if (!s->run_id || !s->socket_dir || !s->cwd || !s->dir)
		return err_memory(err);
	return 0;
}

int
run_spec_load(const char *dir, struct run_spec **out, bool *missing,
    struct err *err)
{
	struct run_spec *s = calloc(1, sizeof(*s));
	char *path = file_join(dir, "run.json");
	struct err why = {0};
	struct buf data = {0};
	cJSON *root = NULL;
	int rc = -1;

	if (missing != NULL)
		*missing = false;
	if (s == NULL || path == NULL) {
		err_memory(err);
		goto out;
	}
	if (file_read(path, 1u << 20, &data, &why) == -1) {
		if (missing != NULL && why.errnum == ENOENT)
			*missing = true;
		if (err != NULL)
			*err = why;
		goto out;
	}
	if (json_parse(data.data, data.len, &root, err) == -1 ||
	    spec_from_json(root, dir, s, err) == -1) {
		err_prefix(err, "%s", path);
		goto out;
	}
	*out = s;
	s = NULL;
	rc = 0;
out:
	run_spec_free(s);
	cJSON_Delete(root);
	buf_fini(&data);
	free(path);
	return rc;
}

bool
run_spec_same_command(const struct run_spec *a, const struct run_spec *b)
{
	int i;

	if (a->argc != b->argc || strcmp(a->cwd, b->cwd) != 0)
		return false;
	for (i = 0; i < a->argc; i++)
		if (strcmp(a->argv[i], b->argv[i]) != 0)
			return false;
	return true;
}

bool
run_spec_is_launcher(const struct run_spec *s)
{
	static const char *const names[] = { "torchrun", "deepspeed",
	    "accelerate", "mpirun", "mpiexec", "srun", NULL };
	static const char *const modules[] = { "torch.distributed.run",
	    "torch.distributed.launch", "accelerate.commands.launch",
	    "deepspeed.launcher.runner", NULL };
	const char *base;
	int i, k;

	for (i = 0; i < s->argc && i < 4; i++) {
		base = strrchr(s->argv[i], '/');
		base = base ? base + 1 : s->argv[i];
		for (k = 0; names[k] != NULL; k++)
			if (strcmp(base, names[k]) == 0)
				return true;
		for (k = 0; i > 0 && modules[k] != NULL; k++)
			if (strcmp(s->argv[i - 1], "-m") == 0 &&
			    strcmp(s->argv[i], modules[k]) == 0)
				return true;
	}
	return false;
}

/* /tmp is everybody's: the directory counts only when it is a real directory
 * of this user that nobody else may enter. */
static int
make_private_dir(const char *path, struct err *err)
{
	struct stat st;

	if (mkdir(path, 0700) == -1 && errno != EEXIST)
		return err_errno(err, "cannot create directory %s", path);
	if (lstat(path, &st) == -1)
		return err_errno(err, "cannot stat %s", path);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & 077) != 0)
		return err_set(err, ERR_SYSTEM,
		    "%s is not a directory of this user with mode 0700; "
		    "remove it or set HOLDFAST_RUNTIME_DIR", path);
	return 0;
}

int
run_spec_make_socket_dir(const struct run_spec *s, struct err *err)
{
	char parent[PATH_MAX], *slash;

	snprintf(parent, sizeof(parent), "%s", s->socket_dir);
	if ((slash = strrchr(parent, '/')) != NULL && slash != parent) {
		*slash = '\0';
		if (make_private_dir(parent, err) == -1)
			return -1;
	}
	return make_private_dir(s->socket_dir, err);
}
