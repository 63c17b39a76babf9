/* SPDX-License-Identifier: Apache-2.0 */
/* time_text.h - times of day in text, for prefix.c. */
#ifndef HOLDFAST_DIAGNOSE_TIME_TEXT_H
#define HOLDFAST_DIAGNOSE_TIME_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Two digits that make a number between least and most. */
bool	time_two_digits(const char *p, int least, int most, int *value);
/* "HH:MM:SS" with an optional fraction: its length, 0 when there is none. */
size_t	time_of_day(const char *p, size_t len, int *seconds, int *ns);

#endif
