/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_supervisor_journal.c - the journal file: written, cut, replayed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json.h"
#include "supervisor/journal.h"
#include "unit.h"

static struct loop *loop;
static struct writer *writer;
static struct journal *journal;
static struct history history;
static const char *dir;
static int waiting;

static int
open_journal(struct err *err)
{
	history_init(&history);
	return journal_open(dir, unit_path(dir, "spool"), loop, writer, &history,
	    &journal, err);
}

static void
setup(void)
{
	dir = unit_dir();
	ck_assert_int_eq(loop_new(&loop, NULL), 0);
	ck_assert_int_eq(writer_new(loop, 1 << 20, &writer, NULL), 0);
	waiting = 0;
}

static void
on_done(void *arg)
{
	(void)arg;
	if (--waiting == 0)
		loop_stop(loop, 0);
}

static void
append(cJSON *r)
{
	waiting++;
	journal_append(journal, r, on_done, NULL);
}

static void
flush(void)
{
	while (waiting > 0)
		ck_assert_int_eq(loop_run(loop, NULL), 0);
}

static void
close_all(void)
{
	flush();
	journal_free(journal);
	journal = NULL;
	ck_assert(writer_free(writer, 60000));
	loop_free(loop);
}

static const char *
journal_path(void)
{
	return unit_path(dir, "journal.jsonl");
}

/* A random record of a kind that changes the history. */
static cJSON *
some_record(int i)
{
	static const char *const types[] = { "attempt", "ranks", "exit",
	    "incident", "gone", "decision", "checkpoint", "stop" };
	const char *type = types[i % 8];
	cJSON *r = journal_record(type, 1 + i / 8), *o;

	if (i % 8 == 0) {
		o = cJSON_AddObjectToObject(r, "resume");
		json_add_int(o, "step", i);
	}
	json_add_text(r, "kind", i % 3 ? "restart" : "exited");
	json_add_int(r, "status", i % 5);
	json_add_int(r, "rank", i % 4);
	json_add_int(r, "step", (int64_t)unit_random(1000));
	json_add_text(r, "sign", "loss");
	json_add_text(r, "text", "a \"text\"\n\xff");
	json_add_text(r, "fingerprint", i % 16 < 8 ? "f1" : "f2");
	json_add_text(r, "instance", "agent");
	json_add_int(r, "event_seq", i);
	return r;
}

static void
check_equal(const struct history *a, const struct history *b)
{
	int i;

	ck_assert_int_eq(a->seq, b->seq);
	ck_assert_int_eq(a->generation, b->generation);
	ck_assert_int_eq(a->campaign, b->campaign);
	ck_assert_int_eq(a->attempt, b->attempt);
	ck_assert_int_eq(a->phase, b->phase);
	ck_assert_int_eq(a->incidents, b->incidents);
	ck_assert_int_eq(a->stop_asked, b->stop_asked);
	ck_assert_int_eq(a->ended, b->ended);
	ck_assert_int_eq(a->end_code, b->end_code);
	ck_assert_str_eq(a->instance, b->instance);
	ck_assert_int_eq(a->event_seq, b->event_seq);
	ck_assert_int_eq(a->started_ns, b->started_ns);
	ck_assert_int_eq(a->exits_ok, b->exits_ok);
	ck_assert_int_eq(a->exits_failed, b->exits_failed);
	ck_assert_int_eq(a->resume_step, b->resume_step);
	ck_assert_int_eq(a->furthest_step, b->furthest_step);
	ck_assert_int_eq(a->no_progress, b->no_progress);
	ck_assert_int_eq(a->free_retries, b->free_retries);
	ck_assert_int_eq(a->restarts, b->restarts);
	for (i = 0; i < a->restarts && i < HISTORY_RESTARTS_MAX; i++)
		ck_assert_int_eq(a->restarts_ns[i], b->restarts_ns[i]);
	ck_assert_int_eq(a->ledger_count, b->ledger_count);
	for (i = 0; i < a->ledger_count; i++) {
		ck_assert_str_eq(a->ledger[i].fingerprint,
		    b->ledger[i].fingerprint);
		ck_assert_int_eq(a->ledger[i].count, b->ledger[i].count);
		ck_assert_int_eq(a->ledger[i].checkpoint_step,
		    b->ledger[i].checkpoint_step);
		ck_assert_int_eq(a->ledger[i].furthest_step,
		    b->ledger[i].furthest_step);
	}
	ck_assert_int_eq(a->sign.kind, b->sign.kind);
	ck_assert_int_eq(a->sign.rank, b->sign.rank);
	ck_assert_int_eq(a->sign.pid, b->sign.pid);
	ck_assert_int_eq(a->sign.signaled, b->sign.signaled);
	ck_assert_int_eq(a->sign.status, b->sign.status);
	ck_assert_int_eq(a->sign.step, b->sign.step);
	ck_assert_int_eq(a->decision.kind, b->decision.kind);
	ck_assert_int_eq(a->decision.before_step, b->decision.before_step);
	ck_assert_int_eq(a->decision.delay_ms, b->decision.delay_ms);
}

