/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time_text.c - reads dates and times of day as logs print them.
 *
 * Forms: ISO 8601 with - / or . and its compact one, 01/31/2026 and 01/31/26,
 * Spark's 26/01/31, 31/Jan/2026:03:12:41, syslog's "Jan 31 03:12:41", ctime's "Sat
 * Jan 31 03:12:41 2026", date's "Sat Jan 31 03:12:41 UTC 2026", Java's "Jan 31, 2026
 * 3:12:41 AM", "Sat 31 Jan 2026", systemd's "Sat 2026-01-31", "01-31 03:12:41".
 */
#include <ctype.h>
#include <string.h>
#include <time.h>

#include "diagnose/time_text.h"

#define SECOND_NS	1000000000ll
#define LEAP_YEAR	1972	/* stands for a year that is not printed */

/* What is still to be read; reading too far fails. */
struct text {
	const char	*p;
	const char	*end;
};

struct date {
	int	year;		/* 0 not printed */
	int	month;
	int	day;
};

static bool
take(struct text *t, const char *any)
{
	if (t->p == t->end || *t->p == '\0' || strchr(any, *t->p) == NULL)
		return false;
	t->p++;
	return true;
}

/* A number of at most `most` digits and at least `least`. */
static bool
number(struct text *t, int least, int most, int from, int to, int *value)
{
	int n = 0, v = 0;

	while (n < most && t->p + n < t->end &&
	    isdigit((unsigned char)t->p[n]))
		v = v * 10 + (t->p[n++] - '0');
	if (n < least || v < from || v > to)
		return false;
	t->p += n;
	*value = v;
	return true;
}

static bool
name_in(struct text *t, const char *names, int *index)
{
	const char *at;
	char name[4] = "";

	if (t->end - t->p < 3)
		return false;
	memcpy(name, t->p, 3);
	at = isalpha((unsigned char)name[0]) ? strstr(names, name) : NULL;
	if (at == NULL || (at - names) % 3 != 0)
		return false;
	t->p += 3;
	*index = (int)((at - names) / 3) + 1;
	return true;
}

static bool
month_name(struct text *t, int *month)
{
	return name_in(t, "JanFebMarAprMayJunJulAugSepOctNovDec", month);
}

static bool
weekday(struct text *t)
{
	struct text u = *t;
	int day;

	if (!name_in(&u, "MonTueWedThuFriSatSun", &day))
		return false;
	take(&u, ",");
	if (!take(&u, " "))
		return false;
	*t = u;
	return true;
}

/* A fraction, and its digits in groups of three: ".123.456". */
static int64_t
fraction(struct text *t)
{
	int64_t ns = 0, scale = SECOND_NS / 10;
	struct text u = *t;

	while (take(&u, ".,") && u.p < u.end && isdigit((unsigned char)*u.p)) {
		const char *from = u.p;

		for (; u.p < u.end && isdigit((unsigned char)*u.p); u.p++) {
			ns += (*u.p - '0') * scale;
			scale /= 10;
		}
		*t = u;
		if (u.p - from != 3)
			break;
	}
	return ns;
}

static bool
time_of_day(struct text *t, int64_t *ns)
{
	struct text u = *t, v;
	int h, m, s;

	if (!number(&u, 1, 2, 0, 23, &h) || !take(&u, ":") ||
	    !number(&u, 2, 2, 0, 59, &m) || !take(&u, ":") ||
	    !number(&u, 2, 2, 0, 60, &s) ||
	    (u.p < u.end && isdigit((unsigned char)*u.p)))
		return false;
	*ns = fraction(&u);
	v = u;
	take(&v, " ");
	if (v.end - v.p >= 2 && v.p[1] == 'M' && (v.p[0] == 'A' || v.p[0] == 'P') &&
	    (v.end - v.p == 2 || !isalpha((unsigned char)v.p[2])) && h <= 12) {
		h = h % 12 + (v.p[0] == 'P' ? 12 : 0);
		u.p = v.p + 2;
	}
	*ns += (h * 3600 + m * 60 + s) * SECOND_NS;
	*t = u;
	return true;
}

