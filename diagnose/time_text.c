/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time_text.c - reads times of day and dates as logs print them.
 */
#include <ctype.h>
#include <string.h>
#include <time.h>

#include "diagnose/line.h"
#include "diagnose/time_text.h"

bool
time_two_digits(const char *p, int least, int most, int *value)
{
	if (!isdigit((unsigned char)p[0]) || !isdigit((unsigned char)p[1]))
		return false;
	*value = (p[0] - '0') * 10 + (p[1] - '0');
	return *value >= least && *value <= most;
}

size_t
time_of_day(const char *p, size_t len, int *seconds, int *ns)
{
	int h, m, s, scale = 100000000;
	size_t n = 8;

	*ns = 0;
	if (len < 8 || p[2] != ':' || p[5] != ':' || !time_two_digits(p, 0, 23, &h) ||
	    !time_two_digits(p + 3, 0, 59, &m) || !time_two_digits(p + 6, 0, 60, &s))
		return 0;
	*seconds = h * 3600 + m * 60 + s;
	if (n + 1 < len && (p[n] == '.' || p[n] == ',') &&
	    isdigit((unsigned char)p[n + 1])) {
		for (n++; n < len && isdigit((unsigned char)p[n]); n++) {
			*ns += (p[n] - '0') * scale;
			scale /= 10;
		}
	}
	return n;
}

static int64_t
day_seconds(int year, int month, int day)
{
	struct tm tm = { .tm_year = year - 1900, .tm_mon = month - 1,
	    .tm_mday = day };

	return (int64_t)timegm(&tm);
}

/* "Z", "+00:00", "+0000" behind a time: its length, its minutes. */
static size_t
zone(const char *p, size_t len, int *minutes)
{
	int h, m;

	*minutes = 0;
	if (len > 0 && p[0] == 'Z')
		return 1;
	if (len < 5 || (p[0] != '+' && p[0] != '-') || !time_two_digits(p + 1, 0, 14, &h))
		return 0;
	if (time_two_digits(p + 3, 0, 59, &m)) {
		*minutes = (p[0] == '-' ? -1 : 1) * (h * 60 + m);
		return 5;
	}
	if (len >= 6 && p[3] == ':' && time_two_digits(p + 4, 0, 59, &m)) {
		*minutes = (p[0] == '-' ? -1 : 1) * (h * 60 + m);
		return 6;
	}
	return 0;
}

size_t
line_parse_time(const char *p, size_t len, int64_t *time_ns)
{
	int century, year, month, day, seconds, ns, minutes;
	char sep = len > 4 ? p[4] : 0;
	size_t n, z;

	if (len < 19 || (sep != '-' && sep != '/') || p[7] != sep ||
	    !time_two_digits(p, 19, 20, &century) ||
	    !time_two_digits(p + 2, 0, 99, &year) ||
	    !time_two_digits(p + 5, 1, 12, &month) ||
	    !time_two_digits(p + 8, 1, 31, &day) ||
	    strchr(" T-_", p[10]) == NULL || p[10] == '\0')
		return 0;
	if ((n = time_of_day(p + 11, len - 11, &seconds, &ns)) == 0)
		return 0;
	n += 11;
	z = zone(p + n, len - n, &minutes);
	*time_ns = (day_seconds(century * 100 + year, month, day) + seconds -
	    minutes * 60) * 1000000000ll + ns;
	return n + z;
}