#define RECORDS	120

/* A supervisor that is killed after any record knows what its predecessor knew. */
START_TEST(replay_equals_the_live_state_at_every_prefix)
{
	static struct history live[RECORDS], replayed;
	const char *text, *p, *copy;
	struct err err = {0};
	int i;

	setup();
	ck_assert_int_eq(open_journal(NULL), 0);
	for (i = 0; i < RECORDS; i++) {
		append(some_record(i));
		live[i] = history;
	}
	close_all();
	text = unit_read(journal_path(), NULL);
	copy = unit_path(dir, "prefix");
	p = text;
	for (i = 0; i < RECORDS; i++) {
		p = strchr(p, '\n') + 1;
		unit_write(copy, text, (size_t)(p - text));
		history_init(&replayed);
		ck_assert_msg(journal_read(copy, &replayed, NULL, &err) == 0,
		    "%s", err.text);
		check_equal(&live[i], &replayed);
		ck_assert_int_eq(replayed.seq, i + 1);
	}
	ck_assert_int_eq(*p, '\0');
}
END_TEST

static void
on_tap(const cJSON *record, void *arg)
{
	cJSON **copy = arg;

	cJSON_Delete(*copy);
	*copy = cJSON_Duplicate(record, true);
}

START_TEST(records_are_stamped_and_one_line_each)
{
	cJSON *tapped = NULL, *r = NULL;
	const char *text;

	setup();
	ck_assert_int_eq(open_journal(NULL), 0);
	journal_tap(journal, on_tap, &tapped);
	append(journal_record("campaign", 0));
	r = journal_record("sign", 7);
	json_add_text(r, "text", "two\nlines \xc3\x28");
	append(r);
	flush();
	text = unit_read(journal_path(), NULL);
	text = strchr(text, '\n') + 1;
	ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
	ck_assert_int_eq(json_parse(text, strlen(text), &r, NULL), 0);
	ck_assert(cJSON_Compare(r, tapped, true));
	ck_assert_int_eq(json_int(r, "seq", 0), 2);
	ck_assert_int_eq(json_int(r, "attempt", 0), 7);
	ck_assert_str_eq(json_str(r, "type", ""), "sign");
	ck_assert_str_eq(json_str(r, "text", ""), "two\nlines \xef\xbf\xbd(");
	ck_assert_uint_eq(strlen(json_str(r, "time", "")), 24);
	ck_assert_int_gt(atoll(json_str(r, "time_ns", "0")), 0);
	cJSON_Delete(r);
	cJSON_Delete(tapped);
	close_all();
}
END_TEST

START_TEST(torn_last_line_is_cut_and_seq_goes_on)
{
	static const char whole[] = "{\"type\":\"campaign\",\"seq\":1}\n"
	    "{\"type\":\"attempt\",\"attempt\":3,\"seq\":2}\n";
	static const char torn[] = "{\"type\":\"attempt\",\"attempt\":9,\"se";
	char both[200];
	size_t cut;
	const char *text;

	for (cut = 0; cut < strlen(torn); cut++) {
		setup();
		snprintf(both, sizeof(both), "%s%.*s", whole, (int)cut, torn);
		unit_write(journal_path(), both, strlen(both));
		ck_assert_int_eq(open_journal(NULL), 0);
		ck_assert_int_eq(history.attempt, 3);
		ck_assert_int_eq(history.seq, 2);
		append(journal_record("ranks", 3));
		close_all();
		text = unit_read(journal_path(), NULL);
		ck_assert_int_eq(strncmp(text, whole, strlen(whole)), 0);
		ck_assert_ptr_nonnull(strstr(text + strlen(whole), "\"seq\":3"));
		ck_assert_int_eq(text[strlen(whole)], '{');
		ck_assert_int_eq(text[strlen(text) - 1], '\n');
	}
}
END_TEST

