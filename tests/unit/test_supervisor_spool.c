/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_supervisor_spool.c - events that outlive the agent.
 */
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "supervisor/spool.h"
#include "unit.h"

static const char *path;

static struct spool *
open_spool(void)
{
	struct spool *s = NULL;
	struct err err = {0};

	ck_assert_msg(spool_open(path, &s, &err) == 0, "%s", err.text);
	return s;
}

static int64_t
add_event(struct spool *s, const char *name)
{
	cJSON *e = cJSON_CreateObject();
	int64_t seq;

	json_add_text(e, "name", name);
	seq = spool_add(s, e);
	ck_assert_int_eq(json_int(e, "seq", -1), seq);
	cJSON_Delete(e);
	return seq;
}

static void
list(const cJSON *event, void *arg)
{
	char *text = arg;

	snprintf(text + strlen(text), 200 - strlen(text), "%lld%s ",
	    (long long)json_int(event, "seq", -1), json_str(event, "name", "?"));
}

static const char *
content(const struct spool *s)
{
	static char text[200];

	text[0] = '\0';
	spool_each(s, list, text);
	return text;
}

START_TEST(events_are_kept_until_acknowledged)
{
	struct spool *s;

	path = unit_path(unit_dir(), "spool");
	s = open_spool();
	ck_assert(spool_is_empty(s));
	ck_assert_int_eq(add_event(s, "a"), 1);
	ck_assert_int_eq(add_event(s, "b"), 2);
	ck_assert_int_eq(add_event(s, "c"), 3);
	ck_assert_str_eq(content(s), "1a 2b 3c ");
	spool_ack(s, 2);
	ck_assert_str_eq(content(s), "3c ");
	ck_assert(!spool_is_empty(s));
	spool_ack(s, 1);
	spool_ack(s, 0);
	ck_assert_str_eq(content(s), "3c ");
	spool_ack(s, 100);
	ck_assert(spool_is_empty(s));
	ck_assert_uint_eq(strlen(unit_read(path, NULL)), 0);
	/* The numbers go on. */
	ck_assert_int_eq(add_event(s, "d"), 4);
	ck_assert_str_eq(content(s), "4d ");
	spool_free(s);
	spool_free(NULL);
}
END_TEST

START_TEST(event_that_is_sent_again_gets_a_new_seq)
{
	struct spool *s;
	cJSON *e = cJSON_CreateObject();

	path = unit_path(unit_dir(), "spool");
	s = open_spool();
	json_add_int(e, "seq", 77);
	ck_assert_int_eq(spool_add(s, e), 1);
	ck_assert_int_eq(spool_add(s, e), 2);
	ck_assert_int_eq(cJSON_GetArraySize(e), 1);
	cJSON_Delete(e);
	spool_free(s);
}
END_TEST

START_TEST(next_agent_takes_over)
{
	struct spool *s;

	path = unit_path(unit_dir(), "spool");
	s = open_spool();
	add_event(s, "a");
	add_event(s, "b");
	add_event(s, "c");
	spool_ack(s, 1);
	spool_free(s);
	s = open_spool();
	/* One that was acknowledged may come again, none is missing. */
	ck_assert_ptr_nonnull(strstr(content(s), "2b 3c "));
	ck_assert_int_eq(add_event(s, "d"), 4);
	spool_ack(s, 3);
	ck_assert_str_eq(content(s), "4d ");
	spool_ack(s, 4);
	spool_free(s);
	s = open_spool();
	ck_assert(spool_is_empty(s));
	spool_free(s);
}
END_TEST

/* The agent was killed while it wrote; what its successor adds must be read by
 * the one after that. */
START_TEST(torn_line_takes_nothing_with_it)
{
	static const char torn[] = "{\"name\":\"b\",\"seq\":2}";
	char text[100];
	struct spool *s;
	size_t cut;

	for (cut = 0; cut <= strlen(torn); cut++) {
		path = unit_path(unit_dir(), "spool");
		snprintf(text, sizeof(text), "{\"name\":\"a\",\"seq\":1}\n%.*s",
		    (int)cut, torn);
		unit_write(path, text, strlen(text));
		s = open_spool();
		ck_assert_str_eq(content(s), "1a ");
		ck_assert_int_eq(add_event(s, "c"), 2);
		spool_free(s);
		s = open_spool();
		ck_assert_str_eq(content(s), "1a 2c ");
		spool_free(s);
	}
}
END_TEST

START_TEST(broken_lines_are_passed_over)
{
	static const char text[] = "nonsense\n{\"name\":\"x\"}\n\n5\n"
	    "{\"name\":\"y\",\"seq\":-3}\n{\"name\":\"z\",\"seq\":7}\n";
	struct spool *s;

	path = unit_path(unit_dir(), "spool");
	unit_write(path, text, strlen(text));
	s = open_spool();
	ck_assert_str_eq(content(s), "7z ");
	ck_assert_int_eq(add_event(s, "n"), 8);
	spool_free(s);
}
END_TEST

START_TEST(place_that_cannot_be_written)
{
	struct spool *s = NULL;
	struct err err = {0};

	ck_assert_int_eq(spool_open(unit_path(unit_dir(), "no/spool"), &s, &err),
	    -1);
	ck_assert_ptr_nonnull(strstr(err.text, "no/spool"));
	ck_assert_ptr_null(s);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_test(t, events_are_kept_until_acknowledged);
	tcase_add_test(t, event_that_is_sent_again_gets_a_new_seq);
	tcase_add_test(t, next_agent_takes_over);
	tcase_add_test(t, torn_line_takes_nothing_with_it);
	tcase_add_test(t, broken_lines_are_passed_over);
	tcase_add_test(t, place_that_cannot_be_written);
}

int
main(void)
{
	return unit_run("supervisor_spool", add);
}
