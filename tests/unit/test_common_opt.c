/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_common_opt.c - options from command line, configuration and environment.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/opt.h"
#include "unit.h"

#define LENGTH(a)	((int)(sizeof(a) / sizeof((a)[0])))

struct values {
	bool		 flag, quiet;
	const char	*text, *choice, *secret;
	int64_t		 number, small, time_ms, bytes;
};

#define O(f)	offsetof(struct values, f)

static const struct opt table[] = {
	{ "flag", 'f', OPT_FLAG, O(flag), NULL, "a flag", .def = "false" },
	{ "quiet", 'q', OPT_FLAG, O(quiet), NULL, "on", .def = "true" },
	{ "some-text", 't', OPT_TEXT, O(text), "TEXT", "a text" },
	{ "number", 'n', OPT_INT, O(number), "N", "a number", .def = "3" },
	{ "small", 0, OPT_INT, O(small), "N", "a small one", .def = "-1",
	    .least = -2, .most = 2 },
	{ "time", 0, OPT_DURATION, O(time_ms), "T", "a time", .def = "5s" },
	{ "bytes", 0, OPT_SIZE, O(bytes), "B", "a size", .def = "4K" },
	{ "choice", 0, OPT_CHOICE, O(choice), "C", "one of", .def = "auto",
	    .choices = "auto never always" },
	{ "secret", 0, OPT_TEXT, O(secret), "S", "command line only",
	    .cli_only = true },
	{ .name = NULL }
};

/* Splits at blanks and parses; *first and argv as opt_parse leaves them. */
static char words[256];
static char *argv[24];
static int argc, first;