/* A whole record without its newline is torn as well: it was not synced. */
START_TEST(only_a_torn_line)
{
	setup();
	unit_write(journal_path(), "{\"type\":\"campaign\",\"seq\":1}", 27);
	ck_assert_int_eq(open_journal(NULL), 0);
	ck_assert_int_eq(history.seq, 0);
	append(journal_record("campaign", 0));
	close_all();
	ck_assert_int_eq(unit_read(journal_path(), NULL)[0], '{');
}
END_TEST

START_TEST(broken_line_elsewhere_is_an_error)
{
	static const char *const texts[] = {
	    "{\"seq\":1}\n{\"seq\":2\n{\"seq\":3}\n",
	    "{\"seq\":1}\n{\"seq\":2}{\"seq\":3}\n",
	    "{\"seq\":1}\n\xff\n" };
	char where[64];
	struct err err;
	struct stat st;
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		setup();
		err = (struct err){0};
		unit_write(journal_path(), texts[i], strlen(texts[i]));
		ck_assert_int_eq(open_journal(&err), -1);
		snprintf(where, sizeof(where), "journal.jsonl: line 2: ");
		ck_assert_msg(strstr(err.text, where) != NULL, "%s", err.text);
		/* Nothing was touched. */
		ck_assert_int_eq(stat(journal_path(), &st), 0);
		ck_assert_uint_eq((size_t)st.st_size, strlen(texts[i]));
		ck_assert(writer_free(writer, 60000));
		loop_free(loop);
	}
}
END_TEST

START_TEST(missing_journal_is_a_new_run)
{
	struct history h;
	long good = 5;

	history_init(&h);
	dir = unit_dir();
	ck_assert_int_eq(journal_read(journal_path(), &h, &good, NULL), 0);
	ck_assert_int_eq(good, -1);
	ck_assert_int_eq(h.seq, 0);
}
END_TEST

/* One that is there and cannot be read is not a missing one, whatever errno was
 * before. */
START_TEST(unreadable_journal_is_an_error)
{
	struct err err = {0};
	struct history h;

	history_init(&h);
	dir = unit_dir();
	ck_assert_int_eq(mkdir(journal_path(), 0700), 0);
	errno = ENOENT;
	ck_assert_int_eq(journal_read(journal_path(), &h, NULL, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "journal.jsonl"));
	errno = ENOENT;
	ck_assert_int_eq(journal_read(journal_path(), &h, NULL, NULL), -1);
}
END_TEST

/* The store refuses: who waits goes on after a while, the records are in the
 * spool; and in the file, in order, once it is back. */
START_TEST(refused_records_wait_in_the_spool)
{
	const char *text, *sub = unit_path(unit_dir(), "sub");
	const char *target = unit_path(sub, "journal");
	struct history h;

	setup();
	/* It seems to be missing, and cannot be made. */
	ck_assert_int_eq(symlink(target, journal_path()), 0);
	ck_assert_int_eq(open_journal(NULL), 0);
	append(journal_record("campaign", 0));
	append(journal_record("supervisor", 0));
	flush();
	text = unit_read(unit_path(dir, "spool"), NULL);
	ck_assert_ptr_nonnull(strstr(text, "\"seq\":1}\n"));
	ck_assert_ptr_nonnull(strstr(text, "\"seq\":2}\n"));
	ck_assert_int_eq(mkdir(sub, 0700), 0);
	append(journal_record("agent", 0));
	flush();
	history_init(&h);
	ck_assert_int_eq(journal_read(target, &h, NULL, NULL), 0);
	ck_assert_int_eq(h.seq, 3);
	ck_assert_int_eq(h.generation, 1);
	ck_assert_int_eq(access(unit_path(dir, "spool"), F_OK), -1);
	close_all();
}
END_TEST

