/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent.c - the process that acts on a node: it listens for a supervisor, takes
 * its orders, and reports; it survives the supervisor's death.
 *
 * The newest supervisor is obeyed: each has a generation, and a lower one than
 * has been seen is refused.  A local run uses the same agent as a remote node.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/json.h"
#include "common/log.h"
#include "common/text.h"
#include "diagnose/rule_load.h"
#include "supervisor/agent_attempt.h"
#include "supervisor/verbs.h"

#define OUTPUT_QUEUE_MAX	(64u << 20)
#define SWEEP_LIMIT_NS		(10 * NS_PER_S)
/* Without attempt and without supervisor nobody needs an agent. */
#define IDLE_LIMIT_MS		(10 * 60 * 1000)

/* A connection; the one that said "take" last is obeyed. */
struct peer {
	struct peer	*next;
	struct agent	*agent;
	struct wire	*wire;
};

cJSON *
agent_message(struct agent *a, const char *type, int attempt)
{
	cJSON *m = wire_message(type);

	json_add_text(m, "instance", a->instance);
	json_add_text(m, "node", a->node);
	json_add_int(m, "attempt", attempt);
	return m;
}

void
agent_event(struct agent *a, cJSON *event)
{
	spool_add(a->spool, event);
	wire_send(a->supervisor, event);
}

void
agent_note(struct agent *a, cJSON *note, size_t room)
{
	wire_send_lossy(a->supervisor, note, room);
}

static void
idle_check(struct agent *a)
{
	bool idle = a->attempt == NULL || attempt_is_over(a->attempt);

	if (idle && a->supervisor == NULL)
		loop_timer_set(a->idle_timer, IDLE_LIMIT_MS);
	else
		loop_timer_cancel(a->idle_timer);
}

static void
on_idle(void *arg)
{
	struct agent *a = arg;

	log_info("no attempt and no supervisor for 10 minutes, ending");
	loop_stop(a->loop, EXIT_OK);
}

/* The attempt is still on the stack of its own callbacks, so it is freed at the
 * next start or at the end. */
void
agent_attempt_over(struct agent *a)
{
	staging_attempt_over(a);
	idle_check(a);
}

static void
resend(const cJSON *event, void *arg)
{
	struct agent *a = arg;

	wire_send(a->supervisor, cJSON_Duplicate(event, true));
}

static void
send_hello(struct agent *a, struct wire *w)
{
	cJSON *m = agent_message(a, "hello", a->last_attempt);

	json_add_int(m, "pid", getpid());
	json_add_int(m, "swept", a->swept);
	json_add_int(m, "leftovers", a->leftovers);
	json_add_int(m, "unreadable", a->unreadable);
	if (a->attempt != NULL)
		attempt_describe(a->attempt, m);
	else
		json_add_text(m, "phase", "idle");
	wire_send(w, m);
}

static void
peer_free(struct peer *p)
{
	struct peer **at;

	for (at = &p->agent->peers; *at != NULL; at = &(*at)->next) {
		if (*at == p) {
			*at = p->next;
			break;
		}
	}
	wire_free(p->wire);
	free(p);
}

static void
on_supervisor_lost(const struct err *why, void *arg)
{
	struct peer *p = arg;
	struct agent *a = p->agent;

	if (a->supervisor == p->wire) {
		log_info("the supervisor is gone (%s); the ranks go on",
		    why->text);
		a->supervisor = NULL;
		idle_check(a);
	}
	peer_free(p);
}

static void
take_orders_from(struct peer *p, int64_t generation)
{
	struct agent *a = p->agent;

	if (generation < a->generation) {
		log_warn("refusing a supervisor of generation %lld, %lld was here",
		    (long long)generation, (long long)a->generation);
		return;
	}
	a->generation = generation;
	/* The older connection stays open until its owner closes it, but its
	 * orders do not count any more. */
	a->supervisor = p->wire;
	idle_check(a);
	spool_each(a->spool, resend, a);
	/* From here on nothing of the past follows. */
	wire_send(a->supervisor, agent_message(a, "resent", a->last_attempt));
}

static void
order_start(struct agent *a, const cJSON *order)
{
	int number = (int)json_int(order, "attempt", 0);
	struct err err = {0};
	cJSON *m;

	/* Sent twice by a re-adopting supervisor: it is the same attempt. */
	if (a->attempt != NULL && number == a->last_attempt)
		return;
	if (a->attempt != NULL && !attempt_is_over(a->attempt)) {
		err_set(&err, ERR_BUSY, "attempt %d is not over",
		    a->last_attempt);
	} else {
		attempt_free(a->attempt);
		a->attempt = NULL;
		if (attempt_start(a, order, &err) == 0) {
			idle_check(a);
			return;
		}
	}
	log_error("attempt %d: %s", number, err.text);
	m = agent_message(a, "failed", number);
	json_add_int(m, "errnum", err.errnum);
	json_add_text(m, "text", err.text);
	agent_event(a, m);
	m = agent_message(a, "gone", number);
	json_add_text(m, "proof", "never started");
	agent_event(a, m);
}

