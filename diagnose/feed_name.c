/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_name.c - which files of a directory are logs, and which are parts of one.
 *
 * Reads names alone: logrotate's app.log.2.gz and messages-20260131, dates of
 * Python's TimedRotatingFileHandler, ".old".
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/feed_name.h"

#define DIGITS	"0123456789"

const char *
feed_name_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool
is_one_of(const char *p, size_t len, const char *const *words)
{
	for (; *words != NULL; words++)
		if (strlen(*words) == len && strncasecmp(p, *words, len) == 0)
			return true;
	return false;
}

/* Length of an ending of the first len bytes, 0 when it has none of them. */
static size_t
ending(const char *name, size_t len, const char *const *ends)
{
	for (; *ends != NULL; ends++) {
		size_t k = strlen(*ends);

		if (len > k && strncasecmp(name + len - k, *ends, k) == 0)
			return k;
	}
	return 0;
}

static const char *const packed_ends[] = {
	".gz", ".zst", ".xz", ".bz2", ".lz4", ".Z", NULL
};
static const char *const log_ends[] = {
	".log", ".out", ".err", ".txt", NULL
};

/* Rotation is only believed of what is a log by its name. */
static bool
is_log_stem(const char *name, size_t len)
{
	static const char *const names[] = {
		"stdout", "stderr", "syslog", "messages", "dmesg", "secure", NULL
	};

	return ending(name, len, log_ends) > 0 || is_one_of(name, len, names);
}

/* 20260131, 2026-01-31, 2026-01-31_03-12-41, 20260131-1769829161, to the end of the
 * text; as a number of 14 digits, or 0. */
static int64_t
parse_date(const char *p, const char *end)
{
	char digits[15] = "00000000000000";
	int64_t month, day;
	size_t n = 0;

	for (; p < end; p++) {
		if (isdigit((unsigned char)*p)) {
			if (n < 14)
				digits[n] = *p;
			n++;
		} else if (n < 4 || strchr("-_T:.", *p) == NULL ||
		    p + 1 == end) {
			return 0;
		}
	}
	if (n < 8 || n > 20 || (strncmp(digits, "19", 2) != 0 &&
	    strncmp(digits, "20", 2) != 0))
		return 0;
	month = (digits[4] - '0') * 10 + digits[5] - '0';
	day = (digits[6] - '0') * 10 + digits[7] - '0';
	return month >= 1 && month <= 12 && day >= 1 && day <= 31 ?
	    strtoll(digits, NULL, 10) : 0;
}

void
feed_name_part(const char *base, struct feed_part *out)
{
	static const char *const old[] = { ".old", NULL };
	size_t len = strlen(base), i, k;
	int64_t when;

	len -= ending(base, len, packed_ends);
	*out = (struct feed_part){ len, FEED_PART_CURRENT };
	if ((k = ending(base, len, old)) > 0 && is_log_stem(base, len - k)) {
		*out = (struct feed_part){ len - k, FEED_PART_CURRENT - 2 };
		return;
	}
	for (i = 1; i < len; i++) {
		if ((base[i] != '.' && base[i] != '-') || !is_log_stem(base, i))
			continue;
		k = strspn(base + i + 1, DIGITS);
		if (base[i] == '.' && k > 0 && k <= 3 && i + 1 + k == len)
			when = FEED_PART_CURRENT - atoi(base + i + 1) - 1;
		else if ((when = parse_date(base + i + 1, base + len)) == 0)
			continue;
		*out = (struct feed_part){ i, when };
		return;
	}
}

int
feed_name_compare(const char *a, const char *b)
{
	struct feed_part x, y;
	char s[256], t[256];
	int d;

	feed_name_part(a, &x);
	feed_name_part(b, &y);
	if (x.stem >= sizeof(s) || y.stem >= sizeof(t))
		return strcmp(a, b);
	memcpy(s, a, x.stem);
	memcpy(t, b, y.stem);
	s[x.stem] = t[y.stem] = '\0';
	if ((d = strverscmp(s, t)) != 0)
		return d;
	if (x.when != y.when)
		return x.when < y.when ? -1 : 1;
	return strcmp(a, b);
}

bool
feed_name_is_log(const char *base)
{
	static const char *const ends[] = {
		".pt", ".pth", ".bin", ".safetensors", ".ckpt", ".distcp", ".npy",
		".npz", ".zip", ".tar", ".tgz", ".txz", ".tzst", ".whl", ".rpm",
		".deb", ".so", ".o", ".pyc", ".py", ".c", ".h", ".sh", ".yaml",
		".yml", ".json", ".jsonl", ".png", ".jpg", ".pdf", ".html",
		".parquet", ".arrow", ".idx", ".pkl", ".model", ".pickle", ".csv",
		".tsv", ".md", ".toml", ".ini", ".cfg", ".db", ".sqlite",
		".nsys-rep", ".qdrep", ".sqsh", ".prom", ".sock", ".pid", ".tmp",
		".swp", NULL
	};
	/* "git-info.log" of NeMo is a patch. */
	static const char *const names[] = {
		"lock", "git-info.log", NULL
	};
	struct feed_part part;

	feed_name_part(base, &part);
	return strcmp(base, "error.json") == 0 || (base[0] != '.' &&
	    strncmp(base, "events.out.tfevents", 19) != 0 &&
	    !is_one_of(base, part.stem, names) &&
	    ending(base, part.stem, ends) == 0);
}