/* "Z", "UTC", "+00:00", "+0000", "+00", with a space before or not. */
static bool
zone(struct text *t, int64_t *ns)
{
	struct text u = *t;
	bool space = take(&u, " "), minus;
	int h, m = 0;

	*ns = 0;
	if (u.end - u.p >= 3 && (memcmp(u.p, "UTC", 3) == 0 ||
	    memcmp(u.p, "GMT", 3) == 0)) {
		t->p = u.p + 3;
		return true;
	}
	if (!space && take(&u, "Z")) {
		*t = u;
		return true;
	}
	minus = u.p < u.end && *u.p == '-';
	if (!take(&u, "+-") || !number(&u, 2, 2, 0, 14, &h))
		return false;
	if (take(&u, ":") ? !number(&u, 2, 2, 0, 59, &m) :
	    (!number(&u, 2, 2, 0, 59, &m) && space))
		return false;
	if (u.p < u.end && isalnum((unsigned char)*u.p))
		return false;
	*ns = (minus ? -1 : 1) * (h * 60 + m) * 60 * SECOND_NS;
	*t = u;
	return true;
}

int64_t
time_of_date(int year, int month, int day)
{
	struct tm tm = { .tm_year = (year ? year : LEAP_YEAR) - 1900,
	    .tm_mon = month - 1, .tm_mday = day };
	struct tm first = { .tm_year = LEAP_YEAR - 1900, .tm_mday = 1 };

	return ((int64_t)timegm(&tm) - (year ? 0 : (int64_t)timegm(&first))) *
	    SECOND_NS;
}

static size_t
finish(const struct text *t, const char *p, const struct date *d, int64_t ns,
    struct line_time *when)
{
	struct text u = *t;
	int64_t offset = 0;

	when->zoned = zone(&u, &offset);
	when->ns = time_of_date(d->year, d->month, d->day) + ns - offset;
	when->clock = d->year ? CLOCK_DATE : CLOCK_NO_YEAR;
	return (size_t)(u.p - p);
}

/* 2026-01-31T03:12:41, 20260131 03:12:41, 20260131T031241, 01-31 03:12:41 */
static size_t
read_iso(struct text t, struct line_time *when)
{
	const char *p = t.p;
	struct date d = {0};
	char sep[2] = "";
	int64_t ns;
	int h, m, s;

	if (number(&t, 4, 4, 1970, 2099, &d.year) && t.p < t.end &&
	    strchr("-/.", *t.p) != NULL) {
		sep[0] = *t.p++;
		if (!number(&t, 2, 2, 1, 12, &d.month) || !take(&t, sep) ||
		    !number(&t, 2, 2, 1, 31, &d.day))
			return 0;
	} else if (d.year != 0) {
		if (!number(&t, 2, 2, 1, 12, &d.month) ||
		    !number(&t, 2, 2, 1, 31, &d.day))
			return 0;
	} else if (!number(&t, 2, 2, 1, 12, &d.month) || !take(&t, "-") ||
	    !number(&t, 2, 2, 1, 31, &d.day) || t.p == t.end || *t.p != ' ') {
		return 0;
	}
	if (!take(&t, " T-_"))
		return 0;
	if (time_of_day(&t, &ns))
		return finish(&t, p, &d, ns, when);
	if (sep[0] != '\0' || d.year == 0 || !number(&t, 2, 2, 0, 23, &h) ||
	    !number(&t, 2, 2, 0, 59, &m) || !number(&t, 2, 2, 0, 60, &s))
		return 0;
	return finish(&t, p, &d, (h * 3600 + m * 60 + s) * SECOND_NS, when);
}

/* 01/31/2026 03:12:41, 26/01/31 03:12:41, 31/Jan/2026:03:12:41 */
static size_t
read_slashes(struct text t, struct line_time *when)
{
	const char *p = t.p;
	struct date d = {0};
	int64_t ns;
	int a, b = 0;

	if (!number(&t, 2, 2, 1, 99, &a) || !take(&t, "/"))
		return 0;
	if (month_name(&t, &d.month)) {
		d.day = a;
	} else if (!number(&t, 2, 2, 1, 31, &b)) {
		return 0;
	}
	if (!take(&t, "/") || !number(&t, 2, 4, 0, 2099, &d.year))
		return 0;
	if (d.month == 0 && a > 12 && d.year <= 31 && b <= 12) {
		d = (struct date){ 2000 + a, b, d.year };
	} else {
		if (d.month == 0)
			d = (struct date){ d.year, a, b };
		if (d.year < 100)
			d.year += 2000;
	}
	if (d.year < 1970 || d.month > 12 || d.day < 1 || d.day > 31 ||
	    !take(&t, " :T") || !time_of_day(&t, &ns))
		return 0;
	return finish(&t, p, &d, ns, when);
}