static void
on_order(const char *type, const cJSON *order, void *arg)
{
	struct peer *p = arg;
	struct agent *a = p->agent;
	int attempt = (int)json_int(order, "attempt", 0);

	if (strcmp(type, "take") == 0) {
		take_orders_from(p, json_int(order, "generation", 0));
	} else if (a->supervisor != p->wire) {
		log_warn("order '%s' from a supervisor that is not obeyed", type);
	} else if (strcmp(type, "ack") == 0) {
		spool_ack(a->spool, json_int(order, "event_seq", 0));
	} else if (strcmp(type, "start") == 0) {
		order_start(a, order);
	} else if (strcmp(type, "drain") == 0) {
		staging_drain(a);
	} else if (strcmp(type, "quit") == 0) {
		loop_stop(a->loop, EXIT_OK);
	} else if (a->attempt == NULL || attempt != a->last_attempt) {
		log_warn("order '%s' for attempt %d, which is not here", type,
		    attempt);
	} else if (strcmp(type, "stop") == 0) {
		attempt_stop(a->attempt, json_int(order, "grace_ms", 0),
		    json_str(order, "why", "asked to"));
	} else if (strcmp(type, "signal") == 0) {
		attempt_signal(a->attempt, (int)json_int(order, "signal", 0));
	} else if (strcmp(type, "evidence") == 0) {
		evidence_start(a->attempt, json_str(order, "dir", NULL),
		    json_int(order, "limit_ms", 0));
	} else {
		log_warn("unknown order '%s'", type);
	}
}

static void
on_connection(int fd, uint32_t events, void *arg)
{
	struct agent *a = arg;
	struct peer *p = NULL;
	struct err err = {0};
	int conn;

	(void)events;
	if ((conn = wire_accept(fd)) == -1)
		return;
	if ((p = calloc(1, sizeof(*p))) == NULL) {
		close(conn);
		return;
	}
	p->agent = a;
	if (wire_new(a->loop, conn, on_order, on_supervisor_lost, p, &p->wire,
	    &err) == -1) {
		log_warn("%s", err.text);
		close(conn);
		free(p);
		return;
	}
	p->next = a->peers;
	a->peers = p;
	send_hello(a, p->wire);
}

static void
on_signal(const struct signalfd_siginfo *si, void *arg)
{
	struct agent *a = arg;
	pid_t pid;

	(void)a;
	if (si->ssi_signo != SIGCHLD)
		return;		/* TERM of the session is not for the agent */
	do
		pid = waitpid(-1, NULL, WNOHANG);
	while (pid > 0);
}

static int
start_listening(struct agent *a, struct err *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/agent", a->spec->socket_dir);
	if ((a->listen_fd = wire_listen(path, err)) == -1)
		return -1;
	return loop_watch_fd(a->loop, a->listen_fd, EPOLLIN, on_connection, a,
	    NULL, err);
}

/* Nobody can connect before the node is clean, or it is known that it cannot be
 * cleaned: so no attempt starts beside ranks of an older one. */
static void
on_sweep(void *arg)
{
	struct agent *a = arg;
	struct err err = {0};

	a->leftovers = sweep_pass(a->spec, &a->swept, &a->unreadable);
	a->empty_passes = a->leftovers == 0 ? a->empty_passes + 1 : 0;
	if (a->empty_passes < SWEEP_EMPTY_PASSES &&
	    clock_mono_ns(&clock_system) < a->sweep_end_ns) {
		loop_timer_set(a->sweep_timer, SWEEP_MS);
		return;
	}
	if (a->swept > 0)
		log_warn("ended processes of an earlier attempt (%d signals)",
		    a->swept);
	if (start_listening(a, &err) == -1) {
		log_error("%s", err.text);
		loop_stop(a->loop, EXIT_NEGATIVE);
	}
}

static void
raise_descriptor_limit(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < rl.rlim_max) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
}

static void
agent_name(struct agent *a)
{
	uint64_t random = 0;
	char *dot;

	if (getrandom(&random, sizeof(random), 0) == -1)
		random = (uint64_t)clock_wall_ns(&clock_system) ^
		    (uint64_t)getpid();
	snprintf(a->instance, sizeof(a->instance), "%016llx",
	    (unsigned long long)random);
	gethostname(a->node, sizeof(a->node) - 1);
	if ((dot = strchr(a->node, '.')) != NULL)
		*dot = '\0';
	if (!text_is_name(a->node))
		snprintf(a->node, sizeof(a->node), "localhost");
}

static void
on_rule_problem(const char *text, void *arg)
{
	(void)arg;
	log_warn("%s", text);
}

/* Site rules were checked at the start of the run; whatever is wrong with them
 * now costs the live signs, not the attempt. */
static int
load_rules(struct agent *a, struct err *err)
{
	int problems = 0;

	if (a->spec->options.rules != NULL &&
	    rule_load(a->spec->options.rules, on_rule_problem, NULL, &a->rules,
	    &problems, err) == 0)
		return 0;
	return rule_load(NULL, on_rule_problem, NULL, &a->rules, &problems, err);
}

