/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.c - text that mentions a failure without being one.
 */
#include <string.h>

#include "diagnose/guard.h"

bool
guard_is_guess(const char *text, size_t len)
{
	static const char *const marks[] = {
		"may be caused by", "might be caused by", "could be caused by",
		"may be due to", "might be due to", "could be due to",
		"Possible Cause", "possible cause", "usually caused by",
		"For debugging consider"
	};
	size_t i;

	for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (memmem(text, len, marks[i], strlen(marks[i])) != NULL)
			return true;
	return false;
}

bool
guard_is_source(const struct line *l)
{
	static const char *const words[] = {
		"raise ", "return ", "if ", "elif ", "except ", "except:", "assert ",
		"def ", "class ", "with ", "for ", "while ", "self.", "log.",
		"logger.", "logging.", "print("
	};
	size_t n = 0, i;

	while (n < l->len && l->text[n] == ' ')
		n++;
	for (i = 0; n >= 4 && i < sizeof(words) / sizeof(words[0]); i++)
		if (l->len - n >= strlen(words[i]) &&
		    memcmp(l->text + n, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}
