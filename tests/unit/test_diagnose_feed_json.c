/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_feed_json.c - logs of one JSON object per line: which are, the lines
 * they become, and the numbers of those.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "diagnose/feed.h"
#include "unit.h"

#define WHEN	"\"time\":\"2026-01-31T03:12:41.5Z\""
#define STAMP	"2026-01-31T03:12:41.5Z "

static void
read_log(struct feed *f, const char *text)
{
	const char *path = unit_path(unit_dir(), "a.log");
	struct err err = {0};

	unit_write(path, text, strlen(text));
	ck_assert_msg(feed_add(f, path, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(f->count, 1);
}

static void
expect(const char *text, const char *lines)
{
	struct feed f = {0};

	read_log(&f, text);
	ck_assert_msg(f.streams[0].len == strlen(lines) &&
	    memcmp(f.streams[0].data, lines, strlen(lines)) == 0,
	    "%.*s\nis not\n%s", (int)f.streams[0].len, f.streams[0].data, lines);
	feed_fini(&f);
}

static const struct {
	const char	*json;
	const char	*lines;
} rows[] = {
	/* a log driver, with a piece of a line and an empty one */
	{ "{\"log\":\"a \\\"b\\\"\\n\",\"stream\":\"stdout\"," WHEN "}\n"
	  "{\"log\":\"c\",\"stream\":\"stdout\"," WHEN "}\n"
	  "{\"log\":\"d\\n\",\"stream\":\"stdout\"," WHEN "}\n"
	  "{\"log\":\"\\n\",\"stream\":\"stdout\"," WHEN "}\n",
	  STAMP "a \"b\"\n" STAMP "cd\n" STAMP "\n" },
	{ "{\"log\":\"cut\",\"stream\":\"stderr\"," WHEN "}",
	  STAMP "cut\n" },
	{ "{" WHEN ",\"stream\":\"stderr\",\"log\":\"a\\n\",\"kubernetes\":"
	  "{\"host\":\"big-box\",\"pod_name\":\"p-1\"}}\n",
	  STAMP "big-box log[0]: a\n" },
	/* the journal: microseconds, bytes that are no text, a level of its own */
	{ "{\"MESSAGE\":[27,91,49,109,97],\"_HOSTNAME\":\"n7\",\"PRIORITY\":\"3\","
	  "\"SYSLOG_IDENTIFIER\":\"python3\",\"_PID\":\"81\","
	  "\"__REALTIME_TIMESTAMP\":\"1769829161123456\"}\n",
	  "2026-01-31T03:12:41.123Z n7 python3[81]: \033[1ma\n" },
	{ "{\"MESSAGE\":\"a\",\"_HOSTNAME\":\"n7\",\"SYSLOG_IDENTIFIER\":\"kernel\","
	  "\"__REALTIME_TIMESTAMP\":\"1769829161123456\"}\n",
	  "2026-01-31T03:12:41.123Z n7 kernel: a\n" },
	/* loggers: a level, a rank, a traceback */
	{ "{\"timestamp\":1769829161.5,\"level\":\"error\",\"message\":\"a\","
	  "\"exc_info\":\"Traceback\\n  b\",\"rank\":3}\n",
	  "2026-01-31T03:12:41.500Z [rank3]: ERROR: a\n"
	  "2026-01-31T03:12:41.500Z [rank3]: ERROR: Traceback\n"
	  "2026-01-31T03:12:41.500Z [rank3]: ERROR:   b\n" },
	{ "{\"ts\":1769829161500,\"levelname\":\"warning\",\"msg\":\"a\"}\n",
	  "2026-01-31T03:12:41.500Z WARNING: a\n" },
	{ "{\"rank\":3,\"event\":\"a\",\"exception\":\"Traceback\\n  b\"}\n",
	  "[rank3]: a\n[rank3]: Traceback\n[rank3]:   b\n" },
	{ "{\"level\":\"ERROR\",\"exc_info\":\"Traceback\"}\n", "ERROR: Traceback\n" },
	{ "{\"level\":\"info\",\"msg\":\"a\"}\n", "INFO: a\n" },
	/* what is no record stays */
	{ "{\"msg\":\"a\"," WHEN "}\n{\"msg\":\"b\"," WHEN "}\nplain {\n{\"x\":1}\n",
	  STAMP "a\n" STAMP "b\nplain {\n{\"x\":1}\n" },
	{ "{\"msg\":\"a\"}\n", "{\"msg\":\"a\"}\n" },
	{ "{\"msg\":\"a\",\"level\":3}\n", "{\"msg\":\"a\",\"level\":3}\n" },
	{ "{\"msg\":3," WHEN "}\n", "{\"msg\":3," WHEN "}\n" },
	{ "[\"msg\"]\n", "[\"msg\"]\n" },
	{ "{\"msg\":\"a\"," WHEN "\n", "{\"msg\":\"a\"," WHEN "\n" },
	{ "a\nb\nc\nd\n{\"msg\":\"a\"," WHEN "}\n", "a\nb\nc\nd\n" STAMP "a\n" },
	{ "{\"schema\":\"holdfast.event/1\",\"message\":\"a\"," WHEN "}\n",
	  "{\"schema\":\"holdfast.event/1\",\"message\":\"a\"," WHEN "}\n" },
	/* values of other types and lengths */
	{ "{\"msg\":\"a\",\"time\":[],\"level\":{},\"host\":7,\"rank\":\"x\"}\n",
	  "a\n" },
	{ "{\"msg\":\"a\",\"time\":1e308,\"host\":\"two words\",\"level\":\"9\"}\n",
	  "a\n" }
};

START_TEST(lines)
{
	expect(rows[_i].json, rows[_i].lines);
}
END_TEST

static uint64_t
number_of(const struct feed *f, const char *word)
{
	const struct stream *s = &f->streams[0];
	const char *at = memmem(s->data, s->len, word, strlen(word));

	ck_assert_ptr_nonnull(at);
	return stream_line(s, (size_t)(at - s->data));
}

/* A line has the number of the record that it was in. */
START_TEST(numbers)
{
	struct feed f = {0};

	read_log(&f,
	    "{\"log\":\"one\\n\"," WHEN "}\n"
	    "{\"log\":\"two\\nalso-two\\nend-of-two\\n\"," WHEN "}\n"
	    "{\"log\":\"three\\n\"," WHEN "}\n"
	    "{\"log\":\"piece\"," WHEN "}\n"
	    "{\"log\":\" more\\n\"," WHEN "}\n"
	    "{\"log\":\"six\\n\"," WHEN "}\n"
	    "seven\n"
	    "{\"log\":\"eight\\n\"," WHEN "}\n");
	ck_assert_uint_eq(number_of(&f, "one"), 1);
	ck_assert_uint_eq(number_of(&f, "Z two"), 2);
	ck_assert_uint_eq(number_of(&f, "also-two"), 2);
	ck_assert_uint_eq(number_of(&f, "end-of-two"), 2);
	ck_assert_uint_eq(number_of(&f, "three"), 3);
	ck_assert_uint_eq(number_of(&f, "piece"), 4);
	ck_assert_uint_eq(number_of(&f, "six"), 6);
	ck_assert_uint_eq(number_of(&f, "seven"), 7);
	ck_assert_uint_eq(number_of(&f, "eight"), 8);
	ck_assert_uint_eq(stream_lines(&f.streams[0]), 8);
	/* Those of a reader of the stream would count its newlines. */
	ck_assert_int_eq(stream_mark(&f.streams[0], f.streams[0].len, 77, NULL),
	    0);
	ck_assert_uint_eq(stream_lines(&f.streams[0]), 8);
	feed_fini(&f);
}
END_TEST

/* More than stays in memory at once. */
START_TEST(large)
{
	struct buf in = {0}, out = {0};
	int i;

	for (i = 0; i < 40000; i++) {
		ck_assert_int_eq(buf_printf(&in,
		    "{\"log\":\"step %d\\n\"," WHEN "}\n", i), 0);
		ck_assert_int_eq(buf_printf(&out, STAMP "step %d\n", i), 0);
	}
	expect(in.data, out.data);
	buf_fini(&in);
	buf_fini(&out);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_loop_test(t, lines, 0, sizeof(rows) / sizeof(rows[0]));
	tcase_add_test(t, numbers);
	tcase_add_test(t, large);
}

int
main(void)
{
	return unit_run("feed_json", add_tests);
}