/* Dates with the name of their month; a weekday may stand before. */
static size_t
read_named(struct text t, struct line_time *when)
{
	const char *p = t.p;
	struct date d = {0};
	struct text u;
	int64_t ns, offset;
	size_t n;

	if (weekday(&t) && t.p < t.end && isdigit((unsigned char)*t.p) &&
	    (n = read_iso(t, when)) > 0)
		return n + (size_t)(t.p - p);
	if (month_name(&t, &d.month)) {
		if (!take(&t, " "))
			return 0;
		take(&t, " ");
		if (!number(&t, 1, 2, 1, 31, &d.day))
			return 0;
		take(&t, ",");
	} else if (!number(&t, 1, 2, 1, 31, &d.day) || !take(&t, " -") ||
	    !month_name(&t, &d.month)) {
		return 0;
	}
	if (!take(&t, " -"))
		return 0;
	u = t;
	if (number(&u, 4, 4, 1970, 2099, &d.year) && take(&u, " "))
		t = u;
	else
		d.year = 0;
	if (!time_of_day(&t, &ns))
		return 0;
	/* The year may stand behind, with the name of a zone before it. */
	u = t;
	if (d.year == 0) {
		(void)zone(&u, &offset);
		if (take(&u, " ") && number(&u, 4, 4, 1970, 2099, &d.year) &&
		    (u.p == u.end || !isalnum((unsigned char)*u.p))) {
			*when = (struct line_time){ time_of_date(d.year, d.month,
			    d.day) + ns - offset, CLOCK_DATE, u.p - t.p > 5 };
			return (size_t)(u.p - p);
		}
		d.year = 0;
	}
	return finish(&t, p, &d, ns, when);
}

size_t
time_read(const char *p, size_t len, struct line_time *when)
{
	struct text t = { p, p + len };
	struct line_time w;
	size_t n = 0;

	if (len < 14)
		return 0;
	if (isdigit((unsigned char)p[0])) {
		if ((n = read_iso(t, &w)) == 0 && p[2] == '/')
			n = read_slashes(t, &w);
		else if (n == 0 && (isalpha((unsigned char)p[2]) ||
		    isalpha((unsigned char)p[3])))
			n = read_named(t, &w);
	} else if (isupper((unsigned char)p[0])) {
		n = read_named(t, &w);
	}
	if (n > 0)
		*when = w;
	return n;
}

/* Seconds with a fraction, or more digits for smaller units. */
size_t
time_read_epoch(const char *p, size_t len, struct line_time *when)
{
	struct text t = { p, p + len };
	uint64_t v = 0, unit_ns;
	size_t n;

	for (n = 0; n < len && n < 20 && isdigit((unsigned char)p[n]); n++)
		if (n < 19)
			v = v * 10 + (uint64_t)(p[n] - '0');
	switch (n) {
	case 10:
		unit_ns = SECOND_NS;
		break;
	case 13:
		unit_ns = 1000000;
		break;
	case 16:
		unit_ns = 1000;
		break;
	case 19:
		unit_ns = 1;
		break;
	default:
		return 0;
	}
	/* 2001 to 2099 */
	if (v / (SECOND_NS / unit_ns) < 1000000000 ||
	    v / (SECOND_NS / unit_ns) > 4102444800)
		return 0;
	t.p += n;
	*when = (struct line_time){ (int64_t)(v * unit_ns), CLOCK_DATE, true };
	if (n == 10)
		when->ns += fraction(&t);
	return (size_t)(t.p - p);
}

size_t
time_read_clock(const char *p, size_t len, struct line_time *when)
{
	struct text t = { p, p + len };
	int64_t ns;

	if (len < 8 || !isdigit((unsigned char)p[1]) || !time_of_day(&t, &ns))
		return 0;
	*when = (struct line_time){ ns, CLOCK_NO_DATE, false };
	return (size_t)(t.p - p);
}

bool
time_read_month_day(int digits, int *month, int *day)
{
	*month = digits / 100;
	*day = digits % 100;
	return *month >= 1 && *month <= 12 && *day >= 1 && *day <= 31;
}

size_t
line_parse_time(const char *p, size_t len, int64_t *time_ns)
{
	struct line_time when;
	size_t n = len >= 19 && isdigit((unsigned char)*p) ?
	    time_read(p, len, &when) : 0;

	if (n == 0 || when.clock != CLOCK_DATE)
		return 0;
	*time_ns = when.ns;
	return n;
}
