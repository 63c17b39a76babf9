/* SPDX-License-Identifier: Apache-2.0 */
/* time_text.h - points in time as logs print them, for prefix*.c and clock.c. */
#ifndef HOLDFAST_DIAGNOSE_TIME_TEXT_H
#define HOLDFAST_DIAGNOSE_TIME_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diagnose/line.h"

/* A date with its time of day, in one of the forms that time_text.c lists, or
 * seconds (milli-, micro-, nanoseconds) since 1970: its length, 0 when there is
 * none; *when is only changed then. */
size_t	time_read(const char *p, size_t len, struct line_time *when);
size_t	time_read_epoch(const char *p, size_t len, struct line_time *when);
/* "HH:MM:SS" with an optional fraction, "AM" and "PM". */
size_t	time_read_clock(const char *p, size_t len, struct line_time *when);
/* Month and day without separator, as glog prints them: "0131" and "131". */
bool	time_read_month_day(int digits, int *month, int *day);
/* Nanoseconds from 1970 to a midnight, or from the beginning of an unnamed leap
 * year when year is 0. */
int64_t	time_of_date(int year, int month, int day);

#endif