/* A supervisor that ended before the store came back: the next one reads both. */
START_TEST(spool_is_merged_at_the_next_start)
{
	static const char file[] = "{\"type\":\"campaign\",\"seq\":1}\n"
	    "{\"type\":\"attempt\",\"attempt\":1,\"seq\":2}\n";
	static const char spool[] = "{\"type\":\"attempt\",\"attempt\":1,"
	    "\"seq\":2}\nnonsense\n{\"type\":\"ranks\",\"seq\":3}\n"
	    "{\"type\":\"gone\",\"seq\":4}\n{\"type\":\"dec";
	struct history h;
	const char *text;

	setup();
	unit_write(journal_path(), file, strlen(file));
	unit_write(unit_path(dir, "spool"), spool, strlen(spool));
	ck_assert_int_eq(open_journal(NULL), 0);
	ck_assert_int_eq(history.seq, 4);
	ck_assert_int_eq(history.phase, ATTEMPT_GONE);
	append(journal_record("stop", 1));
	close_all();
	history_init(&h);
	ck_assert_int_eq(journal_read(journal_path(), &h, NULL, NULL), 0);
	ck_assert_int_eq(h.seq, 5);
	ck_assert_int_eq(h.phase, ATTEMPT_GONE);
	text = unit_read(journal_path(), NULL);
	ck_assert_int_eq(strncmp(text, file, strlen(file)), 0);
	ck_assert_ptr_null(strstr(text + strlen(file), "\"seq\":2"));
	ck_assert_int_eq(access(unit_path(dir, "spool"), F_OK), -1);
}
END_TEST

/* More than the queue takes: the loop is not held, and the record is kept. */
START_TEST(full_queue_does_not_block)
{
	cJSON *r;
	char *big = malloc(2 << 20);
	struct stat st;

	memset(big, 'x', (2 << 20) - 1);
	big[(2 << 20) - 1] = '\0';
	setup();
	ck_assert_int_eq(open_journal(NULL), 0);
	r = journal_record("sign", 1);
	json_add_text(r, "text", big);
	journal_append(journal, r, NULL, NULL);
	ck_assert_int_eq(history.seq, 1);
	ck_assert_int_eq(stat(unit_path(dir, "spool"), &st), 0);
	ck_assert_int_gt(st.st_size, 2 << 20);
	free(big);
	close_all();
}
END_TEST

/* The store hangs: a decision waits for a while and then goes on; the record is
 * written when the store answers. */
START_TEST(slow_store_holds_a_decision_only_so_long)
{
	int64_t start = clock_mono_ns(&clock_system);
	struct writer_file *fifo;
	const char *path;

	setup();
	path = unit_path(dir, "fifo");
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(writer_open(writer, path, &fifo, NULL), 0);
	ck_assert_int_eq(open_journal(NULL), 0);
	append(journal_record("campaign", 0));
	flush();
	ck_assert_int_ge(clock_mono_ns(&clock_system) - start,
	    JOURNAL_WAIT_MS * NS_PER_MS);
	ck_assert_int_ne(open(unit_path(dir, "fifo"), O_RDONLY | O_NONBLOCK), -1);
	writer_close(fifo);
	/* The next one is durable after the first. */
	append(journal_record("supervisor", 0));
	close_all();
	ck_assert_ptr_nonnull(strstr(unit_read(journal_path(), NULL),
	    "\"seq\":1}\n"));
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_test(t, replay_equals_the_live_state_at_every_prefix);
	tcase_add_test(t, records_are_stamped_and_one_line_each);
	tcase_add_test(t, torn_last_line_is_cut_and_seq_goes_on);
	tcase_add_test(t, only_a_torn_line);
	tcase_add_test(t, broken_line_elsewhere_is_an_error);
	tcase_add_test(t, missing_journal_is_a_new_run);
	tcase_add_test(t, unreadable_journal_is_an_error);
	tcase_add_test(t, refused_records_wait_in_the_spool);
	tcase_add_test(t, spool_is_merged_at_the_next_start);
	tcase_add_test(t, full_queue_does_not_block);
	tcase_add_test(t, slow_store_holds_a_decision_only_so_long);
}

int
main(void)
{
	return unit_run("supervisor_journal", add);
}
