/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.c - text that mentions a failure without being one.
 *
 * Decides whether what a rule matched is said of something else: a guess, a
 * piece of source or manual, a quotation, a record of the data set.  Reads the
 * line and where the match begins.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "diagnose/guard.h"

static bool
begins(const char *text, size_t len, const char *with)
{
	size_t n = strlen(with);

	return len >= n && memcmp(text, with, n) == 0;
}

static bool
begins_any(const char *text, size_t len, const char *const *list)
{
	for (; *list != NULL; list++)
		if (begins(text, len, *list))
			return true;
	return false;
}

/* What stands before the match makes it a guess: "might be caused by ...". */
static bool
is_guess(const char *before, size_t len)
{
	static const char *const marks[] = {
		"may be caused by", "might be caused by", "could be caused by",
		"may be due to", "might be due to", "could be due to",
		"Possible Cause", "possible cause", "usually caused by",
		"For debugging consider", "If you see ", "if you see ",
		"If you get ", "if you get ", "If you encounter ",
		"if you encounter ", "for example", "such as ", "e.g. ",
		"can lead to ", "may lead to ", "could lead to ", "can cause ",
		"may cause ", "could cause ", "may raise ", "would raise ",
		"to avoid ", "to prevent ", "in case of ",
		"instead of a ", "instead of the "
	};
	size_t i;

	for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (memmem(before, len, marks[i], strlen(marks[i])) != NULL)
			return true;
	return false;
}

/* "| a | b |" of a manual.  What programs draw (nvidia-smi, dcgmi) has columns of a
 * width, filled up with spaces, and quotes no `code`. */
static bool
is_table_row(const struct line *l)
{
	size_t i, n = 0, len = l->len;
	bool drawn = false;

	while (len > 0 && isspace((unsigned char)l->text[len - 1]))
		len--;
	for (i = 0; i < len; i++) {
		n += l->text[i] == '|';
		drawn |= i >= 3 && l->text[i] == '|' &&
		    memcmp(l->text + i - 3, "   ", 3) == 0;
	}
	if (n < 3 || l->text[0] != '|' || l->text[len - 1] != '|')
		return false;
	return !drawn || memchr(l->text, '`', len) != NULL;
}

/* Source that a traceback shows ("    raise ValueError(...)"), C comments, the
 * lines of a manual page, rows of a table. */
static bool
is_source(const struct line *l)
{
	static const char *const statements[] = {
		"raise ", "return ", "if ", "elif ", "except ", "except:", "assert ",
		"def ", "class ", "with ", "for ", "while ", "self.", "log.",
		"logger.", "logging.", "print(", "case ", "ck_assert", "EXPECT_",
		NULL
	};
	static const char *const marks[] = {
		"//", "/*", "* ", "*/", ".\\\"", ".It ", ".Li ", ".Dl ", ".Ql ",
		".Pq ", ".Dq ", ".Nd ", "# ", "##", "<!--", NULL
	};
	size_t n = 0, indent = 0;

	for (; n < l->len && (l->text[n] == ' ' || l->text[n] == '\t'); n++)
		indent += l->text[n] == '\t' ? 8 : 1;
	return (indent >= 4 && begins_any(l->text + n, l->len - n, statements)) ||
	    begins_any(l->text + n, l->len - n, marks) || is_table_row(l);
}

/* A field of the data set that the trainer prints: "prompt: ...", "label 3 = ". */
static bool
is_data(const struct line *l)
{
	static const char *const fields[] = {
		"prompt", "text", "input", "inputs", "instruction", "question",
		"answer", "response", "completion", "label", "labels", "sentence",
		"document", "caption", "content", "sample", "decoded", "generated",
		"generation", "prediction", "reference", "hypothesis", "query",
		"passage", "user", "assistant", "human", "chosen", "rejected",
		"title", "summary", "abstract", "docstring", "body"
	};
	const char *p = l->text, *end = l->text + (l->len < 60 ? l->len : 60);
	size_t i, n;

	while (p < end && (isspace((unsigned char)*p) || strchr("<[({\"'*", *p)))
		p++;
	for (n = 0; p + n < end && (isalpha((unsigned char)p[n])); n++)
		;
	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (n == strlen(fields[i]) && strncasecmp(p, fields[i], n) == 0)
			break;
	if (i == sizeof(fields) / sizeof(fields[0]))
		return false;
	for (p += n; p < end && (isdigit((unsigned char)*p) ||
	    strchr(" _#[]\"'*>", *p)); p++)
		;
	return p < end && (*p == ':' || *p == '=');
}

/* The letters in front of a string of Python, rb'...', are no word. */
static bool
word_before(const char *text, size_t i)
{
	size_t n = 0;
	bool prefix = true;

	for (; n < i && isalnum((unsigned char)text[i - 1 - n]); n++)
		prefix = prefix && strchr("rRbBfFuU", text[i - 1 - n]) != NULL;
	return n > 2 || (n > 0 && !prefix);
}

/* True when the match begins between two quotation marks.  An apostrophe is one
 * only at the edge of a word; `quoted' is quoted too. */
static bool
is_quoted(const char *text, size_t len, size_t start)
{
	char close = '\0';	/* what ends the quotation, none outside of one */
	size_t i;

	for (i = 0; i < len; i++) {
		char c = text[i];
		bool word_after = i + 1 < len &&
		    isalnum((unsigned char)text[i + 1]);

		if (i == start && close == '\0')
			return false;
		if (c == '\\') {
			i++;
		} else if (close == '\0') {
			if (c == '"' || c == '`' || (c == '\'' && !word_before(text, i)))
				close = c;
			if (c == '`' && memchr(text + i + 1, '`', len - i - 1) == NULL)
				close = '\'';
		} else if (c == close && (c != '\'' || !word_after)) {
			if (i > start)
				return true;
			close = '\0';
		}
	}
	return false;
}

enum guard
guard_check(const struct line *line, const char *text, size_t len, size_t start)
{
	if (is_source(line))
		return GUARD_SOURCE;
	if (is_data(line))
		return GUARD_DATA;
	if (is_guess(text, start))
		return GUARD_GUESS;
	return is_quoted(text, len, start) ? GUARD_QUOTE : GUARD_NONE;
}