static int
parse(const char *line, struct values *v, bool mixed, struct err *err)
{
	char *save = NULL, *w;

	*v = (struct values){0};
	*err = (struct err){0};
	ck_assert_int_eq(opt_defaults(table, v, err), 0);
	snprintf(words, sizeof(words), "%s", line);
	argc = 0;
	argv[argc++] = (char *)(uintptr_t)"verb";
	for (w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	argv[argc] = NULL;
	first = -1;
	return mixed ? opt_parse_mixed(table, v, argc, argv, &first, err) :
	    opt_parse(table, v, argc, argv, &first, err);
}

static void
parse_well(const char *line, struct values *v)
{
	struct err err;

	ck_assert_msg(parse(line, v, false, &err) == 0, "%s: %s", line, err.text);
}

START_TEST(defaults_are_set)
{
	struct values v;

	parse_well("", &v);
	ck_assert(!v.flag && v.quiet);
	ck_assert_ptr_null(v.text);
	ck_assert_int_eq(v.number, 3);
	ck_assert_int_eq(v.small, -1);
	ck_assert_int_eq(v.time_ms, 5000);
	ck_assert_int_eq(v.bytes, 4096);
	ck_assert_str_eq(v.choice, "auto");
	ck_assert_int_eq(first, 1);
}
END_TEST

START_TEST(all_types_are_read)
{
	struct values v;

	parse_well("--flag --some-text x --number 12 --small=-2 --time 2m "
	    "--bytes=1M --choice never --secret s op", &v);
	ck_assert(v.flag);
	ck_assert_str_eq(v.text, "x");
	ck_assert_int_eq(v.number, 12);
	ck_assert_int_eq(v.small, -2);
	ck_assert_int_eq(v.time_ms, 120000);
	ck_assert_int_eq(v.bytes, 1 << 20);
	ck_assert_str_eq(v.choice, "never");
	ck_assert_str_eq(v.secret, "s");
	ck_assert_str_eq(argv[first], "op");
}
END_TEST

START_TEST(flags_have_three_forms)
{
	struct values v;

	parse_well("--flag --no-quiet", &v);
	ck_assert(v.flag && !v.quiet);
	parse_well("--flag=true --quiet=false", &v);
	ck_assert(v.flag && !v.quiet);
	parse_well("--flag --no-flag", &v);
	ck_assert(!v.flag);
	/* The word behind a flag is no value of it. */
	parse_well("--flag false", &v);
	ck_assert(v.flag);
	ck_assert_str_eq(argv[first], "false");
}
END_TEST

START_TEST(values_may_be_odd)
{
	struct values v;

	parse_well("--some-text=", &v);
	ck_assert_str_eq(v.text, "");
	parse_well("--some-text=a=b", &v);
	ck_assert_str_eq(v.text, "a=b");
	parse_well("--some-text --flag", &v);
	ck_assert_str_eq(v.text, "--flag");
	ck_assert(!v.flag);
	parse_well("--some-text -- op", &v);
	ck_assert_str_eq(v.text, "--");
	ck_assert_str_eq(argv[first], "op");
}
END_TEST

START_TEST(letters_are_read)
{
	struct values v;

	parse_well("-fn5 -t x op", &v);
	ck_assert(v.flag);
	ck_assert_int_eq(v.number, 5);
	ck_assert_str_eq(v.text, "x");
	ck_assert_str_eq(argv[first], "op");
	parse_well("-fqtx", &v);
	ck_assert_str_eq(v.text, "x");
}
END_TEST

START_TEST(parsing_stops_at_the_command)
{
	struct values v;

	parse_well("--flag python train.py --number x", &v);
	ck_assert_str_eq(argv[first], "python");
	ck_assert_int_eq(first, 2);
	parse_well("--flag -- --number", &v);
	ck_assert_str_eq(argv[first], "--number");
	parse_well("-", &v);
	ck_assert_str_eq(argv[first], "-");
	parse_well("--flag --", &v);
	ck_assert_int_eq(first, argc);
}
END_TEST

static const struct {
	const char	*line, *want;
} wrong[] = {
	{ "--flga", "unknown option '--flga', did you mean '--flag'?" },
	{ "--nubmer=3", "unknown option '--nubmer', did you mean '--number'?" },
	{ "--some", "unknown option '--some', did you mean '--some-text'?" },
	{ "--entirely-else", "unknown option '--entirely-else'" },
	{ "--no-number", "unknown option '--no-number'" },
	{ "--no-flga", "unknown option '--no-flga'" },
	{ "--no-flag=true", "unknown option '--no-flag'" },
	{ "-x", "unknown option '-x'" },
	{ "-fx", "unknown option '-x'" },
	{ "-5", "unknown option '-5'" },
	{ "--number", "--number needs a value" },
	{ "-n", "-n needs a value" },
	{ "--number x", "--number takes a number from 0 to 2147483647 (not 'x')" },
	{ "--number -1", "--number takes a number from 0 to 2147483647" },
	{ "--number 2147483648", "--number takes a number from 0" },
	{ "--number=", "--number takes a number from 0 to 2147483647 (not '')" },
	{ "--small 3", "--small takes a number from -2 to 2 (not '3')" },
	{ "--time 5x", "--time takes a time such as 30s, 5m, 24h (not '5x')" },
	{ "--bytes 5x", "--bytes takes a size such as 512M, 4G (not '5x')" },
	{ "--choice nev", "--choice takes one of: auto never always (not 'nev')" },
	{ "--choice=", "--choice takes one of: auto never always (not '')" },
	{ "--choice neveralways", "--choice takes one of:" },
	{ "--flag=yes", "--flag takes true or false (not 'yes')" }
};

START_TEST(wrong_lines_say_why)
{
	struct values v;
	struct err err;

	ck_assert_int_eq(parse(wrong[_i].line, &v, _i % 2 == 0, &err), -1);
	ck_assert_int_eq(err.code, ERR_USAGE);
	ck_assert_msg(strncmp(err.text, wrong[_i].want,
	    strlen(wrong[_i].want)) == 0, "%s: %s", wrong[_i].line, err.text);
}
END_TEST

START_TEST(mixed_operands_keep_their_order)
{
	static const struct {
		const char	*line, *operands;
	} rows[] = {
		{ "a --flag b -n 5 c", "a b c" }, { "a b", "a b" },
		{ "--flag", "" }, { "", "" }, { "a --number=5 --flag", "a" },
		{ "a -- --flag b", "a --flag b" }, { "--flag -- -n", "-n" },
		{ "a --some-text x - b --", "a - b" }, { "a -- b -- c", "a b -- c" }
	};
	char joined[128];
	struct values v;
	struct err err;
	int i, k;

	for (i = 0; i < LENGTH(rows); i++) {
		ck_assert_int_eq(parse(rows[i].line, &v, true, &err), 0);
		joined[0] = '\0';
		for (k = first; k < argc; k++)
			snprintf(joined + strlen(joined),
			    sizeof(joined) - strlen(joined), "%s%s",
			    k > first ? " " : "", argv[k]);
		ck_assert_str_eq(joined, rows[i].operands);
		ck_assert_ptr_null(argv[argc]);
	}
	ck_assert_int_eq(parse("a --flag b -n 5 c", &v, true, &err), 0);
	ck_assert(v.flag);
	ck_assert_int_eq(v.number, 5);
}
END_TEST

START_TEST(configuration_keys_are_names)
{
	struct values v = {0};
	struct err err = {0};

	ck_assert_int_eq(opt_set(table, &v, "number", "7", &err), 0);
	ck_assert_int_eq(v.number, 7);
	ck_assert_int_eq(opt_set(table, &v, "flag", "true", &err), 0);
	ck_assert(v.flag);
	ck_assert_int_eq(opt_set(table, &v, "number", "x", &err), -1);
	ck_assert_int_eq(v.number, 7);
	ck_assert_int_eq(opt_set(table, &v, "nubmer", "7", &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "did you mean"));
	ck_assert_int_eq(opt_set(table, &v, "no-flag", "true", &err), -1);
	ck_assert_int_eq(opt_set(table, &v, "num", "7", &err), -1);
	ck_assert_int_eq(opt_set(table, &v, "numbers", "7", &err), -1);
	ck_assert_int_eq(opt_set(table, &v, "", "7", &err), -1);
}
END_TEST

/* What only the command line may say is refused elsewhere, and nobody is told
 * that he meant what he wrote. */
START_TEST(some_are_for_the_command_line_alone)
{
	struct values v = {0};
	struct err err = {0};

	ck_assert_int_eq(opt_set(table, &v, "secret", "x", &err), -1);
	ck_assert_ptr_null(v.secret);
	ck_assert_ptr_null(strstr(err.text, "did you mean"));
	ck_assert_ptr_nonnull(strstr(err.text, "command line"));
	ck_assert_int_eq(opt_set(table, &v, "secre", "x", &err), -1);
	ck_assert_ptr_null(strstr(err.text, "'--secret'"));
	setenv("HOLDFAST_SECRET", "x", 1);
	ck_assert_int_eq(opt_environment(table, &v, &err), 0);
	ck_assert_ptr_null(v.secret);
}
END_TEST

START_TEST(environment_is_taken)
{
	struct values v = {0};
	struct err err = {0};

	setenv("HOLDFAST_SOME_TEXT", "from env", 1);
	setenv("HOLDFAST_NUMBER", "9", 1);
	setenv("HOLDFAST_BYTES", "", 1);
	setenv("HOLDFAST_some_text", "wrong", 1);
	setenv("HOLDFAST_FLAG", "true", 1);
	ck_assert_int_eq(opt_environment(table, &v, &err), 0);
	ck_assert_str_eq(v.text, "from env");
	ck_assert_int_eq(v.number, 9);
	ck_assert_int_eq(v.bytes, 0);
	ck_assert(v.flag);
	setenv("HOLDFAST_NUMBER", "many", 1);
	ck_assert_int_eq(opt_environment(table, &v, &err), -1);
	ck_assert_int_eq(err.code, ERR_USAGE);
	ck_assert_ptr_nonnull(strstr(err.text, "HOLDFAST_NUMBER"));
	ck_assert_ptr_nonnull(strstr(err.text, "many"));
}
END_TEST

START_TEST(help_lists_all_rows)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	const struct opt *o;
	char name[40];

	opt_print(table, f);
	fclose(f);
	for (o = table; o->name != NULL; o++) {
		snprintf(name, sizeof(name), "--%s", o->name);
		ck_assert_ptr_nonnull(strstr(text, name));
	}
	ck_assert_ptr_nonnull(strstr(text, "-t, --some-text TEXT"));
	ck_assert_ptr_nonnull(strstr(text, "(5s)"));
	ck_assert_ptr_null(strstr(text, "(false)"));
	free(text);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_test(t, defaults_are_set);
	tcase_add_test(t, all_types_are_read);
	tcase_add_test(t, flags_have_three_forms);
	tcase_add_test(t, values_may_be_odd);
	tcase_add_test(t, letters_are_read);
	tcase_add_test(t, parsing_stops_at_the_command);
	tcase_add_loop_test(t, wrong_lines_say_why, 0, LENGTH(wrong));
	tcase_add_test(t, mixed_operands_keep_their_order);
	tcase_add_test(t, configuration_keys_are_names);
	tcase_add_test(t, some_are_for_the_command_line_alone);
	tcase_add_test(t, environment_is_taken);
	tcase_add_test(t, help_lists_all_rows);
}

int
main(void)
{
	return unit_run("common_opt", add);
}