static void
log_line(const char *line, size_t len, void *arg)
{
	writer_append(arg, line, len, NULL, NULL);
}

static int
open_log(struct agent *a, struct err *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.4000s/agents/%s.log", a->spec->dir,
	    a->node);
	if (writer_open(a->writer, path, &a->log, err) == -1)
		return -1;
	log_sink(log_line, a->log);
	return 0;
}

/* One agent per run and node: a second one, started while the first does not
 * listen yet, must not sweep its ranks away.  The kernel releases the lock with
 * the process. */
static int
take_lock(struct agent *a, bool *taken, struct err *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/agent.lock", a->spec->socket_dir);
	a->lock_fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (a->lock_fd == -1)
		return err_errno(err, "cannot open %s", path);
	*taken = flock(a->lock_fd, LOCK_EX | LOCK_NB) == -1;
	if (*taken && errno != EWOULDBLOCK)
		return err_errno(err, "cannot lock %s", path);
	return 0;
}

static int
agent_init(struct agent *a, const char *dir, bool *taken, struct err *err)
{
	static const int signals[] = { SIGCHLD, SIGTERM, SIGINT, SIGHUP,
	    SIGUSR1, 0 };
	char path[PATH_MAX];

	a->listen_fd = -1;
	agent_name(a);
	if (run_spec_load(dir, &a->spec, NULL, err) == -1 ||
	    run_spec_make_socket_dir(a->spec, err) == -1 ||
	    take_lock(a, taken, err) == -1)
		return -1;
	if (*taken)
		return 0;
	if (load_rules(a, err) == -1)
		return -1;
	snprintf(path, sizeof(path), "%s/spool", a->spec->socket_dir);
	if (spool_open(path, &a->spool, err) == -1 ||
	    loop_new(&a->loop, err) == -1 ||
	    writer_new(a->loop, OUTPUT_QUEUE_MAX, &a->writer, err) == -1 ||
	    open_log(a, err) == -1 ||
	    loop_watch_signals(a->loop, signals, on_signal, a, NULL,
	    err) == -1 ||
	    loop_timer_new(a->loop, on_idle, a, &a->idle_timer, err) == -1 ||
	    loop_timer_new(a->loop, on_sweep, a, &a->sweep_timer, err) == -1)
		return -1;
	a->sweep_end_ns = clock_mono_ns(&clock_system) + SWEEP_LIMIT_NS;
	loop_timer_set(a->sweep_timer, 0);
	idle_check(a);
	return 0;
}

/* Leaves nothing behind when all was acknowledged; rmdir fails, and should, when
 * something still waits there. */
static void
clean_socket_dir(struct agent *a)
{
	bool empty = spool_is_empty(a->spool);
	struct stat mine, theirs;
	char path[PATH_MAX];

	spool_free(a->spool);
	/* The directory may have been removed and made again by another agent:
	 * then nothing in it is ours. */
	snprintf(path, sizeof(path), "%s/agent.lock", a->spec->socket_dir);
	if (fstat(a->lock_fd, &mine) == -1 || stat(path, &theirs) == -1 ||
	    mine.st_ino != theirs.st_ino || mine.st_dev != theirs.st_dev)
		return;
	snprintf(path, sizeof(path), "%s/agent", a->spec->socket_dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/snapshots", a->spec->socket_dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/spool", a->spec->socket_dir);
	if (empty)
		unlink(path);
	snprintf(path, sizeof(path), "%s/agent.lock", a->spec->socket_dir);
	unlink(path);
	rmdir(a->spec->socket_dir);
}

static int
agent_run(const struct verb *v, int argc, char **argv)
{
	struct agent a = {0};
	struct err err = {0};
	bool taken = false;
	int rc;

	(void)v;
	log_open_environment("agent");
	if (argc != 2) {
		log_error("the agent is started by the supervisor");
		return EXIT_USAGE;
	}
	setsid();
	signal(SIGPIPE, SIG_IGN);
	/* Children of a killed reaper fall to this process and can be reaped. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	raise_descriptor_limit();
	rc = agent_init(&a, argv[1], &taken, &err);
	if (rc == 0 && taken)
		return EXIT_OK;
	if (rc == 0)
		rc = loop_run(a.loop, &err);
	if (rc == -1) {
		log_sink(NULL, NULL);
		log_error("%s", err.text);
		return EXIT_NEGATIVE;
	}
	while (a.peers != NULL)
		peer_free(a.peers);
	attempt_free(a.attempt);
	staging_free(&a);
	log_sink(NULL, NULL);
	writer_close(a.log);
	if (!writer_free(a.writer, 2000))
		log_warn("the file system hangs, some output was not written");
	loop_free(a.loop);
	clean_socket_dir(&a);
	rule_set_free(a.rules);
	run_spec_free(a.spec);
	return rc;
}

const struct verb verb_agent = {
	.name = "agent",
	.summary = "act on a node (started by the supervisor)",
	.run = agent_run,
	.internal = true
};
